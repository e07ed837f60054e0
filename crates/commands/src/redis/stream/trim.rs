//! XTRIM: the oldest entries go.

use super::trim_args::{parse_trim, words_of_trim};
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Change, KeyCx};
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::Stream;
use tenon_engine::wire::resp::Reply;

/// Deletes the oldest entries.
pub static XTRIM: Command = Command {
    name: "XTRIM",
    group: Group::Stream,
    syntax: "key <MAXLEN | MINID> [= | ~] threshold [LIMIT count] [KEEPREF | DELREF | ACKED]",
    summary: "Deletes messages from the beginning of a stream.",
    complexity: "O(N), with N being the number of evicted entries. Constant times are very small however, since entries are organized in macro nodes containing multiple entries that can be released with a single deallocation.",
    since: "5.0.0",
    arity: Arity::AtLeast(4),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::SHRINK)]),
    flags: Flags::WRITE,
    run: Run::Key(xtrim),
};

fn xtrim(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let trimming = parse_trim(args, cx.engine())?;
    let outcome = cx.update_existing(|stream: &mut Stream| {
        let (count, taken) = stream.trim(trimming.trim, trimming.references);
        Ok(Change::when(count > 0, "xtrim", (count, taken, stream.len())).times(count as usize))
    })?;
    let Some(((count, taken, len), effect)) = outcome else {
        reply.int(0);
        return Ok(Effect::Unchanged);
    };
    let allocations = taken.allocations();
    cx.worker().discard_part(taken, allocations);
    reply.int(count as i64);
    if !effect.is_change() {
        return Ok(effect);
    }
    let words = ["XTRIM".into(), cx.key.into()].into_iter().chain(words_of_trim(trimming, len));
    Ok(cx.log(&words.collect::<Vec<_>>()))
}
