//! The binary protocol's requests on one key: what the text protocol's do, with CAS tokens in every answer. Knows no
//! connection's bytes.

use super::answer::Answer;
use super::arith;
use super::counting;
use super::delete::remove;
use super::expiry::Expiry;
use super::store::{self, Data, put_with};
use super::touch::set_expiry;
use super::value::write_value;
use super::watch::{self, Storing};
use tenon_engine::context::KeyCx;
use tenon_engine::store::Slot;
use tenon_engine::string;
use tenon_engine::wire::OutBuf;
use tenon_engine::wire::memcache::ArithmeticVerb;
use tenon_engine::wire::memcache::binary::{AnswerFront, BinaryHead, BinaryStore, Status, write_head, write_status};

/// Why a request is not done: what its answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    status: Status,
    text: &'static str,
}

impl From<Status> for Refused {
    fn from(status: Status) -> Refused {
        Refused { status, text: status.text() }
    }
}

impl Refused {
    /// There is no memory for an item that is to be stored.
    pub const NO_MEMORY_STORING: Refused =
        Refused { status: Status::OutOfMemory, text: "Out of memory allocating item" };
    /// There is no memory for a counter's new value.
    const NO_MEMORY_COUNTING: Refused =
        Refused { status: Status::OutOfMemory, text: "Out of memory incrementing value" };
    /// There is no memory for a new counter.
    const NO_MEMORY_MAKING: Refused =
        Refused { status: Status::OutOfMemory, text: "Out of memory allocating new item" };
    /// Data is being loaded.
    pub const LOADING: Refused = Refused { status: Status::NotNow, text: "loading the dataset in memory" };
    /// What would be written cannot be kept on disk.
    pub const NOT_KEPT: Refused =
        Refused { status: Status::NotNow, text: "writes are refused: the disk cannot be written" };
    /// The key holds another type than a string.
    const WRONG_TYPE: Refused =
        Refused { status: Status::Invalid, text: "The key holds a value of another type than string" };

    /// What the text protocol would say to a write of this kind: of those that ask for no token it has one word.
    fn as_answer(self, how: Storing) -> Answer {
        match self.status {
            Status::NotFound | Status::Exists if matches!(how, Storing::Add | Storing::Replace) => Answer::NotStored,
            Status::NotFound => Answer::NotFound,
            Status::Exists => Answer::Exists,
            Status::TooLarge => Answer::TooLarge,
            _ => Answer::NotStored,
        }
    }

    /// Writes the answer.
    pub fn write(self, head: &BinaryHead, out: &mut OutBuf) {
        write_status(out.tail(), head, self.status, 0, self.text);
    }
}

/// Writes that a request is done, unless that is what can be expected of a quiet one.
pub fn write_done(head: &BinaryHead, cas: u64, out: &mut OutBuf) {
    if !head.quiet {
        write_status(out.tail(), head, Status::Done, cas, "");
    }
}

/// The item's slot, if it is there and a string.
fn find(cx: &mut KeyCx<'_>, is_read: bool) -> Result<Option<Slot>, Refused> {
    let slot = if is_read { cx.find_for_read() } else { cx.find() };
    watch::fetched(cx, slot);
    match slot {
        Some(slot) if cx.string(slot).is_err() => Err(Refused::WRONG_TYPE),
        slot => Ok(slot),
    }
}

/// Writes the item, or that there is none: of a quiet request nothing then.
///
/// # Errors
/// When the key holds another type.
pub fn get(
    cx: &mut KeyCx<'_>,
    head: &BinaryHead,
    with_key: bool,
    exptime: Option<u32>,
    out: &mut OutBuf,
) -> Result<(), Refused> {
    let slot = find(cx, true)?;
    counting::read(cx, slot, exptime.is_some());
    let key = if with_key { cx.key } else { b"" };
    let Some(slot) = slot else {
        if head.quiet {
            return Ok(());
        }
        if !with_key {
            return Err(Status::NotFound.into());
        }
        write_head(out.tail(), head, Status::NotFound, 0, AnswerFront { extras: b"", key }, 0);
        return Ok(());
    };
    let cas = cx.cas_token(slot);
    let entry = cx.entry(slot);
    let front = AnswerFront { extras: &entry.flags().to_be_bytes(), key };
    write_head(out.tail(), head, Status::Done, cas, front, string::len(entry.value()));
    write_value(out, entry.value());
    if let Some(exptime) = exptime {
        set_expiry(cx, slot, Expiry::of(exptime.into(), cx.now_ms()));
    }
    Ok(())
}

