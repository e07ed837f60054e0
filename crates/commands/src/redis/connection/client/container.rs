//! CLIENT itself, and its HELP.

use super::{identity, kill, list, mode, pause, tracking};
use crate::redis::help::reply_help;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;

/// Everything about connections.
pub static CLIENT: Command = Command {
    name: "CLIENT",
    group: Group::Connection,
    syntax: "",
    summary: "A container for client connection commands.",
    complexity: "Depends on subcommand.",
    since: "2.4.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: Flags::NONE,
    run: Run::Container(&[
        &tracking::CACHING,
        &identity::GETNAME,
        &tracking::GETREDIR,
        &HELP,
        &identity::ID,
        &list::INFO,
        &kill::KILL,
        &list::LIST,
        &mode::NO_EVICT,
        &mode::NO_TOUCH,
        &pause::PAUSE,
        &mode::REPLY,
        &identity::SETINFO,
        &identity::SETNAME,
        &tracking::TRACKING,
        &tracking::TRACKINGINFO,
        &pause::UNBLOCK,
        &pause::UNPAUSE,
    ]),
};

/// What is here for connections.
const LINES: &[&str] = &[
    "CACHING (YES|NO)",
    "    Enable/disable tracking of the keys for next command in OPTIN/OPTOUT modes.",
    "GETREDIR",
    "    Return the client ID we are redirecting to when tracking is enabled.",
    "GETNAME",
    "    Return the name of the current connection.",
    "ID",
    "    Return the ID of the current connection.",
    "INFO",
    "    Return information about the current client connection.",
    "KILL <ip:port>",
    "    Kill connection made from <ip:port>.",
    "KILL <option> <value> [<option> <value> [...]]",
    "    Kill connections. Options are:",
    "    * ADDR (<ip:port>|<unixsocket>:0)",
    "      Kill connections made from the specified address",
    "    * LADDR (<ip:port>|<unixsocket>:0)",
    "      Kill connections made to specified local address",
    "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    "      Kill connections by type.",
    "    * USER <username>",
    "      Kill connections authenticated by <username>.",
    "    * SKIPME (YES|NO)",
    "      Skip killing current connection (default: yes).",
    "    * ID <client-id>",
    "      Kill connections by client id.",
    "    * MAXAGE <maxage>",
    "      Kill connections older than the specified age.",
    "LIST [options ...]",
    "    Return information about client connections. Options:",
    "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    "      Return clients of specified type.",
    "    * ID <client-id> [<client-id> ...]",
    "      Return clients of specified ids.",
    "UNPAUSE",
    "    Stop the current client pause, resuming traffic.",
    "PAUSE <timeout> [WRITE|ALL]",
    "    Suspend all, or just write, clients for <timeout> milliseconds.",
    "REPLY (ON|OFF|SKIP)",
    "    Control the replies sent to the current connection.",
    "SETNAME <name>",
    "    Assign the name <name> to the current connection.",
    "SETINFO <option> <value>",
    "    Set client meta attr. Options are:",
    "    * LIB-NAME: the client lib name.",
    "    * LIB-VER: the client lib version.",
    "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]",
    "         [OPTIN] [OPTOUT] [NOLOOP]",
    "    Control server assisted client side caching.",
    "TRACKINGINFO",
    "    Report tracking status for the current connection.",
    "UNBLOCK <clientid> [TIMEOUT|ERROR]",
    "    Unblock the specified blocked client.",
    "NO-EVICT (ON|OFF)",
    "    Protect current client connection from eviction.",
    "NO-TOUCH (ON|OFF)",
    "    Will not touch LRU/LFU stats when this mode is on.",
];

static HELP: Command = Command {
    name: "CLIENT HELP",
    group: Group::Connection,
    syntax: "",
    summary: "Returns helpful text about the different subcommands.",
    complexity: "O(1)",
    since: "5.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: Flags::LOADING.or(Flags::STALE),
    run: Run::Session(help),
};

fn help(_cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply_help("CLIENT", LINES, reply);
    Ok(())
}
