//! Members with numbers: the table and the tree together. Knows not how members are hashed.

use super::tree::{Direction, Entry, Tree, compare};
use crate::blob::{ScoredBlob, ScoredBlobRef};
use crate::hash_table::{Ahead, ExtendibleTable, Location};
use crate::looks::Looks;
use crate::progress;
use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{ControlFlow, Range};

/// So many members or more go in one stroke, and are looked for in the table so many at a time.
const MANY: usize = 16;

/// How members are hashed.
pub trait MemberHash {
    /// The hash of a member: 64 bits, all of them good.
    fn hash(member: &[u8]) -> u64;
}

/// The set. Its numbers are no NaN.
pub struct ScoredSet<H> {
    table: ExtendibleTable<ScoredBlob>,
    tree: Tree,
    /// Bytes of memory that the members take.
    bytes: usize,
    hash: PhantomData<fn() -> H>,
}

fn hash_of<H: MemberHash>(blob: ScoredBlobRef<'_>) -> u64 {
    H::hash(blob.bytes())
}

fn entry_of(blob: ScoredBlobRef<'_>) -> Entry {
    Entry { score: blob.score(), blob: blob.address() }
}

impl<H: MemberHash> Default for ScoredSet<H> {
    fn default() -> ScoredSet<H> {
        ScoredSet::new()
    }
}

impl<H: MemberHash> ScoredSet<H> {
    /// An empty set.
    pub fn new() -> ScoredSet<H> {
        ScoredSet { table: ExtendibleTable::new(), tree: Tree::new(), bytes: 0, hash: PhantomData }
    }

    /// How many members there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Bytes of memory beside the set itself.
    pub fn memory(&self, looks: Looks) -> usize {
        self.table.memory(looks) + self.tree.memory(looks) + self.bytes
    }

    #[inline]
    fn find(&self, member: &[u8], hash: u64) -> Option<Location> {
        self.table.find(hash, |blob| blob.bytes() == member)
    }

    /// Starts loading a part of what a search for a member of this hash reads.
    #[inline]
    pub fn prefetch(&self, hash: u64, ahead: Ahead) {
        self.table.prefetch(hash, ahead);
    }

