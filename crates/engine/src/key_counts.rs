//! How many keys each database has, and how many of them with deadlines, told without a look at the shards: every thread notes
//! what it adds and what it removes, and whoever asks sums that up. Knows no shard and no key.

use crate::engine::Engine;
use crate::stats::WorkerStats;
use std::sync::atomic::{AtomicU64, Ordering};
use tenon_store::keyspace::DeadlineCounts;

/// Databases of which each has its keys counted, from 0 on: as many as there are by default. Of others, which are counted
/// together, the shards are asked.
const COUNTED: usize = 16;
/// The counts that there are.
const COUNTS: usize = COUNTED + 1;
/// How many sums there are: of changes that have begun and ended, of keys added and removed.
const SUMS: usize = 4;
/// How often the threads' sums are taken in the hope that nothing changes meanwhile.
const TRIES: usize = 8;

/// What one thread's commands have added to each database and removed from it, since the start: neither ever becomes less,
/// so that who finds both as they were knows that nothing has happened between. What changes several keys, as RENAME, a
/// transaction and a script do, says so before and behind: in its middle there is no count that anyone may see.
///
/// A thread writes its own. Only those who are no worker share theirs, so an addition is one read-modify-write, of a line
/// that hardly anybody else wants.
#[derive(Debug, Default)]
pub(crate) struct KeyCounts {
    added: [AtomicU64; COUNTS],
    removed: [AtomicU64; COUNTS],
    /// How many more keys with a deadline of their own there are by this thread's doing, and with members that have one. Nobody
    /// is told that these are of one moment.
    with_deadlines: [[AtomicU64; 2]; COUNTS],
    /// How many changes of several keys have begun, and how many have ended.
    changes: [AtomicU64; 2],
}

impl KeyCounts {
    /// Notes that a change of several keys begins, of which nobody is to see a part. It may be part of another one.
    #[inline]
    pub(crate) fn begin(&self) {
        self.changes[0].fetch_add(1, Ordering::Release);
    }

    /// Notes its end. Its shards are still locked, if it has changed anything.
    #[inline]
    pub(crate) fn end(&self) {
        self.changes[1].fetch_add(1, Ordering::Release);
    }

    /// Notes the end of all that this thread has begun: a bug has ended it in its middle.
    pub(crate) fn end_all(&self) {
        self.changes[1].store(self.changes[0].load(Ordering::Relaxed), Ordering::Release);
    }

    /// Notes that a database has another key. Its shard is locked.
    #[inline]
    pub(crate) fn added(&self, database: usize) {
        self.added[place_of(database)].fetch_add(1, Ordering::Release);
    }

    /// Notes that a database has lost so many keys. Their shards are locked.
    #[inline]
    pub(crate) fn removed(&self, database: usize, keys: usize) {
        self.removed[place_of(database)].fetch_add(keys as u64, Ordering::Release);
    }

    /// Notes that a database, all of whose shards are locked, has other keys than before, in the middle of a change: the sum
    /// may become less.
    pub(crate) fn replaced(&self, database: usize, before: usize, after: usize) {
        self.added[place_of(database)].fetch_add((after as u64).wrapping_sub(before as u64), Ordering::Release);
    }

    /// Notes how many keys of one shard have deadlines before a change and behind it. The shard is locked.
    #[inline]
    pub(crate) fn deadlines_changed(&self, database: usize, before: DeadlineCounts, after: DeadlineCounts) {
        if before != after {
            let [keys, with_members] = &self.with_deadlines[place_of(database)];
            let more = |before: u32, after: u32| u64::from(after).wrapping_sub(u64::from(before));
            keys.fetch_add(more(before.keys, after.keys), Ordering::Relaxed);
            with_members.fetch_add(more(before.with_members, after.with_members), Ordering::Relaxed);
        }
    }

    /// What was begun is looked at first: who sees a part of a change then finds another number the next time.
    fn of(&self, place: usize) -> [u64; SUMS] {
        let [begun, ended] = &self.changes;
        [begun, ended, &self.added[place], &self.removed[place]].map(|count| count.load(Ordering::Acquire))
    }
}

