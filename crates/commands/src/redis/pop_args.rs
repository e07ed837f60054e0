//! What LMPOP, ZMPOP and their blocking forms are asked for behind the number of keys. Knows no type.

use tenon_engine::args::Args;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::number::parse_i64;

/// `numkeys key [key ...] <side> [COUNT count]`, `S` being the type's word for a side.
pub(super) struct PopArgs<S> {
    /// The arguments that are keys end before this one.
    pub(super) keys_end: usize,
    /// From which side elements are taken.
    pub(super) side: S,
    /// How many are taken at most.
    pub(super) count: usize,
}

impl<S> PopArgs<S> {
    /// Reads the arguments from the number of keys on, which is argument `at`; `parse_side` reads the side.
    pub(super) fn parse(
        args: &Args<'_>,
        at: usize,
        parse_side: impl FnOnce(&Args<'_>, usize) -> Result<S, CmdError>,
    ) -> Result<PopArgs<S>, CmdError> {
        let positive = |index: usize, error: &'static str| {
            let number = parse_i64(args.get(index)).filter(|&number| number > 0);
            number.and_then(|number| usize::try_from(number).ok()).ok_or(CmdError::text(error))
        };
        let keys = positive(at, "ERR numkeys should be greater than 0")?;
        let keys_end = (at + 1).checked_add(keys).filter(|&end| end < args.len()).ok_or(CmdError::Syntax)?;
        let side = parse_side(args, keys_end)?;
        let mut count = None;
        let mut at = keys_end + 1;
        while at < args.len() {
            if count.is_some() || !args.is(at, "COUNT") || at + 1 == args.len() {
                return Err(CmdError::Syntax);
            }
            count = Some(positive(at + 1, "ERR count should be greater than 0")?);
            at += 2;
        }
        Ok(PopArgs { keys_end, side, count: count.unwrap_or(1) })
    }
}
