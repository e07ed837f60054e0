//! YCSB's 64-bit FNV hash, which scatters ranks and key numbers. Knows no generator.

const OFFSET_BASIS: u64 = 0xCBF2_9CE4_8422_2325;
const PRIME: u64 = 1_099_511_628_211;

/// `site.ycsb.Utils.fnvhash64`: the absolute value of FNV-1a over the number's eight bytes, the lowest first.
#[inline]
pub fn fnv_hash(number: u64) -> u64 {
    let hash =
        number.to_le_bytes().iter().fold(OFFSET_BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
    hash.cast_signed().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_javas() {
        // What the Java method prints.
        for (number, hash) in [
            (0, 6_284_781_860_667_377_211),
            (1, 8_517_097_267_634_966_620),
            (2, 1_820_151_046_732_198_393),
            (255, 8_064_062_821_143_829_734),
            (256, 2_056_600_594_528_442_646),
            (123_456_789, 2_350_796_791_908_741_607),
            (9_999_999_999, 3_605_131_173_811_637_474),
        ] {
            assert_eq!(fnv_hash(number), hash, "{number}");
        }
    }
}
