//! A list, to be changed: one listpack while it is short, many once it is long, and back. Knows no command.

use super::limits::ListLimits;
use super::view::ListRef;
use crate::types::{Collection, Object, PackedForm, PackedKind, ValueType};
use tenon_ds::listpack::{End, Listpack, ListpackBuf};
use tenon_ds::looks::Looks;
use tenon_ds::packed::Item;
use tenon_ds::quicklist::Quicklist;

/// A list.
///
/// It becomes a chain before it grows past the limits of a node, and a listpack again after it has shrunk well below
/// them. Where Redis counts so, the lengths of elements on their way into the list decide, not what they take there.
#[derive(Clone, Debug)]
pub enum List {
    /// One listpack.
    Packed(ListpackBuf),
    /// Many.
    Chain(Quicklist),
}

impl Default for List {
    fn default() -> List {
        List::Packed(ListpackBuf::new())
    }
}

impl Collection for List {
    const VALUE_TYPE: ValueType = ValueType::List;

    type View<'a> = ListRef<'a>;

    fn view(&self) -> ListRef<'_> {
        match self {
            List::Packed(listpack) => ListRef::Packed(listpack.view()),
            List::Chain(chain) => ListRef::Chain(chain),
        }
    }

    fn view_packed(form: PackedForm, bytes: &[u8]) -> Option<ListRef<'_>> {
        (form.kind == PackedKind::List).then(|| ListRef::Packed(Listpack::new(bytes)))
    }

    fn from_packed(form: PackedForm, bytes: Vec<u8>) -> Option<List> {
        (form.kind == PackedKind::List).then(|| List::Packed(ListpackBuf::from_bytes(bytes)))
    }

    fn packs_into(&self, at_most: usize) -> bool {
        matches!(self, List::Packed(listpack) if listpack.view().bytes().len() <= at_most)
    }

    fn pack<R>(self, put: impl FnOnce(PackedForm, &[u8]) -> R) -> (R, Vec<u8>) {
        let List::Packed(listpack) = self else { panic!("a chain is not packed") };
        let result = put(PackedForm::plain(PackedKind::List), listpack.view().bytes());
        (result, listpack.into_allocation())
    }

    fn into_packed_bytes(self) -> Option<Vec<u8>> {
        match self {
            List::Packed(listpack) => Some(listpack.into_allocation()),
            List::Chain(_) => None,
        }
    }

    fn of_object(object: &Object) -> Option<&List> {
        if let Object::List(list) = object { Some(list) } else { None }
    }

    fn of_object_mut(object: &mut Object) -> Option<&mut List> {
        if let Object::List(list) = object { Some(list) } else { None }
    }

    fn into_object(mut self) -> Object {
        // What it was changed in may have been as large as all that was changed there before.
        if let List::Packed(listpack) = &mut self {
            listpack.fit();
        }
        Object::List(self)
    }

    fn is_empty(&self) -> bool {
        self.view().is_empty()
    }
}

impl List {
    /// How many elements there are.
    #[expect(clippy::len_without_is_empty, reason = "`Collection` has it")]
    pub fn len(&self) -> usize {
        self.view().len()
    }

