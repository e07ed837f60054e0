//! LATENCY: the spikes that the latency monitor saw, and how long each command takes.

use super::latency_doctor::diagnose;
use super::sparkline::{self, COLUMNS};
use crate::redis::help::reply_help;
use crate::redis::help_command::help_command;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::durations::DurationCounts;
use tenon_engine::engine::Engine;
use tenon_engine::errors::{CmdError, shown};
use tenon_engine::latency::Spikes;
use tenon_engine::wire::resp::Reply;

const FLAGS: Flags = Flags::ADMIN.or(Flags::NO_SCRIPT).or(Flags::LOADING).or(Flags::STALE);

/// The container.
pub static LATENCY: Command = Command {
    name: "LATENCY",
    group: Group::Server,
    syntax: "",
    summary: "A container for latency diagnostics commands.",
    complexity: "Depends on subcommand.",
    since: "2.8.13",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: Flags::NONE,
    run: Run::Container(&[&DOCTOR, &GRAPH, &HISTOGRAM, &HISTORY, &LATEST, &RESET, &HELP]),
};

/// Says what is wrong.
pub static DOCTOR: Command = Command {
    name: "LATENCY DOCTOR",
    group: Group::Server,
    syntax: "",
    summary: "Returns a human-readable latency analysis report.",
    complexity: "O(1)",
    since: "2.8.13",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(doctor),
};

fn doctor(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let config = &cx.engine.config;
    let report =
        diagnose(&cx.engine.latency.events(), config.latency_monitor_threshold(), config.slowlog_log_slower_than());
    reply.verbatim(b"txt", report.as_bytes());
    Ok(())
}

/// Draws an event's spikes.
pub static GRAPH: Command = Command {
    name: "LATENCY GRAPH",
    group: Group::Server,
    syntax: "event",
    summary: "Returns a latency graph for an event.",
    complexity: "O(1)",
    since: "2.8.13",
    arity: Arity::Exactly(3),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(graph),
};

fn graph(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let Some((event, spikes)) = find(cx.engine, args.get(2)) else {
        let event = shown(args.get(2));
        return Err(CmdError::new(format!("ERR No samples available for event '{event}'")));
    };
    let now = cx.worker.clock.now_ms / 1_000;
    reply.verbatim(b"txt", draw(event, &spikes, now).as_bytes());
    Ok(())
}

fn draw(event: &str, spikes: &Spikes, now_seconds: u64) -> String {
    let values = || spikes.samples.iter().map(|(_, ms)| *ms);
    let (high, low) = (values().max().unwrap_or(0), values().min().unwrap_or(0));
    let labelled: Vec<(u64, String)> =
        spikes.samples.iter().map(|(at, ms)| (*ms, age(now_seconds.saturating_sub(*at)))).collect();
    let line = "-".repeat(COLUMNS);
    let worst = spikes.max_ms;
    let graph = sparkline::draw(&labelled);
    format!("{event} - high {high} ms, low {low} ms (all time high {worst} ms)\n{line}\n{graph}")
}

/// How long ago, in the largest unit.
fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Says how long commands take.
pub static HISTOGRAM: Command = Command {
    name: "LATENCY HISTOGRAM",
    group: Group::Server,
    syntax: "[command [command ...]]",
    summary: "Returns the cumulative distribution of latencies of a subset or all commands.",
    complexity: "O(N) where N is the number of commands with latency information being retrieved.",
    since: "7.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(histogram),
};

fn histogram(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let all = cx.engine.commands.all();
    let numbers: Vec<usize> = if args.len() == 2 {
        (0..all.len()).collect()
    } else {
        // A container stands for its subcommands.
        let named = |name: &[u8], command: &Command| {
            let full = command.full_name();
            let container = full.split('|').next().unwrap_or_default();
            full.as_bytes().eq_ignore_ascii_case(name) || container.as_bytes().eq_ignore_ascii_case(name)
        };
        let of_name = |name| (0..all.len()).filter(move |&number| named(name, all[number]));
        args.from(2).flat_map(of_name).collect()
    };
    let map = reply.map_deferred();
    let mut commands = 0;
    for number in numbers {
        let Some(counts) = latency_counts(cx.engine, number) else { continue };
        commands += 1;
        reply.bulk(all[number].full_name().as_bytes());
        reply_counts(&counts, reply);
    }
    reply.finish(map, commands);
    Ok(())
}

