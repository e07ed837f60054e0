//! Expiry ahead of access: what each worker's tick does for its part of the shards.

use crate::engine::Engine;
use crate::notify::EventClass;
use crate::shards::ShardState;
use crate::watch::Watched;
use crate::worker::Worker;
use std::cell::RefCell;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tenon_store::entry::EntryRef;
use tenon_store::keyspace::{Expired, SET_BACK_MS};
use tenon_store::types::ValueType;

/// How often a worker looks for keys that are due.
const PERIOD: Duration = Duration::from_millis(10);
/// How long one tick may take; what is left then waits for the next, which comes when the clients of a turn are served.
const BUDGET: Duration = Duration::from_micros(250);
/// Keys and members expired in one go while a shard is locked.
const BATCH: usize = 64;

impl Engine {
    /// Removes keys and members that are due in the worker's part of the shards. Gives the time until it wants to be called again.
    pub fn expire_tick(&self, worker: &mut Worker) -> Duration {
        // In a CLIENT PAUSE data stays as it is, so that what waits for its end finds what was there when it began.
        if !self.active_expiry.load(Ordering::Relaxed) || self.pause.is_active() {
            return PERIOD;
        }
        // In a log without room a tick would wait with all that its worker serves.
        if self.pause.waits_for_log() && !self.has_room_for_ticks(worker) {
            return PERIOD;
        }
        let now_ms = worker.clock.now_ms;
        let part = worker.index;
        if now_ms.saturating_add(SET_BACK_MS) >= worker.expired_at_ms {
            // Small steps back add up.
            worker.expired_at_ms = worker.expired_at_ms.max(now_ms);
        } else if self.look_at_all_due(part) {
            worker.expired_at_ms = now_ms;
        }
        if !self.shards.take_part_due(part, now_ms) {
            return PERIOD;
        }
        let started = Instant::now();
        let mut first_due_ms = u64::MAX;
        let mut next = PERIOD;
        let mut time_is_up = false;
        let all = (part..self.shards.count()).step_by(self.workers());
        // A tick begins with the shard at which the last one's time was up, so that none is always behind others.
        let begin = worker.expires_from;
        for index in all.clone().skip_while(|index| *index < begin).chain(all.take_while(|index| *index < begin)) {
            while self.shards.due_ms(index) <= now_ms && !time_is_up {
                // A shard that a script holds is left for a later tick: a script may hold it for long.
                let Some(mut state) = self.shards.try_lock_for(index, BUDGET) else {
                    // It may hold all of them.
                    time_is_up = started.elapsed() > BUDGET;
                    worker.expires_from = index + self.workers();
                    break;
                };
                let is_done = self.expire_shard(worker, &mut state, index, now_ms);
                if !worker.ready.is_empty() {
                    self.release_changed(worker, index, state);
                }
                if started.elapsed() > BUDGET {
                    (time_is_up, next) = (true, Duration::ZERO);
                    worker.expires_from = index;
                }
                if is_done {
                    break;
                }
            }
            first_due_ms = first_due_ms.min(self.shards.due_ms(index));
        }
        self.shards.set_first_due(part, first_due_ms);
        let elapsed = started.elapsed();
        worker.stats.all.expire_us.add(elapsed.as_micros() as u64);
        worker.stats.all.expire_capped.add(u64::from(next == Duration::ZERO));
        let threshold_ms = self.config.latency_monitor_threshold();
        self.latency.note("expire-cycle", elapsed.as_millis() as u64, threshold_ms, now_ms);
        next
    }

    /// Has every shard of a part be looked at, whatever is due there first by a clock that has been set back since. Tells
    /// whether that could be said of all.
    fn look_at_all_due(&self, part: usize) -> bool {
        let mut are_all = true;
        for index in (part..self.shards.count()).step_by(self.workers()) {
            match self.shards.try_lock(index) {
                Some(state) if state.shard.next_due_ms().is_some() => self.shards.set_due(index, Some(0)),
                Some(_) => {}
                None => are_all = false,
            }
        }
        self.shards.set_first_due(part, 0);
        are_all
    }

