//! Running one command: locking the shards that it needs, and handing it the context that its kind takes. Knows neither
//! batches nor what must hold before a command runs.

use crate::args::Args;
use crate::blocking::Outcome;
use crate::clock::monotonic_ns;
use crate::command::{Command, Effect, Flags, Run};
use crate::context::{KeyCx, KeysCx, ServerCx, SessionCx, Turn};
use crate::engine::Engine;
use crate::errors::CmdError;
use crate::locking::OnBusy;
use crate::session::Session;
use crate::shards::{Held, Locked};
use crate::table::Resolved;
use crate::worker::Worker;
use tenon_ds::progress;
use tenon_store::hash::KeyHash;
use tenon_wire::resp::Reply;

/// Hashes that are counted at once: few are the rule.
const HASHES_A_COUNT: usize = 64;

impl Engine {
    /// Runs one command that has passed its gate, locking what it needs.
    pub(crate) fn run_one(
        &self,
        worker: &mut Worker,
        session: &mut Session,
        resolved: Resolved,
        args: &Args<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<(), CmdError> {
        match resolved.command.run {
            Run::Key(_) => {
                let hash = self.shards.hash(args.get(usize::from(resolved.key)));
                let held = self.lock_several(worker, vec![self.shards.index(hash)], OnBusy::Refuse)?;
                self.run_to_end(worker, session, resolved, args, held, reply)
            }
            Run::Keys(_) | Run::Each(_) => {
                progress::count(args.len());
                let (mut hashes, mut indexes) = std::mem::take(&mut worker.keys_scratch);
                hashes.clear();
                indexes.clear();
                self.hashes_of(resolved.command.keys.indexes(args), args).for_each(|hash| {
                    hashes.push(hash);
                    if hashes.len() % HASHES_A_COUNT == 0 {
                        progress::count(HASHES_A_COUNT);
                    }
                });
                indexes.extend(hashes.iter().map(|hash| self.shards.index(*hash)));
                let held = self.lock_several(worker, indexes, OnBusy::Refuse)?;
                held.prefetch_entries(&self.shards, session.database, &hashes);
                worker.keys_scratch.0 = hashes;
                self.run_to_end(worker, session, resolved, args, held, reply)
            }
            Run::Blocking(run) => self.run_blocking(worker, session, resolved, run, args, reply),
            Run::Following { .. } => self.run_following(worker, session, resolved, args, reply),
            Run::Session(run) | Run::Alone(run, _) => {
                run(&mut SessionCx { engine: self, worker, session }, args, reply)
            }
            Run::Server(run) => run(&mut ServerCx { engine: self, worker, session, held: None }, args, reply),
            Run::Container(_) => unreachable!("a container is resolved to its subcommand"),
        }
    }

    /// Runs one command whose shards are all held and then let go: before that its record is appended, and those are served
    /// who wait for what it has changed.
    pub(crate) fn run_to_end<'a>(
        &'a self,
        worker: &mut Worker,
        session: &mut Session,
        resolved: Resolved,
        args: &Args<'_>,
        mut held: Held<'a>,
        reply: &mut Reply<'_>,
    ) -> Result<(), CmdError> {
        // What a client is told of later is noted behind the command, and long arguments are put down by then.
        worker.lets_go = !session.is_told_of(resolved.command) && !args.may_have_bigs();
        let mut result = self.run_held(worker, session, resolved, args, &mut held, reply);
        if worker.rest.is_some() {
            held = self.hold_again(worker, resolved, args);
            result = self.run_held(worker, session, resolved, args, &mut held, reply);
        }
        self.commit(worker);
        if worker.ready.is_empty() {
            worker.keep_indexes(held.into_indexes());
        } else {
            self.release(worker, held);
        }
        self.answer_lent(worker, reply);
        result
    }

