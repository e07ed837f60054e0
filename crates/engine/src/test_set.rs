//! A command for the tests of the log and its replay: SET, to a deadline long past. Knows no log.

use crate::command::{Arity, Command, Effect, Flags, Group, Keys, Run};
use crate::context::Deadline;
use crate::errors::CmdError;
use tenon_store::entry::NewValue;

/// Stores a string, unless it is `no`.
pub(crate) static SET: Command = Command {
    name: "SET",
    group: Group::String,
    syntax: "key value",
    summary: "",
    complexity: "",
    since: "",
    arity: Arity::Exactly(3),
    keys: Keys::ONE,
    flags: Flags::WRITE,
    run: Run::Key(|cx, args, reply| {
        if args.get(2) == b"no" {
            return Err(CmdError::Syntax);
        }
        cx.set(NewValue::Bytes(args.get(2)), Deadline::At(1));
        reply.ok();
        Ok(Effect::Verbatim)
    }),
};
