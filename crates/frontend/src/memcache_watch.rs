//! What onlookers (MONITOR, HOTKEYS) and the slow log see of a memcached client's requests, in either protocol. Knows no
//! verb's meaning, only where a request has its keys.

use std::borrow::Cow;
use tenon_commands::memcache::admin::DATABASE;
use tenon_engine::Engine;
use tenon_engine::args::OwnedArgs;
use tenon_engine::clients::Client;
use tenon_engine::clock::monotonic_ns;
use tenon_engine::hotkeys::Measured;
use tenon_engine::wire::memcache::Request;
use tenon_engine::wire::memcache::binary::{BinaryCommand, BinaryHead};
use tenon_engine::wire::{OutBuf, Place, Span};
use tenon_engine::worker::Worker;

/// A request that somebody looks at while it runs, or whose time is taken.
pub struct Watch {
    measured: Option<Measured>,
    started_ns: Option<u64>,
}

/// What a request was.
pub struct Seen<'a> {
    pub keys: Vec<&'a [u8]>,
    pub words: Vec<Cow<'a, [u8]>>,
    /// Bytes that the client sent for it.
    pub received: usize,
}

impl Watch {
    /// Begins, when there is anybody or the time is to be taken.
    #[inline]
    pub fn begin(engine: &Engine, worker: &mut Worker, out: &OutBuf, is_timed: bool) -> Option<Watch> {
        (is_timed || engine.onlookers.are_there()).then(|| Watch::begun(engine, worker, out, is_timed))
    }

    #[cold]
    fn begun(engine: &Engine, worker: &mut Worker, out: &OutBuf, is_timed: bool) -> Watch {
        Watch { measured: engine.measure(worker, out.len()), started_ns: is_timed.then(monotonic_ns) }
    }

    /// Shows a request that has run. `see` tells what it was.
    #[cold]
    pub fn end<'a>(
        self,
        engine: &Engine,
        worker: &Worker,
        client: &Client,
        out: &OutBuf,
        see: impl FnOnce() -> Seen<'a>,
    ) {
        let slow_us = self.started_ns.and_then(|started_ns| engine.slow_request_us(worker, started_ns));
        if slow_us.is_none() && !engine.onlookers.are_there() {
            return;
        }
        let Seen { keys, words, received } = see();
        if let Some(measured) = self.measured {
            engine.note_cost(worker, &measured, keys.into_iter(), received as u64, out.len());
        }
        let words = OwnedArgs::new(words);
        if let Some(took_us) = slow_us {
            engine.log_slow_request(worker, client, &words.view(), took_us);
        }
        engine.show_monitors_request(client, DATABASE, &words.view());
    }
}

/// A request of the text protocol: `text` is what the client sent, `list` the spans of a read's keys in `buf`, or in
/// `decoded` where they had to be decoded.
pub fn seen_text<'a>(request: &Request, list: &[Span], buf: &'a [u8], decoded: &'a [u8], text: &'a [u8]) -> Seen<'a> {
    let keys = match request {
        Request::Get { .. } => list.iter().filter_map(|&span| in_buffer(span, buf, decoded)).collect(),
        Request::Meta { .. } | Request::MetaDebug => {
            list.first().and_then(|&span| in_buffer(span, buf, decoded)).into_iter().collect()
        }
        Request::Store { key, .. }
        | Request::Arithmetic { key, .. }
        | Request::Delete { key, .. }
        | Request::Touch { key, .. } => in_buffer(*key, buf, decoded).into_iter().collect(),
        _ => Vec::new(),
    };
    Seen { keys, words: words(text).into_iter().map(Cow::Borrowed).collect(), received: text.len() }
}

