//! MIGRATE: keys to another server, and away from here.
//!
//! While they are on their way no shard is held and the worker serves its other clients. When the other server has them,
//! each is looked at again: one that is as it was sent goes, one that has changed is sent once more, and of one that is
//! gone the other server is told. Whoever waits for all that is under way, CLIENT PAUSE and the save at the end of the process,
//! waits for this, too: behind them nothing is deleted any more.

use super::deliver::{Destination, Lost, Receipt, deliver};
use super::options::{Mode, Options, address};
use super::parcel::{Content, Parcel};
use std::collections::HashSet;
use tenon_engine::Engine;
use tenon_engine::args::Args;
use tenon_engine::calls::LentCall;
use tenon_engine::command::{Arity, Command, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{KeyCx, ServerCx, SessionCx};
use tenon_engine::errand::{Finish, Work};
use tenon_engine::errors::CmdError;
use tenon_engine::notify::EventClass;
use tenon_engine::under_way::ClaimedKeys;
use tenon_engine::unsent::OnItsWay;
use tenon_engine::wire::resp::Reply;
use tenon_engine::worker::Worker;

/// Moves keys to another server.
pub static MIGRATE: Command = Command {
    name: "MIGRATE",
    group: Group::Generic,
    syntax: "host port <key | \"\"> destination-db timeout [COPY] [REPLACE] [AUTH password | AUTH2 username password] [KEYS key [key ...]]",
    summary: "Atomically transfers a key from one Redis instance to another.",
    complexity: "This command actually executes a DUMP+DEL in the source instance, and a RESTORE in the target instance. See the pages of these commands for time complexity. Also an O(N) data transfer between the two instances is performed.",
    since: "2.6.0",
    arity: Arity::AtLeast(6),
    keys: Keys::Found {
        specs: &[
            KeySpec::at(3, KeyFlags::READ_AND_DELETE),
            KeySpec::behind_to_end("KEYS", -2, KeyFlags::READ_AND_DELETE.or(KeyFlags::INCOMPLETE)),
        ],
        find: keys_of,
    },
    flags: Flags::WRITE.or(Flags::DANGEROUS).or(Flags::NO_MULTI).or(Flags::NO_SCRIPT),
    run: Run::Server(migrate),
};

/// How often a key that has changed meanwhile is sent again.
const ROUNDS_MAX: u32 = 16;

fn keys_of(args: &Args<'_>) -> Vec<(usize, KeyFlags)> {
    let mut keys = 3..4;
    let mut at = 6;
    while at < args.len() {
        if args.is(at, "AUTH") {
            at += 1;
        } else if args.is(at, "AUTH2") {
            at += 2;
        } else if args.is(at, "KEYS") && args.get(3).is_empty() {
            keys = at + 1..args.len();
            break;
        }
        at += 1;
    }
    keys.map(|index| (index, KeyFlags::READ_AND_DELETE)).collect()
}

const UNDER_WAY: CmdError = CmdError::text("TRYAGAIN Another MIGRATE of one of the keys is under way");

fn migrate(cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    for index in 6..args.len() {
        // Also where the arguments turn out to be wrong.
        if args.is(index, "AUTH") {
            cx.keep_secret(index + 1);
        } else if args.is(index, "AUTH2") {
            cx.keep_secret(index + 1);
            cx.keep_secret(index + 2);
        }
    }
    let options = Options::parse(args)?;
    // One that is named twice is sent once: gone from here when it has been sent, it would be deleted there, too.
    let mut named = HashSet::new();
    let keys: Vec<&[u8]> = options.keys.clone().map(|index| args.get(index)).filter(|key| named.insert(*key)).collect();
    // Who finds a key gone deletes it at the other server: that it has gone there by another MIGRATE must not look like that.
    // So they are claimed before they are read.
    let claimed = match options.mode {
        Mode::Move => {
            let keys = keys.iter().map(|key| key.to_vec());
            Some(cx.engine.migrating.claim(cx.session.database, keys).ok_or(UNDER_WAY)?)
        }
        Mode::Copy => None,
    };
    let mut parcels = Vec::new();
    for key in keys {
        if let Some(content) = cx.with_key(key, |cx| {
            cx.find_for_read();
            Content::of(cx)
        }) {
            parcels.push(Parcel { key: key.to_vec(), content, replace: options.replace });
        }
    }
    if parcels.is_empty() {
        reply.simple("NOKEY");
        return Ok(());
    }
    let login = options.credentials.map(|credentials| {
        let words = [credentials.user, Some(credentials.password)].into_iter().flatten();
        std::iter::once(b"AUTH".to_vec()).chain(words.map(|index| args.get(index).to_vec())).collect()
    });
    let Some(address) = address(args) else { return Err(lost(Lost::Connecting)) };
    let destination = Destination { address, timeout: options.timeout, login, database: options.database };
    let (database, call) = (cx.session.database, cx.engine.lent_call());
    let round = Round {
        destination,
        mode: options.mode,
        database,
        number: 1,
        error: None,
        taken: cx.engine.on_its_way(),
        sent_from: cx.engine.on_its_way(),
        _call: call,
        _claimed: claimed,
    };
    let mut session_cx = SessionCx { engine: cx.engine, worker: cx.worker, session: cx.session };
    cx.engine.send_out(&mut session_cx, round.work(parcels), reply)
}

/// One journey to the other server.
struct Round {
    destination: Destination,
    mode: Mode,
    /// The keys' database here.
    database: usize,
    number: u32,
    /// The first error that the other server answered in any round.
    error: Option<Vec<u8>>,
    /// What the parcels take, which is no data for as long as the other server takes.
    taken: OnItsWay,
    /// What the buffer takes that they are sent from.
    sent_from: OnItsWay,
    /// What it is for those who wait for its end.
    _call: Option<LentCall>,
    /// Its keys, which no other MIGRATE takes meanwhile.
    _claimed: Option<ClaimedKeys>,
}

impl Round {
    fn work(mut self, parcels: Vec<Parcel>) -> Work {
        self.taken.set(parcels.iter().map(|parcel| parcel.content.memory()).sum());
        Box::new(move || {
            let receipt = deliver(&self.destination, &parcels, &mut self.sent_from);
            Box::new(Delivered { round: self, parcels, receipt })
        })
    }

    /// Removes a key that the other server has, if it is still what was sent; else gives what is to be sent instead.
    fn take_leave(&self, parcel: Parcel, engine: &Engine, worker: &mut Worker) -> Option<Parcel> {
        let Parcel { key, content: sent, .. } = parcel;
        let hash = engine.shards.hash(&key);
        let content =
            engine.with_key(worker, self.database, hash, &key, |cx: &mut KeyCx<'_>| match Content::of(cx) {
                Some(now) if now.is_as(&sent) => {
                    cx.hand_over();
                    cx.delete();
                    cx.notify(EventClass::GENERIC, "del");
                    let _appended = cx.log_deleted();
                    None
                }
                Some(now) => Some(now),
                None if sent.is_over(cx.now_ms()) => None,
                None => Some(Content::Gone),
            })?;
        Some(Parcel { key, content, replace: true })
    }
}

