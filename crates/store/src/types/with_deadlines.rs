//! A collection whose members may expire: its elements in whatever form its type has, and beside them the deadlines of
//! those that have one. Knows no particular type, and no clock: the time is passed in.
//!
//! Without a deadline there is one word more than the elements. In the entry of a key the deadlines of a small collection
//! lie behind its elements.

use super::member_deadlines::packed::{self, Each};
use super::{
    Collection, DeadlinesRef, MEMBER_DEADLINE_MAX_MS, MemberDeadlines, Object, PackedForm, PackedKind, ValueType,
};
use tenon_ds::looks::Looks;
use tenon_ds::packed::{IntText, Item};

/// The elements of a collection whose members may expire.
pub trait MemberForm: Default + 'static {
    /// Which type it is.
    const VALUE_TYPE: ValueType;

    /// What reading needs; it borrows from the entry or the object.
    type View<'a>: Copy;

    /// The elements, for reading.
    fn view(&self) -> Self::View<'_>;

    /// How many members there are.
    fn len(view: Self::View<'_>) -> usize;

    /// Whether the member is there; its bytes need not be canonical.
    fn has(view: Self::View<'_>, member: &[u8]) -> bool;

    /// Takes a member out; tells whether it was there.
    fn take(&mut self, member: &[u8]) -> bool;

    /// The elements in these packed bytes, for reading; `None` when they are of another type.
    fn view_packed(form: PackedKind, bytes: &[u8]) -> Option<Self::View<'_>>;

    /// The elements in these packed bytes, to be changed; `None` when they are of another type.
    fn from_packed(form: PackedKind, bytes: Vec<u8>) -> Option<Self>;

    /// The packed bytes, while the elements are packed.
    fn packed(&self) -> Option<(PackedKind, &[u8])>;

    /// The packed bytes' allocation, to be used again; `None` when there is none.
    fn into_packed_bytes(self) -> Option<Vec<u8>>;

    /// The collection that an object is, if it is of this type.
    fn of_object(object: &Object) -> Option<&WithDeadlines<Self>>;

    /// The collection that an object is, to be changed where it is.
    fn of_object_mut(object: &mut Object) -> Option<&mut WithDeadlines<Self>>;

    /// The object for a collection.
    fn into_object(collection: WithDeadlines<Self>) -> Object;

    /// Gives back the room that a packed form's allocation has beside what it holds.
    fn fit(&mut self);

    /// Bytes of memory beside this itself.
    fn memory(&self, looks: Looks) -> usize;
}

/// The most members whose deadlines are kept in the order of the elements.
const EACH_MAX: usize = 128;

/// A collection of elements in this form, and when they expire.
#[derive(Clone, Debug, Default)]
pub struct WithDeadlines<F> {
    form: F,
    /// Never empty. Only members that are there have a deadline.
    deadlines: Option<Box<Held>>,
}

/// The deadlines of members.
#[derive(Clone, Debug)]
enum Held {
    /// In the order of packed elements, as they lie in an entry.
    Each(Each),
    ByMember(MemberDeadlines),
}

impl<F: MemberForm> Collection for WithDeadlines<F> {
    const VALUE_TYPE: ValueType = F::VALUE_TYPE;

    type View<'a> = F::View<'a>;

    fn view(&self) -> F::View<'_> {
        self.form.view()
    }

    fn view_packed(form: PackedForm, bytes: &[u8]) -> Option<F::View<'_>> {
        F::view_packed(form.kind, packed::elements_of(form, bytes))
    }

    fn from_packed(form: PackedForm, mut bytes: Vec<u8>) -> Option<Self> {
        let deadlines = form.has_deadlines.then(|| Box::new(Held::Each(Each::split_off(&mut bytes))));
        F::from_packed(form.kind, bytes).map(|form| WithDeadlines { form, deadlines })
    }

    #[inline]
    fn packs_into(&self, at_most: usize) -> bool {
        let Some((_, bytes)) = self.form.packed() else { return false };
        match self.deadlines.as_deref() {
            None => bytes.len() <= at_most,
            Some(Held::ByMember(deadlines)) if !deadlines.are_few() => false,
            Some(_) => bytes.len() + packed::len_of(F::len(self.form.view())) <= at_most.min(packed::LEN_MAX),
        }
    }

    #[inline]
    fn pack<R>(self, put: impl FnOnce(PackedForm, &[u8]) -> R) -> (R, Vec<u8>) {
        const WHY: &str = "it is packed";
        let (kind, elements) = self.form.packed().expect(WHY);
        let each = match self.deadlines {
            None => {
                let result = put(PackedForm::plain(kind), elements);
                return (result, self.form.into_packed_bytes().expect(WHY));
            }
            Some(held) => match *held {
                Held::Each(each) => each,
                Held::ByMember(deadlines) => Each::of_members(kind, elements, &deadlines),
            },
        };
        let mut bytes = self.form.into_packed_bytes().expect(WHY);
        each.append_to(&mut bytes);
        (put(PackedForm { kind, has_deadlines: true }, &bytes), bytes)
    }

    fn into_packed_bytes(self) -> Option<Vec<u8>> {
        self.form.into_packed_bytes()
    }

    fn of_object(object: &Object) -> Option<&Self> {
        F::of_object(object)
    }

    fn of_object_mut(object: &mut Object) -> Option<&mut Self> {
        F::of_object_mut(object)
    }

    fn into_object(mut self) -> Object {
        // What it was changed in may have been as large as all that was changed there before.
        self.form.fit();
        if let Some(Held::ByMember(deadlines)) = self.deadlines.as_deref_mut() {
            deadlines.fit();
        }
        F::into_object(self)
    }

    fn is_empty(&self) -> bool {
        F::len(self.form.view()) == 0
    }

    fn deadlines(&self) -> Option<DeadlinesRef<'_>> {
        Some(match self.deadlines.as_deref()? {
            Held::Each(each) => {
                let (kind, elements) = self.packed_elements();
                DeadlinesRef::Packed(each.view(kind, elements))
            }
            Held::ByMember(deadlines) => DeadlinesRef::ByMember(deadlines),
        })
    }
}

