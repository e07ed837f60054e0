//! What must be said on a connection before its load: PostgreSQL's login, and the statements to prepare. Knows no load.

use crate::dialects::postgres::{read_message, said};
use crate::target::Login;
use anyhow::{Context, Result, anyhow, bail};
use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::frontend;
use std::io::Write;
use tenon_client::Stream;

/// A name and the statement that is prepared under it.
pub type Statement = (String, String);

/// Logs in, and prepares the statements.
///
/// # Errors
/// What the server refuses, in its words.
pub fn open(stream: &mut Stream, login: &Login, statements: &[Statement]) -> Result<()> {
    let mut talk = Talk { stream, input: Vec::new() };
    let mut out = BytesMut::new();
    let parameters = [("user", &*login.user), ("database", &*login.database), ("application_name", "tenon-bench")];
    frontend::startup_message(parameters, &mut out)?;
    talk.send(&mut out)?;
    talk.show_who(login)?;
    talk.until_ready(|_, _| Ok(()))?;
    for (name, statement) in statements {
        frontend::parse(name, statement, [], &mut out)?;
    }
    frontend::sync(&mut out);
    talk.send(&mut out)?;
    talk.until_ready(|_, _| Ok(())).context("a statement cannot be prepared")
}

/// Runs statements, and gives the first column of each row as text.
///
/// # Errors
/// What the server refuses, in its words.
pub fn query(stream: &mut Stream, statements: &str) -> Result<Vec<String>> {
    let mut talk = Talk { stream, input: Vec::new() };
    let mut out = BytesMut::new();
    frontend::query(statements, &mut out)?;
    talk.send(&mut out)?;
    let mut rows = Vec::new();
    talk.until_ready(|tag, body| {
        if tag == b'D' {
            let column = crate::dialects::postgres::columns(body).next().unwrap_or_default();
            rows.push(String::from_utf8_lossy(column).into_owned());
        }
        Ok(())
    })?;
    Ok(rows)
}

struct Talk<'a> {
    stream: &'a mut Stream,
    input: Vec<u8>,
}

impl Talk<'_> {
    fn send(&mut self, out: &mut BytesMut) -> Result<()> {
        self.stream.write_all(out).context("the server takes no more")?;
        out.clear();
        Ok(())
    }

    fn receive(&mut self) -> Result<(u8, Vec<u8>)> {
        loop {
            if let Some(((tag, body), len)) = read_message(&self.input)? {
                let body = body.to_vec();
                self.input.drain(..len);
                return if tag == b'E' { Err(said(&body)) } else { Ok((tag, body)) };
            }
            let mut more = [0; 8192];
            match self.stream.read_in_time(&mut more).context("no reply can be read")? {
                0 => bail!("the server closed the connection"),
                len => self.input.extend_from_slice(&more[..len]),
            }
        }
    }

    fn until_ready(&mut self, mut each: impl FnMut(u8, &[u8]) -> Result<()>) -> Result<()> {
        loop {
            match self.receive()? {
                (b'Z', _) => return Ok(()),
                (tag, body) => each(tag, &body)?,
            }
        }
    }

    /// Answers what the server asks until it knows who connects.
    fn show_who(&mut self, login: &Login) -> Result<()> {
        let password = || login.password.as_deref().map(str::as_bytes).context("the server asks for a password");
        let mut out = BytesMut::new();
        let mut scram: Option<ScramSha256> = None;
        loop {
            let (tag, body) = self.receive()?;
            let (Some((kind, rest)), b'R') = (body.split_first_chunk::<4>(), tag) else {
                bail!("the server answered a login with a message '{}'", tag.escape_ascii());
            };
            match i32::from_be_bytes(*kind) {
                0 => return Ok(()),
                3 => frontend::password_message(password()?, &mut out)?,
                5 => {
                    let salt: [u8; 4] = rest.try_into().context("the server's salt has no four bytes")?;
                    let hash = md5_hash(login.user.as_bytes(), password()?, salt);
                    frontend::password_message(hash.as_bytes(), &mut out)?;
                }
                10 => {
                    let begun = ScramSha256::new(password()?, ChannelBinding::unsupported());
                    frontend::sasl_initial_response(SCRAM_SHA_256, begun.message(), &mut out)?;
                    scram = Some(begun);
                }
                11 => {
                    let scram = scram.as_mut().ok_or_else(|| anyhow!("SCRAM goes on that was not begun"))?;
                    scram.update(rest)?;
                    frontend::sasl_response(scram.message(), &mut out)?;
                }
                12 => scram.as_mut().ok_or_else(|| anyhow!("SCRAM ends that was not begun"))?.finish(rest)?,
                other => bail!("the server wants a login of kind {other}, which the bench does not know"),
            }
            self.send(&mut out)?;
        }
    }
}
