//! What lies on disk when the server starts: found before it listens, loaded while it does. Knows no record of a file.

use crate::progress::ProgressLine;
use crate::shutdown::Shutdown;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;
use tenon_engine::Engine;
use tenon_engine::config::Config;
use tenon_engine::loading::{Hands, LoadError, LoadReport, LoadingGuard, OnDuplicate, Past, RdbOptions};

/// A snapshot file that is there.
#[derive(Debug)]
pub(crate) struct Found {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl Found {
    /// Looks for the file that the settings name.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub(crate) fn look(config: &Config) -> Result<Option<Found>, String> {
        let path = PathBuf::from(&*config.dbfilename());
        let complain = |error: io::Error| format!("cannot load '{}': {error}", path.display());
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(complain(error)),
        };
        let metadata = file.metadata().map_err(complain)?;
        if !metadata.is_file() {
            return Err(complain(io::Error::other("it is no file")));
        }
        Ok(Some(Found { bytes: metadata.len(), path, file }))
    }

    /// How many bytes it has.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Loads it; `false` when a shutdown was asked for meanwhile.
    ///
    /// # Errors
    /// When it is not as it has to be.
    pub(crate) fn load(self, engine: &Engine, loading: &LoadingGuard<'_>, shutdown: &Shutdown) -> Result<bool, String> {
        let Found { path, file, bytes } = self;
        let name = path.display();
        tracing::info!("loading '{name}', {bytes} bytes");
        let started = Instant::now();
        let mut line = ProgressLine::new(&name.to_string(), bytes);
        // One that is no worker's: it cuts the file, and the workers do the rest.
        let mut worker = engine.worker(engine.workers());
        let options = RdbOptions {
            total_bytes: Some(bytes),
            past: Past::Drop,
            on_duplicate: OnDuplicate::Refuse,
            hands: Hands::Workers,
        };
        let loaded = engine.load_rdb(loading, &mut worker, file, &options, &mut |progress| {
            line.show(progress);
            if shutdown.is_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        line.end();
        match loaded {
            Ok((report, _)) => {
                tell(&name.to_string(), &report, started);
                Ok(true)
            }
            Err(LoadError::Cancelled) if shutdown.is_requested() => Ok(false),
            Err(error) => Err(format!(
                "cannot load '{name}': {error}. The file stays as it is; 'tenon check rdb {name}' looks through it"
            )),
        }
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
