//! The count of SRANDMEMBER, HRANDFIELD and ZRANDMEMBER: how many random elements, and whether one may come twice.

use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::number::parse_i64;

/// How many random elements are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RandomCount {
    /// Different ones, as far as there are so many.
    Distinct(usize),
    /// Each chosen from all.
    Repeated(usize),
}

/// The most elements that are chosen from all: a few bytes of a command must not ask for all memory there is.
const REPEATED_MAX: u64 = 1 << 24;

const TOO_MANY: CmdError =
    CmdError::text("ERR value is out of range, at most 16777216 elements are chosen with repetition");

impl RandomCount {
    /// The count of a client, no further from 0 than `magnitude_max`. Redis says the range in its error.
    pub(super) fn parse(text: &[u8], magnitude_max: i64) -> Result<RandomCount, CmdError> {
        let count = parse_i64(text).ok_or(CmdError::NotInteger)?;
        if count.unsigned_abs() > magnitude_max.unsigned_abs() {
            return Err(CmdError::new(format!(
                "ERR value is out of range, value must between -{magnitude_max} and {magnitude_max}"
            )));
        }
        let magnitude = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
        Ok(if count < 0 { RandomCount::Repeated(magnitude) } else { RandomCount::Distinct(magnitude) })
    }

    /// How many, whether they may come twice or not.
    pub(super) fn magnitude(self) -> usize {
        match self {
            RandomCount::Distinct(count) | RandomCount::Repeated(count) => count,
        }
    }

    /// Refuses a count that would fill the memory; to be asked once it is known that there are elements.
    pub(super) fn check(self) -> Result<(), CmdError> {
        match self {
            RandomCount::Repeated(count) if count as u64 > REPEATED_MAX => Err(TOO_MANY),
            RandomCount::Repeated(_) | RandomCount::Distinct(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_in_bounds() {
        let parse = |text: &str| RandomCount::parse(text.as_bytes(), i64::MAX);
        assert_eq!(parse("3"), Ok(RandomCount::Distinct(3)));
        assert_eq!(parse("-3"), Ok(RandomCount::Repeated(3)));
        assert_eq!(parse("9223372036854775807"), Ok(RandomCount::Distinct(i64::MAX as usize)));
        assert_eq!(
            parse("-9223372036854775808").unwrap_err().to_string(),
            "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807"
        );
        assert_eq!(parse("x"), Err(CmdError::NotInteger));
        for (count, allowed) in [("-16777216", true), ("-16777217", false), ("9223372036854775807", true)] {
            assert_eq!(parse(count).unwrap().check().is_ok(), allowed, "{count}");
        }
    }
}
