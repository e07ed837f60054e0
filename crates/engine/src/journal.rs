//! The log of all writes, as far as the engine knows it: who takes the records, and the one place where a command's
//! record is appended while its shards are held. Knows neither file nor disk, and no command.

use crate::args::Args;
use crate::command::{Command, Effect, Flags};
use crate::engine::Engine;
use crate::errors::CmdError;
use crate::worker::Worker;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where records of writes go.
///
/// It is called while the record's shards are held, so the order of the calls for one shard is the order of its writes.
pub trait Journal: Send + Sync {
    /// Appends one record: whole RESP commands, several of them within MULTI and EXEC. Gives the log's position behind it,
    /// in bytes since the server's start. It may wait for room.
    fn append(&self, record: &[u8]) -> u64;

    /// Whether a reply may be sent to whom a record that ends at `position` is confirmed by it.
    fn may_answer(&self, position: u64) -> bool {
        let _ = position;
        true
    }

    /// What this thread has appended is all for the moment.
    fn turn_ended(&self) {}

    /// Whether what nobody has asked for finds room: else it is to be left for later.
    fn has_room_for_ticks(&self) -> bool {
        true
    }

    /// The last position of which `may_answer` says yes, if it says no of any; `u64::MAX` otherwise.
    fn answerable(&self) -> u64 {
        u64::MAX
    }
}

/// Who takes the records now.
#[derive(Default)]
pub(crate) struct Attachment {
    /// Which attachment it is, counted from 1; 0: nobody takes any.
    number: AtomicU64,
    current: Mutex<Attached>,
}

#[derive(Default)]
struct Attached {
    /// How many there have been.
    count: u64,
    journal: Option<Arc<dyn Journal>>,
    /// One that takes no more and has not ended yet: replies wait for what it has.
    ending: Option<Arc<dyn Journal>>,
    /// How many transactions are under way that may have one begin.
    expecting: u32,
}

/// The number while nobody takes records and somebody may soon: they are put down, and thrown away if nobody does.
const EXPECTED: u64 = u64::MAX;

/// A transaction is under way that may have a journal begin and end; until this is dropped.
pub(crate) struct ExpectedJournal<'e> {
    engine: &'e Engine,
}

impl Drop for ExpectedJournal<'_> {
    fn drop(&mut self) {
        let mut current = self.engine.journal.current.lock();
        current.expecting -= 1;
        if current.expecting == 0 && current.journal.is_none() {
            self.engine.journal.number.store(0, Ordering::Release);
        }
    }
}

/// What a worker knows of the attachment: so the way to the journal is no lock that all workers share.
#[derive(Default)]
pub(crate) struct KnownJournal {
    pub(crate) number: u64,
    pub(crate) journal: Option<Arc<dyn Journal>>,
}

/// What is one change of the data: a transaction, a script, or scripts within a transaction.
#[derive(Debug, Default)]
pub(crate) struct Unit {
    /// How many have begun that are part of one another.
    depth: usize,
    /// Whether a command of it may have changed keys.
    changes: bool,
}

impl Engine {
    /// Gives all records of writes to a journal from now on.
    ///
    /// A write is in it whose shards are locked after this; whoever needs one moment for all keys holds all shards
    /// meanwhile.
    pub fn attach_journal(&self, journal: Arc<dyn Journal>) {
        let mut current = self.journal.current.lock();
        current.count += 1;
        current.journal = Some(journal);
        self.journal.number.store(current.count, Ordering::Release);
    }

    /// Gives no more records to anybody. Replies go on to wait for what the journal has until [`Engine::journal_has_ended`] says
    /// so. A worker lets go of it with its next tick.
    pub fn detach_journal(&self) {
        let mut current = self.journal.current.lock();
        current.ending = current.journal.take();
        self.journal.number.store(if current.expecting > 0 { EXPECTED } else { 0 }, Ordering::Release);
    }

    /// Nobody waits any more for the journal that was detached.
    pub fn journal_has_ended(&self) {
        self.journal.current.lock().ending = None;
        self.replies_may_leave();
    }

