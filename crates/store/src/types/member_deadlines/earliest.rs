//! The least of many deadlines that are numbered from 0 on, and where those are that are past: a tree of minima. Knows
//! nothing of what has the deadlines.

use super::lean;
use std::ops::ControlFlow;

/// Deadlines that one of the level above is the least of.
const BRANCHES: usize = 16;

/// Instead of a deadline where there is none.
pub(super) const NEVER: u64 = u64::MAX;

/// Deadlines in milliseconds, and the least of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Earliest {
    /// The deadlines themselves first, and last a level of one. None is empty.
    levels: Vec<Vec<u64>>,
}

fn least(values: &[u64]) -> u64 {
    values.iter().copied().min().unwrap_or(NEVER)
}

impl Earliest {
    /// The first deadline.
    pub(super) fn first_ms(&self) -> Option<u64> {
        self.levels.last().map(|top| least(top)).filter(|&first_ms| first_ms != NEVER)
    }

    /// The number of a deadline that is before this time, if any is.
    pub(super) fn any_past(&self, now_ms: u64) -> Option<usize> {
        let mut found = None;
        let _ = self.for_each_past(now_ms, |at| {
            found = Some(at);
            ControlFlow::Break(())
        });
        found
    }

    /// Calls `visit` with the number of each deadline that is before this time, until it breaks off.
    pub(super) fn for_each_past(
        &self,
        now_ms: u64,
        mut visit: impl FnMut(usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self.levels.len().checked_sub(1) {
            Some(top) => self.visit_past(top, 0, now_ms, &mut visit),
            None => ControlFlow::Continue(()),
        }
    }

    fn visit_past(
        &self,
        level: usize,
        at: usize,
        now_ms: u64,
        visit: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.levels[level][at] >= now_ms {
            return ControlFlow::Continue(());
        }
        let Some(below) = level.checked_sub(1) else { return visit(at) };
        let from = at * BRANCHES;
        let to = self.levels[below].len().min(from + BRANCHES);
        (from..to).try_for_each(|at| self.visit_past(below, at, now_ms, visit))
    }

    /// Adds a deadline behind the others.
    pub(super) fn push(&mut self, deadline_ms: u64) {
        let mut at = self.levels.first().map_or(0, Vec::len);
        let mut level = 0;
        loop {
            if level == self.levels.len() {
                // What is below has been one and is two now; or there is nothing yet.
                let whole = level.checked_sub(1).map_or(deadline_ms, |below| least(&self.levels[below]));
                self.levels.push(vec![whole]);
            } else if at == self.levels[level].len() {
                let values = &mut self.levels[level];
                lean::make_room(values, 1);
                values.push(deadline_ms);
            } else {
                let place = &mut self.levels[level][at];
                *place = deadline_ms.min(*place);
            }
            if self.levels[level].len() == 1 {
                return;
            }
            at /= BRANCHES;
            level += 1;
        }
    }

    /// Takes the last deadline out.
    ///
    /// # Panics
    /// When there is none.
    pub(super) fn pop(&mut self) {
        let last = self.levels[0].len() - 1;
        self.set(last, NEVER);
        let mut left = last;
        for level in &mut self.levels {
            level.truncate(left);
            lean::fit(level);
            left = left.div_ceil(BRANCHES);
        }
        // The first level of one is the last.
        let needed = match last {
            0 => 0,
            _ => 1 + self.levels.iter().take_while(|level| level.len() > 1).count(),
        };
        self.levels.truncate(needed);
    }

    /// Changes a deadline.
    ///
    /// # Panics
    /// When there are not so many.
    pub(super) fn set(&mut self, mut at: usize, deadline_ms: u64) {
        self.levels[0][at] = deadline_ms;
        for level in 1..self.levels.len() {
            let (below, above) = self.levels.split_at_mut(level);
            let values = &below[level - 1];
            at /= BRANCHES;
            let first_ms = least(&values[at * BRANCHES..values.len().min((at + 1) * BRANCHES)]);
            if above[0][at] == first_ms {
                return;
            }
            above[0][at] = first_ms;
        }
    }

    /// Bytes of memory beside this itself.
    pub(super) fn memory(&self) -> usize {
        let values: usize = self.levels.iter().map(|level| level.capacity() * size_of::<u64>()).sum();
        values + self.levels.capacity() * size_of::<Vec<u64>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_one_is_always_known() {
        let mut random = 1_u64;
        let mut next = move |bound: u64| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (random >> 33) % bound
        };
        let (mut earliest, mut model) = (Earliest::default(), Vec::new());
        let most = if cfg!(miri) { 40 } else { 5_000 };
        let rounds = if cfg!(miri) { 400 } else { 40_000 };
        for round in 0..rounds {
            // More and more at first, and fewer and fewer in the end.
            match next(8) {
                0..4 if model.len() < most && round < rounds / 2 => {
                    let deadline_ms = if next(9) == 0 { NEVER } else { next(1_000) };
                    earliest.push(deadline_ms);
                    model.push(deadline_ms);
                }
                4..8 if !model.is_empty() && round >= rounds / 2 => {
                    earliest.pop();
                    model.pop();
                }
                _ if !model.is_empty() => {
                    let (at, deadline_ms) = (next(model.len() as u64) as usize, next(1_000));
                    earliest.set(at, deadline_ms);
                    model[at] = deadline_ms;
                }
                _ => {}
            }
            assert_eq!(earliest.first_ms(), model.iter().copied().min().filter(|&first_ms| first_ms != NEVER));
            if round % 64 == 0 {
                let now_ms = next(1_000);
                let mut past = Vec::new();
                let _ = earliest.for_each_past(now_ms, |at| {
                    past.push(at);
                    ControlFlow::Continue(())
                });
                let expected: Vec<usize> = (0..model.len()).filter(|&at| model[at] < now_ms).collect();
                assert_eq!(past, expected);
                assert_eq!(earliest.any_past(now_ms), expected.first().copied());
            }
        }
    }
}
