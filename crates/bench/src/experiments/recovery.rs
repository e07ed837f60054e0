//! `recovery`: how long a server that was killed takes to answer again, and what it has lost.

use super::experiment::{Experiment, Figure, Plot, Scale};
use super::persistence::{MODES, can, kept, measured_on_disk, mode};
use super::plain::Stock;
use crate::machine::cpu::Used;
use crate::peers::{Persistence, Program, Server, Settings};
use crate::results::Case;
use crate::session::{Contender, Reading, Running, Session};
use crate::target::Protocol;
use anyhow::{Context, Result, bail};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};
use tenon_client::{Resp, Value};

const MODE: &str = "persistence";
const KEYS: &str = "keys";
const RECOVERED: Figure = Figure { name: "recovered_s", heading: "answers again after s" };
const CPU: Figure = Figure { name: "recovery_server_cpu_us", heading: "server CPU µs/key" };
const LOST: Figure = Figure { name: "lost_keys", heading: "keys lost" };

const READ: Figure = Figure { name: "read_back_keys", heading: "keys read back" };

/// Killed and started again.
pub static RECOVERY: Experiment = Experiment {
    name: "recovery",
    title: "After a crash",
    summary: "A server that keeps data is filled, and killed as soon as its last reply has come; with snapshots, the last \
              one is taken when nine tenths are stored, and a log holds every write, since none rewrites its own meanwhile. The \
              time until it answers again, its start included, with the CPU time of all its threads until then for each key that it \
              has, and the keys it has not. Every key is asked for afterwards: one with another value fails the run, as does one that a snapshot lacks, and as many must be there as DBSIZE says. \
              On disk is what its files take there when it is killed, with the room that is kept beyond their ends; what waits in shared memory to be written, as Tenon's log does, is not counted.",
    study: "what the memtier studies left out",
    databases: false,
    depends_on: &[],
    axes: &[MODE, KEYS],
    figures: &[RECOVERED, CPU, LOST, READ, Figure { name: "disk_mb", heading: "on disk MB" }],
    plots: &[Plot::Lines {
        title: "Time until the server answers again",
        x: KEYS,
        x_scale: Scale::Log,
        y: RECOVERED,
        y_scale: Scale::Log,
    }],
    published: &[],
    limits: &[],
    rivals: None,
    run,
};

fn run(session: &mut Session) -> Result<()> {
    measured_on_disk(session)?;
    let keys = session.keys() as f64;
    let counts = session.scaled(vec![keys / 10.0, keys], vec![keys / 100.0, keys / 10.0, keys]);
    let mut cases = Vec::new();
    for mode in MODES.iter().filter(|mode| **mode != Persistence::Off) {
        cases
            .extend(counts.iter().map(|keys| Case::new().word(MODE, mode.name()).number(KEYS, keys.max(10.0).floor())));
    }
    let contenders = session.started();
    let applies = |session: &Session, contender: &Contender, case: &Case| can(session, contender, mode(case));
    session.grid(&contenders, &cases, applies, |session, contender, case, _| match contender {
        Contender::Program(program) => crash(session, program, case),
        Contender::External(_) => bail!("only a server that the bench has started is killed"),
    })
}

