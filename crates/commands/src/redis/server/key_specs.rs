//! What COMMAND says of a command's keys: where they stand and what is done to them, in Redis's terms
//! (<https://redis.io/docs/latest/develop/reference/key-specs/>).

use tenon_engine::args::Args;
use tenon_engine::command::{Command, Keys};
use tenon_engine::wire::resp::Reply;

/// What is done to one key, or to all keys of a row.
type KeyFlags = &'static [&'static str];

const READ: KeyFlags = &["RO", "access"];
const LOOK: KeyFlags = &["RO"];
const INSERT: KeyFlags = &["RW", "insert"];
const UPDATE: KeyFlags = &["RW", "update"];
const READ_AND_UPDATE: KeyFlags = &["RW", "access", "update"];
const READ_AND_DELETE: KeyFlags = &["RW", "access", "delete"];
const OVERWRITE: KeyFlags = &["OW", "update"];
const CREATE: KeyFlags = &["OW", "insert"];
const REMOVE: KeyFlags = &["RM", "delete"];

/// The commands that do more than read the values of their keys, and those that read less. Two rows are two keys with
/// a place each.
static FLAGS: &[(&str, &[KeyFlags])] = &[
    ("APPEND", &[INSERT]),
    ("BITFIELD", &[&["RW", "access", "update", "variable_flags"]]),
    ("BITOP", &[OVERWRITE, READ]),
    ("COPY", &[READ, OVERWRITE]),
    ("DECR", &[READ_AND_UPDATE]),
    ("DECRBY", &[READ_AND_UPDATE]),
    ("DEL", &[REMOVE]),
    ("DELEX", &[REMOVE]),
    ("EXISTS", &[LOOK]),
    ("EXPIRE", &[UPDATE]),
    ("EXPIREAT", &[UPDATE]),
    ("GETDEL", &[READ_AND_DELETE]),
    ("GETEX", &[READ_AND_UPDATE]),
    ("GETSET", &[READ_AND_UPDATE]),
    ("INCR", &[READ_AND_UPDATE]),
    ("INCRBY", &[READ_AND_UPDATE]),
    ("INCRBYFLOAT", &[READ_AND_UPDATE]),
    ("INCREX", &[READ_AND_UPDATE]),
    ("MEMORY USAGE", &[LOOK]),
    ("MOVE", &[READ_AND_UPDATE]),
    ("MSET", &[OVERWRITE]),
    ("MSETEX", &[OVERWRITE]),
    ("MSETNX", &[CREATE]),
    ("OBJECT ENCODING", &[LOOK]),
    ("OBJECT FREQ", &[LOOK]),
    ("OBJECT IDLETIME", &[LOOK]),
    ("OBJECT REFCOUNT", &[LOOK]),
    ("PERSIST", &[UPDATE]),
    ("PEXPIRE", &[UPDATE]),
    ("PEXPIREAT", &[UPDATE]),
    ("PFADD", &[INSERT]),
    ("PFCOUNT", &[&["RW", "access"]]),
    ("PFDEBUG", &[&["RW", "access"]]),
    ("PFMERGE", &[&["RW", "access", "insert"], READ]),
    ("PSETEX", &[OVERWRITE]),
    ("RENAME", &[READ_AND_DELETE, OVERWRITE]),
    ("RENAMENX", &[READ_AND_DELETE, CREATE]),
    ("SET", &[&["RW", "access", "update", "variable_flags"]]),
    ("SETBIT", &[READ_AND_UPDATE]),
    ("SETEX", &[OVERWRITE]),
    ("SETNX", &[CREATE]),
    ("SETRANGE", &[UPDATE]),
    ("STRLEN", &[LOOK]),
    ("TOUCH", &[LOOK]),
    ("TYPE", &[LOOK]),
    ("UNLINK", &[REMOVE]),
    ("WATCH", &[LOOK]),
];

fn flags_of(command: &Command) -> &'static [KeyFlags] {
    let known = FLAGS.iter().find(|(name, _)| *name == command.name);
    known.map_or(&[READ], |(_, flags)| flags)
}