/// Where a database is counted.
fn place_of(database: usize) -> usize {
    database.min(COUNTED)
}

impl Engine {
    /// How many keys a database has, those past their deadlines and not yet removed included; `None` where that is not
    /// counted, changes too often, or is in the middle of a change of several keys: then the shards tell.
    pub fn key_count(&self, database: usize) -> Option<u64> {
        if database < COUNTED { self.keys_counted(database) } else { None }
    }

    /// How many keys of a database have a deadline of their own, and how many have members with one; `None` where that is not
    /// counted. While commands run it is of about now.
    pub fn deadline_counts(&self, database: usize) -> Option<[u64; 2]> {
        if database >= COUNTED {
            return None;
        }
        let mut sums = [0_u64; 2];
        self.each_stats(|stats| {
            for (sum, count) in sums.iter_mut().zip(&stats.keys.with_deadlines[database]) {
                *sum = sum.wrapping_add(count.load(Ordering::Relaxed));
            }
        });
        Some(sums.map(at_least_none))
    }

    /// How many keys each database has, as they are at one moment, or while too much changes, and in the middle of a transaction or a
    /// script, as they are about now; `None` where not all are counted.
    pub(crate) fn key_counts(&self) -> Option<Vec<u64>> {
        let databases = self.config.databases() as usize;
        if databases > COUNTED {
            return None;
        }
        let sums = || (0..databases).map(|database| self.sums(database)).collect::<Vec<_>>();
        let of_one_moment = at_one_moment(sums).and_then(|sums| sums.into_iter().map(keys_of).collect());
        let about = |[_, _, added, removed]: [u64; SUMS]| at_least_none(added.wrapping_sub(removed));
        Some(of_one_moment.unwrap_or_else(|| sums().into_iter().map(about).collect()))
    }

    /// What is different as soon as a key has come into a database, gone from it or moved; `None` in the middle of a change of several
    /// keys. (Databases that are counted together count as one.)
    pub(crate) fn moment_of_keys(&self, database: usize) -> Option<[u64; SUMS]> {
        Some(self.sums(place_of(database))).filter(|&sums| keys_of(sums).is_some())
    }

    /// Whether it is known that no database has any key, at one moment. The first that has one answers.
    pub(crate) fn has_no_key(&self) -> bool {
        let places = COUNTS.min(self.config.databases() as usize);
        let mut sums = [[0; SUMS]; COUNTS];
        // A key that moves from one to another is in each of them at some moment: all are looked at again behind that.
        (0..places).all(|place| {
            sums[place] = self.sums(place);
            keys_of(sums[place]) == Some(0)
        }) && (0..places).all(|place| self.sums(place) == sums[place])
    }

    /// Whether no key has a deadline of its own, as far as can be told while commands run.
    pub(crate) fn has_no_deadline(&self) -> bool {
        self.deadlines_summed_up() == 0
    }

    /// How many keys have a deadline of their own: while commands run, about so many.
    pub(crate) fn deadlines_about(&self) -> u64 {
        at_least_none(self.deadlines_summed_up())
    }

    fn deadlines_summed_up(&self) -> u64 {
        let mut keys = 0_u64;
        self.each_stats(|stats| {
            for [with_own, _] in &stats.keys.with_deadlines {
                keys = keys.wrapping_add(with_own.load(Ordering::Relaxed));
            }
        });
        keys
    }

    /// How many keys all databases have: while commands run, about so many.
    pub fn keys_about(&self) -> u64 {
        let mut keys = 0_u64;
        self.each_stats(|stats| {
            for (added, removed) in stats.keys.added.iter().zip(&stats.keys.removed) {
                keys = keys.wrapping_add(added.load(Ordering::Relaxed)).wrapping_sub(removed.load(Ordering::Relaxed));
            }
        });
        at_least_none(keys)
    }

    fn keys_counted(&self, place: usize) -> Option<u64> {
        at_one_moment(|| self.sums(place)).and_then(keys_of)
    }

