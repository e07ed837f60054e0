//! PFCOUNT: about how many different elements one HyperLogLog has, or several have together.

use super::sketch::{bytes_of, corrupt, parse};
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{KeyCx, KeysCx};
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::hll::{Registers, estimate_field};
use tenon_engine::string::Text;
use tenon_engine::wire::resp::Reply;

/// Counts elements.
pub static PFCOUNT: Command = Command {
    name: "PFCOUNT",
    group: Group::HyperLogLog,
    syntax: "key [key ...]",
    summary: "Returns the approximated cardinality of the set(s) observed by the HyperLogLog key(s).",
    complexity: "O(1) with a very small average constant time when called with a single key. O(N) with N being the \
                 number of keys, and much bigger constant times, when called with multiple keys.",
    since: "2.8.9",
    arity: Arity::AtLeast(2),
    keys: Keys::Specs(&[KeySpec::rest(1, KeyFlags::RW.or(KeyFlags::ACCESS))
        .notes("RW because it may change the internal representation of the key, and propagate to replicas")]),
    flags: Flags::READONLY.or(Flags::MAY_REPLICATE),
    run: Run::Keys(pfcount),
};

fn pfcount(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let (count, effect) = match args.len() {
        2 => count_one(&mut cx.key(args.get(1)))?,
        _ => (count_together(cx, args)?, Effect::Unchanged),
    };
    reply.int(i64::try_from(count).unwrap_or(i64::MAX));
    Ok(effect)
}

/// The estimate of one sketch, which keeps it until its registers change: what reads, too, may change the string.
fn count_one(cx: &mut KeyCx<'_>) -> Result<(u64, Effect), CmdError> {
    let Some(slot) = cx.find_for_read() else { return Ok((0, Effect::Unchanged)) };
    let estimate = {
        let sketch = parse(bytes_of(cx.string(slot)?))?;
        if let Some(estimate) = sketch.last_estimate() {
            return Ok((estimate, Effect::Unchanged));
        }
        sketch.estimate().map_err(corrupt)?
    };
    let (at, field) = estimate_field(estimate);
    cx.write_at(slot, at, Text::Bytes(&field));
    Ok((estimate, Effect::Verbatim))
}

fn count_together(cx: &mut KeysCx<'_>, args: &Args<'_>) -> Result<u64, CmdError> {
    let mut registers = Registers::default();
    for key in args.from(1) {
        if let Some(value) = cx.key(key).read_string()? {
            parse(bytes_of(value))?.merge_into(&mut registers).map_err(corrupt)?;
        }
    }
    Ok(registers.estimate())
}
