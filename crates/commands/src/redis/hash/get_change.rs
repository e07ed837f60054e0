//! HGETEX and HGETDEL: values that are given while their fields get another deadline, or go.

use super::get::reply_value;
use crate::redis::member_expiry::arguments::{Members, parse_deadline, type_first, unknown};
use crate::redis::member_expiry::change::{Tally, effect_of};
use crate::redis::member_expiry::names::Named;
use crate::redis::string::options::TimeUnit;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Change, KeyCx, Word};
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::{Collection, Hash, HashForm};
use tenon_engine::wire::resp::Reply;

/// Gives values and sets or takes away their fields' deadlines.
pub static HGETEX: Command = Command {
    name: "HGETEX",
    group: Group::Hash,
    syntax: "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST] FIELDS numfields field [field ...]",
    summary: "Get the value of one or more fields of a given hash key, and optionally set their expiration.",
    complexity: "O(N log M) where N is the number of specified fields and M the number of those that have a deadline",
    since: "8.0.0",
    arity: Arity::AtLeast(5),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::READ_AND_CHANGE).notes("RW and UPDATE because it changes the TTL")]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(hgetex),
};

/// What becomes of the deadlines.
#[derive(Clone, Copy)]
enum Then {
    /// They stay.
    Nothing,
    /// PERSIST: there are none any more.
    Persist,
    /// The fields expire then, in milliseconds since the UNIX epoch.
    Expire(u64),
}

/// Reads the fields and the option, which stands before them or behind.
fn parse(args: &Args<'_>, now_ms: u64) -> Result<(Then, Members), CmdError> {
    const SEVERAL: CmdError =
        CmdError::text("ERR Only one of EX, PX, EXAT, PXAT or PERSIST arguments can be specified");
    // Words of HSETEX: Redis refuses them when it has read all others.
    let (mut then, mut fields, mut keeps, mut has_condition) = (Then::Nothing, None, false, false);
    let mut at = 2;
    while at < args.len() {
        let unit = TimeUnit::named(args.get(at));
        if args.is(at, HashForm::NAMES.list) {
            let (found, next) = Members::parse_once(args, at, 1, HashForm::NAMES, "hgetex", fields.is_some())?;
            (fields, at) = (Some(found), next);
            continue;
        }
        if unit.is_some() || args.is(at, "PERSIST") {
            if !matches!(then, Then::Nothing) || unit.is_some() && keeps {
                return Err(SEVERAL);
            }
            then = Then::Persist;
            if let Some(unit) = unit {
                at += 1;
                let amount = args.try_get(at).ok_or(CmdError::text("ERR missing expire time"))?;
                then = Then::Expire(parse_deadline(amount, unit, now_ms, "hgetex")?);
            }
        } else if args.is(at, "KEEPTTL") {
            if keeps || matches!(then, Then::Expire(_)) {
                return Err(SEVERAL);
            }
            keeps = true;
        } else if args.is(at, "FNX") || args.is(at, "FXX") {
            if has_condition {
                return Err(CmdError::text("ERR Only one of FXX or FNX arguments can be specified"));
            }
            has_condition = true;
        } else {
            return Err(unknown(args.get(at)));
        }
        at += 1;
    }
    let fields = fields.ok_or(CmdError::text("ERR missing FIELDS argument"))?;
    if keeps || has_condition { Err(CmdError::text("ERR unknown argument")) } else { Ok((then, fields)) }
}

fn hgetex(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let now_ms = cx.now_ms();
    let (then, fields) = type_first::<HashForm, _>(cx, parse(args, now_ms))?;
    let deadline_ms = if let Then::Expire(deadline_ms) = then { deadline_ms } else { 0 };
    let (mut tally, expiry_now_ms) = (Tally::new(cx, deadline_ms), cx.expiry_now_ms());
    let outcome = cx.update_existing(|hash: &mut Hash| {
        let mut persisted = 0;
        reply.array(fields.count);
        for field in fields.of(args) {
            let value = hash.view().get(field);
            let is_there = value.is_some();
            reply_value(reply, value);
            match then {
                Then::Persist => persisted += usize::from(hash.persist(field)),
                Then::Expire(_) if is_there => {
                    tally.expire(hash, field, expiry_now_ms);
                }
                Then::Nothing | Then::Expire(_) => {}
            }
        }
        Ok(match tally.event::<HashForm>() {
            Some(event) => Change::made(event, ()).times(tally.changed()),
            None => Change::when(persisted > 0, HashForm::NAMES.persist_event, ()).times(persisted),
        })
    })?;
    let effect = effect_of(outcome, fields, reply, |reply| reply.null());
    Ok(match then {
        _ if !effect.is_change() => effect,
        Then::Expire(_) => tally.log::<HashForm>(cx),
        Then::Persist | Then::Nothing => {
            let key = cx.key;
            let words = ["HPERSIST".into(), key.into(), "FIELDS".into(), (fields.count as u64).into()];
            cx.log_of(&words, fields.of(args).map(Word::Bytes))
        }
    })
}

/// Gives values and takes their fields out.
pub static HGETDEL: Command = Command {
    name: "HGETDEL",
    group: Group::Hash,
    syntax: "key FIELDS numfields field [field ...]",
    summary: "Returns the value of a field and deletes it from the hash.",
    complexity: "O(N) where N is the number of specified fields",
    since: "8.0.0",
    arity: Arity::AtLeast(5),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::READ_AND_DELETE)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(hgetdel),
};

fn hgetdel(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let parsed = Members::parse(args, 2, HashForm::NAMES);
    let fields = type_first::<HashForm, _>(cx, parsed)?;
    let outcome = cx.update_existing(|hash: &mut Hash| {
        let mut removed = 0;
        reply.array(fields.count);
        for field in fields.of(args) {
            reply_value(reply, hash.view().get(field));
            removed += usize::from(hash.remove(field));
        }
        Ok(Change::when(removed > 0, HashForm::NAMES.remove_event, ()).times(removed))
    })?;
    let effect = effect_of(outcome, fields, reply, |reply| reply.null());
    if !effect.is_change() {
        return Ok(effect);
    }
    let key = cx.key;
    Ok(cx.log_of(&["HDEL".into(), key.into()], fields.of(args).map(Word::Bytes)))
}
