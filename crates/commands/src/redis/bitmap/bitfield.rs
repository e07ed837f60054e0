//! BITFIELD and BITFIELD_RO: integers of any width at any bit of a string.

use super::offset::parse_field_offset;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::errors::CmdError;
use tenon_engine::notify::EventClass;
use tenon_engine::store::Slot;
use tenon_engine::store::entry::ValueRef;
use tenon_engine::store::types::bitfield::{FieldType, Overflow, WINDOW_LEN, Window};
use tenon_engine::string::{self, Text};
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

/// Reads and changes integers.
pub static BITFIELD: Command = Command {
    name: "BITFIELD",
    group: Group::Bitmap,
    syntax: "key [GET encoding offset | [OVERFLOW <WRAP | SAT | FAIL>] <SET encoding offset value | INCRBY encoding \
             offset increment> [GET encoding offset | [OVERFLOW <WRAP | SAT | FAIL>] <SET encoding offset value | \
             INCRBY encoding offset increment> ...]]",
    summary: "Performs arbitrary bitfield integer operations on strings.",
    complexity: "O(1) for each subcommand specified",
    since: "3.2.0",
    arity: Arity::AtLeast(2),
    keys: Keys::Found {
        specs: &[KeySpec::at(1, KeyFlags::READ_AND_CHANGE.or(KeyFlags::VARIABLE_FLAGS))
            .notes("This command allows both access and modification of the key")],
        find: bitfield_keys,
    },
    flags: Flags::WRITE.or(Flags::DENY_OOM),
    run: Run::Key(bitfield),
};

/// Reads integers.
pub static BITFIELD_RO: Command = Command {
    name: "BITFIELD_RO",
    group: Group::Bitmap,
    syntax: "key [GET encoding offset [GET encoding offset ...]]",
    summary: "Performs arbitrary read-only bitfield integer operations on strings.",
    complexity: "O(1) for each subcommand specified",
    since: "6.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(bitfield_ro),
};

/// BITFIELD only reads where all it has to do is GET.
fn bitfield_keys(args: &Args<'_>) -> Vec<(usize, KeyFlags)> {
    let mut at = 2;
    let mut reads = true;
    while reads && at < args.len() {
        let behind = args.len() - at - 1;
        if args.is(at, "GET") && behind >= 2 {
            at += 3;
        } else if args.is(at, "OVERFLOW") && behind >= 1 {
            at += 2;
        } else {
            reads = false;
        }
    }
    vec![(1, if reads { KeyFlags::READ } else { KeyFlags::READ_AND_CHANGE })]
}

/// What is done to one integer.
#[derive(Clone, Copy)]
enum Action {
    Get,
    Set(i64, Overflow),
    IncrBy(i64, Overflow),
}

/// One integer, and what is done to it.
#[derive(Clone, Copy)]
struct Operation {
    field: FieldType,
    /// Of its first bit.
    offset: u64,
    action: Action,
}

impl Operation {
    /// The index of its first byte.
    fn first_byte(&self) -> usize {
        (self.offset / 8) as usize
    }

    /// How long the string has to be for it, in bytes; 0 for a read, which takes what is missing for zeros.
    fn len_needed(&self) -> usize {
        match self.action {
            Action::Get => 0,
            Action::Set(..) | Action::IncrBy(..) => self.first_byte() + self.field.span(self.offset),
        }
    }

    /// What it answers and what it stores, given what is there; `None` when the result does not fit and that is a
    /// failure.
    fn apply(&self, before: i64) -> Option<(i64, i64)> {
        match self.action {
            Action::Get => Some((before, before)),
            Action::Set(value, overflow) => self.field.of(value, overflow).map(|after| (before, after)),
            Action::IncrBy(increment, overflow) => {
                self.field.sum(before, increment, overflow).map(|after| (after, after))
            }
        }
    }
}

fn parse_field(text: &[u8]) -> Result<FieldType, CmdError> {
    let field = text.split_first().and_then(|(sign, bits)| {
        let bits = parse_i64(bits)?;
        match sign {
            b'i' if (1..=64).contains(&bits) => Some(FieldType::Signed(bits as u32)),
            b'u' if (1..=63).contains(&bits) => Some(FieldType::Unsigned(bits as u32)),
            _ => None,
        }
    });
    field.ok_or(CmdError::text(
        "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
    ))
}

fn parse_overflow(word: &[u8]) -> Result<Overflow, CmdError> {
    match word {
        _ if word.eq_ignore_ascii_case(b"WRAP") => Ok(Overflow::Wrap),
        _ if word.eq_ignore_ascii_case(b"SAT") => Ok(Overflow::Saturate),
        _ if word.eq_ignore_ascii_case(b"FAIL") => Ok(Overflow::Fail),
        _ => Err(CmdError::text("ERR Invalid OVERFLOW type specified")),
    }
}

