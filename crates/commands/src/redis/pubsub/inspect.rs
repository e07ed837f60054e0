//! PUBSUB: what channels and patterns there are, and how many listen.

use crate::redis::help::reply_help;
use crate::redis::help_command::help_command;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::pubsub::Scope;
use tenon_engine::wire::resp::Reply;

const FLAGS: Flags = Flags::PUBSUB.or(Flags::LOADING).or(Flags::STALE);

/// Everything about channels.
pub static PUBSUB: Command = Command {
    name: "PUBSUB",
    group: Group::PubSub,
    syntax: "",
    summary: "A container for Pub/Sub commands.",
    complexity: "Depends on subcommand.",
    since: "2.8.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: Flags::NONE,
    run: Run::Container(&[&CHANNELS, &HELP, &NUMPAT, &NUMSUB, &SHARDCHANNELS, &SHARDNUMSUB]),
};

/// Names the channels that somebody listens to.
static CHANNELS: Command = Command {
    name: "PUBSUB CHANNELS",
    group: Group::PubSub,
    syntax: "[pattern]",
    summary: "Returns the active channels.",
    complexity: "O(N) where N is the number of active channels, and assuming constant time pattern matching \
                 (relatively short channels and patterns)",
    since: "2.8.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(|cx, args, reply| channels(cx, args, reply, Scope::Global)),
};

/// Names the shard channels that somebody listens to.
static SHARDCHANNELS: Command = Command {
    name: "PUBSUB SHARDCHANNELS",
    summary: "Returns the active shard channels.",
    complexity: "O(N) where N is the number of active shard channels, and assuming constant time pattern matching \
                 (relatively short shard channels).",
    since: "7.0.0",
    run: Run::Session(|cx, args, reply| channels(cx, args, reply, Scope::Shard)),
    ..CHANNELS
};

/// Counts the patterns.
static NUMPAT: Command = Command {
    name: "PUBSUB NUMPAT",
    group: Group::PubSub,
    syntax: "",
    summary: "Returns a count of unique pattern subscriptions.",
    complexity: "O(1)",
    since: "2.8.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(numpat),
};

/// Counts the listeners of channels.
static NUMSUB: Command = Command {
    name: "PUBSUB NUMSUB",
    group: Group::PubSub,
    syntax: "[channel [channel ...]]",
    summary: "Returns a count of subscribers to channels.",
    complexity: "O(N) for the NUMSUB subcommand, where N is the number of requested channels",
    since: "2.8.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(|cx, args, reply| numsub(cx, args, reply, Scope::Global)),
};

/// Counts the listeners of shard channels.
static SHARDNUMSUB: Command = Command {
    name: "PUBSUB SHARDNUMSUB",
    syntax: "[shardchannel [shardchannel ...]]",
    summary: "Returns the count of subscribers of shard channels.",
    complexity: "O(N) for the SHARDNUMSUB subcommand, where N is the number of requested shard channels",
    since: "7.0.0",
    run: Run::Session(|cx, args, reply| numsub(cx, args, reply, Scope::Shard)),
    ..NUMSUB
};

/// Explains the subcommands.
static HELP: Command = help_command("PUBSUB HELP", Group::PubSub, "6.2.0", help);

fn channels(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>, scope: Scope) -> Result<(), CmdError> {
    if args.len() > 3 {
        return Err(crate::redis::help::wrong_form(args));
    }
    let names = cx.engine.pubsub.matching(scope, args.try_get(2));
    reply.array(names.len());
    names.iter().for_each(|name| reply.bulk(name));
    Ok(())
}

fn numpat(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply.int(cx.engine.pubsub.pattern_count() as i64);
    Ok(())
}

fn numsub(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>, scope: Scope) -> Result<(), CmdError> {
    let names = args.from(2);
    reply.array(names.len() * 2);
    for name in names {
        reply.bulk(name);
        reply.int(cx.engine.subscriber_count(scope, name) as i64);
    }
    Ok(())
}

fn help(_cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply_help(
        args,
        &[
            "CHANNELS [<pattern>]",
            "    Return the currently active channels matching a <pattern> (default: '*').",
            "NUMPAT",
            "    Return number of subscriptions to patterns.",
            "NUMSUB [<channel> ...]",
            "    Return the number of subscribers for the specified channels, excluding",
            "    pattern subscriptions(default: no channels).",
            "SHARDCHANNELS [<pattern>]",
            "    Return the currently active shard level channels matching a <pattern> (default: '*').",
            "SHARDNUMSUB [<shardchannel> ...]",
            "    Return the number of subscribers for the specified shard level channel(s)",
        ],
        reply,
    );
    Ok(())
}
