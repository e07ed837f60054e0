//! PFMERGE: several HyperLogLogs become one.

use super::sketch::{bytes_of, corrupt, parse};
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Deadline, KeysCx};
use tenon_engine::errors::CmdError;
use tenon_engine::notify::EventClass;
use tenon_engine::store::entry::NewValue;
use tenon_engine::store::types::hll::{Encoding, Registers, Sketch};
use tenon_engine::wire::resp::Reply;

/// Merges sketches.
pub static PFMERGE: Command = Command {
    name: "PFMERGE",
    group: Group::HyperLogLog,
    syntax: "destkey [sourcekey [sourcekey ...]]",
    summary: "Merges one or more HyperLogLog values into a single key.",
    complexity: "O(N) to merge N HyperLogLogs, but with high constant times.",
    since: "2.8.9",
    arity: Arity::AtLeast(2),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::ADD.or(KeyFlags::ACCESS)), KeySpec::rest(2, KeyFlags::READ)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM),
    run: Run::Keys(pfmerge),
};

fn pfmerge(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let sparse_len_max = cx.engine().config.hll_sparse_max_bytes() as usize;
    let mut registers = Registers::default();
    let mut merged = Sketch::default();
    let mut any_dense = false;
    for (index, key) in args.from(1).enumerate() {
        let mut source = cx.key(key);
        let Some(value) = source.read_string()? else { continue };
        let sketch = parse(bytes_of(value))?;
        sketch.merge_into(&mut registers).map_err(corrupt)?;
        any_dense |= sketch.encoding() == Encoding::Dense;
        if index == 0 {
            merged = sketch.to_sketch().map_err(corrupt)?;
        }
    }
    if any_dense {
        merged.take_dense(&registers);
    } else {
        for position in registers.raised() {
            merged.raise(position, sparse_len_max);
        }
        merged.outdate();
    }
    let value = NewValue::Bytes(merged.as_bytes());
    let mut target = cx.key(args.get(1));
    match target.find_for_write() {
        Some(slot) => {
            target.rewrite(slot, value);
            target.mark_raw(slot);
        }
        None => target.store_raw(None, value, Deadline::Clear),
    }
    // In Redis, too, a merge is an addition of many elements.
    target.notify(EventClass::STRING, "pfadd");
    reply.simple("OK");
    Ok(Effect::Verbatim)
}
