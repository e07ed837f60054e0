//! What stands behind a payload: the version of the format, and a checksum over all before it.

use super::crc64;

/// The version that payloads are written in: Redis 7.0's, which all later ones read.
pub const PAYLOAD_VERSION: u16 = 10;
/// The latest version of Redis's that is read: 8.8's. That of 8.6 is 13, that of 7.4 to 8.4 is 12.
const REDIS_VERSION_MAX: u16 = 14;
/// Valkey's own version: that of 9.0. Those up to 8.1 write 11, as Redis 7.2 does.
pub const VALKEY_VERSION: u16 = 80;
const CHECKSUM_BYTES: usize = 8;

/// Appends version and checksum.
pub fn seal(payload: &mut Vec<u8>) {
    payload.extend_from_slice(&PAYLOAD_VERSION.to_le_bytes());
    payload.extend_from_slice(&crc64(0, payload).to_le_bytes());
}

/// What stands before version and checksum, and the version, if both are right. A checksum of 0 is none, as at the end of a
/// file: Redis 8.6 takes it so.
pub fn unseal(payload: &[u8]) -> Option<(&[u8], u16)> {
    let (rest, checksum) = payload.split_last_chunk::<CHECKSUM_BYTES>()?;
    let (body, version) = rest.split_last_chunk::<2>()?;
    let (checksum, version) = (u64::from_le_bytes(*checksum), u16::from_le_bytes(*version));
    let is_known = version <= REDIS_VERSION_MAX || version == VALKEY_VERSION;
    (is_known && (checksum == 0 || checksum == crc64(0, rest))).then_some((body, version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_from_the_future_are_refused() {
        for (version, is_read) in [(0, true), (9, true), (14, true), (15, false), (79, false), (80, true), (81, false)]
        {
            let mut payload = b"body".to_vec();
            payload.extend_from_slice(&u16::to_le_bytes(version));
            payload.extend_from_slice(&crc64(0, &payload).to_le_bytes());
            assert_eq!(unseal(&payload), is_read.then_some((&b"body"[..], version)));
            payload[0] ^= 1;
            assert_eq!(unseal(&payload), None);
        }
        assert_eq!(unseal(&[0; 9]), None);
    }

    #[test]
    fn a_checksum_of_zeros_is_none() {
        let payload =
            |version: u16, checksum: u64| [&b"body"[..], &version.to_le_bytes(), &checksum.to_le_bytes()].concat();
        assert_eq!(unseal(&payload(10, 0)), Some((&b"body"[..], 10)));
        assert_eq!(unseal(&payload(10, 1)), None);
        assert_eq!(unseal(&payload(15, 0)), None);
    }
}