impl<F> From<F> for WithDeadlines<F> {
    fn from(form: F) -> WithDeadlines<F> {
        WithDeadlines { form, deadlines: None }
    }
}

/// Which of packed members this is, in the order of the elements.
fn place_of<F: MemberForm>(form: &F, member: &[u8]) -> Option<usize> {
    form.packed().and_then(|(kind, elements)| packed::place_of(kind, elements, member))
}

impl<F: MemberForm> WithDeadlines<F> {
    /// Whether the member is there; its bytes need not be canonical.
    pub fn has(&self, member: &[u8]) -> bool {
        F::has(self.form.view(), member)
    }

    /// The elements, for reading.
    #[inline]
    pub(super) fn elements(&self) -> &F {
        &self.form
    }

    /// The elements, to be changed in whatever way but one: no member goes that has a deadline.
    #[inline]
    pub(super) fn elements_mut(&mut self) -> &mut F {
        self.keep_by_member();
        &mut self.form
    }

    /// The elements, of which values alone change: no member comes, goes or changes its place, nor the form.
    #[inline]
    pub(super) fn values_mut(&mut self) -> &mut F {
        &mut self.form
    }

    /// Where deadlines are in the order of the elements, those are packed.
    fn packed_elements(&self) -> (PackedKind, &[u8]) {
        self.form.packed().expect("deadlines in the order of the elements are of packed ones")
    }

    #[inline]
    fn keep_by_member(&mut self) {
        if let Some(held) = &self.deadlines
            && let Held::Each(each) = &**held
        {
            let (kind, elements) = self.packed_elements();
            self.deadlines = Some(Box::new(Held::ByMember(each.by_member(kind, elements))));
        }
    }

    /// The deadline of a member in milliseconds since the UNIX epoch.
    pub fn deadline_ms(&self, member: &[u8]) -> Option<u64> {
        self.deadlines()?.of(member)
    }

