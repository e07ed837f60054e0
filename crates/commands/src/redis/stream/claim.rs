//! XCLAIM and XAUTOCLAIM: consumers take over what others were given and did not acknowledge.

use super::delivery_log::Deliveries;
use super::id::{parse_id, parse_start};
use super::reply::{reply_entry, reply_id};
use std::ops::Range;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Change, KeyCx};
use tenon_engine::errors::{CmdError, shown};
use tenon_engine::store::Slot;
use tenon_engine::store::types::Stream;
use tenon_engine::store::types::stream::{Claim, Claimed, ConsumerNumber, StreamId};
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

const COUNT_NOT_POSITIVE: CmdError = CmdError::text("ERR COUNT must be > 0");

/// Takes over given entries.
pub static XCLAIM: Command = Command {
    name: "XCLAIM",
    group: Group::Stream,
    syntax: "key group consumer min-idle-time id [id ...] [IDLE ms] [TIME unix-time-milliseconds] [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID lastid]",
    summary: "Changes, or acquires, ownership of a message in a consumer group, as if the message was delivered a consumer group member.",
    complexity: "O(log N) with N being the number of messages in the PEL of the consumer group.",
    since: "5.0.0",
    arity: Arity::AtLeast(6),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(xclaim),
};

/// Takes over entries that nothing has happened to for a while.
pub static XAUTOCLAIM: Command = Command {
    name: "XAUTOCLAIM",
    group: Group::Stream,
    syntax: "key group consumer min-idle-time start [COUNT count] [JUSTID]",
    summary: "Changes, or acquires, ownership of messages in a consumer group, as if the messages were delivered to as consumer group member.",
    complexity: "O(1) if COUNT is small.",
    since: "6.2.0",
    arity: Arity::AtLeast(6),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::SHRINK)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(xautoclaim),
};

/// The error for a key or group that is not there.
pub(super) fn no_key_or_group(key: &[u8], group: &[u8]) -> CmdError {
    let (key, group) = (shown(key), shown(group));
    CmdError::new(format!("NOGROUP No such key '{key}' or consumer group '{group}'"))
}

/// A time in milliseconds; below 0 is 0.
fn parse_min_idle(text: &[u8], command: &str) -> Result<u64, CmdError> {
    match parse_i64(text) {
        Some(ms) => Ok(ms.max(0) as u64),
        None => Err(CmdError::new(format!("ERR Invalid min-idle-time argument for {command}"))),
    }
}

/// What XCLAIM is asked for beside group and consumer.
struct ClaimArgs {
    idle_ms_min: u64,
    /// Which arguments are ids.
    ids: Range<usize>,
    delivered_ms: u64,
    deliveries: Option<u64>,
    is_forced: bool,
    just_ids: bool,
    last_id: StreamId,
}

impl ClaimArgs {
    /// Times later than `latest_ms` make no sense.
    fn parse(args: &Args<'_>, now_ms: u64, latest_ms: u64) -> Result<ClaimArgs, CmdError> {
        let idle_ms_min = parse_min_idle(args.get(4), "XCLAIM")?;
        let ids_end = (5..args.len()).find(|&at| parse_id(args.get(at), 0).is_err()).unwrap_or(args.len());
        let mut claim = ClaimArgs {
            idle_ms_min,
            ids: 5..ids_end,
            delivered_ms: now_ms,
            deliveries: None,
            is_forced: false,
            just_ids: false,
            last_id: StreamId::MIN,
        };
        let number = |at: usize, option: &str| {
            let invalid = || CmdError::new(format!("ERR Invalid {option} option argument for XCLAIM"));
            parse_i64(args.get(at)).ok_or_else(invalid)
        };
        // Clients count from clocks of their own: what makes no sense is now.
        let sensible =
            |ms: Option<i64>| ms.and_then(|ms| u64::try_from(ms).ok()).filter(|&ms| ms <= latest_ms).unwrap_or(now_ms);
        let mut at = ids_end;
        while at < args.len() {
            let has_value = at + 1 < args.len();
            match () {
                () if args.is(at, "FORCE") => claim.is_forced = true,
                () if args.is(at, "JUSTID") => claim.just_ids = true,
                () if has_value && args.is(at, "IDLE") => {
                    at += 1;
                    claim.delivered_ms = sensible((now_ms as i64).checked_sub(number(at, "IDLE")?));
                }
                () if has_value && args.is(at, "TIME") => {
                    at += 1;
                    claim.delivered_ms = sensible(Some(number(at, "TIME")?));
                }
                () if has_value && args.is(at, "RETRYCOUNT") => {
                    at += 1;
                    claim.deliveries = u64::try_from(number(at, "RETRYCOUNT")?).ok();
                }
                () if has_value && args.is(at, "LASTID") => {
                    at += 1;
                    claim.last_id = parse_id(args.get(at), 0)?;
                }
                () => {
                    let option = shown(args.get(at));
                    return Err(CmdError::new(format!("ERR Unrecognized XCLAIM option '{option}'")));
                }
            }
            at += 1;
        }
        Ok(claim)
    }
}

