//! CLIENT TRACKING, CACHING, TRACKINGINFO and GETREDIR: being told when what one has read changes.

use super::prefixes::{Overlap, first_overlap};
use std::collections::BTreeSet;
use std::sync::Arc;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::{CmdError, shown};
use tenon_engine::session::Session;
use tenon_engine::tracking::{Caching, Echo, Mode, SessionTracking, Tracker};
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

const FLAGS: Flags = Flags::NO_SCRIPT.or(Flags::LOADING).or(Flags::STALE);

const SWITCHES_BCAST: CmdError = CmdError::text(
    "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a \
     different mode.",
);
const SWITCHES_OPT: CmdError = CmdError::text(
    "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a \
     different mode.",
);

/// Begins and ends it.
pub static TRACKING: Command = Command {
    name: "CLIENT TRACKING",
    group: Group::Connection,
    syntax: "<ON | OFF> [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]",
    summary: "Controls server-assisted client-side caching for the connection.",
    complexity: "O(1). Some options may introduce additional complexity.",
    since: "6.0.0",
    arity: Arity::AtLeast(3),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(tracking),
};

/// What CLIENT TRACKING was asked for.
#[derive(Debug)]
struct Options<'a> {
    redirect: Option<u64>,
    broadcast: bool,
    opt_in: bool,
    opt_out: bool,
    echo: Echo,
    prefixes: Vec<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn parse(cx: &SessionCx<'_>, args: &Args<'a>) -> Result<Options<'a>, CmdError> {
        let mut options = Options {
            redirect: None,
            broadcast: false,
            opt_in: false,
            opt_out: false,
            echo: Echo::Wanted,
            prefixes: Vec::new(),
        };
        let mut at = 3;
        while at < args.len() {
            let has_value = at + 1 < args.len();
            if args.is(at, "REDIRECT") && has_value {
                at += 1;
                if options.redirect.is_some() {
                    return Err(CmdError::text("ERR A client can only redirect to a single other client"));
                }
                let id = parse_i64(args.get(at)).ok_or(CmdError::NotInteger)?;
                let target = u64::try_from(id).ok().and_then(|id| cx.engine.clients.get(id));
                let target = target.ok_or(CmdError::text("ERR The client ID you want redirect to does not exist"))?;
                options.redirect = Some(target.id);
            } else if args.is(at, "BCAST") {
                options.broadcast = true;
            } else if args.is(at, "OPTIN") {
                options.opt_in = true;
            } else if args.is(at, "OPTOUT") {
                options.opt_out = true;
            } else if args.is(at, "NOLOOP") {
                options.echo = Echo::Unwanted;
            } else if args.is(at, "PREFIX") && has_value {
                at += 1;
                options.prefixes.push(args.get(at));
            } else {
                return Err(CmdError::Syntax);
            }
            at += 1;
        }
        Ok(options)
    }

    /// The mode that is asked for, if it goes together with itself and with what there is.
    fn mode(&self, now: Option<&SessionTracking>) -> Result<Mode, CmdError> {
        if !self.broadcast && !self.prefixes.is_empty() {
            return Err(CmdError::text("ERR PREFIX option requires BCAST mode to be enabled"));
        }
        let before = now.map(|tracking| tracking.tracker.mode);
        if before.is_some_and(|before| (before == Mode::Broadcast) != self.broadcast) {
            return Err(SWITCHES_BCAST);
        }
        let wanted = match (self.broadcast, self.opt_in, self.opt_out) {
            (true, false, false) => Mode::Broadcast,
            (true, _, _) => return Err(CmdError::text("ERR OPTIN and OPTOUT are not compatible with BCAST")),
            (false, true, true) => {
                return Err(CmdError::text("ERR You can't specify both OPTIN mode and OPTOUT mode"));
            }
            (false, true, false) => Mode::OptIn,
            (false, false, true) => Mode::OptOut,
            (false, false, false) => Mode::Default,
        };
        match (before, wanted) {
            (Some(Mode::OptIn), Mode::OptOut) | (Some(Mode::OptOut), Mode::OptIn) => Err(SWITCHES_OPT),
            _ => Ok(wanted),
        }
    }

    /// Refuses prefixes that a key could have two of.
    fn check_prefixes(&self, now: Option<&SessionTracking>) -> Result<(), CmdError> {
        let none = BTreeSet::new();
        let there = now.map_or(&none, |tracking| &tracking.prefixes);
        let Some(Overlap { prefix, other, is_there }) = first_overlap(there, &self.prefixes) else { return Ok(()) };
        let (prefix, other) = (shown(prefix), shown(other));
        let with = if is_there { "an existing" } else { "another provided" };
        Err(CmdError::new(format!(
            "ERR Prefix '{prefix}' overlaps with {with} prefix '{other}'. Prefixes for a single client must not overlap."
        )))
    }
}

