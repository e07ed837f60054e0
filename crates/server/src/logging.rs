//! Where log lines go and which are written. Knows nothing of what is logged.

use crate::syslog::{self, Syslog};
use parking_lot::Mutex;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
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
}

impl Logging {
    /// Starts logging for the whole process.
    ///
    /// # Errors
    /// When the file cannot be opened, or logging was started before.
    pub fn start(options: &Options) -> io::Result<Logging> {
        let (dispatch, logging) = build(options)?;
        tracing::dispatcher::set_global_default(dispatch).map_err(io::Error::other)?;
        Ok(logging)
    }

    /// Changes how much is logged.
    pub fn set_level(&self, level: Level) {
        // Fails only once logging has ended with the process.
        let _ = self.level.modify(|filter| *filter = level.filter());
    }

    /// Opens the log file anew, after it was renamed. Does nothing for standard output.
    ///
    /// # Errors
    /// When it cannot be opened; lines go on into the old file.
    pub fn reopen(&self) -> io::Result<()> {
        let Some(path) = &self.sink.path else { return Ok(()) };
        let file = open(path)?;
        *self.sink.file.lock() = Some(file);
        Ok(())
    }
}

fn open(path: &PathBuf) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn build(options: &Options) -> io::Result<(Dispatch, Logging)> {
    let file = options.file.as_ref().map(open).transpose()?;
    let is_terminal = options.file.is_none() && io::IsTerminal::is_terminal(&io::stdout());
    let sink = Sink { path: options.file.clone(), file: Arc::new(Mutex::new(file)) };
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
    Ok((dispatch, Logging { level, sink }))
}

/// The file, or standard output where there is none.
#[derive(Clone, Debug)]
struct Sink {
    path: Option<PathBuf>,
    file: Arc<Mutex<Option<File>>>,
}

impl Write for &Sink {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match &mut *self.file.lock() {
            Some(file) => file.write(line),
            None => io::stdout().write(line),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut *self.file.lock() {
            Some(file) => file.flush(),
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
    use std::time::Duration;

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
        let (dispatch, logging) = build(&options).unwrap();
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
    fn json_is_one_object_a_line() {
        let options = options("json", Format::Json);
        let path = options.file.clone().unwrap();
        let (dispatch, _logging) = build(&options).unwrap();
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
        let (dispatch, _logging) = build(&options).unwrap();
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
