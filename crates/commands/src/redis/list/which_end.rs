//! LEFT and RIGHT, and the names that the ends' events have. Knows no command.

use tenon_engine::args::Args;
use tenon_engine::ds::listpack::End;
use tenon_engine::errors::CmdError;

/// The end that argument `index` names.
pub(super) fn parse_end(args: &Args<'_>, index: usize) -> Result<End, CmdError> {
    if args.is(index, "LEFT") {
        Ok(End::Front)
    } else if args.is(index, "RIGHT") {
        Ok(End::Back)
    } else {
        Err(CmdError::Syntax)
    }
}

/// The word that names an end.
pub(super) fn name_of(end: End) -> &'static str {
    match end {
        End::Front => "LEFT",
        End::Back => "RIGHT",
    }
}

/// The event of taking elements off an end.
pub(super) fn pop_event(end: End) -> &'static str {
    match end {
        End::Front => "lpop",
        End::Back => "rpop",
    }
}

/// The event of adding elements at an end.
pub(super) fn push_event(end: End) -> &'static str {
    match end {
        End::Front => "lpush",
        End::Back => "rpush",
    }
}
