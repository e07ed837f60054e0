//! CONFIG SET appendonly: the log begins and ends while the server runs. Knows no client.

use super::rewrite::RewriteStart;
use crate::engine::Engine;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tenon_persist::aof::Directory;

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
