//! Hashes: fields with values, packed while they are few and short, in a table afterwards. Knows no command.

use super::{Collection, Object, PackedKind, ValueType};
use std::collections::HashMap;
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
#[derive(Clone, Debug)]
pub enum Hash {
    /// Few fields: field and value in turn.
    Packed(PackedBuf),
    /// Many or long ones.
    Table(HashMap<Box<[u8]>, Box<[u8]>>),
}

/// A hash, for reading.
#[derive(Clone, Copy, Debug)]
pub enum HashRef<'a> {
    /// Few fields: field and value in turn.
    Packed(Packed<'a>),
    /// Many or long ones.
    Table(&'a HashMap<Box<[u8]>, Box<[u8]>>),
}

impl Default for Hash {
    fn default() -> Hash {
        Hash::Packed(PackedBuf::new())
    }
}

impl Collection for Hash {
    const VALUE_TYPE: ValueType = ValueType::Hash;

    type View<'a> = HashRef<'a>;

    fn view(&self) -> HashRef<'_> {
        match self {
            Hash::Packed(packed) => HashRef::Packed(packed.view()),
            Hash::Table(table) => HashRef::Table(table),
        }
    }

    fn view_packed(form: PackedKind, bytes: &[u8]) -> Option<HashRef<'_>> {
        (form == PackedKind::Hash).then(|| HashRef::Packed(Packed::new(bytes)))
    }

    fn from_packed(form: PackedKind, bytes: Vec<u8>) -> Option<Hash> {
        (form == PackedKind::Hash).then(|| Hash::Packed(PackedBuf::from_bytes(bytes)))
    }

    fn packed(&self) -> Option<(PackedKind, &[u8])> {
        match self {
            Hash::Packed(packed) => Some((PackedKind::Hash, packed.view().bytes())),
            Hash::Table(_) => None,
        }
    }

    fn into_packed_bytes(self) -> Option<Vec<u8>> {
        match self {
            Hash::Packed(packed) => Some(packed.into_bytes()),
            Hash::Table(_) => None,
        }
    }

    fn of_object(object: &Object) -> Option<&Hash> {
        if let Object::Hash(hash) = object { Some(hash) } else { None }
    }

    fn of_object_mut(object: &mut Object) -> Option<&mut Hash> {
        if let Object::Hash(hash) = object { Some(hash) } else { None }
    }

    fn into_object(self) -> Object {
        Object::Hash(self)
    }

    fn is_empty(&self) -> bool {
        self.view().len() == 0
    }
}

impl<'a> HashRef<'a> {
    /// How many fields there are.
    pub fn len(self) -> usize {
        match self {
            HashRef::Packed(packed) => packed.len() / 2,
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
            HashRef::Packed(packed) => {
                let mut elements = packed.iter();
                while let (Some(field), Some(value)) = (elements.next(), elements.next()) {
                    visit(field.item, value.item);
                }
            }
            HashRef::Table(table) => {
                table.iter().for_each(|(field, value)| visit(Item::Bytes(field), Item::Bytes(value)));
            }
        }
    }

    /// The value of a field.
    pub fn get(self, field: &[u8]) -> Option<Item<'a>> {
        match self {
            HashRef::Packed(packed) => {
                let (_, value) = find(packed, Item::of(field))?;
                Some(packed.at(value).item)
            }
            HashRef::Table(table) => table.get(field).map(|value| Item::Bytes(value)),
        }
    }
}

/// Where a field and its value start.
fn find(packed: Packed<'_>, field: Item<'_>) -> Option<(usize, usize)> {
    let mut elements = packed.iter();
    while let Some(element) = elements.next() {
        if element.item == field {
            return Some((element.at, element.end));
        }
        elements.next();
    }
    None
}

impl Hash {
    /// Sets a field; tells whether it is new.
    pub fn set(&mut self, field: &[u8], value: &[u8], limits: HashLimits) -> bool {
        if field.len().max(value.len()) > limits.bytes {
            self.unpack();
        }
        match self {
            Hash::Packed(packed) => {
                if let Some((_, at)) = find(packed.view(), Item::of(field)) {
                    let end = packed.view().at(at).end;
                    packed.replace(at..end, Item::of(value));
                    return false;
                }
                packed.push(Item::of(field));
                packed.push(Item::of(value));
                if packed.len() / 2 > limits.fields.min(COUNT_MAX / 2 - 1) {
                    self.unpack();
                }
                true
            }
            Hash::Table(table) => table.insert(field.into(), value.into()).is_none(),
        }
    }

    /// Takes a field out; tells whether it was there.
    pub fn remove(&mut self, field: &[u8]) -> bool {
        match self {
            Hash::Packed(packed) => {
                let Some((at, value)) = find(packed.view(), Item::of(field)) else { return false };
                let end = packed.view().at(value).end;
                packed.remove(at..end, 2);
                true
            }
            Hash::Table(table) => table.remove(field).is_some(),
        }
    }

    fn unpack(&mut self) {
        let Hash::Packed(packed) = self else { return };
        let mut table = HashMap::new();
        let mut elements = packed.view().iter();
        while let (Some(field), Some(value)) = (elements.next(), elements.next()) {
            let (mut field_room, mut value_room): (IntText, IntText) = ([0; 20], [0; 20]);
            table.insert(field.item.as_bytes(&mut field_room).into(), value.item.as_bytes(&mut value_room).into());
        }
        *self = Hash::Table(table);
    }

    /// Redis's name for the encoding.
    pub fn encoding(&self) -> &'static str {
        match self {
            Hash::Packed(_) => "listpack",
            Hash::Table(_) => "hashtable",
        }
    }

    /// Bytes of memory beside the object itself.
    pub fn memory(&self) -> usize {
        match self {
            Hash::Packed(packed) => packed.memory(),
            Hash::Table(table) => {
                let fields: usize = table.iter().map(|(field, value)| field.len() + value.len()).sum();
                table.capacity() * size_of::<(Box<[u8]>, Box<[u8]>)>() + fields
            }
        }
    }
}
