//! Replies that wait until what they confirm is on disk (`appendfsync always`). Knows neither log nor protocol.

use std::collections::VecDeque;
use tenon_wire::OutBuf;

/// What one connection has been answered and not been sent yet, in order, each piece with the position of the log that
/// has to be on disk first.
#[derive(Debug, Default)]
pub(super) struct Held {
    pieces: VecDeque<(u64, OutBuf)>,
    bytes: usize,
}

impl Held {
    /// Bytes that are held.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes over `out`, which is empty afterwards, until the log is on disk up to `position`. What was put earlier
    /// leaves earlier, so the position of a later piece is at least its.
    pub(super) fn put(&mut self, position: u64, out: &mut OutBuf) {
        self.bytes += out.len();
        let mut piece = OutBuf::new();
        piece.append(out);
        match self.pieces.back_mut() {
            Some((last, pieces)) if *last >= position => pieces.append(&mut piece),
            _ => self.pieces.push_back((position, piece)),
        }
    }

    /// Gives what may leave now that the log is on disk up to `durable`.
    pub(super) fn take(&mut self, durable: u64) -> OutBuf {
        let mut out = OutBuf::new();
        while let Some((position, piece)) = self.pieces.front_mut()
            && *position <= durable
        {
            self.bytes -= piece.len();
            out.append(piece);
            self.pieces.pop_front();
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(words: &str) -> OutBuf {
        let mut out = OutBuf::new();
        out.tail().extend_from_slice(words.as_bytes());
        out
    }

    fn taken(held: &mut Held, durable: u64) -> String {
        let mut out = held.take(durable);
        let mut all = Vec::new();
        while !out.is_empty() {
            let mut slices = [std::io::IoSlice::new(&[])];
            assert_eq!(out.io_slices(&mut slices), 1);
            all.extend_from_slice(&slices[0]);
            let len = slices[0].len();
            out.advance(len);
        }
        String::from_utf8(all).expect("it was text")
    }

    #[test]
    fn pieces_leave_in_order_as_the_log_gets_on_disk() {
        let mut held = Held::default();
        held.put(10, &mut text("a"));
        held.put(20, &mut text("b"));
        // A read behind two writes has nothing of its own to wait for, and waits for its turn.
        held.put(5, &mut text("c"));
        held.put(30, &mut text("d"));
        assert_eq!(held.bytes(), 4);
        assert_eq!(taken(&mut held, 9), "");
        assert_eq!(taken(&mut held, 19), "a");
        assert_eq!(held.bytes(), 3);
        assert_eq!(taken(&mut held, 20), "bc");
        assert_eq!(taken(&mut held, 100), "d");
        assert_eq!(held.bytes(), 0);
    }
}
