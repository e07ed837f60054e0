//! me: what is known of an item beside its value, for people. mn: an answer, to know that all before it is answered.

use super::super::expiry::Expiry;
use super::super::verb::TextCommand;
use std::io::Write;
use tenon_engine::context::KeyCx;
use tenon_engine::store::entry::Marks;
use tenon_engine::wire::OutBuf;
use tenon_engine::wire::memcache::{MetaWords, base64};

/// Shows what is known of an item.
pub static ME: TextCommand = TextCommand {
    name: "me",
    family: "meta",
    syntax: "<key> [b]",
    summary: "Shows what is known of an item beside its value: seconds left, seconds since the last access, CAS token, \
              whether it was read, size class and bytes of memory. b: the key is base64.",
};

/// Is answered.
pub static MN: TextCommand = TextCommand {
    name: "mn",
    family: "meta",
    syntax: "",
    summary: "Answers MN: all that was asked before is answered then.",
};

/// Writes what is known of the item. It is no access.
pub fn debug(cx: &mut KeyCx<'_>, words: MetaWords<'_>, out: &mut OutBuf) {
    let out = out.tail();
    let Some(slot) = cx.find() else {
        out.extend_from_slice(b"EN\r\n");
        return;
    };
    let cas = cx.cas_token(slot);
    let clock = cx.worker().clock.access;
    let entry = cx.entry(slot);
    out.extend_from_slice(b"ME ");
    if words.is_key_encoded() {
        base64::encode(words.key(), out);
    } else {
        out.extend_from_slice(words.key());
    }
    let seconds_left = Expiry::of_deadline(entry.deadline_ms()).seconds_left(cx.now_ms());
    let fetched = if entry.marks().has(Marks::FETCHED) { "yes" } else { "no" };
    write!(
        out,
        " exp={} la={} cas={cas} fetch={fetched} cls={} size={}\r\n",
        seconds_left.map_or(-1, |seconds| i64::try_from(seconds).unwrap_or(i64::MAX)),
        clock.seconds_since(entry.access()),
        entry.size_class(),
        entry.memory(),
    )
    .expect("a Vec takes everything");
}
