//! What stands behind a payload: the version of the format, and a checksum over all before it.

use super::crc64;

/// The version that payloads are written in: Redis 7.0's, which all later ones read.
pub const PAYLOAD_VERSION: u16 = 10;
/// The latest version that is read: Redis 7.4's.
const VERSION_MAX: u16 = 12;
const CHECKSUM_BYTES: usize = 8;

/// Appends version and checksum.
pub fn seal(payload: &mut Vec<u8>) {
    payload.extend_from_slice(&PAYLOAD_VERSION.to_le_bytes());
    payload.extend_from_slice(&crc64(0, payload).to_le_bytes());
}

/// What stands before version and checksum, if both are right. A checksum of 0 is one that was left out.
pub fn unseal(payload: &[u8]) -> Option<&[u8]> {
    let (rest, checksum) = payload.split_last_chunk::<CHECKSUM_BYTES>()?;
    let (body, version) = rest.split_last_chunk::<2>()?;
    let checksum = u64::from_le_bytes(*checksum);
    let right = checksum == 0 || checksum == crc64(0, rest);
    (right && u16::from_le_bytes(*version) <= VERSION_MAX).then_some(body)
}