fn parse_operations(cx: &KeyCx<'_>, args: &Args<'_>) -> Result<Vec<Operation>, CmdError> {
    let mut operations = Vec::new();
    let mut overflow = Overflow::Wrap;
    let mut at = 2;
    while at < args.len() {
        let behind = args.len() - at - 1;
        let (has_value, used) = match () {
            () if args.is(at, "GET") && behind >= 2 => (false, 3),
            () if (args.is(at, "SET") || args.is(at, "INCRBY")) && behind >= 3 => (true, 4),
            () if args.is(at, "OVERFLOW") && behind >= 1 => {
                overflow = parse_overflow(args.get(at + 1))?;
                at += 2;
                continue;
            }
            () => return Err(CmdError::Syntax),
        };
        let field = parse_field(args.get(at + 1))?;
        let offset = parse_field_offset(cx, args.get(at + 2), field.bits())?;
        let mut action = Action::Get;
        if has_value {
            let value = parse_i64(args.get(at + 3)).ok_or(CmdError::NotInteger)?;
            action = if args.is(at, "SET") { Action::Set(value, overflow) } else { Action::IncrBy(value, overflow) };
        }
        operations.push(Operation { field, offset, action });
        at += used;
    }
    Ok(operations)
}

fn bitfield(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let operations = parse_operations(cx, args)?;
    match operations.iter().map(Operation::len_needed).max().unwrap_or(0) {
        0 => read(cx, &operations, reply),
        len => write(cx, &operations, len, reply),
    }
}

fn bitfield_ro(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let operations = parse_operations(cx, args)?;
    if operations.iter().any(|operation| operation.len_needed() > 0) {
        return Err(CmdError::text("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    read(cx, &operations, reply)
}

fn read(cx: &mut KeyCx<'_>, operations: &[Operation], reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let value = cx.read_string()?;
    reply.array(operations.len());
    for operation in operations {
        let window = value.map_or([0; WINDOW_LEN], |value| window_of(value, operation.first_byte()));
        reply.int(operation.field.read(&window, operation.offset));
    }
    Ok(Effect::Unchanged)
}

/// Runs operations of which some write, on a string that is to have at least `len` bytes.
fn write(cx: &mut KeyCx<'_>, operations: &[Operation], len: usize, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    // As in Redis the string grows even when every operation fails.
    let (slot, has_grown) = match cx.find_for_write() {
        Some(slot) if string::len(cx.string(slot)?) >= len => (slot, false),
        Some(slot) => {
            cx.write_at(slot, len - 1, Text::Bytes(&[0]));
            (slot, true)
        }
        None => {
            cx.create_at(len - 1, &Text::Bytes(&[0]));
            (cx.find().expect("it was just stored"), true)
        }
    };
    // Growing counts as no change of its own, but has what is written afterwards count in any case.
    cx.count_changes(-i64::from(has_grown));
    let (mut has_changed, mut is_told) = (has_grown, false);
    reply.array(operations.len());
    for operation in operations {
        match run(cx, slot, operation) {
            Some((answer, effect)) => {
                reply.int(answer);
                let is_write = operation.len_needed() > 0;
                let is_changed = effect == Effect::Verbatim;
                has_changed |= is_changed;
                is_told |= is_changed || has_grown && is_write;
                cx.count_changes(i64::from(has_grown && is_write && !is_changed));
            }
            None => reply.null(),
        }
    }
    if is_told {
        cx.notify(EventClass::STRING, "setbit");
    }
    Ok(Effect::when(has_changed))
}

/// Runs one operation on a string that is long enough; gives its answer, or `None` when it failed.
fn run(cx: &mut KeyCx<'_>, slot: Slot, operation: &Operation) -> Option<(i64, Effect)> {
    let Operation { field, offset, .. } = *operation;
    let at = operation.first_byte();
    let mut window = window_of(cx.string(slot).expect("it is a string"), at);
    let before = field.read(&window, offset);
    let (answer, after) = operation.apply(before)?;
    if after != before {
        field.write(&mut window, offset, after);
        cx.write_at(slot, at, Text::Bytes(&window[..field.span(offset)]));
    }
    Some((answer, Effect::when(after != before)))
}

/// The bytes of a string from `at` on, and zeros behind its end.
fn window_of(value: ValueRef<'_>, at: usize) -> Window {
    let mut window = [0; WINDOW_LEN];
    let len = string::len(value);
    let mut filled = 0;
    for slice in string::slices_in(value, at.min(len)..(at + WINDOW_LEN).min(len), &mut itoa::Buffer::new()) {
        window[filled..filled + slice.len()].copy_from_slice(slice);
        filled += slice.len();
    }
    window
}
