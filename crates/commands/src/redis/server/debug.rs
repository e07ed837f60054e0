//! DEBUG: what test suites use to look inside, where `enable-debug-command` lets them.

use super::debug_protocol::reply_type;
use super::debug_reload;
use super::digest::Digest;
use crate::redis::generic::object::{encoding_name, reference_count};
use crate::redis::help::{reply_help, wrong_form};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::config::{Access, parse_memory};
use tenon_engine::context::{Deadline, ServerCx};
use tenon_engine::ds::glob::{Case, glob};
use tenon_engine::errors::CmdError;
use tenon_engine::persist::rdb;
use tenon_engine::store::entry::NewValue;
use tenon_engine::store::keyspace::Keyspace;
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

/// Looks inside.
pub static DEBUG: Command = Command {
    name: "DEBUG",
    group: Group::Server,
    syntax: "subcommand [argument [argument ...]]",
    summary: "A container for debugging commands.",
    complexity: "Depends on subcommand.",
    since: "1.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: Flags::ADMIN.or(Flags::NO_SCRIPT).or(Flags::LOADING).or(Flags::STALE),
    run: Run::Server(debug),
};

type Handler = fn(&mut ServerCx<'_>, &Args<'_>, &mut Reply<'_>) -> Result<(), CmdError>;

/// What follows DEBUG. As in Redis these are no commands of their own: COMMAND does not list them.
struct Subcommand {
    name: &'static str,
    /// Fewest and most arguments, DEBUG and the name counted.
    args: (usize, usize),
    /// Lines of HELP, its own name first.
    help: &'static [&'static str],
    run: Handler,
}

static SUBCOMMANDS: &[Subcommand] = &[
    Subcommand {
        name: "DIGEST",
        args: (2, 2),
        help: &["DIGEST", "    Output a hex signature representing the current DB content."],
        run: digest,
    },
    Subcommand {
        name: "DIGEST-VALUE",
        args: (2, usize::MAX),
        help: &[
            "DIGEST-VALUE <key> [<key> ...]",
            "    Output a hex signature of the values of all the specified keys.",
        ],
        run: digest_value,
    },
    Subcommand {
        name: "ERROR",
        args: (3, 3),
        help: &[
            "ERROR <string>",
            "    Return a Redis protocol error with <string> as message. Useful for clients",
            "    unit tests to simulate Redis errors.",
        ],
        run: error,
    },
    Subcommand {
        name: "FAULTS",
        args: (2, usize::MAX),
        help: &[
            "FAULTS [<operation>:<fault>[@<calls>] ...]",
            "    Have calls to the file system of snapshots and the append-only file fail, as in",
            "    write:enospc@3-5 or sync:slow=20. Without arguments none fails any more.",
        ],
        run: faults,
    },
    Subcommand {
        name: "HTSTATS",
        args: (3, 3),
        help: &["HTSTATS <dbid>", "    Return hash table statistics of the specified Redis database."],
        run: htstats,
    },
    Subcommand {
        name: "HTSTATS-KEY",
        args: (3, 3),
        help: &["HTSTATS-KEY <key>", "    Like HTSTATS but for the hash table stored at <key>'s value."],
        run: htstats_key,
    },
    Subcommand { name: "LOADAOF", args: (2, 2), help: debug_reload::LOADAOF_HELP, run: debug_reload::load_log },
    Subcommand {
        name: "LOG",
        args: (3, 3),
        help: &["LOG <message>", "    Write <message> to the server log."],
        run: log,
    },
    Subcommand {
        name: "OBJECT",
        args: (3, 3),
        help: &["OBJECT <key>", "    Show low level info about `key` and associated value."],
        run: object,
    },
    Subcommand {
        name: "PAUSE-CRON",
        args: (3, 3),
        help: &["PAUSE-CRON <0|1>", "    Stop periodic cron job processing."],
        run: pause_cron,
    },
    Subcommand {
        name: "POPULATE",
        args: (3, 5),
        help: &[
            "POPULATE <count> [<prefix>] [<size>]",
            "    Create <count> string keys named key:<num>. If <prefix> is specified then",
            "    it is used instead of the 'key' prefix.",
        ],
        run: populate,
    },
    Subcommand {
        name: "PROTOCOL",
        args: (3, 3),
        help: &[
            "PROTOCOL <type>",
            "    Reply with a test value of the specified type. <type> can be: string,",
            "    integer, double, bignum, null, array, set, map, attrib, push, verbatim,",
            "    true, false.",
        ],
        run: protocol,
    },
    Subcommand {
        name: "QUICKLIST-PACKED-THRESHOLD",
        args: (3, 3),
        help: &[
            "QUICKLIST-PACKED-THRESHOLD <size>",
            "    Sets the threshold for elements to be inserted as plain vs packed nodes",
            "    Default value is 1GB, allows values up to 4GB. Setting to 0 restores to default.",
        ],
        run: quicklist_packed_threshold,
    },
    Subcommand { name: "RELOAD", args: (2, usize::MAX), help: debug_reload::HELP, run: debug_reload::reload },
    Subcommand {
        name: "SET-ACTIVE-EXPIRE",
        args: (3, 3),
        help: &[
            "SET-ACTIVE-EXPIRE <0|1>",
            "    Setting it to 0 disables expiring keys in background when they are not",
            "    accessed (otherwise the Redis behavior). Setting it to 1 reenables back the",
            "    default.",
        ],
        run: set_active_expire,
    },
    // As in Redis, HELP does not name it.
    Subcommand { name: "SET-DISABLE-DENY-SCRIPTS", args: (3, 3), help: &[], run: set_disable_deny_scripts },
    Subcommand {
        name: "SLEEP",
        args: (3, 3),
        help: &["SLEEP <seconds>", "    Stop the server for <seconds>. Decimals allowed."],
        run: sleep,
    },
    Subcommand {
        name: "STRINGMATCH-LEN",
        args: (4, 4),
        help: &["STRINGMATCH-LEN <pattern> <string>", "    Tell whether the glob-like <pattern> matches <string>."],
        run: stringmatch_len,
    },
    Subcommand { name: "HELP", args: (2, 2), help: &[], run: help },
];

