//! The checksum of payloads and files: CRC-64 "Jones", reflected, eight bytes at a time, of three places at once.

/// 0xAD93D23594C935A9 with its bits in reverse.
const POLYNOMIAL: u64 = 0x95AC_9329_AC4B_C9B5;
/// Bytes that are looked up together.
const STRIDE: usize = 8;

/// Bytes of a lane, a power of two: three of them are gone through side by side.
const LANE_LEN: usize = 4096;

/// For each byte its checksum, and what that becomes behind one to seven more bytes of zeros.
const fn tables() -> [[u64; 256]; STRIDE] {
    let mut tables = [[0; 256]; STRIDE];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut behind = 1;
    while behind < STRIDE {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[behind - 1][byte];
            tables[behind][byte] = tables[0][before as u8 as usize] ^ before >> 8;
            byte += 1;
        }
        behind += 1;
    }
    tables
}

static TABLES: [[u64; 256]; STRIDE] = tables();

/// For each bit of a checksum, what it becomes behind [`LANE_LEN`] bytes of zeros.
const fn lane_of_zeros() -> [u64; u64::BITS as usize] {
    let mut operator = [0; u64::BITS as usize];
    let mut bit = 0;
    while bit < operator.len() {
        let crc = 1u64 << bit;
        operator[bit] = TABLES[0][crc as u8 as usize] ^ crc >> 8;
        bit += 1;
    }
    let mut len = 1;
    while len < LANE_LEN {
        let mut twice = operator;
        let mut bit = 0;
        while bit < twice.len() {
            twice[bit] = applied(&operator, operator[bit]);
            bit += 1;
        }
        operator = twice;
        len *= 2;
    }
    operator
}

const fn applied(operator: &[u64; u64::BITS as usize], crc: u64) -> u64 {
    let (mut sum, mut bit) = (0, 0);
    while bit < operator.len() {
        sum ^= operator[bit] & (crc >> bit & 1).wrapping_neg();
        bit += 1;
    }
    sum
}

static LANE_OF_ZEROS: [u64; u64::BITS as usize] = lane_of_zeros();

/// The checksum of `bytes` behind what `crc` is the checksum of; 0 to begin with.
pub fn crc64(crc: u64, bytes: &[u8]) -> u64 {
    // One look-up waits for the one before; those of other lanes do not.
    let (blocks, rest) = bytes.as_chunks::<{ 3 * LANE_LEN }>();
    let crc = blocks.iter().fold(crc, |crc, block| {
        let (strides, _) = block.as_chunks::<STRIDE>();
        let (first, others) = strides.split_at(LANE_LEN / STRIDE);
        let (second, third) = others.split_at(LANE_LEN / STRIDE);
        let lanes = first.iter().zip(second).zip(third);
        let (a, b, c) = lanes.fold((crc, 0, 0), |(a, b, c), ((x, y), z)| (behind(a, *x), behind(b, *y), behind(c, *z)));
        let two = applied(&LANE_OF_ZEROS, a) ^ b;
        applied(&LANE_OF_ZEROS, two) ^ c
    });
    let (strides, rest) = rest.as_chunks::<STRIDE>();
    let crc = strides.iter().fold(crc, |crc, stride| behind(crc, *stride));
    rest.iter().fold(crc, |crc, byte| TABLES[0][usize::from(crc as u8 ^ byte)] ^ crc >> 8)
}

#[inline]
fn behind(crc: u64, stride: [u8; STRIDE]) -> u64 {
    let mixed = (crc ^ u64::from_le_bytes(stride)).to_le_bytes();
    mixed.iter().rev().zip(&TABLES).fold(0, |sum, (byte, table)| sum ^ table[usize::from(*byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_the_known_value() {
        assert_eq!(crc64(0, b"123456789"), 0xE9C6_D914_C4B8_D9CA);
        for at in 0..9 {
            assert_eq!(crc64(crc64(0, &b"123456789"[..at]), &b"123456789"[at..]), 0xE9C6_D914_C4B8_D9CA);
        }
    }

    #[test]
    fn strides_come_to_the_same_as_bytes() {
        let bytes: Vec<u8> = (0..100u32).map(|at| (at * at * 31) as u8).collect();
        for from in 0..20 {
            for to in from..100 {
                let by_bytes = bytes[from..to].iter().fold(7, |crc, byte| crc64(crc, &[*byte]));
                assert_eq!(crc64(7, &bytes[from..to]), by_bytes);
            }
        }
    }

    #[test]
    fn lanes_come_to_the_same_as_strides() {
        let bytes: Vec<u8> = (0..50_000u32).map(|at| (at.wrapping_mul(2_654_435_769) >> 13) as u8).collect();
        for len in [3 * LANE_LEN - 1, 3 * LANE_LEN, 3 * LANE_LEN + 9, bytes.len()] {
            let by_strides = bytes[..len].chunks(1000).fold(7, crc64);
            assert_eq!(crc64(7, &bytes[..len]), by_strides, "{len}");
        }
    }
}
