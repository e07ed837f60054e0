//! Which ciphers there are, and which of them the settings want: OpenSSL's names, as it reads them. Knows no certificate.

use rustls::crypto::{CryptoProvider, ring};
use rustls::{CipherSuite, CipherSuiteCommon, SupportedCipherSuite, Tls12CipherSuite};
use std::sync::LazyLock;

/// OpenSSL's names of the ciphers that there are, the best first.
const CIPHERS: &[(&str, CipherSuite)] = &[
    ("TLS_AES_256_GCM_SHA384", CipherSuite::TLS13_AES_256_GCM_SHA384),
    ("TLS_AES_128_GCM_SHA256", CipherSuite::TLS13_AES_128_GCM_SHA256),
    ("TLS_CHACHA20_POLY1305_SHA256", CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
    ("ECDHE-ECDSA-AES256-GCM-SHA384", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-ECDSA-AES128-GCM-SHA256", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("ECDHE-RSA-AES256-GCM-SHA384", CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-RSA-AES128-GCM-SHA256", CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-RSA-CHACHA20-POLY1305", CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
];

/// How many records one key of TLS 1.2 encrypts. rustls says 2^24 and ends the connection there, since it has no other way
/// to a new key: who asks for short values is that far within minutes. OpenSSL, and so every server that uses it, goes on.
///
/// RFC 5246 and 5288 have room for more: a record's number is its nonce, so that none comes twice. What grows is the chance
/// to tell what is encrypted from noise: the square of its blocks of 16 bytes, divided by 2^129. For so many records, of
/// 16 KiB each, that is a PiB and 2^-37, still less than the 2^-32 that NIST SP 800-38D allows for a nonce that comes twice.
const RECORDS_PER_KEY: u64 = 1 << 36;

/// rustls's ciphers of TLS 1.2 with keys that last.
static LASTING: LazyLock<Vec<Tls12CipherSuite>> = LazyLock::new(|| {
    let suites = ring::ALL_CIPHER_SUITES.iter().filter_map(|suite| match suite {
        SupportedCipherSuite::Tls12(suite) => Some(*suite),
        SupportedCipherSuite::Tls13(_) => None,
    });
    suites.map(|suite| with_records_per_key(suite, RECORDS_PER_KEY.max(suite.common.confidentiality_limit))).collect()
});

fn with_records_per_key(suite: &Tls12CipherSuite, records: u64) -> Tls12CipherSuite {
    let common = CipherSuiteCommon { confidentiality_limit: records, ..suite.common };
    Tls12CipherSuite { common, ..*suite }
}

/// This one, with a key that lasts. TLS 1.3 changes keys within a connection, and rustls sees to that.
fn lasting(suite: SupportedCipherSuite) -> SupportedCipherSuite {
    let lasting = LASTING.iter().find(|lasting| lasting.common.suite == suite.suite());
    lasting.map_or(suite, SupportedCipherSuite::Tls12)
}

/// What encrypts, with these ciphers of TLS 1.2 and these of 1.3; all where none are named.
pub(super) fn provider(ciphers: &str, ciphersuites: &str) -> Result<CryptoProvider, String> {
    let all = ring::default_provider();
    let mut wanted = Vec::new();
    for (setting, names, is_13) in [("tls-ciphers", ciphers, false), ("tls-ciphersuites", ciphersuites, true)] {
        let known = CIPHERS.iter().filter(|(name, _)| name.starts_with("TLS_") == is_13);
        let suites: Vec<CipherSuite> = known.clone().map(|(_, suite)| *suite).collect();
        if names.is_empty() || matches!(names, "DEFAULT" | "HIGH" | "ALL") {
            wanted.extend(suites);
            continue;
        }
        let before = wanted.len();
        for name in names.split([':', ',', ' ']).filter(|name| !name.is_empty()) {
            wanted.extend(known.clone().filter(|(known, _)| *known == name).map(|(_, suite)| *suite));
        }
        if wanted.len() == before {
            return Err(format!("{setting}: none of '{names}' is there"));
        }
    }
    let cipher_suites = wanted
        .into_iter()
        .filter_map(|suite| all.cipher_suites.iter().find(|known| known.suite() == suite).copied().map(lasting))
        .collect();
    Ok(CryptoProvider { cipher_suites, ..all })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ciphers_are_those_that_are_named_in_their_order() {
        let names = |ciphers, suites| {
            provider(ciphers, suites)
                .map(|provider| provider.cipher_suites.iter().map(|it| it.suite()).collect::<Vec<_>>())
        };
        assert_eq!(names("", "").unwrap().len(), CIPHERS.len());
        assert_eq!(
            names("ECDHE-RSA-AES128-GCM-SHA256:AES128-SHA", "TLS_CHACHA20_POLY1305_SHA256").unwrap(),
            [CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, CipherSuite::TLS13_CHACHA20_POLY1305_SHA256]
        );
        assert!(names("AES128-SHA", "").is_err() && names("", "x").is_err());
    }

    #[test]
    fn a_key_of_tls_1_2_lasts() {
        for suite in provider("", "").unwrap().cipher_suites {
            if let SupportedCipherSuite::Tls12(suite) = suite {
                assert!(suite.common.confidentiality_limit >= RECORDS_PER_KEY, "{suite:?}");
            }
        }
    }
}
