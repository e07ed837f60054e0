//! What the settings say of TLS, as its library wants it: certificates, keys, ciphers. Knows no connection.

mod ciphers;
mod sessions;

use self::sessions::Sessions;
use crate::net::{TlsEvent, TlsTerms};
use parking_lot::RwLock;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion, version};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tenon_engine::config::{Config, TlsAuthClients};
use tenon_engine::stats::TlsCounts;

/// How TLS is spoken with new connections; clones mean the same.
#[derive(Clone)]
pub(crate) struct Tls {
    current: Arc<RwLock<Option<TlsTerms>>>,
    counts: Arc<TlsCounts>,
}

impl Tls {
    /// None is spoken yet; what becomes of it is counted there.
    pub(crate) fn new(counts: Arc<TlsCounts>) -> Tls {
        Tls { current: Arc::default(), counts }
    }

    /// How it is spoken now; nothing where there is no port for it.
    pub(crate) fn current(&self) -> Option<TlsTerms> {
        self.current.read().clone()
    }

    /// Has it be spoken as it was before.
    pub(crate) fn put_back(&self, before: Option<TlsTerms>) {
        *self.current.write() = before;
    }

    /// Reads certificates and keys and speaks TLS as the settings say from now on.
    ///
    /// # Errors
    /// What cannot be used; then all is as it was before.
    pub(crate) fn configure(&self, config: &Config) -> Result<(), String> {
        let is_wanted = config.tls_port() != 0 || config.memcached_tls_port() != 0;
        *self.current.write() = if is_wanted { Some(terms(config, &self.counts)?) } else { None };
        Ok(())
    }
}

fn terms(config: &Config, counts: &Arc<TlsCounts>) -> Result<TlsTerms, String> {
    let write_buffer = usize::try_from(config.tls_write_buffer()).expect("it is less than 4 GiB");
    let (counts, keeps_sessions) = (Arc::clone(counts), config.tls_session_caching());
    let tell = move |event| {
        let count = match event {
            // A session that nobody can resume is none.
            TlsEvent::NewSession if !keeps_sessions => return,
            TlsEvent::NewSession => &counts.new_sessions,
            TlsEvent::HandshakeFailed => &counts.handshake_errors,
            TlsEvent::Failed => &counts.protocol_errors,
        };
        count.fetch_add(1, Ordering::Relaxed);
    };
    Ok(TlsTerms { config: Arc::new(server_config(config)?), write_buffer, tell: Arc::new(tell) })
}

fn server_config(config: &Config) -> Result<ServerConfig, String> {
    let (cert_file, key_file) = (config.tls_cert_file(), config.tls_key_file());
    if cert_file.is_empty() {
        return Err("No tls-cert-file configured!".to_owned());
    }
    let key_file = if key_file.is_empty() { &cert_file } else { &key_file };
    let chain = certificates(Path::new(&*cert_file))?;
    let key = PrivateKeyDer::from_pem_file(&**key_file)
        .map_err(|error| format!("Failed to load private key: {key_file}: {error}"))?;
    let key = by_content(key);
    let provider = Arc::new(ciphers::provider(&config.tls_ciphers(), &config.tls_ciphersuites())?);
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions(&config.tls_protocols())?)
        .map_err(|error| format!("tls-protocols, tls-ciphers, tls-ciphersuites: {error}"))?;
    let builder = match config.tls_auth_clients() {
        TlsAuthClients::No => builder.with_no_client_auth(),
        wanted => {
            let roots = roots(&config.tls_ca_cert_file(), &config.tls_ca_cert_dir())?;
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = if wanted == TlsAuthClients::Optional { verifier.allow_unauthenticated() } else { verifier };
            builder.with_client_cert_verifier(verifier.build().map_err(|error| format!("tls-ca-cert-file: {error}"))?)
        }
    };
    let mut server = builder
        .with_single_cert(chain, key)
        .map_err(|error| cannot_load(Path::new(&*cert_file), &said_of_own(&error)))?;
    server.ignore_client_order = config.tls_prefer_server_ciphers();
    if config.tls_session_caching() {
        server.session_storage = Arc::new(Sessions::at_most(config.tls_session_cache_size()));
    } else {
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
    }
    Ok(server)
}

