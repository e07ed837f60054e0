//! What is synced when, what replies wait for, and what a failed sync means.

use super::*;
use std::sync::Condvar;

#[test]
fn always_means_that_an_answer_survives() {
    let fixture = start(Policy::Always, "");
    for round in 1..50u64 {
        let position = fixture.log.append(b"record;");
        until(|| fixture.log.may_answer(position));
        let left = fixture.memory.after_crash(|_| 0).content(&path(0)).expect("its name was synced");
        assert!(left.len() as u64 >= 7 * round);
    }
}

#[test]
fn who_asks_waits_for_the_disk_under_any_policy() {
    for policy in [Policy::No, Policy::EverySecond] {
        let fixture = start(policy, "");
        let position = fixture.log.append(b"record");
        assert!(fixture.log.may_answer(position), "nobody waits for the disk");
        assert!(fixture.log.wait_durable(position, LONG));
        assert_eq!(fixture.memory.after_crash(|_| 0).content(&path(0)).as_deref(), Some(&b"record"[..]));
    }
}

/// A file whose syncs wait until they are let go.
struct Gated {
    inner: Arc<dyn File>,
    gate: Arc<(Mutex<Gate>, Condvar)>,
}

#[derive(Default)]
struct Gate {
    arrived: u64,
    let_go: u64,
}

impl File for Gated {
    fn write(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        self.inner.write(bytes)
    }
    fn sync(&self) -> io::Result<()> {
        let mut gate = self.gate.0.lock().expect("nobody panics");
        gate.arrived += 1;
        let mine = gate.arrived;
        self.gate.1.notify_all();
        drop(self.gate.1.wait_while(gate, |gate| gate.let_go < mine).expect("nobody panics"));
        self.inner.sync()
    }
    fn truncate(&self, len: u64) -> io::Result<()> {
        self.inner.truncate(len)
    }
    fn size(&self) -> io::Result<u64> {
        self.inner.size()
    }
}

/// A log over a file whose syncs wait.
pub(super) struct GatedLog {
    files: Faulty<Memory>,
    gate: Arc<(Mutex<Gate>, Condvar)>,
    pub(super) heard: Arc<Heard>,
    pub(super) log: Log,
}

impl GatedLog {
    pub(super) fn start(policy: Policy) -> GatedLog {
        let gate = Arc::new((Mutex::new(Gate::default()), Condvar::new()));
        let files = Faulty::new(Memory::new(), "".parse().expect("a plan"));
        let inner = files.create(Path::new("f")).expect("it can be made");
        let file = Arc::new(Gated { inner, gate: gate.clone() });
        let heard = Arc::new(Heard::default());
        let log = Log::start(file, &settings(policy), heard.clone()).expect("threads can be started");
        GatedLog { files, gate, heard, log }
    }

    /// Waits until so many syncs have begun.
    pub(super) fn await_syncs(&self, count: u64) {
        let gate = self.gate.0.lock().expect("nobody panics");
        let arrived = self.gate.1.wait_timeout_while(gate, LONG, |gate| gate.arrived < count).expect("nobody panics");
        assert!(!arrived.1.timed_out(), "no more than {} have come", arrived.0.arrived);
    }

    /// Has what is done with the file fail as this plan says.
    pub(super) fn fail(&self, plan: &str) {
        self.files.set(plan.parse().expect("a plan"));
    }

    /// Lets so many go on, counted from the first.
    pub(super) fn let_go(&self, count: u64) {
        self.gate.0.lock().expect("nobody panics").let_go = count;
        self.gate.1.notify_all();
    }
}

impl Drop for GatedLog {
    fn drop(&mut self) {
        // The log's threads end with it.
        self.let_go(u64::MAX);
    }
}