fn tracking(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let options = Options::parse(cx, args)?;
    if args.is(2, "ON") {
        let now = cx.session.tracking.as_deref();
        let mode = options.mode(now)?;
        options.check_prefixes(now)?;
        let client = Arc::clone(&cx.session.client);
        let tracker = Tracker::new(client, mode, options.echo, options.redirect);
        cx.engine.start_tracking(cx.session, tracker, options.prefixes.into_iter());
    } else if args.is(2, "OFF") {
        cx.engine.stop_tracking(cx.session);
    } else {
        return Err(CmdError::Syntax);
    }
    reply.simple("OK");
    Ok(())
}

/// Says of the next command alone whether what it reads is noted.
pub static CACHING: Command = Command {
    name: "CLIENT CACHING",
    group: Group::Connection,
    syntax: "<YES | NO>",
    summary: "Instructs the server whether to track the keys in the next request.",
    complexity: "O(1)",
    since: "6.0.0",
    arity: Arity::Exactly(3),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(caching),
};

fn caching(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let tracking = cx.session.tracking.as_mut().ok_or(CmdError::text(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
    ))?;
    let (needed, refusal) = if args.is(2, "YES") {
        (Mode::OptIn, "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
    } else if args.is(2, "NO") {
        (Mode::OptOut, "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
    } else {
        return Err(CmdError::Syntax);
    };
    if tracking.tracker.mode != needed {
        return Err(CmdError::text(refusal));
    }
    tracking.caching = Caching::Said;
    reply.simple("OK");
    Ok(())
}

/// Tells who gets the messages.
pub static GETREDIR: Command = Command {
    name: "CLIENT GETREDIR",
    group: Group::Connection,
    syntax: "",
    summary: "Returns the client ID to which the connection's tracking notifications are redirected.",
    complexity: "O(1)",
    since: "6.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(getredir),
};

fn getredir(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply.int(redirection(cx.session));
    Ok(())
}

/// The number of the client that gets the messages: -1 when there are none, 0 when it is the client itself.
fn redirection(session: &Session) -> i64 {
    session.tracking.as_ref().map_or(-1, |tracking| tracking.tracker.redirect.unwrap_or(0) as i64)
}

/// Tells how the connection is tracked.
pub static TRACKINGINFO: Command = Command {
    name: "CLIENT TRACKINGINFO",
    group: Group::Connection,
    syntax: "",
    summary: "Returns information about server-assisted client-side caching for the connection.",
    complexity: "O(1)",
    since: "6.2.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: FLAGS,
    run: Run::Session(trackinginfo),
};

fn trackinginfo(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let tracking = cx.session.tracking.as_deref();
    let flags = flags(tracking);
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"redirect");
    reply.int(redirection(cx.session));
    reply.bulk(b"prefixes");
    reply.array(tracking.map_or(0, |tracking| tracking.prefixes.len()));
    for prefix in tracking.iter().flat_map(|tracking| &tracking.prefixes) {
        reply.bulk(prefix);
    }
    Ok(())
}

/// The words that TRACKINGINFO has for how a connection is tracked.
fn flags(tracking: Option<&SessionTracking>) -> Vec<&'static str> {
    let Some(tracking) = tracking else { return vec!["off"] };
    let mut flags = vec!["on"];
    let (mode, caching) = match tracking.tracker.mode {
        Mode::Default => (None, None),
        Mode::Broadcast => (Some("bcast"), None),
        Mode::OptIn => (Some("optin"), Some("caching-yes")),
        Mode::OptOut => (Some("optout"), Some("caching-no")),
    };
    flags.extend(mode);
    flags.extend(caching.filter(|_| tracking.caching == Caching::Said));
    if tracking.tracker.echo == Echo::Unwanted {
        flags.push("noloop");
    }
    if tracking.tracker.is_redirect_broken() {
        flags.push("broken_redirect");
    }
    flags
}
