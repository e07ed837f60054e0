//! Rewrites of a log, which a server begins by itself when the log has grown. Knows not what is measured.

use crate::peers::own_figures;
use crate::target::Target;
use anyhow::{Result, bail};
use std::time::{Duration, Instant};

/// How often it is asked whether a rewrite is done.
const LOOK: Duration = Duration::from_millis(50);
/// A rewrite that takes longer never ends.
const REWRITE_MAX: Duration = Duration::from_secs(300);

/// What a server says of the rewrites of its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrites {
    under_way: bool,
    /// How many there have been, where the server counts them.
    count: Option<String>,
}

impl Rewrites {
    /// Waits until none is under way, as the filling of a server begins one, and tells how many there have been.
    pub fn wait_for_end(server: &Target) -> Result<Rewrites> {
        let since = Instant::now();
        loop {
            let now = Rewrites::now(server)?;
            if !now.under_way {
                return Ok(now);
            }
            if since.elapsed() > REWRITE_MAX {
                bail!("a rewrite of the log did not end");
            }
            std::thread::sleep(LOOK);
        }
    }

    /// What there is now; who looks twice and sees the same has seen no rewrite.
    pub fn now(server: &Target) -> Result<Rewrites> {
        Ok(Rewrites::among(&own_figures(server)?))
    }

    fn among(figures: &[(String, String)]) -> Rewrites {
        let figure = |wanted| figures.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
        let is_on = |name| figure(name).is_some_and(|value| value != "0");
        let under_way = is_on("aof_rewrite_in_progress") || is_on("aof_rewrite_scheduled");
        Rewrites { under_way, count: figure("aof_rewrites").cloned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rewrite_is_seen_while_it_runs_and_when_it_is_over() {
        let info = |now: u32, scheduled: u32, count: u32| {
            let lines =
                [("aof_rewrite_in_progress", now), ("aof_rewrite_scheduled", scheduled), ("aof_rewrites", count)];
            Rewrites::among(&lines.map(|(name, value)| (name.to_owned(), value.to_string())))
        };
        assert!(info(1, 0, 0).under_way && info(0, 1, 0).under_way && !info(0, 0, 3).under_way);
        assert_eq!(info(0, 0, 3), info(0, 0, 3));
        assert_ne!(info(0, 0, 3), info(0, 0, 4));
        assert_ne!(info(0, 0, 3), info(1, 0, 3));
        assert!(!Rewrites::among(&[]).under_way);
    }
}
