//! Settings that change while the server runs: all of a CONFIG SET hold, or none.

use crate::config::{Caller, Changed, SetError, Setting, SettingId, ValueError};
use crate::engine::Engine;
use std::sync::atomic::Ordering;

/// How whoever is concerned makes the new value of a setting hold that is not simply read anew; all is as before when
/// that fails.
pub type ConfigHook = Box<dyn Fn(&Setting) -> Result<(), ValueError> + Send + Sync>;

impl Engine {
    /// Says who is to be told that CONFIG SET has changed a setting; once. Settings that are read where they are used
    /// need no telling.
    pub fn set_config_hook(&self, hook: ConfigHook) {
        assert!(self.config_hook.set(hook).is_ok(), "who is told of settings is said once");
    }

    /// Changes settings, all of the pairs or none, and tells whoever is concerned.
    ///
    /// A lower `maxmemory` is reached by the next tick's eviction: within EXEC the caller holds shards.
    ///
    /// # Errors
    /// When a pair is not one that this caller may set, or when a value cannot be made to hold, such as a port that is
    /// taken; then nothing has changed.
    pub fn set_config(&self, pairs: &[(&[u8], &[u8])], caller: Caller) -> Result<(), SetError> {
        let _one_at_a_time = self.config_applying.lock();
        let changed = self.config.set(pairs, caller)?;
        for (index, Changed { setting, .. }) in changed.iter().enumerate() {
            if let Err(error) = self.make_hold(setting) {
                let name = setting.name;
                self.config.restore(&changed);
                for applied in &changed[..index] {
                    if let Err(error) = self.make_hold(applied.setting) {
                        tracing::error!("{} is not what it was: {error}", applied.setting.name);
                    }
                }
                return Err(SetError::Value(name, error));
            }
        }
        for Changed { setting, .. } in &changed {
            match setting.id {
                SettingId::requirepass => self.apply_requirepass(),
                SettingId::tls_cert_file => {
                    self.certificates_read_s.store(self.started.elapsed().as_secs(), Ordering::Relaxed);
                }
                SettingId::maxmemory => self.warn_of_less_than_used(),
                SettingId::tracking_table_max_keys => self.forget_surplus(),
                SettingId::dir => self.say_where_log_stays(),
                SettingId::save | SettingId::stop_writes_on_bgsave_error => self.follow_saving(),
                SettingId::appendfsync | SettingId::no_appendfsync_on_rewrite | SettingId::aof_timestamp_enabled => {
                    self.follow_aof_settings()
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Tells the operator of a limit that what is there exceeds, in Redis's words.
    fn warn_of_less_than_used(&self) {
        let used = tenon_ds::memory::used().saturating_sub(self.uncounted_memory());
        let limit = self.config.maxmemory();
        if limit != 0 && limit < used as u64 {
            tracing::warn!(
                "WARNING: the new maxmemory value set via CONFIG SET ({limit}) is smaller than the current memory usage \
                 ({used}). This will result in key eviction and/or the inability to accept new write commands depending on \
                 the maxmemory-policy."
            );
        }
    }

    /// Makes a setting hold that may not be made to.
    fn make_hold(&self, setting: &'static Setting) -> Result<(), ValueError> {
        if setting.id == SettingId::appendonly {
            if self.is_loading() {
                // A base of what is not whole would take the place of all. As in Redis the log follows when loading ends.
                return Ok(());
            }
            return self.follow_appendonly().map_err(|why| {
                tracing::error!("the append-only file cannot begin: {why}");
                ValueError::CannotLog
            });
        }
        self.config_hook.get().map_or(Ok(()), |apply| apply(setting))
    }
}
