//! Up to where a block of a stream is filled; Redis's rules. Knows no setting's name.

/// Bytes of a block where the settings allow more: a command works on a block at a time.
const BYTES_MAX: usize = 1024 * 1024;

/// The limits of a block, in what it would take in Redis: approximate trimming takes whole blocks, and is to take the
/// same entries here as there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// Bytes in Redis's listpack.
    pub(super) bytes: usize,
    /// Entries, the deleted ones counted.
    pub(super) entries: usize,
}

impl StreamLimits {
    /// The limits that `stream-node-max-bytes` and `stream-node-max-entries` stand for; 0 is no limit but the block's
    /// own: 1 MiB.
    pub fn new(bytes: usize, entries: usize) -> StreamLimits {
        let bytes = if bytes == 0 { BYTES_MAX } else { bytes.min(BYTES_MAX) };
        StreamLimits { bytes, entries: if entries == 0 { usize::MAX } else { entries } }
    }
}
