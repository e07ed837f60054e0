//! The checksum of payloads and files: CRC-64 "Jones", reflected, eight bytes at a time.

/// 0xAD93D23594C935A9 with its bits in reverse.
const POLYNOMIAL: u64 = 0x95AC_9329_AC4B_C9B5;
/// Bytes that are looked up together.
const STRIDE: usize = 8;

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

/// The checksum of `bytes` behind what `crc` is the checksum of; 0 to begin with.
pub fn crc64(crc: u64, bytes: &[u8]) -> u64 {
    let (strides, rest) = bytes.as_chunks::<STRIDE>();
    let crc = strides.iter().fold(crc, |crc, stride| {
        let mixed = (crc ^ u64::from_le_bytes(*stride)).to_le_bytes();
        mixed.iter().rev().zip(&TABLES).fold(0, |sum, (byte, table)| sum ^ table[usize::from(*byte)])
    });
    rest.iter().fold(crc, |crc, byte| TABLES[0][usize::from(crc as u8 ^ byte)] ^ crc >> 8)
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
}
