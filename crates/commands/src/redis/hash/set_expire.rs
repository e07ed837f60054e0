//! HSETEX: fields that get values and deadlines at once.

use crate::redis::member_expiry::arguments::{Members, parse_deadline, unknown};
use crate::redis::member_expiry::change::{Tally, log_deadline};
use crate::redis::member_expiry::names::Named;
use crate::redis::string::options::TimeUnit;
use std::ops::Range;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Change, KeyCx, Word};
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::{Collection, Hash, HashForm};
use tenon_engine::wire::resp::Reply;

/// Sets fields with a deadline.
pub static HSETEX: Command = Command {
    name: "HSETEX",
    group: Group::Hash,
    syntax: "key [NX | XX] [FNX | FXX] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL] FIELDS numfields field value [field value ...]",
    summary: "Set the value of one or more fields of a given hash key, and optionally set their expiration.",
    complexity: "O(N log M) where N is the number of fields being set and M the number of those that have a deadline",
    since: "8.0.0",
    arity: Arity::AtLeast(6),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::FAST),
    run: Run::Key(hsetex),
};

/// Whether the fields are set where there is a key, and where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyIs {
    Either,
    /// NX.
    Absent,
    /// XX.
    Present,
}

/// When the fields are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Always,
    /// FNX: none of them is there.
    AllAbsent,
    /// FXX: all of them are.
    AllPresent,
}

/// What becomes of the deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expire {
    /// A field that is set has none.
    Clear,
    /// KEEPTTL: they stay.
    Keep,
    /// The fields expire then, in milliseconds since the UNIX epoch.
    At(u64),
}

#[derive(Debug, PartialEq, Eq)]
struct Options {
    key_is: KeyIs,
    when: When,
    expire: Expire,
    /// Where fields and values stand, in turn.
    pairs: Range<usize>,
}

impl Options {
    fn parse(args: &Args<'_>, now_ms: u64) -> Result<Options, CmdError> {
        const SEVERAL: CmdError =
            CmdError::text("ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified");
        // Of HGETEX: Redis refuses it when it has read all others.
        let (mut key_is, mut when, mut expire, mut pairs, mut is_of_hgetex) = (None, None, None, None, false);
        let mut at = 2;
        while at < args.len() {
            let unit = TimeUnit::named(args.get(at));
            let condition = match () {
                () if args.is(at, "FNX") => Some(When::AllAbsent),
                () if args.is(at, "FXX") => Some(When::AllPresent),
                () => None,
            };
            let key_condition = match () {
                () if args.is(at, "NX") => Some(KeyIs::Absent),
                () if args.is(at, "XX") => Some(KeyIs::Present),
                () => None,
            };
            if args.is(at, HashForm::NAMES.list) {
                let (fields, next) = Members::parse_once(args, at, 2, HashForm::NAMES, "hsetex", pairs.is_some())?;
                (pairs, at) = (Some(fields.first()..next), next);
                continue;
            }
            if unit.is_some() || args.is(at, "KEEPTTL") {
                if expire.is_some() || unit.is_some() && is_of_hgetex {
                    return Err(SEVERAL);
                }
                expire = Some(Expire::Keep);
                if let Some(unit) = unit {
                    at += 1;
                    let amount = args.try_get(at).ok_or(CmdError::text("ERR missing expire time"))?;
                    expire = Some(Expire::At(parse_deadline(amount, unit, now_ms, "hsetex")?));
                }
            } else if condition.is_some() {
                if when.is_some() {
                    return Err(CmdError::text("ERR Only one of FXX or FNX arguments can be specified"));
                }
                when = condition;
            } else if key_condition.is_some() {
                // Of Valkey, and so are its words.
                if key_is.is_some() && key_is != key_condition {
                    return Err(CmdError::Syntax);
                }
                key_is = key_condition;
            } else if args.is(at, "PERSIST") {
                if is_of_hgetex || matches!(expire, Some(Expire::At(_))) {
                    return Err(SEVERAL);
                }
                is_of_hgetex = true;
            } else {
                return Err(unknown(args.get(at)));
            }
            at += 1;
        }
        let pairs = pairs.ok_or(CmdError::text("ERR missing FIELDS argument"))?;
        if is_of_hgetex {
            return Err(CmdError::text("ERR unknown argument"));
        }
        Ok(Options {
            key_is: key_is.unwrap_or(KeyIs::Either),
            when: when.unwrap_or(When::Always),
            expire: expire.unwrap_or(Expire::Clear),
            pairs,
        })
    }
}

