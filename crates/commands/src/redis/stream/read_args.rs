//! The arguments of XREAD and XREADGROUP, and the form of what both reply. Knows no stream.

use tenon_engine::args::Args;
use tenon_engine::blocking::{Outcome, Timeout, Wait};
use tenon_engine::command::{Effect, KeyFlags};
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::ValueType;
use tenon_engine::wire::resp::number::parse_i64;
use tenon_engine::wire::resp::{Deferred, Proto, Reply};

const GROUP_IN_XREAD: CmdError =
    CmdError::text("ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.");
const NOACK_IN_XREAD: CmdError =
    CmdError::text("ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.");
const CLAIM_IN_XREAD: CmdError =
    CmdError::text("ERR The CLAIM option is only supported by XREADGROUP. You called XREAD instead.");
const IDLE_NOT_AN_INTEGER: CmdError = CmdError::text("ERR min-idle-time is not an integer or out of range");
const IDLE_NEGATIVE: CmdError = CmdError::text("ERR min-idle-time must be a positive integer");
const NO_GROUP: CmdError = CmdError::text("ERR Missing GROUP option for XREADGROUP");
const UNBALANCED: CmdError =
    CmdError::text("ERR Unbalanced 'xread' list of streams: for each stream key an ID, '+', or '$' must be specified.");
const UNBALANCED_IN_GROUP: CmdError =
    CmdError::text("ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified.");

/// Which of the two commands it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    /// XREAD.
    Alone,
    /// XREADGROUP.
    InGroup,
}

/// What the two are asked for.
#[derive(Debug)]
pub(super) struct ReadArgs {
    /// The most entries of a stream.
    pub(super) count: usize,
    /// How long to wait; without it, not at all.
    block: Option<Timeout>,
    /// Which argument is the group; the consumer is behind it.
    group: Option<usize>,
    /// Whether what is delivered counts as acknowledged.
    pub(super) no_ack: bool,
    /// For how long nothing must have happened to an entry that was given to any consumer for it to be given to this one,
    /// in milliseconds.
    pub(super) claim_idle_ms: Option<u64>,
    /// Which argument is the first key.
    first: usize,
    /// How many keys there are, and behind them ids.
    streams: usize,
}

/// How many arguments an option takes, its name counted; `None` for STREAMS, which ends them.
fn option_len(args: &Args<'_>, at: usize) -> Option<usize> {
    let left = args.len() - at - 1;
    match () {
        () if left >= 1 && (args.is(at, "BLOCK") || args.is(at, "COUNT") || args.is(at, "CLAIM")) => Some(2),
        () if left >= 1 && args.is(at, "STREAMS") => None,
        () if left >= 2 && args.is(at, "GROUP") => Some(3),
        () => Some(1),
    }
}

/// The keys among the arguments of either command. A word STREAMS may also be a group's name: so they are found as the
/// options are read.
pub(super) fn find_keys(args: &Args<'_>) -> Vec<(usize, KeyFlags)> {
    let mut at = 1;
    while at < args.len() {
        match option_len(args, at) {
            Some(len) => at += len,
            None => return (at + 1..at + 1 + (args.len() - at - 1) / 2).map(|index| (index, KeyFlags::READ)).collect(),
        }
    }
    Vec::new()
}

impl ReadArgs {
    /// Reads the arguments up to the ids.
    ///
    /// # Errors
    /// When they make no sense.
    pub(super) fn parse(args: &Args<'_>, reader: Reader, now_ms: u64) -> Result<ReadArgs, CmdError> {
        let mut read = ReadArgs {
            count: usize::MAX,
            block: None,
            group: None,
            no_ack: false,
            claim_idle_ms: None,
            first: 0,
            streams: 0,
        };
        let mut at = 1;
        while read.first == 0 {
            if at >= args.len() {
                return Err(CmdError::Syntax);
            }
            let Some(len) = option_len(args, at) else {
                let rest = args.len() - at - 1;
                if rest % 2 == 1 {
                    return Err(if reader == Reader::Alone { UNBALANCED } else { UNBALANCED_IN_GROUP });
                }
                (read.first, read.streams) = (at + 1, rest / 2);
                break;
            };
            match len {
                2 if args.is(at, "CLAIM") && reader == Reader::Alone => return Err(CLAIM_IN_XREAD),
                2 if args.is(at, "CLAIM") => {
                    let idle_ms = parse_i64(args.get(at + 1)).ok_or(IDLE_NOT_AN_INTEGER)?;
                    read.claim_idle_ms = Some(u64::try_from(idle_ms).map_err(|_| IDLE_NEGATIVE)?);
                }
                2 if args.is(at, "BLOCK") => read.block = Some(Timeout::of_milliseconds(args.get(at + 1), now_ms)?),
                2 => {
                    let count = parse_i64(args.get(at + 1)).ok_or(CmdError::NotInteger)?;
                    read.count = usize::try_from(count).ok().filter(|&count| count > 0).unwrap_or(usize::MAX);
                }
                3 if reader == Reader::Alone => return Err(GROUP_IN_XREAD),
                3 => read.group = Some(at + 1),
                _ if args.is(at, "NOACK") && reader == Reader::Alone => return Err(NOACK_IN_XREAD),
                _ if args.is(at, "NOACK") => read.no_ack = true,
                _ => return Err(CmdError::Syntax),
            }
            at += len;
        }
        if reader == Reader::InGroup && read.group.is_none() {
            return Err(NO_GROUP);
        }
        Ok(read)
    }

    /// The group and the consumer.
    pub(super) fn group<'a>(&self, args: &Args<'a>) -> (&'a [u8], &'a [u8]) {
        let at = self.group.expect("who reads in a group has said which");
        (args.get(at), args.get(at + 1))
    }

    /// How many streams are read.
    pub(super) fn streams(&self) -> usize {
        self.streams
    }

    /// The key of a stream.
    pub(super) fn key<'a>(&self, args: &Args<'a>, stream: usize) -> &'a [u8] {
        args.get(self.first + stream)
    }

    /// Which argument is the id from which on a stream is read.
    pub(super) fn id_at(&self, stream: usize) -> usize {
        self.first + self.streams + stream
    }

    /// What it comes to that nothing was found: a wait, changed by `prepare`, or no reply.
    pub(super) fn wait(&self, reply: &mut Reply<'_>, prepare: impl FnOnce(Wait) -> Wait) -> Outcome {
        match self.block {
            Some(timeout) => {
                Outcome::Wait(prepare(Wait::new(timeout, self.first..self.first + self.streams, ValueType::Stream)))
            }
            None => {
                reply.null_array();
                Outcome::Done(Effect::Unchanged)
            }
        }
    }
}

/// The reply: for each stream that has something, its key and its entries.
#[derive(Debug, Default)]
pub(super) struct StreamsReply {
    deferred: Option<Deferred>,
    streams: usize,
}

impl StreamsReply {
    /// Begins the part of a stream; its entries are to follow.
    pub(super) fn begin_stream(&mut self, key: &[u8], reply: &mut Reply<'_>) {
        let is_pairs = reply.proto() == Proto::Resp2;
        if self.deferred.is_none() {
            self.deferred = Some(if is_pairs { reply.array_deferred() } else { reply.map_deferred() });
        }
        if is_pairs {
            reply.array(2);
        }
        reply.bulk(key);
        self.streams += 1;
    }

    /// Ends the reply; tells whether there is one.
    pub(super) fn finish(self, reply: &mut Reply<'_>) -> bool {
        let Some(deferred) = self.deferred else { return false };
        reply.finish(deferred, self.streams);
        true
    }
}