/// A request of the binary protocol: its kind by the name that memcached's headers give it, then what it says. Nobody is
/// shown how a client says who it is.
pub fn seen_binary<'a>(head: &BinaryHead, command: &BinaryCommand, buf: &'a [u8], received: usize) -> Seen<'a> {
    let name = NAMES.get(usize::from(head.opcode)).copied().filter(|name| !name.is_empty()).unwrap_or("unknown");
    let mut words: Vec<Cow<'a, [u8]>> = vec![Cow::Borrowed(name.as_bytes())];
    let text = |span| in_buffer(span, buf, &[]);
    let key = super::memcache::binary_key(command).and_then(text);
    words.extend(key.map(Cow::Borrowed));
    let number = |number: u64| Cow::Owned(number.to_string().into_bytes());
    match *command {
        BinaryCommand::Get { exptime, .. } => words.extend(exptime.map(|exptime| number(exptime.into()))),
        BinaryCommand::Touch { exptime, .. } => words.push(number(exptime.into())),
        BinaryCommand::Store { flags, exptime, data, .. } => {
            words.extend([number(flags.into()), number(exptime.into())]);
            words.extend(text(data).map(Cow::Borrowed));
        }
        BinaryCommand::Arithmetic { delta, initial, .. } => {
            words.push(number(delta));
            words.extend(initial.map(|(initial, _)| number(initial)));
        }
        BinaryCommand::Stat { group } => words.extend(text(group).filter(|group| !group.is_empty()).map(Cow::Borrowed)),
        BinaryCommand::Flush { exptime } => words.extend(exptime.map(|exptime| number(exptime.into()))),
        BinaryCommand::Sasl { mechanism, .. } => {
            words.extend(text(mechanism).map(Cow::Borrowed));
            words.push(Cow::Borrowed(b"(redacted)"));
        }
        BinaryCommand::Delete { .. }
        | BinaryCommand::Noop
        | BinaryCommand::Version
        | BinaryCommand::Quit
        | BinaryCommand::SaslMechanisms => {}
    }
    Seen { keys: key.into_iter().collect(), words, received }
}

/// The kinds of the binary protocol's requests by their numbers.
const NAMES: [&str; 37] = [
    "get",
    "set",
    "add",
    "replace",
    "delete",
    "increment",
    "decrement",
    "quit",
    "flush",
    "getq",
    "noop",
    "version",
    "getk",
    "getkq",
    "append",
    "prepend",
    "stat",
    "setq",
    "addq",
    "replaceq",
    "deleteq",
    "incrementq",
    "decrementq",
    "quitq",
    "flushq",
    "appendq",
    "prependq",
    "",
    "touch",
    "gat",
    "gatq",
    "",
    "sasl_list_mechs",
    "sasl_auth",
    "sasl_step",
    "gatk",
    "gatkq",
];

fn in_buffer<'a>(span: Span, buf: &'a [u8], decoded: &'a [u8]) -> Option<&'a [u8]> {
    match span.resolve(buf, decoded) {
        Place::Bytes(bytes) => Some(bytes),
        Place::Big(_) => None,
    }
}

/// The words of a request's line, and its data block as far as it came with it.
fn words(text: &[u8]) -> Vec<&[u8]> {
    let text = text.trim_ascii_start();
    let line_end = text.iter().position(|&byte| byte == b'\n').unwrap_or(text.len());
    let line = &text[..line_end];
    let mut words: Vec<&[u8]> = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
    let data = text.get(line_end + 1..).unwrap_or_default();
    if let Some(data) = data.strip_suffix(b"\r\n") {
        words.push(data);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_block_is_the_last_word() {
        assert_eq!(words(b"get a  b\r\n"), [&b"get"[..], b"a", b"b"]);
        assert_eq!(words(b" \r\nset k 0 0 3\r\na b\r\n"), [&b"set"[..], b"k", b"0", b"0", b"3", b"a b"]);
        assert_eq!(words(b"set k 0 0 0\r\n\r\n"), [&b"set"[..], b"k", b"0", b"0", b"0", b""]);
        assert_eq!(words(b"c d"), [&b"c"[..], b"d"]);
    }

    #[test]
    fn a_password_is_no_word() {
        let buf = b"PLAIN\0user\0secret";
        let command =
            BinaryCommand::Sasl { is_step: false, mechanism: Span::bytes(0, 5), data: Span::bytes(5, buf.len() - 5) };
        let seen = seen_binary(&BinaryHead { opcode: 0x21, ..BinaryHead::default() }, &command, buf, buf.len());
        let words: Vec<&[u8]> = seen.words.iter().map(AsRef::as_ref).collect();
        assert_eq!(words, [&b"sasl_auth"[..], b"PLAIN", b"(redacted)"]);
        assert!(seen.keys.is_empty());
    }
}