#[test]
fn replies_wait_for_a_writer_that_is_held_up() {
    for policy in [Policy::No, Policy::EverySecond] {
        let gated = GatedLog::start(policy);
        let GatedLog { log, heard, .. } = &gated;
        // Whoever asks has this thread sync, and it is held up.
        let first = log.append(b"first ");
        assert!(!log.wait_durable(first, Duration::ZERO));
        gated.await_syncs(1);
        let second = log.append(b"second ");
        assert!(log.may_answer(second), "not yet for long");
        until(|| {
            log.watch();
            !log.may_answer(second)
        });
        assert_eq!(log.answerable(), first, "what is written has left");
        assert_eq!(*heard.events.lock().unwrap(), [Event::HeldUp]);
        assert_eq!(log.statistics().held_up, 1);
        assert!(log.may_answer(first));
        let before = heard.may_answer.load(Ordering::SeqCst);
        gated.let_go(u64::MAX);
        until(|| heard.may_answer.load(Ordering::SeqCst) > before);
        // It comes on again: nothing has to wait any more.
        until(|| log.may_answer(u64::MAX - 1));
    }
}

#[test]
fn what_comes_during_a_sync_goes_with_the_next_one() {
    let gated = GatedLog::start(Policy::Always);
    let log = &gated.log;
    let first = log.append(b"first ");
    gated.await_syncs(1);
    let last = (0..50).map(|_| log.append(b"later ")).last().expect("there are some");
    assert!(!log.may_answer(first));
    gated.let_go(1);
    until(|| log.may_answer(first));
    assert!(!log.may_answer(last));
    gated.let_go(2);
    until(|| log.may_answer(last));
    assert_eq!(log.statistics().syncs, 2, "all 50 in one");
    // Who changes the policy holds nobody up any more.
    let held = log.append(b"held ");
    gated.await_syncs(3);
    assert!(!log.may_answer(held));
    log.set_policy(Policy::EverySecond);
    assert!(log.may_answer(held));
}

#[test]
fn a_switch_waits_for_the_sync_that_is_under_way() {
    let gated = GatedLog::start(Policy::EverySecond);
    let log = &gated.log;
    let position = log.append(b"record ");
    gated.await_syncs(1);
    log.prepare_switch(Memory::new().create(Path::new("next")).expect("it can be made"))
        .expect("no other is under way");
    assert_eq!(log.cut(), position);
    // Should it sync all the same, it most likely does so by then.
    assert!(!log.wait_switched(Duration::from_millis(50)));
    let arrived = gated.gate.0.lock().expect("nobody panics").arrived;
    assert_eq!(arrived, 1, "one sync of a file at a time");
    gated.let_go(u64::MAX);
    assert!(log.wait_switched(LONG));
    assert_eq!((log.durable(), log.statistics().syncs), (position, 1));
}

#[test]
fn a_sync_that_fails_of_a_file_that_nobody_needs_means_nothing() {
    // With time, the writer most likely waits for the sync when the file is not needed any more.
    for time in [Duration::ZERO, Duration::from_millis(50)] {
        a_late_sync_fails(time);
    }
}

/// `time` lies between the cut and the snapshot that takes its place.
fn a_late_sync_fails(time: Duration) {
    let gated = GatedLog::start(Policy::EverySecond);
    let log = &gated.log;
    log.append(b"record ");
    gated.await_syncs(1);
    let next = gated.files.create(Path::new("next")).expect("it can be made");
    log.prepare_switch(next).expect("no other is under way");
    let cut = log.cut();
    assert!(!log.wait_switched(time), "the snapshot is not there yet");
    log.drop_before_switch();
    assert!(log.wait_switched(LONG), "what a snapshot holds need not be synced");
    log.trust_from(log.generation(), cut);
    assert_eq!(log.durable(), cut);
    gated.files.set("sync:eio@1".parse().expect("a plan"));
    gated.let_go(1);
    until(|| !log.statistics().sync_pending);
    assert_eq!((log.refuses_writes(), log.needs_rewrite()), (None, false));
    // In the file behind it one does.
    let behind = log.append(b"behind");
    gated.files.set("sync:eio@1".parse().expect("a plan"));
    assert!(!log.wait_durable(behind, Duration::from_millis(50)));
    until(|| log.needs_rewrite());
}