    /// Makes the list ready for these elements, before the first of them is added.
    pub fn prepare<'e>(&mut self, elements: impl Iterator<Item = &'e [u8]>, limits: &ListLimits) {
        let List::Packed(listpack) = self else { return };
        let (mut added, mut added_bytes) = (0, 0);
        for element in elements {
            added += 1;
            added_bytes += element.len();
        }
        if limits.end_listpack(listpack.view(), added, added_bytes) {
            let listpack = std::mem::take(listpack);
            *self = List::Chain(if listpack.is_empty() { Quicklist::default() } else { Quicklist::of(listpack) });
        }
    }

    /// Adds an element at an end. `prepare` was told of it before.
    pub fn push(&mut self, end: End, item: Item<'_>, limits: &ListLimits) {
        match (self, end) {
            (List::Packed(listpack), End::Front) => listpack.push_front(item),
            (List::Packed(listpack), End::Back) => listpack.push_back(item),
            (List::Chain(chain), end) => chain.push(end, item, &limits.node),
        }
    }

    /// Takes an element off an end and hands it to `take`; `shrunk` is to be called once no more is taken.
    pub fn pop<R>(&mut self, end: End, take: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        match self {
            List::Packed(listpack) => {
                let element = listpack.view().end(end)?;
                let range = element.at..element.end;
                let taken = take(element.item);
                listpack.remove(range, 1);
                Some(taken)
            }
            List::Chain(chain) => chain.pop(end, take),
        }
    }

    /// Adds an element before the one of this index, or at the end. `prepare` was told of it before.
    pub fn insert(&mut self, index: usize, item: Item<'_>, limits: &ListLimits) {
        match self {
            List::Packed(listpack) => {
                let at = listpack.view().offset_of(index);
                listpack.insert(at, item);
            }
            List::Chain(chain) => chain.insert(index, item, &limits.node),
        }
    }

    /// Puts an element in the place of the one of this index, which is there. `prepare` was told of it before.
    pub fn replace(&mut self, index: usize, item: Item<'_>, limits: &ListLimits) {
        match self {
            List::Packed(listpack) => {
                let old = listpack.view().get(index).expect("there is an element of this index");
                let range = old.at..old.end;
                listpack.replace(range, item);
            }
            List::Chain(chain) => chain.replace(index, item, &limits.node),
        }
    }

    /// Takes out `count` elements from this index on, all of which are there; `shrunk` is to be called afterwards. Gives
    /// those that lay together in many allocations, for whoever would rather free them elsewhere.
    pub fn remove(&mut self, index: usize, count: usize) -> List {
        match self {
            List::Packed(listpack) => {
                let view = listpack.view();
                let range = view.offset_of(index)..view.offset_of(index + count);
                listpack.remove(range, count);
                List::default()
            }
            List::Chain(chain) => List::Chain(chain.remove(index, count)),
        }
    }

    /// Takes out up to `most` elements that are equal to `item`, the first or the last ones, and gives how many;
    /// `shrunk` is to be called afterwards.
    pub fn remove_equal(&mut self, item: Item<'_>, most: usize, from: End) -> usize {
        match self {
            List::Packed(listpack) => listpack.remove_equal(item, most, from),
            List::Chain(chain) => chain.remove_equal(item, most, from),
        }
    }

    /// Notes that elements were taken out or replaced: a short chain is a listpack again.
    pub fn shrunk(&mut self, limits: &ListLimits) {
        if let List::Chain(chain) = self
            && let Some(only) = chain.only_node()
            && limits.make_listpack(only)
        {
            *self = List::Packed(chain.take_only_node());
        }
    }

    /// How many allocations there are to free, about.
    pub fn allocations(&self) -> usize {
        match self {
            List::Packed(_) => 1,
            List::Chain(chain) => chain.nodes(),
        }
    }

    /// Bytes of memory beside the object itself.
    pub fn memory(&self, looks: Looks) -> usize {
        match self {
            List::Packed(listpack) => listpack.memory(),
            List::Chain(chain) => chain.memory(looks),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every form, thresholds crossed both ways, against a vector.
    #[test]
    fn changes_agree_with_a_vector() {
        for setting in [-2, -1, 1, 4, 100] {
            let limits = ListLimits::new(setting, usize::MAX);
            let mut model: Vec<Vec<u8>> = Vec::new();
            let mut list = List::default();
            let mut random = 5u64;
            let mut next = |below: usize| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (random >> 33) as usize % below
            };
            let mut forms = [0; 2];
            for step in 0..if cfg!(miri) { 200 } else { 4_000 } {
                // Long and short times, so that the list grows and shrinks past its limits.
                let grows = step / 500 % 2 == 0;
                let text = match next(3) {
                    0 => next(200).to_string().into_bytes(),
                    _ => vec![b'a' + next(3) as u8; next(if grows { 200 } else { 5 })],
                };
                let (item, index) = (Item::of(&text), next(model.len() + 1));
                let end = if next(2) == 0 { End::Front } else { End::Back };
                match next(if grows { 4 } else { 7 }) {
                    0 | 1 => {
                        list.prepare([&text[..]].into_iter(), &limits);
                        list.push(end, item, &limits);
                        model.insert(if end == End::Front { 0 } else { model.len() }, text);
                    }
                    2 => {
                        list.prepare([&text[..]].into_iter(), &limits);
                        list.insert(index, item, &limits);
                        model.insert(index, text);
                    }
                    3 if index < model.len() => {
                        list.prepare([&text[..]].into_iter(), &limits);
                        list.replace(index, item, &limits);
                        list.shrunk(&limits);
                        model[index] = text;
                    }
                    4 => {
                        let count = next(model.len() - index + 1).min(30);
                        list.remove(index, count);
                        list.shrunk(&limits);
                        model.drain(index..index + count);
                    }
                    5 => {
                        let removed = list.remove_equal(item, usize::MAX, end);
                        list.shrunk(&limits);
                        let before = model.len();
                        model.retain(|other| *other != text);
                        assert_eq!(removed, before - model.len());
                    }
                    _ => {
                        let popped = list.pop(end, |item| item.to_vec());
                        list.shrunk(&limits);
                        let expected = match end {
                            End::Front if model.is_empty() => None,
                            End::Front => Some(model.remove(0)),
                            End::Back => model.pop(),
                        };
                        assert_eq!(popped, expected);
                    }
                }
                forms[usize::from(matches!(list, List::Chain(_)))] += 1;
                let view = list.view();
                assert_eq!(view.len(), model.len());
                assert!(view.iter_from(0).map(Item::to_vec).eq(model.iter().cloned()));
                let back: Vec<_> = view.iter_back_from(model.len()).map(Item::to_vec).collect();
                assert!(back.iter().eq(model.iter().rev()));
                assert_eq!(view.end(End::Back).map(Item::to_vec).as_ref(), model.last());
            }
            assert!(forms[0] > 0 && forms[1] > 0, "{setting}: {forms:?}");
        }
    }

    #[test]
    fn changes_form_at_the_thresholds_of_redis() {
        let limits = ListLimits::new(-2, usize::MAX);
        let mut list = List::default();
        // Seven bytes of Redis's own and 1,361 elements of six: 8,173 bytes; then 19 more are the limit.
        for _ in 0..1_361 {
            list.prepare([&b"abcd"[..]].into_iter(), &limits);
            list.push(End::Back, Item::of(b"abcd"), &limits);
        }
        list.prepare([&[b'x'; 19][..]].into_iter(), &limits);
        assert_eq!(list.view().encoding(), "listpack");
        list.prepare([&[b'x'; 20][..]].into_iter(), &limits);
        assert_eq!(list.view().encoding(), "quicklist");
        // Half of the limit: 681 elements are 4,093 bytes.
        list.remove(0, 1_361 - 682);
        list.shrunk(&limits);
        assert_eq!(list.view().encoding(), "quicklist");
        list.remove(0, 1);
        list.shrunk(&limits);
        assert_eq!(list.view().encoding(), "listpack");

        let limits = ListLimits::new(4, usize::MAX);
        let mut list = List::default();
        for (len, encoding) in [(4, "listpack"), (5, "quicklist")] {
            list.prepare(std::iter::repeat_n(&b"a"[..], len - list.len()), &limits);
            (list.len()..len).for_each(|_| list.push(End::Back, Item::of(b"a"), &limits));
            assert_eq!(list.view().encoding(), encoding);
        }
        for (len, encoding) in [(3, "quicklist"), (2, "listpack")] {
            // From the end: a second node keeps a list a quicklist, however few elements there are.
            list.remove(len, list.len() - len);
            list.shrunk(&limits);
            assert_eq!(list.view().encoding(), encoding);
        }
    }
}