fn debug(cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let allowed = match cx.engine.config.enable_debug_command() {
        Access::Yes => true,
        Access::Local => cx.session.client.info.is_local(),
        Access::No => false,
    };
    if !allowed {
        return Err(CmdError::text(
            "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a \
             local connection, otherwise you need to set this option in the configuration file, and then restart the \
             server.",
        ));
    }
    let subcommand = SUBCOMMANDS.iter().find(|subcommand| {
        let (least, most) = subcommand.args;
        args.is(1, subcommand.name) && (least..=most).contains(&args.len())
    });
    let Some(subcommand) = subcommand else {
        return Err(wrong_form(args));
    };
    (subcommand.run)(cx, args, reply)
}

fn help(_cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let lines: Vec<&str> = SUBCOMMANDS.iter().flat_map(|subcommand| subcommand.help).copied().collect();
    reply_help(args, &lines, reply);
    Ok(())
}

/// Stops the server: no data is to be had meanwhile, and the worker that sleeps serves nobody.
fn sleep(cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let seconds = std::str::from_utf8(args.get(2)).ok().and_then(|text| text.parse::<f64>().ok());
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or(CmdError::NotFloat)?;
    cx.all_shards(|_, _, _| std::thread::sleep(duration));
    reply.simple("OK");
    Ok(())
}

fn object(cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let clock = cx.worker.clock.access;
    let engine = cx.engine;
    let line = cx.with_key(args.get(2), |key| {
        let entry = key.find_as_it_is().map(|slot| key.entry(slot)).ok_or(CmdError::NoSuchKey)?;
        let idle_seconds = if clock.notes_frequency() { 0 } else { clock.idle_seconds(entry.access()) };
        Ok::<_, CmdError>(format!(
            "Value at:{:p} refcount:{} encoding:{} serializedlength:{} lru:{} lru_seconds_idle:{idle_seconds}",
            entry.key().as_ptr(),
            reference_count(entry.value(), engine),
            encoding_name(entry),
            rdb::serialized_len(entry.value()),
            entry.access(),
        ))
    })?;
    reply.simple(&line);
    Ok(())
}

/// The switch behind the name of a subcommand: 0 or 1.
fn switch(args: &Args<'_>) -> Result<bool, CmdError> {
    match args.get(2) {
        b"0" => Ok(false),
        b"1" => Ok(true),
        _ => {
            let name = String::from_utf8_lossy(args.get(1)).to_uppercase();
            Err(CmdError::new(format!("ERR {name} takes 0 or 1")))
        }
    }
}

fn set_active_expire(cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    cx.engine.active_expiry.store(switch(args)?, Ordering::Relaxed);
    reply.simple("OK");
    Ok(())
}

/// Stops what ticks do of their own accord. Waits still end in time.
fn pause_cron(cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    cx.engine.housekeeping.store(!switch(args)?, Ordering::Relaxed);
    reply.simple("OK");
    Ok(())
}

fn set_disable_deny_scripts(cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    cx.engine.scripts_inspect.store(switch(args)?, Ordering::Relaxed);
    reply.simple("OK");
    Ok(())
}

fn digest(cx: &mut ServerCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let mut sums: Vec<(usize, Digest)> = Vec::new();
    cx.each_shard(|_, _, _, state| {
        for (database, keyspace) in state.shard.databases() {
            sums.resize(sums.len().max(database + 1), Default::default());
            let (keys, sum) = &mut sums[database];
            *keys += keyspace.len();
            each_key(keyspace, |entry| sum.add_key(entry));
        }
        true
    });
    let sums = sums.into_iter().enumerate().map(|(index, (keys, sum))| (index as u32, keys, sum));
    reply.simple(&Digest::of_databases(sums).hex());
    Ok(())
}

