//! watch: what clients who look on are told of items that others look for, store and remove. Sends nothing by itself.

use super::answer::Answer;
use super::verb::TextCommand;
use std::io::Write;
use std::sync::Arc;
use tenon_engine::Engine;
use tenon_engine::clients::Client;
use tenon_engine::context::KeyCx;
use tenon_engine::session::Roles;
use tenon_engine::store::Slot;
use tenon_engine::string;
use tenon_engine::watchers::{Watched, write_encoded};
use tenon_engine::wire::memcache::StoreVerb;

use super::expiry::Expiry;

/// Watches.
pub static WATCH: TextCommand = TextCommand {
    name: "watch",
    family: "admin",
    syntax: "[fetchers | mutations | evictions | connevents | deletions]*",
    summary: "Makes the connection one that is told, a line each, what other memcached clients read (fetchers), store \
              (mutations) and remove (deletions), which keys are evicted, and which connections begin and end. \
              sysevents, rawcmds and what memcached's proxy has are taken and bring no line.",
};

/// Begins to watch what the words say.
///
/// # Errors
/// Why it does not.
pub fn watch(engine: &Engine, client: &Arc<Client>, words: &[&[u8]], is_first: bool) -> Result<(), Answer> {
    if !engine.config.memcached_watch() {
        return Err(Answer::WatchDisabled);
    }
    if !is_first {
        return Err(Answer::WatchPipelined);
    }
    let mut what = if words.is_empty() { Watched::FETCHERS } else { Watched::NONE };
    for word in words {
        what = what.or(match *word {
            b"fetchers" => Watched::FETCHERS,
            b"mutations" => Watched::MUTATIONS,
            b"evictions" => Watched::EVICTIONS,
            b"connevents" => Watched::CONNECTIONS,
            b"deletions" => Watched::DELETIONS,
            b"sysevents" | b"rawcmds" | b"proxyreqs" | b"proxyevents" | b"proxyuser" => Watched::NONE,
            _ => return Err(Answer::Unknown),
        });
    }
    if !engine.start_watching(client, what) {
        return Err(Answer::TooManyWatchers);
    }
    client.set_roles(client.roles().with(Roles::WATCHER));
    Ok(())
}

/// How a store is called where the words of the request do not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storing {
    Add,
    Set,
    Replace,
    Append,
    Prepend,
    Cas,
}

impl From<StoreVerb> for Storing {
    fn from(verb: StoreVerb) -> Storing {
        match verb {
            StoreVerb::Set => Storing::Set,
            StoreVerb::Add => Storing::Add,
            StoreVerb::Replace => Storing::Replace,
            StoreVerb::Append => Storing::Append,
            StoreVerb::Prepend => Storing::Prepend,
            StoreVerb::Cas(_) => Storing::Cas,
        }
    }
}

impl Storing {
    const fn name(self) -> &'static str {
        match self {
            Storing::Add => "add",
            Storing::Set => "set",
            Storing::Replace => "replace",
            Storing::Append => "append",
            Storing::Prepend => "prepend",
            Storing::Cas => "cas",
        }
    }
}

/// Tells that an item was looked for.
#[inline]
pub(super) fn fetched(cx: &mut KeyCx<'_>, slot: Option<Slot>) {
    if cx.engine().watchers.want(Watched::FETCHERS) {
        tell_fetched(cx, slot);
    }
}

#[cold]
fn tell_fetched(cx: &mut KeyCx<'_>, slot: Option<Slot>) {
    let fd = cx.worker().client_fd();
    let (class, size) = slot.map_or((0, 0), |slot| (cx.entry(slot).size_class(), size_of(cx, slot)));
    let status = if slot.is_some() { "found" } else { "not_found" };
    cx.engine().tell_watchers(Watched::FETCHERS, |line| {
        line.extend_from_slice(b"type=item_get key=");
        write_encoded(cx.key, line);
        write!(line, " status={status} clsid={class} cfd={fd} size={size}").expect("a Vec takes everything");
    });
}

