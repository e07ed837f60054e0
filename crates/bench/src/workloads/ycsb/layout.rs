//! What a record holds and what it is called. Knows no protocol.

use crate::generators::fnv_hash;
use crate::values::Values;

/// The form of all records.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Fields of each record.
    pub fields: usize,
    /// Bytes of each field's value.
    pub field_len: usize,
    values: Values,
    names: Vec<String>,
}

impl Layout {
    /// Of records with so many fields of so many bytes each.
    pub fn new(fields: usize, field_len: usize) -> Layout {
        let names = (0..fields).map(|field| format!("field{field}")).collect();
        Layout { fields, field_len, values: Values::new(field_len), names }
    }

    /// Bytes of all values of a record.
    pub fn record_len(&self) -> usize {
        self.fields * self.field_len
    }

    /// What a field of the record of this identity holds, the same each time, so that it can be checked.
    #[inline]
    pub fn value(&self, identity: u64, field: usize) -> &[u8] {
        self.values.of(identity ^ (field as u64).wrapping_mul(0xA24B_AED4_963E_E407), self.field_len)
    }

    /// A field's name.
    #[inline]
    pub fn name(&self, field: usize) -> &str {
        &self.names[field]
    }

    /// The field of this name.
    #[inline]
    pub fn field(&self, name: &[u8]) -> Option<usize> {
        let digits = name.strip_prefix(b"field")?;
        let field = std::str::from_utf8(digits).ok()?.parse().ok()?;
        (field < self.fields).then_some(field)
    }

    /// Whether a field holds what it must.
    #[inline]
    pub fn holds(&self, identity: u64, name: &[u8], value: &[u8]) -> bool {
        self.field(name).is_some_and(|field| value == self.value(identity, field))
    }
}

/// What tells records apart: the hash of their number, which is in their name.
#[inline]
pub fn identity(number: u64) -> u64 {
    fnv_hash(number)
}

/// The identity that a record's name holds.
pub fn identity_in(name: &[u8]) -> Option<u64> {
    std::str::from_utf8(name.strip_prefix(b"user")?).ok()?.parse().ok()
}

/// What YCSB's Redis binding takes as a record's place in the index: Java's hash of its name.
pub fn place(name: &[u8]) -> i32 {
    name.iter().fold(0i32, |hash, byte| hash.wrapping_mul(31).wrapping_add(i32::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

    #[test]
    fn names_hold_identities() {
        let name = Key::record(7);
        assert_eq!(identity_in(&name), Some(identity(7)));
        assert_eq!(identity_in(b"key:7"), None);
        // What Java prints for "user6284781860667377211".hashCode().
        assert_eq!(place(&Key::record(0)), -594_971_599);
    }

    #[test]
    fn fields_are_told_apart() {
        let layout = Layout::new(10, 100);
        assert_eq!((layout.record_len(), layout.name(3), layout.field(b"field3")), (1_000, "field3", Some(3)));
        assert!(layout.holds(5, b"field3", layout.value(5, 3)));
        assert!(!layout.holds(5, b"field4", layout.value(5, 3)) && !layout.holds(6, b"field3", layout.value(5, 3)));
        assert!(layout.field(b"field10").is_none() && layout.field(b"x").is_none());
    }
}
