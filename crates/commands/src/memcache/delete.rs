//! delete: removes an item.

use super::answer::Answer;
use super::counting;
use super::verb::TextCommand;
use super::watch;
use tenon_engine::context::KeyCx;
use tenon_engine::notify::EventClass;

/// Removes an item.
pub static DELETE: TextCommand =
    TextCommand { name: "delete", family: "delete", syntax: "<key> [0] [noreply]", summary: "Removes an item." };

/// Removes the item.
pub fn delete(cx: &mut KeyCx<'_>) -> Answer {
    let slot = cx.find();
    watch::fetched(cx, slot);
    let Some(slot) = slot else {
        cx.worker().stats.all.mc_delete_misses.add(1);
        return Answer::NotFound;
    };
    if cx.string(slot).is_err() {
        return Answer::WrongType;
    }
    watch::deleted(cx, slot, "delete");
    counting::item(cx, slot, |all| &all.mc_delete_hits, |class| &class.delete_hits);
    remove(cx);
    Answer::Deleted
}

/// Removes the item that a `set` was to replace and could not: memcached's clients count on never reading the old data
/// after that.
pub fn drop_stale(cx: &mut KeyCx<'_>) {
    let slot = cx.find();
    watch::fetched(cx, slot);
    if let Some(slot) = slot
        && cx.string(slot).is_ok()
    {
        remove(cx);
    }
}

/// Removes the item if it is there, and says so.
pub(super) fn remove(cx: &mut KeyCx<'_>) {
    if cx.delete() {
        let _logged = cx.log_deleted();
        cx.notify(EventClass::GENERIC, "del");
    }
}
