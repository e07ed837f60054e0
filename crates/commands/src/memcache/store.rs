//! set, add, replace, append, prepend, cas: storing items, each under its own condition.

use super::answer::Answer;
use super::expiry::Expiry;
pub use super::value::Data;
use super::value::{extend, len_of, object_of, pieces, value_of};
use super::verb::TextCommand;
use tenon_engine::context::{Deadline, KeyCx};
use tenon_engine::store::Slot;
use tenon_engine::store::entry::ValueRef;
use tenon_engine::wire::memcache::StoreVerb;

/// Stores in any case.
pub static SET: TextCommand = TextCommand {
    name: "set",
    family: "store",
    syntax: "<key> <flags> <exptime> <bytes> [noreply]",
    summary: "Stores an item, whether there is one or not.",
};

/// Stores where nothing is.
pub static ADD: TextCommand = TextCommand {
    name: "add",
    family: "store",
    syntax: "<key> <flags> <exptime> <bytes> [noreply]",
    summary: "Stores an item only if there is none.",
};

/// Stores where something is.
pub static REPLACE: TextCommand = TextCommand {
    name: "replace",
    family: "store",
    syntax: "<key> <flags> <exptime> <bytes> [noreply]",
    summary: "Stores an item only if there is one.",
};

/// Adds behind what is there.
pub static APPEND: TextCommand = TextCommand {
    name: "append",
    family: "store",
    syntax: "<key> <flags> <exptime> <bytes> [noreply]",
    summary: "Adds data behind an item's; flags and expiry stay what they were.",
};

/// Adds before what is there.
pub static PREPEND: TextCommand = TextCommand {
    name: "prepend",
    family: "store",
    syntax: "<key> <flags> <exptime> <bytes> [noreply]",
    summary: "Adds data before an item's; flags and expiry stay what they were.",
};

/// Stores what nobody has changed since.
pub static CAS: TextCommand = TextCommand {
    name: "cas",
    family: "store",
    syntax: "<key> <flags> <exptime> <bytes> <cas unique> [noreply]",
    summary: "Stores an item only if nobody has changed it since its CAS token was given out.",
};

/// What is to be stored.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// The client's own.
    pub flags: u32,
    /// As the client gave it.
    pub exptime: i64,
    /// The data.
    pub data: Data<'a>,
}

/// Stores an item if the verb's condition holds.
#[inline]
pub fn store(cx: &mut KeyCx<'_>, verb: StoreVerb, item: Item<'_>) -> Answer {
    cx.worker().stats.all.mc_set.add(1);
    let slot = cx.find();
    if let Some(slot) = slot
        && cx.string(slot).is_err()
    {
        return Answer::WrongType;
    }
    let answer = match (verb, slot) {
        (StoreVerb::Set, _) | (StoreVerb::Add, None) | (StoreVerb::Replace, Some(_)) => put(cx, slot, item),
        (StoreVerb::Add, Some(_)) | (StoreVerb::Replace | StoreVerb::Append | StoreVerb::Prepend, None) => {
            Answer::NotStored
        }
        (StoreVerb::Append, Some(slot)) => append(cx, slot, item.data),
        (StoreVerb::Prepend, Some(slot)) => prepend(cx, slot, item.data),
        (StoreVerb::Cas(token), slot) => compare_and_store(cx, slot, token, item),
    };
    if answer == Answer::Stored {
        cx.worker().stats.all.mc_stored.add(1);
    }
    answer
}

#[inline]
fn put(cx: &mut KeyCx<'_>, slot: Option<Slot>, item: Item<'_>) -> Answer {
    let deadline = match Expiry::of(item.exptime, cx.now_ms()) {
        Expiry::Never => Deadline::Clear,
        Expiry::At(ms) => Deadline::At(ms),
        Expiry::Over => {
            cx.delete();
            return Answer::Stored;
        }
    };
    cx.store(slot, item.data.to_value(), deadline, item.flags, None);
    Answer::Stored
}

fn compare_and_store(cx: &mut KeyCx<'_>, slot: Option<Slot>, token: u64, item: Item<'_>) -> Answer {
    let held = slot.map(|slot| cx.entry(slot).cas());
    let counters = &cx.worker().stats.all;
    match held {
        None => {
            counters.mc_cas_misses.add(1);
            Answer::NotFound
        }
        Some(held) if held == Some(token) => {
            counters.mc_cas_hits.add(1);
            put(cx, slot, item)
        }
        Some(_) => {
            counters.mc_cas_badval.add(1);
            Answer::Exists
        }
    }
}

/// Whether the item's string may become longer by so many bytes.
fn may_grow(cx: &KeyCx<'_>, slot: Slot, more: usize) -> bool {
    let len = len_of(cx.entry(slot).value());
    (len + more) as u64 <= cx.engine().config.max_value_size()
}

fn append(cx: &mut KeyCx<'_>, slot: Slot, data: Data<'_>) -> Answer {
    if !may_grow(cx, slot, data.len()) {
        cx.worker().stats.all.mc_too_large.add(1);
        return Answer::TooLarge;
    }
    if let ValueRef::Object(_) = cx.entry(slot).value() {
        cx.change_object(slot, |object| extend(object, data));
        return Answer::Stored;
    }
    let before = pieces(cx.entry(slot).value(), &mut itoa::Buffer::new()).concat();
    match data {
        Data::Bytes(bytes) => cx.rewrite(slot, value_of(&[&before[..], bytes].concat())),
        Data::Big(_) => {
            let mut joined = tenon_engine::store::types::Rope::from(&before[..]);
            data.to_rope().slices().for_each(|bytes| joined.append(bytes));
            cx.rewrite(slot, object_of(joined));
        }
    }
    Answer::Stored
}

fn prepend(cx: &mut KeyCx<'_>, slot: Slot, data: Data<'_>) -> Answer {
    if !may_grow(cx, slot, data.len()) {
        cx.worker().stats.all.mc_too_large.add(1);
        return Answer::TooLarge;
    }
    let value = cx.entry(slot).value();
    let mut digits = itoa::Buffer::new();
    match (value, data) {
        (ValueRef::Bytes(_) | ValueRef::Int(_), Data::Bytes(bytes)) => {
            let joined = [bytes, &pieces(value, &mut digits).concat()].concat();
            cx.rewrite(slot, value_of(&joined));
        }
        _ => {
            let mut joined = data.to_rope();
            pieces(value, &mut digits).into_iter().for_each(|bytes| joined.append(bytes));
            cx.rewrite(slot, object_of(joined));
        }
    }
    Answer::Stored
}
