//! A connection that gets its bytes in pieces, as the decoders' callers are; for the tests and the fuzz targets.
#![allow(dead_code, missing_docs)]

use tenon_wire::{ArgSpans, Place, Span, memcache, resp};

/// What the caller holds between two pieces: the front of an incomplete command, and its big arguments.
#[derive(Default)]
struct Connection {
    kept: Vec<u8>,
    bigs: Vec<Vec<u8>>,
    /// Bytes that the big argument being fetched still lacks.
    big_missing: usize,
}

impl Connection {
    /// Takes what belongs to the big argument being fetched; tells whether that is whole now, and what is left.
    fn fetch<'a>(&mut self, piece: &'a [u8]) -> (bool, &'a [u8]) {
        let taken = self.big_missing.min(piece.len());
        self.bigs.last_mut().unwrap().extend(&piece[..taken]);
        self.big_missing -= taken;
        (self.big_missing == 0, &piece[taken..])
    }

    fn begin_big(&mut self, len: usize, have: &[u8]) {
        assert!(have.len() < len, "what is wholly there is not big");
        self.bigs.push(have.to_vec());
        self.big_missing = len - have.len();
    }

    fn bytes(&self, span: Span, buf: &[u8], scratch: &[u8]) -> Vec<u8> {
        match span.resolve(buf, scratch) {
            Place::Bytes(bytes) => bytes.to_vec(),
            Place::Big(number) => self.bigs[number as usize].clone(),
        }
    }
}

/// Cuts `input` at `cuts`, which need not be in order or within it.
pub fn pieces<'a>(input: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().copied().filter(|&cut| cut < input.len()).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut from = 0;
    let mut pieces = Vec::new();
    for cut in cuts.into_iter().chain([input.len()]) {
        pieces.push(&input[from..cut]);
        from = cut;
    }
    pieces
}

/// Commands and what ended the stream, whatever the pieces.
#[derive(Debug, PartialEq, Eq)]
pub enum RespEvent {
    Command(Vec<Vec<u8>>),
    Error(resp::ProtocolError),
}

/// Feeds the pieces to a command decoder.
pub fn resp_events(pieces: &[&[u8]], limits: &resp::Limits) -> Vec<RespEvent> {
    let mut decoder = resp::CommandDecoder::new();
    let mut connection = Connection::default();
    let mut args = ArgSpans::new();
    let mut events = Vec::new();
    for mut piece in pieces.iter().copied() {
        if connection.big_missing > 0 {
            let (whole, rest) = connection.fetch(piece);
            if !whole {
                continue;
            }
            decoder.big_taken();
            piece = rest;
        }
        let mut buf = std::mem::take(&mut connection.kept);
        buf.extend(piece);
        let mut start = 0;
        while start < buf.len() {
            // A batch: arguments pile up over the commands of one buffer.
            let first = args.spans.len();
            match decoder.next(&buf, start, &mut args, limits) {
                Ok(resp::Step::Command { end }) => {
                    assert!(end > start && end <= buf.len());
                    let spans = &args.spans[first..];
                    events.push(RespEvent::Command(
                        spans.iter().map(|span| connection.bytes(*span, &buf, &args.scratch)).collect(),
                    ));
                    connection.bigs.clear();
                    start = end;
                }
                Ok(resp::Step::Skip { end }) => {
                    assert!(end > start && end <= buf.len() && args.spans.len() == first);
                    start = end;
                }
                Ok(resp::Step::Incomplete) => {
                    assert_eq!(args.spans.len(), first);
                    break;
                }
                Ok(resp::Step::Big { index, len, at }) => {
                    assert_eq!((index as usize, args.spans.len()), (connection.bigs.len(), first));
                    assert!(len >= limits.big_min);
                    connection.begin_big(len, &buf[at..]);
                    buf.truncate(at);
                    break;
                }
                Err(error) => {
                    events.push(RespEvent::Error(error));
                    return events;
                }
            }
        }
        connection.kept = buf.split_off(start);
        args.clear();
    }
    events
}

