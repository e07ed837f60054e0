//! A sorted set in one of two forms: a packed run in order while it is small, a table with a tree afterwards. A tree
//! does not go back, as in Redis. Knows no command.

use super::ZsetRef;
use super::packed::{self, find, members};
use crate::hash::element_hash;
use crate::types::{MemberForm, Object, PackedKind, ValueType, WithDeadlines};
use std::ops::Range;
use tenon_ds::blob::ScoredBlob;
use tenon_ds::looks::Looks;
use tenon_ds::packed::{COUNT_MAX, IntText, Item, Packed, PackedBuf};
use tenon_ds::scored_set::{Direction, MemberHash, ScoredSet};

/// Hashes members as the elements of all collections are.
#[derive(Debug)]
pub enum ElementHash {}

impl MemberHash for ElementHash {
    #[inline]
    fn hash(member: &[u8]) -> u64 {
        element_hash(member)
    }
}

/// The members of a large sorted set.
pub type Members = ScoredSet<ElementHash>;

/// Up to where a sorted set stays packed.
#[derive(Clone, Copy, Debug)]
pub struct ZsetLimits {
    /// Members (`zset-max-listpack-entries`).
    pub members: usize,
    /// Bytes of a member (`zset-max-listpack-value`).
    pub bytes: usize,
}

/// A sorted set, to be changed.
pub type Zset = WithDeadlines<ZsetForm>;

/// Members and scores, to be changed. The scores are no NaN.
#[derive(Clone, Debug)]
pub enum ZsetForm {
    /// Few and short members, in order.
    Packed(PackedBuf),
    /// Many or long ones.
    Tree(Members),
}

impl Default for ZsetForm {
    fn default() -> ZsetForm {
        ZsetForm::Packed(PackedBuf::new())
    }
}

impl MemberForm for ZsetForm {
    const VALUE_TYPE: ValueType = ValueType::Zset;

    type View<'a> = ZsetRef<'a>;

    fn view(&self) -> ZsetRef<'_> {
        match self {
            ZsetForm::Packed(packed) => ZsetRef::Packed(packed.view()),
            ZsetForm::Tree(members) => ZsetRef::Tree(members),
        }
    }

    fn len(view: ZsetRef<'_>) -> usize {
        view.len()
    }

    fn has(view: ZsetRef<'_>, member: &[u8]) -> bool {
        view.score(member).is_some()
    }

    fn take(&mut self, member: &[u8]) -> bool {
        self.remove(member).is_some()
    }

    fn view_packed(form: PackedKind, bytes: &[u8]) -> Option<ZsetRef<'_>> {
        (form == PackedKind::Zset).then(|| ZsetRef::Packed(Packed::new(bytes)))
    }

    fn from_packed(form: PackedKind, bytes: Vec<u8>) -> Option<ZsetForm> {
        (form == PackedKind::Zset).then(|| ZsetForm::Packed(PackedBuf::from_bytes(bytes)))
    }

    fn packed(&self) -> Option<(PackedKind, &[u8])> {
        match self {
            ZsetForm::Packed(packed) => Some((PackedKind::Zset, packed.view().bytes())),
            ZsetForm::Tree(_) => None,
        }
    }

    fn into_packed_bytes(self) -> Option<Vec<u8>> {
        match self {
            ZsetForm::Packed(packed) => Some(packed.into_bytes()),
            ZsetForm::Tree(_) => None,
        }
    }

    fn of_object(object: &Object) -> Option<&Zset> {
        if let Object::Zset(zset) = object { Some(zset) } else { None }
    }

    fn of_object_mut(object: &mut Object) -> Option<&mut Zset> {
        if let Object::Zset(zset) = object { Some(zset) } else { None }
    }

    fn into_object(zset: Zset) -> Object {
        Object::Zset(zset)
    }

    fn fit(&mut self) {
        match self {
            ZsetForm::Packed(packed) => packed.fit(),
            ZsetForm::Tree(_) => {}
        }
    }

    fn memory(&self, looks: Looks) -> usize {
        match self {
            ZsetForm::Packed(packed) => packed.memory(),
            ZsetForm::Tree(members) => members.memory(looks),
        }
    }
}

