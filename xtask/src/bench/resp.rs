//! A connection that fills a RESP server with any commands. Knows no command, and of replies only their lines.

use anyhow::{Context as _, Result, bail};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};

/// Commands sent before their replies are read.
const IN_FLIGHT: usize = 500;

/// A connection.
#[derive(Debug)]
pub struct Resp {
    replies: BufReader<TcpStream>,
    requests: Vec<u8>,
    unanswered: usize,
}

impl Resp {
    /// Connects.
    pub fn connect(address: SocketAddr) -> Result<Resp> {
        let stream = TcpStream::connect(address).with_context(|| address.to_string())?;
        stream.set_nodelay(true)?;
        Ok(Resp { replies: BufReader::new(stream), requests: Vec::new(), unanswered: 0 })
    }

    /// Sends a command that is answered by one line: a status or an integer.
    pub fn send(&mut self, words: &[&str]) -> Result<()> {
        self.requests.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
        for word in words {
            self.requests.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
        }
        self.unanswered += 1;
        if self.unanswered == IN_FLIGHT { self.finish() } else { Ok(()) }
    }

    /// Waits for what is unanswered; an error among it is one.
    pub fn finish(&mut self) -> Result<()> {
        self.replies.get_mut().write_all(&self.requests)?;
        self.requests.clear();
        let mut line = String::new();
        for _ in 0..std::mem::take(&mut self.unanswered) {
            line.clear();
            self.replies.read_line(&mut line)?;
            if !line.starts_with(['+', ':']) {
                bail!("the server answered {:?}", line.trim_end());
            }
        }
        Ok(())
    }
}
