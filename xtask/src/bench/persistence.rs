//! What keeping data costs: the log under each policy, a snapshot of many keys, and loading it. Knows the servers' settings
//! by Redis's names, not their files.

use super::case::SET;
use super::context::{CONNECTIONS, Context};
use super::load::{self, Load, Outcome, Plan, Protocol, Until};
use super::log_floor::{self, Written};
use super::measure;
use super::placement::Placement;
use super::report::{Table, figure, median};
use super::resp::Resp;
use super::servers::{Family, Program, Server, Start};
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What is lost at most, by Redis's words; without a log at all first.
pub const POLICIES: [&str; 4] = ["none", "no", "everysec", "always"];
/// Where a log can lie in memory, and how much room one run takes there.
const MEMORY: &str = "/dev/shm";
const MEMORY_ROOM: u64 = 8 << 30;
/// Requests in flight on each connection.
const PIPELINES: [usize; 2] = [1, 16];
/// How long one load lasts during a snapshot, before it is asked whether that is done, and before it.
const SLICE: Duration = Duration::from_millis(500);
/// How often memory is read during a snapshot.
const MEMORY_PERIOD: Duration = Duration::from_millis(100);

/// One run's figures, or the medians of several.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Operations a second.
    pub throughput: f64,
    /// Microseconds.
    pub p99_us: f64,
    /// Microseconds.
    pub p999_us: f64,
    /// CPU microseconds of the server an operation.
    pub server_cpu_us: f64,
    /// Of these, what the log's writes and syncs take alone on that disk; of servers that count them.
    pub floor_us: Option<f64>,
}

/// What a log lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Where the build directory lies.
    Disk,
    /// Files in memory: what is left is what the log costs apart from the disk.
    Memory,
}

/// SET under one policy.
#[derive(Debug)]
pub struct Row {
    /// The server's name.
    pub server: &'static str,
    /// `appendfsync`, or `none` for no log.
    pub policy: &'static str,
    /// What the log lies on.
    pub medium: Medium,
    /// Requests in flight on each connection.
    pub pipeline: usize,
    /// Medians.
    pub figures: Figures,
}

/// SET with a snapshot going on, beside the same without it.
#[derive(Debug)]
pub struct SnapshotRow {
    /// The server's name.
    pub server: &'static str,
    /// Keys that are saved.
    pub keys: u64,
    /// Requests in flight on each connection.
    pub pipeline: usize,
    /// Throughput during the save over that without.
    pub throughput: f64,
    /// The same of the p99.9.
    pub p999: f64,
    /// Resident bytes at most during the save over those before it, both with whatever processes the server has made.
    pub memory: f64,
    /// How long the save took under this load, in seconds.
    pub save_seconds: f64,
    /// How long it takes to load what was saved, in seconds.
    pub load_seconds: f64,
    /// Bytes of the file.
    pub file_bytes: f64,
}

/// Measures SET under every policy, servers and policies in turn.
pub fn run(context: &mut Context) -> Result<Vec<Row>> {
    let names: Vec<usize> =
        PIPELINES.into_iter().filter(|pipeline| context.wants(&format!("persistence/log/p{pipeline}"))).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let placement = Placement::for_threads(1, 1)?;
    let programs = persistent(context);
    let mut rows = Vec::new();
    for pipeline in names {
        let name = format!("persistence/log/p{pipeline}");
        eprintln!("{name}");
        let mut servers = Vec::new();
        for program in &programs {
            for (policy, medium) in places(program) {
                let data = match medium {
                    Medium::Disk => Data::new(&context.scratch, &format!("{}-{policy}", program.name))?,
                    // Others may have theirs there.
                    Medium::Memory => {
                        Data::new(Path::new(MEMORY), &format!("tenon-bench-{}-{policy}", std::process::id()))?
                    }
                };
                let server = start(context, program, &placement, &data.path, &log_settings(policy))?;
                load::fill(address(&server)?, Protocol::Resp, SET, context.scale.keys, &placement.client)?;
                servers.push((server, policy, medium, data, Vec::new()));
            }
        }
        for round in 0..context.scale.rounds {
            for (server, policy, _, data, figures) in &mut servers {
                let data = (*policy != "none").then_some(&*data);
                match measured(server, data, context, &placement, pipeline, round) {
                    Ok(taken) => figures.push(taken),
                    Err(error) => context.failed(&name, server.name, &error),
                }
            }
        }
        rows.extend(servers.into_iter().filter_map(|(server, policy, medium, _, figures)| {
            Some(Row { server: server.name, policy, medium, pipeline, figures: Figures::median(&figures)? })
        }));
    }
    Ok(rows)
}

