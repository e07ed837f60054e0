//! set, add, replace, append, prepend, cas: storing items, each under its own condition.

use super::answer::Answer;
use super::counting;
use super::delete::{drop_stale, remove};
use super::expiry::Expiry;
pub use super::value::Data;
use super::verb::TextCommand;
use super::watch;
use tenon_engine::context::{Deadline, KeyCx, Word};
use tenon_engine::notify::EventClass;
use tenon_engine::store::Slot;
use tenon_engine::store::entry::{INLINE_LEN_MAX, Marks};
use tenon_engine::store::types::Rope;
use tenon_engine::string::{self, Text};
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
    let size = item.data.len();
    let slot = cx.find();
    watch::fetched(cx, slot);
    if let Some(slot) = slot
        && cx.string(slot).is_err()
    {
        return Answer::WrongType;
    }
    let (answer, stored) = match (verb, slot) {
        (StoreVerb::Set, _) | (StoreVerb::Add, None) | (StoreVerb::Replace, Some(_)) => put(cx, slot, item),
        (StoreVerb::Add, Some(slot)) => {
            cx.note_attempt(slot);
            (Answer::NotStored, None)
        }
        (StoreVerb::Replace | StoreVerb::Append | StoreVerb::Prepend, None) => (Answer::NotStored, None),
        (StoreVerb::Append, Some(slot)) => (append(cx, slot, item.data), Some(slot)),
        (StoreVerb::Prepend, Some(slot)) => (prepend(cx, slot, item.data), Some(slot)),
        (StoreVerb::Cas(token), slot) => compare_and_store(cx, slot, token, item),
    };
    counting::sent(cx, stored, size);
    if answer == Answer::Stored {
        cx.worker().stats.all.mc_stored.add(1);
    }
    watch::stored(cx, verb.into(), answer, Expiry::of(item.exptime, cx.now_ms()), size);
    answer
}

/// Refuses to store an item that there is no memory for. memcached's clients count on never reading
/// old data after a `set`.
pub fn refuse_for_memory(cx: &mut KeyCx<'_>, verb: StoreVerb, data: Data<'_>) -> Answer {
    let fd = cx.worker().client_fd();
    watch::refused(cx.engine(), fd, Some(verb), cx.key, Answer::OutOfMemoryStoring);
    no_memory(cx, verb == StoreVerb::Set, data);
    Answer::OutOfMemoryStoring
}

/// Counts a storage command that there is no memory for, and removes what it was to replace if it is one that replaces
/// whatever is there.
pub fn no_memory(cx: &mut KeyCx<'_>, replaces: bool, data: Data<'_>) {
    counting::refused_for_memory(cx, data.len());
    if replaces {
        drop_stale(cx);
    }
}

#[inline]
fn put(cx: &mut KeyCx<'_>, slot: Option<Slot>, item: Item<'_>) -> (Answer, Option<Slot>) {
    let expiry = Expiry::of(item.exptime, cx.now_ms());
    let slot = put_with(cx, slot, item.data, expiry, item.flags, None);
    (Answer::Stored, slot)
}

/// Stores an item, whether there is one or not; gives where it is, if it has not expired already.
#[inline]
pub(super) fn put_with(
    cx: &mut KeyCx<'_>,
    slot: Option<Slot>,
    data: Data<'_>,
    expiry: Expiry,
    flags: u32,
    cas: Option<u64>,
) -> Option<Slot> {
    let deadline = match expiry {
        Expiry::Never => Deadline::Clear,
        Expiry::At(ms) => Deadline::At(ms),
        Expiry::Over => {
            remove(cx);
            return None;
        }
    };
    let slot = cx.store_over(slot, data.take().into_value(), deadline, flags, cas);
    cx.notify(EventClass::STRING, "set");
    if matches!(deadline, Deadline::At(_)) {
        cx.notify(EventClass::GENERIC, "expire");
    }
    let _logged = cx.log_string(slot);
    Some(slot)
}

fn compare_and_store(cx: &mut KeyCx<'_>, slot: Option<Slot>, token: u64, item: Item<'_>) -> (Answer, Option<Slot>) {
    let Some(found) = slot else {
        cx.worker().stats.all.mc_cas_misses.add(1);
        return (Answer::NotFound, None);
    };
    let is_equal = cx.entry(found).cas() == Some(token);
    counting::compared(cx, found, is_equal);
    if is_equal { put(cx, slot, item) } else { (Answer::Exists, None) }
}

/// Whether the item's string may become longer by so many bytes.
fn may_grow(cx: &KeyCx<'_>, slot: Slot, more: usize) -> bool {
    let len = string::len(cx.entry(slot).value());
    (len + more) as u64 <= cx.engine().config.max_value_size()
}

/// Adds data behind an item's.
pub(super) fn append(cx: &mut KeyCx<'_>, slot: Slot, data: Data<'_>) -> Answer {
    if !may_grow(cx, slot, data.len()) {
        cx.worker().stats.all.mc_too_large.add(1);
        return Answer::TooLarge;
    }
    cx.note_write(slot);
    let (key, data) = (cx.key, data.take());
    let _logged = cx.log(&["APPEND".into(), key.into(), Word::Text(&data)]);
    cx.append(slot, data);
    // The data is as good as new: nobody need replace it.
    cx.set_marks(slot, Marks::NONE);
    cx.notify(EventClass::STRING, "append");
    Answer::Stored
}

/// Adds data before an item's.
pub(super) fn prepend(cx: &mut KeyCx<'_>, slot: Slot, data: Data<'_>) -> Answer {
    if !may_grow(cx, slot, data.len()) {
        cx.worker().stats.all.mc_too_large.add(1);
        return Answer::TooLarge;
    }
    cx.note_write(slot);
    match data.take() {
        Text::Bytes(bytes) if cx.prepend_short(slot, bytes) => {}
        Text::Bytes(bytes) if bytes.len() + string::len(cx.entry(slot).value()) <= INLINE_LEN_MAX => {
            let mut joined = bytes.to_vec();
            string::for_each_slice(cx.entry(slot).value(), |slice| joined.extend_from_slice(slice));
            cx.rewrite(slot, Text::Bytes(&joined).into_value());
        }
        text => {
            let mut joined = match text {
                Text::Bytes(bytes) => Rope::from(bytes),
                Text::Rope(rope) => rope,
            };
            string::for_each_slice(cx.entry(slot).value(), |slice| joined.append(slice));
            cx.rewrite(slot, Text::Rope(joined).into_value());
        }
    }
    // Redis has no such change: to its clients the string was stored anew.
    let _logged = cx.log_string(slot);
    cx.notify(EventClass::STRING, "set");
    Answer::Stored
}
