//! An item's data on its way into the store, and a long one on its way out. Knows no verb.

use bytes::Bytes;
use tenon_engine::args::BigArg;
use tenon_engine::store::entry::ValueRef;
use tenon_engine::store::types::Object;
use tenon_engine::string::{Text, no_string};
use tenon_engine::wire::OutBuf;

/// Data that a client has sent.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    /// In its input.
    Bytes(&'a [u8]),
    /// Taken out of the stream in chunks.
    Big(&'a BigArg),
}

impl<'a> Data<'a> {
    /// Length in bytes.
    pub(super) fn len(self) -> usize {
        match self {
            Data::Bytes(bytes) => bytes.len(),
            Data::Big(big) => big.len(),
        }
    }

    /// The data, to be stored. What was taken out of the stream moves: it is there only once.
    #[inline]
    pub(super) fn take(self) -> Text<'a> {
        match self {
            Data::Bytes(bytes) => Text::Bytes(bytes),
            Data::Big(big) => Text::Rope(big.take()),
        }
    }
}

/// Writes the data of an item and CR LF behind it.
#[inline]
pub(super) fn write_data(out: &mut OutBuf, value: ValueRef<'_>) {
    write_value(out, value);
    out.tail().extend_from_slice(b"\r\n");
}

/// Writes the data of an item; a long string goes out by reference.
#[inline]
pub(super) fn write_value(out: &mut OutBuf, value: ValueRef<'_>) {
    match value {
        ValueRef::Bytes(bytes) => out.tail_for(bytes.len()).extend_from_slice(bytes),
        ValueRef::Int(int) => out.tail().extend_from_slice(itoa::Buffer::new().format(int).as_bytes()),
        ValueRef::Object(object) => shared_pieces(object).for_each(|piece| out.push_shared(piece)),
        ValueRef::Packed(..) => no_string(),
    }
}

/// The pieces of a long string that go out by reference.
fn shared_pieces(object: &Object) -> impl Iterator<Item = Bytes> + '_ {
    let (whole, rope) = match object {
        Object::Shared(bytes) => (Some(bytes.clone()), None),
        Object::Rope(rope) => (None, Some(rope)),
        _ => no_string(),
    };
    whole.into_iter().chain(rope.into_iter().flat_map(|rope| rope.range(0, rope.len())))
}
