//! One line of memcached's text protocol into a request, or into what is awaited behind it. Knows no stream.

use super::error::{Fatal, RequestError};
use super::meta::push_words;
use super::number::{parse_i64, parse_u32, parse_u64};
use super::request::{ArithmeticVerb, GetVerb, MetaVerb, Request, StoreVerb};
use crate::span::{ArgSpans, Span};

/// Longest key in bytes.
pub const KEY_MAX: usize = 250;

/// Longest data block that memcached takes the length of, in bytes; longer ones count as a bad number.
const DATA_LEN_MAX: i64 = i32::MAX as i64 - 2;

/// What a line asks for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Line {
    /// All of it is there.
    Request(Request),
    /// A data block follows.
    Store(Store),
    /// A data block of so many bytes follows; key and flags of the `ms` are appended.
    MetaSet { len: usize },
    /// It is refused, and nothing follows.
    Refused { error: RequestError, noreply: bool },
    /// It is refused, and a data block of so many bytes follows that nobody wants.
    RefusedStore { error: RequestError, noreply: bool, len: usize },
}

/// A write whose data block is still to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Store {
    pub(super) verb: StoreVerb,
    pub(super) key: Span,
    pub(super) flags: u32,
    pub(super) exptime: i64,
    pub(super) noreply: bool,
    /// Bytes of the data block without CR LF.
    pub(super) len: usize,
}

/// The tokens of a line, split at blanks as memcached does: nothing but a blank separates.
#[derive(Clone, Copy)]
pub(super) struct Tokens<'a> {
    rest: &'a [u8],
    /// Where `rest` starts in the line.
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(line: &'a [u8]) -> Tokens<'a> {
        Tokens { rest: line, at: 0 }
    }
}