/// A row of keys, as COMMAND INFO and COMMAND DOCS count them.
pub struct KeySpec {
    flags: KeyFlags,
    keys: Keys,
}

/// The rows of keys of a command.
pub fn key_specs(command: &Command) -> Vec<KeySpec> {
    let flags = flags_of(command);
    match (command.keys, flags) {
        (Keys::None, _) => Vec::new(),
        (Keys::Range { first, last, step }, [flags_of_first, flags_of_rest]) => {
            let one = Keys::Range { first, last: first as isize, step };
            let rest = Keys::Range { first: first + step, last, step };
            vec![KeySpec { flags: flags_of_first, keys: one }, KeySpec { flags: flags_of_rest, keys: rest }]
        }
        (keys, flags) => vec![KeySpec { flags: flags[0], keys }],
    }
}

/// Writes the rows of keys as COMMAND INFO shows them.
pub fn reply_key_specs(command: &Command, reply: &mut Reply<'_>) {
    let specs = key_specs(command);
    reply.set(specs.len());
    for spec in specs {
        let notes = notes_of(command);
        reply.map(3 + usize::from(notes.is_some()));
        if let Some(notes) = notes {
            reply.bulk(b"notes");
            reply.bulk(notes.as_bytes());
        }
        reply.bulk(b"flags");
        reply_flags(spec.flags, reply);
        let (begin, kind, find) = match spec.keys {
            Keys::Range { first, last, step } => {
                // Counted from the first key, or from the end of the arguments when negative.
                let last = if last < 0 { last as i64 } else { last as i64 - first as i64 };
                (first, "range", [("lastkey", last), ("keystep", step as i64), ("limit", 0)])
            }
            Keys::Counted { count, step } => {
                (count, "keynum", [("keynumidx", 0), ("firstkey", 1), ("keystep", step as i64)])
            }
            Keys::None => unreachable!("a row has keys"),
        };
        reply.bulk(b"begin_search");
        reply_search("index", &[("index", begin as i64)], reply);
        reply.bulk(b"find_keys");
        reply_search(kind, &find, reply);
    }
}

/// Redis explains the flags of some commands.
fn notes_of(command: &Command) -> Option<&'static str> {
    Some(match command.name {
        "BITFIELD" => "This command allows both access and modification of the key",
        "PFCOUNT" => "RW because it may change the internal representation of the key, and propagate to replicas",
        "SET" => "RW and ACCESS due to the optional `GET` argument",
        _ => return None,
    })
}

fn reply_search(kind: &str, spec: &[(&str, i64)], reply: &mut Reply<'_>) {
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    reply.bulk(b"spec");
    reply.map(spec.len());
    for (name, value) in spec {
        reply.bulk(name.as_bytes());
        reply.int(*value);
    }
}

/// Writes what is done to key number `nth` of a command with these arguments.
pub fn reply_flags_of_key(command: &Command, args: &Args<'_>, nth: usize, reply: &mut Reply<'_>) {
    let flags = flags_of(command);
    let flags = flags[nth.min(flags.len() - 1)];
    // What SET does to the key depends on whether it is to give the old value back.
    let overwrites = command.name == "SET" && !(3..args.len()).any(|at| args.is(at, "GET"));
    reply_flags(if overwrites { OVERWRITE } else { flags }, reply);
}

fn reply_flags(flags: KeyFlags, reply: &mut Reply<'_>) {
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.simple(flag));
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_engine::command::Flags;

    #[test]
    fn every_command_that_writes_says_what_it_does_to_its_keys() {
        let all = crate::ALL
            .iter()
            .flat_map(|command| std::iter::once(*command).chain(command.subcommands().iter().copied()));
        let unknown = all.filter(|command| {
            let reads = command.keys == Keys::None || command.flags.any(Flags::READONLY);
            !reads && FLAGS.iter().all(|(name, _)| *name != command.name)
        });
        assert_eq!(unknown.map(|command| command.name).collect::<Vec<_>>(), [""; 0], "add these to the table");
    }
}