    /// The number of a member.
    #[inline]
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        self.find(member, H::hash(member)).map(|at| self.table.get(at).score())
    }

    /// The rank of a member, 0 for the lowest, and its number.
    #[inline]
    pub fn rank(&self, member: &[u8]) -> Option<(usize, f64)> {
        let at = self.find(member, H::hash(member))?;
        let entry = entry_of(self.table.get(at));
        Some((self.tree.rank(entry), entry.score))
    }

    /// The number and the member of a rank.
    ///
    /// # Panics
    /// When there are not so many.
    pub fn at(&self, rank: usize) -> (f64, &[u8]) {
        assert!(rank < self.len(), "the rank is that of a member");
        progress::count(1);
        let entry = self.tree.get(rank);
        (entry.score, entry.view().bytes())
    }

    /// How many members come before a place: `before` is asked with a number and a way to the member's bytes, and holds
    /// for no member behind one for which it does not.
    #[inline]
    pub fn partition(&self, mut before: impl FnMut(f64, ScoredBlobRef<'_>) -> bool) -> usize {
        self.tree.partition(|entry| before(entry.score, entry.view()))
    }

    /// Calls `visit` for the members of a range of ranks until it breaks off.
    ///
    /// # Panics
    /// When there are not so many.
    #[inline]
    pub fn visit<'a>(
        &'a self,
        range: Range<usize>,
        direction: Direction,
        mut visit: impl FnMut(f64, &'a [u8]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        assert!(range.start <= range.end && range.end <= self.len(), "the ranks are those of members");
        self.tree.visit(range, direction, |score, blob| visit(score, blob.bytes()))
    }

    /// Changes or adds a member: `decide` is told the number it has, if it is there, and gives the one it shall have;
    /// with `None` all stays as it is.
    pub fn update(&mut self, member: &[u8], decide: impl FnOnce(Option<f64>) -> Option<f64>) {
        let hash = H::hash(member);
        let found = self.find(member, hash);
        let before = found.map(|at| self.table.get(at).score());
        let Some(score) = decide(before) else { return };
        assert!(!score.is_nan(), "a member's number can be compared");
        match found {
            Some(at) => self.set_score(at, score),
            None => self.insert(member, hash, score),
        }
    }

    /// Adds a member that is not there.
    pub fn add_new(&mut self, member: &[u8], score: f64) {
        assert!(!score.is_nan(), "a member's number can be compared");
        let hash = H::hash(member);
        debug_assert!(self.find(member, hash).is_none(), "the member is new");
        self.insert(member, hash, score);
    }

    fn insert(&mut self, member: &[u8], hash: u64, score: f64) {
        let blob = ScoredBlob::new(score, member);
        self.bytes += blob.view().memory();
        let entry = entry_of(blob.view());
        self.table.insert(hash, blob, hash_of::<H>);
        // SAFETY: the blob is owned by the table, which moves only its address; `remove` and `set_score` tell
        // the tree before they take it out or change its number.
        unsafe { self.tree.insert(entry) };
    }

    fn set_score(&mut self, at: Location, score: f64) {
        let old = entry_of(self.table.get(at));
        if old.score == score {
            return;
        }
        let rank = self.tree.rank(old);
        if self.tree.try_set_score(rank, score) {
            self.table.get_mut(at).set_score(score);
            return;
        }
        self.tree.remove(rank);
        self.table.get_mut(at).set_score(score);
        // SAFETY: as in `insert`; the blob has the new number and was taken out of the tree before it changed.
        unsafe { self.tree.insert(Entry { score, ..old }) };
    }

    /// Takes a member out; gives the number that it had.
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let at = self.find(member, H::hash(member))?;
        let entry = entry_of(self.table.get(at));
        let rank = self.tree.rank(entry);
        self.tree.remove(rank);
        self.free(at);
        Some(entry.score)
    }

    /// Takes out the member of a rank and hands it to `visit`.
    ///
    /// # Panics
    /// When there are not so many.
    pub fn remove_at<R>(&mut self, rank: usize, visit: impl FnOnce(f64, &[u8]) -> R) -> R {
        assert!(rank < self.len(), "the rank is that of a member");
        let entry = self.tree.remove(rank);
        let bytes = entry.view().bytes();
        let result = visit(entry.score, bytes);
        let at = self.table.find(H::hash(bytes), |blob| blob.address() == entry.blob);
        self.free(at.expect("what is in the tree is in the table"));
        result
    }

    /// Takes out the members of a range of ranks and hands them to `visit` in this direction. Gives what they were kept
    /// in, for whoever would rather free it elsewhere.
    ///
    /// # Panics
    /// When there are not so many.
    pub fn remove_ranks(
        &mut self,
        ranks: Range<usize>,
        direction: Direction,
        mut visit: impl FnMut(f64, &[u8]),
    ) -> Vec<ScoredBlob> {
        assert!(ranks.start <= ranks.end && ranks.end <= self.len(), "the ranks are those of members");
        let mut removed = Vec::new();
        if ranks.len() < MANY {
            for step in 0..ranks.len() {
                let rank = match direction {
                    Direction::Ascending => ranks.start,
                    Direction::Descending => ranks.end - 1 - step,
                };
                self.remove_at(rank, &mut visit);
            }
            return removed;
        }
        let mut leaving = Vec::with_capacity(ranks.len());
        let mut memory = 0;
        let _ = self.tree.visit(ranks.clone(), direction, |score, blob| {
            visit(score, blob.bytes());
            leaving.push((H::hash(blob.bytes()), blob.address()));
            memory += blob.memory();
            ControlFlow::Continue(())
        });
        self.tree.remove_range(ranks);
        // From here on no member is looked at: where it lies is enough to know its slot.
        self.bytes -= memory;
        removed.reserve_exact(leaving.len());
        for some in leaving.chunks(MANY) {
            some.iter().for_each(|(hash, _)| self.table.prefetch(*hash, Ahead::Slots));
            removed.extend(some.iter().map(|(hash, address)| {
                let at = self.table.find(*hash, |blob| blob.address() == *address);
                self.table.remove(at.expect("what is in the tree is in the table"))
            }));
        }
        removed
    }

    /// Frees a member that is out of the tree.
    fn free(&mut self, at: Location) {
        let blob = self.table.remove(at);
        self.bytes -= blob.view().memory();
    }

    /// A page of the members, as [`ExtendibleTable::scan`] gives it.
    pub fn scan<'a>(&'a self, cursor: u64, count: usize, mut visit: impl FnMut(f64, &'a [u8])) -> u64 {
        self.table.scan(cursor, count, |_, blob| visit(blob.score(), blob.bytes()))
    }

    /// How many members come before one with this number and these bytes, whether it is there or not.
    #[inline]
    pub fn rank_of(&self, score: f64, member: &[u8]) -> usize {
        self.tree.partition(|entry| compare(score, member, entry) == Ordering::Greater)
    }
}

