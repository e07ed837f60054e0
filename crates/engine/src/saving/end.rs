//! The end of the process: what has to be on disk before, and who may call it off meanwhile. Knows no command and no signal.
//!
//! ```text
//!   goes on -- SHUTDOWN, a signal --> comes -- all is on disk --> certain
//!      ^                                |
//!      +---- it cannot be, or ABORT ----+
//! ```
//!
//! Who asks for the end while one comes waits for that: it ends with it, or has its own turn when it fails, as it may want the end
//! whatever fails. ABORT calls off all that were asked for before, and none that is asked for behind it.
//!
//! The log's first base comes first, while clients go on: without that the log says nothing of what was there before; then what
//! a log has confirmed that cannot be written just now. To save comes next: writes wait, every call that is under way ends, and
//! then is the moment. An end that does not save has writes wait, too, until the scripts have ended that have written: half of one
//! must be nowhere.
//!
//! SHUTDOWN NOSAVE waits for none of that. A script that has written and goes on is left behind: what it has changed is seen by
//! nobody, as it holds its shards, and is in no log, as its record goes there at its end. So the process may end in its middle.

use super::run::Refusal;
use super::state::Kind;
use crate::clients::Message;
use crate::context::SessionCx;
use crate::engine::Engine;
use crate::errand::{Finish, Work};
use crate::errors::CmdError;
use crate::scripting::LongScript;
use crate::worker::Worker;
use parking_lot::{Condvar, Mutex};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tenon_wire::resp::Reply;

/// How often it is looked whether what stands against saving is over.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// How long the end of the process waits for a disk that does not take the log. Supervisors wait for ten seconds and more.
const LOG_WRITES_MAX: Duration = Duration::from_secs(5);

/// What can be done about an end that waits for scripts, behind which ones they are.
const REMEDY: &str = "; SHUTDOWN ABORT calls the end off, SHUTDOWN NOSAVE ends without them";

/// Whether the end of the process saves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It does.
    Save,
    /// It does not.
    NoSave,
    /// If there are save points, or the setting `save-on-exit` says so.
    AsConfigured,
}

/// What becomes of the end of the process when the data cannot be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// It does not end.
    GoOn,
    /// It ends all the same.
    EndAnyway,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    GoesOn,
    Comes,
    CalledOff,
    Certain,
}

/// How near the end is.
#[derive(Debug, Default)]
pub(super) struct End {
    course: Mutex<Course>,
    /// Told of when an end that came has failed, was called off or is certain.
    moved: Condvar,
    /// When the process ends whatever scripts still run, where it is not to wait for them.
    leaves_at: OnceLock<Instant>,
    /// Whether everybody is being told that the process ends. Set while the course is locked.
    is_asked_for: AtomicBool,
    /// How many were asked for in the background and have not failed.
    in_background: AtomicUsize,
}

#[derive(Debug, Default)]
struct Course {
    stage: Stage,
    /// How many threads wait for their turns.
    waiting: usize,
    /// How often ends were called off.
    aborts: u64,
}

/// An end that was asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    ending: Ending,
    on_failure: OnFailure,
    /// How often ends had been called off before.
    aborts: u64,
}

impl End {
    fn ask(&self, ending: Ending, on_failure: OnFailure) -> Asked {
        Asked { ending, on_failure, aborts: self.course.lock().aborts }
    }

    /// Has an end come when it is its turn; `false`: another one is certain.
    ///
    /// # Errors
    /// When it was called off before.
    fn begin(&self, asked: Asked) -> io::Result<bool> {
        let mut course = self.course.lock();
        course.waiting += 1;
        while matches!(course.stage, Stage::Comes | Stage::CalledOff) && course.aborts == asked.aborts {
            self.moved.wait(&mut course);
        }
        course.waiting -= 1;
        if course.aborts != asked.aborts {
            return Err(called_off());
        }
        let is_certain = course.stage == Stage::Certain;
        if !is_certain {
            course.stage = Stage::Comes;
        }
        Ok(!is_certain)
    }

    /// Makes the end certain that comes, unless it was called off.
    fn make_certain(&self) -> bool {
        let mut course = self.course.lock();
        let comes = course.stage == Stage::Comes;
        if comes {
            course.stage = Stage::Certain;
            self.moved.notify_all();
        }
        comes
    }

    fn comes(&self) -> bool {
        self.course.lock().stage == Stage::Comes
    }

