//! Writing a value in the forms that Redis 7.0 reads, and 7.4 where fields of a hash expire.

use super::{intset, kind, listpack, stream};
use tenon_ds::listpack::{Listpack, ListpackBuf};
use tenon_ds::packed::{IntText, Item, Packed};
use tenon_store::entry::ValueRef;
use tenon_store::types::zset::Direction;
use tenon_store::types::{
    Collection, DeadlinesRef, Hash, HashRef, List, ListRef, Object, PackedKind, Rope, Set, SetRef, Stream, Zset,
    ZsetRef,
};
use tenon_wire::rdb::Writer;
use tenon_wire::resp::double::write_double;

/// Strings in chunks up to this length, in bytes, are written as any other: they may be integers.
const IN_ONE_PIECE: usize = 16 << 10;
/// Bytes up to which Redis takes a listpack.
const LISTPACK_LEN_MAX: usize = 1 << 30;

/// A value by its type.
#[derive(Clone, Copy)]
pub(crate) enum View<'a> {
    Int(i64),
    Bytes(&'a [u8]),
    Rope(&'a Rope),
    List(ListRef<'a>),
    Hash(HashRef<'a>),
    /// Some of whose fields expire.
    ExpiringHash(HashRef<'a>, DeadlinesRef<'a>),
    Set(SetRef<'a>),
    Zset(ZsetRef<'a>),
    Stream(&'a Stream),
}

pub(crate) fn view(value: ValueRef<'_>) -> View<'_> {
    const WHY: &str = "the bytes are of the form that they are kept as";
    match value {
        ValueRef::Int(int) => View::Int(int),
        ValueRef::Bytes(bytes) => View::Bytes(bytes),
        ValueRef::Packed(form, bytes) => match form.kind {
            PackedKind::List => View::List(List::view_packed(form, bytes).expect(WHY)),
            PackedKind::Hash => hash_view(Hash::view_packed(form, bytes).expect(WHY), value),
            PackedKind::Set | PackedKind::IntSet => View::Set(Set::view_packed(form, bytes).expect(WHY)),
            PackedKind::Zset => View::Zset(Zset::view_packed(form, bytes).expect(WHY)),
        },
        ValueRef::Object(Object::Shared(bytes)) => View::Bytes(bytes),
        ValueRef::Object(Object::Rope(rope)) => View::Rope(rope),
        ValueRef::Object(Object::List(list)) => View::List(list.view()),
        ValueRef::Object(Object::Hash(hash)) => hash_view(hash.view(), value),
        ValueRef::Object(Object::Set(set)) => View::Set(set.view()),
        ValueRef::Object(Object::Zset(zset)) => View::Zset(zset.view()),
        ValueRef::Object(Object::Stream(stream)) => View::Stream(stream),
    }
}

fn hash_view<'a>(hash: HashRef<'a>, value: ValueRef<'a>) -> View<'a> {
    match value.deadlines() {
        Some(deadlines) => View::ExpiringHash(hash, deadlines),
        None => View::Hash(hash),
    }
}

/// Whether a packed run is not too long for one of Redis's listpacks, in which it takes up to twice as much.
fn fits_listpack(packed: Packed<'_>) -> bool {
    packed.bytes().len() <= LISTPACK_LEN_MAX / 2
}

/// The number of the form in which [`write_value`] writes a value.
pub fn kind_of(value: ValueRef<'_>) -> u8 {
    match view(value) {
        View::Int(_) | View::Bytes(_) | View::Rope(_) => kind::STRING,
        View::List(_) => kind::LIST_QUICKLIST_2,
        // Redis 7.4 is the first that knows how.
        View::ExpiringHash(..) => kind::HASH_METADATA,
        View::Hash(HashRef::Packed(packed)) if fits_listpack(packed.run) => kind::HASH_LISTPACK,
        View::Hash(_) => kind::HASH,
        View::Set(SetRef::Ints(_)) => kind::SET_INTSET,
        // Redis 7.0 knows no small sets of strings.
        View::Set(_) => kind::SET,
        View::Zset(ZsetRef::Packed(packed)) if fits_listpack(packed) => kind::ZSET_LISTPACK,
        View::Zset(_) => kind::ZSET_2,
        View::Stream(_) => kind::STREAM_LISTPACKS_2,
    }
}

/// Writes a value; the number of its form is written by whoever needs it.
pub fn write_value(writer: &mut Writer<'_>, value: ValueRef<'_>) {
    match view(value) {
        View::Int(int) => writer.int_string(int),
        View::Bytes(bytes) => writer.string(bytes),
        View::Rope(rope) if rope.len() <= IN_ONE_PIECE => writer.string(&rope.to_vec()),
        View::Rope(rope) => writer.string_in_pieces(rope.len(), rope.slices()),
        View::List(ListRef::Packed(node)) => {
            writer.length(1);
            write_node(writer, node);
        }
        View::List(ListRef::Chain(chain)) => {
            writer.length(chain.nodes() as u64);
            chain.iter_nodes().for_each(|node| write_node(writer, node));
        }
        View::Hash(HashRef::Packed(packed)) if fits_listpack(packed.run) => {
            let mut elements = ListpackBuf::new();
            packed.run.iter().for_each(|element| elements.push_back(element.item));
            writer.string(&listpack::written(elements.view()));
        }
        View::Hash(hash) => {
            writer.length(hash.len() as u64);
            hash.for_each(|field, value| {
                write_item(writer, field);
                write_item(writer, value);
            });
        }
        View::ExpiringHash(hash, deadlines) => {
            let first_ms = deadlines.next_ms().unwrap_or(0);
            writer.raw(&first_ms.to_le_bytes());
            writer.length(hash.len() as u64);
            let mut room = IntText::new();
            hash.for_each(|field, value| {
                let deadline_ms = deadlines.of(field.as_bytes(&mut room));
                writer.length(deadline_ms.map_or(0, |deadline_ms| deadline_ms - first_ms + 1));
                write_item(writer, field);
                write_item(writer, value);
            });
        }
        View::Set(SetRef::Ints(ints)) => writer.string(&intset::written(ints)),
        View::Set(set) => {
            writer.length(set.len() as u64);
            set.for_each(|member| write_item(writer, member));
        }
        View::Zset(zset @ ZsetRef::Packed(packed)) if fits_listpack(packed) => {
            let mut elements = ListpackBuf::new();
            let mut text = Vec::new();
            zset.for_each(|member, score| {
                text.clear();
                write_double(&mut text, score);
                elements.push_back(member);
                elements.push_back(Item::of(&text));
            });
            writer.string(&listpack::written(elements.view()));
        }
        View::Zset(zset) => {
            writer.length(zset.len() as u64);
            // From the greatest on, as Redis does, which fills its lists from the front.
            zset.for_each_in(0..zset.len(), Direction::Descending, |member, score| {
                write_item(writer, member);
                writer.double(score);
            });
        }
        View::Stream(stream) => stream::write(writer, stream),
    }
}

pub(super) fn write_item(writer: &mut Writer<'_>, item: Item<'_>) {
    match item {
        Item::Bytes(bytes) => writer.string(bytes),
        Item::Int(int) => writer.int_string(int),
    }
}

/// Writes a node of a list; a single element that is too long for a listpack is written as it is, and so is one of which
/// servers have different ideas how it lies in one.
pub(super) fn write_node(writer: &mut Writer<'_>, node: Listpack<'_>) {
    match node.get(0) {
        Some(only) if node.len() == 1 && (node.redis_len() > LISTPACK_LEN_MAX || listpack::is_disputed(only.item)) => {
            writer.length(kind::node::PLAIN);
            write_item(writer, only.item);
        }
        _ => {
            writer.length(kind::node::PACKED);
            writer.string(&listpack::written(node));
        }
    }
}
