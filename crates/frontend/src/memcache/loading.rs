//! What memcached's clients are told while data is being loaded: whatever needs data is refused; and while the disk fails:
//! whatever writes is. Knows no file.
//!
//! memcached itself never loads anything, so the words are Tenon's: an error of the server, which clients take for a miss
//! or a failure that may pass. What is about the connection or the server is answered as ever.

use tenon_commands::memcache::Answer;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::OutBuf;
use tenon_engine::wire::memcache::binary::{BinaryCommand, BinaryStep};
use tenon_engine::wire::memcache::{Request, Step};

/// What a request is told, if it is one that needs data: `Some(None)` when its client wants to hear nothing.
pub(super) fn refusal(step: &Step) -> Option<Option<Answer>> {
    let is_silent = match step {
        Step::Request { request, .. } => match *request {
            // A line that comes in several steps is answered with the last.
            Request::Get { last, .. } => !last,
            Request::Store { noreply, .. }
            | Request::Arithmetic { noreply, .. }
            | Request::Delete { noreply, .. }
            | Request::Touch { noreply, .. }
            | Request::FlushAll { noreply, .. } => noreply,
            Request::Meta { .. } | Request::MetaDebug | Request::LruCrawler => false,
            _ => return None,
        },
        // A refused write would take the item away that it was to replace.
        Step::Refused { refusal, .. } if refusal.stale_key().is_some() => refusal.noreply,
        _ => return None,
    };
    Some((!is_silent).then_some(Answer::Loading))
}

/// Answers a write that is refused for what Redis's clients are told as this error: the code is theirs.
#[cold]
pub(super) fn write_not_kept(error: &CmdError, out: &mut OutBuf) {
    let text = error.to_string();
    let why = text.split_once(' ').map_or(&*text, |(_code, why)| why);
    out.tail().extend_from_slice(format!("SERVER_ERROR {why}\r\n").as_bytes());
}

/// Whether a request of the binary protocol needs data.
pub(super) fn is_refused(step: &BinaryStep) -> bool {
    match step {
        BinaryStep::Request { command, .. } => {
            matches!(command, BinaryCommand::Flush { .. }) || super::binary::key_of(command).is_some()
        }
        BinaryStep::Refused { .. } => step.stale_key().is_some(),
        _ => false,
    }
}
