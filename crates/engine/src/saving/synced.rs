//! A file that is brought to the disk while it is written, so that its end has little left to do. Knows not what is in it.

use std::io::{self, IoSlice, Write};
use std::sync::Arc;
use tenon_journal::files::File;

/// Bytes after which what was written is brought to the disk.
const SYNC_EVERY: u64 = 4 << 20;

/// Whether a file is brought to the disk in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syncing {
    /// At the end only, which is whoever's who ends it.
    AtEnd,
    /// Every few MiB.
    Incremental,
}

impl Syncing {
    /// As a setting says it.
    pub(crate) fn incremental_if(incremental: bool) -> Syncing {
        if incremental { Syncing::Incremental } else { Syncing::AtEnd }
    }
}

/// Writes to a file.
pub(crate) struct Synced<F: File + ?Sized> {
    file: Arc<F>,
    syncing: Syncing,
    /// Bytes since it was last brought to the disk.
    unsynced: u64,
}

impl<F: File + ?Sized> Synced<F> {
    /// Writes behind the end of the file.
    pub(crate) fn new(file: Arc<F>, syncing: Syncing) -> Synced<F> {
        Synced { file, syncing, unsynced: 0 }
    }

    /// The file.
    pub(super) fn file(&self) -> &F {
        &self.file
    }
}

impl<F: File + ?Sized> Write for Synced<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(&[IoSlice::new(bytes)])?;
        self.unsynced += written as u64;
        if self.syncing == Syncing::Incremental && self.unsynced >= SYNC_EVERY {
            self.file.sync()?;
            self.unsynced = 0;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
