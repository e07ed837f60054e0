//! Glob matching with the rules of Redis's `stringmatchlen`, in bounded time; it knows nothing of keys, channels or
//! settings.
//!
//! Every element of a pattern other than `*` consumes exactly one byte. So after a mismatch only the latest `*` need
//! be tried on a longer run, never an earlier one: one backtrack point, and at most `pattern × text` steps where the
//! recursive matcher can need exponentially many (CVE-2022-36021). For the same reason what stands behind the last `*` can only
//! match the text's end, which is compared once. Long matches count as [`progress`].

use crate::progress;

/// Whether ASCII letters of either case are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// `a` matches `a` alone.
    Sensitive,
    /// `a` matches `a` and `A`. As in Redis, a letter escaped inside brackets stays sensitive.
    Insensitive,
}

/// Whether all of `text` matches `pattern`: `*` any run of bytes, `?` one byte, `[a-z]` and `[^a-z]` one byte in or
/// not in a set, `\x` the byte x itself.
///
/// The corners are Redis's: a set that is never closed ends with the pattern, `[a-]` is a range up to `]`, a range
/// may be given backwards, bytes from 0x80 count as negative in ranges, and an empty text matches the empty pattern
/// alone (not `*`).
pub fn glob(pattern: &[u8], text: &[u8], case: Case) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    let (mut p, mut t) = (0, 0);
    // Where to resume after a mismatch: behind the latest `*`, and the byte of the text its next try starts at.
    let mut resume: Option<(usize, usize)> = None;
    let mut steps = 0;
    loop {
        steps += 1;
        if steps == STEPS_AT_ONCE {
            progress::count(std::mem::take(&mut steps));
        }
        if pattern.get(p) == Some(&b'*') {
            p += 1;
            if p == pattern.len() {
                return true;
            }
            match bytes_to_end(&pattern[p..]) {
                Some(needed) if needed > text.len() - t => return false,
                Some(needed) => (t, resume) = (text.len() - needed, None),
                None => {
                    let Some(start) = next_start(&pattern[p..], text, t, case) else { return false };
                    (t, resume) = (start, Some((p, start)));
                }
            }
            continue;
        }
        if t == text.len() && p == pattern.len() {
            return true;
        }
        if t < text.len() && p < pattern.len() {
            let (matched, len) = match_one(&pattern[p..], text[t], case);
            if matched {
                p += len;
                t += 1;
                continue;
            }
        }
        // Nothing is gained by a longer run once the text is used up: what is left of the pattern needs bytes.
        let Some((after_star, start)) = resume else { return false };
        if t == text.len() {
            return false;
        }
        let Some(start) = next_start(&pattern[after_star..], text, start + 1, case) else { return false };
        resume = Some((after_star, start));
        (p, t) = (after_star, start);
    }
}

/// Steps that are counted at a time: most matches are done by then.
const STEPS_AT_ONCE: usize = 1_024;

/// The first byte of the text from `from` on at which what stands behind a `*` may match: where it begins with a plain byte,
/// that is where the text has it, if it has. Most bytes of most texts are passed over so.
#[inline(never)]
fn next_start(pattern: &[u8], text: &[u8], from: usize, case: Case) -> Option<usize> {
    match pattern[0] {
        b'?' | b'[' | b'\\' | b'*' => Some(from),
        _ if case == Case::Insensitive => Some(from),
        plain => {
            let found = memchr::memchr(plain, &text[from..]);
            let passed = found.unwrap_or(text.len() - from);
            if passed >= STEPS_AT_ONCE {
                progress::count_bytes(passed);
            }
            found.map(|passed| from + passed)
        }
    }
}

/// How many bytes a pattern matches that has no `*`; `None` if it has one.
fn bytes_to_end(mut pattern: &[u8]) -> Option<usize> {
    let mut bytes = 0;
    while let Some(first) = pattern.first() {
        if *first == b'*' {
            return None;
        }
        let (_, len) = match_one(pattern, 0, Case::Sensitive);
        pattern = &pattern[len..];
        bytes += 1;
    }
    Some(bytes)
}

/// Matches the first element of a non-empty `pattern`, which is not `*`, against one byte. Returns whether it matched
/// and how long the element is.
#[inline(always)]
fn match_one(pattern: &[u8], byte: u8, case: Case) -> (bool, usize) {
    match pattern[0] {
        b'?' => (true, 1),
        b'[' => match_set(pattern, byte, case),
        b'\\' if pattern.len() >= 2 => (fold(pattern[1], case) == fold(byte, case), 2),
        literal => (fold(literal, case) == fold(byte, case), 1),
    }
}