/// Tells that a counter is made, which memcached looks for once more then.
pub(super) fn made(cx: &mut KeyCx<'_>, expiry: Expiry, size: usize) {
    fetched(cx, None);
    stored(cx, Storing::Add, Answer::Stored, expiry, size);
}

/// Tells what became of an item that was to be stored.
#[inline]
pub(super) fn stored(cx: &mut KeyCx<'_>, how: Storing, answer: Answer, expiry: Expiry, size: usize) {
    if cx.engine().watchers.want(Watched::MUTATIONS) {
        tell_stored(cx, how, answer, expiry, size);
    }
}

/// Tells of a write that was refused for its length, or for lack of memory, before its key was looked for; `None` for one of
/// the binary protocol, which memcached does not name.
pub fn refused(engine: &Engine, fd: i32, verb: Option<StoreVerb>, key: &[u8], answer: Answer) {
    if !engine.watchers.want(Watched::MUTATIONS) {
        return;
    }
    let how = verb.map_or("null", |verb| Storing::from(verb).name());
    let status = status(answer);
    engine.tell_watchers(Watched::MUTATIONS, |line| {
        line.extend_from_slice(b"type=item_store key=");
        write_encoded(key, line);
        // memcached has forgotten to hand over class and socket, and tells what happens to lie there.
        write!(line, " status={status} cmd={how} ttl=0 clsid=0 cfd={fd} size=0").expect("a Vec takes everything");
    });
}

/// What became of a write, in memcached's words.
fn status(answer: Answer) -> &'static str {
    match answer {
        Answer::Stored => "stored",
        Answer::Exists => "exists",
        Answer::NotFound => "not_found",
        Answer::TooLarge => "too_large",
        Answer::OutOfMemoryStoring => "no_memory",
        _ => "not_stored",
    }
}

#[cold]
fn tell_stored(cx: &mut KeyCx<'_>, how: Storing, answer: Answer, expiry: Expiry, size: usize) {
    let status = status(answer);
    let fd = cx.worker().client_fd();
    let slot = cx.find_as_it_is();
    let class = slot.map_or(0, |slot| cx.entry(slot).size_class());
    // Of what was added to it tells the whole, which expires when it was to before.
    let (size, ttl) = match (how, answer, slot) {
        (Storing::Append | Storing::Prepend, Answer::Stored, Some(slot)) => {
            let expiry = Expiry::of_deadline(cx.entry(slot).deadline_ms());
            (size_of(cx, slot), expiry.seconds_left(cx.now_ms()))
        }
        _ => (size, expiry.seconds_left(cx.now_ms())),
    };
    let ttl = ttl.unwrap_or(0);
    cx.engine().tell_watchers(Watched::MUTATIONS, |line| {
        line.extend_from_slice(b"type=item_store key=");
        write_encoded(cx.key, line);
        let how = how.name();
        write!(line, " status={status} cmd={how} ttl={ttl} clsid={class} cfd={fd} size={size}")
            .expect("a Vec takes everything");
    });
}

/// Tells that an item is about to be removed, by a verb of this name.
#[inline]
pub(super) fn deleted(cx: &mut KeyCx<'_>, slot: Slot, verb: &str) {
    if cx.engine().watchers.want(Watched::DELETIONS) {
        tell_deleted(cx, slot, verb);
    }
}

#[cold]
fn tell_deleted(cx: &mut KeyCx<'_>, slot: Slot, verb: &str) {
    let (class, size) = (cx.entry(slot).size_class(), size_of(cx, slot));
    cx.engine().tell_watchers(Watched::DELETIONS, |line| {
        line.extend_from_slice(b"type=deleted key=");
        write_encoded(cx.key, line);
        write!(line, " cmd={verb} clsid={class} size={size}").expect("a Vec takes everything");
    });
}

/// Bytes of an item's data; of another type's value nothing can be said.
fn size_of(cx: &KeyCx<'_>, slot: Slot) -> usize {
    cx.string(slot).map_or(0, string::len)
}
