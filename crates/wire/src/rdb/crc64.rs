//! The checksum of payloads and files: CRC-64 "Jones", reflected.

/// 0xAD93D23594C935A9 with its bits in reverse.
const POLYNOMIAL: u64 = 0x95AC_9329_AC4B_C9B5;

const fn table() -> [u64; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

static TABLE: [u64; 256] = table();

/// The checksum of `bytes` behind what `crc` is the checksum of; 0 to begin with.
pub fn crc64(crc: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(crc, |crc, byte| TABLE[usize::from(crc as u8 ^ byte)] ^ crc >> 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_the_known_value() {
        assert_eq!(crc64(0, b"123456789"), 0xE9C6_D914_C4B8_D9CA);
        assert_eq!(crc64(crc64(0, b"1234"), b"56789"), 0xE9C6_D914_C4B8_D9CA);
    }
}
