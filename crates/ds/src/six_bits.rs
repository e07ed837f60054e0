//! Rows of numbers of six bits, four in three bytes, the least significant bits of a byte first. Knows not what is counted.

/// Eight numbers, one a byte, that the six lowest bytes of a word are.
fn unpacked(packed: u64) -> u64 {
    // Halves of four numbers to halves of the word, those to quarters, and those to bytes.
    let fours = packed & 0x00ff_ffff | (packed & 0xffff_ff00_0000) << 8;
    let twos = fours & 0x0000_0fff_0000_0fff | (fours & 0x00ff_f000_00ff_f000) << 4;
    twos & 0x003f_003f_003f_003f | (twos & 0x0fc0_0fc0_0fc0_0fc0) << 2
}

/// The numbers in order, one a byte, eight in a word: the first is its lowest byte. What is left behind the last eight is
/// left out.
pub fn words(packed: &[u8]) -> impl Iterator<Item = u64> {
    let eights = packed.as_chunks::<6>().0.iter();
    eights.map(|&[a, b, c, d, e, f]| unpacked(u64::from_le_bytes([a, b, c, d, e, f, 0, 0])))
}

/// Six bytes that are these eight numbers, one a byte: what `unpacked` undoes.
fn packed(numbers: u64) -> u64 {
    let twos = numbers & 0x003f_003f_003f_003f | (numbers & 0x3f00_3f00_3f00_3f00) >> 2;
    let fours = twos & 0x0000_0fff_0000_0fff | (twos & 0x0fff_0000_0fff_0000) >> 4;
    fours & 0x00ff_ffff | (fours & 0x00ff_ffff_0000_0000) >> 8
}

/// Makes numbers, one a byte, at least those of a packed row.
///
/// # Panics
/// When they are not as many, or their number is not a multiple of 32.
pub fn raise(packed: &[u8], numbers: &mut [u8]) {
    check(packed, numbers);
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the machine has what the function is compiled for.
        return unsafe { avx2::raise(packed, numbers) };
    }
    raise_plain(packed, numbers);
}

/// Makes a packed row these numbers, which are one a byte and below 64.
///
/// # Panics
/// When the row is not of as many, or their number is not a multiple of 32.
pub fn pack(numbers: &[u8], packed: &mut [u8]) {
    check(packed, numbers);
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the machine has what the function is compiled for.
        return unsafe { avx2::pack(numbers, packed) };
    }
    pack_plain(numbers, packed);
}

fn check(packed: &[u8], numbers: &[u8]) {
    assert!(numbers.len().is_multiple_of(32) && packed.len() == numbers.len() / 4 * 3, "a row of as many numbers");
}

fn raise_plain(packed: &[u8], numbers: &mut [u8]) {
    for (eight, word) in numbers.as_chunks_mut::<8>().0.iter_mut().zip(words(packed)) {
        for (number, other) in eight.iter_mut().zip(word.to_le_bytes()) {
            *number = other.max(*number);
        }
    }
}

fn pack_plain(numbers: &[u8], bytes: &mut [u8]) {
    for (six, eight) in bytes.as_chunks_mut::<6>().0.iter_mut().zip(numbers.as_chunks::<8>().0) {
        six.copy_from_slice(&packed(u64::from_le_bytes(*eight)).to_le_bytes()[..6]);
    }
}

