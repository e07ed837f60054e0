//! Compression as Redis compresses strings: LZF (Marc Lehmann's LibLZF). Knows no string's length on the wire.
//!
//! ```text
//!   000LLLLL and L + 1 bytes                 these bytes
//!   LLLooooo oooooooo                        L + 2 bytes from o + 1 bytes before, L from 1 to 6
//!   111ooooo LLLLLLLL oooooooo               L + 9 bytes from o + 1 bytes before
//! ```

/// The most bytes that one byte of input stands for.
const GAIN_MAX: usize = 132;
/// The most bytes that one literal run has.
const LITERAL_MAX: usize = 32;
/// Bytes of the shortest and the longest repetition.
const MATCH_MIN: usize = 3;
const MATCH_MAX: usize = 264;
/// How far back a repetition reaches at most, in bytes.
const REACH: usize = 8192;
/// Bits of the table's index for the longest inputs, and for the shortest.
const TABLE_BITS_MAX: u32 = 14;
const TABLE_BITS_MIN: u32 = 5;

/// The `len` bytes that `input` decompresses to, if it does to exactly so many.
pub fn lzf_decompress(input: &[u8], len: usize) -> Option<Vec<u8>> {
    // A length is not believed before the bytes are there.
    if len > input.len().checked_mul(GAIN_MAX)? {
        return None;
    }
    let mut out = Vec::with_capacity(len);
    let mut left = input;
    while let Some((&control, rest)) = left.split_first() {
        left = rest;
        if control < LITERAL_MAX as u8 {
            let (literal, rest) = left.split_at_checked(usize::from(control) + 1)?;
            left = rest;
            if out.len() + literal.len() > len {
                return None;
            }
            out.extend_from_slice(literal);
        } else {
            let mut count = usize::from(control >> 5);
            if count == 7 {
                let (&more, rest) = left.split_first()?;
                count += usize::from(more);
                left = rest;
            }
            let (&low, rest) = left.split_first()?;
            left = rest;
            let back = (usize::from(control & 0x1F) << 8 | usize::from(low)) + 1;
            let from = out.len().checked_sub(back)?;
            let count = count + 2;
            if out.len() + count > len {
                return None;
            }
            if back >= count {
                out.extend_from_within(from..from + count);
            } else {
                // What is copied overlaps what it is copied to.
                for at in from..from + count {
                    out.push(out[at]);
                }
            }
        }
    }
    (out.len() == len).then_some(out)
}

/// The compressed form of `input`, if it has at most `len_max` bytes.
pub fn lzf_compress(input: &[u8], len_max: usize) -> Option<Vec<u8>> {
    // Where three bytes were seen last, plus one; 0: nowhere.
    let bits = (usize::BITS - input.len().leading_zeros()).clamp(TABLE_BITS_MIN, TABLE_BITS_MAX);
    let mut seen = vec![0u32; 1 << bits];
    u32::try_from(input.len()).ok()?;
    let mut out = Vec::new();
    let mut literals_from = 0;
    let mut at = 0;
    while let Some(three) = input.get(at..at + MATCH_MIN) {
        let place = slot(three, bits);
        let before = std::mem::replace(&mut seen[place], at as u32 + 1) as usize;
        let is_match = before > 0 && at + 1 - before <= REACH && &input[before - 1..][..MATCH_MIN] == three;
        if !is_match {
            at += 1;
            continue;
        }
        let from = before - 1;
        let most = MATCH_MAX.min(input.len() - at);
        let len = (MATCH_MIN..most).find(|&len| input[from + len] != input[at + len]).unwrap_or(most);
        put_literals(&mut out, &input[literals_from..at]);
        put_match(&mut out, at - from - 1, len);
        if out.len() > len_max {
            return None;
        }
        // The ends of what was repeated are found again; its middle less often pays.
        for again in [at + 1, at + len - 2, at + len - 1] {
            if let Some(three) = input.get(again..again + MATCH_MIN) {
                seen[slot(three, bits)] = again as u32 + 1;
            }
        }
        at += len;
        literals_from = at;
    }
    put_literals(&mut out, &input[literals_from..]);
    (out.len() <= len_max).then_some(out)
}

/// Where three bytes are noted: Fibonacci hashing.
fn slot(three: &[u8], bits: u32) -> usize {
    let word = u32::from_le_bytes([three[0], three[1], three[2], 0]);
    (word.wrapping_mul(0x9E37_79B1) >> (u32::BITS - bits)) as usize
}

fn put_literals(out: &mut Vec<u8>, literals: &[u8]) {
    for run in literals.chunks(LITERAL_MAX) {
        out.push(run.len() as u8 - 1);
        out.extend_from_slice(run);
    }
}

fn put_match(out: &mut Vec<u8>, offset: usize, len: usize) {
    let (high, low) = ((offset >> 8) as u8, offset as u8);
    match len - 2 {
        count @ ..7 => out.extend_from_slice(&[(count as u8) << 5 | high, low]),
        count => out.extend_from_slice(&[7 << 5 | high, (count - 7) as u8, low]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn literals_and_repetitions() {
        assert_eq!(lzf_decompress(b"\x02abc", 3).unwrap(), b"abc");
        assert_eq!(lzf_decompress(b"\x00a\xE0\x05\x00", 15).unwrap(), b"a".repeat(15));
        assert_eq!(lzf_decompress(b"\x02abc", 4), None);
        assert_eq!(lzf_decompress(b"\x02abc", 2), None);
        assert_eq!(lzf_decompress(b"\x02ab", 3), None);
        assert_eq!(lzf_decompress(b"\x00a\x20\x05", 5), None);
        assert_eq!(lzf_decompress(b"\x00a\xE0\x05\x00", 14), None);
        assert_eq!(lzf_decompress(b"\x00a", usize::MAX), None);
    }

    #[test]
    fn what_repeats_becomes_short() {
        let zeros = vec![0; 100_000];
        assert!(lzf_compress(&zeros, zeros.len()).unwrap().len() < 100_000 / 80);
        let far: Vec<u8> = (0..40_000u32).map(|at| ((at % 8_192).wrapping_mul(2_654_435_769) >> 13) as u8).collect();
        assert!(lzf_compress(&far, far.len()).unwrap().len() < 12_000);
        assert_eq!(lzf_compress(b"abcdefghijklmnopqrstuvwxyz", 25), None);
        assert_eq!(lzf_compress(b"", 0), Some(Vec::new()));
    }

    proptest! {
        #[test]
        fn comes_back(input in prop_oneof![
            proptest::collection::vec(0..3u8, 0..3_000),
            proptest::collection::vec(any::<u8>(), 0..200),
            proptest::collection::vec(prop_oneof![Just(b"abcabd".to_vec()), Just(vec![7; 300]), Just(b"x".to_vec())], 0..80)
                .prop_map(|parts| parts.concat()),
        ]) {
            let compressed = lzf_compress(&input, usize::MAX).unwrap();
            prop_assert_eq!(lzf_decompress(&compressed, input.len()), Some(input.clone()));
            prop_assert_eq!(lzf_compress(&input, compressed.len()), Some(compressed.clone()));
            if let Some(less) = compressed.len().checked_sub(1) {
                prop_assert_eq!(lzf_compress(&input, less), None);
            }
        }

        #[test]
        fn garbage_ends(input in proptest::collection::vec(any::<u8>(), 0..200), len in 0..30_000usize) {
            if let Some(out) = lzf_decompress(&input, len) {
                prop_assert_eq!(out.len(), len);
            }
        }
    }
}
