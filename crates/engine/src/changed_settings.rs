//! Settings that change while the server runs: all of a CONFIG SET hold, or none.

use crate::acl::{DEFAULT_USER, User};
use crate::clients::Client;
use crate::config::{Caller, Changed, Group, SetError, Setting, SettingId, Staged, ValueError};
use crate::engine::Engine;
use std::sync::atomic::Ordering;

/// What one CONFIG SET brings about outside the engine, and how all was there before it.
pub trait ChangeOutside {
    /// Makes the new value of a setting hold that is not simply read anew.
    ///
    /// # Errors
    /// When that is not possible; then all is as it was before this one.
    fn make_hold(&mut self, setting: &Setting) -> Result<(), ValueError>;

    /// Has all be as it was before the CONFIG SET; the settings have their values of then.
    fn take_back(&mut self);
}

/// How whoever is concerned begins to follow a CONFIG SET, before any setting has another value.
pub type ConfigHook = Box<dyn Fn() -> Box<dyn ChangeOutside> + Send + Sync>;

/// That of this CONFIG SET; none where nobody is concerned.
type Outside = Option<Box<dyn ChangeOutside>>;

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
        let latest = self.clients.latest();
        let mut outside = self.config_hook.get().map(|begin| begin());
        // Nobody is let in by an address that is new before a new password holds, nor without one before all else does. As long as a
        // setting may fail to hold, nobody is to lose a key or a connection for what others say.
        let staged = self.config.stage(pairs, caller)?;
        let begins_log = staged.iter().any(Staged::begins_log);
        let (opening, others): (Vec<_>, Vec<_>) = staged.into_iter().partition(Staged::lets_in);
        let (secrets, others): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|staged| staged.setting.id == SettingId::requirepass);
        let (first, mut last): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|staged| may_not_hold(staged.setting, begins_log));
        last.extend(opening);
        let mut changed = Vec::new();
        let mut rights = None;
        for staged in [secrets, first, last] {
            let from = changed.len();
            changed.extend(self.config.store_staged(&staged));
            let is_secret = |changed: &Changed| changed.setting.id == SettingId::requirepass;
            if changed[from..].iter().any(is_secret) && !self.config.requirepass().is_empty() {
                rights = Some(self.apply_requirepass());
            }
            for index in from..changed.len() {
                if let Err(error) = self.make_hold(changed[index].setting, &mut outside) {
                    let error = self.undo(&changed, index, outside, error);
                    let has_password_held = rights.is_some();
                    let held = has_password_held
                        || changed[..index].iter().any(|changed| lets_in(changed.setting))
                        || held_for_a_moment(changed[index].setting)
                        || changed.iter().any(|changed| holds_at_once(changed.setting));
                    rights.into_iter().for_each(|rights| self.take_back_requirepass(rights));
                    if held {
                        self.settings_undone.fetch_add(1, Ordering::SeqCst);
                        // By an address, or in protected mode by a password.
                        self.clients.kill_newer(latest);
                    }
                    if has_password_held {
                        self.clients.kill_logged_in_since(latest);
                    }
                    return Err(error);
                }
            }
        }
        for Changed { setting, .. } in &changed {
            match setting.id {
                SettingId::requirepass if rights.is_none() => drop(self.apply_requirepass()),
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

    /// Takes back what is changed, of which all before this one was made to hold; gives what the caller is told.
    fn undo(&self, changed: &[Changed], failed: usize, outside: Outside, error: ValueError) -> SetError {
        self.config.restore(changed);
        if let Some(mut outside) = outside {
            outside.take_back();
        }
        if changed[..failed].iter().any(|applied| applied.setting.id == SettingId::appendonly)
            && let Err(error) = self.make_log_hold()
        {
            tracing::error!("appendonly is not what it was: {error}");
        }
        SetError::Value(changed[failed].setting.name, error)
    }

    /// How often settings were taken back that may have let somebody in. Whoever lets a client in looks when that comes and when it
    /// is registered: another number says that it may be in by what does not hold. So does whoever looks at a password.
    pub fn settings_undone(&self) -> u64 {
        self.settings_undone.load(Ordering::SeqCst)
    }

    /// Notes that a user's password lets a client in, which was looked at when settings had been undone so often. If more were
    /// since, the client is closed: the one of the default user may not have been its own.
    pub(crate) fn note_login(&self, client: &Client, user: &User, undone: u64) {
        if *user.name != *DEFAULT_USER {
            return;
        }
        // Whoever takes settings back counts that and then looks at the logins: one of the two sees the other.
        self.clients.note_login(client);
        if self.settings_undone() != undone {
            self.clients.kill(client);
        }
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
    fn make_hold(&self, setting: &'static Setting, outside: &mut Outside) -> Result<(), ValueError> {
        if setting.id == SettingId::appendonly {
            return self.make_log_hold();
        }
        outside.as_mut().map_or(Ok(()), |outside| outside.make_hold(setting))
    }

    fn make_log_hold(&self) -> Result<(), ValueError> {
        if self.is_loading() {
            // A base of what is not whole would take the place of all. As in Redis the log follows when loading ends.
            return Ok(());
        }
        self.follow_appendonly().map_err(|why| {
            tracing::error!("the append-only file cannot begin: {why}");
            ValueError::CannotLog
        })
    }
}

/// Whether it may depend on a setting who is let in.
fn lets_in(setting: &Setting) -> bool {
    matches!(setting.group, Group::Network | Group::Tls | Group::Memcached) || setting.id == SettingId::maxclients
}

/// Whether a setting that cannot be made to hold may have had others hold until then: how TLS is spoken, at ports that there were.
fn held_for_a_moment(setting: &Setting) -> bool {
    matches!(setting.id, SettingId::tls_port | SettingId::memcached_tls_port)
}

/// Whether a setting on which it depends who is let in is read anew with each client, and so held from when it was stored.
fn holds_at_once(setting: &Setting) -> bool {
    matches!(setting.id, SettingId::maxclients | SettingId::memcached_auth)
}

/// Whether a setting's value may turn out not to hold, or has to before one of which that is so: a port is taken, a log that is to
/// begin cannot begin where it is to be (one that ends does, and what it lacks behind a failure nobody could bring back). All others are changed when nothing can fail any more: what is done meanwhile, a save
/// into another directory or the end of the server, nobody could take back.
fn may_not_hold(setting: &Setting, begins_log: bool) -> bool {
    match setting.group {
        Group::Network | Group::Tls => true,
        Group::Clients => setting.id == SettingId::maxclients,
        Group::Memcached => setting.id == SettingId::memcached_auth,
        Group::Server => setting.id == SettingId::dir && begins_log,
        Group::Persistence => setting.id != SettingId::dbfilename && begins_log,
        Group::Memory
        | Group::Logging
        | Group::Security
        | Group::Observability
        | Group::Collections
        | Group::Compatibility => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acl::PasswordForm;
    use crate::args::OwnedArgs;
    use crate::clients::{ClientInfo, ConnectionKey, Dialect};
    use crate::config::{Config, Machine};
    use crate::session::Session;
    use std::sync::{Arc, Mutex};

    /// Whoever is told of each setting that is made to hold, and of none when all is taken back.
    struct Told<F>(F);

    impl<F: FnMut(Option<&Setting>) -> Result<(), ValueError>> ChangeOutside for Told<F> {
        fn make_hold(&mut self, setting: &Setting) -> Result<(), ValueError> {
            self.0(Some(setting))
        }

        fn take_back(&mut self) {
            self.0(None).expect("it can be taken back");
        }
    }

    /// Has this be told of the engine's settings.
    fn tell_of(
        engine: &Arc<Engine>,
        tell: impl Fn(&Engine, Option<&Setting>) -> Result<(), ValueError> + Send + Sync + 'static,
    ) {
        let (weak, tell) = (Arc::downgrade(engine), Arc::new(tell));
        engine.set_config_hook(Box::new(move || {
            let (engine, tell) = (weak.upgrade().expect("it is asked"), Arc::clone(&tell));
            Box::new(Told(move |setting: Option<&Setting>| tell(&engine, setting)))
        }));
    }

    #[test]
    fn a_log_ends_when_nothing_can_fail_any_more() {
        let engine = Arc::new(Engine::new(Config::new(Machine::detect()), &[], 1));
        engine.config.set(&[(b"appendonly", b"yes")], Caller::Local).expect("it may be set");
        tell_of(&engine, |engine, setting| {
            assert!(engine.config.appendonly());
            setting.map_or(Ok(()), |_| Err(ValueError::CannotListen))
        });
        for pairs in [[(&b"appendonly"[..], &b"no"[..]), (b"port", b"1")], [(b"port", b"1"), (b"appendonly", b"no")]] {
            engine.set_config(&pairs, Caller::Local).expect_err("the port is taken");
        }
        engine.set_config(&[(b"appendonly", b"no")], Caller::Local).expect("nothing fails");
        assert!(!engine.config.appendonly());
    }

    #[test]
    fn what_cannot_fail_holds_only_when_nothing_has_failed() {
        let engine = Arc::new(Engine::new(Config::new(Machine::detect()), &[], 1));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let tell = Arc::clone(&seen);
        tell_of(&engine, move |engine, setting| {
            let config = &engine.config;
            // Nobody comes by the new port without the password that was or will be.
            let has_password = !engine.acl.default_user().rights().admits(b"");
            assert!(has_password || config.requirepass().is_empty());
            assert!(has_password || config.port() < 4 || setting.is_none());
            let name = setting.map_or("taken back", |setting| setting.name);
            tell.lock().unwrap().push((name, config.maxmemory(), config.port()));
            if config.port() == 1 { Err(ValueError::CannotListen) } else { Ok(()) }
        });
        let (memory, port) = (engine.config.maxmemory(), engine.config.port());
        let set = |port: &[u8]| {
            let result = engine.set_config(&[(b"maxmemory", b"1000"), (b"port", port)], Caller::Local);
            (result.is_ok(), std::mem::take(&mut *seen.lock().unwrap()))
        };
        assert_eq!(set(b"1"), (false, vec![("port", memory, 1), ("taken back", memory, port)]));
        assert_eq!((engine.config.maxmemory(), engine.config.port()), (memory, port));
        assert_eq!(set(b"2"), (true, vec![("port", memory, 2), ("maxmemory", 1_000, 2)]));
        // Nor without one, before the rest holds.
        for (password, port, is_set, has_password) in
            [("secret", "1", false, false), ("secret", "3", true, true), ("", "1", false, true), ("", "4", true, false)]
        {
            let pairs: [(&[u8], &[u8]); 2] = [(b"port", port.as_bytes()), (b"requirepass", password.as_bytes())];
            assert_eq!(engine.set_config(&pairs, Caller::Local).is_ok(), is_set);
            assert_eq!(engine.acl.default_user().rights().admits(b""), !has_password);
        }
    }

    #[test]
    fn nobody_is_in_by_what_was_taken_back() {
        let engine = Arc::new(Engine::new(Config::new(Machine::detect()), &[], 1));
        let came = Arc::new(Mutex::new(Vec::new()));
        let comes = Arc::clone(&came);
        tell_of(&engine, move |engine, setting| {
            assert!(setting.is_none() || engine.config.memcached_auth() && engine.config.protected_mode());
            // Somebody changes the user, and somebody comes.
            engine.set_user(b"default", &[b"resetkeys", b">more"]).expect("right rules");
            let key = ConnectionKey { worker: 0, index: 0, generation: 0 };
            let remote = "10.0.0.7:5".to_owned();
            let info = ClientInfo { key, dialect: Dialect::Resp, local: remote.clone(), remote, fd: 3, unix: false };
            comes.lock().unwrap().push(engine.clients.add(info, 0));
            if setting.is_some_and(|setting| setting.id == SettingId::port) && engine.config.port() == 1 {
                Err(ValueError::CannotListen)
            } else {
                Ok(())
            }
        });
        let in_since = |pairs: &[(&str, &str)]| {
            let pairs: Vec<_> = pairs.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
            let result = engine.set_config(&pairs, Caller::Local);
            let stay = came.lock().unwrap().drain(..).all(|client| !client.killed.load(Ordering::Relaxed));
            (result.is_ok(), stay)
        };
        let config = &engine.config;
        config.set(&[(b"memcached-auth", b"yes")], Caller::Local).expect("right");
        engine.set_user(b"default", &[b"resetpass", b">admin"]).expect("right rules");
        let admits = |password: &[u8]| engine.acl.default_user().rights().admits(password);
        assert_eq!(in_since(&[("requirepass", "secret"), ("port", "1")]), (false, false));
        assert!(admits(b"admin") && admits(b"more") && !admits(b"secret") && !admits(b""));
        assert!(!engine.acl.default_user().rights().words().contains(&b"~*".to_vec()), "what else was changed stays");
        // Alone it has let nobody in, nor has what is no way in.
        assert_eq!(in_since(&[("port", "1")]), (false, true));
        assert_eq!(in_since(&[("save", "1 1"), ("port", "1")]), (false, true));
        // The limit is read with each client, and so holds before it is its turn.
        assert_eq!(in_since(&[("port", "1"), ("maxclients", "20000")]), (false, false));
        let open = [("memcached-auth", "no"), ("protected-mode", "no"), ("requirepass", "")];
        assert_eq!(in_since(&[&open[..], &[("memcached-port", "2"), ("port", "1")]].concat()), (false, false));
        assert!(admits(b"admin") && config.memcached_auth() && config.protected_mode());
        assert_eq!(in_since(&[("requirepass", "secret"), ("port", "3")]), (true, true));
        assert!(admits(b"secret"));
        // Who came while it was asked who he is would be asked for good.
        config.set(&[(b"memcached-auth", b"no")], Caller::Local).expect("right");
        assert_eq!(in_since(&[("port", "1"), ("memcached-auth", "yes")]), (false, false));
        assert!(!config.memcached_auth());
    }

    #[test]
    fn nobody_stays_in_by_a_password_that_was_taken_back() {
        let engine = Arc::new(Engine::new(Config::new(Machine::of_cores(1)), &[], 1));
        let set = |pairs: &[(&[u8], &[u8])]| engine.set_config(pairs, Caller::Local);
        set(&[(b"requirepass", b"old")]).expect("it is right");
        engine.set_user(b"other", &[b"on", b">own", b"+@all"]).expect("right rules");
        let open = |index| {
            let key = ConnectionKey { worker: 0, index, generation: 0 };
            let remote = "127.0.0.1:5".to_owned();
            let info = ClientInfo { key, dialect: Dialect::Resp, local: remote.clone(), remote, fd: 3, unix: false };
            engine.open_session(engine.clients.add(info, 0))
        };
        let log_in = |engine: &Engine, session: &mut Session, name: &[u8], password: &[u8]| {
            let args = OwnedArgs::new([&b"AUTH"[..], name, password]);
            engine.log_in(&engine.worker(0), session, (name, password), &args.view()).is_ok()
        };
        let identify = |engine: &Engine| engine.identify(b"default", b"secret", PasswordForm::Line);
        let [mut before, comes, others, named, idle] = [0, 1, 2, 3, 4].map(open);
        assert!(log_in(&engine, &mut before, DEFAULT_USER, b"old"));
        let clients = [&before, &comes, &others, &named, &idle].map(|session| Arc::clone(&session.client));
        let (sessions, late) = (Mutex::new([comes, others]), Arc::new(Mutex::new(None)));
        let (of_memcached, comes_late) = (Arc::clone(&named.client), Arc::clone(&late));
        tell_of(&engine, move |engine, setting| {
            if engine.config.port() != 1 {
                return Ok(());
            }
            let [comes, others] = &mut *sessions.lock().unwrap();
            if setting.is_none_or(|setting| setting.id != SettingId::port) {
                // Of a command that changes no password: whoever logs in meanwhile stays.
                assert!(log_in(engine, comes, DEFAULT_USER, b"old"));
                return Ok(());
            }
            if engine.config.requirepass().as_ref() == "old" {
                return Err(ValueError::CannotListen);
            }
            assert!(log_in(engine, comes, DEFAULT_USER, b"secret") && log_in(engine, others, b"other", b"own"));
            engine.let_in(&of_memcached, &identify(engine).expect("it is the password"));
            *comes_late.lock().unwrap() = identify(engine);
            Err(ValueError::CannotListen)
        });
        set(&[(b"memcached-port", b"2"), (b"port", b"1")]).unwrap_err();
        assert!(!clients[1].killed.load(Ordering::Relaxed));
        set(&[(b"requirepass", b"secret"), (b"port", b"1")]).unwrap_err();
        let closed = || clients.each_ref().map(|client| client.killed.load(Ordering::Relaxed));
        assert_eq!(closed(), [false, true, false, true, false]);
        // Who was let in a moment before is in a moment after.
        assert!(identify(&engine).is_none());
        engine.let_in(&idle.client, &late.lock().unwrap().take().expect("it was the password"));
        assert_eq!(closed(), [false, true, false, true, true]);
        // A password that holds closes nobody.
        assert!(log_in(&engine, &mut before, DEFAULT_USER, b"old"));
        set(&[(b"requirepass", b"secret"), (b"port", b"2")]).expect("it holds");
        assert!(!closed()[0]);
    }
}