/// `match_one` for `[...]`.
#[inline(never)]
fn match_set(pattern: &[u8], byte: u8, case: Case) -> (bool, usize) {
    let negated = pattern.get(1) == Some(&b'^');
    let mut at = if negated { 2 } else { 1 };
    let mut matched = false;
    loop {
        match pattern[at..] {
            [] => break,
            [b'\\', escaped, ..] => {
                matched |= escaped == byte;
                at += 2;
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            [first, b'-', last, ..] => {
                matched |= in_range(first, last, byte, case);
                at += 3;
            }
            [literal, ..] => {
                matched |= fold(literal, case) == fold(byte, case);
                at += 1;
            }
        }
    }
    (matched != negated, at)
}

/// Whether `byte` lies between two bounds given in either order. Redis compares `char`s, which are signed on the
/// platforms it is built for, and swaps the bounds before it folds their case.
fn in_range(first: u8, last: u8, byte: u8, case: Case) -> bool {
    let (low, high) = if first as i8 > last as i8 { (last, first) } else { (first, last) };
    let (low, high, byte) = (fold(low, case) as i8, fold(high, case) as i8, fold(byte, case) as i8);
    low <= byte && byte <= high
}

fn fold(byte: u8, case: Case) -> u8 {
    match case {
        Case::Sensitive => byte,
        Case::Insensitive => byte.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The obvious matcher: tries every run for every `*`.
    fn naive(pattern: &[u8], text: &[u8], case: Case) -> bool {
        match pattern.first() {
            None => text.is_empty(),
            Some(b'*') => (0..=text.len()).any(|skipped| naive(&pattern[1..], &text[skipped..], case)),
            Some(_) => text.first().is_some_and(|&byte| {
                let (matched, len) = match_one(pattern, byte, case);
                matched && naive(&pattern[len..], &text[1..], case)
            }),
        }
    }

    /// xorshift64: repeatable, and enough to spread small test inputs.
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % limit as u64) as usize
        }

        fn bytes(&mut self, alphabet: &[u8], len_max: usize) -> Vec<u8> {
            (0..self.below(len_max + 1)).map(|_| alphabet[self.below(alphabet.len())]).collect()
        }
    }

    #[test]
    fn agrees_with_the_naive_matcher() {
        let mut random = Random(0x7e40_1e5d);
        let mut matches = 0;
        // Under Miri a few rounds: there is no unsafe code here.
        for round in 0..if cfg!(miri) { 200 } else { 200_000 } {
            let pattern = random.bytes(b"aabB**??[]^-\\\xff", 9);
            let text = random.bytes(b"aaabbAB-]^\\\xff", 9);
            let case = if round % 2 == 0 { Case::Sensitive } else { Case::Insensitive };
            // Redis's corner: an empty text matches no pattern made of stars.
            let expected = if text.is_empty() { pattern.is_empty() } else { naive(&pattern, &text, case) };
            assert_eq!(glob(&pattern, &text, case), expected, "{pattern:x?} {text:x?} {case:?}");
            matches += usize::from(expected);
        }
        assert!(cfg!(miri) || matches > 5_000, "the inputs must exercise matches too, got {matches}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "a long table of safe code")]
    fn agrees_with_redis() {
        let bytes = |hex: &str| -> Vec<u8> {
            let digits = hex.trim_start_matches('-').as_bytes();
            digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
        };
        let mut lines = include_str!("../tests/glob_oracle.txt").lines().filter(|line| !line.starts_with('#'));
        let keys: Vec<_> = lines.next().unwrap().split(' ').skip(1).map(bytes).collect();
        for line in lines {
            let (pattern, expected) = line.split_once(' ').unwrap();
            let pattern = bytes(pattern);
            for (key, expected) in keys.iter().zip(expected.bytes()) {
                assert_eq!(glob(&pattern, key, Case::Sensitive), expected == b'1', "{pattern:x?} {key:x?}");
            }
        }
    }

    #[test]
    fn case() {
        assert!(glob(b"Max*[A-C]", b"mAXMEMb", Case::Insensitive));
        assert!(!glob(b"Max*", b"max", Case::Sensitive));
        assert!(!glob(b"[\\A]", b"a", Case::Insensitive), "escaped in brackets: sensitive, as in Redis");
    }

    /// Nor with one that tries each place for what can only match at the end.
    #[test]
    #[cfg_attr(miri, ignore = "hundreds of thousands of steps of safe code")]
    fn what_is_behind_the_last_star_is_compared_once() {
        let long = b"a".repeat(2_000_000);
        let (half, rest) = long.split_at(1_000_000);
        assert!(!glob(&[b"*", half, b"b"].concat(), &long, Case::Sensitive));
        assert!(glob(&[b"*", half, b"b"].concat(), &[rest, half, b"b"].concat(), Case::Sensitive));
        assert!(!glob(b"*[a-c]?\\*b", b"xb", Case::Sensitive), "there is less text than that needs");
    }

    /// With exponential matching this test would not end.
    #[test]
    #[cfg_attr(miri, ignore = "tens of millions of steps of safe code")]
    fn many_stars_stay_quick() {
        let pattern = [b"a*".repeat(1_000), b"b".to_vec()].concat();
        let text = b"a".repeat(20_000);
        assert!(!glob(&pattern, &text, Case::Sensitive));
        assert!(glob(&pattern, &[text, b"b".to_vec()].concat(), Case::Sensitive));
    }
}
