//! XPENDING: what was delivered and is not acknowledged.

use super::claim::no_key_or_group;
use super::id::parse_range;
use super::reply::reply_id;
use std::ops::RangeInclusive;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::Stream;
use tenon_engine::store::types::stream::{self, Pending, StreamId};
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

/// Tells what a group was given and has not acknowledged.
pub static XPENDING: Command = Command {
    name: "XPENDING",
    group: Group::Stream,
    syntax: "key group [[IDLE min-idle-time] start end count [consumer]]",
    summary: "Returns the information and entries from a stream consumer group's pending entries list.",
    complexity: "O(N) with N being the number of elements returned, so asking for a small fixed number of entries per call is O(1). O(M), where M is the total number of entries scanned when used with the IDLE filter. When the command returns just the summary and the list of consumers is small, it runs in O(1) time; otherwise, an additional O(N) time for iterating every consumer.",
    since: "5.0.0",
    arity: Arity::AtLeast(3),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(xpending),
};

/// Which entries are wanted.
struct Page<'a> {
    idle_ms_min: u64,
    ids: RangeInclusive<StreamId>,
    count: usize,
    consumer: Option<&'a [u8]>,
}

/// Reads the arguments behind the group; nothing when there are none.
fn parse_page<'a>(args: &Args<'a>) -> Result<Option<Page<'a>>, CmdError> {
    match args.len() {
        3 => return Ok(None),
        6..=9 => {}
        _ => return Err(CmdError::Syntax),
    }
    let number = |at: usize| parse_i64(args.get(at)).ok_or(CmdError::NotInteger);
    let (mut at, mut idle_ms_min) = (3, 0);
    if args.is(3, "IDLE") {
        idle_ms_min = number(4)?.max(0) as u64;
        if args.len() < 8 {
            return Err(CmdError::Syntax);
        }
        at = 5;
    }
    let count = usize::try_from(number(at + 2)?.max(0)).unwrap_or(usize::MAX);
    let ids = parse_range(args.get(at), args.get(at + 1))?;
    Ok(Some(Page { idle_ms_min, ids, count, consumer: args.try_get(at + 3) }))
}

fn xpending(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let page = parse_page(args)?;
    let now_ms = cx.now_ms();
    let group = cx.read_collection::<Stream>()?.and_then(|stream| stream.group(args.get(2)));
    let group = group.ok_or_else(|| no_key_or_group(args.get(1), args.get(2)))?;
    match page {
        None => reply_summary(group, reply),
        Some(page) => reply_page(group, &page, now_ms, reply),
    }
    Ok(Effect::Unchanged)
}

fn reply_summary(group: &stream::Group, reply: &mut Reply<'_>) {
    reply.array(4);
    reply.int(group.pending_len() as i64);
    let Some((lowest, highest)) = group.pending_bounds() else {
        reply.null();
        reply.null();
        reply.null_array();
        return;
    };
    reply_id(reply, lowest);
    reply_id(reply, highest);
    let array = reply.array_deferred();
    let mut count = 0;
    for consumer in group.consumers().filter(|consumer| !consumer.pending().is_empty()) {
        reply.array(2);
        reply.bulk(consumer.name());
        reply.bulk_int(consumer.pending().len() as i64);
        count += 1;
    }
    reply.finish(array, count);
}

fn reply_page(group: &stream::Group, page: &Page<'_>, now_ms: u64, reply: &mut Reply<'_>) {
    let array = reply.array_deferred();
    let mut count = 0;
    let mut reply_pending = |(id, pending): (StreamId, Pending)| {
        reply.array(4);
        reply_id(reply, id);
        reply.bulk(group.holder_of(pending));
        reply.int(pending.consumer().map_or(-1, |_| pending.idle_ms(now_ms) as i64));
        reply.int(pending.deliveries as i64);
        count += 1;
    };
    let is_idle = |(_, pending): &(StreamId, Pending)| pending.is_idle_for(page.idle_ms_min, now_ms);
    match page.consumer {
        None => group.pending_in(page.ids.clone()).filter(is_idle).take(page.count).for_each(&mut reply_pending),
        Some(name) => {
            if let Some(number) = group.number_of(name) {
                let pending = group.pending_of(number, page.ids.clone());
                pending.filter(is_idle).take(page.count).for_each(&mut reply_pending);
            }
        }
    }
    reply.finish(array, count);
}
