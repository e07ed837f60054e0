//! Whom TLS trusts, and how it is spoken. Knows no server.

use anyhow::{Context, Result, bail};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;

/// Where Debian and most others keep whom the system trusts.
const SYSTEM: &str = "/etc/ssl/certs/ca-certificates.crt";

/// TLS with servers that an authority of this file vouches for; without one, those that the system trusts.
///
/// # Errors
/// When the file cannot be read, or holds no certificate.
pub fn config(authority: Option<&Path>) -> Result<Arc<ClientConfig>> {
    let path = authority.unwrap_or(Path::new(SYSTEM));
    let shown = || path.display().to_string();
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).with_context(shown)? {
        // The system's file may hold some of a form that is not understood.
        let added = roots.add(certificate.with_context(shown)?);
        if authority.is_some() {
            added.with_context(shown)?;
        }
    }
    if roots.is_empty() {
        bail!("{} holds no certificate", path.display());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_must_be_one() {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tls");
        assert!(config(Some(&tests.join("ca.pem"))).is_ok());
        assert!(config(Some(&tests.join("README.md"))).is_err() && config(Some(&tests.join("none.pem"))).is_err());
    }
}
