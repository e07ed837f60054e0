//! A client's commands, parsed but not yet run: what is known of each before the first runs.

use crate::args::Args;
use crate::command::{Flags, Run};
use crate::engine::Engine;
use crate::errors::{CmdError, exact, shown};
use crate::table::Resolved;
use tenon_store::Slot;
use tenon_store::hash::KeyHash;
use tenon_wire::memcache::Step;
use tenon_wire::memcache::binary::BinaryStep;
use tenon_wire::{ArgSpans, Span};

/// The lists that batches are parsed into, kept by the worker so that they are allocated once.
#[derive(Debug, Default)]
pub struct BatchScratch {
    /// All calls' arguments, one after another.
    pub args: ArgSpans,
    /// The calls.
    pub calls: Vec<Call>,
    /// A memcached client's requests.
    pub requests: Vec<TextStep>,
    /// The same in the binary protocol.
    pub binary: Vec<BinaryStep>,
    /// The hashes of those requests' keys, in order.
    pub hashes: Vec<KeyHash>,
}

/// A memcached client's request, parsed but not yet run.
#[derive(Clone, Copy, Debug)]
pub struct TextStep {
    /// What the decoder made of it: a request, or why there is none.
    pub step: Step,
    /// Where its list of arguments ends in the batch's; it begins where the previous request's ends.
    pub args_end: usize,
    /// Where its keys' hashes end in the batch's, likewise.
    pub hashes_end: usize,
}

impl BatchScratch {
    /// Forgets the calls; keeps the memory as far as it is no more than a usual batch needs.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.calls.clear();
        self.requests.clear();
        self.binary.clear();
        self.hashes.clear();
        self.args.clear();
        let most = self.args.spans.capacity().max(self.args.scratch.capacity()).max(self.hashes.capacity());
        if most > ITEMS_KEPT {
            self.shrink();
        }
    }

    #[cold]
    fn shrink(&mut self) {
        self.args.spans.shrink_to(ITEMS_KEPT);
        self.args.scratch.shrink_to(ITEMS_KEPT);
        self.hashes.shrink_to(ITEMS_KEPT);
    }
}

/// What is kept of each list from batch to batch, in items.
const ITEMS_KEPT: usize = 64 * 1024;

/// A parsed command. Copied freely: lists of calls are emptied without a look at each.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Where its arguments end in the batch's list; they begin where the previous call's end.
    pub args_end: usize,
    /// Where its bytes end in the buffer that the batch was read from.
    pub input_end: usize,
    /// What to run; what is wrong when there is no such command.
    pub target: Target,
    /// Where the key of a command on one key was when its entry was asked for.
    pub(crate) near: Slot,
}

impl Call {
    /// A call whose key has not been looked for.
    #[inline]
    pub fn new(target: Target, args_end: usize, input_end: usize) -> Call {
        Call { args_end, input_end, target, near: Slot::NOWHERE }
    }
}

/// What a call runs.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// A command on one key, whose hash is known.
    Key(Resolved, KeyHash),
    /// Any other command.
    Other(Resolved),
    /// Nothing: there is no such command, or the arguments are too few or too many.
    Refused(Wrong, Option<Resolved>),
    /// Nothing any more: MULTI has queued the command, or it was refused just before it would have run.
    Settled(Resolved),
}

/// Why arguments call no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// There is no command of this name.
    Name,
    /// The command has no such subcommand.
    Subcommand,
    /// They are too few or too many.
    Count,
}

impl Wrong {
    /// What the client is told; `resolved` is the command, as far as there is one.
    #[cold]
    pub(crate) fn error(self, resolved: Option<Resolved>, args: &Args<'_>) -> CmdError {
        match (self, resolved) {
            (Wrong::Name, _) | (_, None) => unknown_command(args),
            (Wrong::Subcommand, Some(_)) => {
                CmdError::UnknownSubcommand { subcommand: shown(args.get(1)), container: shown(args.get(0)) }
            }
            (Wrong::Count, Some(resolved)) => CmdError::Arity(resolved.command.full_name()),
        }
    }
}

