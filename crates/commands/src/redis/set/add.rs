//! SADD, SREM and SMOVE: members that come and go.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Change, KeyCx, KeysCx};
use tenon_engine::ds::packed::Item;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::Set;
use tenon_engine::wire::resp::Reply;

/// Adds members.
pub static SADD: Command = Command {
    name: "SADD",
    group: Group::Set,
    syntax: "key member [member ...]",
    summary: "Adds one or more members to a set. Creates the key if it doesn't exist.",
    complexity: "O(1) for each element added, so O(N) to add N elements when the command is called with multiple arguments.",
    since: "1.0.0",
    arity: Arity::AtLeast(3),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::ADD)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::FAST),
    run: Run::Key(sadd),
};

fn sadd(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let limits = cx.engine().config.set_limits();
    let (added, effect) = cx.update(|set: &mut Set| {
        set.expect(args.get(2), args.len() - 2, limits);
        let added = args.from(2).filter(|member| set.add(Item::Bytes(member), limits)).count();
        Ok(Change::when(added > 0, "sadd", added).times(added))
    })?;
    reply.int(added as i64);
    Ok(effect)
}

/// Takes members out.
pub static SREM: Command = Command {
    name: "SREM",
    group: Group::Set,
    syntax: "key member [member ...]",
    summary: "Removes one or more members from a set. Deletes the set if the last member was removed.",
    complexity: "O(N) where N is the number of members to be removed.",
    since: "1.0.0",
    arity: Arity::AtLeast(3),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::SHRINK)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Key(srem),
};

fn srem(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let outcome = cx.update_existing(|set: &mut Set| {
        let removed = args.from(2).filter(|member| set.remove(Item::Bytes(member))).count();
        Ok(Change::when(removed > 0, "srem", removed).times(removed))
    })?;
    let (removed, effect) = outcome.unwrap_or((0, Effect::Unchanged));
    reply.int(removed as i64);
    Ok(effect)
}

/// Moves a member to another set.
pub static SMOVE: Command = Command {
    name: "SMOVE",
    group: Group::Set,
    syntax: "source destination member",
    summary: "Moves a member from one set to another.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::Exactly(4),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::READ_AND_DELETE), KeySpec::at(2, KeyFlags::ADD)]),
    flags: Flags::WRITE.or(Flags::FAST),
    run: Run::Keys(smove),
};

fn smove(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let (from, to, member) = (args.get(1), args.get(2), Item::Bytes(args.get(3)));
    let limits = cx.engine().config.set_limits();
    let mut source = cx.key(from);
    let Some(slot) = source.find_for_write() else {
        reply.int(0);
        return Ok(Effect::Unchanged);
    };
    source.collection::<Set>(slot)?;
    let mut destination = cx.key(to);
    if let Some(slot) = destination.find_for_write() {
        destination.collection::<Set>(slot)?;
    }
    // What was due of the destination may have gone, which moves others of its shard.
    let mut source = cx.key(from);
    let slot = source.find().expect("it was there at this instant");
    let is_moved = if from == to {
        source.collection::<Set>(slot)?.contains(member)
    } else {
        let (taken, _) = source.update_in(slot, |set: &mut Set| {
            let taken = set.remove(member);
            Ok(Change::when(taken, "srem", taken))
        })?;
        taken
    };
    reply.int(is_moved.into());
    if !is_moved || from == to {
        return Ok(Effect::Unchanged);
    }
    // Where the destination has it already, the source has still changed.
    let mut destination = cx.key(to);
    let slot = destination.find();
    let ((), _) = destination.update_at(slot, |set: &mut Set| {
        set.expect(args.get(3), 1, limits);
        Ok(Change::when(set.add(member, limits), "sadd", ()))
    })?;
    Ok(Effect::Verbatim)
}
