//! ms: stores an item under one of several conditions.

use super::super::answer::Answer;
use super::super::counting;
use super::super::expiry::Expiry;
use super::super::store::{Data, append, prepend, put_with};
use super::super::verb::TextCommand;
use super::super::watch::{self, Storing};
use super::asked::{Code, write_number, write_own};
use tenon_engine::context::KeyCx;
use tenon_engine::store::Slot;
use tenon_engine::store::entry::Marks;
use tenon_engine::string;
use tenon_engine::wire::OutBuf;
use tenon_engine::wire::memcache::{MetaFlags, MetaWords};

/// Stores an item.
pub static MS: TextCommand = TextCommand {
    name: "ms",
    family: "meta",
    syntax: "<key> <bytes> <flags>*",
    summary: "Stores an item. F: client flags; T: expiry; M: mode, E add, A append, P prepend, R replace, S set; C: \
              only with this CAS token, or with I a later one, and stale then; E: the CAS token it is to have; N: \
              expiry of an item that A or P makes. Answered are c CAS token, k key, O opaque, s size; b: the key is \
              base64; q: no answer to success.",
};

/// What became of it.
struct Stored {
    code: Code,
    slot: Option<Slot>,
    cas: u64,
}

impl From<Code> for Stored {
    fn from(code: Code) -> Stored {
        Stored { code, slot: None, cas: 0 }
    }
}

/// Stores data if the mode's condition holds, and writes the answer.
///
/// # Errors
/// When the key holds another type.
pub fn set(
    cx: &mut KeyCx<'_>,
    words: MetaWords<'_>,
    flags: &MetaFlags,
    data: Data<'_>,
    out: &mut OutBuf,
) -> Result<(), Answer> {
    cx.worker().stats.all.mc_set.add(1);
    let slot = cx.find();
    watch::fetched(cx, slot);
    if slot.is_some_and(|slot| cx.string(slot).is_err()) {
        return Err(Answer::WrongType);
    }
    let data_len = data.len();
    let stored = match flags.mode {
        Some(b'E') => match slot {
            Some(slot) => {
                cx.note_attempt(slot);
                Code::NotStored.into()
            }
            None => put(cx, None, data, flags, flags.exptime),
        },
        Some(mode @ (b'A' | b'P')) => match (slot, flags.vivify) {
            (Some(slot), _) => add(cx, slot, mode, data, flags),
            (None, Some(exptime)) => put(cx, None, data, flags, Some(exptime)),
            (None, None) => Code::NotStored.into(),
        },
        _ if flags.compare.is_some() => compare_and_put(cx, slot, data, flags),
        Some(b'R') if slot.is_none() => Code::NotStored.into(),
        _ => put(cx, slot, data, flags, flags.exptime),
    };
    counting::sent(cx, stored.slot, data_len);
    let expiry = Expiry::of(flags.exptime.unwrap_or(0), cx.now_ms());
    watch::stored(cx, storing(flags), stored.code.as_answer(), expiry, data_len);
    if stored.code == Code::Done {
        cx.worker().stats.all.mc_stored.add(1);
        if flags.quiet {
            return Ok(());
        }
    }
    let out = out.tail();
    stored.code.write(out);
    for flag in words.flags() {
        match flag[0] {
            b'c' => write_number(out, b'c', stored.cas),
            b's' => write_number(out, b's', stored.slot.map_or(data_len, |slot| string::len(cx.entry(slot).value()))),
            _ => write_own(out, words, flag),
        }
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// Which write of the classic text protocol it is.
fn storing(flags: &MetaFlags) -> Storing {
    match flags.mode {
        Some(b'E') => Storing::Add,
        Some(b'A') => Storing::Append,
        Some(b'P') => Storing::Prepend,
        _ if flags.compare.is_some() => Storing::Cas,
        Some(b'R') => Storing::Replace,
        _ => Storing::Set,
    }
}

/// The CAS token that the item is to have: one that the client has chosen, or a new one if it asks for it. As in memcached
/// whoever chooses 0 has chosen none.
fn cas_of(cx: &KeyCx<'_>, flags: &MetaFlags) -> Option<u64> {
    flags.cas.filter(|&token| token != 0).or_else(|| flags.shows_cas.then(|| cx.engine().next_cas()))
}

fn put(cx: &mut KeyCx<'_>, slot: Option<Slot>, data: Data<'_>, flags: &MetaFlags, exptime: Option<i64>) -> Stored {
    let expiry = Expiry::of(exptime.unwrap_or(0), cx.now_ms());
    let cas = cas_of(cx, flags);
    let slot = put_with(cx, slot, data, expiry, flags.client_flags, cas);
    Stored { code: Code::Done, slot, cas: cas.unwrap_or(0) }
}

/// Adds data before or behind an item's. What would become too large stays as it is, of which memcached says no more than
/// that nothing is stored: so the answer has the flags by which a client tells it from others.
fn add(cx: &mut KeyCx<'_>, slot: Slot, mode: u8, data: Data<'_>, flags: &MetaFlags) -> Stored {
    // As in memcached 0 stands for none.
    let compare = flags.compare.filter(|&token| token != 0);
    if compare.is_some() && compare != cx.entry(slot).cas() {
        return Code::Exists.into();
    }
    let answer = if mode == b'A' { append(cx, slot, data) } else { prepend(cx, slot, data) };
    if answer.is_error() {
        return Code::NotStored.into();
    }
    let cas = cas_of(cx, flags);
    if let Some(token) = cas {
        cx.set_cas(slot, token);
    }
    Stored { code: Code::Done, slot: Some(slot), cas: cas.unwrap_or(0) }
}

/// Stores where the item still has the token that the client has seen, or, as stale data, where it has a later one.
fn compare_and_put(cx: &mut KeyCx<'_>, slot: Option<Slot>, data: Data<'_>, flags: &MetaFlags) -> Stored {
    let token = flags.compare.unwrap_or(0);
    let Some(slot) = slot else {
        cx.worker().stats.all.mc_cas_misses.add(1);
        return Code::NotFound.into();
    };
    // An item that has changed since has a later token than any that was given out.
    let held = if flags.stale { cx.cas_token(slot) } else { cx.entry(slot).cas().unwrap_or(0) };
    if token == 0 || token > held || token < held && !flags.stale {
        counting::compared(cx, slot, false);
        return Code::Exists.into();
    }
    counting::compared(cx, slot, true);
    if token == held {
        return put(cx, Some(slot), data, flags, flags.exptime);
    }
    let won = if cx.entry(slot).marks().has(Marks::WON) { Marks::WON } else { Marks::NONE };
    let expiry = Expiry::of_deadline(cx.entry(slot).deadline_ms());
    let cas = cas_of(cx, flags);
    let slot = put_with(cx, Some(slot), data, expiry, flags.client_flags, cas);
    if let Some(slot) = slot {
        cx.set_marks(slot, Marks::STALE.or(won));
    }
    Stored { code: Code::Done, slot, cas: cas.unwrap_or(0) }
}
