//! Lines and numbers as text protocols have them. Knows no protocol.

use super::Read;
use anyhow::{Error, anyhow};

/// What a server answered instead of what it was to answer.
#[cold]
pub fn refused(input: &[u8]) -> Error {
    let line = input.split(|byte| *byte == b'\r').next().unwrap_or_default();
    anyhow!("the server answered '{}'", line[..line.len().min(80)].escape_ascii())
}

/// The line at the front without its end, and where the next begins.
#[inline]
pub fn line(input: &[u8]) -> Read<&[u8]> {
    // Lines of replies are short: a plain loop beats the start-up of a vectorised search.
    match input.iter().position(|byte| *byte == b'\n') {
        None if input.len() > 8_192 => Err(refused(input)),
        None => Ok(None),
        Some(end) if end > 0 && input[end - 1] == b'\r' => Ok(Some((&input[..end - 1], end + 1))),
        Some(_) => Err(refused(input)),
    }
}

/// The one text that the reply must be.
#[inline]
pub fn exactly(input: &[u8], expected: &[u8]) -> Read<()> {
    if input.starts_with(expected) {
        Ok(Some(((), expected.len())))
    } else if expected.starts_with(input) {
        Ok(None)
    } else {
        // An error is shown whole.
        match line(input)? {
            Some(_) => Err(refused(input)),
            None => Ok(None),
        }
    }
}

/// How many bytes the line at the front has, if all of it has come and it begins so.
#[inline]
pub fn line_that_begins(input: &[u8], beginning: &[u8]) -> Option<usize> {
    if !input.starts_with(beginning) {
        return None;
    }
    line(input).ok()?.map(|(_, len)| len)
}

/// One of two texts: whether it is the first.
#[inline]
pub fn either(input: &[u8], yes: &[u8], no: &[u8]) -> Read<bool> {
    if input.starts_with(yes) {
        return Ok(Some((true, yes.len())));
    }
    if yes.starts_with(input) {
        return Ok(None);
    }
    Ok(exactly(input, no)?.map(|((), len)| (false, len)))
}

/// Decimal digits and nothing else.
#[inline]
pub fn digits(text: &[u8]) -> Option<usize> {
    if text.is_empty() || text.len() > 10 {
        return None;
    }
    text.iter().try_fold(0, |number, byte| byte.is_ascii_digit().then(|| number * 10 + usize::from(byte - b'0')))
}

/// Appends a number's decimal digits.
#[inline]
pub fn push_number(number: usize, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let (mut at, mut rest) = (digits.len(), number);
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::dialects::Dialect;
    use crate::key::Key;

    #[test]
    fn numbers_are_written_and_read() {
        for number in [0, 9, 10, 4_294_967_295] {
            let mut out = Vec::new();
            push_number(number, &mut out);
            assert_eq!(out, number.to_string().as_bytes());
            assert_eq!(digits(&out), Some(number));
        }
        assert!(digits(b"").is_none() && digits(b"-1").is_none() && digits(b"99999999999").is_none());
    }

    /// What a dialect's replies look like.
    pub struct Replies {
        pub hit: &'static [u8],
        pub miss: &'static [u8],
        pub many: &'static [u8],
        pub stored: &'static [u8],
        pub deleted: &'static [u8],
        pub absent: &'static [u8],
        /// What refuses a set for want of memory; empty where nothing does.
        pub out_of_memory: &'static [u8],
        pub errors: &'static [&'static [u8]],
    }

    fn assert_read<T: PartialEq + std::fmt::Debug>(reply: &[u8], expected: T, read: impl Fn(&[u8]) -> Read<T>) {
        for cut in 0..reply.len() {
            assert_eq!(read(&reply[..cut]).unwrap(), None, "{} cut at {cut}", reply.escape_ascii());
        }
        // With the next reply behind it, it is still one.
        assert_eq!(read(&[reply, reply].concat()).unwrap(), Some((expected, reply.len())), "{}", reply.escape_ascii());
    }

    /// Every reply is read whole, is incomplete in every part, and errors are errors. The value of `k1` is `value`, and of
    /// the keys `k1`, `k2`, `k3` the second is a miss.
    pub fn check(dialect: impl Dialect, replies: &Replies) {
        let get =
            |input: &[u8]| dialect.read_get(input, b"k1").map(|read| read.map(|(v, len)| (v.map(<[u8]>::to_vec), len)));
        assert_read(replies.hit, Some(b"value".to_vec()), get);
        assert_read(replies.miss, None, get);
        assert_read(replies.stored, (), |input| dialect.read_set(input));
        assert_read(replies.stored, true, |input| dialect.read_fill(input));
        if !replies.out_of_memory.is_empty() {
            assert_read(replies.out_of_memory, false, |input| dialect.read_fill(input));
            assert!(dialect.read_set(replies.out_of_memory).is_err());
        }
        assert_read(replies.deleted, true, |input| dialect.read_delete(input));
        assert_read(replies.absent, false, |input| dialect.read_delete(input));
        let keys = [Key::of(b"k1"), Key::of(b"k2"), Key::of(b"k3")];
        let many = |input: &[u8]| {
            let mut seen = Vec::new();
            let read = dialect.read_get_many(input, &keys, &mut |index, value| {
                seen.push((index, value.map(<[u8]>::to_vec)));
                Ok(())
            })?;
            Ok(read.map(|((), len)| (seen, len)))
        };
        let value = Some(b"value".to_vec());
        assert_read(replies.many, vec![(0, value.clone()), (1, None), (2, value)], many);
        for error in replies.errors {
            assert!(get(error).is_err() && many(error).is_err(), "{}", error.escape_ascii());
            assert!(
                dialect.read_set(error).is_err() && dialect.read_delete(error).is_err(),
                "{}",
                error.escape_ascii()
            );
        }
    }
}
