//! PFDEBUG and PFSELFTEST: a look at the registers of a HyperLogLog, and a check of the estimates.

use super::sketch::{bytes_of, corrupt, parse};
use std::fmt::Write;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{KeyCx, SessionCx};
use tenon_engine::errors::{CmdError, shown};
use tenon_engine::store::Slot;
use tenon_engine::store::entry::NewValue;
use tenon_engine::store::types::hll::{Encoding, Position, REGISTERS, Registers, Run as RegisterRun, Sketch};
use tenon_engine::wire::resp::Reply;

/// Looks at a sketch.
pub static PFDEBUG: Command = Command {
    name: "PFDEBUG",
    group: Group::HyperLogLog,
    syntax: "subcommand key",
    summary: "Internal commands for debugging HyperLogLog values.",
    complexity: "N/A",
    since: "2.8.9",
    arity: Arity::Exactly(3),
    keys: Keys::Specs(&[KeySpec::at(2, KeyFlags::RW.or(KeyFlags::ACCESS))]),
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::ADMIN),
    run: Run::Key(pfdebug),
};

fn pfdebug(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    if args.is(1, "SIMD") {
        if !args.is(2, "ON") && !args.is(2, "OFF") {
            return Err(CmdError::text("ERR Argument must be ON or OFF"));
        }
        // There is one way to merge registers, whatever the processor has.
        reply.simple("disabled");
        return Ok(Effect::Unchanged);
    }
    let slot = cx.find_for_write().ok_or(CmdError::text("ERR The specified key does not exist"))?;
    let sketch = parse(bytes_of(cx.string(slot)?))?;
    let was_sparse = sketch.encoding() == Encoding::Sparse;
    if args.is(1, "GETREG") {
        let mut registers = Registers::default();
        sketch.merge_into(&mut registers).map_err(corrupt)?;
        if was_sparse {
            let stored = sketch.to_sketch().map_err(corrupt)?;
            store_dense(cx, slot, stored);
        }
        reply.array(REGISTERS);
        registers.counts().iter().for_each(|&count| reply.int(count.into()));
        return Ok(Effect::when(was_sparse));
    }
    if args.is(1, "DECODE") {
        if !was_sparse {
            return Err(CmdError::text("ERR HLL encoding is not sparse"));
        }
        let mut text = String::new();
        for run in sketch.runs().map_err(corrupt)? {
            let _ = match run {
                RegisterRun::Zeros(len) => write!(text, "z:{len} "),
                RegisterRun::ManyZeros(len) => write!(text, "Z:{len} "),
                RegisterRun::Values { value, len } => write!(text, "v:{value},{len} "),
            };
        }
        reply.bulk(text.trim_end().as_bytes());
        return Ok(Effect::Unchanged);
    }
    if args.is(1, "ENCODING") {
        reply.simple(if was_sparse { "sparse" } else { "dense" });
        return Ok(Effect::Unchanged);
    }
    if args.is(1, "TODENSE") {
        if was_sparse {
            let stored = sketch.to_sketch().map_err(corrupt)?;
            store_dense(cx, slot, stored);
        }
        reply.int(was_sparse.into());
        return Ok(Effect::when(was_sparse));
    }
    Err(CmdError::new(format!("ERR Unknown PFDEBUG subcommand '{}'", shown(args.get(1)))))
}

fn store_dense(cx: &mut KeyCx<'_>, slot: Slot, mut sketch: Sketch) {
    sketch.make_dense();
    cx.rewrite(slot, NewValue::Bytes(sketch.as_bytes()));
    cx.mark_raw(slot);
}

/// Checks the estimates.
pub static PFSELFTEST: Command = Command {
    name: "PFSELFTEST",
    group: Group::HyperLogLog,
    syntax: "",
    summary: "An internal command for testing HyperLogLog values.",
    complexity: "N/A",
    since: "2.8.9",
    arity: Arity::Exactly(1),
    keys: Keys::None,
    flags: Flags::ADMIN,
    run: Run::Session(pfselftest),
};

/// Redis adds ten million elements, for which it answers nobody else for seconds; what can go wrong shows sooner.
const ELEMENTS_TESTED: u64 = 100_000;

fn pfselftest(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let sparse_len_max = cx.engine.config.hll_sparse_max_bytes() as usize;
    let seed = u64::from(cx.worker.random()) << 32 | u64::from(cx.worker.random());
    let (mut sketch, mut dense) = (Sketch::default(), Sketch::default());
    dense.make_dense();
    let mut registers = Registers::default();
    let mut checkpoint = 1;
    for nth in 1..=ELEMENTS_TESTED {
        let position = Position::of(&(nth ^ seed).to_le_bytes());
        sketch.raise(position, sparse_len_max);
        dense.raise(position, sparse_len_max);
        registers.raise(position);
        if nth < checkpoint {
            continue;
        }
        checkpoint *= 10;
        if nth < sparse_len_max as u64 / 2 && sketch.view().encoding() != Encoding::Sparse {
            return Err(CmdError::text("ERR TESTFAILED sparse encoding not used"));
        }
        let estimates = [&sketch, &dense].map(|sketch| sketch.view().estimate().map_err(corrupt));
        if estimates.iter().any(|estimate| *estimate != Ok(registers.estimate())) {
            return Err(CmdError::text("ERR TESTFAILED dense/sparse disagree"));
        }
        // Six times the standard error; of few elements, none more than one that shares a register.
        let error = registers.estimate().abs_diff(nth);
        let error_max = (nth as f64 * 6.0 * 1.04 / (REGISTERS as f64).sqrt()).ceil() as u64;
        if error > error_max {
            return Err(CmdError::new(format!("ERR TESTFAILED Too big error. card:{nth} abserr:{error}")));
        }
    }
    reply.simple("OK");
    Ok(())
}
