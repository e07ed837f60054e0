//! MEMORY LARGEST: the keys that take most memory. The engine keeps them in mind as they change.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::ServerCx;
use tenon_engine::errors::CmdError;
use tenon_engine::large::{LargeKey, largest_keys};
use tenon_engine::store::types::ValueType;
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

/// Keys shown without COUNT.
const COUNT: usize = 10;

/// Names the largest keys; no other server has it.
pub static LARGEST: Command = Command {
    name: "MEMORY LARGEST",
    group: Group::Server,
    syntax: "[COUNT count] [TYPE type]",
    summary: "Returns the keys of all databases that take most memory, as far as they take 16 KiB and their names not more than 1 KiB, with the bytes of each.",
    complexity: "O(N) where N is the number of large keys that the server keeps in mind, at most 4,096.",
    since: "0.1.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: Flags::READONLY.or(Flags::DANGEROUS),
    run: Run::Server(largest),
};

fn largest(cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let (mut count, mut value_type) = (COUNT, None);
    let mut at = 2;
    while at < args.len() {
        match () {
            () if at + 1 == args.len() => return Err(CmdError::Syntax),
            () if args.is(at, "COUNT") => {
                let number = parse_i64(args.get(at + 1)).ok_or(CmdError::NotInteger)?;
                let number = usize::try_from(number).ok().filter(|&number| number > 0);
                count = number.ok_or(CmdError::text("ERR COUNT must be > 0"))?;
            }
            () if args.is(at, "TYPE") => {
                let wanted = ValueType::ALL.into_iter().find(|known| args.is(at + 1, known.name()));
                value_type = Some(wanted.ok_or(CmdError::text("ERR unknown type name"))?);
            }
            () => return Err(CmdError::Syntax),
        }
        at += 2;
    }
    let keys = largest_keys(cx, count, value_type);
    reply.array(keys.len());
    for LargeKey { database, key, bytes, value_type } in keys {
        reply.map(4);
        reply.bulk(b"key");
        reply.bulk(&key);
        reply.bulk(b"db");
        reply.int(database as i64);
        reply.bulk(b"type");
        reply.bulk(value_type.name().as_bytes());
        reply.bulk(b"bytes");
        reply.int(bytes as i64);
    }
    Ok(())
}
