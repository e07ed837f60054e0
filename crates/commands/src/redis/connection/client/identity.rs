//! CLIENT ID, GETNAME, SETNAME and SETINFO: who a connection is.

use tenon_engine::args::Args;
use tenon_engine::clients::Client;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::{CmdError, shown};
use tenon_engine::wire::resp::Reply;

const FLAGS: Flags = Flags::NO_SCRIPT.or(Flags::LOADING).or(Flags::STALE);

/// Whether CLIENT LIST can show the text as one word: printable ASCII without blanks.
fn is_word(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_graphic)
}

/// Whether a connection may have this name; the empty one takes its name away.
pub(in crate::redis::connection) fn check_name(name: &[u8]) -> Result<(), CmdError> {
    match is_word(name) {
        true => Ok(()),
        false => Err(CmdError::text("ERR Client names cannot contain spaces, newlines or special characters.")),
    }
}

/// Gives the client a name that [`check_name`] has let through.
pub(in crate::redis::connection) fn set_name(client: &Client, name: &[u8]) {
    *client.name.lock() = String::from_utf8_lossy(name).into_owned();
}

/// Tells the connection's number.
pub static ID: Command = Command {
    name: "CLIENT ID",
    group: Group::Connection,
    syntax: "",
    summary: "Returns the unique client ID of the connection.",
    complexity: "O(1)",
    since: "5.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(id),
};

fn id(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply.int(cx.session.client.id as i64);
    Ok(())
}

/// Tells the connection's name.
pub static GETNAME: Command = Command {
    name: "CLIENT GETNAME",
    group: Group::Connection,
    syntax: "",
    summary: "Returns the name of the connection.",
    complexity: "O(1)",
    since: "2.6.9",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(get_name),
};

fn get_name(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let name = cx.session.client.name.lock();
    if name.is_empty() {
        reply.null()
    } else {
        reply.bulk(name.as_bytes())
    }
    Ok(())
}

/// Names the connection.
pub static SETNAME: Command = Command {
    name: "CLIENT SETNAME",
    group: Group::Connection,
    syntax: "connection-name",
    summary: "Sets the connection name.",
    complexity: "O(1)",
    since: "2.6.9",
    arity: Arity::Exactly(3),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(rename),
};

fn rename(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    check_name(args.get(2))?;
    set_name(&cx.session.client, args.get(2));
    reply.simple("OK");
    Ok(())
}

/// Says which library the client uses.
pub static SETINFO: Command = Command {
    name: "CLIENT SETINFO",
    group: Group::Connection,
    syntax: "<LIB-NAME libname | LIB-VER libver>",
    summary: "Sets information specific to the client or connection.",
    complexity: "O(1)",
    since: "7.2.0",
    arity: Arity::Exactly(4),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(set_info),
};

fn set_info(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let name = shown(args.get(2));
    let is_name = args.is(2, "LIB-NAME");
    if !is_name && !args.is(2, "LIB-VER") {
        return Err(CmdError::new(format!("ERR Unrecognized option '{name}'")));
    }
    if !is_word(args.get(3)) {
        let text = format!("ERR {name} cannot contain spaces, newlines or special characters.");
        return Err(CmdError::new(text));
    }
    let text = String::from_utf8_lossy(args.get(3)).into_owned();
    let mut library = cx.session.client.library.lock();
    *(if is_name { &mut library.0 } else { &mut library.1 }) = text;
    reply.simple("OK");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words() {
        for name in ["", "a", "!~", "worker-1:2"] {
            assert_eq!(check_name(name.as_bytes()), Ok(()), "{name}");
        }
        for name in [&b" "[..], b"a b", b"a\n", b"\0", b"\x7f", b"\xc3\xa9"] {
            assert!(check_name(name).is_err(), "{}", name.escape_ascii());
        }
    }
}
