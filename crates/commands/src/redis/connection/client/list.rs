//! CLIENT INFO and CLIENT LIST: who is connected.

use super::filter::{By, Filter};
use tenon_engine::args::Args;
use tenon_engine::client_line::Lines;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;

/// Describes this connection.
pub static INFO: Command = Command {
    name: "CLIENT INFO",
    group: Group::Connection,
    syntax: "",
    summary: "Returns information about the connection.",
    complexity: "O(1)",
    since: "6.2.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: Flags::NO_SCRIPT.or(Flags::LOADING).or(Flags::STALE),
    run: Run::Session(info),
};

fn info(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let mut lines = Lines::new(cx.engine, cx.session, cx.worker.clock.now_ms, &INFO, args);
    lines.push(&cx.session.client);
    reply.verbatim(b"txt", lines.text.as_bytes());
    Ok(())
}

/// Describes connections, one a line.
pub static LIST: Command = Command {
    name: "CLIENT LIST",
    group: Group::Connection,
    syntax: "[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]] [USER username] [ADDR ip:port] [LADDR ip:port] [SKIPME <YES | NO>] [MAXAGE maxage] [NAME name] [IDLE idle] [FLAGS flags] [LIB-NAME lib-name] [LIB-VER lib-ver] [DB db] [CAPA capa] [IP ip] [NOT-TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [NOT-ID client-id [client-id ...]] [NOT-USER username] [NOT-ADDR ip:port] [NOT-LADDR ip:port] [NOT-NAME name] [NOT-FLAGS flags] [NOT-LIB-NAME lib-name] [NOT-LIB-VER lib-ver] [NOT-DB db] [NOT-CAPA capa] [NOT-IP ip]",
    summary: "Lists open connections.",
    complexity: "O(N) where N is the number of client connections",
    since: "2.4.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: Flags::ADMIN.or(Flags::NO_SCRIPT).or(Flags::LOADING).or(Flags::STALE),
    run: Run::Session(list),
};

fn list(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let filter = Filter::parse(cx.engine, args, By::List)?;
    let clients = &cx.engine.clients;
    let now_ms = cx.worker.clock.now_ms;
    let mut listed = match filter.ids() {
        None => clients.list(),
        // In the order asked for, and as often.
        Some(ids) => ids.iter().filter_map(|&id| clients.get(id)).collect(),
    };
    listed.retain(|client| filter.takes(client, cx.engine, cx.session, now_ms));
    let mut lines = Lines::new(cx.engine, cx.session, now_ms, &LIST, args);
    listed.iter().for_each(|client| lines.push(client));
    reply.verbatim(b"txt", lines.text.as_bytes());
    Ok(())
}
