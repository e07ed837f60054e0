//! Numbers in as few bytes as they need (LEB128): seven bits a byte, the lowest first, the high bit set in all but the
//! last. Knows nothing of what they mean.

/// How many bytes a number takes.
#[inline]
pub(super) fn len(number: u64) -> usize {
    // The bits are counted as if 0 had one.
    (70 - (number | 1).leading_zeros() as usize) / 7
}

/// Writes a number behind the bytes.
#[inline]
pub(super) fn append(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The number at byte `at`, and where it ends.
///
/// # Panics
/// When no number of 64 bits stands there.
#[inline]
pub(super) fn read(bytes: &[u8], mut at: usize) -> (u64, usize) {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = bytes[at];
        at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return (number, at);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_take_as_many_bytes_as_they_need() {
        let mut bytes = Vec::new();
        let cases = [(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), (1 << 56, 9), (u64::MAX, 10)];
        for (number, len) in cases {
            let at = bytes.len();
            super::append(&mut bytes, number);
            assert_eq!((super::len(number), super::read(&bytes, at)), (len, (number, at + len)));
        }
    }
}
