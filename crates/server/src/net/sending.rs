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
const SEND_BYTES_PER_TURN: usize = 1024 * 1024;

/// An unsent rest up to this size is copied, so that the worker keeps its buffer and the connection holds no more than it needs.
const COPIED_REST_MAX: usize = 64 * 1024;

/// A worker's reply buffer that has grown past this is given back.
pub(super) const REPLY_BUFFER_KEPT: usize = 256 * 1024;

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

/// Sends from the front of `out` until something stops it.
pub(super) fn send_some(fd: &OwnedFd, out: &mut OutBuf) -> Result<StoppedBy, Errno> {
    // A little more than a turn's share leaves with it: another turn and two changes of interest cost more.
    let mut turn_left = if out.len() <= 2 * SEND_BYTES_PER_TURN { out.len() } else { SEND_BYTES_PER_TURN };
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

/// Encrypts and sends as much as the socket takes, or a turn's share of it; `unsent` is what is encrypted and waits.
pub(super) fn seal_and_send(fd: &OwnedFd, tls: &mut TlsSession, unsent: &mut OutBuf) -> Result<StoppedBy, Errno> {
    let mut turn_left = SEND_BYTES_PER_TURN;
    loop {
        // Encryption fails only when a connection has sent more than its key may be used for.
        tls.seal(unsent).map_err(|_| Errno::PROTO)?;
        let len = unsent.len();
        if len == 0 {
            return Ok(StoppedBy::Empty);
        }
        let stopped_by = send_some(fd, unsent)?;
        turn_left = turn_left.saturating_sub(len - unsent.len());
        if stopped_by != StoppedBy::Empty || turn_left == 0 {
            return Ok(stopped_by);
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
    let filled = out.io_slices(&mut slices);
    let fitting = fitting(&slices[..filled], bytes_max);
    if fitting.is_empty() {
        return send_piece(fd, &slices[0], bytes_max);
    }
    let asked = fitting.iter().map(|slice| slice.len()).sum();
    (asked, sendmsg(fd, fitting, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL))
}

/// The leading slices that together are within `bytes_max`.
fn fitting<'a, 'b>(slices: &'a [IoSlice<'b>], mut bytes_max: usize) -> &'a [IoSlice<'b>] {
    let count = slices
        .iter()
        .take_while(|slice| {
            let fits = slice.len() <= bytes_max;
            bytes_max = bytes_max.saturating_sub(slice.len());
            fits
        })
        .count();
    &slices[..count]
}

/// Moves `out` behind `unsent` and leaves it empty, with its buffer unless much is in it.
pub(super) fn keep_rest(unsent: &mut OutBuf, out: &mut OutBuf) {
    match out.contiguous() {
        Some(rest) if rest.len() <= COPIED_REST_MAX => {
            if unsent.tail().len() > COPIED_REST_MAX {
                // A tail is freed only when all of it is sent, so a client that is always a little behind would make
                // it grow without end: begin another.
                let mut copy = OutBuf::new();
                copy.tail().extend_from_slice(rest);
                unsent.append(&mut copy);
            } else {
                unsent.tail().extend_from_slice(rest);
            }
            out.clear();
        }
        _ => unsent.append(out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

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
    fn fitting_stops_at_the_bound() {
        let pieces = [[0_u8; 10]; 3];
        let slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        assert_eq!(fitting(&slices, 9).len(), 0);
        assert_eq!(fitting(&slices, 20).len(), 2);
        assert_eq!(fitting(&slices, 29).len(), 2);
        assert_eq!(fitting(&slices, 30).len(), 3);
    }
}
