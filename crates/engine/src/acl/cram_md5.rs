//! What a password is to SASL CRAM-MD5 (RFC 2195). Knows no user.

use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;

/// Bytes of a digest.
pub const DIGEST_BYTES: usize = 16;

/// The states of the HMAC-MD5 that a password is the key of, as RFC 2195 advises to keep them: the password is not in them.
#[derive(Clone, Debug)]
pub(super) struct CramKey(Hmac<Md5>);

impl CramKey {
    pub(super) fn of(password: &[u8]) -> CramKey {
        CramKey(Hmac::new_from_slice(password).expect("a key of HMAC may have any length"))
    }

    /// Whether this is the digest of a challenge with the password. It takes the same time wherever it differs.
    pub(super) fn signs(&self, challenge: &[u8], digest: &[u8; DIGEST_BYTES]) -> bool {
        self.0.clone().chain_update(challenge).verify(digest.into()).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 2195, section 2.
    #[test]
    fn the_rfcs_client_knows_its_password() {
        let challenge = b"<1896.697170952@postoffice.reston.mci.net>";
        let mut digest = 0xb913_a602_c7ed_a7a4_95b4_e6e7_334d_3890_u128.to_be_bytes();
        assert!(CramKey::of(b"tanstaaftanstaaf").signs(challenge, &digest));
        assert!(!CramKey::of(b"tanstaaftanstaag").signs(challenge, &digest));
        assert!(!CramKey::of(b"tanstaaftanstaaf").signs(b"<1>", &digest));
        digest[15] ^= 1;
        assert!(!CramKey::of(b"tanstaaftanstaaf").signs(challenge, &digest));
    }
}
