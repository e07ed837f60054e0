//! What SCAN and its kin for collections share: the cursor, the options MATCH and COUNT, and the form of a page.

use tenon_engine::args::Args;
use tenon_engine::ds::glob::{Case, glob};
use tenon_engine::ds::packed::{IntText, Item};
use tenon_engine::errors::CmdError;
use tenon_engine::wire::OutBuf;
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

/// Elements that a page visits when the client does not say.
const COUNT_DEFAULT: usize = 10;

/// Which elements a page gives, of those that it visits.
pub(super) struct PageOptions<'a> {
    pattern: Option<&'a [u8]>,
    /// About how many elements are visited.
    pub(super) count: usize,
}

impl<'a> PageOptions<'a> {
    /// Reads the options from argument `first` on. `other` is asked about an argument that is neither MATCH nor COUNT: it
    /// says how many arguments the option takes together with its name, 0 when there is no such option.
    pub(super) fn parse(
        args: &Args<'a>,
        first: usize,
        mut other: impl FnMut(usize) -> usize,
    ) -> Result<PageOptions<'a>, CmdError> {
        let mut options = PageOptions { pattern: None, count: COUNT_DEFAULT };
        let mut at = first;
        while at < args.len() {
            let value = args.try_get(at + 1);
            at += match value {
                Some(value) if args.is(at, "COUNT") => {
                    let count = parse_i64(value).ok_or(CmdError::NotInteger)?;
                    options.count = usize::try_from(count).ok().filter(|&count| count > 0).ok_or(CmdError::Syntax)?;
                    2
                }
                Some(value) if args.is(at, "MATCH") => {
                    options.pattern = (value != b"*").then_some(value);
                    2
                }
                _ => match other(at) {
                    0 => return Err(CmdError::Syntax),
                    taken => taken,
                },
            };
        }
        Ok(options)
    }

    /// Whether the pattern fits.
    pub(super) fn accept(&self, element: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| glob(pattern, element, Case::Sensitive))
    }

    /// Whether the pattern fits an element of a collection.
    pub(super) fn accept_item(&self, item: Item<'_>) -> bool {
        self.pattern.is_none() || self.accept(item.as_bytes(&mut IntText::new()))
    }
}

/// The cursor, as C's `strtoul` reads it, which is what Redis 7 does: signs are taken, a negative number counts from
/// 2^64 down, an empty text is 0.
pub(super) fn parse_cursor(text: &[u8]) -> Result<u64, CmdError> {
    cursor_of(text).ok_or(CmdError::text("ERR invalid cursor"))
}

fn cursor_of(text: &[u8]) -> Option<u64> {
    let (negative, digits) = match text {
        [] => return Some(0),
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let number = digits.iter().try_fold(0u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })?;
    Some(if negative { number.wrapping_neg() } else { number })
}

/// Writes a page: `fill` writes the elements and tells the next cursor and how many there are.
pub(super) fn reply_page(reply: &mut Reply<'_>, fill: impl FnOnce(&mut Reply<'_>) -> (u64, usize)) {
    let mut elements = OutBuf::new();
    let (cursor, given) = fill(&mut Reply::new(&mut elements, reply.proto()));
    reply.array(2);
    reply.bulk(cursor.to_string().as_bytes());
    reply.array(given);
    reply.out().join(&mut elements);
}

/// Writes the page of a collection that is not there.
pub(super) fn reply_no_page(reply: &mut Reply<'_>) {
    reply_page(reply, |_| (0, 0));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_like_c() {
        for (text, cursor) in [
            ("", Some(0)),
            ("0", Some(0)),
            ("+007", Some(7)),
            ("-1", Some(u64::MAX)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("-", None),
            (" 1", None),
            ("1 ", None),
            ("0x1", None),
            ("x", None),
        ] {
            assert_eq!(cursor_of(text.as_bytes()), cursor, "{text:?}");
        }
    }
}
