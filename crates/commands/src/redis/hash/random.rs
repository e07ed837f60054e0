//! HRANDFIELD: fields by chance.

use crate::redis::answer_limit::AnswerLimit;
use crate::redis::random_count::RandomCount;
use crate::redis::reply_item::bulk_item;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::ds::packed::Item;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::Hash;
use tenon_engine::wire::resp::{Proto, Reply};

/// Gives random fields.
pub static HRANDFIELD: Command = Command {
    name: "HRANDFIELD",
    group: Group::Hash,
    syntax: "key [count [WITHVALUES]]",
    summary: "Returns one or more random fields from a hash.",
    complexity: "O(N) where N is the number of fields returned",
    since: "6.2.0",
    arity: Arity::AtLeast(2),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(hrandfield),
};

/// Whether values go with their fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    With,
    Without,
}

fn hrandfield(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    if args.len() == 2 {
        let mut random = cx.worker().random_source();
        match cx.read_collection::<Hash>()?.and_then(|hash| hash.sample(|| random.bits())) {
            Some((field, _)) => bulk_item(reply, field),
            None => reply.null(),
        }
        return Ok(Effect::Unchanged);
    }
    let count = RandomCount::parse(args.get(2), i64::MAX)?;
    let values = match args.len() {
        3 => Values::Without,
        4 if args.is(3, "WITHVALUES") => Values::With,
        _ => return Err(CmdError::Syntax),
    };
    if values == Values::With && count.magnitude() > (i64::MAX / 2) as usize {
        return Err(CmdError::text("ERR value is out of range"));
    }
    let (mut random, limit) = (cx.worker().random_source(), AnswerLimit::of(cx, reply));
    let Some(hash) = cx.read_collection::<Hash>()? else {
        reply.array(0);
        return Ok(Effect::Unchanged);
    };
    count.check()?;
    let given = match count {
        RandomCount::Distinct(count) => count.min(hash.len()),
        RandomCount::Repeated(count) => count,
    };
    // RESP3 has a pair for each field, RESP2 one flat array.
    let in_pairs = values == Values::With && reply.proto() == Proto::Resp3;
    reply.array(if values == Values::With && !in_pairs { given * 2 } else { given });
    let mut visit = |field: Item<'_>, value: Item<'_>| {
        if in_pairs {
            reply.array(2);
        }
        bulk_item(reply, field);
        if values == Values::With {
            bulk_item(reply, value);
        }
        limit.allows_more(reply)
    };
    match count {
        RandomCount::Distinct(count) => hash.sample_distinct(
            count,
            || random.bits(),
            |field, value| {
                visit(field, value);
            },
        ),
        RandomCount::Repeated(count) => {
            hash.sample_repeated(count, || random.bits(), visit);
            limit.check(reply)?;
        }
    }
    Ok(Effect::Unchanged)
}
