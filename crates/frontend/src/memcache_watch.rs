//! What onlookers (MONITOR, HOTKEYS) see of a memcached client's requests. Knows no verb's meaning, only where a request
//! has its keys.

use tenon_engine::Engine;
use tenon_engine::clients::Client;
use tenon_engine::hotkeys::Measured;
use tenon_engine::wire::memcache::Request;
use tenon_engine::wire::{OutBuf, Place, Span};
use tenon_engine::worker::Worker;

/// A request that somebody looks at while it runs.
pub struct Watch(Option<Measured>);

impl Watch {
    /// Begins, when there is anybody.
    #[inline]
    pub fn begin(engine: &Engine, worker: &mut Worker, out: &OutBuf) -> Option<Watch> {
        engine.onlookers.are_there().then(|| Watch(engine.measure(worker, out.len())))
    }

    /// Shows a request that has run. `text` is what the client sent, `list` the spans of a read's keys in `buf`,
    /// or in `decoded` where they had to be decoded.
    #[cold]
    #[expect(clippy::too_many_arguments, reason = "all that a request is")]
    pub fn end(
        self,
        engine: &Engine,
        worker: &Worker,
        client: &Client,
        request: &Request,
        list: &[Span],
        buf: &[u8],
        decoded: &[u8],
        text: &[u8],
        out: &OutBuf,
    ) {
        if let Some(measured) = self.0 {
            let keys: Vec<&[u8]> = match request {
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
            engine.note_cost(worker, &measured, keys.into_iter(), text.len() as u64, out.len());
        }
        engine.show_monitors_request(client, tenon_commands::memcache::admin::DATABASE, words(text));
    }
}

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
    use super::words;

    #[test]
    fn a_data_block_is_the_last_word() {
        assert_eq!(words(b"get a  b\r\n"), [&b"get"[..], b"a", b"b"]);
        assert_eq!(words(b" \r\nset k 0 0 3\r\na b\r\n"), [&b"set"[..], b"k", b"0", b"0", b"3", b"a b"]);
        assert_eq!(words(b"set k 0 0 0\r\n\r\n"), [&b"set"[..], b"k", b"0", b"0", b"0", b""]);
        assert_eq!(words(b"c d"), [&b"c"[..], b"d"]);
    }
}
