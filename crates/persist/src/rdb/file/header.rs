//! The nine bytes that a file begins with: whose it is, and of which version.

use super::super::Origin;
use super::Cause;

/// Bytes of the header.
pub(super) const LEN: usize = 9;
const REDIS: &[u8] = b"REDIS";
const VALKEY: &[u8] = b"VALKEY";
/// The first version that ends with a checksum.
const CHECKSUM_SINCE: u16 = 5;
/// The latest version of Redis's that is read: 8.8's. That of 8.6 is 13, that of 7.4 to 8.4 is 12.
const REDIS_MAX: u16 = 14;
/// Valkey's own versions: that of 9.0. Those up to 8.1 write 11, under Redis's name.
const VALKEY_MIN: u16 = 80;
const VALKEY_MAX: u16 = 80;

/// Whose file it is, and of which version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The version of the format.
    pub version: u16,
    /// Whose numbers of forms are meant.
    pub origin: Origin,
}

/// Whether a file of so few bytes may be the start of one.
pub(super) fn is_start(bytes: &[u8]) -> bool {
    [REDIS, VALKEY].iter().any(|magic| magic.iter().zip(bytes).all(|(wanted, byte)| wanted == byte))
}

impl Header {
    /// Reads the first bytes of a file.
    pub(super) fn read(bytes: &[u8; LEN]) -> Result<Header, Cause> {
        let (origin, digits) = if let Some(digits) = bytes.strip_prefix(VALKEY) {
            (Origin::Valkey, digits)
        } else if let Some(digits) = bytes.strip_prefix(REDIS) {
            (Origin::Redis, digits)
        } else {
            return Err(Cause::Signature);
        };
        let known = match origin {
            Origin::Redis => 1..=REDIS_MAX,
            Origin::Valkey => VALKEY_MIN..=VALKEY_MAX,
        };
        let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let version = digits.and_then(|digits| digits.parse().ok());
        match version.filter(|version| known.contains(version)) {
            Some(version) => Ok(Header { version, origin }),
            None => Err(Cause::Version(String::from_utf8_lossy(bytes).into_owned())),
        }
    }

    /// Whether a checksum stands at the end.
    pub(super) fn has_checksum(self) -> bool {
        self.version >= CHECKSUM_SINCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_are_known() {
        for (text, known) in [
            (b"REDIS0001", Some((Origin::Redis, 1))),
            (b"REDIS0014", Some((Origin::Redis, 14))),
            (b"VALKEY080", Some((Origin::Valkey, 80))),
            (b"REDIS0000", None),
            (b"REDIS0015", None),
            (b"REDIS0080", None),
            (b"VALKEY081", None),
            (b"VALKEY011", None),
            (b"REDIS+001", None),
            (b"REDIS-001", None),
            (b"REDISxxxx", None),
            (b"REDAS0001", None),
        ] {
            let header = Header::read(text).ok();
            assert_eq!(header, known.map(|(origin, version)| Header { version, origin }), "{text:?}");
        }
    }
}
