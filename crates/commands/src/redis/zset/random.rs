//! ZRANDMEMBER: members by chance.

use super::scores::{Scores, reply_member, reply_members_header};
use crate::redis::answer_limit::AnswerLimit;
use crate::redis::random_count::RandomCount;
use crate::redis::reply_item::bulk_item;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::ds::packed::Item;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::Zset;
use tenon_engine::wire::resp::Reply;

/// Gives random members.
pub static ZRANDMEMBER: Command = Command {
    name: "ZRANDMEMBER",
    group: Group::SortedSet,
    syntax: "key [count [WITHSCORES]]",
    summary: "Returns one or more random members from a sorted set.",
    complexity: "O(N) where N is the number of members returned",
    since: "6.2.0",
    arity: Arity::AtLeast(2),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(zrandmember),
};

fn zrandmember(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let (mut random, limit) = (cx.worker().random_source(), AnswerLimit::of(cx, reply));
    if args.len() == 2 {
        match cx.read_collection::<Zset>()?.and_then(|zset| zset.sample(|| random.bits())) {
            Some((member, _)) => bulk_item(reply, member),
            None => reply.null(),
        }
        return Ok(Effect::Unchanged);
    }
    let count = RandomCount::parse(args.get(2), i64::MAX)?;
    let scores = match args.len() {
        3 => Scores::Without,
        4 if args.is(3, "WITHSCORES") => Scores::With,
        _ => return Err(CmdError::Syntax),
    };
    if scores == Scores::With && count.magnitude() > (i64::MAX / 2) as usize {
        return Err(CmdError::text("ERR value is out of range"));
    }
    let Some(zset) = cx.read_collection::<Zset>()? else {
        reply.array(0);
        return Ok(Effect::Unchanged);
    };
    count.check()?;
    let given = match count {
        RandomCount::Distinct(count) => count.min(zset.len()),
        RandomCount::Repeated(count) => count,
    };
    reply_members_header(reply, given, scores);
    let mut visit = |member: Item<'_>, score: f64| {
        reply_member(reply, member, score, scores);
        limit.allows_more(reply)
    };
    match count {
        RandomCount::Distinct(count) => zset.sample_distinct(
            count,
            || random.bits(),
            |member, score| {
                visit(member, score);
            },
        ),
        RandomCount::Repeated(count) => {
            zset.sample_repeated(count, || random.bits(), visit);
            limit.check(reply)?;
        }
    }
    Ok(Effect::Unchanged)
}
