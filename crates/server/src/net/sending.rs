//! How output leaves through a socket, now, as far as the kernel takes it: what all ways to move bytes share. Knows neither
//! how one waits, nor what the bytes mean.

use super::tls::TlsSession;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};
use std::io::IoSlice;
use tenon_wire::OutBuf;

/// How many pieces one send may gather.
const PIECES_PER_SEND: usize = 64;

/// How many bytes one connection may send in a turn before the others have theirs.
pub(super) const SEND_BYTES_PER_TURN: usize = 1024 * 1024;

/// The same in a turn in which hardly anybody else has anything to do: as much as the kernel keeps of a connection's output
/// by default, and less than a millisecond's work for one on the same machine. A turn for each MiB has the kernel end a
/// packet, wake the client and begin anew: a sixth of what a value of 64 MiB costs.
const SEND_BYTES_OF_FEW: usize = 4 * SEND_BYTES_PER_TURN;
/// So many have something to do then.
const FEW_EVENTS: usize = 2;

/// How many bytes one connection may send in a turn that has so many events.
pub(super) fn send_bytes_of_turn(events: usize) -> usize {
    if events <= FEW_EVENTS { SEND_BYTES_OF_FEW } else { SEND_BYTES_PER_TURN }
}

/// An unsent rest up to this size is copied, so that the worker keeps its buffer and the connection holds no more than it needs.
const COPIED_REST_MAX: usize = 64 * 1024;

/// A worker's reply buffer that has grown past this is given back.
pub(super) const REPLY_BUFFER_KEPT: usize = 256 * 1024;

/// A connection's buffer of encrypted output that has grown past this is given back when all of it is sent: each connection
/// has its own, and encrypting so much costs far more than another buffer.
const SEALED_BUFFER_KEPT: usize = 4 * 1024;

/// Why a send ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoppedBy {
    /// Nothing is left.
    Empty,
    /// The kernel's buffer is full.
    Kernel,
    /// The connection had its share of this turn.
    Turn,
}

/// Sends from the front of `out` until something stops it; `turn_bytes` are the connection's share of this turn.
pub(super) fn send_some(fd: &OwnedFd, out: &mut OutBuf, turn_bytes: usize) -> Result<StoppedBy, Errno> {
    // A little more than a turn's share leaves with it: another turn costs more.
    let mut turn_left = if out.len() <= turn_bytes + SEND_BYTES_PER_TURN { out.len() } else { turn_bytes };
    while !out.is_empty() {
        if turn_left == 0 {
            return Ok(StoppedBy::Turn);
        }
        let (asked, result) = match out.contiguous() {
            Some(bytes) => send_piece(fd, bytes, turn_left),
            None => send_pieces(fd, out, turn_left),
        };
        let sent = match result {
            Ok(sent) => sent,
            Err(Errno::AGAIN) => return Ok(StoppedBy::Kernel),
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error),
        };
        out.advance(sent);
        if sent < asked {
            return Ok(StoppedBy::Kernel);
        }
        turn_left -= sent;
    }
    Ok(StoppedBy::Empty)
}

/// Encrypts and sends `out`, behind what waits, as [`seal_and_send`] does; `out` is empty afterwards.
pub(super) fn send_sealed(
    fd: &OwnedFd,
    tls: &mut TlsSession,
    unsent: &mut OutBuf,
    out: &mut OutBuf,
) -> Result<StoppedBy, Errno> {
    tls.push(out);
    let stopped_by = seal_and_send_some(fd, tls, unsent)?;
    tls.give_back(out);
    out.shrink(REPLY_BUFFER_KEPT);
    Ok(stopped_by)
}

/// Encrypts and sends as much as the socket takes, or a turn's share of it; `unsent` is what is encrypted and waits.
pub(super) fn seal_and_send(fd: &OwnedFd, tls: &mut TlsSession, unsent: &mut OutBuf) -> Result<StoppedBy, Errno> {
    let stopped_by = seal_and_send_some(fd, tls, unsent)?;
    tls.free_buffer();
    Ok(stopped_by)
}

fn seal_and_send_some(fd: &OwnedFd, tls: &mut TlsSession, unsent: &mut OutBuf) -> Result<StoppedBy, Errno> {
    let mut turn_left = SEND_BYTES_PER_TURN;
    loop {
        // It fails when a connection has sent as much as its key may be used for, or its client has not spoken TLS.
        tls.seal(unsent).map_err(|_| Errno::PROTO)?;
        let len = unsent.len();
        if len == 0 {
            unsent.shrink(SEALED_BUFFER_KEPT);
            return Ok(StoppedBy::Empty);
        }
        let stopped_by = send_some(fd, unsent, turn_left)?;
        turn_left = turn_left.saturating_sub(len - unsent.len());
        if stopped_by != StoppedBy::Empty {
            return Ok(stopped_by);
        }
        if turn_left == 0 {
            return Ok(StoppedBy::Turn);
        }
    }
}

