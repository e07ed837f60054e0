//! touch: sets when an item expires.

use super::answer::Answer;
use super::counting;
use super::delete::remove;
use super::expiry::Expiry;
use super::verb::TextCommand;
use super::watch;
use tenon_engine::context::KeyCx;
use tenon_engine::notify::EventClass;
use tenon_engine::store::Slot;

/// Sets when an item expires.
pub static TOUCH: TextCommand = TextCommand {
    name: "touch",
    family: "touch",
    syntax: "<key> <exptime> [noreply]",
    summary: "Sets when an item expires; its CAS token stays valid.",
};

/// Sets when the item expires, as the client gave it.
pub fn touch(cx: &mut KeyCx<'_>, exptime: i64) -> Answer {
    let slot = cx.find();
    watch::fetched(cx, slot);
    cx.worker().stats.all.mc_touch.add(1);
    let Some(slot) = slot else { return Answer::NotFound };
    if cx.string(slot).is_err() {
        return Answer::WrongType;
    }
    counting::item(cx, slot, |all| &all.mc_touch_hits, |class| &class.touch_hits);
    cx.note_read(slot);
    set_expiry(cx, slot, Expiry::of(exptime, cx.now_ms()));
    Answer::Touched
}

/// Sets when the item in a slot expires.
pub(super) fn set_expiry(cx: &mut KeyCx<'_>, slot: Slot, expiry: Expiry) {
    match expiry {
        Expiry::Never => {
            let was_to_expire = cx.entry(slot).deadline_ms().is_some();
            cx.set_deadline(slot, None);
            if was_to_expire {
                let _logged = cx.log_deadline(slot);
                cx.notify(EventClass::GENERIC, "persist");
            }
        }
        Expiry::At(ms) => {
            cx.set_deadline(slot, Some(ms));
            let _logged = cx.log_deadline(slot);
            cx.notify(EventClass::GENERIC, "expire");
        }
        Expiry::Over => remove(cx),
    }
}
