//! What is done about what the log tells: replies leave, writes are refused, operators are told. Knows no file.

use crate::engine::Engine;
use crate::meanwhile;
use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tenon_journal::Hooks;
use tenon_journal::log::Event;

/// Called by the log's threads, and by who appends.
pub(super) struct LogHooks {
    engine: Weak<Engine>,
}

impl LogHooks {
    pub(super) fn new(engine: Weak<Engine>) -> LogHooks {
        LogHooks { engine }
    }
}

impl Hooks for LogHooks {
    fn may_answer(&self, _position: u64) {
        if let Some(engine) = self.engine.upgrade() {
            engine.replies_may_leave();
        }
    }

    fn needs_rewrite(&self) {
        if let Some(engine) = self.engine.upgrade() {
            engine.aof.wanted.store(true, Ordering::Relaxed);
        }
    }

    fn room_is_short(&self, is_short: bool) {
        let Some(engine) = self.engine.upgrade() else { return };
        if is_short {
            engine.pause.begin_for_log();
        } else {
            engine.go_on(engine.pause.end_for_log());
        }
    }

    fn waits_for_room(&self) {
        // The worker's other clients need not wait.
        meanwhile::lend_long();
    }

    fn event(&self, event: &Event) {
        match event {
            Event::WritesAgain => tracing::info!("{event}"),
            _ => tracing::warn!("{event}"),
        }
        let Some(engine) = self.engine.upgrade() else { return };
        match event {
            Event::WriteFailed(why) | Event::NoRoom(why) | Event::SyncFailed(why) => {
                engine.refuse_writes_for_log(Some(why));
            }
            Event::WritesAgain => engine.look_at_log(),
            Event::NotCut(_) | Event::SyncIsSlow | Event::HeldUp | Event::EndsWithProcess(_) => {}
        }
    }

    fn took(&self, name: &'static str, time: Duration) {
        // The monitor's least threshold is a millisecond, and nearly nothing takes so long.
        if time < Duration::from_millis(1) {
            return;
        }
        if let Some(engine) = self.engine.upgrade() {
            let now_ms = crate::clock::now_us() / 1_000;
            let threshold_ms = engine.config.latency_monitor_threshold();
            engine.latency.note(name, time.as_millis() as u64, threshold_ms, now_ms);
        }
    }
}

impl Engine {
    /// Refuses writes or takes them again, as it stands with the log.
    pub(super) fn look_at_log(&self) {
        self.refuse_writes_as_is(|| {
            let reason = self.append_only().and_then(|append_only| append_only.log().refuses_writes());
            reason.map(|reason| reason.error.to_string())
        });
    }
}