    /// Removes some of the due keys and members of one shard. Tells whether none is left but what a snapshot has to write
    /// first.
    fn expire_shard(&self, worker: &mut Worker, state: &mut ShardState, index: usize, now_ms: u64) -> bool {
        let mut done = true;
        let ShardState { shard, watched } = state;
        for (database, keyspace) in shard.databases_mut() {
            let before = keyspace.deadline_counts();
            let worker = RefCell::new(&mut *worker);
            done &= keyspace.expire_due(
                now_ms,
                BATCH,
                |entry| self.hand_over_ahead(&mut worker.borrow_mut(), database, entry),
                |expired| self.has_expired(&mut worker.borrow_mut(), watched.as_deref(), database, now_ms, expired),
            );
            worker.into_inner().stats.keys.deadlines_changed(database, before, keyspace.deadline_counts());
        }
        self.shards.forget_many_deadlines(&mut state.shard);
        self.shards.set_due(index, if done { state.shard.next_due_ms() } else { Some(0) });
        self.commit(worker);
        done
    }
}

impl Engine {
    /// What it entails that a key, or members of one, have gone because their time had come.
    pub(crate) fn has_expired(
        &self,
        worker: &mut Worker,
        watched: Option<&Watched>,
        database: usize,
        now_ms: u64,
        expired: Expired<'_>,
    ) {
        if let Expired::Member(member) = expired {
            if self.is_journaling() {
                worker.expired_members.push(member.into());
            }
            return;
        }
        let entry = match &expired {
            Expired::Member(_) => unreachable!("they are dealt with above"),
            Expired::Key(entry) | Expired::AllMembers { of: entry, .. } => entry.view(),
            // What a stream remembers of its producers is nothing that it holds.
            Expired::Members { of, .. } if ValueType::of(of.value()) == ValueType::Stream => return,
            Expired::Members { of, .. } => *of,
        };
        if let Some(watched) = watched {
            match &expired {
                Expired::Member(_) | Expired::Members { .. } => {
                    watched.changed(database, entry.key(), &mut worker.ready);
                }
                Expired::Key(_) | Expired::AllMembers { .. } => {
                    watched.expired(database, entry.key(), &mut worker.ready);
                }
            }
        }
        if self.tracking.is_active() {
            self.key_gone(worker, entry.key());
        }
        // A script withholds what it does, not what time has done.
        let withheld = worker.record.withhold(false);
        match expired {
            Expired::Member(_) => {}
            Expired::Key(entry) => {
                let key = entry.view();
                worker.stats.expired_in_class(key);
                self.log(worker, database, &["DEL".into(), key.key().into()]);
                worker.stats.expired(1, now_ms.saturating_sub(key.deadline_ms().unwrap_or(now_ms)));
                self.notify(database, key.key(), EventClass::EXPIRED, "expired");
                self.discard_removed(worker, database, entry);
            }
            Expired::Members { of, count, first_due_ms } => {
                count_members(worker, of, count, now_ms.saturating_sub(first_due_ms));
                self.log_expired_members(worker, database, of);
                self.notify_members_expired(database, of);
            }
            Expired::AllMembers { of, count, first_due_ms } => {
                count_members(worker, of.view(), count, now_ms.saturating_sub(first_due_ms));
                self.log(worker, database, &["DEL".into(), of.view().key().into()]);
                self.notify_members_expired(database, of.view());
                self.notify(database, of.view().key(), EventClass::GENERIC, "del");
                self.discard_removed(worker, database, of);
            }
        }
        worker.record.withhold(withheld);
    }

    /// Puts down that members of a key have gone whose names were gathered.
    fn log_expired_members(&self, worker: &mut Worker, database: usize, entry: EntryRef<'_>) {
        let members = std::mem::take(&mut worker.expired_members);
        let number = self.journal_number();
        if number == 0 || members.is_empty() || !worker.record.begin(number, database) {
            return;
        }
        let command = match ValueType::of(entry.value()) {
            ValueType::Hash => "HDEL",
            ValueType::Set => "SREM",
            ValueType::Zset => "ZREM",
            ValueType::String | ValueType::List | ValueType::Stream => unreachable!("their parts have no deadlines"),
        };
        let words = [command.into(), entry.key().into()];
        worker.record.command_of(&words, members.iter().map(|member| (&**member).into()));
    }

    fn notify_members_expired(&self, database: usize, entry: EntryRef<'_>) {
        let value_type = ValueType::of(entry.value());
        let event = match value_type {
            ValueType::Hash => "hexpired",
            ValueType::Set => "sexpired",
            ValueType::Zset => "zexpired",
            ValueType::String | ValueType::List | ValueType::Stream => unreachable!("their parts have no deadlines"),
        };
        self.notify(database, entry.key(), EventClass::of_type(value_type), event);
    }
}

