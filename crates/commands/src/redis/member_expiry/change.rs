//! Giving members deadlines and taking them away: HEXPIRE and its kin and HPERSIST, for each type that has such.

use super::arguments::{Members, parse_deadline, parse_members_and_condition, type_first};
use super::names::Named;
use super::read::{NO_DEADLINE, NO_MEMBER};
use crate::redis::string::options::TimeUnit;
use tenon_engine::args::Args;
use tenon_engine::command::Effect;
use tenon_engine::context::{Change, KeyCx};
use tenon_engine::ds::progress;
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
#[derive(Debug)]
pub(in crate::redis) struct Tally<'m> {
    deadline_ms: u64,
    given: usize,
    removed: usize,
    /// The members, when they are to be put down for the log.
    names: Option<Names<'m>>,
}

#[derive(Debug, Default)]
struct Names<'m> {
    given: Vec<&'m [u8]>,
    removed: Vec<&'m [u8]>,
}

/// Puts down that these members of the key have this deadline.
pub(in crate::redis) fn log_deadline<F: Named>(cx: &mut KeyCx<'_>, deadline_ms: u64, members: &[&[u8]]) {
    let (key, names) = (cx.key, F::NAMES);
    let count = members.len() as u64;
    let words = [names.expire_command.into(), key.into(), deadline_ms.into(), names.list.into(), count.into()];
    let _logged = cx.log_of(&words, members.iter().map(|&member| member.into()));
}

impl<'m> Tally<'m> {
    /// Of no member so far that is to have this deadline.
    pub fn new(cx: &KeyCx<'_>, deadline_ms: u64) -> Tally<'m> {
        Tally { deadline_ms, given: 0, removed: 0, names: cx.logs().then(Names::default) }
    }

    /// Puts down what has become of the members.
    pub fn log<F: Named>(&self, cx: &mut KeyCx<'_>) -> Effect {
        if let Some(Names { given, removed }) = &self.names {
            let key = cx.key;
            if !removed.is_empty() {
                let words = [F::NAMES.remove_command.into(), key.into()];
                let _logged = cx.log_of(&words, removed.iter().map(|&member| member.into()));
            }
            if !given.is_empty() {
                log_deadline::<F>(cx, self.deadline_ms, given);
            }
        }
        if self.changed() > 0 { Effect::As } else { Effect::Unchanged }
    }

    /// Gives a member that is there a deadline; takes it out when that has come already.
    pub fn expire<F: Named>(&mut self, collection: &mut WithDeadlines<F>, member: &'m [u8], now_ms: u64) -> i64 {
        if self.deadline_ms <= now_ms {
            collection.take(member);
            self.removed += 1;
            if let Some(names) = &mut self.names {
                names.removed.push(member);
            }
            REMOVED
        } else {
            collection.set_deadline(member, self.deadline_ms);
            self.given += 1;
            if let Some(names) = &mut self.names {
                names.given.push(member);
            }
            DONE
        }
    }

    /// How many members have changed.
    pub fn changed(&self) -> usize {
        self.given + self.removed
    }

    /// The event that tells of it; `None` when nothing has changed.
    pub fn event<F: Named>(&self) -> Option<&'static str> {
        match self {
            Tally { given: 0, removed: 0, .. } => None,
            Tally { removed: 0, .. } => Some(F::NAMES.expire_event),
            Tally { .. } => Some(F::NAMES.remove_event),
        }
    }
}

/// Gives members a deadline: `key amount [NX | XX | GT | LT] FIELDS numfields field [field ...]`, the condition before the
/// members or behind them, for the command of this name in lower case.
pub(in crate::redis) fn expire<F: Named>(
    cx: &mut KeyCx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    command: &'static str,
    unit: TimeUnit,
) -> Result<Effect, CmdError> {
    let now_ms = cx.now_ms();
    let parsed = parse_deadline(args.get(2), unit, now_ms, command).and_then(|deadline_ms| {
        let (members, condition) = parse_members_and_condition(args, F::NAMES)?;
        Ok((deadline_ms, condition, members))
    });
    let (deadline_ms, condition, members) = type_first::<F, _>(cx, parsed)?;
    let (mut tally, expiry_now_ms) = (Tally::new(cx, deadline_ms), cx.expiry_now_ms());
    let outcome = cx.update_existing(|collection: &mut WithDeadlines<F>| {
        reply.array(members.count);
        for member in members.of(args) {
            reply.int(if !collection.has(member) {
                NO_MEMBER
            } else if condition.holds(collection.deadline_ms(member), deadline_ms) {
                tally.expire(collection, member, expiry_now_ms)
            } else {
                REFUSED
            });
        }
        let event = tally.event::<F>();
        Ok(event.map_or(Change::nothing(()), |event| Change::made(event, ()).times(tally.changed())))
    })?;
    let effect = effect_of(outcome, members, reply, |reply| reply.int(NO_MEMBER));
    Ok(if effect.is_change() { tally.log::<F>(cx) } else { effect })
}

/// Takes members' deadlines away: `key FIELDS numfields field [field ...]`.
pub(in crate::redis) fn persist<F: Named>(
    cx: &mut KeyCx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<Effect, CmdError> {
    let parsed = Members::parse(args, 2, F::NAMES);
    let members = type_first::<F, _>(cx, parsed)?;
    let outcome = cx.update_existing(|collection: &mut WithDeadlines<F>| {
        let mut changed = false;
        reply.array(members.count);
        for member in members.of(args) {
            progress::count(1);
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
