//! ACL LOG: what was refused of late.

use super::container::ADMIN;
use crate::redis::help::wrong_form;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

/// Entries that are shown when not told how many.
const COUNT_DEFAULT: usize = 10;

/// Shows the last refusals, or forgets them.
pub static LOG: Command = Command {
    name: "ACL LOG",
    group: Group::Server,
    syntax: "[count | RESET]",
    summary: "Lists recent security events generated due to ACL rules.",
    complexity: "O(N) with N being the number of entries shown.",
    since: "6.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: ADMIN,
    run: Run::Session(log),
};

fn log(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let count = match args.len() {
        2 => COUNT_DEFAULT,
        3 if args.is(2, "RESET") => {
            cx.engine.acl.log.clear();
            reply.simple("OK");
            return Ok(());
        }
        3 => usize::try_from(parse_i64(args.get(2)).ok_or(CmdError::NotInteger)?).unwrap_or(0),
        _ => return Err(wrong_form(args)),
    };
    let entries = cx.engine.acl.log.last(count);
    reply.array(entries.len());
    for entry in entries {
        reply.map(10);
        reply.bulk(b"count");
        reply.int(entry.count as i64);
        for (name, text) in [
            ("reason", entry.reason.name().as_bytes()),
            ("context", entry.context.name().as_bytes()),
            ("object", &entry.object),
            ("username", &entry.user),
        ] {
            reply.bulk(name.as_bytes());
            reply.bulk(text);
        }
        reply.bulk(b"age-seconds");
        reply.double(cx.worker.clock.now_ms.saturating_sub(entry.updated_ms) as f64 / 1_000.0);
        reply.bulk(b"client-info");
        reply.bulk(entry.client.as_bytes());
        for (name, number) in [
            ("entry-id", entry.id),
            ("timestamp-created", entry.created_ms),
            ("timestamp-last-updated", entry.updated_ms),
        ] {
            reply.bulk(name.as_bytes());
            reply.int(number as i64);
        }
    }
    Ok(())
}