impl ZsetForm {
    /// Changes or adds a member: `decide` is told the score it has, if it is there, and gives the one it shall have;
    /// with `None` all stays as it is.
    pub(super) fn update(
        &mut self,
        member: &[u8],
        limits: ZsetLimits,
        decide: impl FnOnce(Option<f64>) -> Option<f64>,
    ) {
        let packed = match self {
            ZsetForm::Packed(packed) => packed,
            ZsetForm::Tree(members) => return members.update(member, decide),
        };
        let item = Item::of(member);
        let found = find(packed.view(), item).map(|(_, found)| (found.at..found.end, found.score));
        let before = found.as_ref().map(|(_, score)| *score);
        let Some(score) = decide(before) else { return };
        assert!(!score.is_nan(), "a score can be compared");
        match found {
            Some((_, before)) if before == score => {}
            Some((range, _)) => {
                packed.remove(range, 2);
                packed::insert(packed, item, score);
            }
            None if packed.len() / 2 < limits.members.min(COUNT_MAX / 2) && member.len() <= limits.bytes => {
                packed::insert(packed, item, score);
            }
            None => self.become_tree().update(member, |_| Some(score)),
        }
    }

    fn become_tree(&mut self) -> &mut Members {
        if let ZsetForm::Packed(packed) = self {
            let mut tree = Members::new();
            let mut room: IntText = IntText::new();
            for found in members(packed.view()) {
                tree.add_new(found.member.as_bytes(&mut room), found.score);
            }
            *self = ZsetForm::Tree(tree);
        }
        match self {
            ZsetForm::Tree(members) => members,
            ZsetForm::Packed(_) => unreachable!("it has become a tree"),
        }
    }

    /// Takes a member out; gives the score that it had.
    pub(super) fn remove(&mut self, member: &[u8]) -> Option<f64> {
        match self {
            ZsetForm::Packed(packed) => {
                let (_, found) = find(packed.view(), Item::of(member))?;
                let (range, score) = (found.at..found.end, found.score);
                packed.remove(range, 2);
                Some(score)
            }
            ZsetForm::Tree(members) => members.remove(member),
        }
    }

    /// Takes out the members of a range of ranks and hands them to `visit` in this direction. Gives what many were kept in,
    /// for whoever would rather free it elsewhere.
    ///
    /// # Panics
    /// When there are not so many.
    pub(super) fn remove_ranks(
        &mut self,
        ranks: Range<usize>,
        direction: Direction,
        mut visit: impl FnMut(Item<'_>, f64),
    ) -> Vec<ScoredBlob> {
        if ranks.is_empty() {
            return Vec::new();
        }
        match self {
            ZsetForm::Packed(packed) => {
                ZsetRef::Packed(packed.view()).for_each_in(ranks.clone(), direction, visit);
                let mut bytes = members(packed.view()).skip(ranks.start).take(ranks.len());
                let first = bytes.next().expect("there are so many members");
                let end = bytes.last().unwrap_or(first).end;
                packed.remove(first.at..end, 2 * ranks.len());
                Vec::new()
            }
            ZsetForm::Tree(members) => {
                members.remove_ranks(ranks, direction, |score, member| visit(Item::Bytes(member), score))
            }
        }
    }
}

impl Zset {
    /// An empty one to which at least so many members will be added: it has the form that they will have.
    pub(super) fn of_at_least(members: usize, limits: ZsetLimits) -> Zset {
        let stays_packed = members <= limits.members.min(COUNT_MAX / 2);
        Zset::from(if stays_packed { ZsetForm::default() } else { ZsetForm::Tree(Members::new()) })
    }

    /// Changes or adds a member: `decide` is told the score it has, if it is there, and gives the one it shall have;
    /// with `None` all stays as it is. A deadline that it has stays.
    pub fn update(&mut self, member: &[u8], limits: ZsetLimits, decide: impl FnOnce(Option<f64>) -> Option<f64>) {
        self.elements_mut().update(member, limits, decide);
    }

    /// Gives a member a score.
    pub fn set(&mut self, member: &[u8], score: f64, limits: ZsetLimits) {
        self.elements_mut().update(member, limits, |_| Some(score));
    }

    /// Takes a member out; gives the score that it had.
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        self.persist(member);
        self.elements_mut().remove(member)
    }

    /// Takes out the members of a range of ranks and hands them to `visit` in this direction. Gives what many were kept in,
    /// for whoever would rather free it elsewhere.
    ///
    /// # Panics
    /// When there are not so many.
    pub fn remove_ranks(
        &mut self,
        ranks: Range<usize>,
        direction: Direction,
        mut visit: impl FnMut(Item<'_>, f64),
    ) -> Vec<ScoredBlob> {
        self.removing(|form, removed| {
            form.remove_ranks(ranks, direction, |member, score| {
                visit(member, score);
                removed(member);
            })
        })
    }
}