fn hsetex(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let now_ms = cx.now_ms();
    let Options { key_is, when, expire, pairs } = Options::parse(args, now_ms)?;
    let limits = cx.engine().config.hash_limits();
    let fields = || pairs.clone().step_by(2);
    let deadline_ms = if let Expire::At(deadline_ms) = expire { deadline_ms } else { 0 };
    let (mut tally, expiry_now_ms, logs) = (Tally::new(cx, deadline_ms), cx.expiry_now_ms(), cx.logs());
    let mut kept = Vec::new();
    let (is_set, effect) = cx.update(|hash: &mut Hash| {
        // A hash that is there has fields.
        let is_wanted = match key_is {
            KeyIs::Either => true,
            KeyIs::Absent => hash.is_empty(),
            KeyIs::Present => !hash.is_empty(),
        };
        let holds = is_wanted
            && match when {
                When::Always => true,
                When::AllAbsent => !fields().any(|at| hash.contains(args.get(at))),
                When::AllPresent => fields().all(|at| hash.contains(args.get(at))),
            };
        if !holds {
            return Ok(Change::nothing(false));
        }
        for at in fields() {
            let (field, value) = (args.get(at), args.get(at + 1));
            match expire {
                Expire::Clear => hash.set(field, value, limits),
                Expire::Keep | Expire::At(_) => hash.set_value(field, value, limits),
            };
            match expire {
                Expire::At(_) => _ = tally.expire(hash, field, expiry_now_ms),
                Expire::Keep if logs => kept.extend(hash.deadline_ms(field).map(|deadline_ms| (deadline_ms, field))),
                Expire::Clear | Expire::Keep => {}
            }
        }
        Ok(Change::made("hset", true).and(tally.event::<HashForm>()).times(fields().len()))
    })?;
    reply.int(is_set.into());
    if !effect.is_change() {
        return Ok(effect);
    }
    if matches!(expire, Expire::At(deadline_ms) if deadline_ms <= expiry_now_ms) {
        return Ok(tally.log::<HashForm>(cx));
    }
    let key = cx.key;
    let logged = cx.log_of(&["HSET".into(), key.into()], args.from(pairs.start).take(pairs.len()).map(Word::Bytes));
    // HSET takes deadlines away.
    let _deadlines = tally.log::<HashForm>(cx);
    kept.into_iter().for_each(|(deadline_ms, field)| log_deadline::<HashForm>(cx, deadline_ms, &[field]));
    Ok(logged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_engine::args::OwnedArgs;

    #[test]
    fn options_stand_before_the_fields_or_behind() {
        let parse = |words: &str| Options::parse(&OwnedArgs::new(words.split(' ')).view(), 1_000);
        let options = |when, expire, pairs| Ok(Options { key_is: KeyIs::Either, when, expire, pairs });
        assert_eq!(parse("HSETEX k FIELDS 1 f v"), options(When::Always, Expire::Clear, 4..6));
        assert_eq!(parse("HSETEX k px 5 fnx fields 1 f v"), options(When::AllAbsent, Expire::At(1_005), 7..9));
        assert_eq!(parse("HSETEX k FIELDS 1 f v px 5 fnx"), options(When::AllAbsent, Expire::At(1_005), 4..6));
        assert_eq!(parse("HSETEX k FXX KEEPTTL FIELDS 2 f v g w"), options(When::AllPresent, Expire::Keep, 6..10));
        let absent = Options { key_is: KeyIs::Absent, when: When::Always, expire: Expire::At(1_005), pairs: 7..9 };
        assert_eq!(parse("HSETEX k PX 5 nx FIELDS 1 f v"), Ok(absent));
        for (words, error) in [
            ("HSETEX k FXX FNX FIELDS 1 f v", "ERR Only one of FXX or FNX arguments can be specified"),
            ("HSETEX k GT FIELDS 1 f v", "ERR unknown argument: GT"),
            ("HSETEX k NX XX FIELDS 1 f v", "ERR syntax error"),
            ("HSETEX k FNX KEEPTTL FXX f", "ERR Only one of FXX or FNX arguments can be specified"),
            ("HSETEX k EX 5 FNX PX", "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified"),
            ("HSETEX k FNX KEEPTTL", "ERR missing FIELDS argument"),
            ("HSETEX k FNX EX", "ERR missing expire time"),
            ("HSETEX k FIELDS 1 f", "ERR wrong number of arguments"),
            ("HSETEX k FIELDS 2 f v", "ERR wrong number of arguments"),
            ("HSETEX k FIELDS 1 f v g", "ERR unknown argument: g"),
            ("HSETEX k FIELDS 1 f v FIELDS 1 g v", "ERR FIELDS keyword specified multiple times"),
            ("HSETEX k FIELDS 1 f v PERSIST", "ERR unknown argument"),
            (
                "HSETEX k PERSIST EX 5 FIELDS 1 f v",
                "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified",
            ),
            (
                "HSETEX k PERSIST PERSIST FIELDS 1 f v",
                "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified",
            ),
            (
                "HSETEX k PERSIST KEEPTTL PERSIST",
                "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified",
            ),
            ("HSETEX k KEEPTTL PERSIST FIELDS 1 f v", "ERR unknown argument"),
            ("HSETEX k FNX EX 5 FIELDS", "ERR wrong number of arguments for 'hsetex' command"),
            ("HSETEX k FIELDS 0 f v", "ERR invalid number of fields"),
            ("HSETEX k FIELDS 2147483648 f v", "ERR invalid number of fields"),
        ] {
            assert_eq!(parse(words).unwrap_err().to_string(), error, "{words}");
        }
    }
}
