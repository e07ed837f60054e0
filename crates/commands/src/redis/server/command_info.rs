//! What COMMAND INFO says of one command.

use super::command_tips::tips;
use super::key_specs::reply_key_specs;
use tenon_engine::command::Command;
use tenon_engine::wire::resp::Reply;

/// Writes the ten parts of a description.
pub fn reply_info(command: &Command, reply: &mut Reply<'_>) {
    reply.array(10);
    let name = command.full_name();
    reply.bulk(name.as_bytes());
    reply.int(command.arity.number());
    reply_words("", &command.flag_names(), reply);
    let (first, last, step) = command.keys.triple();
    [first, last, step].into_iter().for_each(|number| reply.int(number));
    reply_words("@", &command.categories(), reply);
    let tips = tips(&name);
    reply.set(tips.len());
    tips.iter().for_each(|tip| reply.bulk(tip.as_bytes()));
    reply_key_specs(command, reply);
    let subcommands = command.subcommands();
    reply.set(subcommands.len());
    subcommands.iter().for_each(|subcommand| reply_info(subcommand, reply));
}

fn reply_words(sign: &str, words: &[&str], reply: &mut Reply<'_>) {
    reply.set(words.len());
    let mut text = String::new();
    for word in words {
        text.clear();
        text.extend([sign, word]);
        reply.simple(&text);
    }
}
