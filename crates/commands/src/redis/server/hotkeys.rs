//! HOTKEYS: which keys cost most time and traffic. The counting is the engine's.

use crate::redis::help::reply_help;
use crate::redis::help_command::help_command;
use std::sync::Arc;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::hotkeys::HotKeysRequest;
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

const FLAGS: Flags = Flags::ADMIN.or(Flags::NO_SCRIPT);

/// Keys shown without COUNT.
const COUNT: usize = 10;
/// Kinds of cost that can be counted.
const METRICS_MAX: i64 = 2;
/// The last slot of a cluster: without one, all slots are this server's.
const LAST_SLOT: i64 = 16_383;

/// The container.
pub static HOTKEYS: Command = Command {
    name: "HOTKEYS",
    group: Group::Server,
    syntax: "",
    summary: "A container for hotkeys tracking commands.",
    complexity: "Depends on subcommand.",
    since: "8.6.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: Flags::NONE,
    run: Run::Container(&[&START, &STOP, &GET, &RESET, &HELP]),
};

/// Begins to count.
pub static START: Command = Command {
    name: "HOTKEYS START",
    group: Group::Server,
    syntax: "METRICS count [CPU] [NET] [COUNT k] [DURATION seconds] [SAMPLE ratio] [SLOTS count slot [slot ...]]",
    summary: "Starts hotkeys tracking.",
    complexity: "O(1)",
    since: "8.6.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(start),
};

fn start(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    const IN_PROGRESS: CmdError = CmdError::text("ERR hotkey tracking session already in progress");
    let now_ms = cx.worker.clock.now_ms;
    // Before the arguments, as in Redis.
    if cx.engine.hotkeys.is_active(now_ms) {
        return Err(IN_PROGRESS);
    }
    let request = parse_request(args)?;
    if !cx.engine.start_hot_keys(request, now_ms) {
        return Err(IN_PROGRESS);
    }
    reply.simple("OK");
    Ok(())
}

fn parse_request(args: &Args<'_>) -> Result<HotKeysRequest, CmdError> {
    if args.len() < 4 || !args.is(2, "METRICS") {
        return Err(CmdError::text("ERR METRICS parameter is required"));
    }
    let metrics = parse_i64(args.get(3)).filter(|count| (1..=METRICS_MAX).contains(count));
    let metrics = metrics.ok_or(CmdError::text("ERR METRICS count must be > 0 and <= 2"))? as usize;
    let (mut cpu, mut net) = (false, false);
    let mut at = 4;
    while at < args.len() && at < 4 + metrics {
        if args.is(at, "CPU") && std::mem::replace(&mut cpu, true) {
            return Err(CmdError::text("ERR METRICS CPU defined more than once!"));
        }
        if args.is(at, "NET") && std::mem::replace(&mut net, true) {
            return Err(CmdError::text("ERR METRICS NET defined more than once!"));
        }
        // What a later version may count is passed over.
        at += 1;
    }
    if at < 4 + metrics {
        return Err(CmdError::text("ERR METRICS count does not match number of metric types provided"));
    }
    if !cpu && !net {
        return Err(CmdError::text("ERR METRICS no valid metrics passed. Supported: CPU|NET"));
    }
    let mut request = HotKeysRequest { cpu, net, count: COUNT, duration_ms: None, sample_ratio: 1 };
    while at < args.len() {
        let number = |most: i64, error: &'static str| {
            let number = parse_i64(args.get(at + 1)).filter(|number| (1..=most).contains(number));
            number.ok_or(CmdError::text(error))
        };
        match () {
            () if at + 1 == args.len() => return Err(CmdError::Syntax),
            () if args.is(at, "COUNT") => {
                request.count = number(64, "ERR COUNT must be between 1 and 64")? as usize;
            }
            () if args.is(at, "DURATION") => {
                let seconds = number(1_000_000, "ERR DURATION must be between 1 and 1000000")?;
                request.duration_ms = Some(seconds as u64 * 1_000);
            }
            () if args.is(at, "SAMPLE") => {
                request.sample_ratio = number(i32::MAX.into(), "ERR SAMPLE ratio must be positive")? as u32;
            }
            () if args.is(at, "SLOTS") => {
                return Err(CmdError::text("ERR SLOTS parameter cannot be used in non-cluster mode"));
            }
            () => return Err(CmdError::Syntax),
        }
        at += 2;
    }
    Ok(request)
}

