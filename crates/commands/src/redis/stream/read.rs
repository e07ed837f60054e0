//! XREAD: what has come since.

use super::id::parse_id;
use super::read_args::{ReadArgs, Reader, StreamsReply, find_keys};
use super::reply::reply_entries;
use crate::redis::answer_limit::AnswerLimit;
use tenon_engine::args::{Args, OwnedArgs};
use tenon_engine::blocking::Outcome;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{KeysCx, view_of};
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::Stream;
use tenon_engine::store::types::stream::StreamId;
use tenon_engine::wire::resp::Reply;

const NEW_IN_XREAD: CmdError = CmdError::text(
    "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.",
);

/// Gives the entries behind an id of each stream.
pub static XREAD: Command = Command {
    name: "XREAD",
    group: Group::Stream,
    syntax: "[COUNT count] [BLOCK milliseconds] STREAMS key [key ...] id [id ...]",
    summary: "Returns messages from multiple streams with IDs greater than the ones requested. Blocks until a message is available otherwise.",
    complexity: "For each stream mentioned: O(N) with N being the number of elements being returned, it means that XREAD-ing with a fixed COUNT is O(1). Note that when the BLOCK option is used, XADD will pay O(M) time in order to serve the M clients blocked on the stream getting new data.",
    since: "5.0.0",
    arity: Arity::AtLeast(4),
    keys: Keys::Found { specs: &[KeySpec::half_behind("STREAMS", 1, KeyFlags::READ)], find: find_keys },
    flags: Flags::READONLY.or(Flags::BLOCKING),
    run: Run::Blocking(xread),
};

/// The id behind which a stream is read, which may stand for what there is now: `$` for what comes, `+` for the last
/// entry.
fn position(text: &[u8], stream: Option<&Stream>) -> Result<StreamId, CmdError> {
    match text {
        b"$" => Ok(stream.map_or(StreamId::MIN, Stream::last_id)),
        b"+" => {
            let last = stream.and_then(Stream::last).and_then(|entry| entry.id().previous());
            Ok(last.unwrap_or(StreamId::MIN))
        }
        b">" => Err(NEW_IN_XREAD),
        _ => parse_id(text, 0),
    }
}

fn xread(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Outcome, CmdError> {
    let read = ReadArgs::parse(args, Reader::Alone, cx.now_ms())?;
    let mut positions = Vec::with_capacity(read.streams());
    for stream in 0..read.streams() {
        let key = read.key(args, stream);
        // Where it has waited, what other keys hold by now is not its business.
        positions.push(if cx.is_ready(key) {
            let mut cx = cx.key(key);
            let found = cx.read_collection::<Stream>()?;
            Some(position(args.get(read.id_at(stream)), found)?)
        } else {
            None
        });
    }
    let (limit, mut streams) = (AnswerLimit::of_output(cx.engine(), reply), StreamsReply::default());
    for (stream, position) in positions.iter().enumerate() {
        let Some(position) = position else { continue };
        limit.check(reply)?;
        let key = read.key(args, stream);
        let Some(entry) = cx.peek(key) else { continue };
        let found = view_of::<Stream>(entry.value())?;
        let mut entries = found.behind(*position).take(read.count).peekable();
        if entries.peek().is_some() {
            streams.begin_stream(key, reply);
            reply_entries(reply, entries);
        }
    }
    if streams.finish(reply) {
        return Ok(Outcome::Done(Effect::Unchanged));
    }
    Ok(read.wait(reply, |wait| {
        let is_new = |at: usize| args.get(at) == b"$";
        if !(0..read.streams()).any(|stream| is_new(read.id_at(stream))) {
            return wait;
        }
        // What was there when it came is not what it waits for.
        let first = read.id_at(0);
        let resolved = |at: usize| match positions.get(at.wrapping_sub(first)) {
            Some(Some(position)) if is_new(at) => position.to_string().into_bytes(),
            _ => args.get(at).to_vec(),
        };
        wait.with_args(OwnedArgs::new((0..args.len()).map(resolved)))
    }))
}