/// Measures SET while everything is saved, then how long the file takes to load.
pub fn run_snapshot(context: &mut Context) -> Result<Vec<SnapshotRow>> {
    let placement = Placement::for_threads(1, 1)?;
    let mut rows = Vec::new();
    for pipeline in PIPELINES {
        let name = format!("persistence/snapshot/p{pipeline}");
        if !context.wants(&name) {
            continue;
        }
        eprintln!("{name}");
        for program in persistent(context) {
            match snapshot(context, &program, &placement, pipeline) {
                Ok(row) => rows.push(row),
                Err(error) => context.failed(&name, program.name, &error),
            }
        }
    }
    Ok(rows)
}

/// The servers that keep data.
fn persistent(context: &Context) -> Vec<Program> {
    context.programs.iter().filter(|program| program.family != Family::Memcached).cloned().collect()
}

/// The policies, and where the log lies with each: on the disk, and Tenon's beside that in memory, where there is room.
fn places(program: &Program) -> Vec<(&'static str, Medium)> {
    let mut places = POLICIES.map(|policy| (policy, Medium::Disk)).to_vec();
    let has_room = rustix::fs::statvfs(MEMORY).is_ok_and(|memory| memory.f_bavail * memory.f_frsize >= MEMORY_ROOM);
    if program.family == Family::Tenon && has_room {
        places.extend(POLICIES[1..].iter().map(|policy| (*policy, Medium::Memory)));
    }
    places
}

fn log_settings(policy: &str) -> Vec<String> {
    let words = match policy {
        "none" => "--appendonly no".to_owned(),
        policy => format!("--appendonly yes --appendfsync {policy} --auto-aof-rewrite-percentage 0"),
    };
    words.split(' ').map(str::to_owned).collect()
}

fn start(
    context: &Context,
    program: &Program,
    placement: &Placement,
    data: &Path,
    settings: &[String],
) -> Result<Server> {
    let dir = data.to_str().context("a path of the build directory is text")?;
    let settings: Vec<&str> = ["--dir", dir].into_iter().chain(settings.iter().map(String::as_str)).collect();
    let start = Start {
        settings: &settings,
        patience: Duration::from_secs(60),
        ..Start::new(1, &placement.server, &context.scratch)
    };
    program.start(&start).with_context(|| format!("{} {}", program.name, settings.join(" ")))
}

fn address(server: &Server) -> Result<std::net::SocketAddr> {
    server.address(Protocol::Resp).context("it speaks RESP")
}

/// SET of random keys.
fn set_load<'a>(
    server: &Server,
    keys: u64,
    placement: &'a Placement,
    pipeline: usize,
    lasts: Duration,
    seed: u64,
) -> Result<Load<'a>> {
    Ok(Load {
        address: address(server)?,
        protocol: Protocol::Resp,
        operation: SET,
        plan: Plan::AtRandom { keys, seed, until: Until::Elapsed(lasts) },
        connections: CONNECTIONS,
        threads: 1,
        pipeline,
        cores: &placement.client,
    })
}

/// One round. `data` is where the server has its log, if it keeps one.
fn measured(
    server: &Server,
    data: Option<&Data>,
    context: &Context,
    placement: &Placement,
    pipeline: usize,
    round: u64,
) -> Result<Figures> {
    let (keys, scale) = (context.scale.keys, &context.scale);
    load::run(&set_load(server, keys, placement, pipeline, scale.warm_up, 2 * round)?)?;
    let mut admin = Resp::connect(address(server)?)?;
    let written_before = written(&mut admin);
    let before = measure::cpu_time(server.pid())?;
    let outcome = load::run(&set_load(server, keys, placement, pipeline, scale.measured, 2 * round + 1)?)?;
    let mut figures = Figures::of(&outcome, measure::cpu_time(server.pid())?.saturating_sub(before));
    if let (Some(data), Some(before), Some(after)) = (data, written_before, written(&mut admin)) {
        let floor = log_floor::cpu_time(&data.path, after.since(before), &placement.server)?;
        figures.floor_us = Some(floor.as_secs_f64() * 1e6 / outcome.operations as f64);
    }
    Ok(figures)
}

