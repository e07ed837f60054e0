//! incr, decr: counting in 64 bits without a sign, in the decimal text that the item is.

use super::answer::Answer;
use super::counting;
use super::expiry::Expiry;
use super::store::{Data, put_with};
use super::verb::TextCommand;
use super::watch;
use tenon_engine::context::KeyCx;
use tenon_engine::notify::EventClass;
use tenon_engine::store::Slot;
use tenon_engine::store::entry::{Marks, NewValue, ValueRef};
use tenon_engine::store::types::Object;
use tenon_engine::string;
use tenon_engine::wire::memcache::ArithmeticVerb;

/// Bytes of a value that memcached keeps in one piece, its head not counted: longer ones are in chunks, and no numbers to it.
const WHOLE_LEN_MAX: usize = 512 * 1024;

/// Counts up.
pub static INCR: TextCommand = TextCommand {
    name: "incr",
    family: "arith",
    syntax: "<key> <value> [noreply]",
    summary: "Adds to the number that an item is; past 2^64 - 1 it begins again at 0.",
};

/// Counts down.
pub static DECR: TextCommand = TextCommand {
    name: "decr",
    family: "arith",
    syntax: "<key> <value> [noreply]",
    summary: "Subtracts from the number that an item is; at 0 it stops.",
};

/// Changes a counter; without room for more memory only if its text does not become longer.
pub fn arithmetic(cx: &mut KeyCx<'_>, verb: ArithmeticVerb, delta: u64, has_room: bool) -> Answer {
    let slot = cx.find_for_write();
    watch::fetched(cx, slot);
    let Some(slot) = slot else {
        count_miss(cx, verb);
        return Answer::NotFound;
    };
    match number_of(cx, slot) {
        Ok(found) => count_on(cx, slot, verb, found, delta, has_room).map_or(Answer::OutOfMemory, Answer::Number),
        Err(answer) => answer,
    }
}

/// Counts on from a number with a text of so many bytes; gives the new one. None if its text is longer and there is no
/// room for that, which is a hit to memcached, too.
pub(super) fn count_on(
    cx: &mut KeyCx<'_>,
    slot: Slot,
    verb: ArithmeticVerb,
    (number, len): (u64, usize),
    delta: u64,
    has_room: bool,
) -> Option<u64> {
    count_hit(cx, slot, verb);
    let number = match verb {
        ArithmeticVerb::Incr => number.wrapping_add(delta),
        ArithmeticVerb::Decr => number.saturating_sub(delta),
    };
    if !has_room && decimal_len(number) > len {
        counting::refused_for_memory(cx, decimal_len(number));
        return None;
    }
    write(cx, slot, number, len);
    let _logged = cx.log_string(slot);
    cx.notify(EventClass::STRING, "incrby");
    Some(number)
}

/// There is no memory for a new counter.
#[derive(Debug)]
pub(super) struct NoRoom;

/// Makes a counter; gives where it is, if it has not expired already.
///
/// # Errors
/// Without room for it.
pub(super) fn make(
    cx: &mut KeyCx<'_>,
    number: u64,
    expiry: Expiry,
    cas: Option<u64>,
    has_room: bool,
) -> Result<Option<Slot>, NoRoom> {
    let mut digits = itoa::Buffer::new();
    let text = digits.format(number).as_bytes();
    if !has_room {
        counting::refused_for_memory(cx, text.len());
        return Err(NoRoom);
    }
    cx.worker().stats.all.mc_stored.add(1);
    let made = put_with(cx, None, Data::Bytes(text), expiry, 0, cas);
    watch::made(cx, expiry, text.len());
    Ok(made)
}

fn count_hit(cx: &mut KeyCx<'_>, slot: Slot, verb: ArithmeticVerb) {
    match verb {
        ArithmeticVerb::Incr => counting::item(cx, slot, |all| &all.mc_incr_hits, |class| &class.incr_hits),
        ArithmeticVerb::Decr => counting::item(cx, slot, |all| &all.mc_decr_hits, |class| &class.decr_hits),
    }
}

pub(super) fn count_miss(cx: &mut KeyCx<'_>, verb: ArithmeticVerb) {
    let counters = &cx.worker().stats.all;
    match verb {
        ArithmeticVerb::Incr => counters.mc_incr_misses.add(1),
        ArithmeticVerb::Decr => counters.mc_decr_misses.add(1),
    }
}

