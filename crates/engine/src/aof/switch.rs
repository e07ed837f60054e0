//! CONFIG SET appendonly: the log begins and ends while the server runs. Knows no client.

use super::rewrite::{Former, RewriteStart};
use super::running::{Aof, OpenLog};
use super::task::RewriteTask;
use crate::config::Caller;
use crate::engine::Engine;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tenon_persist::aof::Directory;

/// How often it is looked whether the first base is there.
const BEGIN_PERIOD: Duration = Duration::from_millis(2);

/// As long as it is there, no rewrite begins but the one that comes with a log's beginning: another one would be of a log that
/// is about to end or to be replaced.
struct NoRewriteBegins<'a>(&'a Aof);

impl NoRewriteBegins<'_> {
    fn of(engine: &Engine) -> NoRewriteBegins<'_> {
        engine.aof.rewrites.lock().switching += 1;
        NoRewriteBegins(&engine.aof)
    }
}

impl Drop for NoRewriteBegins<'_> {
    fn drop(&mut self) {
        self.0.rewrites.lock().switching -= 1;
    }
}

impl Engine {
    /// Has the log begin: from now on every write is in it, behind what older files there are, and is found again after a
    /// crash. What it stands on follows: a rewrite in the background, in whose place one that is under way makes way.
    ///
    /// # Errors
    /// When files cannot be made: why. Then there is no log.
    pub fn start_aof(&self) -> Result<(), String> {
        if self.append_only().is_some() {
            return Ok(());
        }
        let engine = self.shared().ok_or("this engine has no threads of its own")?;
        // Nobody makes way for a log that cannot begin.
        let made = Directory::open(self.files(), self.aof_names()).and_then(|mut directory| {
            // Nor for one whose older files cannot all be found: one that is put back must find what belongs to it.
            if !directory.lacks_every_base() {
                directory.parts()?;
            }
            directory.make()
        });
        made.map_err(|error| error.to_string())?;
        let _no_other = NoRewriteBegins::of(self);
        if self.have_rewrite_make_way() {
            tracing::info!(
                "AOF was enabled but there is already an AOF rewriting in background. Stopping background AOF and starting \
                 a rewrite now"
            );
        }
        // What a killed server has left would not be found behind this log's beginning.
        let directory = Directory::open(self.files(), self.aof_names()).and_then(|found| self.bring_left_log(found));
        let directory = directory.map_err(|error| error.to_string())?;
        let begun = directory.begin(&self.log_settings(), self.hooks());
        let append_only = Arc::new(begun.map_err(|error| error.to_string())?);
        self.set_append_only(Some(Arc::clone(&append_only)));
        self.attach_journal(Arc::new(OpenLog(Arc::clone(&append_only))));
        let work = move |engine: &Arc<Engine>, task: &RewriteTask| engine.rewrite(append_only, task);
        if self.on_rewriter(engine, Former::MakesWay, work) == RewriteStart::Started {
            return Ok(());
        }
        self.stop_aof();
        Err("no rewrite can begin".to_owned())
    }

    /// Has a rewrite that is under way end, and never touch the list of files again; tells whether there was one.
    fn have_rewrite_make_way(&self) -> bool {
        let rewrites = self.aof.rewrites.lock();
        let under_way = rewrites.since.is_some().then(|| Arc::clone(&rewrites.task));
        drop(rewrites);
        // Without the lock: it may be at its last step, which takes what the disk takes.
        under_way.inspect(|task| task.make_way()).is_some()
    }

    /// Has the log begin with what was loaded from elsewhere, unless somebody has said by now that there is to be none, and waits
    /// until that is in its base: before that a crash would lose what is confirmed. Clients are told meanwhile that data is loaded.
    ///
    /// # Errors
    /// When it cannot: why.
    pub fn begin_aof(&self) -> Result<(), String> {
        {
            let _one_at_a_time = self.config_applying.lock();
            if !self.config.appendonly() {
                return Ok(());
            }
            self.start_aof()?;
        }
        while self.aof_figures().rewriting_for_s.is_some() {
            std::thread::sleep(BEGIN_PERIOD);
        }
        let is_whole = self.aof.is_whole.load(Ordering::Relaxed);
        if is_whole {
            Ok(())
        } else {
            Err("the append-only file cannot begin: its base could not be written".to_owned())
        }
    }