/// Writes entries that were taken over: `ids` only, or whole.
fn reply_claimed(stream: &Stream, ids: &[StreamId], just_ids: bool, reply: &mut Reply<'_>) {
    reply.array(ids.len());
    for &id in ids {
        if just_ids {
            reply_id(reply, id);
        } else {
            reply_entry(reply, &stream.get(id).expect("an entry that is not there is not taken over"));
        }
    }
}

/// What taking over came to: a change for each entry, or else one for the last id, and one for a consumer that was not
/// known.
fn change_of(deliveries: Deliveries) -> Change<Deliveries> {
    let Deliveries { is_new_consumer, has_moved, .. } = deliveries;
    let entries = deliveries.pending.len() + deliveries.gone.len();
    let times = entries.max(usize::from(has_moved)) + usize::from(is_new_consumer);
    if times == 0 {
        return Change::nothing(deliveries);
    }
    Change::aside(is_new_consumer.then_some("xgroup-createconsumer"), deliveries).times(times)
}

/// Puts down what taking over came to, if to anything.
fn log(cx: &mut KeyCx<'_>, (deliveries, effect): (Deliveries, Effect), group: &[u8], consumer: &[u8]) -> Effect {
    if effect.is_change() { deliveries.log(cx, group, consumer) } else { Effect::Unchanged }
}

/// Where the stream is, which must have the group.
fn find_with_group(cx: &mut KeyCx<'_>, group: &[u8]) -> Result<Slot, CmdError> {
    let key = cx.key;
    let nothing = || no_key_or_group(key, group);
    let slot = cx.find_for_read().ok_or_else(nothing)?;
    cx.collection::<Stream>(slot)?.group(group).map(|_| slot).ok_or_else(nothing)
}

fn xclaim(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let (group, consumer) = (args.get(2), args.get(3));
    let slot = find_with_group(cx, group)?;
    let now_ms = cx.now_ms();
    // A log says when, whatever the clock says by now.
    let latest_ms = if cx.is_replaying() { u64::MAX } else { now_ms };
    let asked = ClaimArgs::parse(args, now_ms, latest_ms)?;
    let outcome = cx.update_in(slot, |stream: &mut Stream| {
        let place = stream.group_mut(group).expect("it was there at this instant");
        let (taker, is_new) = place.see_consumer(consumer, now_ms);
        let is_raised = place.raise_last_id(asked.last_id);
        let claim = Claim {
            consumer: taker,
            idle_ms_min: asked.idle_ms_min,
            delivered_ms: asked.delivered_ms,
            deliveries: asked.deliveries,
            is_delivery: !asked.just_ids,
            is_forced: asked.is_forced,
        };
        let mut gone = Vec::new();
        let mut claimed = Vec::with_capacity(asked.ids.len());
        for index in asked.ids.clone() {
            let id = parse_id(args.get(index), 0)?;
            match stream.claim(group, id, &claim, now_ms) {
                Claimed::Yes => claimed.push(id),
                Claimed::No => {}
                Claimed::Gone => gone.push(id),
            }
        }
        reply_claimed(stream, &claimed, asked.just_ids, reply);
        Ok(change_of(Deliveries { is_new_consumer: is_new, pending: claimed, gone, has_moved: is_raised }))
    })?;
    Ok(log(cx, outcome, group, consumer))
}

