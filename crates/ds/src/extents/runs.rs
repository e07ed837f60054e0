//! Runs of pages that nobody uses, by place and by length. Knows no memory: pages are numbers.

use std::collections::{BTreeMap, BTreeSet};

/// A run of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Its first page.
    pub start: usize,
    /// How many there are.
    pub pages: usize,
}

/// Runs of which no two touch.
#[derive(Debug)]
pub(super) struct Runs {
    by_start: BTreeMap<usize, usize>,
    /// Length first, so that the first one that is long enough is the shortest, and of these the one that comes first.
    by_len: BTreeSet<(usize, usize)>,
    pages: usize,
}

impl Runs {
    /// None.
    pub(super) const fn new() -> Runs {
        Runs { by_start: BTreeMap::new(), by_len: BTreeSet::new(), pages: 0 }
    }

    /// Pages in all of them.
    pub(super) fn pages(&self) -> usize {
        self.pages
    }

    /// Adds a run, none of whose pages is there; it becomes one with those that it touches.
    pub(super) fn put(&mut self, run: Run) {
        let mut whole = run;
        if let Some((&start, &pages)) = self.by_start.range(..run.start).next_back()
            && start + pages == run.start
        {
            self.remove(Run { start, pages });
            whole = Run { start, pages: pages + run.pages };
        }
        let end = run.start + run.pages;
        if let Some(&pages) = self.by_start.get(&end) {
            self.remove(Run { start: end, pages });
            whole.pages += pages;
        }
        self.insert(whole);
    }

    /// Takes so many pages, the beginning of the shortest run that has them.
    pub(super) fn take(&mut self, pages: usize) -> Option<Run> {
        let &(len, start) = self.by_len.range((pages, 0)..).next()?;
        self.remove(Run { start, pages: len });
        if len > pages {
            self.insert(Run { start: start + pages, pages: len - pages });
        }
        Some(Run { start, pages })
    }

    /// Takes the longest run.
    pub(super) fn take_longest(&mut self) -> Option<Run> {
        let &(pages, start) = self.by_len.last()?;
        self.remove(Run { start, pages });
        Some(Run { start, pages })
    }

    fn insert(&mut self, run: Run) {
        self.by_start.insert(run.start, run.pages);
        self.by_len.insert((run.pages, run.start));
        self.pages += run.pages;
    }

    fn remove(&mut self, run: Run) {
        self.by_start.remove(&run.start);
        self.by_len.remove(&(run.pages, run.start));
        self.pages -= run.pages;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STEPS: usize = if cfg!(miri) { 20 } else { 200 };

    fn run(start: usize, pages: usize) -> Run {
        Run { start, pages }
    }

    fn all(runs: &Runs) -> Vec<(usize, usize)> {
        runs.by_start.iter().map(|(&start, &pages)| (start, pages)).collect()
    }

    #[test]
    fn neighbours_become_one() {
        let mut runs = Runs::new();
        [run(10, 5), run(20, 5), run(30, 1)].into_iter().for_each(|run| runs.put(run));
        assert_eq!(all(&runs), [(10, 5), (20, 5), (30, 1)]);
        runs.put(run(15, 5));
        assert_eq!(all(&runs), [(10, 15), (30, 1)]);
        runs.put(run(8, 2));
        runs.put(run(25, 4));
        assert_eq!((all(&runs), runs.pages()), (vec![(8, 21), (30, 1)], 22));
    }

    #[test]
    fn the_shortest_that_is_long_enough_is_taken_and_of_those_the_first() {
        let mut runs = Runs::new();
        [run(100, 9), run(50, 4), run(10, 4), run(200, 3)].into_iter().for_each(|run| runs.put(run));
        assert_eq!(runs.take(4), Some(run(10, 4)));
        assert_eq!(runs.take(2), Some(run(200, 2)));
        assert_eq!(runs.take(5), Some(run(100, 5)));
        assert_eq!(all(&runs), [(50, 4), (105, 4), (202, 1)]);
        assert_eq!(runs.take(5), None);
        assert_eq!(runs.take_longest(), Some(run(105, 4)));
        assert_eq!(runs.pages(), 5);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 256 }))]

        /// Whatever is taken and put back, no page is there twice or lost, and no two runs touch.
        #[test]
        fn no_page_is_lost(steps in prop::collection::vec((any::<bool>(), 1..40usize), 0..STEPS)) {
            let mut runs = Runs::new();
            runs.put(run(0, 1_000));
            let mut taken = Vec::new();
            for (takes, number) in steps {
                if takes {
                    taken.extend(runs.take(number));
                } else if !taken.is_empty() {
                    runs.put(taken.swap_remove(number % taken.len()));
                }
                let mut pages = vec![0; 1_000];
                let free = all(&runs);
                let used = taken.iter().map(|run| (run.start, run.pages));
                for (start, len) in free.iter().copied().chain(used) {
                    pages[start..start + len].iter_mut().for_each(|count| *count += 1);
                }
                prop_assert!(pages.iter().all(|&count| count == 1));
                prop_assert!(free.windows(2).all(|two| two[0].0 + two[0].1 < two[1].0));
                prop_assert_eq!(runs.pages(), free.iter().map(|run| run.1).sum::<usize>());
                prop_assert_eq!(runs.by_len.len(), free.len());
            }
        }
    }
}
