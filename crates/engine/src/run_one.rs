//! Running one command: locking the shards that it needs, and handing it the context that its kind takes. Knows neither
//! batches nor what must hold before a command runs.

use crate::args::Args;
use crate::blocking::Outcome;
use crate::command::{Command, Flags, Run};
use crate::context::{KeyCx, KeysCx, ServerCx, SessionCx, Turn};
use crate::engine::Engine;
use crate::errors::CmdError;
use crate::locking::OnBusy;
use crate::session::Session;
use crate::shards::Locked;
use crate::table::Resolved;
use crate::worker::Worker;
use tenon_wire::resp::Reply;

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
                let mut held = self.lock_several(worker, vec![self.shards.index(hash)], OnBusy::Refuse)?;
                self.run_held(worker, session, resolved, args, &mut held, reply)
            }
            Run::Keys(_) => {
                let indexes = self.shards_of(resolved.command, args);
                let mut held = self.lock_several(worker, indexes, OnBusy::Refuse)?;
                self.run_held(worker, session, resolved, args, &mut held, reply)
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

    /// Runs one command whose shards are all held.
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
        self.hand_over_keys(worker, database, resolved, args, held);
        // In a pause data stays as it is, also what is past its deadline. What writes in spite of it, such as a
        // transaction that began it, goes on removing: it may put a new key in the old one's place.
        worker.keeps_expired = self.pause.is_active() && !resolved.command.flags.any(Flags::WRITE);
        let result = match resolved.command.run {
            Run::Key(run) => {
                let key = args.get(usize::from(resolved.key));
                let hash = self.shards.hash(key);
                let state = held.shard(self.shards.index(hash));
                let mut cx = KeyCx { engine: self, worker, state, database, hash, key, touches };
                run(&mut cx, args, reply).map(|_effect| ())
            }
            Run::Keys(run) => {
                let mut cx = KeysCx { engine: self, worker, held, database, touches, turn: Turn::Now };
                run(&mut cx, args, reply).map(|_effect| ())
            }
            Run::Blocking(run) => {
                let mut cx = KeysCx { engine: self, worker, held, database, touches, turn: Turn::Now };
                run(&mut cx, args, reply).map(|outcome| {
                    if let Outcome::Wait(wait) = outcome {
                        wait.refuse(reply);
                    }
                })
            }
            Run::Following { run, .. } => {
                run(&mut self.following(worker, session, resolved, args, held), args, reply).map(|_effect| ())
            }
            Run::Session(run) | Run::Alone(run, _) => {
                run(&mut SessionCx { engine: self, worker, session }, args, reply)
            }
            Run::Server(run) => run(&mut ServerCx { engine: self, worker, session, held: Some(held) }, args, reply),
            Run::Container(_) => unreachable!("a container is resolved to its subcommand"),
        };
        worker.keeps_expired = false;
        // While the shards are held: no change goes between what was read and the note of it.
        self.note_read(session, resolved.command, args);
        result
    }

    /// The shards of a command's keys.
    pub(crate) fn shards_of(&self, command: &Command, args: &Args<'_>) -> Vec<usize> {
        command.keys.indexes(args).map(|at| self.shards.index(self.shards.hash(args.get(at)))).collect()
    }
}
