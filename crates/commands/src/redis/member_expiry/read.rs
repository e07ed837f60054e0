//! When members expire: what HTTL and its kin answer, for each type that has such.

use super::arguments::Members;
use super::names::Named;
use tenon_engine::args::Args;
use tenon_engine::command::Effect;
use tenon_engine::context::KeyCx;
use tenon_engine::ds::progress;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::WithDeadlines;
use tenon_engine::wire::resp::Reply;

/// There is no such member.
pub(super) const NO_MEMBER: i64 = -2;
/// The member does not expire.
pub(super) const NO_DEADLINE: i64 = -1;

/// How a deadline is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::redis) enum Shown {
    /// The seconds that are left, begun ones counted.
    SecondsLeft,
    /// The milliseconds that are left.
    MillisecondsLeft,
    /// Seconds since the UNIX epoch, begun ones counted.
    Seconds,
    /// Milliseconds since the UNIX epoch.
    Milliseconds,
}

impl Shown {
    fn number(self, deadline_ms: u64, now_ms: u64) -> i64 {
        let number = match self {
            Shown::SecondsLeft => deadline_ms.saturating_sub(now_ms).div_ceil(1_000),
            Shown::MillisecondsLeft => deadline_ms.saturating_sub(now_ms),
            Shown::Seconds => deadline_ms.div_ceil(1_000),
            Shown::Milliseconds => deadline_ms,
        };
        // No deadline has more than 46 bits.
        number as i64
    }
}

/// Answers the deadlines of members.
pub(in crate::redis) fn reply_deadlines<F: Named>(
    cx: &mut KeyCx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    shown: Shown,
) -> Result<Effect, CmdError> {
    // As in Redis the key is looked up, and its type looked at, before the arguments.
    let slot = cx.find_for_read();
    if let Some(slot) = slot {
        cx.collection::<WithDeadlines<F>>(slot)?;
    }
    let members = Members::parse(args, 2, F::NAMES)?;
    let now_ms = cx.now_ms();
    let Some(slot) = slot else {
        members.reply_for_each(reply, |reply| reply.int(NO_MEMBER));
        return Ok(Effect::Unchanged);
    };
    let collection = cx.collection::<WithDeadlines<F>>(slot)?;
    let deadlines = cx.entry(slot).value().deadlines();
    reply.array(members.count);
    for member in members.of(args) {
        progress::count(1);
        reply.int(match deadlines.and_then(|deadlines| deadlines.of(member)) {
            Some(deadline_ms) => shown.number(deadline_ms, now_ms),
            None if F::has(collection, member) => NO_DEADLINE,
            None => NO_MEMBER,
        });
    }
    Ok(Effect::Unchanged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begun_seconds_count() {
        for (shown, number) in [
            (Shown::SecondsLeft, 2),
            (Shown::MillisecondsLeft, 1_001),
            (Shown::Seconds, 4),
            (Shown::Milliseconds, 3_001),
        ] {
            assert_eq!(shown.number(3_001, 2_000), number, "{shown:?}");
        }
        assert_eq!(Shown::SecondsLeft.number(3_000, 2_000), 1);
        assert_eq!(Shown::Seconds.number(3_000, 2_000), 3);
    }
}