    /// The sums over all threads. They are of one moment only if they are the same when they are taken again: each of their
    /// parts grows, and was what it is when the first were complete.
    fn sums(&self, place: usize) -> [u64; SUMS] {
        let mut sums = [0_u64; SUMS];
        self.each_stats(|stats: &WorkerStats| {
            for (sum, count) in sums.iter_mut().zip(stats.keys.of(place)) {
                *sum = sum.wrapping_add(count);
            }
        });
        sums
    }
}

/// A difference of sums: where one thread's addition was missed and another's removal was not, it is none.
fn at_least_none(difference: u64) -> u64 {
    if difference > i64::MAX as u64 { 0 } else { difference }
}

/// What is taken, if it is the same twice in a row.
fn at_one_moment<T: PartialEq>(take: impl Fn() -> T) -> Option<T> {
    let mut before = take();
    for _ in 0..TRIES {
        let again = take();
        if again == before {
            return Some(again);
        }
        before = again;
    }
    None
}

/// How many keys these sums stand for; `None` in the middle of a change.
fn keys_of([begun, ended, added, removed]: [u64; SUMS]) -> Option<u64> {
    (begun == ended).then(|| added.wrapping_sub(removed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Machine};

    #[test]
    fn threads_are_summed_up() {
        let engine = Engine::new(Config::new(Machine::detect()), &[], 1);
        let [one, other, stand_in] = [engine.worker(0), engine.worker(engine.workers()), engine.stand_in(0)];
        one.stats.keys.added(3);
        other.stats.keys.added(3);
        // Who removes a key need not have added it.
        stand_in.stats.keys.removed(3, 2);
        other.stats.keys.added(3);
        engine.reset_stats();
        assert_eq!([engine.key_count(3), engine.key_count(0)], [Some(1), Some(0)]);
        one.stats.keys.replaced(3, 1, 0);
        one.stats.keys.replaced(0, 0, 1);
        assert_eq!([engine.key_count(3), engine.key_count(0)], [Some(0), Some(1)]);
        // In the middle of a change, or of a part of one, nothing is told.
        one.stats.keys.begin();
        other.stats.keys.begin();
        other.stats.keys.removed(3, 0);
        other.stats.keys.end();
        assert_eq!(engine.key_count(3), None);
        one.stats.keys.end();
        assert_eq!(engine.key_count(3), Some(0));
        assert!(!engine.has_no_key());
        one.stats.keys.removed(0, 1);
        assert!(engine.has_no_key());
    }

    #[test]
    fn keys_with_deadlines_are_summed_up() {
        let engine = Engine::new(Config::new(Machine::detect()), &[], 1);
        let [one, other] = [engine.worker(0), engine.worker(engine.workers())];
        let counts = |keys, with_members| DeadlineCounts { keys, with_members };
        one.stats.keys.deadlines_changed(3, counts(7, 0), counts(9, 1));
        // Who takes a deadline away need not have given it.
        other.stats.keys.deadlines_changed(3, counts(5, 1), counts(4, 1));
        engine.reset_stats();
        assert_eq!([3, 0, COUNTED].map(|it| engine.deadline_counts(it)), [Some([1, 1]), Some([0, 0]), None]);
        other.stats.keys.deadlines_changed(3, counts(4, 1), counts(2, 0));
        assert_eq!(engine.deadline_counts(3), Some([0, 0]));
        assert!(!engine.has_no_deadline(), "it is no moment's number");
        one.stats.keys.deadlines_changed(COUNTED + 1, counts(0, 0), counts(1, 0));
        assert!(engine.has_no_deadline());
    }

    #[test]
    fn databases_beyond_the_counted_ones_are_counted_together() {
        let config = Config::new(Machine::detect());
        let engine = Engine::new(config, &[], 1);
        let keys = &engine.worker(0).stats.keys;
        keys.added(COUNTED);
        keys.added(COUNTED + 5);
        assert_eq!((engine.key_count(COUNTED), engine.keys_counted(COUNTED)), (None, Some(2)));
        keys.removed(COUNTED, 1);
        keys.removed(COUNTED + 5, 1);
        assert_eq!(engine.keys_counted(COUNTED), Some(0));
    }
}
