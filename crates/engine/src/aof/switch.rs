//! CONFIG SET appendonly: the log begins and ends while the server runs. Knows no client.

use super::rewrite::{Former, RewriteStart, STOPPED};
use super::task::{Purpose, RewriteTask};
use crate::engine::Engine;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tenon_persist::aof::{AppendOnly, Directory, Rewrite};

/// How often it is looked whether the first base is there.
const BEGIN_PERIOD: Duration = Duration::from_millis(2);

impl Engine {
    /// Has the log begin: everything that there is goes into its base, in the background, every write from that moment on
    /// behind it. A rewrite that is under way is stopped: it knows nothing of the writes since its moment.
    ///
    /// # Errors
    /// When files cannot be made: why.
    pub fn start_aof(&self) -> Result<(), String> {
        if self.append_only().is_some() {
            return Ok(());
        }
        // A rewrite may begin while this makes its files.
        match self.try_start_aof()? {
            RewriteStart::Started => Ok(()),
            _ if self.try_start_aof()? == RewriteStart::Started => Ok(()),
            _ => Err("no rewrite can begin".to_owned()),
        }
    }

    fn try_start_aof(&self) -> Result<RewriteStart, String> {
        let engine = self.shared().ok_or("this engine has no threads of its own")?;
        let is_rewriting = self.aof.rewrites.lock().since.is_some();
        // What is to be said at once is said at once. While a rewrite uses these files they are begun when it has let go.
        let begun = if is_rewriting { None } else { Some(self.begin_files()?) };
        if is_rewriting {
            tracing::info!(
                "AOF was enabled but there is already an AOF rewriting in background. Stopping background AOF and starting \
                 a rewrite now"
            );
        }
        let own = begun.as_ref().map(|(append_only, _)| Arc::clone(append_only));
        self.set_append_only(own.clone());
        let work = move |engine: &Arc<Engine>, task: &RewriteTask| {
            let (append_only, rewrite) = match begun {
                Some(begun) => begun,
                None => engine.begin_files()?,
            };
            let is_wanted = engine.set_append_only_of(&append_only, task);
            if !is_wanted {
                append_only.abort_rewrite(rewrite);
                // Nothing was appended.
                let _ = append_only.close();
                return Err(STOPPED.to_owned());
            }
            let written = engine.write_first_base(&append_only, rewrite, task);
            match &written {
                Ok(()) => engine.aof.is_whole.store(true, Ordering::Relaxed),
                // Without a base its records are of no use. Whoever has stopped it has ended the log, too.
                Err(_) if !task.is_stopped() => engine.stop_aof(),
                Err(_) => {}
            }
            written
        };
        let former = if is_rewriting { Former::MakesWay } else { Former::Stays };
        let start = self.on_rewriter(engine, Purpose::Begin, former, work);
        if start != RewriteStart::Started
            && let Some(append_only) = own
        {
            self.set_append_only(None);
            // Nothing was appended.
            let _ = append_only.close();
        }
        Ok(start)
    }

    /// The files of a log that begins, none of which is valid before its base is written.
    fn begin_files(&self) -> Result<(Arc<AppendOnly>, Rewrite), String> {
        let directory = Directory::open(self.files(), self.aof_names()).map_err(|error| error.to_string())?;
        let begun = directory.begin_with_rewrite(&self.log_settings(), self.hooks());
        let (append_only, rewrite) = begun.map_err(|error| error.to_string())?;
        Ok((Arc::new(append_only), rewrite))
    }

    /// Makes these files the log, unless it was stopped meanwhile; tells whether it was not.
    fn set_append_only_of(&self, append_only: &Arc<AppendOnly>, task: &RewriteTask) -> bool {
        let _rewrites = self.aof.rewrites.lock();
        if task.is_stopped() {
            return false;
        }
        self.set_append_only(Some(Arc::clone(append_only)));
        true
    }

    /// Has the log begin with what was loaded from elsewhere, and waits until that is in its base: before that a crash
    /// would lose what is confirmed. No client is served yet.
    ///
    /// # Errors
    /// When it cannot: why.
    pub fn begin_aof(&self) -> Result<(), String> {
        self.start_aof()?;
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
        {
            let rewrites = self.aof.rewrites.lock();
            // One that began while there was no log writes a file for itself.
            if rewrites.since.is_some() && (self.append_only().is_some() || rewrites.task.purpose == Purpose::Begin) {
                rewrites.task.stop();
            }
            self.detach_journal();
        }
        if let Some(append_only) = self.append_only() {
            self.set_append_only(None);
            if let Err(error) = append_only.close() {
                tracing::warn!("the end of the append-only file could not be written: {error}");
            }
        }
        self.refuse_writes_for_log(None);
        // Nobody has to wait for it any more.
        self.replies_may_leave();
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