    fn is_called_off(&self) -> bool {
        self.course.lock().stage == Stage::CalledOff
    }
}

fn called_off() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "it was called off")
}

/// Ends a connection whose client has ended the process, or answers why it goes on.
struct Leave {
    ends: bool,
}

impl Finish for Leave {
    fn finish(self: Box<Self>, cx: &mut SessionCx<'_>, _: &mut Reply<'_>) -> Result<Option<Work>, CmdError> {
        if !self.ends {
            return Err(CmdError::text("ERR Errors trying to SHUTDOWN. Check logs."));
        }
        cx.session.closing = true;
        Ok(None)
    }
}

/// Scripts in a line for the operator.
fn shown(scripts: &[Arc<LongScript>]) -> String {
    let one = |script: &Arc<LongScript>| format!("{} (for {} s)", script.name, script.started.elapsed().as_secs());
    scripts.iter().map(one).collect::<Vec<_>>().join(", ")
}

impl Engine {
    /// Whether the end of the process saves.
    fn saves_at_end(&self, ending: Ending) -> bool {
        if self.is_loading() {
            // What is not whole must not take the file's place that it comes from.
            return false;
        }
        match ending {
            Ending::Save => true,
            Ending::NoSave => false,
            Ending::AsConfigured => self.config.save_on_exit() || !self.config.save().is_empty(),
        }
    }

    /// Whether nothing has to come on disk before the process ends, or need not, no script has to come to its end, and no other
    /// end comes, which may save.
    fn may_end_now(&self, ending: Ending, on_failure: OnFailure) -> bool {
        self.is_disk_ready(ending, on_failure) && self.scripts.running.to_end_whole().is_empty() && !self.is_ending()
    }

    /// Whether nothing has to come on disk before the process ends, or need not.
    fn is_disk_ready(&self, ending: Ending, on_failure: OnFailure) -> bool {
        !self.saves_at_end(ending) && self.is_log_ready(on_failure)
    }

    /// The same of the log alone.
    fn is_log_ready(&self, on_failure: OnFailure) -> bool {
        on_failure == OnFailure::EndAnyway || self.is_log_whole() && self.log_is_behind().is_none()
    }

    /// Whether the data is coming on disk, or scripts come to their ends, because the process is to end.
    pub fn is_ending(&self) -> bool {
        let course = self.saving.end.course.lock();
        matches!(course.stage, Stage::Comes | Stage::Certain) || course.waiting > 0
    }

    /// Whether such an end was asked for by [`Engine::end_in_background`], and has not failed.
    pub fn is_ending_in_background(&self) -> bool {
        self.saving.end.in_background.load(Ordering::Relaxed) > 0
    }

    /// Calls off the end of the process, as long as it is not certain, whoever has asked for it; tells whether it came.
    pub fn call_off_end(&self) -> bool {
        let mut course = self.saving.end.course.lock();
        let came = course.stage == Stage::Comes;
        if course.stage == Stage::Certain || !came && course.waiting == 0 {
            return false;
        }
        course.aborts += 1;
        self.saving.end.moved.notify_all();
        if came {
            course.stage = Stage::CalledOff;
            // Before the next one has its turn, whose save this is not for.
            self.saving.cancel(Some(Kind::End));
        }
        true
    }

    /// Brings on disk what has to be there before the process ends; it may end then. No worker's thread waits for this.
    ///
    /// # Errors
    /// When that could not be done or was called off; then everything goes on.
    fn prepare_end(&self, asked: Asked) -> io::Result<()> {
        let end = &self.saving.end;
        if !end.begin(asked)? {
            return Ok(());
        }
        let mut result = self.bring_on_disk(asked.ending, asked.on_failure);
        if let Err(error) = &result
            && asked.on_failure == OnFailure::EndAnyway
            && !end.is_called_off()
        {
            tracing::error!("the data could not be saved before the end: {error}");
            result = Ok(());
        }
        if result.is_ok() && !end.make_certain() {
            result = Err(called_off());
        }
        if let Err(error) = &result {
            if end.is_called_off() {
                tracing::info!("the end of the process was called off");
            } else {
                tracing::error!("Error trying to save the DB, can't exit: {error}");
            }
            self.go_on_after_all();
        }
        result
    }

