//! ma: counts up or down, from where the client says if there is no counter yet.

use super::super::answer::Answer;
use super::super::arith;
use super::super::expiry::Expiry;
use super::super::touch::set_expiry;
use super::super::verb::TextCommand;
use super::super::watch;
use super::asked::{Code, write_number, write_own, write_plain, write_seconds_left, write_value_code};
use tenon_engine::context::KeyCx;
use tenon_engine::store::Slot;
use tenon_engine::string;
use tenon_engine::wire::OutBuf;
use tenon_engine::wire::memcache::{ArithmeticVerb, MetaFlags, MetaWords};

/// Counts.
pub static MA: TextCommand = TextCommand {
    name: "ma",
    family: "meta",
    syntax: "<key> <flags>*",
    summary: "Counts. D: by how much, else by 1; M: mode, I or + up, D or - down; N: makes the counter with this \
              expiry if there is none, J: with this value, else 0; T: sets the expiry; C: only with this CAS token; \
              E: the CAS token it is to have. Answered are c CAS token, k key, O opaque, t seconds left, v value; b: \
              the key is base64; q: no answer to success.",
};

/// Changes a counter and writes the answer. One is made, or its text longer, only when there is memory for it.
///
/// # Errors
/// When the key holds another type, or no number, or there is no memory for the new one.
pub fn count(
    cx: &mut KeyCx<'_>,
    words: MetaWords<'_>,
    flags: &MetaFlags,
    has_room: bool,
    out: &mut OutBuf,
) -> Result<(), Answer> {
    let verb = if matches!(flags.mode, Some(b'D' | b'-')) { ArithmeticVerb::Decr } else { ArithmeticVerb::Incr };
    let mut is_made = false;
    let found = cx.find_for_write();
    watch::fetched(cx, found);
    let slot = match found {
        Some(slot) => {
            let number = arith::number_of(cx, slot);
            // As in memcached 0 stands for none.
            let compare = flags.compare.filter(|&token| token != 0);
            if compare.is_some() && compare != cx.entry(slot).cas() && arith::may_be_number(cx, slot) {
                write_plain(out.tail(), words, Code::Exists);
                return Ok(());
            }
            arith::count_on(cx, slot, verb, number?, flags.delta.unwrap_or(1), has_room).ok_or(Answer::OutOfMemory)?;
            Some(slot)
        }
        None if flags.vivify.is_some() => {
            is_made = true;
            let made = arith::make(cx, flags.initial, Expiry::Never, None, has_room);
            made.map_err(|_| Answer::OutOfMemoryCounting)?
        }
        None => {
            arith::count_miss(cx, verb);
            None
        }
    };
    let Some(slot) = slot else {
        write_plain(out.tail(), words, Code::NotFound);
        return Ok(());
    };
    if let Some(token) = flags.cas {
        cx.set_cas(slot, token);
    }
    let cas = if flags.shows_cas { cx.cas_token(slot) } else { 0 };
    let expiry = words.flags().filter_map(|flag| expiry_by(cx, is_made, flags, flag)).last();
    if !flags.quiet {
        write_counter(cx, slot, is_made, cas, words, flags, out);
    }
    if let Some(expiry) = expiry {
        set_expiry(cx, slot, expiry);
    }
    Ok(())
}

/// The expiry that a flag sets.
fn expiry_by(cx: &KeyCx<'_>, is_made: bool, flags: &MetaFlags, flag: &[u8]) -> Option<Expiry> {
    let exptime = match flag[0] {
        b'T' => flags.exptime,
        b'N' if is_made => flags.vivify,
        _ => None,
    };
    exptime.map(|exptime| Expiry::of(exptime, cx.now_ms()))
}

/// Writes what is asked for, in the order of the flags; times that they set count for those behind them.
fn write_counter(
    cx: &KeyCx<'_>,
    slot: Slot,
    is_made: bool,
    cas: u64,
    words: MetaWords<'_>,
    flags: &MetaFlags,
    out: &mut OutBuf,
) {
    let entry = cx.entry(slot);
    let mut expiry = Expiry::of_deadline(entry.deadline_ms());
    let text = string::to_vec(entry.value());
    let number = text.trim_ascii_end();
    let out = out.tail();
    if flags.value {
        write_value_code(out, number.len());
    } else {
        Code::Done.write(out);
    }
    for flag in words.flags() {
        match flag[0] {
            b'c' => write_number(out, b'c', cas),
            b't' => write_seconds_left(out, expiry.seconds_left(cx.now_ms())),
            _ => write_own(out, words, flag),
        }
        expiry = expiry_by(cx, is_made, flags, flag).unwrap_or(expiry);
    }
    out.extend_from_slice(b"\r\n");
    if flags.value {
        out.extend_from_slice(number);
        out.extend_from_slice(b"\r\n");
    }
}
