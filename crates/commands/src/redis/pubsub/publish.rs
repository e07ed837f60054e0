//! PUBLISH and SPUBLISH: a message to all who are subscribed.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::pubsub::{Scope, Topic};
use tenon_engine::wire::resp::Reply;

const FLAGS: Flags = Flags::PUBSUB.or(Flags::LOADING).or(Flags::STALE).or(Flags::FAST).or(Flags::MAY_REPLICATE);

/// Sends a message to a channel.
pub static PUBLISH: Command = Command {
    name: "PUBLISH",
    group: Group::PubSub,
    syntax: "channel message",
    summary: "Posts a message to a channel.",
    complexity: "O(N+M) where N is the number of clients subscribed to the receiving channel and M is the total \
                 number of subscribed patterns (by any client).",
    since: "2.0.0",
    arity: Arity::Exactly(3),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(publish),
};

/// Sends a message to a shard channel.
pub static SPUBLISH: Command = Command {
    name: "SPUBLISH",
    group: Group::PubSub,
    syntax: "shardchannel message",
    summary: "Post a message to a shard channel",
    complexity: "O(N) where N is the number of clients subscribed to the receiving shard channel.",
    since: "7.0.0",
    arity: Arity::Exactly(3),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(spublish),
};

fn publish(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    send(cx, args, reply, Scope::Global, Topic::Channel)
}

fn spublish(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    send(cx, args, reply, Scope::Shard, Topic::ShardChannel)
}

fn send(
    cx: &mut SessionCx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    scope: Scope,
    topic: Topic,
) -> Result<(), CmdError> {
    let channel = args.get(1);
    cx.engine.may_use_channels(cx.session, topic, std::iter::once(channel))?;
    reply.int(cx.engine.publish(scope, channel, args.get(2)) as i64);
    Ok(())
}
