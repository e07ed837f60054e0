//! SUBSCRIBE, UNSUBSCRIBE and their kin for patterns and shard channels. Each name is answered by a message of its own.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, ChannelKind, Command, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::pubsub::Topic;
use tenon_engine::wire::resp::Reply;

const FLAGS: Flags = Flags::PUBSUB
    .or(Flags::NO_SCRIPT)
    .or(Flags::LOADING)
    .or(Flags::STALE)
    .or(Flags::WHILE_SUBSCRIBED)
    .or(Flags::ANSWERS_BY_PUSH);

/// Begins to listen to channels.
pub static SUBSCRIBE: Command = Command {
    name: "SUBSCRIBE",
    group: Group::PubSub,
    syntax: "channel [channel ...]",
    summary: "Listens for messages published to channels.",
    complexity: "O(N) where N is the number of channels to subscribe to.",
    since: "2.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::Channels { first: 1, last: -1, kind: ChannelKind::Literal, specs: &[] },
    flags: FLAGS,
    run: Run::Session(|cx, args, reply| begin(cx, args, reply, Topic::Channel, "subscribe")),
};

/// Begins to listen to all channels that match patterns.
pub static PSUBSCRIBE: Command = Command {
    name: "PSUBSCRIBE",
    syntax: "pattern [pattern ...]",
    summary: "Listens for messages published to channels that match one or more patterns.",
    complexity: "O(N) where N is the number of patterns to subscribe to.",
    keys: Keys::Channels { first: 1, last: -1, kind: ChannelKind::Pattern, specs: &[] },
    run: Run::Session(|cx, args, reply| begin(cx, args, reply, Topic::Pattern, "psubscribe")),
    ..SUBSCRIBE
};

/// Begins to listen to shard channels.
pub static SSUBSCRIBE: Command = Command {
    name: "SSUBSCRIBE",
    syntax: "shardchannel [shardchannel ...]",
    summary: "Listens for messages published to shard channels.",
    complexity: "O(N) where N is the number of shard channels to subscribe to.",
    since: "7.0.0",
    keys: Keys::Channels {
        first: 1,
        last: -1,
        kind: ChannelKind::Literal,
        specs: &[KeySpec::rest(1, KeyFlags::NOT_KEY)],
    },
    run: Run::Session(|cx, args, reply| begin(cx, args, reply, Topic::ShardChannel, "ssubscribe")),
    ..SUBSCRIBE
};

/// Listens to channels no more.
pub static UNSUBSCRIBE: Command = Command {
    name: "UNSUBSCRIBE",
    group: Group::PubSub,
    syntax: "[channel [channel ...]]",
    summary: "Stops listening to messages posted to channels.",
    complexity: "O(N) where N is the number of channels to unsubscribe.",
    since: "2.0.0",
    arity: Arity::AtLeast(1),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(|cx, args, reply| end(cx, args, reply, Topic::Channel, "unsubscribe")),
};

/// Listens to channels that match patterns no more.
pub static PUNSUBSCRIBE: Command = Command {
    name: "PUNSUBSCRIBE",
    syntax: "[pattern [pattern ...]]",
    summary: "Stops listening to messages published to channels that match one or more patterns.",
    complexity: "O(N) where N is the number of patterns to unsubscribe.",
    run: Run::Session(|cx, args, reply| end(cx, args, reply, Topic::Pattern, "punsubscribe")),
    ..UNSUBSCRIBE
};

/// Listens to shard channels no more.
pub static SUNSUBSCRIBE: Command = Command {
    name: "SUNSUBSCRIBE",
    syntax: "[shardchannel [shardchannel ...]]",
    summary: "Stops listening to messages posted to shard channels.",
    complexity: "O(N) where N is the number of shard channels to unsubscribe.",
    since: "7.0.0",
    keys: Keys::Specs(&[KeySpec::rest(1, KeyFlags::NOT_KEY)]),
    run: Run::Session(|cx, args, reply| end(cx, args, reply, Topic::ShardChannel, "sunsubscribe")),
    ..UNSUBSCRIBE
};

fn begin(
    cx: &mut SessionCx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    topic: Topic,
    word: &'static str,
) -> Result<(), CmdError> {
    if topic == Topic::ShardChannel && cx.session.is_in_exec() {
        return Err(CmdError::text("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client"));
    }
    for name in args.from(1) {
        let count = cx.engine.subscribe(cx.session, topic, name);
        answer(reply, word, Some(name), count);
    }
    Ok(())
}

fn end(
    cx: &mut SessionCx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    topic: Topic,
    word: &'static str,
) -> Result<(), CmdError> {
    let all: Vec<Box<[u8]>> = if args.len() > 1 {
        args.from(1).map(Box::from).collect()
    } else {
        cx.session.subscribed_names(topic).map(Box::from).collect()
    };
    if all.is_empty() {
        // There is an answer even where there is nothing to end.
        let count = cx.session.subscription_count(topic);
        answer(reply, word, None, count);
        return Ok(());
    }
    for name in all {
        let count = cx.engine.unsubscribe(cx.session, topic, &name);
        // Messages from before come before: after the answer the client expects none. In EXEC's reply they have no place.
        if !cx.session.is_in_exec() {
            cx.session.client.outbox.take(reply.out());
        }
        answer(reply, word, Some(&name), count);
    }
    Ok(())
}

fn answer(reply: &mut Reply<'_>, word: &'static str, name: Option<&[u8]>, count: usize) {
    reply.push(3);
    reply.bulk(word.as_bytes());
    match name {
        Some(name) => reply.bulk(name),
        None => reply.null(),
    }
    reply.int(count as i64);
}