/// Ends the counting; what was found stays.
pub static STOP: Command = Command {
    name: "HOTKEYS STOP",
    group: Group::Server,
    syntax: "",
    summary: "Stops hotkeys tracking.",
    complexity: "O(1)",
    since: "8.6.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(stop),
};

fn stop(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    if cx.engine.stop_hot_keys(cx.worker.clock.now_ms) {
        reply.simple("OK");
    } else {
        reply.null();
    }
    Ok(())
}

/// Shows what was found.
pub static GET: Command = Command {
    name: "HOTKEYS GET",
    group: Group::Server,
    syntax: "",
    summary: "Returns lists of top K hotkeys depending on metrics chosen in HOTKEYS START command.",
    complexity: "O(K) where K is the number of hotkeys returned.",
    since: "8.6.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(get),
};

fn get(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let Some(report) = cx.engine.hotkeys.report(cx.worker.clock.now_ms) else {
        reply.null();
        return Ok(());
    };
    let HotKeysRequest { cpu, net, sample_ratio, .. } = report.request;
    // A list, as a cluster's nodes each give one.
    reply.array(1);
    reply.map(7 + 3 * usize::from(cpu) + 2 * usize::from(net));
    let int = |reply: &mut Reply<'_>, name: &str, value: u64| {
        reply.bulk(name.as_bytes());
        reply.int(value as i64);
    };
    int(reply, "tracking-active", report.is_active.into());
    int(reply, "sample-ratio", sample_ratio.into());
    reply.bulk(b"selected-slots");
    reply.array(1);
    reply.array(2);
    reply.int(0);
    reply.int(LAST_SLOT);
    int(reply, "all-commands-all-slots-us", report.all_time_us);
    int(reply, "net-bytes-all-commands-all-slots", report.all_bytes);
    int(reply, "collection-start-time-unix-ms", report.started_ms);
    int(reply, "collection-duration-ms", report.duration_ms);
    if cpu {
        int(reply, "total-cpu-time-user-ms", report.cpu_user_ms);
        int(reply, "total-cpu-time-sys-ms", report.cpu_system_ms);
    }
    if net {
        int(reply, "total-net-bytes", report.sampled_bytes);
    }
    if cpu {
        reply_keys("by-cpu-time-us", &report.by_time_us, reply);
    }
    if net {
        reply_keys("by-net-bytes", &report.by_bytes, reply);
    }
    Ok(())
}

fn reply_keys(name: &str, keys: &[(Arc<[u8]>, u64)], reply: &mut Reply<'_>) {
    reply.bulk(name.as_bytes());
    reply.array(2 * keys.len());
    for (key, cost) in keys {
        reply.bulk(key);
        reply.int(*cost as i64);
    }
}

/// Forgets what was found.
pub static RESET: Command = Command {
    name: "HOTKEYS RESET",
    group: Group::Server,
    syntax: "",
    summary: "Release the resources used for hotkey tracking.",
    complexity: "O(1)",
    since: "8.6.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(reset),
};

fn reset(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    if !cx.engine.hotkeys.forget(cx.worker.clock.now_ms) {
        return Err(CmdError::text("ERR hotkey tracking session in progress, stop tracking first"));
    }
    reply.simple("OK");
    Ok(())
}

/// Explains the subcommands.
pub static HELP: Command = help_command("HOTKEYS HELP", Group::Server, "8.6.0", help);

fn help(_cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply_help(
        args,
        &[
            "START METRICS <count> [CPU] [NET] [COUNT <k>] [DURATION <seconds>] [SAMPLE <ratio>]",
            "    Start counting what keys cost: CPU for time, NET for bytes received and sent.",
            "    Results have the <k> keys that cost most (default: 10). Counting ends after",
            "    <seconds> (default: when stopped). One of <ratio> commands is counted (default: 1).",
            "STOP",
            "    Stop counting. Results stay.",
            "GET",
            "    Return the results, or null if nothing was started.",
            "RESET",
            "    Forget the results. Counting must have been stopped.",
        ],
        reply,
    );
    Ok(())
}
