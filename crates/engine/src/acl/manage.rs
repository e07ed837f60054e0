//! Changing users: the one place where rights change, and what that means for connected clients. Knows no command.

use super::error::RuleError;
use super::merge::merge_selectors;
use super::rights::{Rights, Scene};
use super::selector::has_spaces;
use super::user::{User, password_rules};
use crate::clients::{Client, Message};
use crate::engine::Engine;
use crate::errors::shown;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

/// Why a user was not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetUserError {
    /// The name has blanks or NUL in it.
    Name,
    /// This rule begins a selector that does not end.
    Parenthesis(Vec<u8>),
    /// This rule is wrong.
    Rule(Vec<u8>, RuleError),
}

impl Display for SetUserError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            SetUserError::Name => f.write_str("Usernames can't contain spaces or null characters"),
            SetUserError::Parenthesis(rule) => {
                let rule = shown(rule);
                write!(f, "Unmatched parenthesis in acl selector starting at '{rule}'.")
            }
            SetUserError::Rule(rule, error) => {
                let rule = shown(rule);
                write!(f, "Error in ACL SETUSER modifier '{rule}': {error}")
            }
        }
    }
}

impl std::error::Error for SetUserError {}

impl Engine {
    pub(super) fn acl_scene(&self) -> Scene<'_> {
        Scene { table: &self.commands, channels: self.config.acl_pubsub_default() }
    }

    /// Changes a user by rules, or makes it.
    ///
    /// # Errors
    /// When a rule is wrong; then nothing has changed.
    pub fn set_user(&self, name: &[u8], rules: &[&[u8]]) -> Result<(), SetUserError> {
        if has_spaces(name) {
            return Err(SetUserError::Name);
        }
        let merged = merge_selectors(rules).map_err(|index| SetUserError::Parenthesis(rules[index].to_vec()))?;
        let _changing = self.acl.changing.lock();
        let scene = self.acl_scene();
        let known = self.acl.find(name);
        let before = known.as_ref().map_or_else(|| Arc::new(Rights::new(scene)), |user| user.rights());
        let after = before.with(merged.iter().map(Vec::as_slice), scene);
        let after = after.map_err(|(rule, error)| SetUserError::Rule(rule.to_vec(), error))?;
        match known {
            Some(user) => {
                user.set_rights(Arc::new(after));
                self.user_changed(&user);
            }
            None => {
                let user = Arc::new(User::new(name, Arc::new(after)));
                self.acl.users.write().insert(user.name.clone(), user);
            }
        }
        Ok(())
    }

    /// Makes `requirepass` the default user's only password; gives the rights that it had before, and has now.
    pub(crate) fn apply_requirepass(&self) -> [Arc<Rights>; 2] {
        let _changing = self.acl.changing.lock();
        let user = self.acl.default_user();
        let rules = password_rules(&self.config.requirepass());
        let before = user.rights();
        let rights = before.with(rules.iter().map(Vec::as_slice), self.acl_scene());
        let rights = Arc::new(rights.expect("these rules are right"));
        user.set_rights(Arc::clone(&rights));
        self.user_changed(user);
        [before, rights]
    }

    /// Gives the default user back the passwords that `apply_requirepass` took, unless somebody has given it others since. What
    /// else of its rights was changed meanwhile stays.
    pub(crate) fn take_back_requirepass(&self, [before, applied]: [Arc<Rights>; 2]) {
        let _changing = self.acl.changing.lock();
        let user = self.acl.default_user();
        if let Some(rights) = user.rights().with_passwords_back(&before, &applied) {
            user.set_rights(Arc::new(rights));
            self.user_changed(user);
        }
    }

    /// Deletes a user and closes its clients' connections, but for that of the client that asks.
    pub fn delete_user(&self, name: &[u8], asking: &Client) -> Deletion {
        let _changing = self.acl.changing.lock();
        let Some(user) = self.acl.users.write().remove(name) else { return Deletion::NoSuchUser };
        match self.drop_user(&user, asking.id) {
            true => Deletion::DeletedOwn,
            false => Deletion::Deleted,
        }
    }

    /// Closes the connections of a user that is no more; tells whether the client `spared` is one of them, which is
    /// left to close itself.
    pub(super) fn drop_user(&self, user: &User, spared: u64) -> bool {
        user.remove();
        let mut has_spared = false;
        for client in self.clients_of(user) {
            if client.id == spared {
                has_spared = true;
            } else {
                self.clients.kill(&client);
            }
        }
        self.acl.advance_epoch();
        has_spared
    }

    /// What must happen when a user's rights have changed: sessions look theirs up before their next command, and those
    /// that are subscribed to a channel which their user may not use any more are closed, as are memcached's watchers.
    pub fn user_changed(&self, user: &User) {
        self.acl.advance_epoch();
        for client in self.clients_of(user) {
            // Also who is no subscriber yet: it may have passed the look at its old rights, and subscribe now.
            self.clients.tell(client.info.key, Message::RightsChanged);
        }
    }

    fn clients_of(&self, user: &User) -> impl Iterator<Item = Arc<Client>> {
        self.clients.list().into_iter().filter(|client| **client.user.lock() == *user.name)
    }
}

/// What became of a user that was to be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// There was none.
    NoSuchUser,
    /// It is gone.
    Deleted,
    /// It is gone, and the client that asked for it was in as this user: it has to close itself.
    DeletedOwn,
}
