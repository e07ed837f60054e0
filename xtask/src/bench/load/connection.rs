//! One connection of a load: a batch of requests out, its replies in, then the next batch. Knows nothing of the other
//! connections, of threads or of what is measured.

use super::replies::{self, Front};
use super::requests::{self, Operation, Protocol};
use anyhow::{Context, Result, bail};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

/// What all connections of a load send.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    /// The language.
    pub protocol: Protocol,
    /// What each request does.
    pub operation: Operation,
}

/// One connection and the batch in flight on it.
#[derive(Debug)]
pub struct Connection {
    /// The socket, non-blocking.
    pub stream: TcpStream,
    traffic: Traffic,
    output: Vec<u8>,
    sent: usize,
    input: Vec<u8>,
    filled: usize,
    /// Keys of the batch, in the order of the requests.
    keys: Vec<u64>,
    /// How many of them were answered.
    answered: usize,
    begun: Instant,
}

/// How a batch stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Bytes are left to be sent: wait until the socket takes them.
    Sending,
    /// All is sent: wait for replies.
    Waiting,
    /// Every reply came.
    Answered,
}

const INPUT_BYTES: usize = 64 * 1024;

impl Connection {
    /// Connects.
    pub fn open(address: SocketAddr, traffic: Traffic) -> Result<Connection> {
        let stream = TcpStream::connect(address).with_context(|| format!("no connection to {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Connection {
            stream,
            traffic,
            output: Vec::new(),
            sent: 0,
            input: vec![0; INPUT_BYTES],
            filled: 0,
            keys: Vec::new(),
            answered: 0,
            begun: Instant::now(),
        })
    }

    /// Sends the requests for these keys; the batch before must be answered.
    pub fn begin(&mut self, keys: impl Iterator<Item = u64>, now: Instant) -> Result<Progress> {
        assert_eq!(self.answered, self.keys.len(), "a batch begins when the one before is answered");
        self.keys.clear();
        self.keys.extend(keys);
        self.answered = 0;
        self.output.clear();
        self.sent = 0;
        for keys in self.keys.chunks(self.traffic.operation.keys()) {
            requests::write(&mut self.output, self.traffic.protocol, self.traffic.operation, keys);
        }
        self.begun = now;
        self.send()
    }

    /// Sends what the socket takes.
    pub fn send(&mut self) -> Result<Progress> {
        while self.sent < self.output.len() {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Progress::Sending),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("the server takes no more requests"),
            }
        }
        Ok(Progress::Waiting)
    }

    /// Reads what has come, once, and checks the replies in it.
    pub fn receive(&mut self) -> Result<Progress> {
        if self.filled == self.input.len() {
            self.input.resize(self.input.len() * 2, 0);
        }
        match self.stream.read(&mut self.input[self.filled..]) {
            Ok(0) => bail!("the server closed the connection"),
            Ok(received) => self.filled += received,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error).context("no reply can be read"),
        }
        let per_request = self.traffic.operation.keys();
        let mut at = 0;
        while self.answered < self.keys.len() {
            let request_end = (self.answered + per_request).min(self.keys.len());
            let keys = &self.keys[self.answered..request_end];
            let traffic = self.traffic;
            match replies::front(&self.input[at..self.filled], traffic.protocol, traffic.operation, keys)? {
                Front::Reply(len) => at += len,
                Front::Incomplete => break,
            }
            self.answered = request_end;
        }
        if at > 0 {
            self.input.copy_within(at..self.filled, 0);
        }
        self.filled -= at;
        if self.answered < self.keys.len() {
            let sending = self.sent < self.output.len();
            return Ok(if sending { Progress::Sending } else { Progress::Waiting });
        }
        if self.filled > 0 {
            bail!("the server sent {} bytes that nobody asked for", self.filled);
        }
        Ok(Progress::Answered)
    }

    /// When the batch began.
    pub fn begun(&self) -> Instant {
        self.begun
    }

    /// Operations of the batch.
    pub fn operations(&self) -> u64 {
        self.keys.len() as u64
    }
}
