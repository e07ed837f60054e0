//! A string on its way to a client, whole or in part, and the limit of its length. Knows no command.

use tenon_engine::context::KeyCx;
use tenon_engine::errors::CmdError;
use tenon_engine::store::entry::ValueRef;
use tenon_engine::store::types::Object;
use tenon_engine::string::no_string;
use tenon_engine::wire::resp::Reply;

/// Writes a stored string as a bulk string; a long one goes out by reference.
#[inline(always)]
pub fn reply_string(value: ValueRef<'_>, reply: &mut Reply<'_>) {
    match value {
        ValueRef::Bytes(bytes) => reply.bulk(bytes),
        ValueRef::Int(int) => reply.bulk_int(int),
        ValueRef::Object(Object::Shared(bytes)) => reply.bulk_shared(bytes),
        ValueRef::Object(Object::Rope(rope)) => reply.bulk_pieces(rope.len(), rope.range(0, rope.len())),
        ValueRef::Packed(..) | ValueRef::Object(_) => no_string(),
    }
}

/// Writes a stored string or null.
#[inline(always)]
pub fn reply_optional(value: Option<ValueRef<'_>>, reply: &mut Reply<'_>) {
    match value {
        Some(value) => reply_string(value, reply),
        None => reply.null(),
    }
}

/// Writes the bytes `start..end` of a stored string, which lie inside it; a long part goes out by reference.
pub fn reply_part(value: ValueRef<'_>, start: usize, end: usize, reply: &mut Reply<'_>) {
    match value {
        ValueRef::Bytes(bytes) => reply.bulk(&bytes[start..end]),
        ValueRef::Int(int) => reply.bulk(&itoa::Buffer::new().format(int).as_bytes()[start..end]),
        ValueRef::Object(Object::Shared(bytes)) => reply.bulk_shared(&bytes.slice(start..end)),
        ValueRef::Object(Object::Rope(rope)) => reply.bulk_pieces(end - start, rope.range(start, end)),
        ValueRef::Packed(..) | ValueRef::Object(_) => no_string(),
    }
}

/// Checks the length, in bytes, that a string would grow to by `more` bytes from byte `offset` on.
///
/// # Errors
/// When it is over `proto-max-bulk-len`, or no number can hold it.
pub fn check_length(cx: &KeyCx<'_>, offset: usize, more: usize) -> Result<(), CmdError> {
    let fits = offset.checked_add(more).is_some_and(|len| len as u64 <= cx.string_len_max());
    if fits { Ok(()) } else { Err(CmdError::StringTooLong) }
}
