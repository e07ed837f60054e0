//! get, gets, gat, gats: reading items, and setting their expiry on the way.

use super::answer::Answer;
use super::counting;
use super::expiry::Expiry;
use super::touch::set_expiry;
use super::value::write_data;
use super::verb::TextCommand;
use super::watch;
use tenon_engine::context::KeyCx;
use tenon_engine::store::entry::ValueRef;
use tenon_engine::string;
use tenon_engine::wire::OutBuf;
use tenon_engine::wire::memcache::GetVerb;

/// Reads items.
pub static GET: TextCommand = TextCommand {
    name: "get",
    family: "get",
    syntax: "<key>*",
    summary: "Returns the items that are there, each with its flags.",
};

/// Reads items with their CAS tokens.
pub static GETS: TextCommand = TextCommand {
    name: "gets",
    family: "get",
    syntax: "<key>*",
    summary: "Returns the items that are there, each with its flags and its CAS token.",
};

/// Reads items and sets when they expire.
pub static GAT: TextCommand = TextCommand {
    name: "gat",
    family: "get",
    syntax: "<exptime> <key>*",
    summary: "Returns the items that are there, and sets when they expire.",
};

/// Reads items with their CAS tokens and sets when they expire.
pub static GATS: TextCommand = TextCommand {
    name: "gats",
    family: "get",
    syntax: "<exptime> <key>*",
    summary: "Returns the items that are there with their CAS tokens, and sets when they expire.",
};

/// What a read is to do with each of its keys.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Whether CAS tokens are shown.
    shows_cas: bool,
    /// The expiry to set, as the client gave it.
    exptime: Option<i64>,
}

impl Reading {
    /// What this verb does.
    #[inline]
    pub fn of(verb: GetVerb, exptime: Option<i64>) -> Reading {
        Reading { shows_cas: matches!(verb, GetVerb::Gets | GetVerb::Gats), exptime }
    }
}

/// Writes the item of one key, or nothing when it is not there; tells whether it is.
///
/// # Errors
/// When the key holds another type; then the whole request ends with that answer.
#[inline]
pub fn get(cx: &mut KeyCx<'_>, reading: Reading, out: &mut OutBuf) -> Result<bool, Answer> {
    let slot = cx.find_for_read();
    watch::fetched(cx, slot);
    counting::read(cx, slot, reading.exptime.is_some());
    let Some(slot) = slot else { return Ok(false) };
    let cas = if reading.shows_cas { Some(cx.cas_token(slot)) } else { None };
    let value = cx.string(slot).map_err(|_| Answer::WrongType)?;
    write_item(out, cx.key, cx.entry(slot).flags(), cas, value);
    if let Some(exptime) = reading.exptime {
        set_expiry(cx, slot, Expiry::of(exptime, cx.now_ms()));
    }
    Ok(true)
}

/// `VALUE <key> <flags> <bytes> [<cas>]`, and the data; a long string goes out by reference.
#[inline]
fn write_item(out: &mut OutBuf, key: &[u8], flags: u32, cas: Option<u64>, value: ValueRef<'_>) {
    let mut digits = itoa::Buffer::new();
    match value {
        ValueRef::Bytes(bytes) => write_short(out, key, flags, cas, bytes),
        ValueRef::Int(int) => write_short(out, key, flags, cas, digits.format(int).as_bytes()),
        ValueRef::Object(_) => {
            write_head(out.tail(), key, flags, cas, string::len(value));
            write_data(out, value);
        }
        ValueRef::Packed(..) => string::no_string(),
    }
}

#[inline]
fn write_short(out: &mut OutBuf, key: &[u8], flags: u32, cas: Option<u64>, data: &[u8]) {
    // The words of the head and three numbers take less than a hundred bytes: one reservation does.
    let len = key.len() + data.len() + 100;
    let out = out.tail_for(len);
    out.reserve(len);
    write_head(out, key, flags, cas, data.len());
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

#[inline]
fn write_head(out: &mut Vec<u8>, key: &[u8], flags: u32, cas: Option<u64>, len: usize) {
    let mut digits = itoa::Buffer::new();
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    if flags == 0 {
        out.extend_from_slice(b" 0 ");
    } else {
        out.push(b' ');
        out.extend_from_slice(digits.format(flags).as_bytes());
        out.push(b' ');
    }
    out.extend_from_slice(digits.format(len).as_bytes());
    if let Some(cas) = cas {
        out.push(b' ');
        out.extend_from_slice(digits.format(cas).as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}
