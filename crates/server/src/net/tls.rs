//! One connection's TLS: between the socket's bytes and those that the service sees. Knows no socket, and no file.

use rustls::{HandshakeKind, ServerConfig, ServerConnection};
use std::fmt;
use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;
use tenon_wire::OutBuf;

/// Encrypted output that may wait for the socket, in bytes: the rest waits in clear, where long values are not copied.
const SEALED_MAX: usize = 256 * 1024;

/// How many pieces of output may be gathered to be encrypted.
const PIECES_PER_SEAL: usize = 16;

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
        self.clear.append(out);
    }

    /// Encrypts output into `sealed`, as long as not too much waits there.
    pub(super) fn seal(&mut self, sealed: &mut OutBuf) -> io::Result<()> {
        loop {
            while self.connection.wants_write() {
                self.connection.write_tls(sealed.tail())?;
            }
            if self.clear.is_empty() || sealed.len() >= SEALED_MAX || self.connection.is_handshaking() {
                return Ok(());
            }
            let mut slices = [IoSlice::new(&[]); PIECES_PER_SEAL];
            let filled = self.clear.io_slices(&mut slices);
            // Not more than the session's limit, which is the write buffer's length.
            let taken = self.connection.writer().write_vectored(&slices[..filled])?;
            self.clear.advance(taken);
            if self.clear.is_empty() {
                self.clear.clear();
            }
        }
    }

    /// Says that nothing more will be sent.
    pub(super) fn end(&mut self, sealed: &mut OutBuf) {
        self.connection.send_close_notify();
        // Into memory; what is not sent any more is missed by nobody.
        let _ = self.seal(sealed);
    }
}
