//! RESTORE: a value from what DUMP gave, here or in the original.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::ds::progress;
use tenon_engine::errors::CmdError;
use tenon_engine::notify::EventClass;
use tenon_engine::persist::rdb::file::OnModule;
use tenon_engine::persist::rdb::{self, DecodeError, LoadError, Loaded};
use tenon_engine::store::access::AccessClock;
use tenon_engine::store::entry::Meta;
use tenon_engine::store::types::ValueType;
use tenon_engine::wire::rdb::ReadError;
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

/// Makes a key of a payload.
pub static RESTORE: Command = Command {
    name: "RESTORE",
    group: Group::Generic,
    syntax: "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
    summary: "Creates a key from the serialized representation of a value.",
    complexity: "O(1) to create the new key and additional O(N*M) to reconstruct the serialized value, where N is the number of Redis objects composing the value and M their average size. For small string values the time complexity is thus O(1)+O(1*M) where M is small, so simply O(1). However for sorted set values the complexity is O(N*M*log(N)) because inserting values into sorted sets is O(log(N)).",
    since: "2.6.0",
    arity: Arity::AtLeast(4),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::OVERWRITE)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::DANGEROUS),
    run: Run::Key(restore),
};

/// How the key was used, as whoever restores it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Nothing is said.
    Now,
    /// Last so many seconds ago.
    IdleSeconds(i64),
    /// So often.
    Frequency(u8),
}

impl Use {
    /// The access bits, if the policy in force keeps what was said.
    fn access(self, clock: AccessClock) -> u32 {
        match self {
            Use::IdleSeconds(seconds) if !clock.notes_frequency() => {
                clock.idle_since(u32::try_from(seconds).unwrap_or(u32::MAX))
            }
            Use::Frequency(frequency) if clock.notes_frequency() => clock.with_frequency(frequency),
            Use::Now | Use::IdleSeconds(_) | Use::Frequency(_) => clock.created(),
        }
    }

    /// How the log says it.
    fn words(self) -> Option<(&'static str, i64)> {
        match self {
            Use::Now => None,
            Use::IdleSeconds(seconds) => Some(("IDLETIME", seconds)),
            Use::Frequency(frequency) => Some(("FREQ", frequency.into())),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Options {
    /// REPLACE: the key may be there.
    replace: bool,
    /// ABSTTL: the time to live is a moment.
    absolute: bool,
    used: Use,
}

impl Options {
    fn parse(args: &Args<'_>) -> Result<Options, CmdError> {
        let mut options = Options { replace: false, absolute: false, used: Use::Now };
        let mut at = 4;
        while at < args.len() {
            let has_value = at + 1 < args.len();
            if args.is(at, "REPLACE") {
                options.replace = true;
            } else if args.is(at, "ABSTTL") {
                options.absolute = true;
            } else if args.is(at, "IDLETIME") && has_value && !matches!(options.used, Use::Frequency(_)) {
                at += 1;
                let seconds = parse_i64(args.get(at)).ok_or(CmdError::NotInteger)?;
                if seconds < 0 {
                    return Err(CmdError::text("ERR Invalid IDLETIME value, must be >= 0"));
                }
                options.used = Use::IdleSeconds(seconds);
            } else if args.is(at, "FREQ") && has_value && !matches!(options.used, Use::IdleSeconds(_)) {
                at += 1;
                let frequency = parse_i64(args.get(at)).ok_or(CmdError::NotInteger)?;
                let wrong = CmdError::text("ERR Invalid FREQ value, must be >= 0 and <= 255");
                options.used = Use::Frequency(u8::try_from(frequency).map_err(|_| wrong)?);
            } else {
                return Err(CmdError::Syntax);
            }
            at += 1;
        }
        Ok(options)
    }
}

fn restore(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let options = Options::parse(args)?;
    // In Redis's order: of several mistakes clients are told the same one.
    if !options.replace && cx.find_for_write().is_some() {
        return Err(CmdError::text("BUSYKEY Target key name already exists."));
    }
    let ttl_ms = parse_i64(args.get(2)).ok_or(CmdError::NotInteger)?;
    let ttl_ms = u64::try_from(ttl_ms).map_err(|_| CmdError::text("ERR Invalid TTL value, must be >= 0"))?;
    // Its checksum comes first.
    progress::count_bytes(args.get(3).len());
    let engine = cx.engine();
    // What the log has was let in once, and nothing of it may be missing.
    let (room, on_metadata) =
        if cx.is_replaying() { (usize::MAX, OnModule::Skip) } else { (engine.memory_left(), engine.on_module()) };
    let loaded = rdb::load(args.get(3), engine.limits(), room, on_metadata);
    let Loaded { value, client_flags } = loaded.map_err(refusal)?;
    let now_ms = cx.now_ms();
    let deadline_ms = match (ttl_ms, options.absolute) {
        (0, _) => None,
        (ms, true) => Some(ms),
        (ms, false) => Some(ms.checked_add(now_ms).filter(|sum| i64::try_from(*sum).is_ok()))
            .map(|sum| sum.ok_or(CmdError::InvalidExpire("restore")))
            .transpose()?,
    };
    // Without REPLACE there is none.
    let before = cx.find();
    let displaced = cx.displaced(before);
    let was_there = options.replace && cx.delete();
    if deadline_ms.is_some_and(|deadline| deadline <= cx.expiry_now_ms()) {
        reply.ok();
        if !was_there {
            return Ok(Effect::Unchanged);
        }
        cx.notify(EventClass::GENERIC, "del");
        return Ok(cx.log_deleted());
    }
    let access = options.used.access(cx.worker().clock.access);
    let meta = Meta { deadline_ms, flags: client_flags, access, ..Meta::default() };
    value.store(|value| cx.store_moved(value, &meta));
    if was_there {
        // That the one is gone and the other there is one change.
        cx.count_changes(-1);
    }
    cx.notify(EventClass::GENERIC, "restore");
    reply.ok();
    let key = cx.key;
    // As it came, with members that may be past their deadlines: what becomes of those is told when they go.
    let slot = cx.find_as_it_is().expect("it was just stored");
    cx.notify_displaced(displaced, ValueType::of(cx.entry(slot).value()));
    if options.used == Use::Now && cx.string(slot).is_ok() {
        return Ok(cx.log_string(slot));
    }
    let words = ["RESTORE".into(), key.into(), deadline_ms.unwrap_or(0).into(), args.get(3).into(), "REPLACE".into()];
    let absolute = deadline_ms.map(|_| "ABSTTL".into());
    let used = options.used.words().map(|(word, number)| [word.into(), number.into()]);
    let rest: Vec<_> = absolute.into_iter().chain(used.into_iter().flatten()).collect();
    Ok(cx.log_of(&words, rest.into_iter()))
}

fn refusal(error: LoadError) -> CmdError {
    match error {
        LoadError::Footer => CmdError::text("ERR DUMP payload version or checksum are wrong"),
        LoadError::Value(DecodeError::Read(ReadError::TooLarge)) => CmdError::OutOfMemory,
        LoadError::Value(why) => {
            tracing::debug!("RESTORE has refused a payload: {why}");
            CmdError::text("ERR Bad data format")
        }
    }
}