/// Sets when the item expires.
///
/// # Errors
/// When there is none, or the key holds another type.
pub fn touch(cx: &mut KeyCx<'_>, head: &BinaryHead, exptime: u32, out: &mut OutBuf) -> Result<(), Refused> {
    let slot = find(cx, false)?;
    cx.worker().stats.all.mc_touch.add(1);
    let Some(slot) = slot else { return Err(Status::NotFound.into()) };
    counting::item(cx, slot, |all| &all.mc_touch_hits, |class| &class.touch_hits);
    cx.note_read(slot);
    let cas = cx.cas_token(slot);
    let front = AnswerFront { extras: &cx.entry(slot).flags().to_be_bytes(), key: b"" };
    write_head(out.tail(), head, Status::Done, cas, front, 0);
    set_expiry(cx, slot, Expiry::of(exptime.into(), cx.now_ms()));
    Ok(())
}

/// What is to be stored.
#[derive(Clone, Copy, Debug)]
pub struct BinaryItem<'a> {
    /// The client's own.
    pub flags: u32,
    /// As the client gave it.
    pub exptime: u32,
    /// The data.
    pub data: Data<'a>,
}

/// Stores an item if the request's condition holds.
///
/// # Errors
/// When it does not, or the key holds another type.
pub fn store(
    cx: &mut KeyCx<'_>,
    head: &BinaryHead,
    verb: BinaryStore,
    item: BinaryItem<'_>,
    out: &mut OutBuf,
) -> Result<(), Refused> {
    let (size, expiry) = (item.data.len(), Expiry::of(item.exptime.into(), cx.now_ms()));
    let stored = put_or_add(cx, head, verb, item);
    let how = storing(head, verb);
    let answer = stored.map_or_else(|refused| refused.as_answer(how), |_| Answer::Stored);
    counting::sent(cx, stored.ok().and_then(|stored| stored.slot), size);
    watch::stored(cx, how, answer, expiry, size);
    cx.worker().stats.all.mc_stored.add(u64::from(stored.is_ok()));
    write_done(head, stored?.cas, out);
    Ok(())
}

/// Which write of the text protocol it is: with a token all of them are what cas is there.
fn storing(head: &BinaryHead, verb: BinaryStore) -> Storing {
    match verb {
        BinaryStore::Append => Storing::Append,
        BinaryStore::Prepend => Storing::Prepend,
        _ if head.cas != 0 => Storing::Cas,
        BinaryStore::Set => Storing::Set,
        BinaryStore::Add => Storing::Add,
        BinaryStore::Replace => Storing::Replace,
    }
}

/// An item that was stored.
#[derive(Clone, Copy)]
struct Stored {
    cas: u64,
    /// Where it is, if it has not expired already.
    slot: Option<Slot>,
}

/// Stores an item if the request's condition holds.
fn put_or_add(
    cx: &mut KeyCx<'_>,
    head: &BinaryHead,
    verb: BinaryStore,
    item: BinaryItem<'_>,
) -> Result<Stored, Refused> {
    cx.worker().stats.all.mc_set.add(1);
    let slot = find(cx, false)?;
    let held = slot.and_then(|slot| cx.entry(slot).cas());
    let has_token = head.cas == 0 || held == Some(head.cas);
    let stored = match (verb, slot) {
        (BinaryStore::Append | BinaryStore::Prepend, None) => return Err(Status::NotStored.into()),
        (BinaryStore::Append | BinaryStore::Prepend, Some(_)) if !has_token => return Err(Status::Exists.into()),
        (BinaryStore::Append | BinaryStore::Prepend, Some(slot)) => add(cx, slot, verb, item.data)?,
        // With a token all of them are what cas is in the text protocol.
        _ if head.cas != 0 => {
            match slot {
                None => {
                    cx.worker().stats.all.mc_cas_misses.add(1);
                    return Err(Status::NotFound.into());
                }
                Some(slot) if !has_token => {
                    counting::compared(cx, slot, false);
                    return Err(Status::Exists.into());
                }
                Some(slot) => counting::compared(cx, slot, true),
            }
            put(cx, slot, item)
        }
        (BinaryStore::Add, Some(slot)) => {
            cx.note_attempt(slot);
            return Err(Status::Exists.into());
        }
        (BinaryStore::Replace, None) => return Err(Status::NotFound.into()),
        (BinaryStore::Set | BinaryStore::Add | BinaryStore::Replace, slot) => put(cx, slot, item),
    };
    Ok(stored)
}

