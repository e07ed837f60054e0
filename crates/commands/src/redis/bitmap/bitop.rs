//! BITOP: several strings become one, bit by bit. Strings in chunks are read and written chunk by chunk.

use bytes::Bytes;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Deadline, KeysCx};
use tenon_engine::ds::progress;
use tenon_engine::errors::CmdError;
use tenon_engine::notify::EventClass;
use tenon_engine::store::entry::{INLINE_LEN_MAX, NewValue, ValueRef};
use tenon_engine::store::types::bitmap::Combine;
use tenon_engine::store::types::{CHUNK_FRONT, CHUNK_LEN, Object, Rope, ValueType};
use tenon_engine::string;
use tenon_engine::wire::resp::Reply;

/// Combines strings.
pub static BITOP: Command = Command {
    name: "BITOP",
    group: Group::Bitmap,
    syntax: "<AND | OR | XOR | NOT | DIFF | DIFF1 | ANDOR | ONE> destkey key [key ...]",
    summary: "Performs bitwise operations on multiple strings, and stores the result.",
    complexity: "O(N)",
    since: "2.6.0",
    arity: Arity::AtLeast(4),
    keys: Keys::Specs(&[KeySpec::at(2, KeyFlags::OVERWRITE), KeySpec::rest(3, KeyFlags::READ)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM),
    run: Run::Keys(bitop),
};

const OPERATIONS: [(&str, Combine); 8] = [
    ("AND", Combine::And),
    ("OR", Combine::Or),
    ("XOR", Combine::Xor),
    ("NOT", Combine::Not),
    ("DIFF", Combine::Diff),
    ("DIFF1", Combine::Diff1),
    ("ANDOR", Combine::AndOr),
    ("ONE", Combine::One),
];

fn bitop(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    const FIRST: usize = 3;
    let &(name, combine) = OPERATIONS.iter().find(|(name, _)| args.is(1, name)).ok_or(CmdError::Syntax)?;
    match (combine, args.len() - FIRST) {
        (Combine::Not, 2..) => {
            return Err(CmdError::text("ERR BITOP NOT must be called with a single source key."));
        }
        (Combine::Diff | Combine::Diff1 | Combine::AndOr, ..2) => {
            return Err(CmdError::new(format!("ERR BITOP {name} must be called with at least two source keys.")));
        }
        _ => {}
    }
    let mut sources = Vec::with_capacity(args.len() - FIRST);
    for key in args.from(FIRST) {
        sources.push(cx.key(key).read_string()?.map_or(Source::Short(Vec::new()), Source::of));
    }
    let len = sources.iter().map(Source::len).max().unwrap_or(0);
    reply.int(len as i64);
    let mut target = cx.key(args.get(2));
    if len == 0 {
        let is_deleted = target.delete();
        if is_deleted {
            target.notify(EventClass::GENERIC, "del");
        }
        return Ok(Effect::when(is_deleted));
    }
    let slot = target.find();
    let displaced = target.displaced(slot);
    target.note_overwritten(slot);
    if len <= INLINE_LEN_MAX {
        target.store_raw(slot, NewValue::Bytes(&combined_short(combine, &sources, len)), Deadline::Clear);
    } else {
        let result = combined(combine, &sources, len);
        target.store_raw(slot, NewValue::Object(Box::new(Object::from_rope(result))), Deadline::Clear);
    }
    target.notify_displaced(displaced, ValueType::String);
    target.notify(EventClass::STRING, "set");
    Ok(Effect::Verbatim)
}

/// A string that is read; a long one is referred to and not copied, but for its last chunk.
enum Source {
    Short(Vec<u8>),
    Shared(Bytes),
    Chunks(Rope),
}

impl Source {
    fn of(value: ValueRef<'_>) -> Source {
        match value {
            ValueRef::Object(Object::Shared(bytes)) => Source::Shared(bytes.clone()),
            ValueRef::Object(Object::Rope(rope)) => Source::Chunks(rope.share()),
            short => Source::Short(string::to_vec(short)),
        }
    }

    fn len(&self) -> usize {
        match self {
            Source::Short(bytes) => bytes.len(),
            Source::Shared(bytes) => bytes.len(),
            Source::Chunks(rope) => rope.len(),
        }
    }

    /// The part of the string that lies in the chunk of this index.
    fn chunk(&self, index: usize) -> &[u8] {
        let len = self.len();
        let range = (index * CHUNK_LEN).min(len)..((index + 1) * CHUNK_LEN).min(len);
        match self {
            Source::Short(bytes) => &bytes[range],
            Source::Shared(bytes) => &bytes[range],
            Source::Chunks(rope) => rope.slices_in(range).next().unwrap_or_default(),
        }
    }
}

/// How much is combined at a time: what stays in the cache closest to the processor, in bytes.
const PART_LEN: usize = 4 * 1024;

/// The strings combined to one of `len` bytes, which is the length of the longest and no more than a chunk's.
fn combined_short(combine: Combine, sources: &[Source], len: usize) -> Vec<u8> {
    let rows: Vec<&[u8]> = sources.iter().map(|source| source.chunk(0)).collect();
    progress::count_bytes(len * rows.len());
    let mut result = vec![0; len];
    let mut scratch = vec![0; if combine.uses_scratch() { len } else { 0 }];
    combine.run(&rows, &mut result, &mut scratch);
    result
}

/// The same for any length.
fn combined(combine: Combine, sources: &[Source], len: usize) -> Rope {
    let mut result = Rope::new();
    let mut scratch = [0; PART_LEN];
    for index in 0..len.div_ceil(CHUNK_LEN) {
        let here = (len - index * CHUNK_LEN).min(CHUNK_LEN);
        let rows: Vec<&[u8]> = sources.iter().map(|source| source.chunk(index)).collect();
        progress::count_bytes(here * rows.len());
        let mut block = Vec::with_capacity(CHUNK_FRONT + here);
        block.resize(CHUNK_FRONT, 0);
        for from in (0..here).step_by(PART_LEN) {
            let to = (from + PART_LEN).min(here);
            let parts: Vec<&[u8]> = rows.iter().map(|row| &row[from.min(row.len())..to.min(row.len())]).collect();
            block.resize(CHUNK_FRONT + to, 0);
            combine.run(&parts, &mut block[CHUNK_FRONT + from..], &mut scratch[..to - from]);
        }
        result.append_block(block);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_chunks_meet_without_a_seam() {
        let string = |len: usize, seed: usize| -> Vec<u8> { (0..len).map(|at| ((at * seed) >> 3) as u8).collect() };
        for len in [1, PART_LEN - 1, PART_LEN, PART_LEN + 1, CHUNK_LEN, CHUNK_LEN + PART_LEN + 5] {
            for shorter in [0, 3, PART_LEN, len] {
                let (long, short) = (string(len, 37), string(shorter.min(len), 101));
                let sources = [Source::Chunks(Rope::from(&long[..])), Source::Short(short.clone())];
                let padded = short.iter().copied().chain(std::iter::repeat(0));
                let expected = |combine: fn(u8, u8) -> u8| -> Vec<u8> {
                    long.iter().zip(padded.clone()).map(|(one, other)| combine(*one, other)).collect()
                };
                for (combine, of_bytes) in [
                    (Combine::And, (|a, b| a & b) as fn(u8, u8) -> u8),
                    (Combine::Xor, |a, b| a ^ b),
                    (Combine::Diff, |a, b| a & !b),
                    (Combine::One, |a, b| a ^ b),
                ] {
                    let result = combined(combine, &sources, len);
                    assert!(result.to_vec() == expected(of_bytes), "{combine:?} of {len} and {shorter} bytes");
                    let is_short = len <= CHUNK_LEN;
                    assert!(!is_short || combined_short(combine, &sources, len) == expected(of_bytes), "{combine:?}");
                }
            }
        }
    }
}
