//! PUBLISH and SPUBLISH: a message to all who are subscribed.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, ChannelKind, Command, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::pubsub::Scope;
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
    keys: Keys::Channels { first: 1, last: 1, kind: ChannelKind::Literal, specs: &[] },
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
    keys: Keys::Channels { first: 1, last: 1, kind: ChannelKind::Literal, specs: &[KeySpec::at(1, KeyFlags::NOT_KEY)] },
    flags: FLAGS,
    run: Run::Session(spublish),
};

fn publish(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply.int(cx.engine.publish(Scope::Global, args.get(1), args.get(2)) as i64);
    Ok(())
}

fn spublish(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply.int(cx.engine.publish(Scope::Shard, args.get(1), args.get(2)) as i64);
    Ok(())
}
