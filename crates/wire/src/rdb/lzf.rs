//! Decompressing LZF (Marc Lehmann's LibLZF), as Redis compresses strings.

/// The `len` bytes that `input` decompresses to, if it does to exactly so many.
pub fn lzf_decompress(input: &[u8], len: usize) -> Option<Vec<u8>> {
    // A length is not believed before the bytes are there: each byte of input gives 132 at most.
    if len > input.len().checked_mul(132)? {
        return None;
    }
    let mut out = Vec::with_capacity(len);
    let mut left = input;
    while let Some((&control, rest)) = left.split_first() {
        left = rest;
        if control < 32 {
            let (literal, rest) = left.split_at_checked(usize::from(control) + 1)?;
            out.extend_from_slice(literal);
            left = rest;
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
            // What is copied may overlap what it is copied to.
            for at in from..from + count + 2 {
                out.push(out[at]);
            }
        }
        if out.len() > len {
            return None;
        }
    }
    (out.len() == len).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_repetitions() {
        assert_eq!(lzf_decompress(b"\x02abc", 3).unwrap(), b"abc");
        assert_eq!(lzf_decompress(b"\x00a\xE0\x05\x00", 15).unwrap(), b"a".repeat(15));
        assert_eq!(lzf_decompress(b"\x02abc", 4), None);
        assert_eq!(lzf_decompress(b"\x02ab", 3), None);
        assert_eq!(lzf_decompress(b"\x00a\x20\x05", 5), None);
        assert_eq!(lzf_decompress(b"\x00a", usize::MAX), None);
    }
}
