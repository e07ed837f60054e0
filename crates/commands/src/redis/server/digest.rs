//! The digests of keys and databases that DEBUG DIGEST shows; they agree with Redis's (`debug.c`). Knows no command.

use sha1::{Digest as _, Sha1};
use tenon_engine::ds::packed::IntText;
use tenon_engine::store::entry::{EntryRef, ValueRef};
use tenon_engine::store::types::stream::StreamId;
use tenon_engine::store::types::{
    Collection, DeadlinesRef, Hash, HashRef, List, ListRef, Object, Set, SetRef, Stream, ValueType, Zset, ZsetRef,
};

/// Redis's number of a type, which is part of a key's digest.
fn type_number(value_type: ValueType) -> u32 {
    match value_type {
        ValueType::String => 0,
        ValueType::List => 1,
        ValueType::Set => 2,
        ValueType::Zset => 3,
        ValueType::Hash => 4,
        ValueType::Stream => 6,
    }
}

/// Twenty bytes that depend on what was mixed in, and for what was only added not on the order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest([u8; 20]);

fn view<T: Collection>(value: ValueRef<'_>) -> T::View<'_> {
    value.collection::<T>().expect("the value is of its type")
}

impl Digest {
    /// Adds: the order does not matter, and adding the same twice takes it out again.
    fn add(&mut self, bytes: &[u8]) {
        self.add_hash(Sha1::digest(bytes).into());
    }

    fn add_hash(&mut self, hash: [u8; 20]) {
        self.0.iter_mut().zip(hash).for_each(|(own, other)| *own ^= other);
    }

    /// Mixes in: the order matters.
    fn mix(&mut self, bytes: &[u8]) {
        self.mix_hash(Sha1::digest(bytes).into());
    }

    fn mix_hash(&mut self, hash: [u8; 20]) {
        self.add_hash(hash);
        self.0 = Sha1::digest(self.0).into();
    }

    /// The digest of a value and of whether it expires.
    pub fn of_value(entry: EntryRef<'_>) -> Digest {
        let mut digest = Digest::default();
        digest.mix_value(entry);
        digest
    }

    /// The digest of a key and its value.
    fn of_key(entry: EntryRef<'_>) -> Digest {
        let mut digest = Digest::default();
        digest.mix(entry.key());
        digest.mix_value(entry);
        digest
    }

    fn mix_value(&mut self, entry: EntryRef<'_>) {
        let value = entry.value();
        let value_type = ValueType::of(value);
        self.mix(&type_number(value_type).to_be_bytes());
        match value {
            ValueRef::Bytes(bytes) => self.mix(bytes),
            ValueRef::Int(int) => self.mix(int.to_string().as_bytes()),
            ValueRef::Object(Object::Shared(bytes)) => self.mix(bytes),
            ValueRef::Object(Object::Rope(rope)) => {
                self.mix_hash(rope.slices().fold(Sha1::new(), |sha, slice| sha.chain_update(slice)).finalize().into());
            }
            ValueRef::Object(Object::Stream(stream)) => self.mix_entries(stream),
            ValueRef::Packed(..) | ValueRef::Object(_) => match value_type {
                ValueType::Hash => self.add_hash_fields(view::<Hash>(value), value.deadlines()),
                ValueType::List => self.mix_elements(view::<List>(value)),
                ValueType::Set => self.add_members(view::<Set>(value), value.deadlines()),
                ValueType::Zset => self.add_scored_members(view::<Zset>(value), value.deadlines()),
                ValueType::String | ValueType::Stream => unreachable!("these are above"),
            },
        }
        if entry.deadline_ms().is_some() {
            self.add(b"!!expire!!");
        }
    }

    fn mix_elements(&mut self, list: ListRef<'_>) {
        let mut room = IntText::new();
        list.iter_from(0).for_each(|item| self.mix(item.as_bytes(&mut room)));
    }

    fn add_hash_fields(&mut self, hash: HashRef<'_>, deadlines: Option<DeadlinesRef<'_>>) {
        hash.for_each(|field, value| {
            let mut digest = Digest::default();
            digest.mix(&field.to_vec());
            digest.mix(&value.to_vec());
            digest.add_deadline(&field.to_vec(), deadlines);
            self.add(&digest.0);
        });
    }

    fn add_members(&mut self, set: SetRef<'_>, deadlines: Option<DeadlinesRef<'_>>) {
        set.for_each(|member| {
            let member = member.to_vec();
            if deadlines.is_some_and(|deadlines| deadlines.of(&member).is_some()) {
                let mut digest = Digest::default();
                digest.mix(&member);
                digest.add_deadline(&member, deadlines);
                self.add(&digest.0);
            } else {
                self.add(&member);
            }
        });
    }

    fn add_scored_members(&mut self, zset: ZsetRef<'_>, deadlines: Option<DeadlinesRef<'_>>) {
        zset.for_each(|member, score| {
            let mut digest = Digest::default();
            digest.mix(&member.to_vec());
            digest.mix(c_general(score).as_bytes());
            digest.add_deadline(&member.to_vec(), deadlines);
            self.add(&digest.0);
        });
    }

    /// Adds that a member expires; when it does so makes no difference. Of hash fields Redis says the same.
    fn add_deadline(&mut self, member: &[u8], deadlines: Option<DeadlinesRef<'_>>) {
        if deadlines.is_some_and(|deadlines| deadlines.of(member).is_some()) {
            self.add(b"!!hexpire!!");
        }
    }

    fn mix_entries(&mut self, stream: &Stream) {
        let mut room = IntText::new();
        for entry in stream.range(StreamId::MIN..=StreamId::MAX) {
            let id = entry.id();
            self.mix(format!("{}.{}", id.ms, id.seq).as_bytes());
            for (field, value) in entry.fields() {
                self.mix(field.as_bytes(&mut room));
                self.mix(value.as_bytes(&mut room));
            }
        }
    }

    /// Adds a key of a database to the sum of its keys.
    pub fn add_key(&mut self, entry: EntryRef<'_>) {
        self.add(&Digest::of_key(entry).0);
    }

    /// The digest of all databases, each with its number, its number of keys and the sum of them, in order.
    pub fn of_databases(sums: impl Iterator<Item = (u32, usize, Digest)>) -> Digest {
        let mut digest = Digest::default();
        for (index, _, sum) in sums.filter(|(_, keys, _)| *keys > 0) {
            digest.mix(&index.to_be_bytes());
            digest.add_hash(sum.0);
        }
        digest
    }

    /// Forty hexadecimal digits.
    pub fn hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A number as C's `%.17g` writes it, which is how Redis digests scores.
fn c_general(number: f64) -> String {
    /// Digits that are written, and the least power of ten that takes an exponent.
    const PRECISION: i32 = 17;
    if number.is_infinite() {
        return if number > 0.0 { "inf".to_owned() } else { "-inf".to_owned() };
    }
    let scientific = format!("{number:.16e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("scientific notation has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is an integer");
    let without_zeros = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..PRECISION).contains(&exponent) {
        return without_zeros(&format!("{number:.*}", (PRECISION - 1 - exponent) as usize));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_engine::store::entry::{Entry, Meta, NewValue};

    #[test]
    fn agrees_with_redis() {
        // SET foo bar; DEBUG DIGEST; DEBUG DIGEST-VALUE foo, on redis-server 7.0.15.
        let foo = Entry::new(b"foo", NewValue::Bytes(b"bar"), &Meta::default());
        let mut sum = Digest::default();
        sum.add_key(foo.view());
        let all = Digest::of_databases([(0, 1, sum), (1, 0, Digest::default())].into_iter());
        assert_eq!(all.hex(), "d2ab4820c1be0580ea28efbfe8bfa1dc05bb802a");
        assert_eq!(Digest::of_value(foo.view()).hex(), "68467c70ae30376e7ce005bcc8827f5ba7fd67dc");
    }

    #[test]
    fn scores_look_as_in_c() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (3.0, "3"),
            (0.1, "0.10000000000000001"),
            (100.5, "100.5"),
            (1e17, "1e+17"),
            (12_345_678_901_234_567.0, "12345678901234568"),
            (0.0001, "0.0001"),
            (0.00001, "1.0000000000000001e-05"),
            (-1.5e300, "-1.5000000000000001e+300"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(c_general(number), text);
        }
    }

    #[test]
    fn chunks_do_not_show() {
        let long = vec![b'v'; 600_000];
        let rope = Entry::new(b"k", NewValue::Bytes(&long), &Meta::default());
        let shared = NewValue::Object(Box::new(Object::Shared(long.into())));
        let shared = Entry::new(b"k", shared, &Meta::default());
        assert_eq!(Digest::of_value(rope.view()), Digest::of_value(shared.view()));
        let int = Entry::new(b"k", NewValue::Int(-7), &Meta::default());
        let text = Entry::new(b"k", NewValue::Bytes(b"-7"), &Meta::default());
        assert_eq!(Digest::of_value(int.view()), Digest::of_value(text.view()));
    }
}