    /// The process does not end.
    fn go_on_after_all(&self) {
        // Who sees that writes go on may ask for the end again.
        let mut course = self.saving.end.course.lock();
        // Somebody else may have had the process end meanwhile, without any of this.
        if !self.saving.end.is_asked_for.load(Ordering::Relaxed) {
            self.scripts.running.go_on_after_all();
        }
        let waiting = self.pause.call_off_end();
        course.stage = Stage::GoesOn;
        self.saving.end.moved.notify_all();
        drop(course);
        waiting.into_iter().for_each(|client| self.clients.tell(client, Message::Unpause));
    }

    fn bring_on_disk(&self, ending: Ending, on_failure: OnFailure) -> io::Result<()> {
        let comes = || self.saving.end.comes();
        let await_log = || self.await_log_base(comes).and_then(|()| self.await_log_writes(comes));
        if !self.saves_at_end(ending) {
            let await_if_needed = || if self.is_log_ready(on_failure) { Ok(()) } else { await_log() };
            await_if_needed()?;
            self.await_scripts(comes)?;
            // They may have left a log that has begun, or one that cannot be written.
            return await_if_needed();
        }
        if let Err(error) = await_log() {
            if on_failure == OnFailure::GoOn || !comes() {
                return Err(error);
            }
            // Whoever ends anyway may still have all of it in the file.
            tracing::error!("the append-only file could not be written before the end: {error}");
        }
        self.pause.begin_end(true);
        self.tell_of_scripts_awaited(REMEDY);
        // What they still write is confirmed: it belongs into the file.
        if !self.await_calls(comes) {
            return Err(called_off());
        }
        self.save_for_end(&mut self.worker(self.workers()))
    }

