//! stats detail: requests by prefixes of their keys. Counts none itself.

use super::super::answer::Answer;
use std::fmt::Write;
use tenon_engine::Engine;

/// Does what the word behind `stats detail` says, and writes what comes of it.
pub(super) fn detail(engine: &Engine, word: Option<&[u8]>, out: &mut Vec<u8>) {
    match word {
        Some(b"on") => engine.prefixes.set_on(true),
        Some(b"off") => engine.prefixes.set_on(false),
        Some(b"dump") => {
            dump(engine, out);
            return out.extend_from_slice(b"END\r\n");
        }
        _ => return Answer::DetailUsage.write(out),
    }
    Answer::Ok.write(out);
}

/// Writes the counts of all prefixes.
pub(super) fn dump(engine: &Engine, out: &mut Vec<u8>) {
    let mut counted = String::new();
    engine.prefixes.each(|prefix, counts| {
        counted.clear();
        write!(counted, " get {} hit {} set {} del {}\r\n", counts.gets, counts.hits, counts.sets, counts.deletes)
            .expect("a String takes everything");
        out.extend_from_slice(b"PREFIX ");
        out.extend_from_slice(prefix);
        out.extend_from_slice(counted.as_bytes());
    });
}
