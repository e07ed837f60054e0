//! mg: reads an item, or what is known of it; makes sure that only one client sets it anew.

use super::super::answer::Answer;
use super::super::counting;
use super::super::expiry::Expiry;
use super::super::store::{Data, put_with};
use super::super::touch::set_expiry;
use super::super::value::write_data;
use super::super::verb::TextCommand;
use super::super::watch;
use super::asked::{Code, write_number, write_own, write_plain, write_seconds_left, write_value_code};
use tenon_engine::context::KeyCx;
use tenon_engine::store::Slot;
use tenon_engine::store::entry::Marks;
use tenon_engine::string;
use tenon_engine::wire::OutBuf;
use tenon_engine::wire::memcache::{MetaFlags, MetaWords};

/// Reads an item.
pub static MG: TextCommand = TextCommand {
    name: "mg",
    family: "meta",
    syntax: "<key> <flags>*",
    summary: "Reads an item or what is known of it, in the order of the flags: c CAS token, f client flags, h whether \
              it was read before, k key, l seconds since the last access, O opaque, s size, t seconds left, v value. \
              b: the key is base64; q: no answer to a miss; u: no access is noted; T: sets the expiry; N: makes the \
              item if there is none, E: with this CAS token; C: no value if this is its CAS token; R: says who is to set \
              it anew when less time is left.",
};

/// Writes the answer to `mg`. An item is made only when there is memory for it.
///
/// # Errors
/// When the key holds another type.
pub fn get(
    cx: &mut KeyCx<'_>,
    words: MetaWords<'_>,
    flags: &MetaFlags,
    has_room: bool,
    out: &mut OutBuf,
) -> Result<(), Answer> {
    let found = cx.find_unnoted();
    watch::fetched(cx, found);
    let made = match (found, flags.vivify) {
        (None, Some(_)) if has_room => {
            cx.worker().stats.all.mc_stored.add(1);
            put_with(cx, None, Data::Bytes(b""), Expiry::Never, 0, flags.cas)
        }
        _ => None,
    };
    // A miss has no expiry to set.
    let there = found.or(made);
    counting::read(cx, there, flags.exptime.is_some() && there.is_some());
    let Some(slot) = there else {
        if !flags.quiet {
            write_plain(out.tail(), words, Code::Miss);
        }
        return Ok(());
    };
    if cx.string(slot).is_err() {
        return Err(Answer::WrongType);
    }
    let cas = if flags.shows_cas { cx.cas_token(slot) } else { 0 };
    let (expiry, marks) = write_item(cx, slot, made.is_some(), cas, words, flags, out);
    if !flags.no_update {
        cx.note_read(slot);
    }
    if marks.has(Marks::WON) {
        cx.set_marks(slot, cx.entry(slot).marks().or(Marks::WON));
    }
    if let Some(expiry) = expiry {
        set_expiry(cx, slot, expiry);
    }
    Ok(())
}

/// Writes what is asked for, in the order of the flags; times that they set count for those behind them. Gives the expiry
/// that the item is to have, if another than before, and what is to be noted of it.
fn write_item(
    cx: &mut KeyCx<'_>,
    slot: Slot,
    is_made: bool,
    cas: u64,
    words: MetaWords<'_>,
    flags: &MetaFlags,
    out: &mut OutBuf,
) -> (Option<Expiry>, Marks) {
    let now_ms = cx.now_ms();
    let clock = cx.worker().clock.access;
    let entry = cx.entry(slot);
    let value = entry.value();
    let marks = entry.marks();
    let mut expiry = Expiry::of_deadline(entry.deadline_ms());
    let mut sets_expiry = None;
    let mut has_won = is_made;
    // Who has seen this very value need not be sent it again.
    let shows_value = flags.value && (flags.compare.is_none() || flags.compare != entry.cas());
    let head = out.tail();
    if shows_value {
        write_value_code(head, string::len(value));
    } else {
        Code::Done.write(head);
    }
    for flag in words.flags() {
        match flag[0] {
            b'c' => write_number(head, b'c', cas),
            b'f' => write_number(head, b'f', entry.flags()),
            b'h' => write_number(head, b'h', u8::from(marks.has(Marks::FETCHED))),
            b'l' => write_number(head, b'l', clock.seconds_since(entry.access())),
            b's' => write_number(head, b's', string::len(value)),
            b't' => write_seconds_left(head, expiry.seconds_left(now_ms)),
            b'T' | b'N' => {
                let exptime = if flag[0] == b'T' { flags.exptime } else { flags.vivify.filter(|_| is_made) };
                if let Some(exptime) = exptime {
                    expiry = Expiry::of(exptime, now_ms);
                    sets_expiry = Some(expiry);
                }
            }
            b'R' => {
                let wanted = flags.recache.map_or(Expiry::Never, |exptime| Expiry::of(exptime, now_ms));
                has_won |= is_short(expiry, wanted, now_ms) && !is_made && !marks.has(Marks::WON);
            }
            _ => write_own(head, words, flag),
        }
    }
    if marks.has(Marks::WON) {
        head.extend_from_slice(b" Z");
    }
    if marks.has(Marks::STALE) {
        head.extend_from_slice(b" X");
        has_won |= !marks.has(Marks::WON);
    }
    if has_won {
        head.extend_from_slice(b" W");
    }
    head.extend_from_slice(b"\r\n");
    if shows_value {
        write_data(out, value);
    }
    (sets_expiry, if has_won { Marks::WON } else { Marks::NONE })
}

/// Whether fewer seconds are left than are wanted.
fn is_short(left: Expiry, wanted: Expiry, now_ms: u64) -> bool {
    match wanted {
        Expiry::At(_) => left.seconds_left(now_ms).is_some_and(|left| Some(left) < wanted.seconds_left(now_ms)),
        Expiry::Never | Expiry::Over => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_short_when_fewer_seconds_are_left_than_wanted() {
        let at = |seconds: u64| Expiry::At(1_000_000 + seconds * 1_000);
        for (left, wanted, is) in [
            (at(30), at(31), true),
            (at(30), at(30), false),
            // Half a second later the item's thirty seconds are still those of the request.
            (Expiry::At(1_029_500), at(30), false),
            (Expiry::At(1_029_000), at(30), true),
            (Expiry::Over, at(30), true),
            (Expiry::Never, at(30), false),
            (at(30), Expiry::Never, false),
            (at(30), Expiry::Over, false),
        ] {
            assert_eq!(is_short(left, wanted, 1_000_000), is, "{left:?} of {wanted:?}");
        }
    }
}
