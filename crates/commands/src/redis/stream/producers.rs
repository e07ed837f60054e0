//! What streams remember of their producers: the options IDMP and IDMPAUTO of XADD, XCFGSET, and XIDMPRECORD. Knows nothing
//! of how entries are added.

use super::id::parse_id;
use super::reply::IdText;
use std::borrow::Cow;
use std::ops::RangeInclusive;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Change, KeyCx, Word};
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::Stream;
use tenon_engine::store::types::stream::{ProducerLimits, StreamId};
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;
use xxhash_rust::xxh3::Xxh3;

const TWICE: CmdError = CmdError::text("ERR syntax error, IDMP/IDMPAUTO specified multiple times");
const NO_PRODUCER_AUTO: CmdError = CmdError::text("ERR syntax error, IDMPAUTO requires a non-empty producer ID");
const NO_PRODUCER: CmdError = CmdError::text("ERR syntax error, IDMP requires a non-empty producer ID");
const NO_ID: CmdError = CmdError::text("ERR syntax error, IDMP requires a non-empty idempotent ID");
const DURATION_TWICE: CmdError = CmdError::text("ERR IDMP-DURATION specified multiple times");
const MAXSIZE_TWICE: CmdError = CmdError::text("ERR IDMP-MAXSIZE specified multiple times");
const WRONG_DURATION: CmdError = CmdError::text("ERR IDMP-DURATION must be between 1 and 86400 seconds");
const WRONG_MAXSIZE: CmdError = CmdError::text("ERR IDMP-MAXSIZE must be between 1 and 10000 entries");
const NOTHING_TO_SET: CmdError = CmdError::text("ERR At least one parameter must be specified");
const RECORD_WITHOUT_PRODUCER: CmdError = CmdError::text("ERR producer ID must be non-empty");
const RECORD_WITHOUT_ID: CmdError = CmdError::text("ERR idempotent ID must be non-empty");
const NO_ENTRY: CmdError = CmdError::text("ERR No such message in stream");
const OF_ANOTHER_ENTRY: CmdError =
    CmdError::text("ERR IID already exists for this producer with a different stream ID");

const KEYS: Keys = Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]);

/// Sets how much a stream remembers of its producers.
pub static XCFGSET: Command = Command {
    name: "XCFGSET",
    group: Group::Stream,
    syntax: "key [IDMP-DURATION duration] [IDMP-MAXSIZE maxsize]",
    summary: "Sets the IDMP configuration parameters for a stream.",
    complexity: "O(1)",
    since: "8.6.0",
    arity: Arity::AtLeast(2),
    keys: KEYS,
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(xcfgset),
};

/// Has a stream remember that one of its entries came with an id of a producer's.
pub static XIDMPRECORD: Command = Command {
    name: "XIDMPRECORD",
    group: Group::Stream,
    syntax: "key pid iid stream-id",
    summary: "An internal command for setting IDMP metadata on an existing stream message.",
    complexity: "O(1)",
    since: "8.6.2",
    arity: Arity::Exactly(5),
    keys: KEYS,
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::FAST),
    run: Run::Key(xidmprecord),
};

/// Whose entry is to be added, in which arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProducerArgs {
    name_at: usize,
    /// The id that the producer gave it; without one it is made of the fields.
    id_at: Option<usize>,
}

impl ProducerArgs {
    /// Reads the option at argument `at`, `given` being what was read before; gives where the next one is, or nothing when
    /// it is none.
    ///
    /// # Errors
    /// When it makes no sense.
    pub(super) fn read(
        args: &Args<'_>,
        at: usize,
        given: Option<ProducerArgs>,
    ) -> Result<Option<(ProducerArgs, usize)>, CmdError> {
        let (name_at, id_at, no_name) = match () {
            () if args.is(at, "IDMPAUTO") && at + 1 < args.len() => (at + 1, None, NO_PRODUCER_AUTO),
            () if args.is(at, "IDMP") && at + 2 < args.len() => (at + 1, Some(at + 2), NO_PRODUCER),
            () => return Ok(None),
        };
        if given.is_some() {
            return Err(TWICE);
        }
        if args.len_of(name_at) == 0 {
            return Err(no_name);
        }
        if id_at.is_some_and(|id_at| args.len_of(id_at) == 0) {
            return Err(NO_ID);
        }
        Ok(Some((ProducerArgs { name_at, id_at }, id_at.unwrap_or(name_at) + 1)))
    }

