//! One connection of a load: requests out, replies in. Knows nothing of the other connections or of when to send.

use super::opening::{self, Statement};
use super::plan::Plan;
use super::workload::{Reply, Workload};
use crate::target::Protocol;
use anyhow::{Context, Result, bail};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use tenon_client::Stream;

/// A connection and what is in flight on it.
#[derive(Debug)]
pub struct Connection<P> {
    stream: Stream,
    output: Vec<u8>,
    sent: usize,
    /// The beginning of a reply whose end has not come.
    partial: Vec<u8>,
    pending: VecDeque<InFlight<P>>,
    /// Whether the event loop has been asked to say when the socket takes more.
    pub waits_to_send: bool,
    /// System calls that were made for it; those of TLS are not counted.
    pub calls: u64,
}

#[derive(Debug)]
struct InFlight<P> {
    since_ns: u64,
    operation: P,
}

/// An operation that is done.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// Which kind it was.
    pub kind: usize,
    /// How many it counts as.
    pub operations: u64,
    /// When its time began.
    pub since_ns: u64,
}

/// Room offered to one read.
pub const INPUT_LEN: usize = 256 * 1024;

impl<P> Connection<P> {
    /// Connects, and says what must be said first.
    pub fn open(plan: &Plan<'_>, statements: &[Statement]) -> Result<Connection<P>> {
        let lost = || format!("no connection to {}", plan.target.address);
        let mut stream = plan.target.connect_by(plan.tls, None).with_context(lost)?;
        if let Some(login) = plan.target.login.as_ref().filter(|_| plan.target.protocol == Protocol::Postgres) {
            opening::open(&mut stream, login, statements).with_context(lost)?;
        }
        stream.set_nonblocking(true)?;
        let pending = VecDeque::with_capacity(plan.pipeline);
        let (output, partial) = (Vec::new(), Vec::new());
        Ok(Connection { stream, output, sent: 0, partial, pending, waits_to_send: false, calls: 0 })
    }

    /// Operations in flight.
    #[inline]
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// When the time of each operation in flight began.
    pub fn since_ns(&self) -> impl Iterator<Item = u64> + '_ {
        self.pending.iter().map(|operation| operation.since_ns)
    }

    /// Adds the next operation to what [`Connection::send`] will send; false if there is none.
    #[inline]
    pub fn begin<W: Workload<Pending = P>>(&mut self, workload: &mut W, since_ns: u64) -> bool {
        let Some(operation) = workload.begin(&mut self.output) else { return false };
        self.pending.push_back(InFlight { since_ns, operation });
        true
    }

    /// Sends what the socket takes; true if that was all.
    pub fn send(&mut self) -> Result<bool> {
        while self.sent < self.output.len() {
            self.calls += 1;
            match self.stream.write(&self.output[self.sent..]) {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("the server takes no more requests"),
            }
        }
        // What TLS has sealed and the socket has not taken waits in the stream.
        match self.stream.flush() {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error).context("the server takes no more requests"),
        }
        self.output.clear();
        self.sent = 0;
        Ok(true)
    }

    /// Reads once what has come and reports each operation that it ends; true if follow-up requests are to be sent.
    /// `input` is room that the connections of a thread share.
    pub fn receive<W: Workload<Pending = P>>(
        &mut self,
        workload: &mut W,
        input: &mut Vec<u8>,
        mut done: impl FnMut(Done),
    ) -> Result<bool> {
        let unsent = self.output.len();
        let buffer = if self.partial.is_empty() { &mut *input } else { &mut self.partial };
        buffer.reserve(INPUT_LEN);
        let received = if matches!(self.stream, Stream::Tls(_)) {
            read_all(&mut self.stream, buffer)?
        } else {
            self.calls += 1;
            match rustix::io::read(&self.stream, rustix::buffer::spare_capacity(buffer)) {
                Ok(0) => bail!("the server closed the connection"),
                Ok(received) => received,
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => 0,
                Err(error) => return Err(error).context("no reply can be read"),
            }
        };
        if received == 0 {
            return Ok(false);
        }
        let mut at = 0;
        while at < buffer.len() {
            let Some(first) = self.pending.front_mut() else {
                let rest = &buffer[at..];
                bail!("the server sent what nobody asked for: '{}'", rest[..rest.len().min(80)].escape_ascii());
            };
            match workload.reply(&mut first.operation, &buffer[at..], &mut self.output)? {
                Reply::Incomplete => break,
                Reply::Finished { len, kind, operations } => {
                    at += len;
                    done(Done { kind, operations, since_ns: first.since_ns });
                    self.pending.pop_front();
                }
                Reply::Partly { len } => at += len,
                Reply::Continued { len } => {
                    at += len;
                    // Its next reply comes behind those of all that has been sent meanwhile.
                    self.pending.rotate_left(1);
                }
            }
        }
        if self.partial.is_empty() {
            self.partial.extend_from_slice(&input[at..]);
            input.clear();
        } else {
            self.partial.drain(..at);
        }
        Ok(self.output.len() > unsent)
    }
}

/// Reads until nothing more is there: what TLS has unsealed and still holds would not wake the event loop.
fn read_all(stream: &mut Stream, buffer: &mut Vec<u8>) -> Result<usize> {
    const STEP: usize = 16 * 1024;
    let before = buffer.len();
    loop {
        let filled = buffer.len();
        buffer.resize(filled + STEP, 0);
        let read = stream.read(&mut buffer[filled..]);
        buffer.truncate(filled + read.as_ref().copied().unwrap_or(0));
        match read {
            Ok(0) => bail!("the server closed the connection"),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(buffer.len() - before),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error).context("no reply can be read"),
        }
    }
}

impl<P> AsFd for Connection<P> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