fn count_members(worker: &Worker, of: EntryRef<'_>, count: usize, lag_ms: u64) {
    worker.stats.expired_members(count as u64, lag_ms);
    if ValueType::of(of.value()) == ValueType::Hash {
        worker.stats.all.expired_fields.add(count as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::{ClientInfo, ConnectionKey, Dialect};
    use crate::config::{Caller, Config, Machine};
    use crate::context::{Change, Deadline};
    use crate::pubsub::Topic;
    use crate::tracking::{Echo, Mode, Tracker};
    use std::sync::Arc;
    use tenon_store::entry::NewValue;
    use tenon_store::types::{Hash, HashLimits};
    use tenon_wire::OutBuf;

    /// Keys that are not due, of which none may delay one that is.
    const NOT_DUE: u32 = 20_000;

    #[test]
    fn a_due_key_among_many_that_are_not_goes_with_its_event() {
        let machine = Machine::of_cores(1);
        let engine = Engine::new(Config::new(machine), &[], 1);
        engine.set_config(&[(b"notify-keyspace-events", b"Ex")], Caller::Local).expect("it is a valid value");
        let key = ConnectionKey { worker: 0, index: 0, generation: 0 };
        let (remote, local) = (String::new(), String::new());
        let info = ClientInfo { key, dialect: Dialect::Resp, remote, local, fd: 0, unix: false };
        let mut session = engine.open_session(engine.clients.add(info, 0));
        session.set_proto(tenon_wire::resp::Proto::Resp3, &mut OutBuf::new());
        engine.subscribe(&mut session, Topic::Channel, b"__keyevent@0__:expired");
        let tracker = Tracker::new(Arc::clone(&session.client), Mode::Broadcast, Echo::Wanted, None);
        let mut worker = engine.worker(0);
        let set = |worker: &mut Worker, key: &[u8], deadline_ms: u64| {
            engine.with_key(worker, 0, engine.shards.hash(key), key, |cx| {
                cx.set(NewValue::Int(1), Deadline::At(deadline_ms));
            });
        };
        let now_ms = worker.clock.now_ms;
        for number in 0..NOT_DUE {
            set(&mut worker, &number.to_le_bytes(), now_ms + 3_600_000 + u64::from(number));
        }
        engine.start_tracking(&mut session, tracker, std::iter::empty());
        set(&mut worker, b"due", now_ms + 2);
        while worker.stats.all.expired.get() == 0 {
            engine.tick(&mut worker);
        }
        engine.tick(&mut worker);
        assert_eq!(worker.stats.all.expired.get(), 1);
        assert_eq!(worker.stats.expiry_lag.iter().map(crate::stats::Counter::get).sum::<u64>(), 1);
        let mut out = OutBuf::new();
        session.client.outbox.take(&mut out);
        let event = "$7\r\nmessage\r\n$22\r\n__keyevent@0__:expired\r\n$3\r\ndue\r\n";
        let stale = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\ndue\r\n";
        let sent = String::from_utf8(out.tail().clone()).expect("all of it is text");
        assert!(sent.contains(event) && sent.contains(stale), "{sent:?}");
    }

    #[test]
    fn keys_are_due_in_time_where_the_clock_was_ahead_and_is_set_back() {
        let engine = Engine::new(Config::new(Machine::of_cores(1)), &[], 1);
        let mut worker = engine.worker(0);
        let now_ms = worker.clock.now_ms;
        let tick_at = |worker: &mut Worker, at_ms: u64| {
            worker.clock.now_ms = at_ms;
            // More often than there are shards, as the time of a tick may be up behind any of them.
            (0..10_000).for_each(|_| _ = engine.expire_tick(worker));
        };
        let set = |worker: &mut Worker, key: &[u8], deadline_ms: u64| {
            engine.with_key(worker, 0, engine.shards.hash(key), key, |cx| {
                cx.set(NewValue::Int(1), Deadline::At(deadline_ms));
            });
        };
        const DAY_MS: u64 = 86_400_000;
        for number in 0..1_000_u32 {
            set(&mut worker, &number.to_le_bytes(), now_ms + DAY_MS + 10_000);
            // These go, and with them the present of every index to where the clock is ahead.
            set(&mut worker, &(1_000 + number).to_le_bytes(), now_ms + 1_000);
        }
        tick_at(&mut worker, now_ms + DAY_MS);
        assert_eq!(worker.stats.all.expired.get(), 1_000);
        for number in 0..1_000_u32 {
            set(&mut worker, &number.to_le_bytes(), now_ms + 60_000);
        }
        tick_at(&mut worker, now_ms);
        assert_eq!(worker.stats.all.expired.get(), 1_000, "none of the others is due");
        tick_at(&mut worker, now_ms + 61_000);
        assert_eq!(worker.stats.all.expired.get(), 2_000);
    }

    /// A hash with these fields, each with a deadline.
    fn put_hash(engine: &Engine, worker: &mut Worker, key: &[u8], fields: impl Iterator<Item = (u32, u64)>) {
        const LIMITS: HashLimits = HashLimits { fields: 512, bytes: 64 };
        engine.with_key(worker, 0, engine.shards.hash(key), key, |cx| {
            let changed = cx.update(|hash: &mut Hash| {
                for (field, deadline_ms) in fields {
                    hash.set(&field.to_le_bytes(), b"v", LIMITS);
                    hash.set_deadline(&field.to_le_bytes(), deadline_ms);
                }
                Ok(Change::made("hset", ()))
            });
            assert_eq!(changed.expect("the key is new").1, crate::command::Effect::Verbatim);
        });
    }

    fn fields_left(engine: &Engine, worker: &mut Worker, key: &[u8]) -> usize {
        engine.with_key(worker, 0, engine.shards.hash(key), key, |cx| {
            cx.read_collection::<Hash>().expect("it is a hash").map_or(0, |hash| hash.len())
        })
    }

    #[test]
    fn a_due_field_among_many_that_are_not_goes_ahead_of_access() {
        let engine = Engine::new(Config::new(Machine::of_cores(1)), &[], 1);
        let mut worker = engine.worker(0);
        let now_ms = worker.clock.now_ms;
        let not_due = (0..NOT_DUE).map(|field| (field, now_ms + 3_600_000 + u64::from(field)));
        put_hash(&engine, &mut worker, b"large", not_due.chain([(NOT_DUE, now_ms + 2)]));
        put_hash(&engine, &mut worker, b"small", [(1, now_ms + 3), (2, now_ms + 1_000_000)].into_iter());
        put_hash(&engine, &mut worker, b"whole", (0..NOT_DUE).map(|field| (field, now_ms + 4)));
        while worker.stats.all.expired_members.get() < u64::from(NOT_DUE) + 2 {
            engine.tick(&mut worker);
        }
        assert_eq!(worker.stats.expiry_lag.iter().map(crate::stats::Counter::get).sum::<u64>(), u64::from(NOT_DUE) + 2);
        assert_eq!(worker.stats.all.expired.get(), 0);
        // What is left is not looked at: nothing of it is due.
        assert_eq!(fields_left(&engine, &mut worker, b"large"), NOT_DUE as usize);
        assert_eq!(fields_left(&engine, &mut worker, b"small"), 1);
        assert_eq!(fields_left(&engine, &mut worker, b"whole"), 0);
        assert_eq!(worker.stats.all.expired_members.get(), u64::from(NOT_DUE) + 2);
    }

    #[test]
    fn many_due_fields_go_in_steps() {
        let engine = Engine::new(Config::new(Machine::of_cores(1)), &[], 1);
        let mut worker = engine.worker(0);
        let now_ms = worker.clock.now_ms;
        let due = 10 * BATCH as u32;
        let fields = (0..due).map(|field| (field, now_ms + 1)).chain([(due, now_ms + 3_600_000)]);
        put_hash(&engine, &mut worker, b"k", fields);
        let index = engine.shards.index(engine.shards.hash(b"k"));
        let later_ms = now_ms + 100;
        for step in 1..=10 {
            assert!(engine.shards.due_ms(index) <= later_ms, "the shard says that something is due");
            let mut state = engine.shards.lock(index);
            engine.expire_shard(&mut worker, &mut state, index, later_ms);
            assert_eq!(worker.stats.all.expired_members.get(), step * BATCH as u64);
        }
        assert!(engine.shards.due_ms(index) > later_ms);
    }
}
