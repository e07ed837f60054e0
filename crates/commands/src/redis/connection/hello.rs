//! HELLO: client and server agree on a protocol version.

use super::client::identity::{check_name, set_name};
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::{CmdError, shown};
use tenon_engine::version;
use tenon_engine::wire::resp::number::parse_i64;
use tenon_engine::wire::resp::{Proto, Reply};

const NOT_AUTHENTICATED: &str = "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
    HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at \
    the same time";

/// Chooses the RESP version, and may authenticate and name the connection on the way.
pub static HELLO: Command = Command {
    name: "HELLO",
    group: Group::Connection,
    syntax: "[protover [AUTH username password] [SETNAME clientname]]",
    summary: "Handshakes with the Redis server.",
    complexity: "O(1)",
    since: "6.0.0",
    arity: Arity::AtLeast(1),
    keys: Keys::None,
    flags: Flags::NO_SCRIPT
        .or(Flags::LOADING)
        .or(Flags::STALE)
        .or(Flags::FAST)
        .or(Flags::NO_AUTH)
        .or(Flags::ALLOW_BUSY),
    run: Run::Session(hello),
};

/// What HELLO was asked for.
#[derive(Debug, Default, PartialEq)]
struct Handshake<'a> {
    proto: Option<Proto>,
    /// User and password.
    login: Option<(&'a [u8], &'a [u8])>,
    name: Option<&'a [u8]>,
}

fn parse<'a>(cx: &mut SessionCx<'_>, args: &Args<'a>) -> Result<Handshake<'a>, CmdError> {
    let mut wanted = Handshake::default();
    let Some(version) = args.try_get(1) else { return Ok(wanted) };
    // Also where the arguments turn out to be wrong.
    for at in (2..args.len()).filter(|at| args.is(*at, "AUTH")) {
        cx.keep_secret(at + 1);
        cx.keep_secret(at + 2);
    }
    wanted.proto = Some(match parse_i64(version) {
        Some(2) => Proto::Resp2,
        Some(3) => Proto::Resp3,
        Some(_) => return Err(CmdError::text("NOPROTO unsupported protocol version")),
        None => return Err(CmdError::text("ERR Protocol version is not an integer or out of range")),
    });
    let mut at = 2;
    while at < args.len() {
        let more = args.len() - at - 1;
        if args.is(at, "AUTH") && more >= 2 {
            wanted.login = Some((args.get(at + 1), args.get(at + 2)));
            at += 3;
        } else if args.is(at, "SETNAME") && more >= 1 {
            let name = args.get(at + 1);
            check_name(name)?;
            wanted.name = Some(name);
            at += 2;
        } else {
            let option = shown(args.get(at));
            return Err(CmdError::new(format!("ERR Syntax error in HELLO option '{option}'")));
        }
    }
    Ok(wanted)
}

fn hello(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let wanted = parse(cx, args)?;
    if let Some(login) = wanted.login {
        cx.engine.log_in(cx.worker, cx.session, login, args)?;
    }
    if !cx.session.authenticated {
        return Err(CmdError::text(NOT_AUTHENTICATED));
    }
    if let Some(name) = wanted.name {
        set_name(&cx.session.client, name);
    }
    if let Some(proto) = wanted.proto {
        cx.session.set_proto(proto, reply.out());
    }
    // The answer is the first to be written in the new version.
    let mut reply = Reply::new(reply.out(), cx.session.proto);
    reply.map(7);
    reply.bulk(b"server");
    // Clients look for this name to know whom they speak to.
    reply.bulk(b"redis");
    reply.bulk(b"version");
    reply.bulk(version::REDIS.as_bytes());
    reply.bulk(b"proto");
    reply.int(match cx.session.proto {
        Proto::Resp2 => 2,
        Proto::Resp3 => 3,
    });
    reply.bulk(b"id");
    reply.int(cx.session.client.id as i64);
    reply.bulk(b"mode");
    reply.bulk(b"standalone");
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"modules");
    reply.array(0);
    Ok(())
}
