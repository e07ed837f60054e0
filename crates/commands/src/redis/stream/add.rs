//! XADD: entries.

use super::id::NewId;
use super::producers::{limits_of_new, log_limits, log_record};
use super::reply::{IdText, reply_id};
use super::trim_args::{parse_add, words_of_trim};
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Change, KeyCx, Word};
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::Stream;
use tenon_engine::store::types::stream::{StreamId, TakenBlocks};
use tenon_engine::wire::resp::Reply;

const NO_LOWEST_ID: CmdError = CmdError::text("ERR The ID specified in XADD must be greater than 0-0");
const TOO_LOW: CmdError =
    CmdError::text("ERR The ID specified in XADD is equal or smaller than the target stream top item");
const EXHAUSTED: CmdError =
    CmdError::text("ERR The stream has exhausted the last possible ID, unable to add more items");
const TOO_LARGE: CmdError = CmdError::text("ERR Elements are too large to be stored");

/// Bytes of the longest entry that Redis stores (`STREAM_LISTPACK_MAX_SIZE`).
const ENTRY_LEN_MAX: usize = 1 << 30;

/// Adds an entry.
pub static XADD: Command = Command {
    name: "XADD",
    group: Group::Stream,
    syntax: "key [NOMKSTREAM] [KEEPREF | DELREF | ACKED] [IDMPAUTO pid | IDMP pid iid] [<MAXLEN | MINID> [= | ~] threshold [LIMIT count]] <* | id> field value [field value ...]",
    summary: "Appends a new message to a stream. Creates the key if it doesn't exist.",
    complexity: "O(1) when adding a new entry, O(N) when trimming where N being the number of entries evicted.",
    since: "5.0.0",
    arity: Arity::AtLeast(5),
    keys: Keys::Specs(&[
        KeySpec::at(1, KeyFlags::CHANGE).notes("UPDATE instead of INSERT because of the optional trimming feature")
    ]),
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::FAST),
    run: Run::Key(xadd),
};

/// The id that is meant, behind the last one.
fn new_id(wanted: NewId, last: StreamId, now_ms: u64) -> Result<StreamId, CmdError> {
    if last == StreamId::MAX {
        return Err(EXHAUSTED);
    }
    let id = match wanted {
        NewId::Next => last.following(now_ms),
        NewId::NextIn(ms) if ms == last.ms => last.next().filter(|id| id.ms == ms),
        NewId::NextIn(ms) => Some(StreamId::new(ms, 0)),
        NewId::Exactly(id) => Some(id),
    };
    id.filter(|&id| id > last).ok_or(TOO_LOW)
}

fn xadd(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let is_replaying = cx.is_replaying();
    let options = parse_add(args, cx.engine(), is_replaying)?;
    if options.id == NewId::Exactly(StreamId::MIN) {
        return Err(NO_LOWEST_ID);
    }
    let len: usize = (options.fields_at..args.len()).map(|index| args.len_of(index)).sum();
    let fields = Fields { args: *args, at: options.fields_at };
    let (limits, now_ms) = (cx.engine().config.stream_limits(), cx.now_ms());
    let producer = options.producer.map(|asked| (asked.name(args), asked.id(args, fields.clone())));
    let producer = producer.as_ref().map(|(name, id)| (*name, &**id));
    // A log has the ids of those that were added: without one it has come again.
    let came_again = is_replaying && producer.is_some() && options.id == NewId::Next;
    let makes_stream = options.makes_stream && !came_again;
    let limits_of_new = if makes_stream { limits_of_new(cx) } else { None };
    let mut told_limits = limits_of_new;
    let add = |stream: &mut Stream| {
        let known = match producer {
            Some(_) if came_again => Some(stream.last_id()),
            Some((name, id)) if !is_replaying => stream.entry_of_producer(name, id, now_ms),
            _ => None,
        };
        if let Some(id) = known {
            stream.count_duplicate();
            return Ok(Change::aside(None, Outcome::Known(id)));
        }
        let id = new_id(options.id, stream.last_id(), now_ms)?;
        if len > ENTRY_LEN_MAX {
            return Err(TOO_LARGE);
        }
        stream.append(id, fields, limits);
        if let Some(limits) = limits_of_new {
            stream.set_producer_limits(limits);
        }
        if let Some((name, of_producer)) = producer {
            if is_replaying {
                // Nothing expires by itself meanwhile, and a long log has many producers.
                stream.forget_past(now_ms, usize::MAX);
            }
            if stream.is_new_to_producers() {
                // What is remembered must not hang on the settings under which the log is read.
                told_limits = Some(stream.producer_limits());
            }
            stream.remember(name, of_producer, id);
        }
        let trimmed = match options.trimming {
            Some(trimming) => stream.trim(trimming.trim, trimming.references),
            None => (0, TakenBlocks::default()),
        };
        let second_event = (trimmed.0 > 0).then_some("xtrim");
        Ok(Change::made("xadd", Outcome::Added(id, trimmed, stream.len())).and(second_event))
    };
    let outcome = if makes_stream { Some(cx.update(add)?) } else { cx.update_existing(add)? };
    let (id, (trimmed, taken), len) = match outcome {
        None => {
            reply.null();
            return Ok(Effect::Unchanged);
        }
        Some((Outcome::Known(id), effect)) => {
            reply_id(reply, id);
            return Ok(effect);
        }
        Some((Outcome::Added(id, trimmed, len), effect)) => {
            debug_assert!(effect.is_change(), "an entry was added");
            (id, trimmed, len)
        }
    };
    let allocations = taken.allocations();
    cx.worker().discard_part(taken, allocations);
    reply_id(reply, id);
    if !cx.logs() {
        return Ok(Effect::As);
    }
    let (key, id_text) = (cx.key, IdText::of(id));
    let mut words: Vec<Word<'_>> = vec!["XADD".into(), key.into()];
    if let Some(asked) = options.producer
        && told_limits.is_none()
    {
        words.extend(asked.words(args));
    }
    words.extend(options.trimming.filter(|_| trimmed > 0).into_iter().flat_map(|trim| words_of_trim(trim, len)));
    words.push(id_text.as_bytes().into());
    let mut effect = cx.log_of(&words, args.from(options.fields_at).map(Word::Bytes));
    if let Some(limits) = told_limits {
        // Whoever gets other limits forgets what it remembered.
        effect = log_limits(cx, limits);
        if let Some((name, of_producer)) = producer {
            effect = log_record(cx, name, of_producer, id);
        }
    }
    Ok(effect)
}

/// What became of an entry.
enum Outcome {
    /// It was added with this id, so many others were trimmed, and so many are left.
    Added(StreamId, (u64, TakenBlocks), u64),
    /// It had been added before, with this id.
    Known(StreamId),
}

/// Fields and values in turn, from an argument on.
#[derive(Clone)]
struct Fields<'a> {
    args: Args<'a>,
    at: usize,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let field = self.args.try_get(self.at)?;
        let value = self.args.get(self.at + 1);
        self.at += 2;
        Some((field, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.args.len() - self.at) / 2;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Fields<'_> {}
