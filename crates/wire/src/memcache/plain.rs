//! The lines that nearly all clients send, read in one pass. Knows nothing else: the careful way is `line.rs`.

use super::line::{KEY_MAX, Store};
use super::request::StoreVerb;
use crate::span::Span;

/// A `get` of keys without control characters, one blank between them, CR LF behind them, no longer than `line_max`:
/// appends the keys and gives the position behind the line. Of anything else it appends nothing.
#[inline(never)]
pub(super) fn whole_get(buf: &[u8], start: usize, spans: &mut Vec<Span>, line_max: usize) -> Option<usize> {
    let mut rest = buf[start..].strip_prefix(b"get ")?;
    let before = spans.len();
    while let Some(key_len @ 1..=KEY_MAX) = word_len(rest) {
        let at = buf.len() - rest.len();
        if at + key_len - start > line_max {
            break;
        }
        spans.push(Span::bytes(at, key_len));
        match &rest[key_len..] {
            [b' ', behind @ ..] => rest = behind,
            // The line ends within the limit when its CR does.
            [b'\r', b'\n', behind @ ..] if at + key_len - start < line_max => return Some(buf.len() - behind.len()),
            _ => break,
        }
    }
    spans.truncate(before);
    None
}

/// The line of a `set` with plain numbers and without `noreply`, no longer than `line_max`; and its length with CR LF.
#[inline(never)]
pub(super) fn set_line(input: &[u8], line_max: usize) -> Option<(Store, usize)> {
    let rest = input.strip_prefix(b"set ")?;
    let key_len = word_len(rest).filter(|len| (1..=KEY_MAX).contains(len))?;
    let rest = rest[key_len..].strip_prefix(b" ")?;
    let (flags, rest) = number(rest)?;
    let (exptime, rest) = number(rest.strip_prefix(b" ")?)?;
    let (len, rest) = number(rest.strip_prefix(b" ")?)?;
    let rest = rest.strip_prefix(b"\r\n")?;
    let line_len = input.len() - rest.len();
    let store = Store {
        verb: StoreVerb::Set,
        key: Span::bytes(4, key_len),
        flags,
        exptime: exptime.into(),
        noreply: false,
        len: len as usize,
    };
    (line_len <= line_max).then_some((store, line_len))
}

/// One to nine digits, and what follows.
#[inline(always)]
fn number(text: &[u8]) -> Option<(u32, &[u8])> {
    let mut number = 0;
    for (i, &byte) in text.iter().enumerate().take(10) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return (i > 0).then_some((number, &text[i..]));
        }
        if i == 9 {
            return None;
        }
        number = number * 10 + u32::from(digit);
    }
    None
}

/// How many bytes there are before the first blank or control character, if there is one.
///
/// Keys are too short for `memchr` to pay: eight bytes at a time do.
#[inline(always)]
fn word_len(text: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let (chunks, tail) = text.as_chunks::<8>();
    for (i, chunk) in chunks.iter().enumerate() {
        // A byte up to the blank borrows, which sets its high bit. Only bytes above it can be wrong then.
        let word = u64::from_le_bytes(*chunk);
        let ends = word.wrapping_sub(ONES * (u64::from(b' ') + 1)) & !word & (ONES << 7);
        if ends != 0 {
            return Some(i * 8 + (ends.trailing_zeros() / 8) as usize);
        }
        if i * 8 > KEY_MAX {
            return None;
        }
    }
    Some(text.len() - tail.len() + tail.iter().position(|&byte| byte <= b' ')?)
}

#[cfg(test)]
mod tests {
    use super::super::line::{Line, parse_line};
    use super::super::request::{GetVerb, Request};
    use super::*;
    use crate::span::ArgSpans;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn words_end_at_the_first_blank_or_control(
            text in proptest::collection::vec(any::<u8>(), 0..40),
            graphic in 0..40usize,
        ) {
            let mut text = text;
            text.iter_mut().take(graphic).for_each(|byte| *byte |= 0x40);
            prop_assert_eq!(word_len(&text), text.iter().position(|&byte| byte <= b' '));
        }

        /// What the one pass takes, the careful way takes the same.
        #[test]
        fn agrees_with_the_careful_way(
            words in proptest::collection::vec(prop_oneof!["[0-9]{1,11}", "[a-c \x01\r]{0,3}", "k{248,252}"], 0..6),
            set: bool,
            line_max in 0..600usize,
        ) {
            let line = format!("{} {}", if set { "set" } else { "get" }, words.join(" "));
            let input = format!("##{line}\r\nrest");
            let mut plain = Vec::new();
            let mut careful = ArgSpans::new();
            let expected = parse_line(line.as_bytes(), 2, &mut careful, 1 << 30).unwrap();
            if let Some(end) = whole_get(input.as_bytes(), 2, &mut plain, line_max) {
                prop_assert_eq!(end, line.len() + 4);
                // The CR belongs to the line.
                prop_assert!(line.len() < line_max);
                let got = Request::Get { verb: GetVerb::Get, exptime: None, last: true };
                let Line::Request(expected) = expected else { panic!("{line:?} is no get: {expected:?}") };
                prop_assert_eq!(got, expected);
                prop_assert_eq!(&plain, &careful.spans);
            } else {
                prop_assert!(plain.is_empty());
            }
            if let Some((store, len)) = set_line(&input.as_bytes()[2..], line_max) {
                prop_assert_eq!(len, line.len() + 2);
                prop_assert!(len <= line_max);
                let Line::Store(expected) = expected else { panic!("{line:?} is no set: {expected:?}") };
                prop_assert_eq!(Store { key: store.key.shifted(2), ..store }, expected);
            }
        }
    }

    #[test]
    fn takes_what_clients_send() {
        let mut spans = Vec::new();
        assert_eq!(whole_get(b"get key:000000001 b\r\nx", 0, &mut spans, 2048), Some(21));
        assert_eq!(spans, [Span::bytes(4, 13), Span::bytes(18, 1)]);
        let (store, len) = set_line(b"set key 4 0 32\r\n0123", 2048).unwrap();
        assert_eq!((store.key, store.flags, store.exptime, store.len, len), (Span::bytes(4, 3), 4, 0, 32, 16));
    }
}