/// Calls by duration of a command over all workers; `None` when there were none, or they are not to be shown.
pub fn latency_counts(engine: &Engine, number: usize) -> Option<DurationCounts> {
    if !engine.config.latency_tracking() || engine.sum(|stats| stats.commands[number].calls.get()) == 0 {
        return None;
    }
    let mut counts = DurationCounts::default();
    engine.each_stats(|stats| counts.add(&stats.commands[number].latency));
    (counts.total() > 0).then_some(counts)
}

fn reply_counts(counts: &DurationCounts, reply: &mut Reply<'_>) {
    reply.map(2);
    reply.bulk(b"calls");
    reply.int(counts.total() as i64);
    reply.bulk(b"histogram_usec");
    let steps = counts.by_powers_us();
    reply.map(steps.len());
    for (us, calls) in steps {
        reply.int(us as i64);
        reply.int(calls as i64);
    }
}

/// Lists an event's spikes.
pub static HISTORY: Command = Command {
    name: "LATENCY HISTORY",
    group: Group::Server,
    syntax: "event",
    summary: "Returns timestamp-latency samples for an event.",
    complexity: "O(1)",
    since: "2.8.13",
    arity: Arity::Exactly(3),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(history),
};

fn history(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let samples = find(cx.engine, args.get(2)).map(|(_, spikes)| spikes.samples).unwrap_or_default();
    reply.array(samples.len());
    for (at, ms) in samples {
        reply.array(2);
        reply.int(at as i64);
        reply.int(ms as i64);
    }
    Ok(())
}

/// Lists each event's last spike.
pub static LATEST: Command = Command {
    name: "LATENCY LATEST",
    group: Group::Server,
    syntax: "",
    summary: "Returns the latest latency samples for all events.",
    complexity: "O(1)",
    since: "2.8.13",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(latest),
};

fn latest(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let events = cx.engine.latency.events();
    reply.array(events.len());
    for (event, spikes) in events {
        let (at, ms) = spikes.samples.back().copied().unwrap_or_default();
        reply.array(4);
        reply.bulk(event.as_bytes());
        reply.int(at as i64);
        reply.int(ms as i64);
        reply.int(spikes.max_ms as i64);
    }
    Ok(())
}

/// Forgets spikes.
pub static RESET: Command = Command {
    name: "LATENCY RESET",
    group: Group::Server,
    syntax: "[event [event ...]]",
    summary: "Resets the latency data for one or more events.",
    complexity: "O(1)",
    since: "2.8.13",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(reset),
};

fn reset(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let names: Vec<String> = args.from(2).map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    reply.int(cx.engine.latency.reset(&names) as i64);
    Ok(())
}

fn find(engine: &Engine, name: &[u8]) -> Option<(&'static str, Spikes)> {
    engine.latency.events().into_iter().find(|(event, _)| event.as_bytes() == name)
}

/// Explains the subcommands.
pub static HELP: Command = help_command("LATENCY HELP", Group::Server, "2.8.13", help);

fn help(_cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply_help(
        args,
        &[
            "DOCTOR",
            "    Return a human readable latency analysis report.",
            "GRAPH <event>",
            "    Return an ASCII latency graph for the <event> class.",
            "HISTORY <event>",
            "    Return time-latency samples for the <event> class.",
            "LATEST",
            "    Return the latest latency samples for all events.",
            "RESET [<event> ...]",
            "    Reset latency data of one or more <event> classes.",
            "    (default: reset all data for all event classes)",
            "HISTOGRAM [COMMAND ...]",
            "    Return a cumulative distribution of latencies in the format of a histogram for the specified command names.",
            "    If no commands are specified then all histograms are replied.",
        ],
        reply,
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_has_a_head_and_ages() {
        let spikes = Spikes { samples: [(10, 3), (100, 9)].into(), max_ms: 12 };
        let expected = format!(
            "command - high 9 ms, low 3 ms (all time high 12 ms)\n{}\n #\n |\n |\n_|\n  \n15\nms\n",
            "-".repeat(80)
        );
        assert_eq!(draw("command", &spikes, 105), expected);
        assert_eq!([age(59), age(7_200), age(200_000)], ["59s", "2h", "2d"]);
    }
}