/// Requests with their arguments, and what ended the stream, whatever the pieces.
#[derive(Debug, PartialEq, Eq)]
pub enum MemcacheEvent {
    /// Any request but a read: its debug text without spans, its fields and its list of arguments.
    Request(String, Vec<Vec<u8>>),
    /// A whole read, its keys from all steps, and whether `END` was reached.
    Get(memcache::GetVerb, Option<i64>, Vec<Vec<u8>>, bool),
    Refused(memcache::RequestError, bool, Option<Vec<u8>>),
    Fatal(memcache::Fatal),
}

/// Feeds the pieces to a decoder of memcached's text protocol.
pub fn memcache_events(pieces: &[&[u8]], limits: &memcache::Limits) -> Vec<MemcacheEvent> {
    use memcache::Step;
    let mut decoder = memcache::TextDecoder::new();
    let mut connection = Connection::default();
    let mut args = ArgSpans::new();
    let mut events = Vec::new();
    for mut piece in pieces.iter().copied() {
        if connection.big_missing > 0 {
            let (whole, rest) = connection.fetch(piece);
            if !whole {
                continue;
            }
            decoder.big_taken();
            piece = rest;
        }
        let mut buf = std::mem::take(&mut connection.kept);
        buf.extend(piece);
        let mut start = 0;
        while start < buf.len() {
            let first = args.spans.len();
            let step = decoder.next(&buf, start, &mut args, limits);
            let list: Vec<Vec<u8>> =
                args.spans[first..].iter().map(|span| connection.bytes(*span, &buf, &args.scratch)).collect();
            let end = match step {
                Ok(Step::Request { request, end }) => {
                    let words = &args.spans[first..];
                    match request {
                        // Whoever runs it refuses it as the decoder does when its data is not there yet.
                        memcache::Request::Meta { verb: verb @ memcache::MetaVerb::Set, .. }
                            if let Err(error) = meta_flags(verb, words, &buf, &args.scratch) =>
                        {
                            events.push(MemcacheEvent::Refused(error, false, None));
                        }
                        _ => memcache_request(&mut events, request, list, |span| connection.bytes(span, &buf, &[])),
                    }
                    connection.bigs.clear();
                    end
                }
                Ok(Step::Refused { refusal, end }) => {
                    assert!(list.is_empty());
                    let key = refusal.stale_key().map(|span| connection.bytes(span, &buf, &args.scratch));
                    events.push(MemcacheEvent::Refused(refusal.error, refusal.noreply, key));
                    connection.bigs.clear();
                    end
                }
                Ok(Step::Skip { end }) => {
                    assert!(end > start && list.is_empty());
                    end
                }
                Ok(Step::Incomplete) => {
                    assert!(list.is_empty());
                    break;
                }
                Ok(Step::Big { len, at }) => {
                    assert!(len >= limits.big_min && list.is_empty());
                    connection.begin_big(len, &buf[at..]);
                    buf.truncate(at);
                    break;
                }
                Err(error) => {
                    events.push(MemcacheEvent::Fatal(error));
                    return events;
                }
            };
            assert!(end >= start && end <= buf.len());
            start = end;
        }
        connection.kept = buf.split_off(start);
        args.clear();
    }
    // The keys of a read that has not ended depend on the pieces: its last key may be complete or not.
    if let Some(MemcacheEvent::Get(_, _, _, false)) = events.last() {
        events.pop();
    }
    events
}