    /// Holds the shards of a command again that has let them go.
    #[cold]
    fn hold_again(&self, worker: &mut Worker, resolved: Resolved, args: &Args<'_>) -> Held<'_> {
        let shards = self.shards_of(resolved.command, args);
        let held = self.lock_several(worker, shards, OnBusy::Serve).expect("who waits on is not refused");
        // What has expired meanwhile is gone.
        self.advance_old_clock(worker, monotonic_ns());
        held
    }

    /// Runs one command whose shards are all held, and puts down what it did.
    pub(crate) fn run_held(
        &self,
        worker: &mut Worker,
        session: &mut Session,
        resolved: Resolved,
        args: &Args<'_>,
        held: &mut dyn Locked,
        reply: &mut Reply<'_>,
    ) -> Result<(), CmdError> {
        let (database, touches) = (session.database, session.touches);
        // It is said for this one alone.
        let lets_go = std::mem::take(&mut worker.lets_go);
        self.hand_over_keys(worker, database, resolved, args, held);
        // In a pause data stays as it is, also what is past its deadline. What writes in spite of it, such as a
        // transaction that began it, goes on removing: it may put a new key in the old one's place.
        worker.keeps_expired = self.pause.keeps_what_is_due() && !resolved.command.flags.any(Flags::WRITE);
        if args.may_have_bigs() && !matches!(resolved.command.run, Run::Server(_)) {
            self.prepare_record(worker, resolved.command, args);
        }
        let flags = resolved.command.flags;
        if flags.any(Flags::WRITE) {
            self.unit_changes(worker);
        }
        let may_change_several = flags.any(Flags::WRITE) && !matches!(resolved.command.run, Run::Key(_));
        if may_change_several {
            worker.stats.keys.begin();
        }
        let result = match resolved.command.run {
            Run::Key(run) => {
                let key = args.get(usize::from(resolved.key));
                let hash = self.shards.hash(key);
                let state = held.shard(self.shards.index(hash));
                worker.may_lend = lets_go;
                let mut cx = KeyCx { engine: self, worker, state, database, hash, key, touches };
                run(&mut cx, args, reply)
            }
            Run::Keys(run) => {
                let rest = worker.rest.take();
                let mut cx = KeysCx { engine: self, worker, held, database, touches, turn: Turn::Now, lets_go };
                match rest {
                    None => run(&mut cx, args, reply),
                    Some(rest) => rest(&mut cx, args, reply),
                }
            }
            Run::Each(run) => {
                let mut cx = KeysCx { engine: self, worker, held, database, touches, turn: Turn::Now, lets_go };
                let keys = resolved.command.keys.indexes(args);
                let count = keys.filter(|&at| run(&mut cx.key(args.get(at)))).count();
                reply.int(count as i64);
                Ok(resolved.command.effect_on_each(count > 0))
            }
            Run::Blocking(run) => {
                let mut cx = KeysCx { engine: self, worker, held, database, touches, turn: Turn::Now, lets_go };
                run(&mut cx, args, reply).map(|outcome| match outcome {
                    Outcome::Done(effect) => effect,
                    Outcome::Wait(wait) => {
                        wait.refuse(reply);
                        Effect::Unchanged
                    }
                })
            }
            Run::Following { run, .. } => {
                let rest = worker.rest.take();
                let mut cx = self.following(worker, session, resolved, args, held);
                cx.keys.lets_go = lets_go;
                match rest {
                    None => run(&mut cx, args, reply),
                    Some(rest) => rest(&mut cx.keys, args, reply),
                }
            }
            Run::Session(run) | Run::Alone(run, _) => {
                run(&mut SessionCx { engine: self, worker, session }, args, reply).map(|()| Effect::Unchanged)
            }
            // What changes the whole server puts it down itself.
            Run::Server(run) => run(&mut ServerCx { engine: self, worker, session, held: Some(held) }, args, reply)
                .map(|()| Effect::Unchanged),
            Run::Container(_) => unreachable!("a container is resolved to its subcommand"),
        };
        if may_change_several {
            worker.stats.keys.end();
        }
        worker.keeps_expired = false;
        debug_assert!(
            !flags.any(Flags::BLOCKING) || result != Ok(Effect::Verbatim),
            "{} may not wait where the log is read back",
            resolved.command.name
        );
        self.note_effect(worker, database, &result, args);
        // While the shards are held: no change goes between what was read and the note of it.
        self.note_read(session, resolved.command, args);
        result.map(|_effect| ())
    }

    /// The shards of a command's keys.
    pub(crate) fn shards_of(&self, command: &Command, args: &Args<'_>) -> Vec<usize> {
        self.hashes_of(command.keys.indexes(args), args).map(|hash| self.shards.index(hash)).collect()
    }

    /// The hashes of the keys at these places of the arguments, whose shards start to be loaded.
    pub(crate) fn hashes_of(
        &self,
        places: impl Iterator<Item = usize>,
        args: &Args<'_>,
    ) -> impl Iterator<Item = KeyHash> {
        places.map(|at| {
            let hash = self.shards.hash(args.get(at));
            self.shards.prefetch(hash);
            hash
        })
    }
}
