//! The flags of memcached's meta commands. Knows no stream and no store.

use super::base64;
use super::error::RequestError;
use super::line::KEY_MAX;
use super::number::{parse_i64, parse_u32, parse_u64};
use super::request::MetaVerb;
use crate::span::{ArgSpans, Place, Span};

/// Most words of a line that has flags, verb and key counted.
const WORDS_MAX: usize = 19;
/// Longest flag that is given back, its letter counted, in bytes.
const OPAQUE_MAX: usize = 32;

/// The key of a meta command and its flags, where they lie in the client's bytes.
#[derive(Clone, Copy)]
pub struct MetaWords<'a> {
    spans: &'a [Span],
    input: &'a [u8],
    scratch: &'a [u8],
}

impl<'a> MetaWords<'a> {
    /// The words at `spans`, key first, of a line that was read from `input`.
    ///
    /// # Panics
    /// When there is no key.
    pub fn new(spans: &'a [Span], input: &'a [u8], scratch: &'a [u8]) -> MetaWords<'a> {
        assert!(!spans.is_empty(), "the decoder refuses a line without a key");
        MetaWords { spans, input, scratch }
    }

    fn word(self, span: Span) -> &'a [u8] {
        match span.resolve(self.input, self.scratch) {
            Place::Bytes(bytes) => bytes,
            Place::Big(_) => unreachable!("only data blocks are taken out of the stream"),
        }
    }

    /// The key: as it was sent, or what it encodes.
    #[inline]
    pub fn key(self) -> &'a [u8] {
        self.word(self.spans[0])
    }

    /// Whether the key was sent as base64.
    #[inline]
    pub fn is_key_encoded(self) -> bool {
        self.spans[0].in_input().is_none()
    }

    /// What stands behind the key: flags, each a letter with its argument.
    #[inline]
    pub fn flags(self) -> impl Iterator<Item = &'a [u8]> {
        self.spans[1..].iter().map(move |&span| self.word(span))
    }
}

/// What the flags of a meta command say, those that only ask for something in the answer excepted. Times are as the
/// client gave them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetaFlags {
    /// `v`: the value is wanted.
    pub value: bool,
    /// `c`: the CAS token is wanted.
    pub shows_cas: bool,
    /// `u`: no access is to be noted.
    pub no_update: bool,
    /// `I`: marks as stale.
    pub stale: bool,
    /// `q`: what every client expects is not to be answered.
    pub quiet: bool,
    /// `x`: the value goes, the item stays.
    pub remove_value: bool,
    /// `C`: only when the item still has this CAS token.
    pub compare: Option<u64>,
    /// `E`: the CAS token that the item is to have.
    pub cas: Option<u64>,
    /// `M`: the mode of `ms` and `ma`.
    pub mode: Option<u8>,
    /// `T`: the new expiry.
    pub exptime: Option<i64>,
    /// `N`: the expiry of an item that is made where none is.
    pub vivify: Option<i64>,
    /// `R`: who finds less time left than this is to set the item anew.
    pub recache: Option<i64>,
    /// `F`: the client's own.
    pub client_flags: u32,
    /// `D`: by how much to count.
    pub delta: Option<u64>,
    /// `J`: where to begin counting.
    pub initial: u64,
}

impl MetaFlags {
    /// Reads the flags of a command.
    ///
    /// # Errors
    /// As memcached looks at flags: one that is unknown or comes twice ends it, of other errors the last is told.
    #[inline]
    pub fn parse(verb: MetaVerb, words: MetaWords<'_>) -> Result<MetaFlags, RequestError> {
        MetaFlags::parse_any(verb, words).map_err(|error| match (verb, error) {
            (_, RequestError::OpaqueTooLong | RequestError::UnknownArithmeticMode) => error,
            (MetaVerb::Delete | MetaVerb::Arithmetic, _) => RequestError::BadFlags,
            (MetaVerb::Get | MetaVerb::Set, _) => error,
        })
    }