#[test]
fn what_is_not_synced_during_a_rewrite_is_answered_and_not_durable() {
    let fixture = start(Policy::Always, "");
    let Fixture { log, memory, .. } = &fixture;
    log.set_no_sync_during_rewrite(true);
    log.set_snapshotting(true);
    let first = log.append(b"first;");
    until(|| log.may_answer(first));
    assert_eq!(fixture.heard.may_answer.load(Ordering::SeqCst), first);
    assert_eq!((log.durable(), log.statistics().syncs), (0, 0));
    // Who asks for it has it synced all the same.
    assert!(log.wait_durable(first, LONG));
    let on_disk = || memory.after_crash(|_| 0).content(&path(0)).expect("its name was synced");
    assert_eq!(on_disk(), b"first;");
    let second = log.append(b"second;");
    until(|| log.may_answer(second));
    assert_eq!(on_disk(), b"first;");
    // So has a switch, and the end of the rewrite.
    log.prepare_switch(fixture.next_file(1)).expect("no other is under way");
    let cut = log.cut();
    assert!(log.wait_switched(LONG));
    assert!(log.durable() >= cut);
    assert_eq!(on_disk(), b"first;second;");
    let third = log.append(b"third;");
    until(|| log.may_answer(third));
    assert_eq!(log.durable(), cut);
    log.set_snapshotting(false);
    until(|| log.durable() == third);
}

#[test]
fn after_a_failed_sync_only_a_rewrite_helps() {
    let fixture = start(Policy::Always, "sync:eio@2");
    let first = fixture.log.append(b"first;");
    until(|| fixture.log.may_answer(first));
    let lost = fixture.log.append(b"lost;");
    until(|| fixture.log.needs_rewrite());
    assert_eq!(fixture.heard.rewrites.load(Ordering::SeqCst), 1);
    let text = "MISCONF Errors writing to the AOF file: Input/output error";
    assert_eq!(fixture.log.refuses_writes().map(|reason| reason.to_string()).as_deref(), Some(text));
    // Syncs would succeed now; they are not believed.
    let more = fixture.log.append(b"more;");
    until(|| fixture.log.written() == more);
    assert!(!fixture.log.wait_durable(lost, Duration::from_millis(50)));

    fixture.log.prepare_switch(fixture.next_file(1)).expect("no other is under way");
    let cut = fixture.log.cut();
    assert!(fixture.log.wait_switched(LONG));
    let behind = fixture.log.append(b"behind;");
    until(|| fixture.log.written() == behind);
    assert!(fixture.log.needs_rewrite(), "the snapshot is not there yet");
    assert_eq!(fixture.log.durable(), first);
    fixture.log.trust_from(fixture.log.generation(), cut);
    until(|| fixture.log.may_answer(behind));
    assert_eq!(fixture.log.refuses_writes(), None);
    assert_eq!(fixture.content(0), "first;lost;more;");
    assert_eq!(fixture.content(1), "behind;");
}

#[test]
fn a_sync_that_fails_behind_the_cut_needs_another_rewrite() {
    let fixture = start(Policy::Always, "sync:eio@2");
    fixture.log.append(b"old;");
    fixture.log.prepare_switch(fixture.next_file(1)).expect("no other is under way");
    until(|| fixture.log.durable() == 4);
    let cut = fixture.log.cut();
    assert!(fixture.log.wait_switched(LONG));
    fixture.log.append(b"new;");
    until(|| fixture.log.needs_rewrite());
    fixture.log.trust_from(fixture.log.generation(), cut);
    assert!(fixture.log.needs_rewrite());
    assert_eq!(fixture.log.durable(), cut);
}
