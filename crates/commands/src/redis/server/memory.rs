//! MEMORY: where the memory is. What there is to say of it is gathered by the engine.

use super::memory_doctor::diagnose;
use super::memory_largest::LARGEST;
use crate::redis::help::reply_help;
use crate::redis::help_command::help_command;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{KeyCx, ServerCx, SessionCx};
use tenon_engine::ds;
use tenon_engine::errors::CmdError;
use tenon_engine::info::{MemoryFacts, databases_at_a_glance, each_databases_tables};
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

/// The container.
pub static MEMORY: Command = Command {
    name: "MEMORY",
    group: Group::Server,
    syntax: "",
    summary: "A container for memory diagnostics commands.",
    complexity: "Depends on subcommand.",
    since: "4.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: Flags::NONE,
    run: Run::Container(&[&DOCTOR, &LARGEST, &MALLOC_STATS, &PURGE, &STATS, &USAGE, &HELP]),
};

/// Says what is wrong with the use of memory.
pub static DOCTOR: Command = Command {
    name: "MEMORY DOCTOR",
    group: Group::Server,
    syntax: "",
    summary: "Outputs a memory problems report.",
    complexity: "O(1)",
    since: "4.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: Flags::NONE,
    run: Run::Server(doctor),
};

fn doctor(cx: &mut ServerCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let (_, table_bytes) = databases_at_a_glance(cx);
    let facts = MemoryFacts::gather(cx.engine, table_bytes);
    reply.verbatim(b"txt", diagnose(&facts, cx.engine.clients.count() as u64).as_bytes());
    Ok(())
}

/// Says what the allocator counts by itself: nothing that could be asked for.
pub static MALLOC_STATS: Command = Command {
    name: "MEMORY MALLOC-STATS",
    group: Group::Server,
    syntax: "",
    summary: "Returns the allocator statistics.",
    complexity: "Depends on how much memory is allocated, could be slow",
    since: "4.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: Flags::NONE,
    run: Run::Session(malloc_stats),
};

fn malloc_stats(_cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply.bulk(b"Stats not supported for the current allocator");
    Ok(())
}

/// Gives free memory back.
pub static PURGE: Command = Command {
    name: "MEMORY PURGE",
    group: Group::Server,
    syntax: "",
    summary: "Asks the allocator to release memory.",
    complexity: "Depends on how much memory is allocated, could be slow",
    since: "4.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: Flags::NONE,
    run: Run::Session(purge),
};

fn purge(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    // This worker's empty slabs; the other workers do the same with theirs at each tick.
    ds::slab::collect();
    ds::extents::release();
    cx.engine.release_memory(cx.worker);
    reply.simple("OK");
    Ok(())
}

/// Says where the memory is.
pub static STATS: Command = Command {
    name: "MEMORY STATS",
    group: Group::Server,
    syntax: "",
    summary: "Returns details about memory usage.",
    complexity: "O(1)",
    since: "4.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: Flags::NONE,
    run: Run::Server(stats),
};

