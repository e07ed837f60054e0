//! What a connection keeps of bytes that it could not work off yet. Knows no protocol.

use std::ops::Range;

/// Unused memory that a kept rest may hold on to beside twice its length, in bytes.
const SLACK: usize = 64 * 1024;

/// Cuts a buffer down to the bytes to be kept. A few that are left of very many do not hold on to the memory of all.
pub(crate) fn cut(mut buffer: Vec<u8>, keep: Range<usize>) -> Vec<u8> {
    buffer.truncate(keep.end);
    buffer.drain(..keep.start);
    if buffer.is_empty() {
        // The next bytes are most likely worked off where they lie.
        return Vec::new();
    }
    if buffer.capacity() > 2 * buffer.len() + SLACK {
        buffer.shrink_to_fit();
    }
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_holds_no_more_than_it_needs() {
        let rest = cut(vec![7; 1 << 20], 10..30);
        assert_eq!(rest, [7; 20]);
        assert!(rest.capacity() <= 40 + SLACK, "{} bytes are held for 20", rest.capacity());
        assert_eq!(cut(vec![7; 100], 100..100).capacity(), 0);
        // A command that is still growing keeps its room to grow.
        let growing = cut(Vec::from_iter(0..100), 0..100);
        assert_eq!(growing, Vec::from_iter(0..100));
    }
}
