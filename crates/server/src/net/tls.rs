//! One connection's TLS: between the socket's bytes and those that the service sees. Knows no socket, and no file.

use super::sending::keep_rest;
use rustls::{HandshakeKind, ServerConfig, ServerConnection};
use std::fmt;
use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;
use tenon_wire::OutBuf;

/// Encrypted output that may wait for the socket, in bytes: the rest waits in clear, where long values are not copied.
const SEALED_MAX: usize = 256 * 1024;

/// A buffer of encrypted output that has so many bytes is followed by another: it is freed when all of it is sent.
const SEALED_PIECE: usize = 64 * 1024;

/// How many pieces of output may be gathered to be encrypted.
const PIECES_PER_SEAL: usize = 16;

/// How a record begins that carries output. TLS 1.3 has every record begin so that is encrypted.
const RECORD_OF_DATA: u8 = 23;

/// What becomes of connections' TLS, for who counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsEvent {
    /// A handshake has come to its end, and did not resume an earlier session.
    NewSession,
    /// A client has sent what is no handshake, or none that can be agreed to.
    HandshakeFailed,
    /// What a client sent behind its handshake is not as it should be.
    Failed,
}

/// How TLS is spoken with a connection.
#[derive(Clone)]
pub struct TlsTerms {
    /// Certificates, versions, ciphers.
    pub config: Arc<ServerConfig>,
    /// Bytes of output that are gathered and encrypted together: a record never goes on past them.
    pub write_buffer: usize,
    /// Who is told what becomes of it.
    pub tell: Arc<dyn Fn(TlsEvent) + Send + Sync>,
}

impl fmt::Debug for TlsTerms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsTerms").field("write_buffer", &self.write_buffer).finish_non_exhaustive()
    }
}

/// How one connection's bytes become those of the service, and back.
pub(super) struct TlsSession {
    connection: ServerConnection,
    tell: Arc<dyn Fn(TlsEvent) + Send + Sync>,
    /// Output that is not encrypted yet.
    clear: OutBuf,
    /// The client has said that it sends no more.
    has_ended: bool,
}

/// The client does not speak TLS as it should.
#[derive(Debug)]
pub(super) struct TlsFailure;

impl TlsSession {
    /// A session at its start.
    pub(super) fn new(terms: TlsTerms) -> Result<TlsSession, rustls::Error> {
        let TlsTerms { config, write_buffer, tell } = terms;
        let mut connection = ServerConnection::new(config)?;
        connection.set_buffer_limit(Some(write_buffer));
        Ok(TlsSession { connection, tell, clear: OutBuf::new(), has_ended: false })
    }

    /// Bytes of output that are not encrypted yet.
    pub(super) fn unsealed(&self) -> usize {
        self.clear.len()
    }

    /// Bytes of memory that they take.
    pub(super) fn unsealed_memory(&self) -> usize {
        self.clear.memory()
    }

    /// Whether the handshake is still under way.
    pub(super) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Whether the client has said that it sends no more.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Takes bytes of the socket; what they are in clear is added to `input`. What the session has to say to that is
    /// written by [`TlsSession::seal`].
    pub(super) fn open(&mut self, mut sealed: &[u8], input: &mut Vec<u8>) -> Result<(), TlsFailure> {
        while !sealed.is_empty() && !self.has_ended {
            // Bytes in memory cannot fail to be read; the session's own buffer is emptied each time.
            if self.connection.read_tls(&mut sealed).map_err(|_| TlsFailure)? == 0 {
                break;
            }
            let was_handshaking = self.connection.is_handshaking();
            let state = self.connection.process_new_packets().map_err(|error| {
                tracing::debug!(%error, "a client's TLS failed");
                (self.tell)(if was_handshaking { TlsEvent::HandshakeFailed } else { TlsEvent::Failed });
                TlsFailure
            })?;
            let is_resumed = || self.connection.handshake_kind() == Some(HandshakeKind::Resumed);
            if was_handshaking && !self.connection.is_handshaking() && !is_resumed() {
                (self.tell)(TlsEvent::NewSession);
            }
            self.has_ended = state.peer_has_closed();
            let len = state.plaintext_bytes_to_read();
            if len > 0 {
                let before = input.len();
                input.resize(before + len, 0);
                self.connection.reader().read_exact(&mut input[before..]).map_err(|_| TlsFailure)?;
            }
        }
        Ok(())
    }

    /// Takes over output.
    pub(super) fn push(&mut self, out: &mut OutBuf) {
        if self.clear.is_empty() {
            self.clear.append(out);
        } else {
            keep_rest(&mut self.clear, out);
        }
    }

    /// Gives the buffer back in which output was taken over, where all of it is encrypted: it is the worker's.
    pub(super) fn give_back(&mut self, out: &mut OutBuf) {
        if self.clear.is_empty() && self.clear.memory() > out.memory() {
            std::mem::swap(&mut self.clear, out);
        }
        self.free_buffer();
    }