/// Parcels that were sent, and what became of them.
struct Delivered {
    round: Round,
    parcels: Vec<Parcel>,
    receipt: Receipt,
}

impl Delivered {
    /// Whether the keys stay here whatever the other server has taken: they were sent to where they are. (Redis waits for itself
    /// then.)
    fn stay(&self, engine: &Engine) -> bool {
        let is_here = || {
            let within_host = self.receipt.connection.as_ref().and_then(|other| other.stream().addresses_within_host());
            usize::try_from(self.round.destination.database) == Ok(self.round.database)
                && within_host.is_some_and(|(own, other)| engine.clients.has_one_between(own, other))
        };
        self.round.mode == Mode::Move && is_here()
    }

    /// Removes the keys that the other server has taken; gives what is to be sent once more.
    fn take_leaves(&mut self, engine: &Engine, worker: &mut Worker) -> Vec<Parcel> {
        if self.round.mode != Mode::Move {
            return Vec::new();
        }
        let parcels = std::mem::take(&mut self.parcels);
        let taken = parcels.into_iter().zip(&self.receipt.taken).filter(|(_, taken)| **taken);
        taken.filter_map(|(parcel, _)| self.round.take_leave(parcel, engine, worker)).collect()
    }
}

impl Finish for Delivered {
    fn finish(mut self: Box<Self>, cx: &mut SessionCx<'_>, reply: &mut Reply<'_>) -> Result<Option<Work>, CmdError> {
        if self.stay(cx.engine) {
            return Err(lost(Lost::Reading));
        }
        let again = self.take_leaves(cx.engine, cx.worker);
        let Delivered { mut round, receipt, .. } = *self;
        round.error = round.error.or(receipt.error);
        if let Some(where_lost) = receipt.lost {
            return Err(lost(where_lost));
        }
        if !again.is_empty() && round.number < ROUNDS_MAX {
            round.number += 1;
            return Ok(Some(round.work(again)));
        }
        if let Some(error) = round.error {
            let error = String::from_utf8_lossy(&error).into_owned();
            return Err(CmdError::new(format!("ERR Target instance replied with error: {error}")));
        }
        if !again.is_empty() {
            return Err(CmdError::text("ERR A key changes faster than it can be sent to the target instance"));
        }
        reply.ok();
        Ok(None)
    }

    fn finish_alone(mut self: Box<Self>, engine: &Engine, worker: &mut Worker) -> Option<Work> {
        if self.stay(engine) {
            return None;
        }
        let again = self.take_leaves(engine, worker);
        let Delivered { mut round, receipt, .. } = *self;
        let goes_on = receipt.lost.is_none() && !again.is_empty() && round.number < ROUNDS_MAX;
        round.number += 1;
        goes_on.then(|| round.work(again))
    }
}

fn lost(lost: Lost) -> CmdError {
    CmdError::text(match lost {
        Lost::Connecting => "IOERR error or timeout connecting to the client",
        Lost::Writing => "IOERR error or timeout writing to target instance",
        Lost::Reading => "IOERR error or timeout reading from target instance",
    })
}
