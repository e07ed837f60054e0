//! CLIENT INFO and CLIENT LIST: who is connected.

use super::kind::Kind;
use std::sync::atomic::Ordering;
use tenon_engine::args::Args;
use tenon_engine::client_line::Lines;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

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
    syntax: "[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]",
    summary: "Lists open connections.",
    complexity: "O(N) where N is the number of client connections",
    since: "2.4.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: Flags::ADMIN.or(Flags::NO_SCRIPT).or(Flags::LOADING).or(Flags::STALE),
    run: Run::Session(list),
};

/// Which clients are listed.
enum Which {
    All,
    OfKind(Kind),
    WithIds(Vec<i64>),
}

impl Which {
    fn parse(args: &Args<'_>) -> Result<Which, CmdError> {
        if args.len() == 2 {
            Ok(Which::All)
        } else if args.len() == 4 && args.is(2, "TYPE") {
            Kind::parse(args.get(3)).map(Which::OfKind)
        } else if args.len() > 3 && args.is(2, "ID") {
            let ids = args.from(3).map(|id| parse_i64(id).ok_or(CmdError::text("ERR Invalid client ID")));
            ids.collect::<Result<_, _>>().map(Which::WithIds)
        } else {
            Err(CmdError::Syntax)
        }
    }
}

fn list(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let which = Which::parse(args)?;
    let clients = &cx.engine.clients;
    let mut listed = match which {
        Which::All => clients.list(),
        Which::OfKind(kind) => clients.list().into_iter().filter(|client| Kind::of(client) == kind).collect(),
        Which::WithIds(ids) => {
            ids.iter().filter_map(|&id| u64::try_from(id).ok()).filter_map(|id| clients.get(id)).collect()
        }
    };
    // Whoever was killed is gone for clients, even if its worker has not closed it yet.
    listed.retain(|client| !client.killed.load(Ordering::Relaxed));
    let mut lines = Lines::new(cx.engine, cx.session, cx.worker.clock.now_ms, &LIST, args);
    listed.iter().for_each(|client| lines.push(client));
    reply.verbatim(b"txt", lines.text.as_bytes());
    Ok(())
}
