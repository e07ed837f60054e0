//! GETRANGE, SUBSTR and SETRANGE: parts of a string.

use super::value::{check_length, reply_part};
use std::ops::Range;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::errors::CmdError;
use tenon_engine::notify::EventClass;
use tenon_engine::string::{self, Text};
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

/// Reads a part of a string.
pub static GETRANGE: Command = Command {
    name: "GETRANGE",
    group: Group::String,
    syntax: "key start end",
    summary: "Returns a substring of the string stored at a key.",
    complexity: "O(N) where N is the length of the returned string. The complexity is ultimately determined by the \
                 returned length, but because creating a substring from an existing string is very cheap, it can be \
                 considered O(1) for small strings.",
    since: "2.4.0",
    arity: Arity::Exactly(4),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(getrange),
};

/// The old name of GETRANGE.
pub static SUBSTR: Command = Command {
    name: "SUBSTR",
    group: Group::String,
    syntax: "key start end",
    summary: "Returns a substring from a string value.",
    complexity: "O(N) where N is the length of the returned string. The complexity is ultimately determined by the \
                 returned length, but because creating a substring from an existing string is very cheap, it can be \
                 considered O(1) for small strings.",
    since: "1.0.0",
    arity: Arity::Exactly(4),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(getrange),
};

fn getrange(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let start = parse_i64(args.get(2)).ok_or(CmdError::NotInteger)?;
    let end = parse_i64(args.get(3)).ok_or(CmdError::NotInteger)?;
    match cx.read_string()? {
        Some(value) => {
            let part = part(string::len(value), start, end);
            reply_part(value, part.start, part.end, reply);
        }
        None => reply.bulk(b""),
    }
    Ok(Effect::Unchanged)
}

/// The bytes from `start` to `end` of a string of `len` bytes, both included; negative ones count from the end.
fn part(len: usize, start: i64, end: i64) -> Range<usize> {
    if start < 0 && end < 0 && start > end {
        return 0..0;
    }
    let len = len as i64;
    let from_front = |index: i64| if index < 0 { index.saturating_add(len).max(0) } else { index };
    // As in Redis 7.0 an end before the first byte is the first byte.
    let (start, end) = (from_front(start), from_front(end).min(len - 1));
    if start > end { 0..0 } else { start as usize..end as usize + 1 }
}

/// Writes into a string.
pub static SETRANGE: Command = Command {
    name: "SETRANGE",
    group: Group::String,
    syntax: "key offset value",
    summary: "Overwrites a part of a string value with another by an offset. Creates the key if it doesn't exist.",
    complexity: "O(1), not counting the time taken to copy the new string in place. Usually, this string is very \
                 small so the amortized complexity is O(1). Otherwise, complexity is O(M) with M being the length of \
                 the value argument.",
    since: "2.2.0",
    arity: Arity::Exactly(4),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM),
    run: Run::Key(setrange),
};

fn setrange(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let offset = parse_i64(args.get(2)).ok_or(CmdError::NotInteger)?;
    let offset = usize::try_from(offset).map_err(|_| CmdError::text("ERR offset is out of range"))?;
    let more = args.len_of(3);
    let slot = cx.find_for_write();
    let before = slot.map(|slot| cx.string(slot)).transpose()?.map_or(0, string::len);
    if more == 0 {
        reply.int(before as i64);
        return Ok(Effect::Unchanged);
    }
    check_length(cx, offset, more)?;
    let text = Text::of_arg(args, 3);
    let len = match slot {
        Some(slot) => cx.write_at(slot, offset, text),
        None => {
            let len = offset + more;
            cx.create_at(offset, &text);
            len
        }
    };
    cx.notify(EventClass::STRING, "setrange");
    reply.int(len as i64);
    Ok(Effect::Verbatim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_inside_the_string() {
        for len in [0, 1, 5] {
            for start in [i64::MIN, -6, -5, -1, 0, 1, 4, 5, i64::MAX] {
                for end in [i64::MIN, -6, -5, -1, 0, 1, 4, 5, i64::MAX] {
                    let part = part(len, start, end);
                    assert!(part.start <= part.end && part.end <= len, "{len} {start} {end}");
                }
            }
        }
        assert_eq!([part(5, 1, 3), part(5, -3, -2), part(5, 0, -1), part(5, 0, i64::MIN)], [1..4, 2..4, 0..5, 0..1]);
        assert_eq!([part(5, 4, 3), part(5, 5, 9), part(5, -1, -2), part(0, 0, 0)], [0..0, 0..0, 0..0, 0..0]);
    }
}
