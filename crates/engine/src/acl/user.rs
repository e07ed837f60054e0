//! Users and the list of them. Knows no session.

use super::DEFAULT_USER;
use super::log::AclLog;
use super::rights::{Rights, Scene};
use crate::config::Config;
use crate::table::CommandTable;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A user. Sessions hold on to it; what it may do is looked up anew when it has changed.
#[derive(Debug)]
pub struct User {
    /// The name: no blanks, no NUL, else any bytes.
    pub name: Box<[u8]>,
    rights: RwLock<Arc<Rights>>,
    /// Set when it was deleted, before the clients that came in as this user are closed.
    removed: AtomicBool,
}

impl User {
    pub(super) fn new(name: &[u8], rights: Arc<Rights>) -> User {
        User { name: name.into(), rights: RwLock::new(rights), removed: AtomicBool::new(false) }
    }

    /// What it may do now.
    pub fn rights(&self) -> Arc<Rights> {
        Arc::clone(&self.rights.read())
    }

    pub(super) fn set_rights(&self, rights: Arc<Rights>) {
        *self.rights.write() = rights;
    }

    pub(super) fn remove(&self) {
        self.removed.store(true, Ordering::Release);
    }

    pub(super) fn is_removed(&self) -> bool {
        self.removed.load(Ordering::Acquire)
    }
}

/// Users by name, in the order of the bytes.
pub(super) type Users = BTreeMap<Box<[u8]>, Arc<User>>;

/// All users, and the log of what was refused to them.
pub struct Acl {
    pub(super) users: RwLock<Users>,
    default: Arc<User>,
    /// Counts the changes of any user's rights, so that a session sees with one look whether its own may have changed.
    epoch: AtomicU64,
    /// Held while users change, so that two changes do not overlap.
    pub(super) changing: Mutex<()>,
    /// What was refused.
    pub log: AclLog,
}

impl Acl {
    /// The default user alone, which may do everything and has `requirepass` as its password.
    pub(crate) fn new(config: &Config, table: &CommandTable) -> Acl {
        let scene = Scene { table, channels: config.acl_pubsub_default() };
        let rights = initial_rights(&config.requirepass(), scene);
        let default = Arc::new(User::new(DEFAULT_USER, Arc::new(rights)));
        let users = Users::from([(default.name.clone(), Arc::clone(&default))]);
        Acl {
            users: RwLock::new(users),
            default,
            epoch: AtomicU64::new(0),
            changing: Mutex::new(()),
            log: AclLog::default(),
        }
    }

    /// Somebody who is in no list and may do everything: the server itself.
    pub(super) fn owner(config: &Config, table: &CommandTable) -> Arc<User> {
        let scene = Scene { table, channels: config.acl_pubsub_default() };
        Arc::new(User::new(DEFAULT_USER, Arc::new(initial_rights("", scene))))
    }

    /// The user of this name.
    pub fn find(&self, name: &[u8]) -> Option<Arc<User>> {
        self.users.read().get(name).cloned()
    }

    /// The user that clients are before they say who they are.
    pub fn default_user(&self) -> &Arc<User> {
        &self.default
    }

    /// Every user, in the order of their names' bytes.
    pub fn list(&self) -> Vec<Arc<User>> {
        self.users.read().values().cloned().collect()
    }

    /// How often rights have changed.
    #[inline]
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Notes that rights have changed.
    pub(super) fn advance_epoch(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }
}

/// The default user's rights at the start, with this password, or with none needed.
pub(super) fn initial_rights(password: &str, scene: Scene<'_>) -> Rights {
    let rules: [&[u8]; 4] = [b"+@all", b"~*", b"&*", b"on"];
    let password = password_rules(password);
    let rules = rules.into_iter().chain(password.iter().map(Vec::as_slice));
    Rights::new(scene).with(rules, scene).expect("these rules are right")
}

/// The rules that make `requirepass` the only password.
pub(super) fn password_rules(password: &str) -> Vec<Vec<u8>> {
    match password {
        "" => vec![b"nopass".to_vec()],
        password => vec![b"resetpass".to_vec(), [b">", password.as_bytes()].concat()],
    }
}
