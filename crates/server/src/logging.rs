//! Where log lines go and which are written. Knows nothing of what is logged.

use crate::syslog::{self, Syslog};
use parking_lot::Mutex;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{self, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::Dispatch;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Registry, fmt, reload};

/// How much is logged, by Redis's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Everything, for finding a fault.
    Debug,
    /// Much that is rarely useful.
    Verbose,
    /// What an operator wants to know.
    Notice,
    /// Only what needs somebody to act.
    Warning,
    /// Nothing.
    Nothing,
}

/// How often it is looked whether the log file is still where it was.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Level {
    /// Redis's names and their levels, from most to least.
    pub const NAMES: [(&'static str, Level); 5] = [
        ("debug", Level::Debug),
        ("verbose", Level::Verbose),
        ("notice", Level::Notice),
        ("warning", Level::Warning),
        ("nothing", Level::Nothing),
    ];

    /// The level of this name, in any case.
    pub fn named(name: &str) -> Option<Level> {
        Level::NAMES.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, level)| level)
    }

    fn filter(self) -> LevelFilter {
        match self {
            Level::Debug => LevelFilter::TRACE,
            Level::Verbose => LevelFilter::DEBUG,
            Level::Notice => LevelFilter::INFO,
            Level::Warning => LevelFilter::WARN,
            Level::Nothing => LevelFilter::OFF,
        }
    }
}

/// How a log line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Time, level, message and fields, for people.
    Plain,
    /// One JSON object a line.
    Json,
}

/// What is logged, and where to.
#[derive(Clone, Debug)]
pub struct Options {
    /// How much.
    pub level: Level,
    /// In which form.
    pub format: Format,
    /// The file that lines are appended to; without one, standard output.
    pub file: Option<PathBuf>,
    /// The system's log, if lines go there as well.
    pub syslog: Option<syslog::Options>,
}

/// Changes the logging while it runs. Clones change the same.
#[derive(Clone, Debug)]
pub struct Logging {
    level: reload::Handle<LevelFilter, Registry>,
    sink: Sink,
    is_in_syslog: bool,
}

impl Logging {
    /// Starts logging for the whole process.
    ///
    /// # Errors
    /// When the file cannot be opened, or logging was started before.
    pub fn start(options: &Options) -> io::Result<Logging> {
        let (dispatch, logging) = build(options, LOOK_EVERY)?;
        tracing::dispatcher::set_global_default(dispatch).map_err(io::Error::other)?;
        Ok(logging)
    }

    /// Whether lines can be appended to a file, which is made if it is not there.
    ///
    /// # Errors
    /// When they cannot.
    pub fn can_append_to(path: &Path) -> io::Result<()> {
        open(path).map(drop)
    }

    /// Whether lines go to a file or to the system's log, and not to the standard output alone.
    pub fn has_own_place(&self) -> bool {
        self.sink.path.is_some() || self.is_in_syslog
    }

    /// Changes how much is logged.
    pub fn set_level(&self, level: Level) {
        // Fails only once logging has ended with the process.
        let _ = self.level.modify(|filter| *filter = level.filter());
    }