    fn parse_any(verb: MetaVerb, words: MetaWords<'_>) -> Result<MetaFlags, RequestError> {
        let mut flags = MetaFlags::default();
        let mut seen = 0u128;
        let mut error = None;
        let mut opaque_fits = true;
        for word in words.flags() {
            let (&letter, argument) = word.split_first().expect("a word has a byte");
            // Memcached keeps no note of bytes from 127 on.
            if letter >= 127 || seen & 1 << letter != 0 {
                return Err(RequestError::DuplicateFlag);
            }
            seen |= 1 << letter;
            let result = match letter {
                b'k' | b's' | b't' | b'f' | b'l' | b'h' | b'P' | b'L' => Ok(()),
                b'c' => on(&mut flags.shows_cas),
                b'v' => on(&mut flags.value),
                b'q' => on(&mut flags.quiet),
                b'u' => on(&mut flags.no_update),
                b'I' => on(&mut flags.stale),
                b'x' => on(&mut flags.remove_value),
                b'O' => {
                    opaque_fits = word.len() <= OPAQUE_MAX;
                    Ok(())
                }
                b'b' if words.is_key_encoded() => Ok(()),
                b'b' => Err(RequestError::BadEncodedKey),
                b'T' => put(&mut flags.exptime, parse_i64(argument), RequestError::BadFlagArgument),
                b'N' => put(&mut flags.vivify, parse_i64(argument), RequestError::BadFlagArgument),
                b'R' => put(&mut flags.recache, parse_i64(argument), RequestError::BadFlagArgument),
                b'C' => put(&mut flags.compare, parse_u64(argument), RequestError::BadFlagArgument),
                b'E' => put(&mut flags.cas, parse_u64(argument), RequestError::BadFlagArgument),
                b'D' => put(&mut flags.delta, parse_u64(argument), RequestError::InvalidMetaDelta),
                b'J' => parse_u64(argument).map(|it| flags.initial = it).ok_or(RequestError::InvalidInitial),
                // What was wrong before stays what is told, unlike with other flags; as in memcached.
                b'F' => parse_u32(argument)
                    .map(|it| flags.client_flags = it)
                    .ok_or(error.unwrap_or(RequestError::BadFormat)),
                b'M' => match argument {
                    &[mode] => put(&mut flags.mode, Some(mode), RequestError::BadModeLength),
                    _ => Err(RequestError::BadModeLength),
                },
                _ => return Err(RequestError::UnknownFlag),
            };
            error = result.err().or(error);
        }
        match (error, verb, flags.mode) {
            (Some(error), ..) => Err(error),
            (None, MetaVerb::Set, Some(mode)) if !b"EAPRS".contains(&mode) => Err(RequestError::UnknownSetMode),
            (None, MetaVerb::Arithmetic, Some(mode)) if !b"I+D-".contains(&mode) => {
                Err(RequestError::UnknownArithmeticMode)
            }
            _ if !opaque_fits => Err(RequestError::OpaqueTooLong),
            _ => Ok(flags),
        }
    }
}

fn on(flag: &mut bool) -> Result<(), RequestError> {
    *flag = true;
    Ok(())
}

fn put<T>(place: &mut Option<T>, value: Option<T>, error: RequestError) -> Result<(), RequestError> {
    *place = value;
    if place.is_some() { Ok(()) } else { Err(error) }
}

/// Appends key and flags, the words behind a verb that lie at `start` of the input buffer, to `args`; tells whether one of
/// the flags makes a read one that writes. A key that is said to be base64 is decoded, if it can be.
///
/// # Errors
/// When there is no key, when it is too long, or when there are too many words; nothing is appended then.
pub(super) fn push_words<'a>(
    verb: MetaVerb,
    words: impl Iterator<Item = (usize, &'a [u8])>,
    start: usize,
    args: &mut ArgSpans,
) -> Result<bool, RequestError> {
    let before = args.spans.len();
    let mut words = words;
    let (key_at, key) = words.next().ok_or(RequestError::Unknown)?;
    if key.len() > KEY_MAX {
        return Err(RequestError::BadFormat);
    }
    args.spans.push(Span::bytes(start + key_at, key.len()));
    let mut writes = verb != MetaVerb::Get;
    // The length that `ms` has between key and flags counts as well.
    let words_max = WORDS_MAX - 1 - usize::from(verb == MetaVerb::Set);
    for (at, word) in words {
        if args.spans.len() - before == words_max {
            args.spans.truncate(before);
            return Err(if verb == MetaVerb::Get { RequestError::TooManyGetFlags } else { RequestError::TooManyFlags });
        }
        args.spans.push(Span::bytes(start + at, word.len()));
        match word[0] {
            b'N' | b'T' => writes = true,
            b'b' if args.spans[before].in_input().is_some() => decode_key(key, before, args),
            _ => {}
        }
    }
    Ok(writes)
}

