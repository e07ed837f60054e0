//! Meta commands on their way to their handlers: flags are read, room is made. Knows no connection.

use super::keys::Keys;
use tenon_commands::memcache::meta;
use tenon_commands::memcache::store::{self, Data};
use tenon_engine::Engine;
use tenon_engine::wire::OutBuf;
use tenon_engine::wire::memcache::{MetaFlags, MetaVerb, MetaWords, StoreVerb};
use tenon_engine::worker::Worker;

/// Runs a meta command on the next key and writes its answer.
#[inline]
pub(super) fn run(
    engine: &Engine,
    worker: &mut Worker,
    verb: MetaVerb,
    words: MetaWords<'_>,
    data: Data<'_>,
    keys: &mut Keys<'_>,
    out: &mut OutBuf,
) {
    worker.stats.all.mc_meta.add(1);
    let flags = match MetaFlags::parse(verb, words) {
        Ok(flags) => flags,
        Err(error) => {
            keys.skip_to(keys.passed() + 1);
            worker.stats.all.errors.add(1);
            out.tail().extend_from_slice(error.text().as_bytes());
            out.tail().extend_from_slice(b"\r\n");
            return;
        }
    };
    let key = words.key();
    let result = match verb {
        MetaVerb::Get => {
            let has_room = flags.vivify.is_none() || engine.make_room(worker);
            keys.visit(worker, key, |cx| meta::get::get(cx, words, &flags, has_room, out))
        }
        MetaVerb::Set if engine.make_room(worker) => {
            keys.visit(worker, key, |cx| meta::set::set(cx, words, &flags, data, out))
        }
        MetaVerb::Set => Err(keys.visit(worker, key, |cx| store::refuse_for_memory(cx, StoreVerb::Set, data))),
        MetaVerb::Delete => keys.visit(worker, key, |cx| meta::delete::delete(cx, words, &flags, out)),
        MetaVerb::Arithmetic => {
            let has_room = engine.make_room(worker);
            keys.visit(worker, key, |cx| meta::arith::count(cx, words, &flags, has_room, out))
        }
    };
    if let Err(answer) = result {
        worker.stats.all.errors.add(1);
        answer.write(out.tail());
    }
}

/// Answers `me` on the next key.
pub(super) fn debug(worker: &mut Worker, words: MetaWords<'_>, keys: &mut Keys<'_>, out: &mut OutBuf) {
    worker.stats.all.mc_meta.add(1);
    let key = words.key();
    if words.flags().next() == Some(b"b") && !words.is_key_encoded() {
        keys.skip_to(keys.passed() + 1);
        worker.stats.all.errors.add(1);
        out.tail().extend_from_slice(b"CLIENT_ERROR bad command line format\r\n");
        return;
    }
    keys.visit(worker, key, |cx| meta::debug::debug(cx, words, out));
}
