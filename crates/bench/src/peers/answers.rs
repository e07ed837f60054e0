//! Whether a server answers, and what it says of itself. Knows one question of each language.

use super::postgres::version_and_process;
use crate::target::{Protocol, Target};
use anyhow::{Result, bail};
use std::io::Write;
use std::time::Duration;
use tenon_client::{Memcache, Resp, Value};

const PATIENCE: Duration = Duration::from_secs(5);

/// Who asks again and again need not wait so long for one answer.
const PATIENCE_WITH_ONE: Duration = Duration::from_secs(1);

/// Whether somebody who speaks the target's protocol answers there already.
pub fn answers(target: &Target) -> bool {
    ask_within(target, PATIENCE_WITH_ONE).is_ok()
}

/// Asks whether somebody who speaks the target's protocol is there.
///
/// # Errors
/// When nobody is, or who is there says something else: with that.
pub fn ask_for_life(target: &Target) -> Result<()> {
    ask_within(target, PATIENCE)
}

fn ask_within(target: &Target, patience: Duration) -> Result<()> {
    let (question, answer): (&[u8], &[u8]) = match target.protocol {
        Protocol::Postgres => return version_and_process(target).map(drop),
        Protocol::Resp | Protocol::RespTls => (b"*1\r\n$4\r\nPING\r\n", b"+PONG"),
        Protocol::Text | Protocol::Meta => (b"version\r\n", b"VERSION"),
        Protocol::Binary => (b"\x80\x0b\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", b"\x81\x0b"),
    };
    let mut stream = target.connect(Some(patience))?;
    stream.write_all(question)?;
    let mut said = Vec::new();
    let mut buffer = [0; 256];
    while said.len() < answer.len() {
        match stream.read_in_time(&mut buffer)? {
            0 => bail!("the connection ended after '{}'", said.escape_ascii()),
            read => said.extend_from_slice(&buffer[..read]),
        }
    }
    if !said.starts_with(answer) {
        bail!("the answer is '{}'", said.trim_ascii_end().escape_ascii());
    }
    Ok(())
}

/// A server's own figures by their names: INFO, or memcached's stats.
pub fn own_figures(target: &Target) -> Result<Vec<(String, String)>> {
    if target.protocol.is_memcache() {
        // The text of the same port, whichever of them is measured.
        let text = Target { protocol: Protocol::Text, ..target.clone() };
        return Ok(Memcache::over(text.connect(Some(PATIENCE))?).stats(None)?);
    }
    let reply = Resp::over(target.connect(Some(PATIENCE))?).call(&[b"INFO", b"everything"])?;
    let (Value::Bulk(info) | Value::Verbatim { text: info, .. }) = reply else {
        bail!("INFO was answered by {reply:?}");
    };
    let info = String::from_utf8_lossy(&info).into_owned();
    let lines = info.lines().filter_map(|line| line.split_once(':'));
    Ok(lines.map(|(name, value)| (name.to_owned(), value.trim_end().to_owned())).collect())
}