impl<'a> Iterator for Tokens<'a> {
    /// Where the token starts in the line, and the token.
    type Item = (usize, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<(usize, &'a [u8])> {
        while let [b' ', rest @ ..] = self.rest {
            self.rest = rest;
            self.at += 1;
        }
        if self.rest.is_empty() {
            return None;
        }
        let start = self.at;
        let (token, rest) = self.rest.split_at(token_len(self.rest));
        self.rest = rest;
        self.at += token.len();
        Some((start, token))
    }
}

/// How many bytes there are before the first blank.
///
/// Tokens are too short for `memchr` to pay: eight bytes at a time do.
#[inline]
fn token_len(text: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let (chunks, tail) = text.as_chunks::<8>();
    for (i, chunk) in chunks.iter().enumerate() {
        // A blank becomes 0, and the lowest 0 byte is the lowest one with its high bit set here.
        let word = u64::from_le_bytes(*chunk) ^ (ONES * u64::from(b' '));
        let blanks = word.wrapping_sub(ONES) & !word & (ONES << 7);
        if blanks != 0 {
            return i * 8 + (blanks.trailing_zeros() / 8) as usize;
        }
    }
    let tail_len = tail.iter().position(|&byte| byte == b' ').unwrap_or(tail.len());
    text.len() - tail.len() + tail_len
}

/// The read a verb stands for.
pub(super) fn get_verb(verb: &[u8]) -> Option<GetVerb> {
    match verb {
        // The latter is an old name for the same.
        b"get" | b"bget" => Some(GetVerb::Get),
        b"gets" => Some(GetVerb::Gets),
        b"gat" => Some(GetVerb::Gat),
        b"gats" => Some(GetVerb::Gats),
        _ => None,
    }
}

impl GetVerb {
    /// Whether an expiry stands before the keys.
    pub(super) const fn has_exptime(self) -> bool {
        matches!(self, GetVerb::Gat | GetVerb::Gats)
    }
}

/// Parses `line`, which lies at `start` of the input buffer and has no line end. Keys of reads, and keys and flags of
/// meta commands, are appended to `args`.
pub(super) fn parse_line(line: &[u8], start: usize, args: &mut ArgSpans, value_max: usize) -> Result<Line, Fatal> {
    let mut tokens = Tokens::new(line);
    let Some((_, verb)) = tokens.next() else { return Ok(refused(RequestError::Unknown)) };
    if let &[b'm', letter] = verb {
        return Ok(parse_meta(letter, tokens, start, args, value_max));
    }
    let spans = &mut args.spans;
    if let Some(verb) = get_verb(verb) {
        return Ok(parse_get(verb, tokens, start, spans));
    }
    let line = Arguments::new(start, tokens);
    match verb {
        b"set" => Ok(line.store(StoreVerb::Set, value_max)),
        b"add" => Ok(line.store(StoreVerb::Add, value_max)),
        b"replace" => Ok(line.store(StoreVerb::Replace, value_max)),
        b"append" => Ok(line.store(StoreVerb::Append, value_max)),
        b"prepend" => Ok(line.store(StoreVerb::Prepend, value_max)),
        b"cas" => Ok(line.cas(value_max)),
        b"incr" => Ok(line.arithmetic(ArithmeticVerb::Incr)),
        b"decr" => Ok(line.arithmetic(ArithmeticVerb::Decr)),
        b"delete" => Ok(line.delete()),
        b"touch" => Ok(line.touch()),
        b"flush_all" => Ok(line.flush_all()),
        b"verbosity" => Ok(line.verbosity()),
        b"cache_memlimit" => Ok(line.cache_memlimit()),
        b"version" => Ok(Line::Request(Request::Version)),
        b"quit" => Ok(Line::Request(Request::Quit)),
        b"stats" => Ok(line.free_form(Request::Stats, spans)),
        b"shutdown" => Ok(line.free_form(Request::Shutdown, spans)),
        b"refresh_certs" => Ok(Line::Request(Request::RefreshCerts)),
        b"lru_crawler" => Ok(line.free_form(Request::LruCrawler, spans)),
        b"lru" => Ok(line.free_form(Request::Lru, spans)),
        b"watch" => Ok(line.free_form(Request::Watch, spans)),
        b"slabs" => Ok(line.free_form(Request::Slabs, spans)),
        _ if line.last.unwrap_or(verb).starts_with(b"HTTP/") => Err(Fatal::Http),
        _ => Ok(refused(RequestError::Unknown)),
    }
}

const fn refused(error: RequestError) -> Line {
    Line::Refused { error, noreply: false }
}

/// A write that is refused. Where the length of its data block can be read that is passed over, as memcached 1.6.45 does:
/// 1.6.18 took what somebody wanted to store for requests, and ran them.
fn refused_store(error: RequestError, noreply: bool, len: Option<usize>) -> Line {
    len.map_or(Line::Refused { error, noreply }, |len| Line::RefusedStore { error, noreply, len })
}

fn parse_get(verb: GetVerb, mut tokens: Tokens, start: usize, spans: &mut Vec<Span>) -> Line {
    let mut exptime = None;
    if verb.has_exptime() {
        let Some((_, token)) = tokens.next() else { return refused(RequestError::Unknown) };
        exptime = parse_i64(token);
        if exptime.is_none() {
            return refused(RequestError::InvalidExptime);
        }
    }
    let before = spans.len();
    for (at, key) in tokens {
        if key.len() > KEY_MAX {
            // Nothing of the line is answered, not even the keys before.
            spans.truncate(before);
            return refused(RequestError::BadFormat);
        }
        spans.push(Span::bytes(start + at, key.len()));
    }
    if spans.len() == before && exptime.is_none() {
        return refused(RequestError::Unknown);
    }
    Line::Request(Request::Get { verb, exptime, last: true })
}

/// A meta command, by the second letter of its name.
fn parse_meta(letter: u8, tokens: Tokens, start: usize, args: &mut ArgSpans, value_max: usize) -> Line {
    let verb = match letter {
        b'g' => MetaVerb::Get,
        b's' => return parse_meta_set(tokens, start, args, value_max),
        b'd' => MetaVerb::Delete,
        b'a' => MetaVerb::Arithmetic,
        b'e' => return parse_meta_debug(tokens, start, args),
        b'n' => return Line::Request(Request::MetaNoop),
        _ => return refused(RequestError::Unknown),
    };
    match push_words(verb, tokens, start, args) {
        Ok(writes) => Line::Request(Request::Meta { verb, data: Span::bytes(start, 0), writes }),
        Err(error) => refused(error),
    }
}

fn parse_meta_set(mut tokens: Tokens, start: usize, args: &mut ArgSpans, value_max: usize) -> Line {
    let Some(key) = tokens.next() else { return refused(RequestError::Unknown) };
    let Some((_, len)) = tokens.next() else { return refused(RequestError::BadFormat) };
    let before = args.spans.len();
    let words = push_words(MetaVerb::Set, std::iter::once(key).chain(tokens), start, args);
    match (words, parse_i64(len).and_then(|len| data_len(len, value_max))) {
        (Ok(_), Some(len)) => Line::MetaSet { len },
        (Err(error), len) => refused_store(error, false, len),
        (Ok(_), None) => {
            args.spans.truncate(before);
            refused(RequestError::BadFormat)
        }
    }
}

fn parse_meta_debug(tokens: Tokens, start: usize, args: &mut ArgSpans) -> Line {
    let before = args.spans.len();
    // What stands behind a first flag is not looked at.
    match push_words(MetaVerb::Get, tokens.take(2), start, args) {
        Ok(_) => Line::Request(Request::MetaDebug),
        Err(_) => {
            args.spans.truncate(before);
            refused(RequestError::BadFormat)
        }
    }
}

/// The length of a data block that a line tells, if it is one.
fn data_len(len: i64, value_max: usize) -> Option<usize> {
    usize::try_from(len).ok().filter(|&known| len <= DATA_LEN_MAX || known <= value_max)
}

/// Most arguments that a verb of fixed form has: `cas` with `noreply`.
const ARGUMENTS_MAX: usize = 6;

/// What stands behind the verb.
struct Arguments<'a> {
    start: usize,
    /// The first of them.
    list: [(usize, &'a [u8]); ARGUMENTS_MAX],
    /// How many there are, also those that `list` has no room for.
    count: usize,
    last: Option<&'a [u8]>,
    /// All of them.
    all: Tokens<'a>,
}

impl<'a> Arguments<'a> {
    #[inline]
    fn new(start: usize, tokens: Tokens<'a>) -> Arguments<'a> {
        let mut arguments = Arguments { start, list: [(0, &[][..]); ARGUMENTS_MAX], count: 0, last: None, all: tokens };
        for token in tokens {
            if let Some(place) = arguments.list.get_mut(arguments.count) {
                *place = token;
            }
            arguments.last = Some(token.1);
            arguments.count += 1;
        }
        arguments
    }

    /// Argument `index` as a number or whatever `parse` makes of it.
    fn parsed<T>(&self, index: usize, parse: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
        parse(self.list[index].1)
    }

    /// The first argument, when it is short enough for a key.
    fn key(&self) -> Option<Span> {
        let (at, key) = self.list[0];
        (key.len() <= KEY_MAX).then(|| Span::bytes(self.start + at, key.len()))
    }

    /// Whether the line says last that no answer is wanted, behind at least `fixed` arguments.
    ///
    /// Memcached looks at the last argument, whichever that is: `incr key noreply` is a silent error.
    fn noreply(&self, fixed: usize) -> bool {
        self.count > fixed && self.last == Some(b"noreply")
    }

    fn store(&self, verb: StoreVerb, value_max: usize) -> Line {
        if !(4..=5).contains(&self.count) {
            return refused(RequestError::Unknown);
        }
        self.store_fields(verb, value_max)
    }

    fn cas(&self, value_max: usize) -> Line {
        if !(5..=6).contains(&self.count) {
            return refused(RequestError::Unknown);
        }
        match self.parsed(4, parse_u64) {
            Some(token) => self.store_fields(StoreVerb::Cas(token), value_max),
            None => refused_store(RequestError::BadFormat, self.noreply(0), self.data_len(value_max)),
        }
    }

    fn data_len(&self, value_max: usize) -> Option<usize> {
        data_len(self.parsed(3, parse_i64)?, value_max)
    }

    fn store_fields(&self, verb: StoreVerb, value_max: usize) -> Line {
        let noreply = self.noreply(0);
        let len = self.data_len(value_max);
        let fields = || {
            Some(Store {
                verb,
                key: self.key()?,
                flags: self.parsed(1, parse_u32)?,
                exptime: self.parsed(2, parse_i64)?,
                noreply,
                len: len?,
            })
        };
        fields().map_or_else(|| refused_store(RequestError::BadFormat, noreply, len), Line::Store)
    }

    fn arithmetic(&self, verb: ArithmeticVerb) -> Line {
        if !(2..=3).contains(&self.count) {
            return refused(RequestError::Unknown);
        }
        let noreply = self.noreply(0);
        let Some(key) = self.key() else { return Line::Refused { error: RequestError::BadFormat, noreply } };
        match self.parsed(1, parse_u64) {
            Some(delta) => Line::Request(Request::Arithmetic { verb, key, delta, noreply }),
            None => Line::Refused { error: RequestError::InvalidDelta, noreply },
        }
    }

    fn delete(&self) -> Line {
        if !(1..=3).contains(&self.count) {
            return refused(RequestError::Unknown);
        }
        let noreply = self.noreply(1);
        // Old clients send a delay of 0.
        let zero = self.count > 1 && self.list[1].1 == b"0";
        let known = match self.count {
            1 => true,
            2 => zero || noreply,
            _ => zero && noreply,
        };
        if !known {
            return Line::Refused { error: RequestError::DeleteUsage, noreply };
        }
        match self.key() {
            Some(key) => Line::Request(Request::Delete { key, noreply }),
            None => Line::Refused { error: RequestError::BadFormat, noreply },
        }
    }

    fn touch(&self) -> Line {
        if !(2..=3).contains(&self.count) {
            return refused(RequestError::Unknown);
        }
        let noreply = self.noreply(0);
        let Some(key) = self.key() else { return Line::Refused { error: RequestError::BadFormat, noreply } };
        match self.parsed(1, parse_i64) {
            Some(exptime) => Line::Request(Request::Touch { key, exptime, noreply }),
            None => Line::Refused { error: RequestError::InvalidExptime, noreply },
        }
    }

    fn flush_all(&self) -> Line {
        if self.count > 2 {
            return refused(RequestError::Unknown);
        }
        let noreply = self.noreply(0);
        if self.count == usize::from(noreply) {
            return Line::Request(Request::FlushAll { exptime: None, noreply });
        }
        match self.parsed(0, parse_i64) {
            Some(exptime) => Line::Request(Request::FlushAll { exptime: Some(exptime), noreply }),
            None => Line::Refused { error: RequestError::InvalidExptime, noreply },
        }
    }

    fn verbosity(&self) -> Line {
        if !(1..=2).contains(&self.count) {
            return refused(RequestError::Unknown);
        }
        let noreply = self.noreply(0);
        match self.parsed(0, parse_u64) {
            Some(level) => Line::Request(Request::Verbosity { level, noreply }),
            None => Line::Refused { error: RequestError::BadFormat, noreply },
        }
    }

    fn cache_memlimit(&self) -> Line {
        if !(1..=2).contains(&self.count) {
            return refused(RequestError::Unknown);
        }
        let noreply = self.noreply(0);
        match self.parsed(0, parse_u64) {
            Some(megabytes) => Line::Request(Request::CacheMemlimit { megabytes, noreply }),
            None => Line::Refused { error: RequestError::Unknown, noreply },
        }
    }

    /// A verb whose arguments are for whoever runs it.
    fn free_form(self, request: Request, spans: &mut Vec<Span>) -> Line {
        spans.extend(self.all.map(|(at, token)| Span::bytes(self.start + at, token.len())));
        Line::Request(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn tokens_end_at_the_first_blank(text in proptest::collection::vec(any::<u8>(), 0..40), blank in 0..60usize) {
            let mut text = text;
            if let Some(byte) = text.get_mut(blank) {
                *byte = b' ';
            }
            let expected = text.iter().position(|&byte| byte == b' ').unwrap_or(text.len());
            prop_assert_eq!(token_len(&text), expected);
        }
    }
}