    /// The producer's name.
    pub(super) fn name<'a>(self, args: &Args<'a>) -> &'a [u8] {
        args.get(self.name_at)
    }

    /// The entry's id.
    pub(super) fn id<'a>(self, args: &Args<'a>, fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Cow<'a, [u8]> {
        match self.id_at {
            Some(id_at) => Cow::Borrowed(args.get(id_at)),
            None => Cow::Owned(id_of_fields(fields).to_vec()),
        }
    }

    /// The words that say so.
    pub(super) fn words<'a>(self, args: &Args<'a>) -> impl Iterator<Item = Word<'a>> {
        let (option, id) = match self.id_at {
            Some(id_at) => ("IDMP", Some(args.get(id_at).into())),
            None => ("IDMPAUTO", None),
        };
        [option.into(), self.name(args).into()].into_iter().chain(id)
    }
}

/// The id that Redis makes of an entry's fields, in whatever order they come: files and logs hold it.
fn id_of_fields<'a>(fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> [u8; 16] {
    let (mut sum, mut xor) = ([0u64; 2], [0u64; 2]);
    for (field, value) in fields {
        let mut hasher = Xxh3::new();
        hasher.update(field);
        hasher.update(&(field.len() as u64).to_le_bytes());
        hasher.update(value);
        let digest = hasher.digest128();
        for (half, bits) in [digest as u64, (digest >> 64) as u64].into_iter().enumerate() {
            sum[half] = sum[half].wrapping_add(bits);
            xor[half] ^= bits;
        }
    }
    let [low, high] = [sum[0] ^ xor[1].rotate_left(1), sum[1] ^ xor[0].rotate_left(1)];
    (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
}

/// The limits that a stream gets if the command makes it, where they are not the usual ones.
pub(super) fn limits_of_new(cx: &mut KeyCx<'_>) -> Option<ProducerLimits> {
    let limits = cx.engine().config.producer_limits();
    (limits != ProducerLimits::INITIAL && cx.find().is_none()).then_some(limits)
}

/// Puts down that the stream has these limits.
pub(super) fn log_limits(cx: &mut KeyCx<'_>, limits: ProducerLimits) -> Effect {
    let (key, duration_s, ids_max) = (cx.key, u64::from(limits.duration_s), u64::from(limits.ids_max));
    let words = [
        "XCFGSET".into(),
        key.into(),
        "IDMP-DURATION".into(),
        duration_s.into(),
        "IDMP-MAXSIZE".into(),
        ids_max.into(),
    ];
    cx.log(&words)
}

/// Puts down that an entry came with this id of a producer's.
pub(super) fn log_record(cx: &mut KeyCx<'_>, name: &[u8], id: &[u8], entry: StreamId) -> Effect {
    let (key, entry) = (cx.key, IdText::of(entry));
    cx.log(&["XIDMPRECORD".into(), key.into(), name.into(), id.into(), entry.as_bytes().into()])
}