/// What is wrong with the server's own certificate or key, which the library takes for somebody else's, in the words of who can
/// help it.
fn said_of_own(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(rustls::CertificateError::Other(other)) => {
            let reason = other.to_string();
            if reason.contains("UnsupportedCertVersion") {
                "it is an X.509 certificate of version 1, and of version 3 is wanted ('openssl x509 -req' makes one with -extfile)".to_owned()
            } else {
                reason
            }
        }
        error => error.to_string(),
    }
}

/// A key by what it is rather than by what its PEM header says: some tools write PKCS #8 under `RSA PRIVATE KEY`, which
/// OpenSSL takes, and so do the servers that use it.
fn by_content(key: PrivateKeyDer<'static>) -> PrivateKeyDer<'static> {
    /// The start of a `PrivateKeyInfo` behind its outer length: version 0, and then an algorithm, where the older forms have
    /// version 1 or a number.
    const VERSION_AND_ALGORITHM: [u8; 4] = [0x02, 0x01, 0x00, 0x30];
    let der = key.secret_der();
    // The outer header is a tag and a length of one byte, or of as many more as that one says.
    let header = match der.get(1) {
        Some(&long) if long >= 0x80 => 2 + usize::from(long & 0x7f),
        _ => 2,
    };
    if der.get(header..).is_some_and(|content| content.starts_with(&VERSION_AND_ALGORITHM)) {
        PrivateKeyDer::Pkcs8(der.to_vec().into())
    } else {
        key
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let refused = |error: &dyn std::fmt::Display| cannot_load(file, error);
    let read = CertificateDer::pem_file_iter(file).map_err(|error| refused(&error))?;
    let chain = read.collect::<Result<Vec<_>, _>>().map_err(|error| refused(&error))?;
    if chain.is_empty() { Err(refused(&"there is no certificate in it")) } else { Ok(chain) }
}

fn cannot_load(file: &Path, error: &dyn std::fmt::Display) -> String {
    format!("Failed to load certificate: {}: {error}", file.display())
}

/// The certificates that clients' must lead back to: those of a file, and of a directory's.
fn roots(file: &str, directory: &str) -> Result<RootCertStore, String> {
    if file.is_empty() && directory.is_empty() {
        // Redis's words.
        return Err(
            "Either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-auth-clients is enabled!".to_owned()
        );
    }
    let mut roots = RootCertStore::empty();
    if !file.is_empty() {
        roots = roots_of(Path::new(file))?;
    }
    if !directory.is_empty() {
        let refused = |error: std::io::Error| format!("tls-ca-cert-dir: {directory}: {error}");
        for entry in std::fs::read_dir(directory).map_err(refused)? {
            let path = entry.map_err(refused)?.path();
            if !path.is_file() {
                continue;
            }
            // OpenSSL looks only at files that have a certificate's hash for a name: others may well lie there.
            match roots_of(&path) {
                Ok(found) => roots.extend(found.roots),
                Err(error) => tracing::info!("a file in tls-ca-cert-dir is passed over: {error}"),
            }
        }
    }
    if roots.is_empty() { Err(format!("tls-ca-cert-dir: {directory}: no file has a certificate")) } else { Ok(roots) }
}

/// The certificates of one file, all of which must be of use.
fn roots_of(file: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(|error| cannot_load(file, &error))?;
    }
    Ok(roots)
}

fn versions(names: &str) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
    let mut versions = Vec::new();
    for name in names.split_whitespace() {
        match name.to_ascii_lowercase().as_str() {
            "tlsv1.2" => versions.push(&version::TLS12),
            "tlsv1.3" => versions.push(&version::TLS13),
            "tlsv1" | "tlsv1.1" => return Err(format!("tls-protocols: {name} is too old to be spoken")),
            _ => return Err(format!("tls-protocols: there is no {name}")),
        }
    }
    if versions.is_empty() {
        versions = vec![&version::TLS12, &version::TLS13];
    }
    Ok(versions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_what_its_bytes_say() {
        let kind = |label: &str, der: &[u8]| {
            let key = match label {
                "RSA" => PrivateKeyDer::Pkcs1(der.to_vec().into()),
                "EC" => PrivateKeyDer::Sec1(der.to_vec().into()),
                _ => PrivateKeyDer::Pkcs8(der.to_vec().into()),
            };
            match by_content(key) {
                PrivateKeyDer::Pkcs1(_) => "PKCS 1",
                PrivateKeyDer::Sec1(_) => "SEC 1",
                _ => "PKCS 8",
            }
        };
        // Behind the header of the outer sequence: version 0 and an algorithm, version 0 and a number, version 1.
        assert_eq!(kind("RSA", &[0x30, 0x82, 0x04, 0xbc, 2, 1, 0, 0x30, 0x0d]), "PKCS 8");
        assert_eq!(kind("EC", &[0x30, 0x81, 0x87, 2, 1, 0, 0x30, 0x13]), "PKCS 8");
        assert_eq!(kind("", &[0x30, 0x2e, 2, 1, 0, 0x30, 5]), "PKCS 8");
        assert_eq!(kind("RSA", &[0x30, 0x82, 0x04, 0xa4, 2, 1, 0, 2, 0x82]), "PKCS 1");
        assert_eq!(kind("EC", &[0x30, 0x77, 2, 1, 1, 4, 0x20]), "SEC 1");
        assert_eq!(kind("RSA", &[]), "PKCS 1");
        assert_eq!(kind("EC", &[0x30, 0xff, 2]), "SEC 1");
    }

    #[test]
    fn a_directory_of_certificates_may_hold_other_files() {
        let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/tls");
        let directory = std::env::temp_dir().join(format!("tenon-ca-cert-dir-{}", std::process::id()));
        std::fs::create_dir_all(directory.join("nested")).unwrap();
        let name = directory.display().to_string();
        let count = |file: &str| roots(file, &name).map(|roots| roots.len());
        for file in ["README.md", "client.key.pem"] {
            std::fs::copy(format!("{tests}/{file}"), directory.join(file)).unwrap();
        }
        for (file, content) in [
            ("empty", &b""[..]),
            ("not.text", b"\xff\xfe\0\n"),
            ("cut.pem", b"-----BEGIN CERTIFICATE-----\nMIIB"),
            ("no.pem", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
            ("revoked.pem", b"-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n"),
        ] {
            std::fs::write(directory.join(file), content).unwrap();
        }
        // Where it is all that there is, one must be in it, and what is named itself must be one.
        assert_eq!(count("").unwrap_err(), format!("tls-ca-cert-dir: {name}: no file has a certificate"));
        assert_eq!(count(&format!("{tests}/ca.pem")), Ok(1));
        std::fs::copy(format!("{tests}/ca.pem"), directory.join("ca.pem")).unwrap();
        assert_eq!((count(""), count(&format!("{tests}/ca.pem"))), (Ok(1), Ok(2)));
        assert!(count(&format!("{tests}/README.md")).is_err());
        assert!(roots("", &format!("{name}/nowhere")).is_err() && roots("", "").is_err());
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn old_versions_are_not_spoken() {
        assert_eq!(versions("").unwrap().len(), 2);
        assert_eq!(versions("TLSv1.3").unwrap().len(), 1);
        assert!(versions("TLSv1.1 TLSv1.2").is_err() && versions("SSLv3").is_err());
    }
}