/// Stores an item with a CAS token, which every answer tells.
fn put(cx: &mut KeyCx<'_>, slot: Option<Slot>, item: BinaryItem<'_>) -> Stored {
    let cas = cx.engine().next_cas();
    let expiry = Expiry::of(item.exptime.into(), cx.now_ms());
    let slot = put_with(cx, slot, item.data, expiry, item.flags, Some(cas));
    Stored { cas, slot }
}

fn add(cx: &mut KeyCx<'_>, slot: Slot, verb: BinaryStore, data: Data<'_>) -> Result<Stored, Refused> {
    let answer =
        if verb == BinaryStore::Append { store::append(cx, slot, data) } else { store::prepend(cx, slot, data) };
    if answer == Answer::TooLarge {
        return Err(Status::TooLarge.into());
    }
    Ok(Stored { cas: cx.cas_token(slot), slot: Some(slot) })
}

/// Counts, and makes the counter when there is none and the client says where it begins.
///
/// # Errors
/// When there is no counter, when it is no number, when it has changed, when the key holds another type, or when there is
/// no memory for a new counter or a longer text.
pub fn arithmetic(
    cx: &mut KeyCx<'_>,
    head: &BinaryHead,
    verb: ArithmeticVerb,
    delta: u64,
    initial: Option<(u64, u32)>,
    has_room: bool,
    out: &mut OutBuf,
) -> Result<(), Refused> {
    let (number, cas) = match (find(cx, false)?, initial) {
        (Some(slot), _) => {
            let number = arith::number_of(cx, slot).map_err(|_| Status::NonNumeric);
            if head.cas != 0 && cx.entry(slot).cas() != Some(head.cas) && arith::may_be_number(cx, slot) {
                return Err(Status::Exists.into());
            }
            let number = arith::count_on(cx, slot, verb, number?, delta, has_room);
            (number.ok_or(Refused::NO_MEMORY_COUNTING)?, cx.cas_token(slot))
        }
        (None, Some((number, exptime))) => {
            let (cas, expiry) = (cx.engine().next_cas(), Expiry::of(exptime.into(), cx.now_ms()));
            arith::make(cx, number, expiry, Some(cas), has_room).map_err(|_| Refused::NO_MEMORY_MAKING)?;
            (number, cas)
        }
        (None, None) => {
            arith::count_miss(cx, verb);
            return Err(Status::NotFound.into());
        }
    };
    if !head.quiet {
        write_head(out.tail(), head, Status::Done, cas, AnswerFront::default(), size_of_val(&number));
        out.tail().extend_from_slice(&number.to_be_bytes());
    }
    Ok(())
}

/// Removes the item.
///
/// # Errors
/// When there is none, when it has changed, or when the key holds another type.
pub fn delete(cx: &mut KeyCx<'_>, head: &BinaryHead, out: &mut OutBuf) -> Result<(), Refused> {
    let Some(slot) = find(cx, false)? else {
        cx.worker().stats.all.mc_delete_misses.add(1);
        return Err(Status::NotFound.into());
    };
    if head.cas != 0 && cx.entry(slot).cas() != Some(head.cas) {
        return Err(Status::Exists.into());
    }
    watch::deleted(cx, slot, "delete");
    counting::item(cx, slot, |all| &all.mc_delete_hits, |class| &class.delete_hits);
    remove(cx);
    write_done(head, 0, out);
    Ok(())
}
