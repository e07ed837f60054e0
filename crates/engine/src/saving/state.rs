//! What is known of saving: what goes on, when it last went well, and what INFO says of it. Knows no file.

use super::end::End;
use crate::config::SavePoint;
use crate::snapshot::{Progress, Snapshot};
use parking_lot::{Condvar, Mutex};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// How long none is tried by itself after one has failed, in seconds: Redis's.
const RETRY_S: u64 = 5;

/// Who waits for a save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A client.
    Foreground,
    /// The end of the process.
    End,
    /// Nobody.
    Background,
}

/// How a save has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The file is there.
    Saved,
    /// It is not.
    Failed,
    /// It was called off, which says nothing about the disk.
    CalledOff,
}

/// What BGSAVE CANCEL has called off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalledOff {
    /// The save that was under way.
    Running,
    /// The one that was to begin as soon as it could.
    Scheduled,
}

struct Running {
    snapshot: Arc<Snapshot>,
    kind: Kind,
    started: Instant,
    /// Changes of keys before its moment.
    changes: u64,
}

struct State {
    running: Option<Running>,
    /// Whether one is to begin as soon as it can.
    is_scheduled: bool,
    /// When the data was last on disk, in seconds since the UNIX epoch, and changes of keys before that.
    saved_s: u64,
    saved_changes: u64,
    /// When one was last begun in the background.
    tried_s: u64,
    is_well: bool,
    took: Option<Duration>,
    tries: u64,
    /// Of the last one that is over.
    last: Progress,
}

/// What goes on and what has gone on.
pub struct Saving {
    state: Mutex<State>,
    ended: Condvar,
    /// The file that is being written, under the name that it has until it is whole.
    pub(super) unfinished: Mutex<Option<PathBuf>>,
    /// Whether the process ends.
    pub(super) end: End,
    /// Whether a thread is about to begin one that is due.
    pub(super) starting: AtomicBool,
}

/// What INFO says of it.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Changes of keys since the data was last on disk.
    pub changes: u64,
    /// How long the one in the background has been going on.
    pub current: Option<Duration>,
    /// When the data was last on disk, in seconds since the UNIX epoch.
    pub saved_s: u64,
    /// Whether the last one in the background went well.
    pub is_well: bool,
    /// How long that took.
    pub took: Option<Duration>,
    /// How many were begun since the start or since statistics were reset.
    pub tries: u64,
    /// How far the present one has come, whoever waits for it.
    pub progress: Option<Progress>,
    /// How far the last one had come.
    pub last: Progress,
}

impl Saving {
    /// Nothing was saved yet; the present counts as the last time, as there is nothing that would be lost.
    pub fn new(now_s: u64) -> Saving {
        Saving {
            state: Mutex::new(State {
                running: None,
                is_scheduled: false,
                saved_s: now_s,
                saved_changes: 0,
                tried_s: 0,
                is_well: true,
                took: None,
                tries: 0,
                last: Progress::default(),
            }),
            ended: Condvar::new(),
            unfinished: Mutex::new(None),
            end: End::default(),
            starting: AtomicBool::new(false),
        }
    }

    /// What there is to say, with so many changes of keys up to now.
    pub fn facts(&self, changes: u64) -> Facts {
        let state = self.state.lock();
        let running = state.running.as_ref();
        Facts {
            changes: changes.saturating_sub(state.saved_changes),
            current: running.filter(|it| it.kind == Kind::Background).map(|it| it.started.elapsed()),
            saved_s: state.saved_s,
            is_well: state.is_well,
            took: state.took,
            tries: state.tries,
            progress: running.map(|it| it.snapshot.progress()),
            last: state.last,
        }
    }

    /// None was begun, as far as INFO says.
    pub(crate) fn reset_tries(&self) {
        self.state.lock().tries = 0;
    }

    /// When the data was last on disk, in seconds since the UNIX epoch.
    pub fn saved_s(&self) -> u64 {
        self.state.lock().saved_s
    }

    /// Whether one is under way.
    pub fn is_running(&self) -> bool {
        self.state.lock().running.is_some()
    }

    /// Has one begin as soon as it can.
    pub(super) fn schedule(&self) {
        self.state.lock().is_scheduled = true;
    }

    /// None is to begin as soon as it can any more; tells whether one was.
    pub(super) fn take_scheduled(&self) -> bool {
        std::mem::take(&mut self.state.lock().is_scheduled)
    }

    /// Whether one is to begin now, for a save point or because it was asked for.
    pub(super) fn is_due(&self, points: impl FnOnce() -> Vec<SavePoint>, changes: u64, now_s: u64) -> bool {
        let state = self.state.lock();
        if state.running.is_some() {
            return false;
        }
        let may_try = state.is_well || now_s.saturating_sub(state.tried_s) > RETRY_S;
        if state.is_scheduled {
            return may_try;
        }
        let changes = changes.saturating_sub(state.saved_changes);
        let since_s = now_s.saturating_sub(state.saved_s);
        let is_reached = |point: &SavePoint| changes >= u64::from(point.changes) && since_s > point.seconds;
        changes > 0 && may_try && points().iter().any(is_reached)
    }

