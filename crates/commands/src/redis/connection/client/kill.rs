//! CLIENT KILL: closing connections.

use super::filter::{By, Filter};
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;

/// One filter; any number of them may stand one behind the other.
macro_rules! filter_syntax {
    () => {
        "[ID client-id [client-id ...]] | [TYPE <NORMAL | MASTER | PRIMARY | SLAVE | REPLICA | PUBSUB>] | \
         [USER username] | [ADDR ip:port] | [LADDR ip:port] | [SKIPME <YES | NO>] | [MAXAGE maxage] | \
         [NAME name] | [IDLE idle] | [FLAGS flags] | [LIB-NAME lib-name] | [LIB-VER lib-ver] | [DB db] | \
         [CAPA capa] | [IP ip] | [NOT-ID client-id [client-id ...]] | \
         [NOT-TYPE <NORMAL | MASTER | PRIMARY | SLAVE | REPLICA | PUBSUB>] | [NOT-USER username] | \
         [NOT-ADDR ip:port] | [NOT-LADDR ip:port] | [NOT-NAME name] | [NOT-FLAGS flags] | \
         [NOT-LIB-NAME lib-name] | [NOT-LIB-VER lib-ver] | [NOT-DB db] | [NOT-CAPA capa] | [NOT-IP ip]"
    };
}

/// Closes connections by address, or by filters.
pub static KILL: Command = Command {
    name: "CLIENT KILL",
    group: Group::Connection,
    syntax: concat!("<ip:port | <", filter_syntax!(), "> [<", filter_syntax!(), "> ...]>"),
    summary: "Terminates open connections.",
    complexity: "O(N) where N is the number of client connections",
    since: "2.4.0",
    arity: Arity::AtLeast(3),
    keys: Keys::None,
    flags: Flags::ADMIN.or(Flags::NO_SCRIPT).or(Flags::LOADING).or(Flags::STALE),
    run: Run::Session(kill),
};

fn kill(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    // The first form there was: an address alone, which may be the caller's own.
    let by_address_alone = args.len() == 3;
    let filter = match by_address_alone {
        true => Filter::of_remote(args.get(2)),
        false => Filter::parse(cx.engine, args, By::Kill)?,
    };
    let mut killed = 0;
    for client in cx.engine.clients.list() {
        if !filter.takes(&client, cx.engine, cx.session, cx.worker.clock.now_ms) {
            continue;
        }
        killed += 1;
        if client.id == cx.session.client.id {
            // The reply still leaves.
            cx.session.closing = true;
        } else {
            cx.engine.clients.kill(&client);
        }
    }
    match (by_address_alone, killed) {
        (true, 0) => return Err(CmdError::text("ERR No such client")),
        (true, _) => reply.simple("OK"),
        (false, _) => reply.int(killed),
    }
    Ok(())
}
