//! A hash in one of two forms: field and value in turn in a packed run while they are few and short, a table
//! afterwards. A table does not go back, as in Redis. Knows no command.

use super::{Fields, PackedFields, PackedFieldsRef};
use crate::types::{MemberForm, Object, PackedKind, ValueType, WithDeadlines};
use tenon_ds::looks::Looks;
use tenon_ds::packed::{COUNT_MAX, IntText, Item, Packed, PackedBuf};

/// Up to where a hash stays packed.
#[derive(Clone, Copy, Debug)]
pub struct HashLimits {
    /// Fields (`hash-max-listpack-entries`).
    pub fields: usize,
    /// Bytes of a field or a value (`hash-max-listpack-value`).
    pub bytes: usize,
}

/// A hash, to be changed.
pub type Hash = WithDeadlines<HashForm>;

/// Fields and values, to be changed.
#[derive(Clone, Debug)]
pub enum HashForm {
    /// Few fields: field and value in turn.
    Packed(PackedFields),
    /// Many or long ones.
    Table(Fields),
}

/// A hash, for reading.
#[derive(Clone, Copy, Debug)]
pub enum HashRef<'a> {
    /// Few fields: field and value in turn.
    Packed(PackedFieldsRef<'a>),
    /// Many or long ones.
    Table(&'a Fields),
}

impl Default for HashForm {
    fn default() -> HashForm {
        HashForm::Packed(PackedFields::default())
    }
}

impl MemberForm for HashForm {
    const VALUE_TYPE: ValueType = ValueType::Hash;

    type View<'a> = HashRef<'a>;

    fn view(&self) -> HashRef<'_> {
        match self {
            HashForm::Packed(packed) => HashRef::Packed(packed.view()),
            HashForm::Table(table) => HashRef::Table(table),
        }
    }

    fn len(view: HashRef<'_>) -> usize {
        view.len()
    }

    fn has(view: HashRef<'_>, field: &[u8]) -> bool {
        view.get(field).is_some()
    }

    fn take(&mut self, field: &[u8]) -> bool {
        match self {
            HashForm::Packed(packed) => packed.remove(field),
            HashForm::Table(fields) => fields.remove(field),
        }
    }

    fn view_packed(form: PackedKind, bytes: &[u8]) -> Option<HashRef<'_>> {
        (form == PackedKind::Hash).then(|| HashRef::Packed(PackedFieldsRef::of_run(Packed::new(bytes))))
    }

    fn from_packed(form: PackedKind, bytes: Vec<u8>) -> Option<HashForm> {
        (form == PackedKind::Hash).then(|| HashForm::Packed(PackedFields::from_run(PackedBuf::from_bytes(bytes))))
    }

    fn packed(&self) -> Option<(PackedKind, &[u8])> {
        match self {
            HashForm::Packed(packed) => Some((PackedKind::Hash, packed.view().run.bytes())),
            HashForm::Table(_) => None,
        }
    }

    fn into_packed_bytes(self) -> Option<Vec<u8>> {
        match self {
            HashForm::Packed(packed) => Some(packed.into_bytes()),
            HashForm::Table(_) => None,
        }
    }

    fn of_object(object: &Object) -> Option<&Hash> {
        if let Object::Hash(hash) = object { Some(hash) } else { None }
    }

    fn of_object_mut(object: &mut Object) -> Option<&mut Hash> {
        if let Object::Hash(hash) = object { Some(hash) } else { None }
    }

    fn into_object(hash: Hash) -> Object {
        Object::Hash(hash)
    }

    fn fit(&mut self) {
        match self {
            HashForm::Packed(packed) => packed.fit(),
            HashForm::Table(_) => {}
        }
    }

    fn memory(&self, looks: Looks) -> usize {
        match self {
            HashForm::Packed(packed) => packed.memory(),
            HashForm::Table(fields) => fields.memory(looks),
        }
    }
}

impl<'a> HashRef<'a> {
    /// How many fields there are.
    pub fn len(self) -> usize {
        match self {
            HashRef::Packed(packed) => packed.len(),
            HashRef::Table(table) => table.len(),
        }
    }