/// Given entries that are looked at for each that is asked for.
const ATTEMPTS: u64 = 10;

/// What XAUTOCLAIM is asked for beside group and consumer.
struct AutoClaimArgs {
    idle_ms_min: u64,
    start: StreamId,
    count: u64,
    just_ids: bool,
}

impl AutoClaimArgs {
    fn parse(args: &Args<'_>) -> Result<AutoClaimArgs, CmdError> {
        /// The most that Redis takes: it keeps an id for each.
        const COUNT_MAX: i64 = i64::MAX / 16;
        let idle_ms_min = parse_min_idle(args.get(4), "XAUTOCLAIM")?;
        let start = parse_start(args.get(5))?;
        let mut claim = AutoClaimArgs { idle_ms_min, start, count: 100, just_ids: false };
        let mut at = 6;
        while at < args.len() {
            if at + 1 < args.len() && args.is(at, "COUNT") {
                at += 1;
                let count = parse_i64(args.get(at)).filter(|count| (1..=COUNT_MAX).contains(count));
                claim.count = count.ok_or(COUNT_NOT_POSITIVE)? as u64;
            } else if args.is(at, "JUSTID") {
                claim.just_ids = true;
            } else {
                return Err(CmdError::Syntax);
            }
            at += 1;
        }
        Ok(claim)
    }

    /// Takes over what may be taken; gives it, what was deleted meanwhile, and where to go on.
    fn run(&self, stream: &mut Stream, group: &[u8], consumer: ConsumerNumber, now_ms: u64) -> AutoClaimed {
        let claim = Claim {
            consumer,
            idle_ms_min: self.idle_ms_min,
            delivered_ms: now_ms,
            deliveries: None,
            is_delivery: !self.just_ids,
            is_forced: false,
        };
        let mut found = AutoClaimed { claimed: Vec::new(), gone: Vec::new(), next: None };
        let mut attempts = self.count.saturating_mul(ATTEMPTS);
        let mut from = Some(self.start);
        loop {
            found.next = from.and_then(|from| {
                let group = stream.group(group)?;
                group.pending_in(from..=StreamId::MAX).next().map(|(id, _)| id)
            });
            let count = (found.claimed.len() + found.gone.len()) as u64;
            let Some(id) = found.next.filter(|_| attempts > 0 && count < self.count) else { return found };
            attempts -= 1;
            from = id.next();
            match stream.claim(group, id, &claim, now_ms) {
                Claimed::Yes => found.claimed.push(id),
                Claimed::No => {}
                Claimed::Gone => found.gone.push(id),
            }
        }
    }
}

struct AutoClaimed {
    claimed: Vec<StreamId>,
    gone: Vec<StreamId>,
    next: Option<StreamId>,
}

fn xautoclaim(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    // As in Redis the key is looked up before the arguments are read.
    let asked = AutoClaimArgs::parse(args).inspect_err(|_| _ = cx.find_for_read())?;
    let (group, consumer) = (args.get(2), args.get(3));
    let slot = find_with_group(cx, group)?;
    let now_ms = cx.now_ms();
    let outcome = cx.update_in(slot, |stream: &mut Stream| {
        let place = stream.group_mut(group).expect("it was there at this instant");
        let (taker, is_new) = place.see_consumer(consumer, now_ms);
        let found = asked.run(stream, group, taker, now_ms);
        reply.array(3);
        reply_id(reply, found.next.unwrap_or(StreamId::MIN));
        reply_claimed(stream, &found.claimed, asked.just_ids, reply);
        reply.array(found.gone.len());
        found.gone.iter().for_each(|&id| reply_id(reply, id));
        let AutoClaimed { claimed: pending, gone, .. } = found;
        Ok(change_of(Deliveries { is_new_consumer: is_new, pending, gone, has_moved: false }))
    })?;
    Ok(log(cx, outcome, group, consumer))
}
