//! What must hold for any bytes at all: the fuzz targets, and the replay of their seeds on a stable compiler.
#![allow(dead_code, missing_docs)]

use super::connection::{binary_events, memcache_events, resp_events};
use tenon_wire::resp::{Value, ValueDecoder, ValueLimits};
use tenon_wire::{ArgSpans, memcache, resp};

/// Cuts `input` into pieces of each of a few sizes.
fn cuttings(input: &[u8]) -> impl Iterator<Item = Vec<&[u8]>> {
    [1, 2, 7, 31].into_iter().map(|size| input.chunks(size).collect())
}

/// Commands are the same however they arrive, authenticated or not.
pub fn resp_command(input: &[u8]) {
    for authenticated in [true, false] {
        let limits =
            resp::Limits { big_min: 20, inline_max: 120, bulk_len_max: 20_000, authenticated, ..Default::default() };
        let whole = resp_events(&[input], &limits);
        for pieces in cuttings(input) {
            assert_eq!(resp_events(&pieces, &limits), whole);
        }
    }
}

/// Values are the same however they arrive, and end where they are said to.
pub fn resp_value(input: &[u8]) {
    let limits = ValueLimits { depth_max: 8, bulk_len_max: 1000, count_max: 1000, line_max: 100 };
    let whole = ValueDecoder::new().next(input, &limits);
    let mut decoder = ValueDecoder::new();
    let first = (0..=input.len()).map(|len| decoder.next(&input[..len], &limits)).find(|got| *got != Ok(None));
    // By their text: a double may be NaN.
    assert_eq!(format!("{:?}", first.unwrap_or(Ok(None))), format!("{whole:?}"));
    if let Ok(Some((value, len))) = whole {
        let again = Value::decode(&input[..len]);
        assert_eq!(format!("{again:?}"), format!("{:?}", Ok::<_, ()>(Some((value, len)))));
    }
}

/// Flags of meta commands are read or refused, whatever they are, and keys decode to what encodes to the same.
pub fn memcache_meta(input: &[u8]) {
    use memcache::{MetaFlags, MetaVerb, MetaWords, Request, Step, TextDecoder, base64};
    let limits = memcache::Limits::default();
    for verb in ["mg ", "ms ", "md ", "ma ", "me "] {
        let line = input.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let buf = [verb.as_bytes(), line, b"\n\r\n"].concat();
        let mut args = ArgSpans::new();
        let step = TextDecoder::new().next(&buf, 0, &mut args, &limits);
        let Ok(Step::Request { request: Request::Meta { verb, .. }, .. }) = step else { continue };
        let words = MetaWords::new(&args.spans, &buf, &args.scratch);
        if let Ok(flags) = MetaFlags::parse(verb, words) {
            assert!(
                verb == MetaVerb::Get
                    || flags.mode.is_none_or(|mode| verb == MetaVerb::Delete || b"EAPRSI+D-".contains(&mode))
            );
        }
        if words.is_key_encoded() {
            let (mut text, mut key) = (Vec::new(), Vec::new());
            base64::encode(words.key(), &mut text);
            assert!(base64::decode(&text, &mut key));
            assert_eq!(key, words.key());
        }
    }
}

/// Requests of the binary protocol are the same however they arrive.
pub fn memcache_binary(input: &[u8]) {
    let limits = memcache::Limits { value_max: 60, line_max: 300, big_min: 20, ..Default::default() };
    let whole = binary_events(&[input], &limits);
    for pieces in cuttings(input) {
        assert_eq!(binary_events(&pieces, &limits), whole);
    }
}

/// Memcached requests are the same however they arrive.
pub fn memcache_text(input: &[u8]) {
    let limits = memcache::Limits { value_max: 60, line_max: 300, big_min: 20, ..Default::default() };
    let whole = memcache_events(&[input], &limits);
    for pieces in cuttings(input) {
        assert_eq!(memcache_events(&pieces, &limits), whole);
    }
}
