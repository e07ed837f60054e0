//! Giving members deadlines and taking them away: HEXPIRE and its kin and HPERSIST, for each type that has such.

use super::arguments::{Condition, Members, NumberError, parse_deadline, type_first};
use super::names::Named;
use super::read::{NO_DEADLINE, NO_MEMBER};
use crate::redis::string::options::TimeUnit;
use tenon_engine::args::Args;
use tenon_engine::command::Effect;
use tenon_engine::context::{Change, KeyCx};
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::WithDeadlines;
use tenon_engine::wire::resp::Reply;

/// The condition does not hold.
const REFUSED: i64 = 0;
/// The member has the deadline, or has lost it.
const DONE: i64 = 1;
/// The moment has passed: the member is gone.
const REMOVED: i64 = 2;

/// What became of members that were given a deadline.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::redis) struct Tally {
    given: usize,
    removed: usize,
}

impl Tally {
    /// Gives a member that is there a deadline; takes it out when that has come already.
    pub fn expire<F: Named>(
        &mut self,
        collection: &mut WithDeadlines<F>,
        member: &[u8],
        deadline_ms: u64,
        now_ms: u64,
    ) -> i64 {
        if deadline_ms <= now_ms {
            collection.take(member);
            self.removed += 1;
            REMOVED
        } else {
            collection.set_deadline(member, deadline_ms);
            self.given += 1;
            DONE
        }
    }

    /// The event that tells of it; `None` when nothing has changed.
    pub fn event<F: Named>(self) -> Option<&'static str> {
        match self {
            Tally { given: 0, removed: 0 } => None,
            Tally { removed: 0, .. } => Some(F::NAMES.expire_event),
            Tally { .. } => Some(F::NAMES.remove_event),
        }
    }
}

/// Gives members a deadline: `key amount [NX | XX | GT | LT] FIELDS numfields field [field ...]`, for the command of
/// this name in lower case.
pub(in crate::redis) fn expire<F: Named>(
    cx: &mut KeyCx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    command: &'static str,
    unit: TimeUnit,
) -> Result<Effect, CmdError> {
    let now_ms = cx.now_ms();
    let parsed = parse_deadline(args.get(2), unit, now_ms, command).and_then(|deadline_ms| {
        let condition = Condition::named(args.get(3));
        let at = if condition.is_some() { 4 } else { 3 };
        let members = Members::parse(args, at, F::NAMES, NumberError::GreaterThanZero)?;
        Ok((deadline_ms, condition.unwrap_or(Condition::Always), members))
    });
    let (deadline_ms, condition, members) = type_first::<F, _>(cx, parsed)?;
    let outcome = cx.update_existing(|collection: &mut WithDeadlines<F>| {
        let mut tally = Tally::default();
        reply.array(members.count);
        for member in members.of(args) {
            reply.int(if !collection.has(member) {
                NO_MEMBER
            } else if condition.holds(collection.deadline_ms(member), deadline_ms) {
                tally.expire(collection, member, deadline_ms, now_ms)
            } else {
                REFUSED
            });
        }
        Ok(tally.event::<F>().map_or(Change::nothing(()), |event| Change::made(event, ())))
    })?;
    Ok(effect_of(outcome, members, reply, |reply| reply.int(NO_MEMBER)))
}

/// Takes members' deadlines away: `key FIELDS numfields field [field ...]`.
pub(in crate::redis) fn persist<F: Named>(
    cx: &mut KeyCx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<Effect, CmdError> {
    let parsed = Members::parse(args, 2, F::NAMES, NumberError::Positive);
    let members = type_first::<F, _>(cx, parsed)?;
    let outcome = cx.update_existing(|collection: &mut WithDeadlines<F>| {
        let mut changed = false;
        reply.array(members.count);
        for member in members.of(args) {
            let had = collection.persist(member);
            changed |= had;
            reply.int(match had {
                true => DONE,
                false if collection.has(member) => NO_DEADLINE,
                false => NO_MEMBER,
            });
        }
        Ok(Change::when(changed, F::NAMES.persist_event, ()))
    })?;
    Ok(effect_of(outcome, members, reply, |reply| reply.int(NO_MEMBER)))
}

/// The effect on a key; when there is none, `reply_absent` answers for each member.
pub(in crate::redis) fn effect_of(
    outcome: Option<((), Effect)>,
    members: Members,
    reply: &mut Reply<'_>,
    reply_absent: impl Fn(&mut Reply<'_>),
) -> Effect {
    match outcome {
        Some(((), effect)) => effect,
        None => {
            members.reply_for_each(reply, reply_absent);
            Effect::Unchanged
        }
    }
}