    /// Opens the log file anew, after it was renamed; else that is found within a second, with the next line. Does nothing
    /// for standard output.
    ///
    /// # Errors
    /// When it cannot be opened; lines go on into the old file.
    pub fn reopen(&self) -> io::Result<()> {
        let Some(path) = &self.sink.path else { return Ok(()) };
        *self.sink.file.lock() = Some(OpenFile::new(open(path)?)?);
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn build(options: &Options, look_every: Duration) -> io::Result<(Dispatch, Logging)> {
    let is_terminal = options.file.is_none() && io::IsTerminal::is_terminal(&io::stdout());
    // In full, since the working directory may change.
    let path = options.file.as_ref().map(path::absolute).transpose()?;
    let file = path.as_deref().map(open).transpose()?.map(OpenFile::new).transpose()?;
    let sink = Sink { path, file: Arc::new(Mutex::new(file)), look_every };
    let (filter, level) = reload::Layer::new(options.level.filter());
    let registry = tracing_subscriber::registry().with(filter);
    let layer = fmt::layer().with_writer(sink.clone()).with_ansi(is_terminal).with_target(false);
    let system = options.syslog.clone().map(Syslog::new);
    let dispatch = match options.format {
        Format::Plain => {
            // The daemon notes the time and the level of each line.
            let bare =
                |to| fmt::layer().with_writer(to).with_ansi(false).with_target(false).without_time().with_level(false);
            Dispatch::new(registry.with(layer).with(system.map(bare)))
        }
        Format::Json => {
            let json = |to| fmt::layer().with_writer(to).with_target(false).json().flatten_event(true);
            Dispatch::new(registry.with(layer.json().flatten_event(true)).with(system.map(json)))
        }
    };
    Ok((dispatch, Logging { level, sink, is_in_syslog: options.syslog.is_some() }))
}

/// The file, or standard output where there is none.
#[derive(Clone, Debug)]
struct Sink {
    path: Option<PathBuf>,
    file: Arc<Mutex<Option<OpenFile>>>,
    look_every: Duration,
}

/// A log file that is written to, and which one that is.
#[derive(Debug)]
struct OpenFile {
    file: File,
    device: u64,
    inode: u64,
    looked_at: Instant,
}

impl OpenFile {
    fn new(file: File) -> io::Result<OpenFile> {
        let metadata = file.metadata()?;
        Ok(OpenFile { file, device: metadata.dev(), inode: metadata.ino(), looked_at: Instant::now() })
    }

    /// Goes on in a new file where somebody has renamed or removed the old one: Redis opens the file for each line, and
    /// who rotates its log counts on that. Where there can be none, lines go on into the old one.
    fn follow(&mut self, path: &Path, look_every: Duration) {
        if self.looked_at.elapsed() < look_every {
            return;
        }
        self.looked_at = Instant::now();
        let is_there = path.metadata().is_ok_and(|it| (it.dev(), it.ino()) == (self.device, self.inode));
        if !is_there && let Ok(new) = open(path).and_then(OpenFile::new) {
            *self = new;
        }
    }
}

impl Write for &Sink {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match &mut *self.file.lock() {
            Some(open) => {
                if let Some(path) = &self.path {
                    open.follow(path, self.look_every);
                }
                open.file.write(line)
            }
            None => io::stdout().write(line),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut *self.file.lock() {
            Some(open) => open.file.flush(),
            None => io::stdout().flush(),
        }
    }
}

impl<'a> MakeWriter<'a> for Sink {
    type Writer = &'a Sink;

    fn make_writer(&'a self) -> &'a Sink {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    fn options(name: &str, format: Format) -> Options {
        let name = format!("tenon-logging-{}-{name}", std::process::id());
        Options { level: Level::Notice, format, file: Some(std::env::temp_dir().join(name)), syslog: None }
    }

    #[test]
    fn names_are_redis_names() {
        assert_eq!(Level::named("Warning"), Some(Level::Warning));
        assert_eq!(Level::named("info"), None);
    }

    #[test]
    fn the_level_can_change_and_the_file_be_rotated() {
        let options = options("rotated", Format::Plain);
        let path = options.file.clone().unwrap();
        let rotated = path.with_extension("1");
        let (dispatch, logging) = build(&options, Duration::MAX).unwrap();
        tracing::dispatcher::with_default(&dispatch, || {
            tracing::debug!("too fine");
            logging.set_level(Level::Verbose);
            tracing::debug!(clients = 3, "fine now");
            std::fs::rename(&path, &rotated).unwrap();
            tracing::info!("still into the renamed file");
            logging.reopen().unwrap();
            tracing::warn!("into the new file");
            logging.set_level(Level::Nothing);
            tracing::error!("nowhere");
        });
        let old = std::fs::read_to_string(&rotated).unwrap();
        let new = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&rotated).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(!old.contains("too fine") && old.contains("fine now clients=3") && old.contains("still"), "{old}");
        assert_eq!(new.lines().count(), 1, "{new}");
        assert!(new.contains("WARN into the new file"), "{new}");
    }

    #[test]
    fn a_file_that_was_renamed_or_removed_is_written_anew() {
        let options = options("followed", Format::Plain);
        let path = options.file.clone().unwrap();
        let rotated = path.with_extension("1");
        let (dispatch, _logging) = build(&options, Duration::ZERO).unwrap();
        tracing::dispatcher::with_default(&dispatch, || {
            tracing::info!("one");
            std::fs::rename(&path, &rotated).unwrap();
            tracing::info!("two");
            tracing::info!("three");
            std::fs::remove_file(&path).unwrap();
            tracing::info!("four");
        });
        let [old, new] = [&rotated, &path].map(|path| std::fs::read_to_string(path).unwrap());
        std::fs::remove_file(&rotated).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(old.ends_with("one\n") && old.lines().count() == 1, "{old}");
        assert!(new.ends_with("four\n") && new.lines().count() == 1, "{new}");
    }

    #[test]
    fn json_is_one_object_a_line() {
        let options = options("json", Format::Json);
        let path = options.file.clone().unwrap();
        let (dispatch, _logging) = build(&options, Duration::MAX).unwrap();
        tracing::dispatcher::with_default(&dispatch, || tracing::info!(port = 6379, "a \"quoted\"\nword"));
        let line = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(line.lines().count(), 1, "{line}");
        assert!(line.starts_with('{') && line.ends_with("}\n"), "{line}");
        assert!(line.contains(r#""message":"a \"quoted\"\nword""#) && line.contains(r#""port":6379"#), "{line}");
    }

    #[test]
    fn the_systems_log_has_the_lines_by_level_and_whoever_listens() {
        let mut options = options("syslog", Format::Plain);
        let path = options.file.clone().unwrap();
        let socket = path.with_extension("socket");
        options.syslog = Some(syslog::Options { socket: socket.clone(), ident: "tenon-a".into(), facility: 19 });
        let listen = || {
            let _ = std::fs::remove_file(&socket);
            let daemon = UnixDatagram::bind(&socket).unwrap();
            daemon.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            daemon
        };
        let heard = |daemon: &UnixDatagram| {
            let mut line = [0; 1_024];
            let len = daemon.recv(&mut line).unwrap();
            String::from_utf8(line[..len].to_vec()).unwrap()
        };
        let (dispatch, _logging) = build(&options, Duration::MAX).unwrap();
        let (id, local3) = (std::process::id(), 19 << 3);
        tracing::dispatcher::with_default(&dispatch, || {
            tracing::info!("nobody listens");
            let daemon = listen();
            tracing::debug!("too fine");
            tracing::info!(clients = 3, "begun");
            tracing::warn!("careful");
            assert_eq!(heard(&daemon), format!("<{}>tenon-a[{id}]: begun clients=3", local3 + 5));
            assert_eq!(heard(&daemon), format!("<{}>tenon-a[{id}]: careful", local3 + 4));
            drop(daemon);
            let daemon = listen();
            tracing::error!("to the next daemon");
            assert_eq!(heard(&daemon), format!("<{}>tenon-a[{id}]: to the next daemon", local3 + 3));
        });
        let file = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(&socket).unwrap();
        assert_eq!(file.lines().count(), 4, "the file has them all: {file}");
    }
}
