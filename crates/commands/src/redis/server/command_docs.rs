//! What COMMAND DOCS says of one command.

use tenon_engine::command::Command;
use tenon_engine::wire::resp::Reply;

/// Writes the map of a command's documentation.
pub fn reply_docs(command: &Command, reply: &mut Reply<'_>) {
    let subcommands = command.subcommands();
    reply.map(4 + usize::from(!subcommands.is_empty()));
    for (name, text) in [
        ("summary", command.summary),
        ("since", command.since),
        ("group", command.group.name()),
        ("complexity", command.complexity),
    ] {
        reply.bulk(name.as_bytes());
        reply.bulk(text.as_bytes());
    }
    if !subcommands.is_empty() {
        reply.bulk(b"subcommands");
        reply.map(subcommands.len());
        for subcommand in subcommands {
            reply.bulk(subcommand.full_name().as_bytes());
            reply_docs(subcommand, reply);
        }
    }
}
