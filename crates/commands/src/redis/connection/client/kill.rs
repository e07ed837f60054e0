//! CLIENT KILL: closing connections.

use super::kind::Kind;
use std::sync::atomic::Ordering;
use tenon_engine::Engine;
use tenon_engine::args::Args;
use tenon_engine::clients::Client;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::{CmdError, shown};
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

/// Closes connections by address, or by filters.
pub static KILL: Command = Command {
    name: "CLIENT KILL",
    group: Group::Connection,
    syntax: "<ip:port | <[ID client-id] | [TYPE <NORMAL | MASTER | SLAVE | REPLICA | PUBSUB>] | [USER username] | \
             [ADDR ip:port] | [LADDR ip:port] | [SKIPME <YES | NO>] | [MAXAGE maxage] \
             [[ID client-id] | [TYPE <NORMAL | MASTER | SLAVE | REPLICA | PUBSUB>] | [USER username] | \
             [ADDR ip:port] | [LADDR ip:port] | [SKIPME <YES | NO>] | [MAXAGE maxage] ...]>>",
    summary: "Terminates open connections.",
    complexity: "O(N) where N is the number of client connections",
    since: "2.4.0",
    arity: Arity::AtLeast(3),
    keys: Keys::None,
    flags: Flags::ADMIN.or(Flags::NO_SCRIPT).or(Flags::LOADING).or(Flags::STALE),
    run: Run::Session(kill),
};

/// Whom to kill: all conditions hold.
#[derive(Debug, Default, PartialEq)]
struct Filter<'a> {
    id: Option<u64>,
    remote: Option<&'a [u8]>,
    local: Option<&'a [u8]>,
    kind: Option<Kind>,
    user: Option<&'a [u8]>,
    /// Connected for so many seconds at least.
    age_min: Option<u64>,
    spares_caller: bool,
}

impl<'a> Filter<'a> {
    fn parse(engine: &Engine, args: &Args<'a>) -> Result<Filter<'a>, CmdError> {
        let mut filter = Filter { spares_caller: true, ..Filter::default() };
        for at in (2..args.len()).step_by(2) {
            let Some(value) = args.try_get(at + 1) else { return Err(CmdError::Syntax) };
            if args.is(at, "ID") {
                let id = parse_i64(value).filter(|id| *id > 0);
                let id = id.ok_or(CmdError::text("ERR client-id should be greater than 0"))?;
                filter.id = Some(id.unsigned_abs());
            } else if args.is(at, "MAXAGE") {
                let age = parse_i64(value).ok_or(CmdError::text("ERR maxage is not an integer or out of range"))?;
                if age <= 0 {
                    return Err(CmdError::text("ERR maxage should be greater than 0"));
                }
                filter.age_min = Some(age.unsigned_abs());
            } else if args.is(at, "TYPE") {
                filter.kind = Some(Kind::parse(value)?);
            } else if args.is(at, "ADDR") {
                filter.remote = Some(value);
            } else if args.is(at, "LADDR") {
                filter.local = Some(value);
            } else if args.is(at, "USER") {
                if engine.acl.find(value).is_none() {
                    let name = shown(value);
                    return Err(CmdError::new(format!("ERR No such user '{name}'")));
                }
                filter.user = Some(value);
            } else if args.is(at, "SKIPME") && args.is(at + 1, "YES") {
                filter.spares_caller = true;
            } else if args.is(at, "SKIPME") && args.is(at + 1, "NO") {
                filter.spares_caller = false;
            } else {
                return Err(CmdError::Syntax);
            }
        }
        Ok(filter)
    }

    fn takes(&self, client: &Client, now_ms: u64) -> bool {
        let is = |wanted: Option<&[u8]>, found: &str| wanted.is_none_or(|wanted| wanted == found.as_bytes());
        let age = now_ms.saturating_sub(client.since_ms) / 1_000;
        self.id.is_none_or(|id| id == client.id)
            && is(self.remote, &client.info.remote)
            && is(self.local, &client.info.local)
            && self.kind.is_none_or(|kind| kind == Kind::of(client))
            && self.user.is_none_or(|wanted| *wanted == **client.user.lock())
            && self.age_min.is_none_or(|least| age >= least)
            && !client.killed.load(Ordering::Relaxed)
    }
}

fn kill(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    // The first form there was: an address alone, which may be the caller's own.
    let by_address_alone = args.len() == 3;
    let filter = match by_address_alone {
        true => Filter { remote: Some(args.get(2)), ..Filter::default() },
        false => Filter::parse(cx.engine, args)?,
    };
    let mut killed = 0;
    for client in cx.engine.clients.list() {
        let is_me = client.id == cx.session.client.id;
        if (is_me && filter.spares_caller) || !filter.takes(&client, cx.worker.clock.now_ms) {
            continue;
        }
        killed += 1;
        if is_me {
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
