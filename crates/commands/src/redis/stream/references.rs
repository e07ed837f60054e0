//! KEEPREF, DELREF and ACKED, and the ids of XDELEX and XACKDEL. Knows no stream.

use super::id::parse_ids;
use std::ops::Range;
use tenon_engine::args::Args;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::stream::{References, StreamId};
use tenon_engine::wire::resp::number::parse_i64;

const NOT_POSITIVE: CmdError = CmdError::text("ERR Number of IDs must be a positive integer");
const WRONG_NUMBER: CmdError = CmdError::text("ERR The `numids` parameter must match the number of arguments");

/// What argument `index` says of the references to entries that go, if it says that.
pub(super) fn parse_references(args: &Args<'_>, index: usize) -> Option<References> {
    [("KEEPREF", References::Keep), ("DELREF", References::Delete), ("ACKED", References::WaitForAcknowledgement)]
        .into_iter()
        .find(|(word, _)| args.is(index, word))
        .map(|(_, references)| references)
}

/// The word that says so, where it must be said.
pub(super) fn word_of(references: References) -> Option<&'static str> {
    match references {
        References::Keep => None,
        References::Delete => Some("DELREF"),
        References::WaitForAcknowledgement => Some("ACKED"),
    }
}

/// What XDELEX and XACKDEL are asked for beside key and group.
#[derive(Clone, Debug)]
pub(super) struct DeletionArgs {
    pub(super) references: References,
    /// Which arguments are the ids.
    ids: Range<usize>,
}

impl DeletionArgs {
    /// Reads `[KEEPREF | DELREF | ACKED] IDS numids id [id ...]` from argument `first` on, in any order. As in Redis, IDS
    /// may be given again, and the last one counts.
    ///
    /// # Errors
    /// When they make no sense.
    pub(super) fn parse(args: &Args<'_>, first: usize) -> Result<DeletionArgs, CmdError> {
        let (mut references, mut ids) = (None, None);
        let mut at = first;
        while at < args.len() {
            if let Some(found) = parse_references(args, at).filter(|_| references.is_none()) {
                references = Some(found);
                at += 1;
            } else if args.is(at, "IDS") && at + 1 < args.len() {
                let count = parse_i64(args.get(at + 1)).filter(|&count| count > 0).ok_or(NOT_POSITIVE)?;
                let begin = at + 2;
                let end = usize::try_from(count).ok().and_then(|count| begin.checked_add(count));
                let end = end.filter(|&end| end <= args.len()).ok_or(WRONG_NUMBER)?;
                ids = Some(begin..end);
                at = end;
            } else {
                return Err(CmdError::Syntax);
            }
        }
        Ok(DeletionArgs { references: references.unwrap_or(References::Keep), ids: ids.ok_or(CmdError::Syntax)? })
    }

    /// The ids.
    ///
    /// # Errors
    /// When one is none.
    pub(super) fn ids(&self, args: &Args<'_>) -> Result<Vec<StreamId>, CmdError> {
        parse_ids(args, self.ids.clone())
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }
}
