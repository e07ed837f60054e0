//! CONFIG SET appendonly: the log begins and ends while the server runs. Knows no client.

use super::rewrite::RewriteStart;
use crate::engine::Engine;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tenon_persist::aof::Directory;

/// How often it is looked whether the first base is there.
const BEGIN_PERIOD: Duration = Duration::from_millis(2);

impl Engine {
    /// Has the log begin: everything that there is goes into its base, in the background, every write from that moment on
    /// behind it.
    ///
    /// # Errors
    /// When files cannot be made, or a rewrite is under way: why.
    pub fn start_aof(&self) -> Result<(), String> {
        if self.append_only().is_some() {
            return Ok(());
        }
        let engine = self.shared().ok_or("this engine has no threads of its own")?;
        let directory = Directory::open(self.files(), self.aof_names()).map_err(|error| error.to_string())?;
        let begun = directory.begin_with_rewrite(&self.log_settings(), self.hooks());
        let (append_only, rewrite) = begun.map_err(|error| error.to_string())?;
        let append_only = Arc::new(append_only);
        self.set_append_only(Some(Arc::clone(&append_only)));
        let log = Arc::clone(&append_only);
        let mut rewrite = Some(rewrite);
        let work = move |engine: &Arc<Engine>| {
            let rewrite = rewrite.take().expect("it is done once");
            let written = engine.write_first_base(&append_only, rewrite);
            match &written {
                Ok(()) => engine.aof.is_whole.store(true, Ordering::Relaxed),
                // Without a base its records are of no use.
                Err(_) => engine.stop_aof(),
            }
            written
        };
        match self.on_rewriter(engine, work) {
            RewriteStart::Started => Ok(()),
            _ => {
                self.set_append_only(None);
                // Nothing was appended.
                let _ = log.close();
                Err("another rewrite is under way".to_owned())
            }
        }
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

    /// Ends the log, when what was written is on disk.
    pub fn stop_aof(&self) {
        self.detach_journal();
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
