//! PFADD: adding elements to a HyperLogLog.

use super::sketch::{bytes_of, corrupt, parse};
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Deadline, KeyCx};
use tenon_engine::errors::CmdError;
use tenon_engine::notify::EventClass;
use tenon_engine::store::Slot;
use tenon_engine::store::entry::NewValue;
use tenon_engine::store::types::hll::{Encoding, Position, Sketch, raise_dense};
use tenon_engine::wire::resp::Reply;

/// Adds elements.
pub static PFADD: Command = Command {
    name: "PFADD",
    group: Group::HyperLogLog,
    syntax: "key [element [element ...]]",
    summary: "Adds elements to a HyperLogLog key. Creates the key if it doesn't exist.",
    complexity: "O(1) to add every element.",
    since: "2.8.9",
    arity: Arity::AtLeast(2),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::ADD)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::FAST),
    run: Run::Key(pfadd),
};

fn pfadd(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let slot = cx.find_for_write();
    let is_changed = match slot {
        None => {
            let mut sketch = Sketch::default();
            let raised = raise_all(cx, &mut sketch, args.from(2));
            cx.count_changes(raised as i64);
            // A new sketch has no estimate, not even that of no element.
            sketch.outdate();
            cx.store_raw(None, NewValue::Bytes(sketch.as_bytes()), Deadline::Clear);
            true
        }
        Some(slot) => add_to(cx, slot, args)?,
    };
    if is_changed {
        cx.notify(EventClass::STRING, "pfadd");
    }
    reply.int(is_changed.into());
    Ok(Effect::when(is_changed))
}

/// Adds the elements to a stored sketch; tells whether it has changed.
fn add_to(cx: &mut KeyCx<'_>, slot: Slot, args: &Args<'_>) -> Result<bool, CmdError> {
    let stored = parse(bytes_of(cx.string(slot)?))?;
    // Once many were added most elements change nothing, and then nobody is told of a change.
    let mut first = 2;
    let below = loop {
        if first == args.len() {
            return Ok(false);
        }
        if let Some(below) = stored.find_below(Position::of(args.get(first))).map_err(corrupt)? {
            break below;
        }
        first += 1;
    };
    let sparse_len_max = cx.engine().config.hll_sparse_max_bytes() as usize;
    let mut sketch = if stored.encoding() == Encoding::Sparse {
        stored.to_raised(below, sparse_len_max).map_err(corrupt)?
    } else {
        let mut raised = 0;
        let changed_in_place = cx.change_inline(slot, |sketch| {
            raised = args.from(first).filter(|element| raise_dense(sketch, Position::of(element))).count();
        });
        if changed_in_place {
            cx.count_changes(raised as i64 - 1);
            cx.mark_raw(slot);
            return Ok(true);
        }
        parse(bytes_of(cx.string(slot)?))?.to_raised(below, sparse_len_max).map_err(corrupt)?
    };
    let further = raise_all(cx, &mut sketch, args.from(first + 1));
    cx.count_changes(further as i64);
    cx.rewrite(slot, NewValue::Bytes(sketch.as_bytes()));
    cx.mark_raw(slot);
    Ok(true)
}

/// Adds the elements; tells how many have raised a register.
fn raise_all<'a>(cx: &KeyCx<'_>, sketch: &mut Sketch, elements: impl Iterator<Item = &'a [u8]>) -> usize {
    let sparse_len_max = cx.engine().config.hll_sparse_max_bytes() as usize;
    elements.filter(|element| sketch.raise(Position::of(element), sparse_len_max)).count()
}