/// Feeds the pieces to a decoder of memcached's binary protocol; gives each step without its places, and its bytes.
pub fn binary_events(pieces: &[&[u8]], limits: &memcache::Limits) -> Vec<(String, Vec<Vec<u8>>)> {
    use memcache::binary::{BinaryCommand::*, BinaryDecoder, BinaryStep};
    let mut decoder = BinaryDecoder::new();
    let mut connection = Connection::default();
    let mut events = Vec::new();
    for mut piece in pieces.iter().copied() {
        if connection.big_missing > 0 {
            let (whole, rest) = connection.fetch(piece);
            if !whole {
                continue;
            }
            decoder.big_taken();
            piece = rest;
        }
        let mut buf = std::mem::take(&mut connection.kept);
        buf.extend(piece);
        let mut start = 0;
        while start < buf.len() {
            let bytes = |span| connection.bytes(span, &buf, &[]);
            match decoder.next(&buf, start, limits) {
                BinaryStep::Request { head, command, end } => {
                    let (name, parts) = match command {
                        Get { key, with_key, exptime } => (format!("get {with_key} {exptime:?}"), vec![bytes(key)]),
                        Touch { key, exptime } => (format!("touch {exptime}"), vec![bytes(key)]),
                        Store { verb, key, flags, exptime, data } => {
                            (format!("{verb:?} {flags} {exptime}"), vec![bytes(key), bytes(data)])
                        }
                        Arithmetic { verb, key, delta, initial } => {
                            (format!("{verb:?} {delta} {initial:?}"), vec![bytes(key)])
                        }
                        Delete { key } => ("delete".to_owned(), vec![bytes(key)]),
                        Stat { group } => ("stat".to_owned(), vec![bytes(group)]),
                        other => (format!("{other:?}"), Vec::new()),
                    };
                    events.push((format!("{head:?} {name}"), parts));
                    connection.bigs.clear();
                    assert!(end > start && end <= buf.len());
                    start = end;
                }
                BinaryStep::Refused { head, status, write, closes, end } => {
                    let parts = write.map(|(_, key)| bytes(key)).into_iter().collect();
                    events.push((format!("{head:?} {status:?}, closes {closes}"), parts));
                    if closes {
                        return events;
                    }
                    start = end;
                }
                BinaryStep::Skip { end } => {
                    assert!(end > start);
                    start = end;
                }
                BinaryStep::Incomplete => break,
                BinaryStep::Big { len, at } => {
                    assert!(len >= limits.big_min);
                    connection.begin_big(len, &buf[at..]);
                    buf.truncate(at);
                    break;
                }
                BinaryStep::NoRequest => {
                    events.push(("no request".to_owned(), Vec::new()));
                    return events;
                }
            }
        }
        connection.kept = buf.split_off(start);
    }
    events
}

fn meta_flags(
    verb: memcache::MetaVerb,
    words: &[Span],
    buf: &[u8],
    scratch: &[u8],
) -> Result<memcache::MetaFlags, memcache::RequestError> {
    memcache::MetaFlags::parse(verb, memcache::MetaWords::new(words, buf, scratch))
}

fn memcache_request(
    events: &mut Vec<MemcacheEvent>,
    request: memcache::Request,
    list: Vec<Vec<u8>>,
    bytes: impl Fn(Span) -> Vec<u8>,
) {
    use memcache::Request::*;
    let event = match request {
        Get { verb, exptime, last } => {
            if let Some(MemcacheEvent::Get(_, _, keys, ended @ false)) = events.last_mut() {
                keys.extend(list);
                *ended = last;
                return;
            }
            MemcacheEvent::Get(verb, exptime, list, last)
        }
        Store { verb, key, flags, exptime, data, noreply } => MemcacheEvent::Request(
            format!("{verb:?} flags {flags} exptime {exptime} noreply {noreply}"),
            vec![bytes(key), bytes(data)],
        ),
        Arithmetic { verb, key, delta, noreply } => {
            MemcacheEvent::Request(format!("{verb:?} delta {delta} noreply {noreply}"), vec![bytes(key)])
        }
        Delete { key, noreply } => MemcacheEvent::Request(format!("Delete noreply {noreply}"), vec![bytes(key)]),
        Touch { key, exptime, noreply } => {
            MemcacheEvent::Request(format!("Touch exptime {exptime} noreply {noreply}"), vec![bytes(key)])
        }
        Meta { verb, data, writes } => {
            let verb = format!("meta {verb:?}{}", if writes { " writes" } else { "" });
            MemcacheEvent::Request(verb, [list, vec![bytes(data)]].concat())
        }
        other => MemcacheEvent::Request(format!("{other:?}"), list),
    };
    events.push(event);
}
