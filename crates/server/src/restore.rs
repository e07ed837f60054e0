//! What lies on disk when the server starts: found before it listens, loaded while it does. Knows no record of a file.

use crate::progress::ProgressLine;
use crate::shutdown::Shutdown;
use crate::whole_path::whole_path;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;
use tenon_engine::Engine;
use tenon_engine::loading::{
    Hands, LoadError, LoadReport, LoadingGuard, LogReport, OnDuplicate, Past, Progress, RdbOptions,
};
use tenon_engine::persist::aof::Directory;
use tenon_engine::worker::Worker;

/// What is there to be loaded.
pub(crate) enum Found {
    /// A snapshot file.
    Snapshot {
        /// The file.
        snapshot: SnapshotFile,
        /// Whether a log begins with what is in it.
        begins_log: bool,
    },
    /// The log, which may have no files yet; it is gone on with.
    Log {
        /// Its files.
        directory: Box<Directory>,
        /// How many bytes they have.
        bytes: u64,
        /// What its commands ran on, as far as it is known: the log began while the server ran, and has no base yet.
        beneath: Option<Box<SnapshotFile>>,
    },
}

/// A snapshot file that was opened.
pub(crate) struct SnapshotFile {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl Found {
    /// Looks for what the settings name: the log where there is to be one, else the snapshot file.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub(crate) fn look(engine: &Engine) -> Result<Option<Found>, String> {
        if engine.config.is_memcached() {
            // It begins with nothing, as memcached does, whatever another server has left where it is started.
            return Ok(None);
        }
        let path = PathBuf::from(&*engine.config.dbfilename());
        if !engine.config.appendonly() {
            warn_of_log_without_base(engine);
            return Ok(look_for_snapshot(path)?.map(|snapshot| Found::Snapshot { snapshot, begins_log: false }));
        }
        let directory = engine.open_log_to_load().map_err(|error| error.to_string())?;
        if directory.is_empty() {
            // Redis would begin with nothing, and save that over the file some time.
            if let Some(snapshot) = look_for_snapshot(path)? {
                return Ok(Some(Found::Snapshot { snapshot, begins_log: true }));
            }
            return Ok(Some(Found::Log { bytes: 0, directory: Box::new(directory), beneath: None }));
        }
        let beneath = if directory.lacks_every_base() { look_for_snapshot(path)?.map(Box::new) } else { None };
        let parts = directory.parts().map_err(|error| error.to_string())?;
        let (bytes, directory) = (parts.iter().map(|part| part.size).sum(), Box::new(directory));
        Ok(Some(Found::Log { bytes, directory, beneath }))
    }

    /// How many bytes it has.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Found::Snapshot { snapshot, .. } => snapshot.bytes,
            Found::Log { bytes, beneath, .. } => bytes + beneath.as_ref().map_or(0, |snapshot| snapshot.bytes),
        }
    }

    /// Loads it; `false` when a shutdown was asked for meanwhile.
    ///
    /// # Errors
    /// When it is not as it has to be.
    pub(crate) fn load(self, engine: &Engine, loading: &LoadingGuard<'_>, shutdown: &Shutdown) -> Result<bool, String> {
        // One that is no worker's: it cuts the file, and the workers do the rest.
        let mut worker = engine.worker(engine.workers());
        let may_go_on = || if shutdown.is_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        match self {
            Found::Snapshot { snapshot, begins_log } => {
                let config = &engine.config;
                if !begins_log && !config.save_on_exit() && config.save().is_empty() {
                    tracing::warn!(
                        "'{}' is loaded and will not be written: save is empty, appendonly and save-on-exit are off, so what \
                         is written from now on is gone at the end",
                        snapshot.path.display()
                    );
                }
                if snapshot.load(engine, loading, &mut worker, Past::Drop, &may_go_on)? {
                    // Where it was not to begin, it may have been told to by now.
                    return engine.begin_aof().map(|()| true);
                }
                Ok(false)
            }
            Found::Log { directory, bytes, beneath } => {
                // The log says when keys went, and may have let live on which are past their deadlines here.
                if let Some(snapshot) = beneath
                    && !snapshot.load(engine, loading, &mut worker, Past::Keep, &may_go_on)?
                {
                    return Ok(false);
                }
                let mut line = ProgressLine::new("append-only file", bytes);
                let progress = &mut |it: Progress| {
                    line.show(it);
                    may_go_on()
                };
                let loaded = load_log(engine, loading, &mut worker, &directory, progress);
                line.end();
                if loaded? {
                    if !engine.config.appendonly() {
                        tracing::warn!(
                            "the append-only file stays as it is: appendonly was switched off while it was loaded"
                        );
                        return Ok(true);
                    }
                    engine.open_aof(*directory).map_err(|error| error.to_string())?;
                    return Ok(true);
                }
                Ok(false)
            }
        }
    }
}

