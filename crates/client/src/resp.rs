//! A RESP connection: commands out, replies in. Knows no command but HELLO.

use crate::stream::Input;
use crate::{Address, Stream, Value, ValueDecoder, ValueLimits};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// The version of the protocol that a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// RESP2, which every connection starts with.
    Resp2,
    /// RESP3, with maps, sets, doubles and pushed messages.
    Resp3,
}

/// A connection to a server that speaks RESP.
///
/// Replies come in the order of the commands. Error replies are values ([`Value`]), not `io::Error`s: an `io::Error`
/// means that the connection is lost, timed out, or sent what is not RESP, and it should then be dropped.
#[derive(Debug)]
pub struct Resp {
    stream: Stream,
    input: Input,
    output: Vec<u8>,
    decoder: ValueDecoder,
    limits: ValueLimits,
    pushes: VecDeque<Value>,
}

impl Resp {
    /// Connects to an address as [`Address`] reads it, e.g. `127.0.0.1:6379`, `redis://host` or `unix:/path`.
    ///
    /// # Errors
    /// `InvalidInput` when the text is no address, else what the system says.
    pub fn connect(address: &str) -> io::Result<Resp> {
        Resp::connect_to(&address.parse()?, None)
    }

    /// Connects; `timeout` bounds the handshake and every later read and write.
    ///
    /// # Errors
    /// What the system says.
    pub fn connect_to(address: &Address, timeout: Option<Duration>) -> io::Result<Resp> {
        let resp = Resp::over(Stream::connect(address, timeout)?);
        resp.set_timeout(timeout)?;
        Ok(resp)
    }

    /// Speaks over a stream that is already connected.
    pub fn over(stream: Stream) -> Resp {
        Resp {
            stream,
            input: Input::default(),
            output: Vec::new(),
            decoder: ValueDecoder::new(),
            limits: ValueLimits::default(),
            pushes: VecDeque::new(),
        }
    }

    /// Bounds every following read and write; `None` waits for ever.
    ///
    /// # Errors
    /// For a timeout of zero.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.stream.set_read_timeout(timeout)?;
        self.stream.set_write_timeout(timeout)
    }

    /// Bounds what the server may send as one value: without that, hundreds of megabytes.
    pub fn set_limits(&mut self, limits: ValueLimits) {
        self.limits = limits;
    }

    /// Changes the protocol with HELLO, and gives the server's description of itself.
    ///
    /// # Errors
    /// Those of [`Resp::call`]; a server that refuses says so in the value.
    pub fn hello(&mut self, version: Version) -> io::Result<Value> {
        let number: &[u8] = match version {
            Version::Resp2 => b"2",
            Version::Resp3 => b"3",
        };
        self.call(&[b"HELLO", number])
    }

    /// Sends one command and waits for its reply. Messages pushed meanwhile are kept for [`Resp::take_push`].
    ///
    /// # Errors
    /// When the connection is lost, a timeout passes, or what comes is not RESP (`InvalidData`).
    pub fn call(&mut self, arguments: &[&[u8]]) -> io::Result<Value> {
        self.send(arguments)?;
        self.receive_reply()
    }

    /// Sends all commands in one write and gives their replies in order.
    ///
    /// The replies are only read once all is sent: bound what one call sends to what the server may buffer.
    ///
    /// # Errors
    /// Those of [`Resp::call`].
    pub fn pipeline(&mut self, commands: &[&[&[u8]]]) -> io::Result<Vec<Value>> {
        self.output.clear();
        for command in commands {
            encode_command(command, &mut self.output);
        }
        self.stream.write_all(&self.output)?;
        commands.iter().map(|_| self.receive_reply()).collect()
    }

    /// Sends one command without waiting.
    ///
    /// # Errors
    /// When the connection is lost or a timeout passes.
    pub fn send(&mut self, arguments: &[&[u8]]) -> io::Result<()> {
        self.output.clear();
        encode_command(arguments, &mut self.output);
        self.stream.write_all(&self.output)
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// When the connection is lost or a timeout passes.
    pub fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Waits for the next value of any kind, pushed messages included.
    ///
    /// # Errors
    /// Those of [`Resp::call`]; `UnexpectedEof` when the server has closed the connection.
    pub fn receive(&mut self) -> io::Result<Value> {
        loop {
            if let Some(value) = self.received()? {
                return Ok(value);
            }
            self.input.read_more(&mut self.stream)?;
        }
    }

    /// The same, but the value has to come whole within this time, where a timeout lets a server send a byte now and then
    /// for as long as it likes. What bounds later reads is to be set anew.
    ///
    /// # Errors
    /// Those of [`Resp::receive`].
    pub fn receive_within(&mut self, time: Duration) -> io::Result<Value> {
        let started = Instant::now();
        loop {
            if let Some(value) = self.received()? {
                return Ok(value);
            }
            let left = time.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "no whole reply within its time"));
            }
            self.stream.set_read_timeout(Some(left))?;
            match self.input.read_more(&mut self.stream) {
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
                read => read?,
            }
        }
    }

    /// The next value, if it has come whole.
    fn received(&mut self) -> io::Result<Option<Value>> {
        let next = self.decoder.next(self.input.unread(), &self.limits);
        let next = next.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        Ok(next.map(|(value, len)| {
            self.input.consume(len);
            value
        }))
    }

    /// The oldest pushed message that came while a reply was waited for.
    pub fn take_push(&mut self) -> Option<Value> {
        self.pushes.pop_front()
    }

    /// The stream below, e.g. to half-close it.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    fn receive_reply(&mut self) -> io::Result<Value> {
        loop {
            match self.receive()? {
                push @ Value::Push(_) => self.pushes.push_back(push),
                reply => return Ok(reply),
            }
        }
    }
}

/// Appends a command as RESP frames it: an array of bulk strings.
pub fn encode_command(arguments: &[&[u8]], out: &mut Vec<u8>) {
    push_length(b'*', arguments.len(), out);
    for argument in arguments {
        push_length(b'$', argument.len(), out);
        out.extend_from_slice(argument);
        out.extend_from_slice(b"\r\n");
    }
}

fn push_length(kind: u8, len: usize, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(len.to_string().as_bytes());
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_an_array_of_bulks() {
        let mut out = Vec::new();
        encode_command(&[b"SET", b"", b"a\r\nb"], &mut out);
        assert_eq!(out, b"*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\na\r\nb\r\n");
    }
}
