//! WAIT and WAITAOF: a client waits until its writes are safe elsewhere. There are no replicas, so that is on this server's
//! disk, or in vain.

use tenon_engine::args::Args;
use tenon_engine::blocking::{Copies, Timeout};
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

const FLAGS: Flags = Flags::BLOCKING.or(Flags::IN_CONNECTION);
const NOT_LOCAL: CmdError = CmdError::text("ERR value is out of range, value must between 0 and 1");

/// Waits until so many replicas have the client's writes: none ever has.
pub static WAIT: Command = Command {
    name: "WAIT",
    group: Group::Generic,
    syntax: "numreplicas timeout",
    summary: "Blocks until the asynchronous replication of all preceding write commands sent by the connection is completed.",
    complexity: "O(1)",
    since: "3.0.0",
    arity: Arity::Exactly(3),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(wait),
};

/// Waits until the client's writes are on disk here, and on so many replicas.
pub static WAITAOF: Command = Command {
    name: "WAITAOF",
    group: Group::Generic,
    syntax: "numlocal numreplicas timeout",
    summary: "Blocks until all of the preceding write commands sent by the connection are written to the append-only file of the master and/or replicas.",
    complexity: "O(1)",
    since: "7.2.0",
    arity: Arity::Exactly(4),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(waitaof),
};

fn wait(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let replicas = parse_i64(args.get(1)).ok_or(CmdError::NotInteger)?;
    let timeout = Timeout::of_milliseconds(args.get(2), cx.worker.clock.now_ms)?;
    if replicas <= 0 || !cx.engine.may_wait(cx) {
        reply.int(0);
    } else {
        cx.engine.wait_for_copies(cx, args, Copies::Elsewhere, timeout);
    }
    Ok(())
}

fn waitaof(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let local = match parse_i64(args.get(1)).ok_or(CmdError::NotInteger)? {
        0 => false,
        1 => true,
        _ => return Err(NOT_LOCAL),
    };
    let replicas = parse_i64(args.get(2)).filter(|replicas| *replicas >= 0).ok_or(CmdError::MustBePositive)?;
    let timeout = Timeout::of_milliseconds(args.get(3), cx.worker.clock.now_ms)?;
    let on_disk = match cx.engine.is_on_disk(cx) {
        Err(no_log) if local => return Err(no_log),
        on_disk => on_disk.unwrap_or(false),
    };
    if (on_disk || !local) && replicas == 0 || !cx.engine.may_wait(cx) {
        reply.array(2);
        reply.int(on_disk.into());
        reply.int(0);
        return Ok(());
    }
    cx.engine.wait_for_copies(cx, args, Copies::OnDisk { and_elsewhere: replicas > 0 }, timeout);
    Ok(())
}