fn crash(session: &Session, program: &Program, case: &Case) -> Result<Reading> {
    let keys = case.quantity(KEYS).context("the case has its keys")? as u64;
    // A rewrite would be under way at a time of its own choosing, and its process outlives the killed one.
    let settings = Settings { persistence: mode(case), rewrites_log: false, ..session.settings() };
    let server = session.start(&Contender::Program(program.clone()), &settings)?;
    let in_snapshot = if settings.persistence == Persistence::Rdb { keys * 9 / 10 } else { 0 };
    if settings.persistence == Persistence::Rdb {
        Stock::short(in_snapshot).fill(session, &server)?;
        let mut resp = connect(&server)?;
        match resp.call(&[b"SAVE"])? {
            Value::Simple(ok) if ok == b"OK" => {}
            other => bail!("SAVE was answered by {other:?}"),
        }
    }
    let stock = Stock::short(keys);
    session.fill_and_kill(&server, keys, &stock.values, stock.lengths)?;
    let Running::Started(server) = server else { bail!("the bench has started the server itself") };
    let directory = server.kill()?;
    let disk_bytes = bytes_in(&directory)?;
    let begin = Instant::now();
    let server = Running::Started(Box::new(Server::start_in(program, &settings, directory)?));
    let recovered = begin.elapsed();
    let used = server.pid().map(Used::of).transpose()?;
    let counted = match connect(&server)?.call(&[b"DBSIZE"])? {
        Value::Int(counted) => u64::try_from(counted).context("DBSIZE is below 0")?,
        other => bail!("DBSIZE was answered by {other:?}"),
    };
    let left = read_all(session, &server, keys, in_snapshot)?;
    if counted != left {
        bail!("{left} of the {keys} keys that were stored are there, and DBSIZE is {counted}");
    }
    let reading = Reading::default()
        .figure(RECOVERED.name, recovered.as_secs_f64())
        .known(CPU.name, used.map(|used| used.total.as_secs_f64() * 1e6 / left.max(1) as f64))
        .figure("lost_keys", (keys - left) as f64)
        .figure(READ.name, left as f64)
        .figure("disk_mb", disk_bytes as f64 / 1e6);
    kept(session, reading)
}

/// Asks for every key that was stored: how many are there, each with its value. None of the first ones, which a snapshot was
/// taken of, may be missing.
fn read_all(session: &Session, server: &Running, keys: u64, in_snapshot: u64) -> Result<u64> {
    let stock = Stock::short(keys);
    let look = |keys| session.look_for(server, Protocol::Resp, keys, &stock.values, stock.lengths);
    let mut there = 0;
    if in_snapshot > 0 {
        let found = look(0..in_snapshot)?;
        if found.misses > 0 {
            bail!("{} of the {in_snapshot} keys that were stored before the snapshot are lost", found.misses);
        }
        there += found.hits;
    }
    Ok(there + look(in_snapshot..keys)?.hits)
}

fn connect(server: &Running) -> Result<Resp> {
    let target = server.target(Protocol::Resp).context("a server that keeps data speaks RESP")?;
    Ok(Resp::over(target.connect(Some(Duration::from_secs(600)))?))
}

/// What `stat` counts a file's blocks in, whatever its file system has.
const BLOCK_LEN: u64 = 512;

/// What a server's files take on the disk, but its log.
fn bytes_in(directory: &std::path::Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let data = entry.metadata()?;
        if data.is_dir() {
            bytes += bytes_in(&entry.path())?;
        } else if entry.file_name() != "log" {
            // Room that is kept beyond a file's end is taken, too, and holes are not.
            bytes += data.blocks() * BLOCK_LEN;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FallocateFlags, fallocate};

    #[test]
    fn what_a_file_takes_is_counted_and_not_how_long_it_is() {
        let directory = std::env::temp_dir().join(format!("tenon-bench-disk-{}", std::process::id()));
        std::fs::create_dir_all(directory.join("below")).expect("a directory");
        let file = std::fs::File::create(directory.join("below/data")).expect("a file");
        std::fs::write(directory.join("log"), vec![b'x'; 1 << 22]).expect("a file");
        file.set_len(1 << 30).expect("it grows");
        assert!(bytes_in(&directory).expect("it is there") < 1 << 20, "a hole takes nothing");
        file.set_len(0).expect("it shrinks");
        // Not every file system can.
        if fallocate(&file, FallocateFlags::KEEP_SIZE, 0, 1 << 20).is_ok() {
            assert!((1 << 20..1 << 21).contains(&bytes_in(&directory).expect("it is there")));
        }
        std::fs::remove_dir_all(directory).expect("it can go");
    }
}