impl<H: MemberHash> Clone for ScoredSet<H> {
    fn clone(&self) -> ScoredSet<H> {
        let mut copy = ScoredSet { table: self.table.emptied(), ..ScoredSet::new() };
        // In order, so the copy's leaves are full.
        let _ = self.visit(0..self.len(), Direction::Ascending, |score, member| {
            copy.add_new(member, score);
            ControlFlow::Continue(())
        });
        copy
    }
}

impl<H> fmt::Debug for ScoredSet<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScoredSet").field("len", &self.table.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    struct Plain;

    impl MemberHash for Plain {
        fn hash(member: &[u8]) -> u64 {
            member.iter().fold(0xCBF2_9CE4_8422_2325, |hash: u64, &byte| {
                let mixed = (hash ^ u64::from(byte)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                mixed ^ mixed >> 29
            })
        }
    }

    type Set = ScoredSet<Plain>;

    /// A number that a model can order.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Score(f64);

    impl Eq for Score {}

    impl Ord for Score {
        fn cmp(&self, other: &Score) -> Ordering {
            self.0.partial_cmp(&other.0).unwrap()
        }
    }

    impl PartialOrd for Score {
        fn partial_cmp(&self, other: &Score) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    #[derive(Default)]
    struct Model {
        scores: BTreeMap<Vec<u8>, f64>,
        order: BTreeSet<(Score, Vec<u8>)>,
    }

    impl Model {
        fn set(&mut self, member: &[u8], score: f64) {
            if let Some(old) = self.scores.insert(member.to_vec(), score) {
                self.order.remove(&(Score(old), member.to_vec()));
            }
            self.order.insert((Score(score), member.to_vec()));
        }

        fn remove(&mut self, member: &[u8]) -> Option<f64> {
            let old = self.scores.remove(member)?;
            self.order.remove(&(Score(old), member.to_vec()));
            Some(old)
        }
    }

    fn walk(set: &Set, range: Range<usize>, direction: Direction) -> Vec<(Score, Vec<u8>)> {
        let mut seen = Vec::new();
        let _ = set.visit(range, direction, |score, member| {
            seen.push((Score(score), member.to_vec()));
            ControlFlow::Continue(())
        });
        seen
    }

    fn check(set: &Set, model: &Model) {
        set.tree.check();
        assert_eq!(set.len(), model.order.len());
        assert!(walk(set, 0..set.len(), Direction::Ascending).iter().eq(model.order.iter()));
        assert!(walk(set, 0..set.len(), Direction::Descending).iter().eq(model.order.iter().rev()));
    }

    fn member(number: usize) -> Vec<u8> {
        format!("member:{number}").into_bytes()
    }

    fn play(steps: Vec<(usize, u8, i8)>, members: usize, scores: i8) {
        let (mut set, mut model) = (Set::new(), Model::default());
        // Phases in which more is added, or more taken out, walk both splits and joins.
        for (number, (choice, action, score)) in steps.into_iter().enumerate() {
            let member = member(choice % members);
            let score = f64::from(score % scores) / 2.0;
            let growing = (number / (2 * members)).is_multiple_of(2);
            match (action % 8, growing) {
                (0..=5, true) | (0..=1, false) => {
                    set.update(&member, |old| {
                        assert_eq!(old, model.scores.get(&member).copied());
                        Some(score)
                    });
                    model.set(&member, score);
                }
                (7, _) if !set.is_empty() => {
                    let rank = choice % set.len();
                    let (score, member) = set.remove_at(rank, |score, member| (score, member.to_vec()));
                    assert_eq!(model.order.iter().nth(rank), Some(&(Score(score), member.clone())));
                    model.remove(&member);
                }
                (6, false) if number % 7 == 0 => {
                    // Few, many, and nearly all of them.
                    let from = choice % (set.len() + 1);
                    let to = (from + (choice >> 20) % [20, 300, usize::MAX][number % 3]).min(set.len());
                    let direction = [Direction::Ascending, Direction::Descending][number % 2];
                    let expected = walk(&set, from..to, direction);
                    let mut seen = Vec::new();
                    let freed = set.remove_ranks(from..to, direction, |score, member| {
                        seen.push((Score(score), member.to_vec()));
                    });
                    assert_eq!(seen, expected);
                    assert!(freed.is_empty() || freed.len() == seen.len());
                    seen.iter().for_each(|(_, member)| _ = model.remove(member));
                    set.tree.check();
                }
                _ => assert_eq!(set.remove(&member), model.remove(&member)),
            }
            if number % 512 == 0 {
                check(&set, &model);
            }
        }
        check(&set, &model);
        for (rank, (score, member)) in model.order.iter().enumerate() {
            assert_eq!(set.rank(member), Some((rank, score.0)));
            assert_eq!(set.rank_of(score.0, member), rank);
            assert_eq!(set.at(rank), (score.0, &member[..]));
            assert_eq!(set.score(member), Some(score.0));
        }
        for bound in -3..3 {
            let below = model.order.iter().filter(|(score, _)| score.0 < f64::from(bound)).count();
            assert_eq!(set.partition(|score, _| score < f64::from(bound)), below);
        }
        let len = set.len();
        for (from, to) in [(0, len.min(1)), (len / 3, len / 2), (len / 2, len), (len, len)] {
            let expected: Vec<_> = model.order.iter().skip(from).take(to - from).cloned().collect();
            assert_eq!(walk(&set, from..to, Direction::Ascending), expected);
            let expected: Vec<_> = expected.into_iter().rev().collect();
            assert_eq!(walk(&set, from..to, Direction::Descending), expected);
        }
        let copy = set.clone();
        check(&copy, &model);
        let mut scanned = BTreeMap::new();
        // Half of it, and then a copy from there on.
        let cursor = set.scan(0, set.len() / 2, |score, member| {
            scanned.insert(member.to_vec(), score);
        });
        if cursor != 0 {
            assert_eq!(copy.scan(cursor, usize::MAX, |score, member| _ = scanned.insert(member.to_vec(), score)), 0);
        }
        assert_eq!(scanned, model.scores);
        scanned.clear();
        let next = set.scan(0, usize::MAX, |score, member| {
            scanned.insert(member.to_vec(), score);
        });
        assert_eq!(next, 0);
        assert_eq!(scanned, model.scores);
        while !set.is_empty() {
            set.remove_at(set.len() / 2, |_, _| ());
        }
        set.tree.check();
        assert_eq!((set.bytes, set.tree.leaves()), (0, 1));
    }

    fn next(random: &mut u64) -> u64 {
        *random = random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (*random ^ *random >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        mixed ^ mixed >> 32
    }

    #[test]
    fn behaves_like_an_ordered_set() {
        // Many numbers; few, so that members decide; members enough for several segments of the table.
        let kinds = [(1, 900, 127), (2, 300, 3), (3, 4_000, 100), (4, 60, 9)];
        for (seed, members, scores) in kinds.into_iter().take(if cfg!(miri) { 1 } else { 4 }) {
            let mut random = seed;
            // Miri takes minutes for a thousand steps.
            let (members, steps) = if cfg!(miri) { (members.min(100), 110) } else { (members, 6 * members.max(1_000)) };
            let steps = (0..steps).map(|_| {
                let bits = next(&mut random);
                (bits as usize >> 16, bits as u8, (bits >> 8) as i8)
            });
            play(steps.collect(), members, scores);
        }
    }

    #[test]
    fn any_range_of_a_tree_of_three_levels_goes_in_one_stroke() {
        let count = if cfg!(miri) { 200 } else { 6_000 };
        let ranges = [(1, count), (70, count - 70), (63, 126), (0, 16), (0, count), (0, count - 1), (count / 2, count)];
        // An interpreter takes minutes for all of them.
        for (from, to) in ranges.into_iter().take(if cfg!(miri) { 3 } else { ranges.len() }) {
            let (mut set, mut model) = (Set::new(), Model::default());
            for number in 0..count {
                let score = (number / 10) as f64;
                set.update(&member(number), |_| Some(score));
                model.set(&member(number), score);
            }
            let gone: Vec<_> = model.order.iter().skip(from).take(to - from).cloned().collect();
            let freed = set.remove_ranks(from..to, Direction::Ascending, |_, _| ());
            assert_eq!(freed.len(), gone.len());
            drop(freed);
            gone.iter().for_each(|(_, member)| _ = model.remove(member));
            check(&set, &model);
            assert_eq!(set.bytes, set.table.iter().map(|blob| blob.memory()).sum::<usize>());
            // What is left takes members again.
            for (_, member) in gone {
                set.update(&member, |_| Some(1.0));
                model.set(&member, 1.0);
            }
            check(&set, &model);
        }
    }

    #[test]
    fn members_added_in_order_leave_full_leaves() {
        let count = if cfg!(miri) { 130 } else { 10_000 };
        for step in [1.0, -1.0] {
            let mut set = Set::new();
            for number in 0..count {
                set.update(&member(number), |_| Some(number as f64 * step));
            }
            set.tree.check();
            assert_eq!(set.tree.leaves(), count.div_ceil(super::super::leaf::NODE_LEN_MAX));
        }
    }

    #[test]
    fn a_number_that_stays_between_its_neighbours_moves_nothing() {
        let count = if cfg!(miri) { 20 } else { 100 };
        let mut set = Set::new();
        for number in 0..count {
            set.update(&member(number), |_| Some(number as f64));
        }
        for number in 0..count {
            for score in [number as f64 + 0.5, number as f64 - 0.5, number as f64] {
                set.update(&member(number), |_| Some(score));
                assert_eq!(set.rank(&member(number)), Some((number, score)));
                set.tree.check();
            }
        }
        // Equal numbers are ordered by the members.
        set.update(&member(5), |_| Some(6.0));
        assert_eq!(set.rank(&member(5)).unwrap().0, 5);
        set.update(&member(7), |_| Some(6.0));
        set.tree.check();
        // The other zero is the same place.
        set.update(&member(0), |_| Some(-0.0));
        assert_eq!(set.score(&member(0)).map(f64::to_bits), Some(0.0f64.to_bits()));
    }

    #[test]
    fn memory_is_sixty_bytes_a_short_member() {
        if cfg!(miri) {
            return;
        }
        let mut set = Set::new();
        let mut random = 1u64;
        for number in 0..100_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            set.update(format!("m:{number:08}").as_bytes(), |_| Some((random >> 11) as f64));
        }
        let bytes = set.memory(Looks::ALL) / set.len();
        assert!(bytes < 60, "{bytes} bytes a member");
        set.tree.check();
    }
}