/// Reads the options of XCFGSET, and what they leave as it was.
fn parse_limits(args: &Args<'_>, before: ProducerLimits) -> Result<ProducerLimits, CmdError> {
    let (mut duration_s, mut ids_max) = (None, None);
    for at in (2..args.len()).step_by(2) {
        let within = |range: RangeInclusive<u32>, wrong: CmdError| {
            let number = parse_i64(args.get(at + 1)).ok_or(CmdError::NotInteger)?;
            u32::try_from(number).ok().filter(|number| range.contains(number)).ok_or(wrong)
        };
        let has_value = at + 1 < args.len();
        match () {
            () if has_value && args.is(at, "IDMP-DURATION") => {
                if duration_s.is_some() {
                    return Err(DURATION_TWICE);
                }
                duration_s = Some(within(ProducerLimits::DURATIONS_S, WRONG_DURATION)?);
            }
            () if has_value && args.is(at, "IDMP-MAXSIZE") => {
                if ids_max.is_some() {
                    return Err(MAXSIZE_TWICE);
                }
                ids_max = Some(within(ProducerLimits::IDS_MAX, WRONG_MAXSIZE)?);
            }
            () => return Err(CmdError::Syntax),
        }
    }
    if duration_s.is_none() && ids_max.is_none() {
        return Err(NOTHING_TO_SET);
    }
    Ok(ProducerLimits {
        duration_s: duration_s.unwrap_or(before.duration_s),
        ids_max: ids_max.unwrap_or(before.ids_max),
    })
}

fn xcfgset(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let outcome = cx.update_existing(|stream: &mut Stream| {
        let limits = parse_limits(args, stream.producer_limits())?;
        Ok(match stream.set_producer_limits(limits) {
            Some(forgotten) => Change::aside(None, Some(forgotten)),
            None => Change::nothing(None),
        })
    })?;
    let (forgotten, effect) = outcome.ok_or(CmdError::NoSuchKey)?;
    if let Some(forgotten) = forgotten {
        let allocations = forgotten.allocations();
        cx.worker().discard_part(forgotten, allocations);
    }
    reply.ok();
    Ok(effect)
}

fn xidmprecord(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let entry = parse_id(args.get(4), 0)?;
    let (name, id) = (args.get(2), args.get(3));
    if name.is_empty() {
        return Err(RECORD_WITHOUT_PRODUCER);
    }
    if id.is_empty() {
        return Err(RECORD_WITHOUT_ID);
    }
    let (now_ms, is_replaying) = (cx.now_ms(), cx.is_replaying());
    let mut told_limits = None;
    let outcome = cx.update_existing(|stream: &mut Stream| {
        // A log says what was remembered, though the entry was deleted meanwhile.
        if !is_replaying && stream.get(entry).is_none() {
            return Err(NO_ENTRY);
        }
        match stream.entry_of_producer(name, id, now_ms) {
            Some(known) if known == entry => return Ok(Change::nothing(())),
            // What was past or pushed out when the log was written may be there under other settings, or another clock.
            Some(_) if !is_replaying => return Err(OF_ANOTHER_ENTRY),
            _ => {}
        }
        told_limits = stream.is_new_to_producers().then(|| stream.producer_limits());
        stream.remember(name, id, entry);
        Ok(Change::aside(None, ()))
    })?;
    let ((), effect) = outcome.ok_or(CmdError::NoSuchKey)?;
    reply.ok();
    if let Some(limits) = told_limits {
        _ = log_limits(cx, limits);
        return Ok(log_record(cx, name, id, entry));
    }
    Ok(effect)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_made_of_fields_as_in_redis() {
        let id = |fields: &[(&str, &str)]| {
            let hex = |byte: &u8| format!("{byte:02x}");
            let fields = fields.iter().map(|(field, value)| (field.as_bytes(), value.as_bytes()));
            id_of_fields(fields).iter().map(hex).collect::<String>()
        };
        // As XIDMPRECORD in a log of Redis 8.6.3 has them.
        assert_eq!(id(&[("a", "1")]), "034b44ffc743320ce2cb07999104fc02");
        assert_eq!(id(&[("a", "1"), ("b", "2")]), "c5b282935f77a53123e1ff7a302a11f2");
        assert_eq!(id(&[("b", "2"), ("a", "1")]), id(&[("a", "1"), ("b", "2")]));
        assert_eq!(id(&[("field", &"long".repeat(100)), ("", ""), ("x", "")]), "e549f7072eef5c96db93e9f7adf708dc");
    }
}