    /// Frees the buffer of output that is encrypted.
    pub(super) fn free_buffer(&mut self) {
        if self.clear.is_empty() {
            self.clear = OutBuf::new();
        }
    }

    /// Encrypts output into `sealed`, as long as not too much waits there.
    ///
    /// # Errors
    /// None will be encrypted any more.
    pub(super) fn seal(&mut self, sealed: &mut OutBuf) -> io::Result<()> {
        self.drain(sealed)?;
        while !(self.clear.is_empty() || sealed.len() >= SEALED_MAX || self.connection.is_handshaking()) {
            let mut slices = [IoSlice::new(&[]); PIECES_PER_SEAL];
            let filled = self.clear.io_slices(&mut slices);
            // Not more than the session's limit, which is the write buffer's length.
            let taken = self.connection.writer().write_vectored(&slices[..filled])?;
            if self.drain(sealed)? != Some(RECORD_OF_DATA) {
                // rustls says that it has taken them: behind the last record of its key it ends the session instead.
                tracing::info!("a connection has sent as much as its TLS may encrypt with one key; it is closed");
                return Err(io::Error::other("the session of TLS has been ended"));
            }
            self.clear.advance(taken);
            if self.clear.is_empty() {
                self.clear.clear();
            }
        }
        Ok(())
    }

    /// Moves what the session has to send to `sealed`; tells the type of the first record of that.
    fn drain(&mut self, sealed: &mut OutBuf) -> io::Result<Option<u8>> {
        let mut first = None;
        while self.connection.wants_write() {
            let sealed = sealed.tail_below(SEALED_PIECE);
            let before = sealed.len();
            self.connection.write_tls(sealed)?;
            first = first.or_else(|| sealed.get(before).copied());
        }
        Ok(first)
    }

    /// Says that nothing more will be sent, unless output is left behind: then the peer is to see that it lacks something.
    pub(super) fn end(&mut self, sealed: &mut OutBuf) {
        if self.clear.is_empty() {
            self.connection.send_close_notify();
        }
        // Into memory; what is not sent any more is missed by nobody.
        let _ = self.drain(sealed);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use bytes::Bytes;
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
    use rustls::{ClientConfig, ClientConnection, RootCertStore};

    fn certificate(name: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_file(format!("{}/../../tests/tls/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    /// A session behind its handshake.
    pub(in crate::net) fn session() -> TlsSession {
        let key =
            PrivateKeyDer::from_pem_file(format!("{}/../../tests/tls/server.key.pem", env!("CARGO_MANIFEST_DIR")));
        let config = ServerConfig::builder().with_no_client_auth();
        let config = Arc::new(config.with_single_cert(vec![certificate("server.pem")], key.unwrap()).unwrap());
        let terms = TlsTerms { config, write_buffer: 16 * 1024, tell: Arc::new(|_| {}) };
        let mut session = TlsSession::new(terms).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate("ca.pem")).unwrap();
        let config = Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth());
        let mut client = ClientConnection::new(config, ServerName::try_from("localhost").unwrap()).unwrap();
        while session.connection.is_handshaking() {
            let (mut from_client, mut from_session) = (Vec::new(), OutBuf::new());
            while client.wants_write() {
                client.write_tls(&mut from_client).unwrap();
            }
            session.open(&from_client, &mut Vec::new()).unwrap();
            session.seal(&mut from_session).unwrap();
            let mut told = from_session.contiguous().expect("it is not much");
            while !told.is_empty() {
                client.read_tls(&mut told).unwrap();
                client.process_new_packets().unwrap();
            }
        }
        session
    }

    #[test]
    fn a_client_always_a_little_behind_costs_no_more_than_it_is_behind() {
        let (mut session, mut sealed) = (session(), OutBuf::new());
        let value = Bytes::from(vec![b'v'; 50_000]);
        for _ in 0..200 {
            for _ in 0..4 {
                let mut out = OutBuf::new();
                out.push_shared(value.clone());
                session.push(&mut out);
            }
            session.seal(&mut sealed).unwrap();
            let behind = sealed.len();
            sealed.advance(behind - 1000);
            assert!(sealed.memory() < 4 * SEALED_PIECE, "{} bytes are held for 1000", sealed.memory());
        }
    }

    #[test]
    fn short_output_behind_other_leaves_the_worker_its_buffer() {
        const BUFFER: usize = 100_000;
        let (mut session, mut out) = (session(), OutBuf::new());
        out.tail().extend_from_slice(b"first");
        session.push(&mut out);
        out.tail().reserve(BUFFER);
        for _ in 0..100 {
            out.tail().extend_from_slice(b"+OK\r\n");
            session.push(&mut out);
            assert!(out.is_empty() && out.memory() >= BUFFER);
        }
        assert_eq!(session.unsealed(), 505);
    }
}
