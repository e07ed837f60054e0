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

/// Words that go for several ciphers of TLS 1.2, as OpenSSL has them, each with what those have in their names.
const WORDS: &[(&str, &str)] = &[
    ("ALL", ""),
    ("HIGH", ""),
    ("TLSv1.2", ""),
    ("ECDHE", ""),
    ("EECDH", ""),
    ("ECDH", ""),
    ("kECDHE", ""),
    ("kEECDH", ""),
    ("ECDSA", "ECDSA"),
    ("aECDSA", "ECDSA"),
    ("aRSA", "RSA"),
    ("AES", "AES"),
    ("AES128", "AES128"),
    ("AES256", "AES256"),
    ("AESGCM", "GCM"),
    ("CHACHA20", "CHACHA20"),
    ("FIPS", "AES"),
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
    let none_of = |setting, names| format!("{setting}: none of '{names}' is there");
    let mut wanted = by_list(if ciphers.is_empty() { "ALL" } else { ciphers });
    if wanted.is_empty() {
        return Err(none_of("tls-ciphers", ciphers));
    }
    let before = wanted.len();
    wanted.extend(by_names(ciphersuites));
    if wanted.len() == before {
        return Err(none_of("tls-ciphersuites", ciphersuites));
    }
    let cipher_suites = wanted
        .into_iter()
        .filter_map(|suite| all.cipher_suites.iter().find(|known| known.suite() == suite).copied().map(lasting))
        .collect();
    Ok(CryptoProvider { cipher_suites, ..all })
}

/// The ciphers of TLS 1.3 or those of 1.2.
fn known(is_13: bool) -> impl Iterator<Item = (&'static str, CipherSuite)> {
    CIPHERS.iter().copied().filter(move |(name, _)| name.starts_with("TLS_") == is_13)
}

/// Those ciphers of TLS 1.3 that are named, in that order.
fn by_names(names: &str) -> Vec<CipherSuite> {
    if matches!(names, "" | "DEFAULT" | "HIGH" | "ALL") {
        return known(true).map(|(_, suite)| suite).collect();
    }
    let names = names.split([':', ',', ' ']);
    names.filter_map(|name| known(true).find(|(known, _)| *known == name)).map(|(_, suite)| suite).collect()
}

/// The ciphers of TLS 1.2 by a list as OpenSSL reads it: name by name and word by word it adds those, or with a sign in front
/// takes them away (`-`, and `!` for good) or moves them to the end (`+`). Names with `+` between them go for what all of
/// them go for. What is not known goes for nothing, and `@STRENGTH` and its like are among that.
fn by_list(list: &str) -> Vec<CipherSuite> {
    let (mut chosen, mut banned) = (Vec::new(), Vec::new());
    let rules = list.split([':', ',', ';', ' ']).filter(|rule| !rule.is_empty());
    for (index, rule) in rules.enumerate() {
        let (sign, names) = match rule.split_at_checked(1) {
            Some((sign @ ("!" | "-" | "+"), names)) => (sign, names),
            // It is a word nowhere else.
            _ if index == 0 && rule == "DEFAULT" => ("", "ALL"),
            _ => ("", rule),
        };
        let meant = known(false).filter(|(cipher, _)| names.split('+').all(|name| goes_for(name, cipher)));
        let meant: Vec<CipherSuite> = meant.map(|(_, suite)| suite).collect();
        match sign {
            "!" => {
                chosen.retain(|suite| !meant.contains(suite));
                banned.extend(meant);
            }
            "-" => chosen.retain(|suite| !meant.contains(suite)),
            "+" => chosen.sort_by_key(|suite| meant.contains(suite)),
            _ => {
                for suite in meant {
                    if !chosen.contains(&suite) && !banned.contains(&suite) {
                        chosen.push(suite);
                    }
                }
            }
        }
    }
    chosen
}

/// Whether a name or a word of a list goes for the cipher of this name.
fn goes_for(name: &str, cipher: &str) -> bool {
    name == cipher || WORDS.iter().any(|(word, part)| *word == name && cipher.contains(part))
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

    /// The ciphers of a list, with the first letters of what they are of alone: `E` for ECDSA, `R` for RSA.
    fn chosen(list: &str) -> String {
        let short = |suite| {
            let (name, _) = known(false).find(|(_, known)| *known == suite).unwrap();
            let name = name.replace("ECDHE-ECDSA-", "E").replace("ECDHE-RSA-", "R");
            name.split('-').next().unwrap().to_owned()
        };
        by_list(list).into_iter().map(short).collect::<Vec<_>>().join(" ")
    }

    // What OpenSSL 3.0 says to each, of these ciphers, but for its order of those that a word adds.
    #[test]
    fn a_list_is_read_as_openssl_reads_it() {
        const ALL: &str = "EAES256 EAES128 ECHACHA20 RAES256 RAES128 RCHACHA20";
        for list in [
            "ALL",
            "DEFAULT:!MEDIUM",
            "HIGH:!aNULL:!MD5",
            "ALL:!SHA384",
            "ECDHE:@STRENGTH",
            "x:ECDHE:-RSA",
            "HIGH:MEDIUM:x+AES",
            "ECDHE:!DEFAULT",
            "!kRSA !DHE,ECDHE;AES128-SHA",
            "TLSv1.2:ECDHE-RSA-AES128-GCM-SHA256",
        ] {
            assert_eq!(chosen(list), ALL, "{list}");
        }
        for (list, expected) in [
            ("ECDHE+AESGCM", "EAES256 EAES128 RAES256 RAES128"),
            ("EECDH:!ECDSA", "RAES256 RAES128 RCHACHA20"),
            ("HIGH:+AES256", "EAES128 ECHACHA20 RAES128 RCHACHA20 EAES256 RAES256"),
            ("CHACHA20:DEFAULT", "ECHACHA20 RCHACHA20"),
            ("AESGCM:-aRSA:ECDHE-RSA-AES128-GCM-SHA256", "EAES256 EAES128 RAES128"),
            ("!CHACHA20:!AES128:HIGH", "EAES256 RAES256"),
            ("ECDHE+x:ECDHE+AESGCM+aRSA:-ECDHE+AES128:!x:+y+z", "RAES256"),
            ("ECDHE-RSA-CHACHA20-POLY1305:ECDHE-RSA-AES128-GCM-SHA256", "RCHACHA20 RAES128"),
            ("RSA", ""),
            ("SHA256", ""),
            ("!aNULL", ""),
            ("@STRENGTH", ""),
            ("ecdhe", ""),
            ("ALL:!ECDHE", ""),
            ("AES128-SHA", ""),
            (":", ""),
        ] {
            assert_eq!(chosen(list), expected, "{list}");
        }
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
