//! What COMMAND DOCS says of one command. The history of its options is left out.

use super::command_standing::{deprecated, is_internal};
use super::command_syntax::{Argument, Kind, arguments};
use tenon_engine::command::Command;
use tenon_engine::wire::resp::Reply;

/// Writes the map of a command's documentation.
pub fn reply_docs(command: &Command, reply: &mut Reply<'_>) {
    let map = reply.map_deferred();
    let mut pairs = 0;
    let mut text = |reply: &mut Reply<'_>, name: &str, text: &str| {
        pairs += 1;
        reply.bulk(name.as_bytes());
        reply.bulk(text.as_bytes());
    };
    text(reply, "summary", command.summary);
    text(reply, "since", command.since);
    text(reply, "group", command.group.name());
    text(reply, "complexity", command.complexity);
    if is_internal(command) {
        pairs += 1;
        reply_doc_flag("syscmd", reply);
    }
    if let Some(deprecated) = deprecated(command) {
        pairs += 3;
        reply_doc_flag("deprecated", reply);
        reply.bulk(b"deprecated_since");
        reply.bulk(deprecated.since.as_bytes());
        reply.bulk(b"replaced_by");
        reply.bulk(deprecated.replaced_by.as_bytes());
    }
    let arguments = arguments(command.name, command.syntax);
    if !arguments.is_empty() {
        pairs += 1;
        reply.bulk(b"arguments");
        let mut keys = KeyRows { rows: command.key_specs().len(), next: 0 };
        reply_arguments(&arguments, &mut keys, reply);
    }
    let subcommands = command.subcommands();
    if !subcommands.is_empty() {
        pairs += 1;
        reply.bulk(b"subcommands");
        reply.map(subcommands.len());
        for subcommand in subcommands {
            reply.bulk(subcommand.full_name().as_bytes());
            reply_docs(subcommand, reply);
        }
    }
    reply.finish(map, pairs);
}

fn reply_doc_flag(flag: &str, reply: &mut Reply<'_>) {
    reply.bulk(b"doc_flags");
    reply.set(1);
    reply.simple(flag);
}

/// The rows of keys that COMMAND INFO gives, which the syntax names in the same order.
struct KeyRows {
    rows: usize,
    next: usize,
}

impl KeyRows {
    /// The row of the next argument that is a key.
    fn take(&mut self) -> Option<usize> {
        let row = self.next.min(self.rows.checked_sub(1)?);
        self.next += 1;
        Some(row)
    }
}

fn reply_arguments(arguments: &[Argument], keys: &mut KeyRows, reply: &mut Reply<'_>) {
    reply.array(arguments.len());
    arguments.iter().for_each(|argument| reply_argument(argument, keys, reply));
}

fn reply_argument(argument: &Argument, keys: &mut KeyRows, reply: &mut Reply<'_>) {
    let map = reply.map_deferred();
    let mut pairs = 2;
    reply.bulk(b"name");
    reply.bulk(argument.name.as_bytes());
    reply.bulk(b"type");
    reply.bulk(argument.kind.name().as_bytes());
    if !argument.kind.is_compound() {
        pairs += 1;
        reply.bulk(b"display_text");
        reply.bulk(argument.name.as_bytes());
    }
    if argument.kind == Kind::Key
        && let Some(row) = keys.take()
    {
        pairs += 1;
        reply.bulk(b"key_spec_index");
        reply.int(row as i64);
    }
    if let Some(token) = &argument.token {
        pairs += 1;
        reply.bulk(b"token");
        // An empty one is written in quotes.
        reply.bulk(token.trim_matches('"').as_bytes());
    }
    let flags = [
        (argument.is_optional, "optional"),
        (argument.is_multiple, "multiple"),
        (argument.repeats_token, "multiple_token"),
    ];
    let flags: Vec<&str> = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name).collect();
    if !flags.is_empty() {
        pairs += 1;
        reply.bulk(b"flags");
        reply.set(flags.len());
        flags.iter().for_each(|flag| reply.simple(flag));
    }
    if !argument.arguments.is_empty() {
        pairs += 1;
        reply.bulk(b"arguments");
        reply_arguments(&argument.arguments, keys, reply);
    }
    reply.finish(map, pairs);
}