fn each_key(keyspace: &Keyspace, visit: impl FnMut(tenon_engine::store::entry::EntryRef<'_>)) {
    keyspace.scan(0, usize::MAX, visit);
}

fn digest_value(cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply.array(args.len() - 2);
    for key in args.from(2) {
        let digest = cx.with_key(key, |key| key.find().map(|slot| Digest::of_value(key.entry(slot))));
        reply.simple(&digest.unwrap_or_default().hex());
    }
    Ok(())
}

fn error(_cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    // As it is given, its first word being the code: no error of this command.
    reply.error(args.get(2));
    Ok(())
}

fn log(_cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    tracing::warn!("DEBUG LOG: {}", args.get(2).escape_ascii());
    reply.simple("OK");
    Ok(())
}

fn protocol(_cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply_type(args.get(2), reply)
}

fn stringmatch_len(_cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply.int(glob(args.get(2), args.get(3), Case::Sensitive).into());
    Ok(())
}

/// Plans failures of the log's file system, for tests; `enable-debug-command` has put one there that can fail.
fn faults(cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let words: Vec<String> = args.from(2).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    cx.engine.plan_faults(&words.join(" ")).map_err(|why| CmdError::new(format!("ERR {why}")))?;
    reply.simple("OK");
    Ok(())
}

fn htstats(cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let index = parse_i64(args.get(2)).ok_or(CmdError::NotInteger)?;
    let index = usize::try_from(index).ok().filter(|&index| index < cx.engine.config.databases() as usize);
    let index = index.ok_or(CmdError::text("ERR Out of range database"))?;
    let [mut shards, mut slots, mut keys, mut most, mut expiring, mut table_bytes, mut expiry_bytes] = [0; 7];
    cx.each_shard(|_, _, _, state| {
        let Some(keyspace) = state.shard.database(index).filter(|keyspace| !keyspace.is_empty()) else { return true };
        shards += 1;
        slots += keyspace.slots();
        keys += keyspace.len();
        most = usize::max(most, keyspace.len());
        expiring += keyspace.expiring();
        table_bytes += keyspace.overhead() - keyspace.expiry_overhead();
        expiry_bytes += keyspace.expiry_overhead();
        true
    });
    let all_shards: usize = cx.engine.shards.count();
    let load = if slots == 0 { 0.0 } else { keys as f64 / slots as f64 * 100.0 };
    let text = format!(
        "[Dictionary HT]\nTables of all shards:\n shards: {all_shards}\n shards with keys: {shards}\n table size: {slots}\n \
         number of elements: {keys} ({load:.2}%)\n most elements in a shard: {most}\n bytes: {table_bytes}\n\
         [Expires HT]\nIndexes of all shards:\n number of elements: {expiring}\n bytes: {expiry_bytes}\n"
    );
    reply.verbatim(b"txt", text.as_bytes());
    Ok(())
}

fn htstats_key(cx: &mut ServerCx<'_>, args: &Args<'_>, _reply: &mut Reply<'_>) -> Result<(), CmdError> {
    if cx.with_key(args.get(2), |key| key.find_as_it_is().is_none()) {
        return Err(CmdError::NoSuchKey);
    }
    // Strings are all there is.
    Err(CmdError::text("ERR The value stored at the specified key is not represented using an hash table"))
}

/// Elements of lists from so many bytes on have a node of their own from now on.
fn quicklist_packed_threshold(cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    const MAX: i64 = (1 << 32) - (1 << 20);
    let bytes = std::str::from_utf8(args.get(2)).ok().and_then(parse_memory).filter(|bytes| (0..=MAX).contains(bytes));
    let bytes =
        bytes.ok_or(CmdError::text("ERR argument must be a memory value bigger than 1 and smaller than 4gb"))?;
    cx.engine.list_alone_from.store(bytes as usize, Ordering::Relaxed);
    reply.simple("OK");
    Ok(())
}

fn populate(cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let number = |at: usize| match args.try_get(at).map(parse_i64) {
        None => Ok(None),
        Some(Some(number @ 0..)) => Ok(Some(number as u64)),
        Some(_) => Err(CmdError::MustBePositive),
    };
    let count = number(2)?.unwrap_or(0);
    let prefix = args.try_get(3).unwrap_or(b"key");
    let size = number(4)?.filter(|&size| size > 0);
    if size.is_some_and(|size| size > cx.engine.config.proto_max_bulk_len()) {
        return Err(CmdError::StringTooLong);
    }
    for index in 0..count {
        // This adds keys without being asked each time whether there is room for them.
        if cx.engine.memory_left() == 0 {
            return Err(CmdError::OutOfMemory);
        }
        let key = [prefix, format!(":{index}").as_bytes()].concat();
        let mut value = format!("value:{index}").into_bytes();
        if let Some(size) = size {
            value.resize(size as usize, 0);
        }
        cx.with_key(&key, |key| {
            if key.find().is_none() {
                let slot = key.store_in_slot(None, NewValue::Bytes(&value), Deadline::Clear, 0, None);
                let _appended = key.log_string(slot);
            }
        });
    }
    reply.simple("OK");
    Ok(())
}
