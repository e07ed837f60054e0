//! Sets of integers as Redis writes them, read without believing anything in them.
//!
//! ```text
//! +-------+-------+---------+-----
//! | width | count | integer | ...     all little endian; a width of 2, 4 or 8 bytes; in ascending order
//! | 4 B   | 4 B   |         |
//! +-------+-------+---------+-----
//! ```

use super::DecodeError;
use tenon_store::types::set::IntSetRef;

/// The least width that Redis has, in bytes.
const WIDTH_MIN: usize = 2;

/// A set of integers, as Redis has it.
pub(super) fn written(ints: IntSetRef<'_>) -> Vec<u8> {
    let width = ints.width().max(WIDTH_MIN);
    let mut bytes = Vec::with_capacity(8 + width * ints.len());
    bytes.extend_from_slice(&(width as u32).to_le_bytes());
    bytes.extend_from_slice(&(ints.len() as u32).to_le_bytes());
    ints.iter().for_each(|int| bytes.extend_from_slice(&int.to_le_bytes()[..width]));
    bytes
}

/// The integers of a set in these bytes, in ascending order.
pub(super) fn read(
    bytes: &[u8],
) -> Result<impl ExactSizeIterator<Item = i64> + DoubleEndedIterator + Clone + use<'_>, DecodeError> {
    let wrong = DecodeError::malformed("a set of integers has a wrong header");
    let (width, rest) = bytes.split_first_chunk().ok_or(wrong)?;
    let (count, rest) = rest.split_first_chunk().ok_or(wrong)?;
    let width @ (2 | 4 | 8) = u32::from_le_bytes(*width) as usize else { return Err(wrong) };
    if (u32::from_le_bytes(*count) as usize).checked_mul(width) != Some(rest.len()) {
        return Err(wrong);
    }
    let ints = rest.chunks_exact(width).map(|bytes| match *bytes {
        [a, b] => i16::from_le_bytes([a, b]).into(),
        [a, b, c, d] => i32::from_le_bytes([a, b, c, d]).into(),
        _ => i64::from_le_bytes(bytes.try_into().expect("the widest integers have eight bytes")),
    });
    if !ints.clone().is_sorted_by(|one: &i64, next| one < next) {
        return Err(DecodeError::malformed("a set of integers is not in order"));
    }
    Ok(ints)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_store::types::set::IntSet;

    #[test]
    fn what_is_written_is_read() {
        for ints in [&[1][..], &[-128, 127], &[-1, 300, 40_000], &[i64::MIN, 0, i64::MAX]] {
            let mut set = IntSet::default();
            ints.iter().for_each(|int| assert!(set.add(*int)));
            let bytes = written(set.view());
            assert_eq!(read(&bytes).unwrap().collect::<Vec<_>>(), ints);
            for at in 0..bytes.len() {
                assert!(read(&bytes[..at]).is_err());
            }
        }
    }

    #[test]
    fn order_and_width_are_looked_at() {
        assert!(read(b"\x02\0\0\0\x02\0\0\0\x02\0\x01\0").is_err());
        assert!(read(b"\x02\0\0\0\x02\0\0\0\x01\0\x01\0").is_err());
        assert!(read(b"\x01\0\0\0\x02\0\0\0\x01\x02").is_err());
        assert!(read(b"\x08\0\0\0\xff\xff\xff\xff").is_err());
    }
}