/// Puts the key that `key` encodes in the place of argument `index`, if it encodes one.
#[cold]
fn decode_key(key: &[u8], index: usize, args: &mut ArgSpans) {
    let from = args.scratch.len();
    if base64::decode(key, &mut args.scratch) {
        args.spans[index] = Span::scratch(from, args.scratch.len() - from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(verb: MetaVerb, line: &str) -> Result<MetaFlags, RequestError> {
        let mut args = ArgSpans::new();
        let words = line.split(' ').map(|word| (word.as_ptr() as usize - line.as_ptr() as usize, word.as_bytes()));
        push_words(verb, words, 0, &mut args)?;
        MetaFlags::parse(verb, MetaWords::new(&args.spans, line.as_bytes(), &args.scratch))
    }

    #[track_caller]
    fn check(verb: MetaVerb, line: &str, expected: Result<MetaFlags, RequestError>) {
        assert_eq!(parse(verb, line), expected, "{line}");
    }

    #[test]
    fn arguments_are_numbers_in_range() {
        let none = MetaFlags::default();
        check(MetaVerb::Get, "key", Ok(none));
        check(
            MetaVerb::Get,
            "key T-1 N0 R30",
            Ok(MetaFlags { exptime: Some(-1), vivify: Some(0), recache: Some(30), ..none }),
        );
        check(
            MetaVerb::Set,
            "key F4294967295 C18446744073709551615",
            Ok(MetaFlags { client_flags: u32::MAX, compare: Some(u64::MAX), ..none }),
        );
        check(MetaVerb::Set, "key Cx F", Err(RequestError::BadFlagArgument));
        check(MetaVerb::Set, "key Fx C", Err(RequestError::BadFlagArgument));
        check(MetaVerb::Set, "key Fx", Err(RequestError::BadFormat));
        check(
            MetaVerb::Arithmetic,
            "key D2 J3 MD",
            Ok(MetaFlags { delta: Some(2), initial: 3, mode: Some(b'D'), ..none }),
        );
        for flag in ["T", "Tx", "N", "R1x", "C", "C-1", "Ex"] {
            check(MetaVerb::Set, &format!("key {flag}"), Err(RequestError::BadFlagArgument));
        }
        check(MetaVerb::Set, "key F", Err(RequestError::BadFormat));
        check(MetaVerb::Set, "key D", Err(RequestError::InvalidMetaDelta));
        check(MetaVerb::Set, "key J", Err(RequestError::InvalidInitial));
        check(MetaVerb::Set, "key M", Err(RequestError::BadModeLength));
        check(MetaVerb::Set, "key MSE", Err(RequestError::BadModeLength));
        check(MetaVerb::Set, "key MI", Err(RequestError::UnknownSetMode));
        check(MetaVerb::Arithmetic, "key ME", Err(RequestError::UnknownArithmeticMode));
        check(MetaVerb::Arithmetic, "key D", Err(RequestError::BadFlags));
    }

    #[test]
    fn a_flag_that_is_unknown_or_twice_there_ends_it() {
        check(MetaVerb::Get, "key s s Tx", Err(RequestError::DuplicateFlag));
        check(MetaVerb::Get, "key T1 T2", Err(RequestError::DuplicateFlag));
        check(MetaVerb::Get, "key Tx !", Err(RequestError::UnknownFlag));
        check(MetaVerb::Get, "key \u{80}", Err(RequestError::DuplicateFlag));
        check(MetaVerb::Delete, "key !", Err(RequestError::BadFlags));
        // Of others the last counts.
        check(MetaVerb::Set, "key Dx Tx", Err(RequestError::BadFlagArgument));
    }

    #[test]
    fn keys_opaques_and_flags_have_their_limits() {
        check(MetaVerb::Get, &"k".repeat(250), Ok(MetaFlags::default()));
        check(MetaVerb::Get, &"k".repeat(251), Err(RequestError::BadFormat));
        check(MetaVerb::Get, &format!("key O{}", "o".repeat(31)), Ok(MetaFlags::default()));
        check(MetaVerb::Delete, &format!("key O{}", "o".repeat(32)), Err(RequestError::OpaqueTooLong));
        let flags = "s v c f h l t k q u P L b O1 T1 N1 R1 C1";
        check(MetaVerb::Get, &format!("Zm9v {flags}"), Err(RequestError::TooManyGetFlags));
        check(MetaVerb::Delete, &format!("Zm9v {flags}"), Err(RequestError::TooManyFlags));
        assert!(parse(MetaVerb::Get, &format!("Zm9v {}", &flags[..flags.len() - 3])).is_ok());
    }

    #[test]
    fn keys_in_base64_are_decoded() {
        for (line, key) in [("Zm9v b", Some("foo")), ("Zm9v", None), ("Zm9 b", None), ("Zm9v s bx t", Some("foo"))] {
            let mut args = ArgSpans::new();
            let words = line.split(' ').map(|word| (word.as_ptr() as usize - line.as_ptr() as usize, word.as_bytes()));
            assert_eq!(push_words(MetaVerb::Get, words, 0, &mut args), Ok(false));
            let words = MetaWords::new(&args.spans, line.as_bytes(), &args.scratch);
            assert_eq!(words.is_key_encoded(), key.is_some(), "{line}");
            assert_eq!(words.key(), key.unwrap_or(line.split(' ').next().unwrap()).as_bytes());
            assert_eq!(MetaFlags::parse(MetaVerb::Get, words).is_ok(), line != "Zm9 b");
        }
    }
}