    /// Up to which position replies may be sent.
    pub fn durable(&self) -> u64 {
        let journal = {
            let current = self.journal.current.lock();
            current.journal.as_ref().or(current.ending.as_ref()).cloned()
        };
        journal.map_or(u64::MAX, |journal| journal.answerable())
    }

    /// Has records be put down from now on although nobody takes them: a journal may be attached in the middle of what is
    /// to be in it whole.
    fn expect_journal(&self) -> ExpectedJournal<'_> {
        let mut current = self.journal.current.lock();
        current.expecting += 1;
        if current.journal.is_none() {
            self.journal.number.store(EXPECTED, Ordering::Release);
        }
        ExpectedJournal { engine: self }
    }

    /// Whether anybody takes records, or may before a transaction that is under way is over.
    #[inline]
    pub fn is_journaling(&self) -> bool {
        self.journal_number() != 0
    }

    /// Which attachment is in force; 0: none.
    #[inline]
    pub(crate) fn journal_number(&self) -> u64 {
        self.journal.number.load(Ordering::Relaxed)
    }

    /// Whether what a tick does finds room in the journal, where there is one.
    pub(crate) fn has_room_for_ticks(&self, worker: &mut Worker) -> bool {
        self.follow_journal(worker);
        worker.journal.journal.as_ref().is_none_or(|journal| journal.has_room_for_ticks())
    }

    /// Lets go of a journal that is not attached any more.
    #[inline]
    pub(crate) fn follow_journal(&self, worker: &mut Worker) {
        let number = self.journal_number();
        if worker.journal.number != number {
            self.change_journal(worker, number);
        }
    }

    #[cold]
    fn change_journal(&self, worker: &mut Worker, number: u64) {
        let current = self.journal.current.lock();
        worker.journal = KnownJournal { number, journal: current.journal.clone() };
    }

    /// Notes what a command that has run did, for its record. Its shards are held.
    ///
    /// A command that failed has changed nothing, but for what had expired.
    #[inline]
    pub(crate) fn note_effect(
        &self,
        worker: &mut Worker,
        database: usize,
        result: &Result<Effect, CmdError>,
        args: &Args<'_>,
    ) {
        let has_bigs = args.may_have_bigs();
        if self.is_journaling() {
            // A log that has begun since the command was looked at has what it did in its base, whose moment needs the
            // shards; and its long arguments are gone.
            if let Ok(Effect::Verbatim) = result
                && (!has_bigs || worker.record.saw_journal())
            {
                self.record_verbatim(worker, database, args);
            }
        }
        if has_bigs {
            worker.record.forget_prepared();
        }
    }

    /// Notes what a command did that is a record by itself, and appends that.
    #[inline(never)]
    pub(crate) fn log_command(
        &self,
        worker: &mut Worker,
        database: usize,
        result: &Result<Effect, CmdError>,
        args: &Args<'_>,
    ) {
        // Mostly the record is what the client has sent: it goes from there into the log and is not written down once more.
        if database == 0
            && matches!(result, Ok(Effect::Verbatim))
            && worker.record.is_to_be_one_command()
            && !self.commands.is_renamed()
            && let Some(sent) = args.as_known_sent().or_else(|| args.as_sent())
        {
            self.follow_journal(worker);
            if let Some(journal) = &worker.journal.journal {
                worker.journaled = journal.append(sent);
                self.note_appended(worker);
            }
            return;
        }
        self.note_effect(worker, database, result, args);
        self.commit(worker);
    }

    /// Adds a command as it came to the record.
    #[inline(never)]
    fn record_verbatim(&self, worker: &mut Worker, database: usize, args: &Args<'_>) {
        if worker.record.begin(self.journal_number(), database) {
            worker.record.verbatim(self.logged_name(args), args);
        }
    }

    /// Prepares for a command that has long arguments, which it may take away: they are written down before.
    #[cold]
    pub(crate) fn prepare_record(&self, worker: &mut Worker, command: &Command, args: &Args<'_>) {
        let is_journaling = self.is_journaling();
        worker.record.look_for_journal(is_journaling);
        if is_journaling && command.flags.any(Flags::WRITE) {
            worker.record.prepare(self.logged_name(args), args);
        }
    }

    /// The same once its shard is held, if a log has begun since it was looked at: its base may be without the command.
    #[cold]
    pub(crate) fn prepare_record_anew(&self, worker: &mut Worker, command: &Command, args: &Args<'_>) {
        if self.is_journaling() && !worker.record.saw_journal() {
            self.prepare_record(worker, command, args);
        }
    }

    /// By which name a command stands in the log: the one that it was declared with, whatever this configuration has clients
    /// call it by.
    fn logged_name<'a>(&self, args: &Args<'a>) -> &'a [u8] {
        let called = args.get(0);
        let found = if self.commands.is_renamed() { self.commands.find(called) } else { None };
        found.map_or(called, |found| found.command.name.as_bytes())
    }

    /// Appends the worker's record, if there is anything in it and what it belongs to has come to its end. The shards
    /// that it is about are held.
    #[inline]
    pub(crate) fn commit(&self, worker: &mut Worker) {
        if worker.record.is_ready() {
            self.append_record(worker);
        }
    }

    #[inline(never)]
    fn append_record(&self, worker: &mut Worker) {
        self.follow_journal(worker);
        // What was begun for another journal is not this one's.
        let is_current = worker.record.number() == worker.journal.number || worker.record.follows_switches();
        if let Some(journal) = worker.journal.journal.as_ref().filter(|_| is_current) {
            worker.journaled = journal.append(worker.record.finish());
            self.note_appended(worker);
        }
        worker.record.clear();
    }

    /// Notes that a worker has put something into the log: the writer learns of it at the end of the worker's turn, or at
    /// once from whoever has none.
    #[inline]
    fn note_appended(&self, worker: &mut Worker) {
        worker.has_appended = true;
        if worker.index == self.workers() {
            self.end_turn(worker);
        }
    }

    /// Ends a turn of the worker's event loop: what it has appended is all for the moment.
    #[inline]
    pub fn end_turn(&self, worker: &mut Worker) {
        worker.answer_has_left();
        if std::mem::take(&mut worker.has_appended)
            && let Some(journal) = &worker.journal.journal
        {
            journal.turn_ended();
        }
    }

    /// Calls `work`, all of whose changes are one record, or part of the one that is already under way.
    ///
    /// The caller holds the shards until after `end_unit`.
    pub(crate) fn begin_unit(&self, worker: &mut Worker) {
        worker.unit.depth += 1;
        worker.record.hold(self.journal_number());
    }

    /// Says that the next command of the unit that is under way, if one is, may change keys: from then on to the unit's end there
    /// is no count of keys that anyone may see.
    #[inline]
    pub(crate) fn unit_changes(&self, worker: &mut Worker) {
        if worker.unit.depth > 0 && !std::mem::replace(&mut worker.unit.changes, true) {
            worker.stats.keys.begin();
        }
    }

    /// Says that a unit that held no shard so far holds its first one: a log that has begun meanwhile may have taken its base
    /// without what it will do.
    pub(crate) fn unit_holds_first(&self, worker: &mut Worker) {
        worker.record.hold_from_here(self.journal_number());
    }

    /// Begins a unit in which the log may begin and end: all of it is one record of the log that there is at its end. For
    /// `end_switching_unit`.
    pub(crate) fn begin_switching_unit(&self, worker: &mut Worker) -> ExpectedJournal<'_> {
        let expected = self.expect_journal();
        self.begin_unit(worker);
        worker.record.follow_switches(true);
        expected
    }

    /// Ends what `begin_switching_unit` has begun.
    pub(crate) fn end_switching_unit(&self, worker: &mut Worker, expected: ExpectedJournal<'_>) {
        self.end_unit(worker);
        worker.record.follow_switches(false);
        drop(expected);
    }

    /// Ends what `begin_unit` has begun, and appends its record. All of its shards are still held.
    pub(crate) fn end_unit(&self, worker: &mut Worker) {
        worker.record.release();
        self.commit(worker);
        worker.unit.depth -= 1;
        if worker.unit.depth == 0 && std::mem::take(&mut worker.unit.changes) {
            worker.stats.keys.end();
        }
    }

    /// Has a worker forget what a bug has ended in its middle, or all that it runs from now on would count as part of that, and
    /// never come into the log. What was changed by then may not be in it: the log is written anew.
    pub fn after_panic(&self, worker: &mut Worker) {
        worker.record = crate::record::Record::default();
        worker.unit = Unit::default();
        worker.stats.keys.end_all();
        (worker.is_replaying, worker.keeps_expired, worker.runs_script) = (false, false, false);
        self.doubt_log();
    }

    /// Calls `work` with a record of its own beside the one that may be under way: what it changes is let go of before
    /// that one is appended.
    pub(crate) fn with_own_record<R>(&self, worker: &mut Worker, work: impl FnOnce(&mut Worker) -> R) -> R {
        if !self.is_journaling() {
            return work(worker);
        }
        let outer = std::mem::take(&mut worker.record);
        worker.record.follow(&outer);
        let result = work(worker);
        debug_assert!(worker.record.is_empty(), "it is appended while its shards are held");
        worker.record = outer;
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::BigArg;
    use crate::config::{Config, Machine};
    use crate::test_set::SET;
    use std::sync::atomic::AtomicUsize;
    use tenon_store::types::Rope;
    use tenon_wire::Span;

    /// A log whose records are on disk up to where it is told that they are.
    #[derive(Default)]
    struct Told {
        end: AtomicU64,
        durable: AtomicU64,
    }

    impl Journal for Told {
        fn append(&self, record: &[u8]) -> u64 {
            self.end.fetch_add(record.len() as u64, Ordering::Relaxed) + record.len() as u64
        }

        fn may_answer(&self, position: u64) -> bool {
            position <= self.answerable()
        }

        fn answerable(&self) -> u64 {
            self.durable.load(Ordering::SeqCst)
        }
    }

    #[test]
    fn who_has_written_is_answered_when_it_is_on_disk() {
        let engine = Engine::new(Config::new(Machine::detect()), &[], 1);
        let woken = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&woken);
        engine.set_wake(Arc::new(move |_| _ = counted.fetch_add(1, Ordering::Relaxed)));
        let log = Arc::new(Told::default());
        engine.attach_journal(Arc::<Told>::clone(&log));
        let mut worker = engine.worker(0);
        engine.begin_call(&mut worker);
        assert_eq!(engine.holds_replies(&worker), None);
        engine.log(&mut worker, 0, &["FLUSHALL".into()]);
        engine.commit(&mut worker);
        let position = engine.holds_replies(&worker).expect("it is not on disk");
        assert_eq!(position, log.end.load(Ordering::Relaxed));
        log.durable.store(position - 1, Ordering::SeqCst);
        assert!(engine.durable() < position && engine.holds_replies(&worker).is_some());
        log.durable.store(position, Ordering::SeqCst);
        assert_eq!((engine.durable(), engine.holds_replies(&worker)), (position, None));
        engine.replies_may_leave();
        engine.replies_may_leave();
        assert_eq!(woken.load(Ordering::Relaxed), 1, "a worker is woken once for what it holds");
        engine.holds_on(&worker);
        engine.replies_may_leave();
        assert_eq!(woken.load(Ordering::Relaxed), 2, "once more for what it goes on holding");
        engine.log(&mut worker, 0, &["FLUSHALL".into()]);
        engine.commit(&mut worker);
        assert!(engine.holds_replies(&worker).is_some());
        // It ends, and still has something to write.
        engine.detach_journal();
        let end = log.end.load(Ordering::Relaxed);
        assert_eq!((engine.durable(), engine.holds_replies(&worker)), (position, Some(end)));
        engine.journal_has_ended();
        assert_eq!(woken.load(Ordering::Relaxed), 3, "they may leave");
        assert_eq!((engine.durable(), engine.holds_replies(&worker)), (u64::MAX, None));
        // The next one begins where it ended.
        engine.attach_journal(Arc::new(Told { end: end.into(), durable: end.into() }));
        assert_eq!((engine.durable(), engine.holds_replies(&worker)), (end, None), "its log is over");
    }

    /// A log that keeps what it is given.
    #[derive(Default)]
    struct Kept(Mutex<Vec<String>>);

    impl Journal for Kept {
        fn append(&self, record: &[u8]) -> u64 {
            self.0.lock().push(String::from_utf8_lossy(record).replace("\r\n", " "));
            1
        }
    }

    const ONE: &str = "*2 $6 APPEND $3 one ";
    const TWO: &str = "*2 $6 APPEND $3 two ";

    fn appended(log: &Kept) -> Vec<String> {
        std::mem::take(&mut *log.0.lock())
    }

    fn append(engine: &Engine, worker: &mut Worker, word: &str) {
        engine.log(worker, 0, &["APPEND".into(), word.into()]);
        engine.commit(worker);
    }

    #[test]
    fn of_a_transaction_a_log_that_another_has_begin_gets_nothing() {
        let engine = Engine::new(Config::new(Machine::detect()), &[], 1);
        let mut worker = engine.worker(0);
        let log = Arc::new(Kept::default());
        engine.begin_unit(&mut worker);
        append(&engine, &mut worker, "one");
        engine.attach_journal(Arc::<Kept>::clone(&log));
        append(&engine, &mut worker, "two");
        engine.end_unit(&mut worker);
        assert_eq!(appended(&log), [""; 0]);
        engine.begin_unit(&mut worker);
        append(&engine, &mut worker, "one");
        engine.detach_journal();
        engine.attach_journal(Arc::<Kept>::clone(&log));
        append(&engine, &mut worker, "two");
        engine.end_unit(&mut worker);
        assert_eq!(appended(&log), [""; 0]);
        append(&engine, &mut worker, "one");
        assert_eq!(appended(&log), [ONE]);
    }

    #[test]
    fn what_comes_behind_a_panic_in_a_transaction_is_logged() {
        let engine = Engine::new(Config::new(Machine::detect()), &[], 1);
        let mut worker = engine.worker(0);
        let log = Arc::new(Kept::default());
        engine.attach_journal(Arc::<Kept>::clone(&log));
        engine.begin_unit(&mut worker);
        assert_eq!(engine.key_count(0), Some(0), "it only reads so far");
        engine.unit_changes(&mut worker);
        append(&engine, &mut worker, "one");
        assert_eq!(engine.key_count(0), None, "it is in the middle of a change");
        engine.after_panic(&mut worker);
        append(&engine, &mut worker, "two");
        assert_eq!((appended(&log), engine.key_count(0)), (vec![TWO.to_owned()], Some(0)));
    }

    #[test]
    fn a_script_that_held_no_shard_is_of_the_log_that_has_begun_meanwhile() {
        let engine = Engine::new(Config::new(Machine::detect()), &[], 1);
        let mut worker = engine.worker(0);
        let log = Arc::new(Kept::default());
        engine.begin_unit(&mut worker);
        engine.attach_journal(Arc::<Kept>::clone(&log));
        engine.unit_holds_first(&mut worker);
        append(&engine, &mut worker, "one");
        engine.end_unit(&mut worker);
        assert_eq!(appended(&log), [ONE]);
    }

    #[test]
    fn a_log_that_begins_or_ends_beside_a_long_argument_has_whole_commands() {
        let engine = Engine::new(Config::new(Machine::detect()), &[], 1);
        let mut worker = engine.worker(0);
        let log = Arc::new(Kept::default());
        let attach = || engine.attach_journal(Arc::<Kept>::clone(&log));
        let spans = [Span::bytes(0, 3), Span::bytes(3, 1), Span::big(0)];
        let mut run = |begin: &dyn Fn(), middle: &dyn Fn()| {
            let bigs = [BigArg::new(Rope::from(&vec![b'x'; 100_000][..]))];
            let args = Args::new(&spans, b"SETk", &[], &bigs);
            begin();
            engine.prepare_record(&mut worker, &SET, &args);
            middle();
            assert_eq!(bigs[0].take().len(), 100_000);
            engine.log_command(&mut worker, 0, &Ok(Effect::Verbatim), &args);
            let of_long = appended(&log);
            append(&engine, &mut worker, "one");
            (of_long.len(), appended(&log))
        };
        let (detach, nothing) = (|| engine.detach_journal(), || ());
        assert_eq!(run(&nothing, &attach), (0, vec![ONE.to_owned()]), "the base has it");
        assert_eq!(run(&nothing, &nothing), (1, vec![ONE.to_owned()]));
        assert_eq!(run(&nothing, &detach), (0, Vec::new()));
        assert_eq!(run(&attach, &nothing), (1, vec![ONE.to_owned()]), "and not what was prepared for another");
        let switch = || {
            engine.detach_journal();
            attach();
        };
        assert_eq!(run(&nothing, &switch), (1, vec![ONE.to_owned()]));
        engine.detach_journal();
        // Its shard was locked only when the log had begun.
        let bigs = [BigArg::new(Rope::from(&vec![b'x'; 100_000][..]))];
        let args = Args::new(&spans, b"SETk", &[], &bigs);
        engine.prepare_record(&mut worker, &SET, &args);
        attach();
        engine.prepare_record_anew(&mut worker, &SET, &args);
        assert_eq!(bigs[0].take().len(), 100_000);
        engine.log_command(&mut worker, 0, &Ok(Effect::Verbatim), &args);
        assert_eq!(appended(&log).len(), 1);
    }

    #[test]
    fn who_has_written_waits_also_where_a_transaction_has_the_log_end() {
        let engine = Engine::new(Config::new(Machine::detect()), &[], 1);
        engine.attach_journal(Arc::new(Told::default()));
        let (mut worker, mut other) = (engine.worker(0), engine.worker(engine.workers()));
        engine.begin_call(&mut worker);
        append(&engine, &mut worker, "one");
        let position = engine.holds_replies(&worker);
        assert!(position.is_some());
        let expected = engine.begin_switching_unit(&mut other);
        engine.detach_journal();
        engine.follow_journal(&mut worker);
        assert_eq!(engine.holds_replies(&worker), position);
        engine.end_switching_unit(&mut other, expected);
        engine.journal_has_ended();
        assert_eq!(engine.holds_replies(&worker), None);
    }

    #[test]
    fn a_transaction_that_has_the_log_begin_or_end_is_whole_or_absent() {
        let engine = Engine::new(Config::new(Machine::detect()), &[], 1);
        let mut worker = engine.worker(0);
        let log = Arc::new(Kept::default());
        let attach = || engine.attach_journal(Arc::<Kept>::clone(&log));
        let both = format!("*1 $5 MULTI {ONE}{TWO}*1 $4 EXEC ");
        // Where the log begins: before both, between them, behind them; and where it ends and begins between them.
        for place in 0..3 {
            for ends_before in [false, true] {
                let step = |at: usize| {
                    if at == place {
                        if ends_before {
                            engine.detach_journal();
                        }
                        attach();
                    }
                };
                if ends_before {
                    attach();
                }
                let expected = engine.begin_switching_unit(&mut worker);
                step(0);
                append(&engine, &mut worker, "one");
                step(1);
                append(&engine, &mut worker, "two");
                step(2);
                engine.end_switching_unit(&mut worker, expected);
                assert_eq!(appended(&log), [both.as_str()], "{place} {ends_before}");
                append(&engine, &mut worker, "one");
                assert_eq!(appended(&log), [ONE]);
                engine.detach_journal();
                assert!(!engine.is_journaling());
            }
        }
        attach();
        let expected = engine.begin_switching_unit(&mut worker);
        append(&engine, &mut worker, "one");
        engine.detach_journal();
        append(&engine, &mut worker, "two");
        engine.end_switching_unit(&mut worker, expected);
        assert!(appended(&log).is_empty() && !engine.is_journaling(), "the log ended before the transaction did");
        // Nobody had it begin.
        let expected = engine.begin_switching_unit(&mut worker);
        append(&engine, &mut worker, "one");
        engine.end_switching_unit(&mut worker, expected);
        attach();
        append(&engine, &mut worker, "two");
        assert_eq!(appended(&log), [TWO]);
    }
}