impl Target {
    /// The number of the command, if there is such a command.
    #[inline]
    pub(crate) fn number(&self) -> Option<u16> {
        match self {
            Target::Key(resolved, _) | Target::Other(resolved) | Target::Settled(resolved) => Some(resolved.number),
            Target::Refused(_, resolved) => resolved.map(|resolved| resolved.number),
        }
    }

    /// Whether it runs a command whose answers are messages.
    pub(crate) fn answers_by_push(&self) -> bool {
        let Target::Other(resolved) = self else { return false };
        resolved.command.flags.any(Flags::ANSWERS_BY_PUSH)
    }

    /// The number of the command, once the call is over, if it ran.
    #[inline]
    pub(crate) fn ran_number(&self) -> Option<u16> {
        match self {
            Target::Key(resolved, _) | Target::Other(resolved) => Some(resolved.number),
            Target::Settled(_) | Target::Refused(..) => None,
        }
    }
}

impl Engine {
    /// The command on one key that these arguments call, and its key's hash, when that is to be seen at first sight;
    /// what else they are [`Engine::resolve`] tells. The spans are arguments that were read from `input`.
    #[inline(always)]
    pub fn resolve_at_sight(&self, spans: &[Span], input: &[u8]) -> Option<(&Resolved, KeyHash)> {
        let args = Args::new(spans, input, &[], &[]);
        let (letters, len) = args.word(0)?;
        let resolved = self.commands.find_single(letters, len, args.len())?;
        Some((resolved, self.shards.hash(args.in_input(usize::from(resolved.key))?)))
    }

    /// Finds the command of these arguments, checks how many there are, and hashes its key.
    pub fn resolve(&self, args: &Args<'_>) -> Target {
        match self.commands.find(args.get(0)) {
            Some(found) => self.resolve_within(found, args),
            None => Target::Refused(Wrong::Name, None),
        }
    }

    /// Does as `resolve` with what stands in a log, which names commands as they are declared, whatever clients call them
    /// by, or as a client has called them.
    pub(crate) fn resolve_logged(&self, args: &Args<'_>) -> Target {
        match self.resolve(args) {
            Target::Refused(Wrong::Name, None) => match self.commands.find_declared(args.get(0)) {
                Some(found) => self.resolve_within(found, args),
                None => Target::Refused(Wrong::Name, None),
            },
            target => target,
        }
    }

    fn resolve_within(&self, mut resolved: Resolved, args: &Args<'_>) -> Target {
        let needs_subcommand = match resolved.command.run {
            Run::Container(_) => true,
            Run::Alone(..) => args.len() > 1,
            _ => false,
        };
        if needs_subcommand {
            match self.resolve_subcommand(resolved, args) {
                Ok(subcommand) => resolved = subcommand,
                Err(wrong) => return Target::Refused(wrong, Some(resolved)),
            }
        }
        if !resolved.command.arity.accepts(args.len()) {
            return Target::Refused(Wrong::Count, Some(resolved));
        }
        match resolved.single_key(args.len()) {
            Some(key) => Target::Key(resolved, self.shards.hash(args.get(key))),
            None => Target::Other(resolved),
        }
    }

    #[cold]
    fn resolve_subcommand(&self, container: Resolved, args: &Args<'_>) -> Result<Resolved, Wrong> {
        let name = args.try_get(1).ok_or(Wrong::Count)?;
        self.commands.find_subcommand(container.command, name).ok_or(Wrong::Subcommand)
    }
}

/// Redis's text: the name, and the first arguments as far as 128 bytes reach.
#[cold]
fn unknown_command(args: &Args<'_>) -> CmdError {
    let until_nul = |bytes: &[u8], most: usize| -> Vec<u8> {
        bytes[..bytes.len().min(most)].iter().copied().take_while(|&byte| byte != 0).collect()
    };
    let mut list = Vec::new();
    for arg in args.from(1) {
        if list.len() >= 128 {
            break;
        }
        let room = 128 - list.len();
        list.push(b'\'');
        list.extend(until_nul(arg, room));
        list.extend(b"' ");
    }
    let (name, list) = (exact(&until_nul(args.get(0), 128)), exact(&list));
    CmdError::new(format!("ERR unknown command '{name}', with args beginning with: {list}"))
}
