//! Loading a snapshot file again into a server that runs (DEBUG RELOAD). Knows no command.

use super::{Hands, LoadError, LoadReport, OnDuplicate, Past, RdbOptions};
use crate::context::ServerCx;
use crate::flush::{Emptied, Freeing};
use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;
use tenon_persist::rdb::file::{Cause, Doing, FileError};

/// What becomes of the data that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// It goes.
    Flush,
    /// It stays, and keys that the file has too do as is said.
    Keep(OnDuplicate),
}

impl ServerCx<'_> {
    /// Loads a snapshot file. Other clients are told meanwhile that data is being loaded.
    ///
    /// # Errors
    /// When the file is not as it has to be; then what was loaded until then is there. When it is not there at all,
    /// nothing has happened.
    ///
    /// # Panics
    /// When shards are held: others are to take part.
    pub fn reload(&mut self, path: &Path, before: Before) -> Result<LoadReport, LoadError> {
        assert!(self.held.is_none(), "nobody holds what the workers are to fill");
        let cannot_read = |error| {
            let cause = Cause::Io(error);
            LoadError::File(FileError { offset: 0, doing: Doing::Start, key: None, database: 0, cause })
        };
        let file = File::open(path).map_err(cannot_read)?;
        let total_bytes = file.metadata().map_err(cannot_read)?.len();
        let engine = self.engine;
        let loading = engine.begin_loading(total_bytes);
        // As in Redis the log stays as it is: it has led to this data already.
        let was_muted = self.worker.record.mute(true);
        let on_duplicate = match before {
            Before::Flush => {
                self.empty(Emptied::All, Freeing::Background);
                engine.function_flush(self.worker);
                // A command that had passed its gate already may put a key there once more.
                OnDuplicate::Replace
            }
            Before::Keep(on_duplicate) => on_duplicate,
        };
        let options = RdbOptions { total_bytes: Some(total_bytes), past: Past::Drop, on_duplicate, hands: Hands::Own };
        let go_on = &mut |_| ControlFlow::Continue(());
        let loaded = engine.load_rdb(&loading, self.worker, file, &options, go_on);
        self.worker.record.mute(was_muted);
        loaded.map(|(report, _)| report)
    }
}