/// The number that an item is, and the length of its text.
pub(super) fn number_of(cx: &KeyCx<'_>, slot: Slot) -> Result<(u64, usize), Answer> {
    let parsed = |text: &[u8]| Some((parse_counter(text)?, text.len()));
    let found = match cx.string(slot).map_err(|_| Answer::WrongType)? {
        ValueRef::Int(int) => u64::try_from(int).ok().map(|number| (number, decimal_len(number))),
        ValueRef::Bytes(text) => parsed(text),
        ValueRef::Object(Object::Shared(text)) if text.len() <= WHOLE_LEN_MAX => parsed(text),
        ValueRef::Object(Object::Rope(rope)) if rope.len() <= WHOLE_LEN_MAX => parsed(&rope.to_vec()),
        ValueRef::Packed(..) | ValueRef::Object(_) => None,
    };
    found.ok_or(Answer::NonNumeric)
}

/// Whether an item has anything that could be a number: memcached compares tokens before it reads one.
pub(super) fn may_be_number(cx: &KeyCx<'_>, slot: Slot) -> bool {
    cx.string(slot).is_ok_and(|value| (1..=WHOLE_LEN_MAX).contains(&string::len(value)))
}

/// Writes a number where a text of `len` bytes is. As in memcached a text never becomes shorter: blanks fill it up.
fn write(cx: &mut KeyCx<'_>, slot: Slot, number: u64, len: usize) {
    let mut digits = itoa::Buffer::new();
    let text = digits.format(number).as_bytes();
    // An item that is counted is still the same one, whatever form its number has.
    let mut marks = cx.entry(slot).marks();
    if text.len() > len {
        // What does not fit into the item's place takes a new one to memcached.
        cx.worker().stats.all.mc_stored.add(1);
        marks = Marks::NONE;
    }
    if text.len() >= len {
        match i64::try_from(number) {
            Ok(int) => cx.rewrite_int(slot, int),
            Err(_) => cx.rewrite(slot, NewValue::Bytes(text)),
        }
        return cx.set_marks(slot, marks);
    }
    let fill = |place: &mut [u8]| {
        let (head, blanks) = place.split_at_mut(text.len());
        head.copy_from_slice(text);
        blanks.fill(b' ');
    };
    if !cx.change_inline(slot, fill) {
        let mut padded = vec![0; len];
        fill(&mut padded);
        cx.rewrite(slot, NewValue::Bytes(&padded));
        cx.set_marks(slot, marks);
    }
}

/// Digits of a number.
fn decimal_len(number: u64) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

/// What C's `isspace` takes.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// The number at the start of a text as memcached's `safe_strtoull` reads it: blanks and a sign may come before it, and
/// whatever follows a blank or a NUL is not looked at. None below 0.
fn parse_counter(text: &[u8]) -> Option<u64> {
    let text = &text[text.iter().take_while(|&&byte| is_space(byte)).count()..];
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let len = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(len);
    if digits.is_empty() || rest.first().is_some_and(|&byte| byte != 0 && !is_space(byte)) {
        return None;
    }
    let number =
        digits.iter().try_fold(0u64, |number, digit| number.checked_mul(10)?.checked_add(u64::from(digit - b'0')))?;
    (!negative || number == 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_numbers_as_memcached_does() {
        for (text, number) in [
            ("0", 0),
            ("007", 7),
            ("+1", 1),
            ("-0", 0),
            (" 1", 1),
            ("\t\x0b1", 1),
            ("1   ", 1),
            ("1 2", 1),
            ("5\0a", 5),
            ("18446744073709551615", u64::MAX),
            ("000000000000000000000000000001", 1),
        ] {
            assert_eq!(parse_counter(text.as_bytes()), Some(number), "{text:?}");
        }
        for text in ["", " ", "-", "+", "a", "1a", "-1", "+-1", "0x1", "1.5", "18446744073709551616"] {
            assert_eq!(parse_counter(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn counts_digits() {
        for number in [0, 1, 9, 10, 99, 100, u64::MAX] {
            assert_eq!(decimal_len(number), number.to_string().len());
        }
    }
}
