//! MONITOR: every command that runs, told to clients who asked for it. Knows no command.

use crate::args::Args;
use crate::clients::Client;
use crate::clock::now_us;
use crate::command::{Command, Flags};
use crate::engine::Engine;
use crate::onlookers::Onlooker;
use crate::outbox::Parcel;
use crate::session::{Roles, Session};
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tenon_wire::resp::append_quoted;

/// The clients that watch.
#[derive(Default)]
pub struct Monitors {
    watching: RwLock<Vec<Arc<Client>>>,
    /// How many they are.
    count: AtomicUsize,
}

impl Monitors {
    /// Whether anybody watches.
    #[inline]
    pub fn are_watching(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }
}

/// Who has run a command, as the watchers see it.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'a> {
    /// A client.
    Client(&'a Client),
    /// A script.
    Script,
}

impl Engine {
    /// Lets a session watch; `false`: it does already.
    pub fn start_monitoring(&self, session: &mut Session) -> bool {
        if session.roles().has(Roles::MONITOR) {
            return false;
        }
        session.set_role(Roles::MONITOR, true);
        let mut watching = self.monitors.watching.write();
        watching.push(Arc::clone(&session.client));
        self.note_monitors(watching.len());
        true
    }

    /// Lets a session watch no more.
    pub fn stop_monitoring(&self, session: &mut Session) {
        if !session.roles().has(Roles::MONITOR) {
            return;
        }
        session.set_role(Roles::MONITOR, false);
        let mut watching = self.monitors.watching.write();
        watching.retain(|client| client.id != session.client.id);
        self.note_monitors(watching.len());
    }

    /// Notes how many watch; their list is locked.
    fn note_monitors(&self, count: usize) {
        self.monitors.count.store(count, Ordering::Relaxed);
        self.onlookers.set(Onlooker::Monitors, count > 0);
    }

    /// Tells the watchers, if there are any, of a command that has run. The arguments at `secrets` are not shown, nor
    /// are commands of administrators.
    pub fn tell_monitors(
        &self,
        origin: Origin<'_>,
        database: usize,
        command: &Command,
        args: &Args<'_>,
        secrets: &[usize],
    ) {
        if self.monitors.are_watching() && !command.flags.any(Flags::SKIP_MONITOR.or(Flags::ADMIN)) {
            self.show_monitors(origin, database, args, secrets);
        }
    }

    /// Tells the watchers, if there are any, of another protocol's request, which is made of these words.
    pub fn show_monitors_request(&self, client: &Client, database: usize, words: &Args<'_>) {
        if self.monitors.are_watching() {
            self.show_monitors(Origin::Client(client), database, words, &[]);
        }
    }

    /// Tells the watchers of a command, whatever it is: one that runs others shows itself before them.
    pub(crate) fn show_monitors(&self, origin: Origin<'_>, database: usize, args: &Args<'_>, secrets: &[usize]) {
        let now_us = now_us();
        // Two quotes and a blank beside each argument; escapes are few.
        let words_len: usize = (0..args.len()).map(|index| args.get(index).len() + 3).sum();
        let len = LINE_HEAD + words_len;
        let mut parcel = Parcel::of_about(len, |reply| {
            let line = reply.out().tail_for(len);
            line.push(b'+');
            write_line(now_us, origin, database, args, secrets, line);
            line.extend_from_slice(b"\r\n");
        });
        for client in &*self.monitors.watching.read() {
            self.deliver(client, &mut parcel);
        }
    }
}

/// About what comes before a line's words, an address of IPv6 included, and its ends.
const LINE_HEAD: usize = 90;

/// `1700000000.000123 [0 127.0.0.1:5] "SET" "k" "v"`
fn write_line(
    now_us: u64,
    origin: Origin<'_>,
    database: usize,
    args: &Args<'_>,
    secrets: &[usize],
    line: &mut Vec<u8>,
) {
    let mut digits = itoa::Buffer::new();
    line.extend_from_slice(digits.format(now_us / 1_000_000).as_bytes());
    // The digits behind a one that goes are those of six places.
    let micros = digits.format(1_000_000 + now_us % 1_000_000);
    line.push(b'.');
    line.extend_from_slice(&micros.as_bytes()[1..]);
    line.extend_from_slice(b" [");
    line.extend_from_slice(digits.format(database).as_bytes());
    line.push(b' ');
    match origin {
        Origin::Client(client) if client.info.unix => {
            line.extend_from_slice(b"unix:");
            // The address of such a client is the socket's path and port 0.
            line.extend_from_slice(client.info.remote.strip_suffix(":0").unwrap_or(&client.info.remote).as_bytes());
        }
        Origin::Client(client) => line.extend_from_slice(client.info.remote.as_bytes()),
        Origin::Script => line.extend_from_slice(b"lua"),
    }
    line.push(b']');
    // They are told in order, and each argument of a long ACL SETUSER is one.
    let mut secrets = secrets.iter().peekable();
    for index in 0..args.len() {
        line.push(b' ');
        while secrets.next_if(|secret| **secret < index).is_some() {}
        append_quoted(if secrets.peek() == Some(&&index) { b"(redacted)" } else { args.get(index) }, line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_redis() {
        let args = crate::args::OwnedArgs::new([&b"AUTH"[..], b"s3cret", b"a\"\\\n\r\t\x07\x08\x00\xff~"]);
        let mut shown = Vec::new();
        write_line(1_700_000_000_000_123, Origin::Script, 3, &args.view(), &[1], &mut shown);
        let expected = r#"1700000000.000123 [3 lua] "AUTH" "(redacted)" "a\"\\\n\r\t\a\b\x00\xff~""#;
        assert_eq!(String::from_utf8(shown).expect("all is escaped"), expected);
    }
}