impl SnapshotFile {
    /// Loads it; `false` when it is not to go on.
    fn load(
        self,
        engine: &Engine,
        loading: &LoadingGuard<'_>,
        worker: &mut Worker,
        past: Past,
        may_go_on: &dyn Fn() -> ControlFlow<()>,
    ) -> Result<bool, String> {
        let mut line = ProgressLine::new(&self.path.display().to_string(), self.bytes);
        let progress = &mut |it: Progress| {
            line.show(it);
            may_go_on()
        };
        let loaded = load_snapshot(engine, loading, worker, self, past, progress);
        line.end();
        loaded
    }
}

/// What a server's log had that was killed before its base was there is loaded with `appendonly yes` alone.
fn warn_of_log_without_base(engine: &Engine) {
    let names = engine.aof_names();
    if let Some(bytes @ 1..) = Directory::baseless(&*engine.files(), &names) {
        tracing::warn!(
            "{} has {bytes} bytes of an append-only file that began while a server ran and has not got its base. They are not \
             loaded, as appendonly is off, and the next save deletes them: to have them, end this server without saving and \
             start it with appendonly yes",
            names.directory().display()
        );
    }
}

fn look_for_snapshot(path: PathBuf) -> Result<Option<SnapshotFile>, String> {
    let complain = |error: io::Error| format!("cannot load '{}': {error}", whole_path(&path).display());
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(complain(error)),
    };
    let metadata = file.metadata().map_err(complain)?;
    if !metadata.is_file() {
        return Err(complain(io::Error::other("it is no file")));
    }
    Ok(Some(SnapshotFile { bytes: metadata.len(), path, file }))
}

fn load_snapshot(
    engine: &Engine,
    loading: &LoadingGuard<'_>,
    worker: &mut Worker,
    snapshot: SnapshotFile,
    past: Past,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<bool, String> {
    let SnapshotFile { path, file, bytes } = snapshot;
    let name = path.display();
    tracing::info!("loading '{name}', {bytes} bytes");
    let started = Instant::now();
    let options =
        RdbOptions { total_bytes: Some(bytes), past, on_duplicate: OnDuplicate::Refuse, hands: Hands::Workers };
    match engine.load_rdb(loading, worker, file, &options, progress) {
        Ok((report, _)) => {
            tell(&name.to_string(), &report, started);
            Ok(true)
        }
        Err(LoadError::Cancelled) => Ok(false),
        Err(error) => Err(format!(
            "cannot load '{name}': {error}. The file stays as it is; 'tenon check rdb {}' looks through it",
            whole_path(&path).display()
        )),
    }
}

fn load_log(
    engine: &Engine,
    loading: &LoadingGuard<'_>,
    worker: &mut Worker,
    directory: &Directory,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<bool, String> {
    let started = Instant::now();
    match engine.load_log(loading, worker, directory, Hands::Workers, progress) {
        // There is none yet.
        Ok(LogReport { bytes: 0, .. }) => Ok(true),
        Ok(LogReport { bytes, keys, commands }) => {
            let elapsed = started.elapsed().as_secs_f64();
            tracing::info!(
                "DB loaded from append only file: {elapsed:.3} seconds, {bytes} bytes, {keys} keys of the base, {commands} \
                 commands"
            );
            Ok(true)
        }
        Err(LoadError::Cancelled) => Ok(false),
        Err(error) => Err(format!("cannot load the append-only file: {error}")),
    }
}

/// Says what was in a file.
fn tell(name: &str, report: &LoadReport, started: Instant) {
    let elapsed = started.elapsed().as_secs_f64();
    let LoadReport { keys, expired, empty, libraries, of_modules, bytes, .. } = report;
    tracing::info!(
        "loaded '{name}' in {elapsed:.3} s ({:.0} MB/s, {:.0} keys/s): keys loaded: {keys}, keys expired: {expired}, empty \
         keys skipped: {empty}, function libraries: {libraries}, of modules and skipped: {of_modules}",
        *bytes as f64 / 1e6 / elapsed.max(1e-9),
        *keys as f64 / elapsed.max(1e-9),
    );
    if !report.is_checked {
        tracing::info!("'{name}' was saved with checksum disabled: no check performed");
    }
}
