//! Says who connects, before anything else is said, in the languages that have one request for it. Knows no socket's address;
//! PostgreSQL's login is a talk of its own.

use crate::dialects::{Dialect, Read as Whole, Resp, Text, read_login, write_bulk, write_head, write_login};
use crate::target::{Login, Protocol};
use anyhow::{Context, Error, Result, anyhow, bail};
use std::io::Write;
use tenon_client::Stream;

/// Says who connects, and waits until that is accepted.
///
/// # Errors
/// What the server refuses, in its words; the password is not among them.
pub fn say(stream: &mut Stream, protocol: Protocol, login: &Login) -> Result<()> {
    let password = login.password.as_deref().unwrap_or_default();
    exchange(stream, &request(protocol, &login.user, password), |input| {
        accepted(protocol, input).map_err(|error| refusal(protocol, input, password, error))
    })
    .context("the login")
}

/// What the server has said, without the password: it may repeat what it does not understand. The bench's own words are not
/// looked through, which may hold as short a password by chance.
fn refusal(protocol: Protocol, said: &[u8], password: &str, error: Error) -> Error {
    let head = if protocol == Protocol::Binary && said.first() == Some(&BINARY_REPLY) { BINARY_HEAD_LEN } else { 0 };
    let masked = masked(said, head, password.as_bytes());
    if masked == said {
        return error;
    }
    // What is as long says the same in all but these bytes, unless they made up the form.
    accepted(protocol, &masked).err().unwrap_or_else(|| anyhow!("the server refuses it"))
}

/// The same with a dot for each byte of the password, wherever it is after the head.
fn masked(said: &[u8], head: usize, password: &[u8]) -> Vec<u8> {
    let mut masked = said.to_vec();
    let mut at = head;
    while !password.is_empty() && at + password.len() <= said.len() {
        if said[at..].starts_with(password) {
            masked[at..at + password.len()].fill(b'.');
            at += password.len();
        } else {
            at += 1;
        }
    }
    masked
}

/// What a reply of memcached's binary protocol begins with, and how long its numbers are.
const BINARY_REPLY: u8 = 0x81;
const BINARY_HEAD_LEN: usize = 24;

fn request(protocol: Protocol, user: &str, password: &str) -> Vec<u8> {
    let mut out = Vec::new();
    match protocol {
        Protocol::Resp | Protocol::RespTls => {
            let words = ["AUTH", user, password];
            let words = words.iter().filter(|word| !word.is_empty());
            write_head(words.clone().count(), &mut out);
            words.for_each(|word| write_bulk(word.as_bytes(), &mut out));
        }
        // Of any key; what is said after it is what was meant.
        Protocol::Text | Protocol::Meta => {
            Text.write_set(b"auth", format!("{user} {password}").as_bytes(), 0, &mut out);
        }
        Protocol::Binary => write_login(user, password, &mut out),
        Protocol::Postgres => {}
    }
    out
}

fn accepted(protocol: Protocol, input: &[u8]) -> Whole<()> {
    match protocol {
        Protocol::Resp | Protocol::RespTls => Resp.read_set(input),
        Protocol::Text | Protocol::Meta => Text.read_set(input),
        Protocol::Binary => read_login(input),
        Protocol::Postgres => Ok(Some(((), 0))),
    }
}

fn exchange(stream: &mut Stream, request: &[u8], accepted: impl Fn(&[u8]) -> Whole<()>) -> Result<()> {
    stream.write_all(request)?;
    stream.flush()?;
    let (mut said, mut buffer) = (Vec::new(), [0; 256]);
    while accepted(&said)?.is_none() {
        match stream.read_in_time(&mut buffer)? {
            0 => bail!("the server closed the connection"),
            read => said.extend_from_slice(&buffer[..read]),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_language_has_its_own_way() {
        let said = |protocol, user| String::from_utf8(request(protocol, user, "p w")).expect("text");
        assert_eq!(said(Protocol::Resp, ""), "*2\r\n$4\r\nAUTH\r\n$3\r\np w\r\n");
        assert_eq!(said(Protocol::RespTls, "me"), "*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$3\r\np w\r\n");
        assert_eq!(said(Protocol::Meta, "me"), "set auth 0 0 6\r\nme p w\r\n");
        let binary = request(Protocol::Binary, "me", "p w");
        let head = b"\x80\x21\0\x05\0\0\0\0\0\0\0\x0c\0\0\0\0\0\0\0\0\0\0\0\0";
        assert_eq!(binary, [&head[..], b"PLAIN\0me\0p w"].concat());
        let yes = b"\x81\x21\0\0\0\0\0\0\0\0\0\x0d\0\0\0\0\0\0\0\0\0\0\0\0Authenticated";
        assert!(accepted(Protocol::Binary, yes).expect("it is one").is_some());
        let no = b"\x81\x21\0\0\0\0\0\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
        assert!(accepted(Protocol::Binary, no).is_err());
        assert!(accepted(Protocol::Text, b"CLIENT_ERROR authentication failure\r\n").is_err());
    }

    #[test]
    fn the_password_is_in_no_words_of_the_server_and_the_benchs_own_stay_whole() {
        let said = |protocol, answer: &[u8], password| {
            let error = accepted(protocol, answer).expect_err("it is a refusal");
            refusal(protocol, answer, password, error).to_string()
        };
        let unknown = b"-ERR unknown command 'AUTH', with args: 'se'cret' 'e'\r\n";
        let words = said(Protocol::Resp, unknown, "se'cret");
        assert!(words.starts_with("the server answered '-ERR unknown command") && !words.contains("cret"), "{words}");
        let words = said(Protocol::Resp, unknown, "e");
        assert!(words.starts_with("the server answered '-ERR unknown command"), "{words}");
        assert!(words.ends_with(r"\'s.\'cr.t\' \'.\''"), "{words}");
        // A cut that the text has must not leave half of it.
        let long = [b"-ERR ".as_slice(), &[b'x'; 70], b"secret\r\n"].concat();
        assert!(!said(Protocol::Resp, &long, "secret").contains("xs"), "half of it is left");
        let no = b"\x81\x21\0\0\0\0\0\x20\0\0\0\x04\0\0\0\0\0\0\0\0\0\0\0\0no p";
        assert_eq!(said(Protocol::Binary, no, "p"), "the server answered status 0x0020 'no .'");
        assert_eq!(said(Protocol::Binary, no, " "), "the server answered status 0x0020 'no.p'");
    }
}