/// Sends one piece, cut to what may still be sent; also tells how much that was.
#[inline]
fn send_piece(fd: &OwnedFd, bytes: &[u8], bytes_max: usize) -> (usize, Result<usize, Errno>) {
    let bytes = &bytes[..bytes.len().min(bytes_max)];
    (bytes.len(), send(fd, bytes, SendFlags::NOSIGNAL))
}

/// Sends several pieces at once, as many as may still be sent; also tells how many bytes that were. Apart from the usual
/// case, which need not make room for a list of pieces.
#[inline(never)]
fn send_pieces(fd: &OwnedFd, out: &OutBuf, bytes_max: usize) -> (usize, Result<usize, Errno>) {
    let mut slices = [IoSlice::new(&[]); PIECES_PER_SEND];
    let filled = out.io_slices_within(bytes_max, &mut slices);
    let pieces = &slices[..filled];
    let asked = pieces.iter().map(|piece| piece.len()).sum();
    (asked, sendmsg(fd, pieces, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL))
}

/// Moves `out` behind `unsent` and leaves it empty, with its buffer unless much is in it.
pub(super) fn keep_rest(unsent: &mut OutBuf, out: &mut OutBuf) {
    if out.may_be_copied(COPIED_REST_MAX) {
        out.drain_into(unsent.tail_below(COPIED_REST_MAX));
        out.shrink(REPLY_BUFFER_KEPT);
    } else {
        unsent.append(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::tls;
    use bytes::Bytes;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_rest_keeps_its_order_and_stays_small() {
        let mut unsent = OutBuf::new();
        let mut expected = Vec::new();
        for round in 0..2_000_u32 {
            let mut out = OutBuf::new();
            out.tail().extend_from_slice(&[round as u8; 100]);
            expected.extend_from_slice(&[round as u8; 100]);
            if round % 100 == 0 {
                out.push_shared(Bytes::from(vec![7; 300]));
                expected.extend_from_slice(&[7; 300]);
            }
            keep_rest(&mut unsent, &mut out);
            assert!(out.is_empty());
        }
        let mut got = Vec::new();
        while !unsent.is_empty() {
            let mut slices = [IoSlice::new(&[]); 2];
            let filled = unsent.io_slices(&mut slices);
            let sent: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.iter().copied()).collect();
            unsent.advance(sent.len());
            got.extend(sent);
        }
        assert!(got == expected);
    }

    #[test]
    fn a_client_always_a_little_behind_costs_no_more_than_it_is_behind() {
        let mut unsent = OutBuf::new();
        for _ in 0..100_000 {
            let mut out = OutBuf::new();
            out.tail().extend_from_slice(&[1; 100]);
            keep_rest(&mut unsent, &mut out);
            let behind = unsent.len();
            unsent.advance(behind - 50);
        }
        assert!(unsent.memory() < 8 * COPIED_REST_MAX, "{} bytes are held for 50", unsent.memory());
    }

    #[test]
    fn long_output_under_tls_leaves_no_buffer_behind() {
        let (own, mut other) = UnixStream::pair().unwrap();
        own.set_nonblocking(true).unwrap();
        let own = OwnedFd::from(own);
        let (mut tls, mut unsent, mut out) = (tls::tests::session(), OutBuf::new(), OutBuf::new());
        for _ in 0..3 {
            out.tail().resize(200_000, b'x');
            let mut stopped_by = send_sealed(&own, &mut tls, &mut unsent, &mut out).unwrap();
            while stopped_by != StoppedBy::Empty {
                // More is there than is read: it is what the kernel has no room for.
                other.read_exact(&mut [0; 16 * 1024]).unwrap();
                stopped_by = seal_and_send(&own, &mut tls, &mut unsent).unwrap();
            }
            assert_eq!(tls.unsealed_memory(), 0);
            assert!(unsent.memory() < 2 * SEALED_BUFFER_KEPT, "{} bytes are held for nothing", unsent.memory());
            other.set_nonblocking(true).unwrap();
            while other.read(&mut [0; 16 * 1024]).is_ok() {}
            other.set_nonblocking(false).unwrap();
        }
        // What leaves at once leaves the worker its buffer.
        out = OutBuf::new();
        out.tail().reserve(100_000);
        out.tail().extend_from_slice(b"+OK\r\n");
        assert_eq!(send_sealed(&own, &mut tls, &mut unsent, &mut out).unwrap(), StoppedBy::Empty);
        assert!(out.is_empty() && out.memory() >= 100_000);
    }
}