    /// Gives a member a deadline.
    ///
    /// # Panics
    /// When it is not there, or the deadline is later than any can be.
    pub fn set_deadline(&mut self, member: &[u8], deadline_ms: u64) {
        assert!(deadline_ms <= MEMBER_DEADLINE_MAX_MS, "a deadline is checked where it is read");
        let WithDeadlines { form, deadlines } = self;
        let held = deadlines.get_or_insert_with(|| {
            let members = F::len(form.view());
            Box::new(match form.packed() {
                Some(_) if members <= EACH_MAX => Held::Each(Each::none(members)),
                _ => Held::ByMember(MemberDeadlines::default()),
            })
        });
        match &mut **held {
            Held::Each(each) => each.set(place_of(form, member).expect("only what is there expires"), deadline_ms),
            Held::ByMember(deadlines) => {
                assert!(F::has(form.view(), member), "only what is there expires");
                deadlines.set(member, deadline_ms);
            }
        }
    }

    /// Takes a member's deadline away; tells whether it had one.
    pub fn persist(&mut self, member: &[u8]) -> bool {
        let WithDeadlines { form, deadlines } = self;
        let Some(held) = deadlines.as_deref_mut() else { return false };
        let had = match held {
            Held::Each(each) => place_of(form, member).is_some_and(|place| each.remove(place)),
            Held::ByMember(deadlines) => deadlines.remove(member),
        };
        self.drop_none();
        had
    }

    /// Deadlines that are none do not stay.
    fn drop_none(&mut self) {
        self.deadlines.take_if(|held| match &**held {
            Held::Each(each) => each.is_empty(),
            Held::ByMember(deadlines) => deadlines.is_empty(),
        });
    }

    /// Takes a member out with its deadline; tells whether it was there.
    pub fn take(&mut self, member: &[u8]) -> bool {
        self.persist(member);
        self.elements_mut().take(member)
    }

    /// Calls `remove` with the elements and with what it is to call for each member that it takes out.
    pub(super) fn removing<R>(&mut self, remove: impl FnOnce(&mut F, &mut dyn FnMut(Item<'_>)) -> R) -> R {
        self.keep_by_member();
        let WithDeadlines { form, deadlines } = self;
        let result = remove(form, &mut |member| {
            if let Some(Held::ByMember(deadlines)) = deadlines.as_deref_mut() {
                deadlines.remove(member.as_bytes(&mut IntText::new()));
            }
        });
        self.drop_none();
        result
    }

    /// Whether any member has a deadline.
    #[inline]
    pub(super) fn has_deadlines(&self) -> bool {
        self.deadlines.is_some()
    }

    /// Takes out members whose deadlines are past, at most so many; tells how many there were. Each is handed to `visit`.
    pub fn take_past(&mut self, now_ms: u64, at_most: usize, visit: &mut dyn FnMut(&[u8])) -> usize {
        self.keep_by_member();
        let WithDeadlines { form, deadlines } = self;
        let Some(Held::ByMember(deadlines)) = deadlines.as_deref_mut() else { return 0 };
        let count = deadlines.take_past(now_ms, at_most, &mut |member| {
            let was_there = form.take(member);
            debug_assert!(was_there, "only what is there has a deadline");
            visit(member);
        });
        self.drop_none();
        count
    }

    /// Whether the deadlines of all members are past.
    pub fn is_past(&self, now_ms: u64) -> bool {
        match self.deadlines() {
            None => false,
            Some(DeadlinesRef::Packed(packed)) => packed.are_all_past(now_ms),
            Some(DeadlinesRef::ByMember(deadlines)) => {
                deadlines.len() == F::len(self.form.view()) && deadlines.are_past(now_ms)
            }
        }
    }

    /// Bytes of memory beside the collection itself.
    pub fn memory(&self, looks: Looks) -> usize {
        let deadlines = match self.deadlines.as_deref() {
            None => 0,
            Some(Held::Each(each)) => size_of::<Held>() + each.memory(),
            Some(Held::ByMember(deadlines)) => size_of::<Held>() - size_of::<MemberDeadlines>() + deadlines.memory(),
        };
        self.form.memory(looks) + deadlines
    }
}
