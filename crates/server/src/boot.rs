//! From the command line to a server that runs, and to its end. Knows no protocol.

use crate::allocator;
use crate::banner::{Facts, banner};
use crate::check;
use crate::leftovers;
use crate::logging::{Format, Logging, Options as LogOptions};
use crate::net::{self, FrontEnd};
use crate::open_files::{OpenFiles, TooFew, raise_for};
use crate::process::{self, CannotBecome, PidFile};
use crate::reconfigure::{Outside, datagrams, level_of, listens, needs};
use crate::restore::Found;
use crate::service::Tenon;
use crate::shutdown::Shutdown;
use crate::signals::{self, Signal};
use crate::supervisor::Supervisor;
use crate::syslog;
use crate::tls::Tls;
use parking_lot::Mutex;
use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use tenon_engine::Engine;
use tenon_engine::allocator::Allocator;
use tenon_engine::clients::Message;
use tenon_engine::config::{
    self, Config, EndWords, Invocation, IoChoice, LogFormat, Machine, Supervisor as Supervised, reservation_limit,
};
use tenon_engine::engine::named_commands;
use tenon_engine::saving::{Ending, OnFailure};

/// Does what the command line says; the exit code is 0 when that was done and another when the server could not
/// start.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    if let Some((first, rest)) = args.split_first()
        && first == check::WORD
    {
        return check::run(rest);
    }
    let words = args.clone();
    match config::parse(args, Machine::detect(), &mut io::stdin()) {
        Ok(Invocation::Help(text)) => say(&text),
        Ok(Invocation::Version) => say(&format!("Tenon {}\n", env!("CARGO_PKG_VERSION"))),
        Ok(Invocation::Run(config)) => match start(*config, &words) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(Failure { text, exit_code }) => {
                complain(&text);
                ExitCode::from(exit_code)
            }
        },
        Err(error) => {
            complain(&error.to_string());
            ExitCode::from(error.exit_code())
        }
    }
}