    /// Whether there is no field.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Calls `visit` with each field and its value, in no particular order.
    pub fn for_each(self, mut visit: impl FnMut(Item<'a>, Item<'a>)) {
        match self {
            HashRef::Packed(packed) => packed.iter().for_each(|(field, value)| visit(field, value)),
            HashRef::Table(fields) => {
                fields.iter().for_each(|(field, value)| visit(Item::Bytes(field), Item::Bytes(value)));
            }
        }
    }

    /// A page of the fields: from `cursor` on (0 at the start) about `count` of them. Gives the cursor to go on from, 0
    /// at the end. A packed hash is one page.
    pub fn scan(self, cursor: u64, count: usize, mut visit: impl FnMut(Item<'a>, Item<'a>)) -> u64 {
        match self {
            HashRef::Packed(_) => {
                self.for_each(visit);
                0
            }
            HashRef::Table(fields) => {
                fields.scan(cursor, count, |field, value| visit(Item::Bytes(field), Item::Bytes(value)))
            }
        }
    }

    /// The value of a field.
    #[inline]
    pub fn get(self, field: &[u8]) -> Option<Item<'a>> {
        match self {
            HashRef::Packed(packed) => packed.get(field),
            HashRef::Table(fields) => fields.get(field).map(Item::Bytes),
        }
    }
}

impl HashForm {
    /// Sets a field; tells whether it is new.
    fn set(&mut self, field: &[u8], value: &[u8], limits: HashLimits) -> bool {
        if field.len().max(value.len()) > limits.bytes {
            self.unpack();
        }
        match self {
            HashForm::Packed(packed) => {
                if packed.replace(field, Item::of(value)) {
                    return false;
                }
                self.add_new(field, value, limits);
                true
            }
            HashForm::Table(fields) => fields.set(field, value),
        }
    }

    /// Adds a field that is not there.
    fn add_new(&mut self, field: &[u8], value: &[u8], limits: HashLimits) {
        match self {
            HashForm::Packed(packed)
                if packed.view().len() < limits.fields.min(COUNT_MAX / 2)
                    && field.len().max(value.len()) <= limits.bytes =>
            {
                packed.push(field, value);
            }
            HashForm::Packed(_) => {
                self.unpack();
                self.add_new(field, value, limits);
            }
            HashForm::Table(fields) => _ = fields.set(field, value),
        }
    }

    fn unpack(&mut self) {
        let HashForm::Packed(packed) = self else { return };
        let mut fields = Fields::default();
        for (field, value) in packed.view().iter() {
            let (mut field_room, mut value_room): (IntText, IntText) = (IntText::new(), IntText::new());
            fields.set(field.as_bytes(&mut field_room), value.as_bytes(&mut value_room));
        }
        *self = HashForm::Table(fields);
    }
}

impl Hash {
    /// Sets a field, which then has no deadline; tells whether it is new.
    pub fn set(&mut self, field: &[u8], value: &[u8], limits: HashLimits) -> bool {
        self.persist(field);
        self.set_value(field, value, limits)
    }

    /// Sets a field, which keeps its deadline if it has one; tells whether it is new.
    pub fn set_value(&mut self, field: &[u8], value: &[u8], limits: HashLimits) -> bool {
        let stays_packed = field.len().max(value.len()) <= limits.bytes;
        if stays_packed && self.has_deadlines() && self.has(field) {
            return self.values_mut().set(field, value, limits);
        }
        self.elements_mut().set(field, value, limits)
    }

    /// Adds a field that is not there.
    pub fn add_new(&mut self, field: &[u8], value: &[u8], limits: HashLimits) {
        self.elements_mut().add_new(field, value, limits);
    }

    /// Whether the field is there.
    pub fn contains(&self, field: &[u8]) -> bool {
        self.has(field)
    }

    /// Takes a field out; tells whether it was there.
    pub fn remove(&mut self, field: &[u8]) -> bool {
        self.take(field)
    }

    /// Redis's name for the encoding.
    pub fn encoding(&self) -> &'static str {
        match self.elements() {
            HashForm::Packed(_) if self.has_deadlines() => "listpackex",
            HashForm::Packed(_) => "listpack",
            HashForm::Table(_) => "hashtable",
        }
    }
}