fn stats(cx: &mut ServerCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let (mut databases, table_bytes) = databases_at_a_glance(cx);
    each_databases_tables(cx, &mut databases, table_bytes);
    let facts = MemoryFacts::gather(cx.engine, table_bytes);
    let keys: u64 = databases.iter().map(|database| database.keys).sum();
    let map = reply.map_deferred();
    let mut pairs = 0;
    let mut int = |reply: &mut Reply<'_>, name: &str, value: u64| {
        pairs += 1;
        reply.bulk(name.as_bytes());
        reply.int(value as i64);
    };
    int(reply, "peak.allocated", facts.peak);
    int(reply, "total.allocated", facts.used);
    int(reply, "startup.allocated", facts.startup);
    int(reply, "replication.backlog", 0);
    int(reply, "clients.slaves", 0);
    int(reply, "clients.normal", facts.clients);
    int(reply, "cluster.links", 0);
    int(reply, "aof.buffer", 0);
    int(reply, "lua.caches", cx.engine.scripts.known.memory() as u64);
    int(reply, "functions.caches", cx.engine.scripts.libraries.memory() as u64);
    for (index, database) in databases.iter().enumerate().filter(|(_, database)| database.keys > 0) {
        pairs += 1;
        reply.bulk(format!("db.{index}").as_bytes());
        reply.map(2);
        reply.bulk(b"overhead.hashtable.main");
        reply.int(database.table_bytes as i64);
        reply.bulk(b"overhead.hashtable.expires");
        reply.int(database.expiry_bytes as i64);
    }
    let mut int = |reply: &mut Reply<'_>, name: &str, value: i64| {
        pairs += 1;
        reply.bulk(name.as_bytes());
        reply.int(value);
    };
    int(reply, "overhead.total", facts.overhead as i64);
    int(reply, "keys.count", keys as i64);
    let since_start = facts.used.saturating_sub(facts.startup);
    int(reply, "keys.bytes-per-key", since_start.checked_div(keys).unwrap_or(0) as i64);
    int(reply, "dataset.bytes", facts.dataset() as i64);
    let mut double = |reply: &mut Reply<'_>, name: &str, value: f64| {
        pairs += 1;
        reply.bulk(name.as_bytes());
        reply.double(value);
    };
    double(reply, "dataset.percentage", facts.dataset_percent());
    double(reply, "peak.percentage", facts.peak_percent());
    // What the allocator holds is what is in RAM, as in INFO memory.
    for (name, bytes) in [("allocated", facts.used), ("active", facts.resident), ("resident", facts.resident)] {
        pairs += 1;
        reply.bulk(format!("allocator.{name}").as_bytes());
        reply.int(bytes as i64);
    }
    let (ratio, bytes) = (facts.fragmentation_ratio(), facts.fragmentation_bytes());
    let fragmentation = [
        ("allocator-fragmentation.ratio", ratio, "allocator-fragmentation.bytes", bytes),
        ("allocator-rss.ratio", 1.0, "allocator-rss.bytes", 0),
        ("rss-overhead.ratio", 1.0, "rss-overhead.bytes", 0),
        ("fragmentation", ratio, "fragmentation.bytes", bytes),
    ];
    for (ratio_name, ratio, bytes_name, bytes) in fragmentation {
        pairs += 2;
        reply.bulk(ratio_name.as_bytes());
        reply.double(ratio);
        reply.bulk(bytes_name.as_bytes());
        reply.int(bytes);
    }
    reply.finish(map, pairs);
    Ok(())
}

/// Says how much memory a key takes.
pub static USAGE: Command = Command {
    name: "MEMORY USAGE",
    group: Group::Server,
    syntax: "key [SAMPLES count]",
    summary: "Estimates the memory usage of a key.",
    complexity: "O(N) where N is the number of samples.",
    since: "4.0.0",
    arity: Arity::AtLeast(3),
    keys: Keys::Specs(&[KeySpec::at(2, KeyFlags::LOOK)]),
    flags: Flags::READONLY,
    run: Run::Key(usage),
};

fn usage(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let mut at = 3;
    while at < args.len() {
        if !args.is(at, "SAMPLES") || at + 1 == args.len() {
            return Err(CmdError::Syntax);
        }
        // How many elements of a collection to look at; every value that there is now knows its size.
        let samples = parse_i64(args.get(at + 1)).ok_or(CmdError::NotInteger)?;
        if samples < 0 {
            return Err(CmdError::Syntax);
        }
        at += 2;
    }
    match cx.find() {
        Some(slot) => reply.int(cx.memory(slot) as i64),
        None => reply.null(),
    }
    Ok(Effect::Unchanged)
}

/// Explains the subcommands.
pub static HELP: Command = help_command("MEMORY HELP", Group::Server, "4.0.0", help);

fn help(_cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply_help(
        args,
        &[
            "DOCTOR",
            "    Return memory problems reports.",
            "LARGEST [COUNT <count>] [TYPE <type>]",
            "    Return the <count> keys (default: 10) that take most memory, of all databases,",
            "    as far as they take 16 kilobytes.",
            "MALLOC-STATS",
            "    Return internal statistics report from the memory allocator.",
            "PURGE",
            "    Attempt to purge dirty pages for reclamation by the allocator.",
            "STATS",
            "    Return information about the memory usage of the server.",
            "USAGE <key> [SAMPLES <count>]",
            "    Return memory in bytes used by <key> and its value. Nested values are",
            "    sampled up to <count> times (default: 5, 0 means sample all).",
        ],
        reply,
    );
    Ok(())
}