    /// Notes that one in the background has failed before it could begin, which it does again after a while.
    pub(super) fn could_not_begin(&self, now_s: u64) {
        let mut state = self.state.lock();
        state.tries += 1;
        state.tried_s = now_s;
        state.is_well = false;
    }

    /// Notes that one has begun.
    pub(super) fn began(&self, snapshot: &Arc<Snapshot>, kind: Kind, changes: u64, now_s: u64) {
        let mut state = self.state.lock();
        state.tries += 1;
        if kind == Kind::Background {
            state.tried_s = now_s;
        }
        state.running = Some(Running { snapshot: Arc::clone(snapshot), kind, started: Instant::now(), changes });
    }

    /// Notes that so many changes are nobody's: data has gone and come again.
    pub(crate) fn leave_out(&self, changes: u64) {
        self.state.lock().saved_changes += changes;
    }

    /// Notes how the one that is under way has ended, and calls `follow` with whether the last one has failed, before anybody is
    /// told so; gives how long it took.
    pub(super) fn ended(&self, outcome: Outcome, now_s: u64, follow: impl FnOnce(bool)) -> Duration {
        let mut state = self.state.lock();
        let running = state.running.take().expect("who ends has begun");
        let took = running.started.elapsed();
        state.last = running.snapshot.progress();
        if outcome == Outcome::Saved {
            state.saved_s = now_s;
            state.saved_changes = running.changes;
        }
        if outcome == Outcome::Saved || running.kind == Kind::Background && outcome == Outcome::Failed {
            state.is_well = outcome == Outcome::Saved;
        }
        if running.kind == Kind::Background {
            state.took = Some(took);
        }
        follow(!state.is_well);
        drop(state);
        self.ended.notify_all();
        took
    }

    /// Calls off the one that is under way and waits until it is over.
    pub(super) fn call_off(&self) {
        let mut state = self.state.lock();
        state.is_scheduled = false;
        while let Some(running) = &state.running {
            running.snapshot.cancel();
            self.ended.wait(&mut state);
        }
    }

    /// Calls off what is under way, if it is of this kind, without waiting; tells whether anything was.
    pub(super) fn cancel(&self, kind: Option<Kind>) -> bool {
        let state = self.state.lock();
        let running = state.running.as_ref().filter(|running| kind.is_none_or(|kind| running.kind == kind));
        running.inspect(|running| running.snapshot.cancel()).is_some()
    }

    /// Calls off what is under way in the background, or else what is scheduled; does not wait.
    pub fn call_off_background(&self) -> Option<CalledOff> {
        let mut state = self.state.lock();
        if let Some(running) = state.running.as_ref().filter(|running| running.kind == Kind::Background) {
            running.snapshot.cancel();
            return Some(CalledOff::Running);
        }
        std::mem::take(&mut state.is_scheduled).then_some(CalledOff::Scheduled)
    }

    /// Calls `follow` with whether the last one in the background has failed, before another one can say something else.
    pub(super) fn follow(&self, follow: impl FnOnce(bool)) {
        let state = self.state.lock();
        follow(!state.is_well);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_reached_by_time_and_changes() {
        let saving = Saving::new(1_000);
        let points = || vec![SavePoint { seconds: 60, changes: 10 }, SavePoint { seconds: 600, changes: 1 }];
        assert!(!saving.is_due(points, 9, 1_500));
        assert!(!saving.is_due(points, 10, 1_060));
        assert!(saving.is_due(points, 10, 1_061));
        assert!(saving.is_due(points, 1, 1_601));
        assert!(!saving.is_due(points, 0, 9_999), "there is nothing to save");
        assert!(!saving.is_due(Vec::new, 1_000, 9_999));
        saving.schedule();
        assert!(saving.is_due(Vec::new, 0, 1_000), "it was asked for");
        assert_eq!(saving.call_off_background(), Some(CalledOff::Scheduled));
        assert_eq!(saving.call_off_background(), None);
        assert!(!saving.is_due(Vec::new, 0, 1_000));
        saving.schedule();
        assert!(saving.take_scheduled() && !saving.take_scheduled());
        assert!(!saving.is_due(Vec::new, 0, 1_000), "one has its moment");
    }

    #[test]
    fn one_that_could_not_begin_is_tried_again_after_a_while() {
        let saving = Saving::new(1_000);
        saving.schedule();
        saving.could_not_begin(2_000);
        assert!(!saving.facts(0).is_well && !saving.is_due(Vec::new, 0, 2_005));
        assert!(saving.is_due(Vec::new, 0, 2_006), "it is still wanted");
    }

    #[test]
    fn who_follows_a_failure_is_not_overtaken_by_a_save_that_ends_well() {
        let saving = Saving::new(1_000);
        saving.could_not_begin(2_000);
        saving.follow(|has_failed| {
            assert!(has_failed && saving.state.is_locked(), "nobody says something else meanwhile")
        });
    }
}