/// What a server has written to its log; nothing of one that does not say.
fn written(admin: &mut Resp) -> Option<Written> {
    let mut count = |field| admin.info("persistence", field).ok()?.parse().ok();
    Some(Written { bytes: count("aof_current_size")?, writes: count("aof_writes")?, syncs: count("aof_fsyncs")? })
}

fn snapshot(context: &Context, program: &Program, placement: &Placement, pipeline: usize) -> Result<SnapshotRow> {
    let keys = context.scale.keys_snapshot;
    let data = Data::new(&context.scratch, &format!("{}-snapshot", program.name))?;
    let settings = log_settings("none");
    let server = start(context, program, placement, &data.path, &settings)?;
    load::fill(address(&server)?, Protocol::Resp, SET, keys, &placement.client)?;
    std::thread::sleep(context.scale.settle);

    let quiet = quiet_load(&server, keys, placement, pipeline, context.scale.measured)?;
    let mut admin = Resp::connect(address(&server)?)?;
    let resident = measure::resident_bytes(server.pid())?;
    let watch = MemoryWatch::default();
    let (during, save_seconds) = std::thread::scope(|scope| {
        scope.spawn(|| watch.run(server.pid()));
        let during = load_during_save(&server, &mut admin, keys, placement, pipeline);
        watch.done.store(true, Ordering::Relaxed);
        during
    })?;
    let throughput = |outcome: &Outcome| outcome.operations as f64 / outcome.elapsed.as_secs_f64();
    let p999 = |outcome: &Outcome| outcome.latency.value_at_quantile(0.999) as f64;
    let most = watch.most.load(Ordering::Relaxed) as f64;
    drop(server);

    let file = data.path.join("dump.rdb");
    let file_bytes = std::fs::metadata(&file).with_context(|| file.display().to_string())?.len() as f64;
    let begin = Instant::now();
    let server = start(context, program, placement, &data.path, &settings)?;
    let mut admin = Resp::connect(address(&server)?)?;
    while admin.ask_integer(&["DBSIZE"])? != Some(keys as i64) {
        if begin.elapsed() > Duration::from_secs(120) {
            bail!("after two minutes not all keys are there");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(SnapshotRow {
        server: program.name,
        keys,
        pipeline,
        throughput: throughput(&during) / throughput(&quiet),
        p999: p999(&during) / p999(&quiet),
        memory: most / resident as f64,
        save_seconds,
        load_seconds: begin.elapsed().as_secs_f64(),
        file_bytes,
    })
}

/// Writes as [`load_during_save`] does, in parts as long, for as long as this: what a part's beginning costs is in both.
fn quiet_load(
    server: &Server,
    keys: u64,
    placement: &Placement,
    pipeline: usize,
    at_least: Duration,
) -> Result<Outcome> {
    let slice = |seed| load::run(&set_load(server, keys, placement, pipeline, SLICE, seed)?);
    // The first one finds the caches cold, which none during a save does.
    slice(0)?;
    let begin = Instant::now();
    let mut all = slice(1)?;
    while begin.elapsed() < at_least {
        all = all.followed_by(slice(2 + begin.elapsed().as_nanos() as u64)?);
    }
    Ok(all)
}

/// Saves in the background and writes meanwhile; gives what the writing came to while the save went on, and how long it
/// took.
fn load_during_save(
    server: &Server,
    admin: &mut Resp,
    keys: u64,
    placement: &Placement,
    pipeline: usize,
) -> Result<(Outcome, f64)> {
    let begin = Instant::now();
    admin.send(&["BGSAVE"])?;
    admin.finish()?;
    let mut all: Option<Outcome> = None;
    loop {
        let slice =
            load::run(&set_load(server, keys, placement, pipeline, SLICE, 2 + begin.elapsed().as_nanos() as u64)?)?;
        let elapsed = begin.elapsed();
        let goes_on = admin.info("persistence", "rdb_bgsave_in_progress")? == "1";
        // The last part is only partly within the save, unless there is no other.
        all = match all {
            None => Some(slice),
            Some(before) if goes_on => Some(before.followed_by(slice)),
            Some(before) => return Ok((before, elapsed.as_secs_f64())),
        };
        if !goes_on {
            return Ok((all.context("there was a part")?, elapsed.as_secs_f64()));
        }
    }
}

/// Watches how much memory a process and its children take.
#[derive(Debug, Default)]
struct MemoryWatch {
    done: AtomicBool,
    most: AtomicU64,
}

impl MemoryWatch {
    fn run(&self, pid: u32) {
        while !self.done.load(Ordering::Relaxed) {
            // A child shares its parent's pages: proportional sizes count each page once. They are added up from all pages,
            // which takes a core for milliseconds; who is alone is asked for the kernel's own count, so that the watch
            // does not become part of what is watched.
            let children = measure::children(pid);
            let bytes = if children.is_empty() {
                measure::counted_resident_bytes(pid).unwrap_or(0)
            } else {
                let family = std::iter::once(pid).chain(children);
                family.filter_map(|pid| measure::proportional_bytes(pid).ok()).sum()
            };
            self.most.fetch_max(bytes, Ordering::Relaxed);
            std::thread::sleep(MEMORY_PERIOD);
        }
    }
}

/// A folder for a server's files, deleted when dropped.
#[derive(Debug)]
struct Data {
    path: PathBuf,
}

impl Data {
    fn new(scratch: &Path, name: &str) -> Result<Data> {
        let path = scratch.join(format!("data-{name}"));
        // One of an earlier run that was broken off would be loaded.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
        Ok(Data { path })
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        // What cannot be deleted is litter, not a failure.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

impl Figures {
    fn of(outcome: &Outcome, cpu: Duration) -> Figures {
        let quantile = |quantile| outcome.latency.value_at_quantile(quantile) as f64 / 1e3;
        Figures {
            throughput: outcome.operations as f64 / outcome.elapsed.as_secs_f64(),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
            server_cpu_us: cpu.as_secs_f64() * 1e6 / outcome.operations as f64,
            floor_us: None,
        }
    }

    /// Of each figure its own median; `None` of no run.
    fn median(runs: &[Figures]) -> Option<Figures> {
        let of = |field: fn(&Figures) -> f64| median(runs.iter().map(field));
        Some(Figures {
            throughput: of(|run| run.throughput)?,
            p99_us: of(|run| run.p99_us)?,
            p999_us: of(|run| run.p999_us)?,
            server_cpu_us: of(|run| run.server_cpu_us)?,
            floor_us: median(runs.iter().filter_map(|run| run.floor_us)),
        })
    }
}

/// The rows of the log as a table.
pub fn table(rows: &[Row]) -> Table {
    let columns = [
        "SET of 32 bytes",
        "server",
        "appendfsync",
        "log on",
        "op/s",
        "p99 us",
        "p99.9 us",
        "server CPU us/op",
        "CPU over none",
        "write and sync alone, us/op",
    ];
    let mut table = Table::new(&columns);
    for row in rows {
        let none =
            |other: &&Row| other.server == row.server && other.pipeline == row.pipeline && other.policy == "none";
        let over = rows.iter().find(none).map(|none| row.figures.server_cpu_us / none.figures.server_cpu_us);
        table.row([
            format!("pipeline {}", row.pipeline),
            row.server.to_owned(),
            row.policy.to_owned(),
            match row.medium {
                _ if row.policy == "none" => "–",
                Medium::Disk => "disk",
                Medium::Memory => "memory",
            }
            .to_owned(),
            figure(row.figures.throughput),
            figure(row.figures.p99_us),
            figure(row.figures.p999_us),
            figure(row.figures.server_cpu_us),
            over.map_or_else(|| "–".to_owned(), figure),
            row.figures.floor_us.map_or_else(|| "–".to_owned(), figure),
        ]);
    }
    table
}

/// The rows of snapshots as a table.
pub fn snapshot_table(rows: &[SnapshotRow]) -> Table {
    let columns = [
        "keys",
        "server",
        "pipeline",
        "throughput over quiet",
        "p99.9 over quiet",
        "memory over before",
        "save s",
        "load s",
        "load keys/s",
        "load MB/s",
    ];
    let mut table = Table::new(&columns);
    for row in rows {
        table.row([
            figure(row.keys as f64),
            row.server.to_owned(),
            row.pipeline.to_string(),
            figure(row.throughput),
            figure(row.p999),
            figure(row.memory),
            figure(row.save_seconds),
            figure(row.load_seconds),
            figure(row.keys as f64 / row.load_seconds),
            figure(row.file_bytes / 1e6 / row.load_seconds),
        ]);
    }
    table
}
