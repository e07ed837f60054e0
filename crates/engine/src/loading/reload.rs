//! Loading a snapshot file or the log again into a server that runs (DEBUG RELOAD, DEBUG LOADAOF). Knows no command.

use super::{Hands, LoadError, LoadReport, LogReport, OnDuplicate, Past, RdbOptions};
use crate::context::ServerCx;
use crate::flush::{Emptied, Freeing};
use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;
use tenon_persist::aof::{Directory, OpenError};
use tenon_persist::rdb::file::{Cause, Doing, FileError};

/// What becomes of the data that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// It goes.
    Flush,
    /// It stays, and keys that the file has too do as is said.
    Keep(OnDuplicate),
}

/// How long the log may take to be written before it is read back as far as it is.
const WRITE_MAX: Duration = Duration::from_secs(10);

impl ServerCx<'_> {
    /// Loads a snapshot file. Other clients are told meanwhile that data is being loaded.
    ///
    /// # Errors
    /// When the file is not as it has to be; then what was loaded until then is there. When it is not there at all, or
    /// other data is being loaded, nothing has happened.
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
        let loading = engine.try_begin_loading(total_bytes).ok_or(LoadError::UnderWay)?;
        let partial = loading.data_is_partial();
        self.say_that_data_is_another();
        // As in Redis the log stays as it is.
        let was_muted = self.worker.record.mute(true);
        let on_duplicate = match before {
            Before::Flush => {
                let changes = self.worker.stats.all.changes.get();
                self.forget_all();
                // What is counted there is nobody's. Others may write meanwhile.
                engine.saving.leave_out(self.worker.stats.all.changes.get().saturating_sub(changes));
                // A command that had passed its gate already may put a key there once more.
                OnDuplicate::Replace
            }
            Before::Keep(on_duplicate) => on_duplicate,
        };
        // What is dropped here without a word in the log would come back with it.
        let past = if engine.is_journaling() { Past::Keep } else { Past::Drop };
        let options = RdbOptions { total_bytes: Some(total_bytes), past, on_duplicate, hands: Hands::Own };
        let go_on = &mut |_| ControlFlow::Continue(());
        let loaded = engine.load_rdb(&loading, self.worker, file, &options, go_on);
        self.worker.record.mute(was_muted);
        drop(partial);
        // Why the log cannot begin has been told.
        let _ = loading.end();
        loaded.map(|(report, _)| report)
    }

    /// Loads the log once more. Other clients are told meanwhile that data is being loaded.
    ///
    /// # Errors
    /// As `Engine::load_log`, and when other data is being loaded.
    ///
    /// # Panics
    /// As `reload`.
    pub fn reload_log(&mut self) -> Result<LogReport, LoadError> {
        assert!(self.held.is_none(), "nobody holds what the workers are to fill");
        let engine = self.engine;
        // What is in the log's buffer is read back, too.
        engine.sync_aof(WRITE_MAX);
        let manifest = engine.current_aof_names().manifest();
        let open = || Directory::open(engine.files(), engine.current_aof_names()).map_err(LoadError::Open);
        let directory = open()?;
        // Where Redis ends.
        if directory.is_empty() {
            let error = std::io::ErrorKind::NotFound.into();
            return Err(LoadError::Open(OpenError::ReadManifest { name: manifest, error }));
        }
        let total_bytes = directory.parts().map_err(LoadError::Open)?.iter().map(|part| part.size).sum();
        let loading = engine.try_begin_loading(total_bytes).ok_or(LoadError::UnderWay)?;
        let partial = loading.data_is_partial();
        let changes = engine.changes();
        self.forget_all();
        // Who had shards until now has appended: of a record that is longer than the log's buffer the file may have a part.
        engine.sync_aof(WRITE_MAX);
        let append_only = engine.append_only();
        // A rewrite may have gone on in another file since it was looked which there are, and at its end it deletes some.
        let list = append_only.as_ref().map(|append_only| append_only.hold_list());
        let go_on = &mut |_| ControlFlow::Continue(());
        let loaded = open().and_then(|directory| engine.load_log(&loading, self.worker, &directory, Hands::Own, go_on));
        engine.saving.leave_out(engine.changes().saturating_sub(changes));
        drop((list, partial));
        // Why the log cannot begin has been told.
        let _ = loading.end();
        loaded
    }

    /// Says in the log that what is written from here on was written to data that it may not have led to: an older file's, or
    /// without what others wrote while it was saved. Else a command that fails when it is read back stops the start.
    fn say_that_data_is_another(&mut self) {
        let (engine, database) = (self.engine, self.session.database);
        self.worker.record.omit();
        self.worker.record.end_withholding(engine.journal_number(), database);
        engine.commit(self.worker);
    }

    /// Lets all data and all libraries go, which is nobody's write: what comes in their place is the same.
    fn forget_all(&mut self) {
        let was_muted = self.worker.record.mute(true);
        self.empty(Emptied::All, Freeing::Background);
        self.engine.function_flush(self.worker);
        self.worker.record.mute(was_muted);
    }
}