fn say(text: &str) -> ExitCode {
    // Whoever asked has gone away when this fails; nobody is left to tell.
    let _ = io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

fn complain(error: &str) {
    let _ = writeln!(io::stderr(), "tenon: {error}");
}

/// Why the server could not start.
struct Failure {
    text: String,
    exit_code: u8,
}

impl From<String> for Failure {
    fn from(text: String) -> Failure {
        Failure { text, exit_code: 1 }
    }
}

/// The limit of what a process may reserve is warned of below so many times `maxmemory`: of 400 MB to 2 GB servers had 10 to 36 % in use
/// when it was reached.
const RESERVED_TIMES: u64 = 8;

/// How long who asks for the end waits at most until nobody listens any more, which mostly takes less than a millisecond.
const DEAF_AFTER: Duration = Duration::from_millis(100);

/// How often it is looked, at the end, whether that has come.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// How long scripts go on at the end before the operator is told of them.
const TELLS_AFTER: Duration = Duration::from_secs(1);

/// memcached's exit code where an address cannot be listened on, or another user not be become: `EX_OSERR`.
const MEMCACHED_SYSTEM_REFUSES: u8 = 71;
/// And where there is no user of the name, `EX_NOUSER`.
const MEMCACHED_NO_USER: u8 = 67;

/// Runs the server here, or has it run in the background; tells whether that went well.
fn start(config: Config, words: &[OsString]) -> Result<bool, Failure> {
    let supervisor = match config.supervised() {
        Supervised::Systemd | Supervised::Auto => Supervisor::of_environment(),
        Supervised::Upstart | Supervised::No => Supervisor::none(),
    };
    // As with Redis, whoever is supervised stays where its supervisor has started it.
    if config.daemonize() && !supervisor.is_there() {
        // Behind the word for memcached a file of its options may stand.
        let first = words.get(usize::from(config.is_memcached()));
        if words.iter().any(|word| word == "-") || first.is_some_and(|word| !can_be_read_again(word)) {
            let text = "daemonize: what comes from the standard input or a pipe cannot be read again in the background";
            return Err(text.to_owned().into());
        }
        // In the background there is nobody to be told of these.
        can_work_in(&config)?;
        if process::go_to_background(words)? {
            return Ok(true);
        }
    }
    serve(config, &supervisor)
}

/// Whether a word where a file may stand is none, or one that is the same to the process in the background.
fn can_be_read_again(word: &OsString) -> bool {
    let path = Path::new(word);
    let is_a_process_own = ["/dev/fd", "/dev/stdin", "/proc"].iter().any(|root| path.starts_with(root));
    word.to_string_lossy().starts_with('-') || !is_a_process_own && path.metadata().is_ok_and(|it| it.is_file())
}

/// Whether the directory is there and lets this user in, where that matters, and the log file can be written: by this user, where it is not to become another, whose file
/// it has to be.
fn can_work_in(config: &Config) -> Result<(), String> {
    let (dir, file) = (config.dir(), config.logfile());
    let directory = Path::new(&*dir);
    // What it holds need not be known to it.
    let way_in = directory.join(".").metadata().map_err(|error| cannot_work_in(&dir, &error));
    // As when it serves.
    if !config.is_memcached() {
        way_in?;
    }
    if file.is_empty() || !config.run_as().is_empty() {
        return Ok(());
    }
    Logging::can_append_to(&directory.join(&*file)).map_err(|error| cannot_log_to(&file, &error))
}

fn cannot_work_in(dir: &str, error: &io::Error) -> String {
    format!("cannot work in dir '{dir}': {error}")
}

fn cannot_log_to(file: &str, error: &io::Error) -> String {
    format!("cannot log to '{file}': {error}")
}

/// Has the system allow as many open files as `maxclients` takes, or lowers it to what the system allows; tells of that.
fn fit_maxclients(config: &Config) -> Result<Option<TooFew>, String> {
    match raise_for(config.maxclients(), needs(config)) {
        OpenFiles::Enough => Ok(None),
        OpenFiles::Only(too_few @ TooFew { max_clients: 0, .. }) => {
            Err(format!("too few for a single client: {too_few}"))
        }
        OpenFiles::Only(too_few) => {
            config.lower_maxclients(too_few.max_clients);
            Ok(Some(too_few))
        }
    }
}

/// Runs the server until it is told to end; tells whether it ended well.
fn serve(config: Config, supervisor: &Supervisor) -> Result<bool, Failure> {
    let works = std::env::set_current_dir(&*config.dir()).map_err(|error| cannot_work_in(&config.dir(), &error));
    // memcached needs no file there, and may be where its user is not let in.
    if !config.is_memcached() {
        works?;
    }
    signals::outlive_long_files().map_err(|error| format!("signals cannot be had: {error}"))?;
    if config.disable_thp() {
        // Where that cannot be had they stay as they are.
        let _ = rustix::thread::disable_transparent_huge_pages(true);
    }
    // What only root may do comes first, and what starts threads comes after.
    let lowered = fit_maxclients(&config)?;
    if !config.run_as().is_empty() {
        process::become_user(&config.run_as()).map_err(|error| {
            let of_memcached = match error {
                CannotBecome::NoSuchUser(_) => MEMCACHED_NO_USER,
                CannotBecome::NotAllowed(..) => MEMCACHED_SYSTEM_REFUSES,
            };
            let exit_code = if config.is_memcached() { of_memcached } else { 1 };
            Failure { text: error.to_string(), exit_code }
        })?;
    }
    let logging = start_logging(&config)?;
    serve_logged(config, lowered, &logging, supervisor).inspect_err(|failure| {
        // Else the terminal has it, where the log's lines are, too.
        if logging.has_own_place() {
            tracing::error!("{}", failure.text);
        }
    })
}

/// The same, where a log is at hand.
fn serve_logged(
    config: Config,
    lowered: Option<TooFew>,
    logging: &Logging,
    supervisor: &Supervisor,
) -> Result<bool, Failure> {
    let shutdown = Shutdown::new();
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    let limit = config.maxmemory();
    if (1..1 << 20).contains(&limit) {
        tracing::warn!(
            "WARNING: You specified a maxmemory value that is less than 1MB (current value is {limit} bytes). Are you sure this \
             is what you really want?"
        );
    }
    if let Some(bytes) = reservation_limit().filter(|&bytes| limit == 0 || bytes / RESERVED_TIMES < limit) {
        tracing::warn!(
            "WARNING: the process's address space is limited to {bytes} bytes (ulimit -v or -d). What is reserved counts there, so \
             memory may run out, and the server with it, long before maxmemory: limit it by a cgroup instead."
        );
    }
    if !tenon_engine::snapshot::may_yield() {
        tracing::warn!(
            "the filter of system calls (systemd's SystemCallFilter) may end the server for sched_setattr or setpriority: while \
             it saves, clients have to share the cores with that"
        );
    }
    if let Some(too_few) = lowered {
        tracing::warn!("for maxclients {too_few}: maxclients is now {}", too_few.max_clients);
    }
    let commands = named_commands(tenon_commands::ALL, &config)?;
    let engine = Engine::with_table(config, commands, random_seed()).share();
    engine.load_users()?;
    engine.load_password_file()?;
    let hook = (shutdown.clone(), Arc::downgrade(&engine));
    engine.set_shutdown(Box::new(move || {
        let grace = hook.1.upgrade().map_or(Duration::ZERO, |engine| grace(&engine.config));
        hook.0.request(grace);
        hook.0.wait_until_deaf(DEAF_AFTER);
    }));
    // `main` chose it.
    engine.allocator.get_or_init(|| Allocator {
        name: "mimalloc",
        collect: allocator::collect,
        release: allocator::release,
    });
    if supervisor.is_there() {
        engine.supervisor.get_or_init(|| "systemd");
    }
    let tls = Tls::new(Arc::clone(&engine.tls_counts));
    tls.configure(&engine.config)?;
    let outside = Outside::new(&engine, logging.clone(), tls.clone());
    let hook = outside.clone();
    engine.set_config_hook(Box::new(move || hook.begin()));
    let (of_engine, of_logging) = (Arc::clone(&engine), logging.clone());
    let (is_ending, insisting) = (Arc::clone(&engine), Arc::clone(&engine));
    signals::listen(
        if engine.config.is_memcached() { signals::Like::Memcached } else { signals::Like::Redis },
        shutdown.clone(),
        move |signal| end_for(&of_engine, signal),
        move || is_ending.is_ending_in_background(),
        move || insisting.drop_unfinished_save(),
        move || match of_logging.reopen() {
            Ok(()) => tracing::info!("SIGHUP: the log file was opened anew"),
            Err(error) => tracing::warn!("SIGHUP: the log file cannot be opened anew: {error}"),
        },
    )
    .map_err(|e| format!("cannot listen to signals: {e}"))?;
    let options = net::Options {
        workers: engine.workers(),
        listens: listens(&engine.config),
        datagrams: datagrams(&engine.config),
        backlog: i32::try_from(engine.config.tcp_backlog()).unwrap_or(i32::MAX),
        io: match engine.config.io() {
            IoChoice::Auto => net::Wanted::Auto,
            IoChoice::Epoll => net::Wanted::Epoll,
            IoChoice::IoUring => net::Wanted::IoUring,
        },
    };
    if options.datagrams.is_some() && engine.config.memcached_auth() {
        return Err("memcached-udp-port: UDP has no way to say who one is, as memcached-auth wants".to_owned().into());
    }
    // Before anything is done to files: where another server has the address they may be that server's.
    let sockets = net::Sockets::open(&options).map_err(|error| {
        let exit_code = if engine.config.is_memcached() { MEMCACHED_SYSTEM_REFUSES } else { 1 };
        Failure { text: error.to_string(), exit_code }
    })?;
    if sockets.is_empty() {
        let nothing = if !options.listens.is_empty() {
            "nothing to listen on: this machine has none of the addresses that bind names"
        } else if engine.config.bind().is_empty() {
            "nothing to listen on: bind names no address and no UNIX socket is set"
        } else {
            "nothing to listen on: both ports are 0 and no UNIX socket is set"
        };
        // memcached says nothing of it, and runs.
        if !engine.config.is_memcached() {
            return Err(nothing.to_owned().into());
        }
        tracing::warn!("{nothing}");
    }
    if !engine.config.is_memcached() {
        leftovers::remove(Path::new(&*engine.config.dir()));
    }
    let found = Found::look(&engine)?;
    // Before the first client can ask for data that is not there yet.
    let to_load = found.map(|found| (engine.begin_loading(found.bytes()), found));
    let service = Tenon::new(Arc::clone(&engine), tls);
    let running = sockets.serve(&options, service, &shutdown).map_err(|error| error.to_string())?;
    engine.multiplexer.get_or_init(|| running.way().name());
    outside.listens_through(running.listening().clone());
    let _pid_file = write_pid_file(&engine.config.pidfile());
    write_port_file(&engine.config.memcached_port_file(), running.bound());
    let kept_by = kept_by(&engine.config);
    let text = banner(&facts(&engine, running.bound(), &kept_by));
    if engine.config.logfile().is_empty() && engine.config.log_format() == LogFormat::Plain {
        say(&text);
    } else {
        text.lines().for_each(|line| tracing::info!("{line}"));
    }
    // What is not whole is never shown: where loading came to no end, it does not end before the server does.
    let (mut broken_off, has_loaded) = (None, to_load.is_some());
    if let Some((loading, found)) = to_load {
        supervisor.tell_status("Loading data");
        let loaded = match found.load(&engine, &loading, &shutdown) {
            Ok(true) => loading.end(),
            Ok(false) => {
                broken_off = Some(loading);
                Ok(())
            }
            Err(error) => {
                broken_off = Some(loading);
                Err(error)
            }
        };
        if let Err(error) = loaded {
            shutdown.request(Duration::ZERO);
            running.wait();
            return Err(error.into());
        }
    }
    if broken_off.is_none() {
        tracing::info!("ready to accept connections");
        supervisor.tell_ready();
    }
    if has_loaded {
        rest_until(&engine, &shutdown);
    } else {
        shutdown.wait();
    }
    let threads = await_threads(&engine, running);
    supervisor.tell_stopping();
    engine.drop_unfinished_save();
    let (well, closed) = match threads {
        // Nobody writes any more.
        Threads::Ended { well } => (well, engine.close_aof()),
        Threads::LeftBehind => (true, engine.leave_aof()),
    };
    if let Err(error) = &closed {
        tracing::error!("the end of the append-only file could not be written: {error}");
    }
    tracing::info!(
        "ended; {}",
        match (well, &closed) {
            (false, _) => "a thread could not go on",
            (true, Err(_)) => "the append-only file lacks its end",
            (true, Ok(())) => "good bye",
        }
    );
    let well = well && closed.is_ok();
    Ok(well)
}

/// Looks after the memory that this thread has allocated while it loaded data, until the end is asked for: of what the workers
/// have freed of it nothing would come back, and nothing of it be packed.
fn rest_until(engine: &Engine, shutdown: &Shutdown) {
    let mut worker = engine.worker(engine.workers());
    while !shutdown.wait_for(engine.rest(&mut worker)) {}
}

/// What has become of the threads that serve.
enum Threads {
    /// They have ended; whether none of them by a panic.
    Ended { well: bool },
    /// Some go on with scripts, and nothing of that is to be kept.
    LeftBehind,
}

/// Waits for the end of the threads that serve, which was asked for, or until the process may end in the middle of what they do.
fn await_threads(engine: &Engine, running: net::Running<Message>) -> Threads {
    // Whoever gets it waits.
    let running = Arc::new(Mutex::new(Some(running)));
    let (ended, has_ended) = mpsc::channel();
    let wait = {
        let running = Arc::clone(&running);
        move || running.lock().take().is_some_and(net::Running::wait)
    };
    let waiter = std::thread::Builder::new().name("tenon-waiter".to_owned()).spawn(move || _ = ended.send(wait()));
    if let Err(error) = waiter {
        tracing::warn!("no thread can be had for the end, which waits for every script: {error}");
        return Threads::Ended { well: running.lock().take().is_some_and(net::Running::wait) };
    }
    let tells_at = Instant::now() + TELLS_AFTER;
    let mut has_told = false;
    loop {
        match has_ended.recv_timeout(LOOK_AGAIN) {
            Ok(well) => return Threads::Ended { well },
            Err(RecvTimeoutError::Disconnected) => return Threads::Ended { well: false },
            Err(RecvTimeoutError::Timeout) if engine.may_leave_scripts() => return Threads::LeftBehind,
            Err(RecvTimeoutError::Timeout) => {
                if !has_told && Instant::now() >= tells_at {
                    engine.tell_of_scripts_awaited("; a second SIGINT ends it at once, without them");
                    has_told = true;
                }
            }
        }
    }
}

/// The file that tells the process's number, if there is to be one. As with Redis and memcached the server runs without it
/// where it cannot be written.
fn write_pid_file(path: &str) -> Option<PidFile> {
    if path.is_empty() {
        return None;
    }
    match PidFile::write(Path::new(path)) {
        Ok(file) => Some(file),
        Err(error) => {
            tracing::warn!("the process's number cannot be written to '{path}': {error}");
            None
        }
    }
}

/// The file that tells the ports of memcached clients, if there is to be one; as with memcached the server runs without it
/// where it cannot be written. It appears whole, and stays.
fn write_port_file(path: &str, bound: &[net::Bound]) {
    if path.is_empty() {
        return;
    }
    let unfinished = format!("{path}.lck");
    let written = std::fs::write(&unfinished, port_lines(bound)).and_then(|()| std::fs::rename(&unfinished, path));
    if let Err(error) = written {
        tracing::warn!("the ports cannot be written to '{path}': {error}");
    }
}

/// A line for each address of memcached clients that has a port, in memcached's words.
fn port_lines(bound: &[net::Bound]) -> String {
    let line = |bound: &net::Bound| {
        let net::Address::Inet(address) = &bound.address else { return None };
        let transport = if bound.takes == net::Takes::Datagrams { "UDP" } else { "TCP" };
        let family = if address.is_ipv4() { "INET" } else { "INET6" };
        Some(format!("{transport} {family}: {}\n", address.port()))
    };
    bound.iter().filter(|bound| bound.front_end == FrontEnd::Memcached).filter_map(line).collect()
}

/// Ends the server for a signal; after saving, where that is wanted and works. Another signal is heard meanwhile.
fn end_for(engine: &Engine, signal: Signal) {
    let words = match signal {
        Signal::Interrupt => engine.config.shutdown_on_sigint(),
        Signal::Terminate => engine.config.shutdown_on_sigterm(),
    };
    let ending = match words {
        EndWords { save: true, .. } => Ending::Save,
        EndWords { nosave: true, .. } => Ending::NoSave,
        _ => Ending::AsConfigured,
    };
    let on_failure = if words.force { OnFailure::EndAnyway } else { OnFailure::GoOn };
    if engine.end_in_background(ending, on_failure).is_err() {
        // No client waits for this thread.
        engine.end(ending, on_failure);
    }
}

fn grace(config: &Config) -> Duration {
    Duration::from_secs(u64::from(config.shutdown_timeout()))
}

fn start_logging(config: &Config) -> Result<Logging, String> {
    let file = config.logfile();
    let options = LogOptions {
        level: level_of(config),
        format: match config.log_format() {
            LogFormat::Plain => Format::Plain,
            LogFormat::Json => Format::Json,
        },
        file: (!file.is_empty()).then(|| PathBuf::from(&*file)),
        syslog: config.syslog_enabled().then(|| syslog::Options {
            socket: syslog::SOCKET.into(),
            ident: config.syslog_ident().to_string(),
            facility: config.syslog_facility().number(),
        }),
    };
    Logging::start(&options).map_err(|error| cannot_log_to(&file, &error))
}

/// A seed that nobody outside can guess: the standard library takes it from the system.
fn random_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// What keeps the data over a restart; empty for nothing.
fn kept_by(config: &Config) -> String {
    let shown = |name: &str| config.get(&[name.as_bytes()]).pop().map(|(_, value)| value).unwrap_or_default();
    let log = config.appendonly().then(|| format!("log, appendfsync {}", shown("appendfsync")));
    let snapshots = (!config.save().is_empty()).then(|| format!("snapshots, save {}", shown("save")));
    let at_end = config.save_on_exit().then(|| "a snapshot at the end (save-on-exit)".to_owned());
    log.into_iter().chain(snapshots).chain(at_end).collect::<Vec<_>>().join("; ")
}

fn facts<'a>(engine: &'a Engine, bound: &'a [net::Bound], kept_by: &'a str) -> Facts<'a> {
    let config = &engine.config;
    let limit = config.maxmemory();
    let of_machine = config.machine().memory_for_data();
    Facts {
        version: env!("CARGO_PKG_VERSION"),
        pid: std::process::id(),
        bound,
        workers: engine.workers(),
        memory_limit_bytes: (limit > 0).then_some(limit),
        memory_limit_source: if of_machine == Some(limit) { "80 % of what the process may use" } else { "maxmemory" },
        policy: config.maxmemory_policy().name(),
        kept_by,
        config_sources: config.sources(),
    }
}