    /// Ends the log, when what was written is on disk, and with it the rewrite that is under way.
    pub fn stop_aof(&self) {
        let _no_other = NoRewriteBegins::of(self);
        {
            let rewrites = self.aof.rewrites.lock();
            // One that began while there was no log writes a file for itself.
            if rewrites.since.is_some() && self.append_only().is_some() {
                rewrites.task.stop();
            }
            self.detach_journal();
        }
        if let Some(append_only) = self.append_only() {
            // Before anything is saved, which this would stand on when it is read.
            match append_only.withdraw() {
                Ok(false) => {}
                Ok(true) => tracing::warn!(
                    "The append-only file has ended before its base was written, and is deleted: what it had is in memory alone \
                     until it is saved"
                ),
                Err(error) => tracing::error!(
                    "The append-only file has ended before its base was written, and could not be taken off its list: {error}. \
                     Delete it in {} before a start with appendonly yes",
                    append_only.names().directory().display()
                ),
            }
            self.set_append_only(None);
            if let Err(error) = append_only.close() {
                tracing::warn!("the end of the append-only file could not be written: {error}");
            }
            self.aof.end.fetch_max(append_only.log().position(), Ordering::SeqCst);
        }
        // Of the log that has ended, whose last sync may have failed.
        self.aof.wanted.store(false, Ordering::Relaxed);
        self.refuse_writes_for_log(None);
        self.journal_has_ended();
    }

    /// A snapshot file takes its place here, under this name. Where there is no log, one that a server left before its base was
    /// there would be played upon the file at the next start that wants a log, though its commands never ran on that: it is
    /// deleted, as it is when a log is switched off before it has its base.
    pub(crate) fn withdraw_log_without_base(&self, directory: &Path, name: &str) {
        // Whoever has a log begin waits: the new one's files are not looked at.
        let _one_at_a_time = self.config_applying.lock();
        let is_read_at_start = *directory == *Path::new(&*self.config.dir()) && *name == *self.config.dbfilename();
        // A rewrite without a log makes a base, whose list is another.
        let _no_rewrite = NoRewriteBegins::of(self);
        if self.append_only().is_some() || !is_read_at_start || self.aof.rewrites.lock().since.is_some() {
            return;
        }
        let names = self.aof_names();
        let directory = names.directory();
        match Directory::withdraw_baseless(&*self.files(), &names) {
            Ok(false) => {}
            Ok(true) => tracing::warn!(
                "The append-only file in {} that was left without a base, and was not loaded, is deleted: '{name}' is \
                 saved without what it had",
                directory.display()
            ),
            Err(error) => tracing::error!(
                "The append-only file in {} that was left without a base could not be taken off its list: {error}. Delete it \
                 before a start with appendonly yes: its commands would be played upon '{name}', which is saved without them",
                directory.display()
            ),
        }
    }

    /// Has the log follow what the setting has become while data was loaded, which has ended.
    ///
    /// # Errors
    /// When it cannot begin: why. Then the setting says that there is none.
    pub(crate) fn follow_appendonly_of_loading(&self) -> Result<(), String> {
        let _one_at_a_time = self.config_applying.lock();
        if self.config.appendonly() == self.append_only().is_some() {
            return Ok(());
        }
        self.follow_appendonly().inspect_err(|why| {
            tracing::error!("the append-only file cannot begin: {why}");
            let off = self.config.set(&[(b"appendonly", b"no")], Caller::Local);
            off.expect("it may always be off");
        })
    }

    /// Has the log begin or end, as the setting says.
    ///
    /// # Errors
    /// When it cannot begin: why.
    pub fn follow_appendonly(&self) -> Result<(), String> {
        if self.config.appendonly() {
            self.start_aof()
        } else {
            self.stop_aof();
            Ok(())
        }
    }
}
