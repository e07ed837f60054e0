//! What a client has asked for in the answer of a meta command, behind its code. Knows no command.

use super::super::answer::Answer;
use itoa::{Buffer, Integer};
use tenon_engine::wire::memcache::{MetaWords, base64};

/// The code of an answer without data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    /// Done.
    Done,
    /// Not stored, as the mode's condition does not hold.
    NotStored,
    /// Somebody has changed the item since its CAS token was given out.
    Exists,
    /// There is no such item.
    NotFound,
    /// A read has found nothing.
    Miss,
}

impl Code {
    /// What the classic verbs say for it.
    pub(super) fn as_answer(self) -> Answer {
        match self {
            Code::Done => Answer::Stored,
            Code::NotStored => Answer::NotStored,
            Code::Exists => Answer::Exists,
            Code::NotFound | Code::Miss => Answer::NotFound,
        }
    }

    /// Writes it.
    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(match self {
            Code::Done => b"HD",
            Code::NotStored => b"NS",
            Code::Exists => b"EX",
            Code::NotFound => b"NF",
            Code::Miss => b"EN",
        });
    }
}

/// Writes `VA` and the length of the data to come.
pub(super) fn write_value_code(out: &mut Vec<u8>, len: usize) {
    out.extend_from_slice(b"VA ");
    out.extend_from_slice(Buffer::new().format(len).as_bytes());
}

/// Writes a letter with a number.
pub(super) fn write_number(out: &mut Vec<u8>, letter: u8, number: impl Integer) {
    out.extend_from_slice(&[b' ', letter]);
    out.extend_from_slice(Buffer::new().format(number).as_bytes());
}

/// Writes what is left of an item's time in seconds, -1 for ever.
pub(super) fn write_seconds_left(out: &mut Vec<u8>, seconds: Option<u64>) {
    match seconds {
        Some(seconds) => write_number(out, b't', seconds),
        None => out.extend_from_slice(b" t-1"),
    }
}

/// Writes the key as it was sent: base64 is told by the letter behind it.
fn write_key(out: &mut Vec<u8>, words: MetaWords<'_>) {
    out.extend_from_slice(b" k");
    if words.is_key_encoded() {
        base64::encode(words.key(), out);
        out.extend_from_slice(b" b");
    } else {
        out.extend_from_slice(words.key());
    }
}

/// Writes what a flag asks for if it is something that the client itself has said: the key, or an opaque text.
pub(super) fn write_own(out: &mut Vec<u8>, words: MetaWords<'_>, flag: &[u8]) {
    match flag[0] {
        b'k' => write_key(out, words),
        b'O' => {
            out.push(b' ');
            out.extend_from_slice(flag);
        }
        _ => {}
    }
}

/// Writes the answer of a command that has found nothing to tell of.
pub(super) fn write_plain(out: &mut Vec<u8>, words: MetaWords<'_>, code: Code) {
    code.write(out);
    words.flags().for_each(|flag| write_own(out, words, flag));
    out.extend_from_slice(b"\r\n");
}
