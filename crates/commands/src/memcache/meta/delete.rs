//! md: removes an item, its value alone, or marks it as stale.

use super::super::answer::Answer;
use super::super::counting;
use super::super::delete::remove;
use super::super::expiry::Expiry;
use super::super::store::{Data, put_with};
use super::super::touch::set_expiry;
use super::super::verb::TextCommand;
use super::super::watch::{self, Storing};
use super::asked::{Code, write_plain};
use tenon_engine::context::KeyCx;
use tenon_engine::store::Slot;
use tenon_engine::store::entry::Marks;
use tenon_engine::wire::OutBuf;
use tenon_engine::wire::memcache::{MetaFlags, MetaWords};

/// Removes an item.
pub static MD: TextCommand = TextCommand {
    name: "md",
    family: "meta",
    syntax: "<key> <flags>*",
    summary: "Removes an item. C: only with this CAS token; I: marks it as stale instead, T: with this expiry, E: and \
              this CAS token; x: removes its value only, with T as expiry and F as client flags. Answered are k key, \
              O opaque; b: the key is base64; q: no answer to success.",
};

/// Removes the item, or marks it, and writes the answer.
///
/// # Errors
/// When the key holds another type.
pub fn delete(cx: &mut KeyCx<'_>, words: MetaWords<'_>, flags: &MetaFlags, out: &mut OutBuf) -> Result<(), Answer> {
    let slot = cx.find();
    watch::fetched(cx, slot);
    if slot.is_some_and(|slot| cx.string(slot).is_err()) {
        return Err(Answer::WrongType);
    }
    let code = match slot {
        None => Code::NotFound,
        Some(slot) if flags.compare.is_some() && flags.compare != cx.entry(slot).cas() => Code::Exists,
        Some(slot) => {
            if !flags.stale {
                counting::item(cx, slot, |all| &all.mc_delete_hits, |class| &class.delete_hits);
            }
            take_away(cx, slot, flags);
            Code::Done
        }
    };
    if code != Code::Done {
        cx.worker().stats.all.mc_delete_misses.add(1);
    }
    if code != Code::Done || !flags.quiet {
        write_plain(out.tail(), words, code);
    }
    Ok(())
}

fn take_away(cx: &mut KeyCx<'_>, slot: Slot, flags: &MetaFlags) {
    let mut slot = slot;
    if flags.remove_value {
        // The empty item is still the one whose token a client has seen, unless it says otherwise.
        let cas = flags.cas.or(cx.entry(slot).cas());
        let expiry = Expiry::of(flags.exptime.unwrap_or(0), cx.now_ms());
        // memcached looks for it once more to store it.
        watch::fetched(cx, Some(slot));
        let emptied = put_with(cx, Some(slot), Data::Bytes(b""), expiry, flags.client_flags, cas);
        watch::stored(cx, Storing::Set, Answer::Stored, expiry, 0);
        match emptied {
            Some(emptied) => slot = emptied,
            None => return,
        }
    }
    if flags.stale {
        let token = flags.cas.unwrap_or_else(|| cx.engine().next_cas());
        cx.set_cas(slot, token);
        // The next client that reads it may win.
        cx.set_marks(slot, cx.entry(slot).marks().or(Marks::STALE).without(Marks::WON));
        if let Some(exptime) = flags.exptime {
            set_expiry(cx, slot, Expiry::of(exptime, cx.now_ms()));
        }
    } else {
        watch::deleted(cx, slot, "md");
        if !flags.remove_value {
            remove(cx);
        }
    }
}
