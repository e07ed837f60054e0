//! Going through long rows of bytes with wider instructions than all machines have. Knows not what a row is.
//!
//! What is compiled for some machines is the same code as for all; the compiler makes more of it.

/// Below this it is not worth asking what the machine has, in bytes.
#[cfg(target_arch = "x86_64")]
const LONG: usize = 256;

/// How many bits are set.
pub fn count_ones(bytes: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() >= LONG && has_avx2() {
        // SAFETY: the machine has what the function is compiled for.
        return unsafe { count_ones_avx2(bytes) };
    }
    count_ones_plain(bytes)
}

/// Where the first byte is that is another than `byte`.
pub fn first_unlike(bytes: &[u8], byte: u8) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() >= LONG && has_avx2() {
        // SAFETY: the machine has what the function is compiled for.
        return unsafe { first_unlike_avx2(bytes, byte) };
    }
    first_unlike_plain(bytes, byte)
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
fn count_ones_avx2(bytes: &[u8]) -> u64 {
    count_ones_plain(bytes)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn first_unlike_avx2(bytes: &[u8], byte: u8) -> Option<usize> {
    first_unlike_plain(bytes, byte)
}

#[inline(always)]
fn count_ones_plain(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let in_words: u64 = words.iter().map(|word| u64::from(u64::from_ne_bytes(*word).count_ones())).sum();
    in_words + rest.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>()
}

#[inline(always)]
fn first_unlike_plain(bytes: &[u8], byte: u8) -> Option<usize> {
    const PIECE: usize = 128;
    // A piece is looked at whole, which needs no branch within.
    let is_unlike = |piece: &[u8; PIECE]| piece.iter().fold(0, |unlike, other| unlike | (other ^ byte)) != 0;
    let (pieces, _) = bytes.as_chunks::<PIECE>();
    let from = pieces.iter().position(is_unlike).unwrap_or(pieces.len()) * PIECE;
    bytes[from..].iter().position(|other| *other != byte).map(|at| from + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_rows_and_long_ones_are_gone_through_to_their_end() {
        for len in (0..300).step_by(if cfg!(miri) { 37 } else { 1 }).chain([
            511,
            512,
            513,
            if cfg!(miri) { 700 } else { 4_000 },
        ]) {
            for byte in [0, 0xff, 0x55] {
                let mut row = vec![byte; len];
                assert_eq!(first_unlike(&row, byte), None);
                assert_eq!(count_ones(&row), len as u64 * u64::from(byte.count_ones()));
                for at in [0, len / 3, len / 2, len.saturating_sub(1)] {
                    let Some(place) = row.get_mut(at) else { continue };
                    *place = byte ^ 0x10;
                    assert_eq!(first_unlike(&row, byte), Some(at));
                    let others = (len - 1) as u64 * u64::from(byte.count_ones());
                    assert_eq!(count_ones(&row), others + u64::from((byte ^ 0x10).count_ones()));
                    row[at] = byte;
                }
            }
        }
    }

    #[test]
    fn all_machines_count_alike() {
        let row: Vec<u8> = (0..1_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for from in (0..40).step_by(if cfg!(miri) { 7 } else { 1 }) {
            assert_eq!(count_ones(&row[from..]), count_ones_plain(&row[from..]));
            assert_eq!(first_unlike(&row[from..], row[from]), first_unlike_plain(&row[from..], row[from]));
        }
    }
}
