//! Examples of commands: what is stored first, what is sent, and what must answer. Know no server and no socket.

mod example;
mod hashes;
mod keys;
mod lists;
mod memcached;
mod others;
mod page;
mod sets;
mod sorted_sets;
mod streams;
mod strings;
pub mod template;

pub use example::{Example, Step};
pub use page::page;

/// All of them, by what they work on.
pub static FAMILIES: [(&str, &[Example]); 9] = [
    ("Keys", keys::EXAMPLES),
    ("Strings", strings::EXAMPLES),
    ("Hashes", hashes::EXAMPLES),
    ("Lists", lists::EXAMPLES),
    ("Sets", sets::EXAMPLES),
    ("Sorted sets and places", sorted_sets::EXAMPLES),
    ("Streams", streams::EXAMPLES),
    ("Transactions, scripts, messages, the server", others::EXAMPLES),
    ("memcached's verbs", memcached::EXAMPLES),
];
