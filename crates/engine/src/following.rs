//! Commands on keys that other keys' data names. Which shards to lock is known only once the first are: so these are let
//! go and locked anew with the others, in order, until nothing is wanting. Knows no command.

use crate::args::Args;
use crate::command::{KeyFlags, Run};
use crate::context::{FollowingCx, KeysCx, Turn};
use crate::engine::Engine;
use crate::errors::CmdError;
use crate::locking::OnBusy;
use crate::session::Session;
use crate::shards::Locked;
use crate::table::Resolved;
use crate::worker::Worker;
use tenon_wire::resp::Reply;

/// How often the shards that the data named are not enough, because it has changed meanwhile, before all are locked.
const ROUNDS_MAX: usize = 3;

impl Engine {
    /// Runs a command that follows names, no shard being held.
    ///
    /// # Errors
    /// Those of the command.
    pub(crate) fn run_following(
        &self,
        worker: &mut Worker,
        session: &mut Session,
        resolved: Resolved,
        args: &Args<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<(), CmdError> {
        let mut indexes = self.shards_of(resolved.command, args);
        let mut rounds = 0;
        loop {
            let mut held = self.lock_several(worker, indexes.clone(), OnBusy::Refuse)?;
            let further = self.further_shards(worker, session, resolved, args, &mut held);
            if further.is_empty() {
                return self.run_to_end(worker, session, resolved, args, held, reply);
            }
            drop(held);
            rounds += 1;
            if rounds < ROUNDS_MAX {
                indexes.extend(further);
            } else {
                indexes = (0..self.shards.count()).collect();
            }
        }
    }

    /// The shards that a command which follows names lacks, those of its declared keys being held.
    pub(crate) fn further_shards(
        &self,
        worker: &mut Worker,
        session: &Session,
        resolved: Resolved,
        args: &Args<'_>,
        held: &mut dyn Locked,
    ) -> Vec<usize> {
        let Run::Following { further, .. } = resolved.command.run else { return Vec::new() };
        further(&self.following(worker, session, resolved, args, held), args)
    }

    /// What such a command sees.
    pub(crate) fn following<'a>(
        &'a self,
        worker: &'a mut Worker,
        session: &Session,
        resolved: Resolved,
        args: &Args<'_>,
        held: &'a mut dyn Locked,
    ) -> FollowingCx<'a> {
        let (database, touches, rights) = (session.database, session.touches, session.rights());
        let databases = self.databases_seen_from(database);
        FollowingCx {
            keys: KeysCx { engine: self, worker, held, database, touches, turn: Turn::Now, lets_go: false },
            may_read_all_keys: rights.may_use_all_keys(resolved, args, KeyFlags::READ, databases),
        }
    }
}