/// The same with instructions that not all machines have: 32 numbers, which are 24 bytes, at a time.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::*;
    use std::arch::x86_64::*;

    /// Bytes of 32 numbers.
    const PART: usize = 24;
    /// Bytes before a part that are read with it: so each half of a vector has the half of a part.
    const BEFORE: usize = 4;

    #[target_feature(enable = "avx2")]
    pub(super) fn raise(bytes: &[u8], numbers: &mut [u8]) {
        // Two numbers to each word of 16 bits: the first two of three bytes, and the last two.
        let places = _mm256_setr_epi8(
            4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11, 12, 13, 14, 14, 15, //
            0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11,
        );
        // What the first word has to be multiplied with that its numbers lie where those of the second do: four bits up.
        let up = _mm256_set1_epi32(1 << 16 | 1 << 4);
        let (low, high) = (_mm256_set1_epi16(0x3f), _mm256_set1_epi16(0x3f00));
        // The first and the last part have not so many bytes around them.
        let wide = (bytes.len() / PART).saturating_sub(2);
        let (first, rest) = numbers.split_at_mut(numbers.len().min(32));
        let (between, last) = rest.split_at_mut(wide * 32);
        raise_plain(bytes, first);
        let parts = bytes.get(PART - BEFORE..).unwrap_or_default().windows(32).step_by(PART);
        for (packed, numbers) in parts.zip(between.as_chunks_mut::<32>().0) {
            let packed: &[u8; 32] = packed.try_into().expect("windows have this length");
            // SAFETY: it reads the 32 bytes that the reference is of, wherever they lie.
            let packed = unsafe { _mm256_loadu_si256(packed.as_ptr().cast()) };
            let twos = _mm256_mullo_epi16(_mm256_shuffle_epi8(packed, places), up);
            let evens = _mm256_and_si256(_mm256_srli_epi16(twos, 4), low);
            let odds = _mm256_and_si256(_mm256_srli_epi16(twos, 2), high);
            // SAFETY: it reads and writes the 32 bytes that the reference is of, wherever they lie.
            unsafe {
                let there = numbers.as_mut_ptr().cast();
                let most = _mm256_max_epu8(_mm256_loadu_si256(there), _mm256_or_si256(evens, odds));
                _mm256_storeu_si256(there, most);
            }
        }
        raise_plain(&bytes[bytes.len() - last.len() / 4 * 3..], last);
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn pack(numbers: &[u8], bytes: &mut [u8]) {
        let places = _mm256_setr_epi8(
            0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1, //
            0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1,
        );
        // Three words of four of each half.
        let words = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7);
        let (second, fourth) = (_mm256_set1_epi16(1 << 14 | 1), _mm256_set1_epi32(1 << 28 | 1));
        let below_64 = _mm256_set1_epi8(0x3f);
        for (numbers, bytes) in numbers.as_chunks::<32>().0.iter().zip(bytes.as_chunks_mut::<PART>().0) {
            // SAFETY: it reads the 32 bytes that the reference is of, wherever they lie.
            let numbers = unsafe { _mm256_loadu_si256(numbers.as_ptr().cast()) };
            // Each second number 6 bits up to the first, and each second pair 12 bits up to the first.
            let twos = _mm256_maddubs_epi16(_mm256_and_si256(numbers, below_64), second);
            let fours = _mm256_madd_epi16(twos, fourth);
            let packed = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(fours, places), words);
            let mut wide = [0; 32];
            // SAFETY: it writes the 32 bytes that the array has, wherever they lie.
            unsafe { _mm256_storeu_si256(wide.as_mut_ptr().cast(), packed) };
            bytes.copy_from_slice(&wide[..PART]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_by_itself() {
        for len in [0, 32, 64, 96, if cfg!(miri) { 128 } else { 16_384 }] {
            let numbers: Vec<u8> = (0..len).map(|at: usize| (at * 7 + at / 64) as u8 & 63).collect();
            let (mut row, mut plain) = (vec![0xff; len / 4 * 3], vec![0xff; len / 4 * 3]);
            pack(&numbers, &mut row);
            pack_plain(&numbers, &mut plain);
            assert_eq!(row, plain);
            assert!(words(&row).flat_map(u64::to_le_bytes).eq(numbers.iter().copied()));

            let others: Vec<u8> = (0..len).map(|at: usize| (at * 5 + 9) as u8 & 63).collect();
            let (mut raised, mut plain) = (others.clone(), others.clone());
            raise(&row, &mut raised);
            raise_plain(&row, &mut plain);
            assert_eq!(raised, plain);
            assert!(raised.iter().copied().eq(numbers.iter().zip(&others).map(|(a, b)| *a.max(b))));
        }
    }
}
