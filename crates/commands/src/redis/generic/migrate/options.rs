//! The arguments of MIGRATE. Knows no data and opens no connection.

use std::ops::Range;
use std::time::Duration;
use tenon_client::Address;
use tenon_engine::args::Args;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::number::parse_i64;

/// The time that a timeout of 0 or less stands for.
const TIMEOUT: Duration = Duration::from_secs(1);

/// With what the other server is to be told who comes: arguments' indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Credentials {
    pub(super) user: Option<usize>,
    pub(super) password: usize,
}

/// Whether the keys stay here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Move,
    /// COPY.
    Copy,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Options {
    /// REPLACE: keys may be there.
    pub(super) replace: bool,
    pub(super) mode: Mode,
    pub(super) credentials: Option<Credentials>,
    /// Which arguments are the keys.
    pub(super) keys: Range<usize>,
    pub(super) timeout: Duration,
    pub(super) database: i64,
}

impl Options {
    /// Reads them in Redis's order, so that of several mistakes clients are told the same one.
    pub(super) fn parse(args: &Args<'_>) -> Result<Options, CmdError> {
        let (mut replace, mut mode, mut credentials, mut keys) = (false, Mode::Move, None, 3..4);
        let mut at = 6;
        while at < args.len() {
            let left = args.len() - at - 1;
            if args.is(at, "COPY") {
                mode = Mode::Copy;
            } else if args.is(at, "REPLACE") {
                replace = true;
            } else if args.is(at, "AUTH") && left >= 1 {
                credentials = Some(Credentials { user: None, password: at + 1 });
                at += 1;
            } else if args.is(at, "AUTH2") && left >= 2 {
                credentials = Some(Credentials { user: Some(at + 1), password: at + 2 });
                at += 2;
            } else if args.is(at, "KEYS") {
                if !args.get(3).is_empty() {
                    return Err(CmdError::text(
                        "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string",
                    ));
                }
                keys = at + 1..args.len();
                break;
            } else {
                return Err(CmdError::Syntax);
            }
            at += 1;
        }
        let timeout_ms = parse_i64(args.get(5)).ok_or(CmdError::NotInteger)?;
        let database = parse_i64(args.get(4)).ok_or(CmdError::NotInteger)?;
        let timeout = u64::try_from(timeout_ms).ok().filter(|ms| *ms > 0).map_or(TIMEOUT, Duration::from_millis);
        Ok(Options { replace, mode, credentials, keys, timeout, database })
    }
}

/// Where the other server is; `None` when there can be none.
pub(super) fn address(args: &Args<'_>) -> Option<Address> {
    let host = std::str::from_utf8(args.get(1)).ok()?.to_owned();
    let port = std::str::from_utf8(args.get(2)).ok()?.parse().ok()?;
    Some(Address::Tcp { host, port })
}