    /// Waits for a log that cannot be written: what it has confirmed lies in memory, and is written as soon as the disk takes it.
    fn await_log_writes(&self, comes: impl Fn() -> bool) -> io::Result<()> {
        let until = Instant::now() + LOG_WRITES_MAX;
        while let Some(why) = self.log_is_behind() {
            if !comes() {
                return Err(called_off());
            }
            if Instant::now() >= until {
                return Err(why);
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    /// Waits for the end of every script of which half may be done, and of what they are a part of. Meanwhile no other one begins to
    /// write, and those that have written nothing are stopped: one of them may have the keys that another one waits for.
    fn await_scripts(&self, comes: impl Fn() -> bool) -> io::Result<()> {
        let running = &self.scripts.running;
        if running.to_end_whole().is_empty() {
            return Ok(());
        }
        self.pause.begin_end(false);
        running.end_all();
        self.tell_of_scripts_awaited(REMEDY);
        if self.await_calls(comes) { Ok(()) } else { Err(called_off()) }
    }

    /// Tells the operator which scripts keep the process from ending, and what can be done about it.
    pub fn tell_of_scripts_awaited(&self, remedy: &str) {
        let scripts = self.scripts.running.to_end_whole();
        if !scripts.is_empty() {
            tracing::warn!("the end waits for scripts in whose middle it must not come: {}{remedy}", shown(&scripts));
        }
    }

    /// Asks for the end of the process, and of the scripts that may end in their middle; tells whether anyone listens.
    pub fn shut_down(&self) -> bool {
        let Some(hook) = self.shutdown.get() else { return false };
        let course = self.saving.end.course.lock();
        self.saving.end.is_asked_for.store(true, Ordering::Relaxed);
        // No worker may be left to do so.
        self.scripts.running.end_all();
        drop(course);
        hook();
        true
    }

    /// Has the process end without what scripts have begun: it is in no log.
    fn leave_scripts(&self) {
        let patience = Duration::from_secs(u64::from(self.config.shutdown_timeout()));
        self.saving.end.leaves_at.get_or_init(|| Instant::now() + patience);
    }

    /// Whether the process, which everybody has been told of that it ends, may do so in the middle of what still runs: it is not to
    /// wait for scripts, all that have to come to their ends are busy, and nobody else is there who is to be answered, or had
    /// `shutdown-timeout` for that.
    pub fn may_leave_scripts(&self) -> bool {
        let Some(leaves_at) = self.saving.end.leaves_at.get() else { return false };
        let scripts = self.scripts.running.to_end_whole();
        let are_alone = scripts.iter().all(|script| script.is_busy()) && self.clients.count() <= scripts.len();
        let may_leave = !scripts.is_empty() && (are_alone || Instant::now() >= *leaves_at);
        if may_leave {
            tracing::warn!(
                "the process ends in the middle of scripts, of which nothing is in the log that they have not let others have before: {}",
                shown(&scripts)
            );
        }
        may_leave
    }

    fn save_for_end(&self, worker: &mut Worker) -> io::Result<()> {
        while self.saving.end.comes() {
            self.saving.call_off();
            match self.begin_save(worker, Kind::End) {
                Ok(save) => {
                    if !self.saving.end.comes() {
                        // Whoever called it off may have found nothing to cancel yet.
                        save.snapshot().cancel();
                    }
                    return self.write_save(save);
                }
                Err(Refusal::Saving) => {}
                // As in Redis a rewrite is stopped that the log can do without.
                Err(Refusal::OtherSnapshot) if self.is_log_whole() => {
                    self.stop_rewrite();
                    std::thread::sleep(LOOK_AGAIN);
                }
                Err(Refusal::OtherSnapshot) => self.await_log_base(|| self.saving.end.comes())?,
            }
        }
        Err(called_off())
    }

    /// Ends the process as soon as what has to be is on disk; tells whether it does. No worker's thread waits for this.
    pub fn end(&self, ending: Ending, on_failure: OnFailure) -> bool {
        self.end_as(self.saving.end.ask(ending, on_failure))
    }

    fn end_as(&self, asked: Asked) -> bool {
        if self.prepare_end(asked).is_err() {
            return false;
        }
        let ends = self.shut_down();
        if !ends {
            self.go_on_after_all();
        }
        ends
    }

    /// As `end`, on a thread of its own if it takes time.
    ///
    /// # Errors
    /// When no thread can be had.
    pub fn end_in_background(&self, ending: Ending, on_failure: OnFailure) -> io::Result<()> {
        if self.may_end_now(ending, on_failure) {
            // Not asked again, lest the caller wait after all.
            self.shut_down();
            return Ok(());
        }
        let Some(engine) = self.shared() else {
            self.end(ending, on_failure);
            return Ok(());
        };
        let asked = self.saving.end.ask(ending, on_failure);
        self.saving.end.in_background.fetch_add(1, Ordering::Relaxed);
        let end = move || {
            if !engine.end_as(asked) {
                engine.saving.end.in_background.fetch_sub(1, Ordering::Relaxed);
            }
        };
        let started = std::thread::Builder::new().name("end".to_owned()).spawn(end);
        started.map(|_| ()).inspect_err(|error| {
            self.saving.end.in_background.fetch_sub(1, Ordering::Relaxed);
            tracing::error!("no thread could be started for the end: {error}");
        })
    }

    /// Ends the process for a client, who may be gone before it does. One that wants nothing saved is not kept waiting for the
    /// log's first base, nor for a disk: as in Redis it is refused as long as that is not there, unless it uses force. Nor is it for
    /// scripts.
    ///
    /// # Errors
    /// When it does not end.
    pub fn shut_down_for(
        &self,
        cx: &mut SessionCx<'_>,
        ending: Ending,
        on_failure: OnFailure,
        reply: &mut Reply<'_>,
    ) -> Result<(), CmdError> {
        let leaves = |ends: bool| Box::new(Leave { ends });
        if ending == Ending::NoSave {
            let is_ready = self.is_disk_ready(ending, on_failure);
            if is_ready {
                self.leave_scripts();
            } else {
                self.tell_what_is_not_on_disk();
            }
            return leaves(is_ready && self.shut_down()).finish(cx, reply).map(|_| ());
        }
        if self.may_end_now(ending, on_failure) {
            return leaves(self.shut_down()).finish(cx, reply).map(|_| ());
        }
        let Some(engine) = self.shared() else {
            return leaves(self.end(ending, on_failure)).finish(cx, reply).map(|_| ());
        };
        let asked = self.saving.end.ask(ending, on_failure);
        let work: Work = Box::new(move || Box::new(Leave { ends: engine.end_as(asked) }));
        self.send_out(cx, work, reply)
    }

    fn tell_what_is_not_on_disk(&self) {
        match self.log_is_behind() {
            Some(why) => tracing::warn!("{why}. Can't exit; SHUTDOWN NOSAVE FORCE loses what is not written."),
            None => tracing::warn!(
                "Writing initial AOF, can't exit. SHUTDOWN waits for it, SHUTDOWN NOSAVE FORCE does without it."
            ),
        }
    }
}
