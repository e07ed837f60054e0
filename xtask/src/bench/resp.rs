//! A connection that fills a RESP server with any commands. Knows no command, and of replies only their lines.

use anyhow::{Context as _, Result, bail};
use std::io::{BufRead, BufReader, Read, Write};
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

    fn write(&mut self, words: &[&str]) {
        self.requests.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
        for word in words {
            self.requests.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
        }
    }

    /// Sends a command that is answered by one line: a status or an integer.
    pub fn send(&mut self, words: &[&str]) -> Result<()> {
        self.write(words);
        self.unanswered += 1;
        if self.unanswered == IN_FLIGHT { self.finish() } else { Ok(()) }
    }

    /// What a command answers with an integer; `None` for an error, such as while it loads.
    pub fn ask_integer(&mut self, words: &[&str]) -> Result<Option<i64>> {
        let line = self.ask(words)?;
        Ok(line.strip_prefix(':').and_then(|digits| digits.parse().ok()))
    }

    /// A field of a section of INFO.
    pub fn info(&mut self, section: &str, field: &str) -> Result<String> {
        let line = self.ask(&["INFO", section])?;
        let len: usize =
            line.strip_prefix('$').and_then(|digits| digits.parse().ok()).context("INFO answers a string")?;
        let mut text = vec![0; len + 2];
        self.replies.read_exact(&mut text)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let found = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        found.map(str::to_owned).with_context(|| format!("INFO {section} has no {field}"))
    }

    /// Sends a command and gives the first line of its answer.
    fn ask(&mut self, words: &[&str]) -> Result<String> {
        self.finish()?;
        self.write(words);
        self.replies.get_mut().write_all(&self.requests)?;
        self.requests.clear();
        let mut line = String::new();
        self.replies.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
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
