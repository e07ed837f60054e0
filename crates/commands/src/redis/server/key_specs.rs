//! What COMMAND says of a command's keys: where they stand and what is done to them. Knows no command.

use tenon_engine::command::{Begin, Command, Find, KeyFlags};
use tenon_engine::wire::resp::Reply;

/// Writes the rows of keys as COMMAND INFO shows them.
pub fn reply_key_specs(command: &Command, reply: &mut Reply<'_>) {
    let specs = command.key_specs();
    reply.set(specs.len());
    for spec in specs {
        reply.map(3 + usize::from(!spec.notes.is_empty()));
        if !spec.notes.is_empty() {
            reply.bulk(b"notes");
            reply.bulk(spec.notes.as_bytes());
        }
        reply.bulk(b"flags");
        reply_flags(spec.flags, reply);
        reply.bulk(b"begin_search");
        match spec.begin {
            Begin::Index(index) => reply_search("index", &[("index", Fact::Number(index as i64))], reply),
            Begin::Keyword { word, from } => {
                let facts = [("keyword", Fact::Word(word)), ("startfrom", Fact::Number(from as i64))];
                reply_search("keyword", &facts, reply);
            }
            Begin::Unknown => reply_search("unknown", &[], reply),
        }
        reply.bulk(b"find_keys");
        let three = |names: [&'static str; 3], numbers: [i64; 3]| {
            [0, 1, 2].map(|index| (names[index], Fact::Number(numbers[index])))
        };
        match spec.find {
            Find::Range { last, step, limit } => {
                let numbers = [last as i64, step as i64, limit as i64];
                reply_search("range", &three(["lastkey", "keystep", "limit"], numbers), reply);
            }
            Find::Count { count, first, step } => {
                let numbers = [count as i64, first as i64, step as i64];
                reply_search("keynum", &three(["keynumidx", "firstkey", "keystep"], numbers), reply);
            }
            Find::Unknown => reply_search("unknown", &[], reply),
        }
    }
}

/// A detail of where keys stand.
enum Fact {
    Number(i64),
    Word(&'static str),
}

fn reply_search(kind: &str, facts: &[(&str, Fact)], reply: &mut Reply<'_>) {
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    reply.bulk(b"spec");
    reply.map(facts.len());
    for (name, fact) in facts {
        reply.bulk(name.as_bytes());
        match fact {
            Fact::Number(number) => reply.int(*number),
            Fact::Word(word) => reply.bulk(word.as_bytes()),
        }
    }
}

/// Writes what is done to a key.
pub fn reply_flags(flags: KeyFlags, reply: &mut Reply<'_>) {
    let names = flags.names();
    reply.set(names.len());
    names.for_each(|name| reply.simple(name));
}
