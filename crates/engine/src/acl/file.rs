//! Users in files: the file that `aclfile` names, and the `user` lines of the configuration. Knows no client.

use super::DEFAULT_USER;
use super::error::RuleError;
use super::merge::merge_selectors;
use super::rights::{Rights, Scene};
use super::selector::has_spaces;
use super::user::{User, initial_rights};
use crate::atomic_file::write_atomically;
use crate::clients::Client;
use crate::config::args::quote_if_needed;
use crate::config::{RewriteError, UserLine, system_reason};
use crate::engine::Engine;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::sync::Arc;

/// Why users were not loaded or saved.
#[derive(Debug)]
pub enum FileError {
    /// `aclfile` is not set.
    NoFile,
    /// The file cannot be read.
    Read(String, std::io::Error),
    /// The file cannot be written.
    Write(String, std::io::Error),
    /// There is something wrong in the file: all of it, in Redis's words.
    Wrong(String),
}

impl Display for FileError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            FileError::NoFile => f.write_str(
                "This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL \
                 SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) \
                 in order to store users in the Redis configuration.",
            ),
            FileError::Read(path, error) => {
                write!(f, "Error loading ACLs, opening file '{path}': {}", system_reason(error))
            }
            FileError::Write(..) => f.write_str(
                "There was an error trying to save the ACLs. Please check the server logs for more information",
            ),
            FileError::Wrong(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for FileError {}

/// Rights by the names of their users.
type Described = BTreeMap<Box<[u8]>, Rights>;

impl Engine {
    /// Takes over the users that the configuration names, or those of the file that it names; once, at the start.
    ///
    /// # Errors
    /// What is wrong with them, for whoever starts the server.
    pub fn load_users(&self) -> Result<(), String> {
        let lines = self.config.users();
        if self.config.aclfile().is_empty() {
            let users = self.read_lines(lines)?;
            let _changing = self.acl.changing.lock();
            self.replace_users(users, None);
            return Ok(());
        }
        if !lines.is_empty() {
            return Err("users are named both in the configuration and, with aclfile, in a file of their own: which \
                        of them counts is not clear, so name them in one place only"
                .to_owned());
        }
        self.load_acl_file(None).map(|_| ()).map_err(|error| error.to_string())
    }

    /// Takes over the users of the file that `aclfile` names. Connections of users who are in it stay, unless they are subscribed
    /// to what they may not be any more; others are closed. Tells whether `asking` is one of those: it is left to close itself.
    ///
    /// # Errors
    /// When the file is missing or wrong; then nothing has changed.
    pub fn load_acl_file(&self, asking: Option<&Client>) -> Result<bool, FileError> {
        let path = self.config.aclfile();
        if path.is_empty() {
            return Err(FileError::NoFile);
        }
        // Whoever saves meanwhile leaves a file that says what is in force.
        let _changing = self.acl.changing.lock();
        let text = std::fs::read(&*path).map_err(|error| FileError::Read(path.to_string(), error))?;
        let users = self.read_file(&text, &path).map_err(FileError::Wrong)?;
        Ok(self.replace_users(users, asking))
    }

    /// Writes all users to the file that `aclfile` names.
    ///
    /// # Errors
    /// When that cannot be done; then the file is as it was.
    pub fn save_acl_file(&self) -> Result<(), FileError> {
        let path = self.config.aclfile();
        if path.is_empty() {
            return Err(FileError::NoFile);
        }
        // A password that a CONFIG SET is about to take back is nobody's.
        let _applying = self.config_applying.lock();
        // The file that stays is that of the last change of users, however many save at once.
        let _changing = self.acl.changing.lock();
        let mut text = Vec::new();
        for user in self.acl.list() {
            text.extend(user_line(&user.name, &user.rights()));
            text.push(b'\n');
        }
        write_atomically(Path::new(&*path), &text).map_err(|error| {
            tracing::warn!("the users cannot be saved to '{path}': {error}");
            FileError::Write(path.to_string(), error)
        })
    }

    /// Writes the configuration to its file, users included.
    ///
    /// # Errors
    /// The file is as it was, if there is one.
    pub fn rewrite_config(&self) -> Result<(), RewriteError> {
        // What a CONFIG SET is about to take back is nobody's setting.
        let _one_at_a_time = self.config_applying.lock();
        self.config.rewrite(&|lines| self.right_user_lines(lines))
    }

    /// The lines that a configuration file must have for users in the place of these; `None`: they are right.
    fn right_user_lines(&self, lines: &[UserLine]) -> Option<Vec<String>> {
        if !self.config.aclfile().is_empty() {
            return (!lines.is_empty()).then(Vec::new);
        }
        let users = self.acl.list();
        let said = self.read_lines(lines).unwrap_or_default();
        let is_said = |user: &Arc<User>| said.get(&user.name).is_some_and(|rights| *rights == *user.rights());
        if said.len() == users.len() && users.iter().all(is_said) {
            return None;
        }
        let line = |user: &Arc<User>| {
            let words = [b"user".to_vec(), user.name.to_vec()].into_iter().chain(user.rights().words());
            words.map(|word| config_word(&word)).collect::<Vec<_>>().join(" ")
        };
        Some(users.iter().map(line).collect())
    }

    /// The users that lines of the configuration describe, the default user among them.
    fn read_lines(&self, lines: &[UserLine]) -> Result<Described, String> {
        let scene = self.acl_scene();
        let mut users = self.default_alone(scene);
        let mut seen: BTreeSet<&[u8]> = BTreeSet::new();
        for line in lines {
            let name = line.name();
            let fail =
                |problem: &dyn Display| format!("{}: user '{}': {problem}", line.origin, String::from_utf8_lossy(name));
            if has_spaces(name) {
                return Err(fail(&"names can't contain spaces or null characters"));
            }
            if !seen.insert(name) {
                return Err(fail(&RuleError::Duplicate));
            }
            let rules: Vec<&[u8]> = line.rules().collect();
            let merged = merge_selectors(&rules).map_err(|_| fail(&"Unmatched parenthesis in selector definition."))?;
            let rights = Rights::new(scene).with(merged.iter().map(Vec::as_slice), scene);
            // Which rule it is stays untold where it may be a password.
            let rights = rights.map_err(|(rule, error)| match error {
                RuleError::Unknown => fail(&format!("{error}: '{}'", String::from_utf8_lossy(rule))),
                _ => fail(&error),
            })?;
            users.insert(name.into(), rights);
        }
        Ok(users)
    }

    /// The users that a file describes, the default user among them.
    fn read_file(&self, text: &[u8], path: &str) -> Result<Described, String> {
        let scene = self.acl_scene();
        let mut users = Described::new();
        let mut errors = String::new();
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let number = index + 1;
            let words: Vec<&[u8]> = line.trim_ascii().split(|byte| *byte == b' ').collect();
            if words == [b""] {
                continue;
            }
            let [b"user", name, rules @ ..] = &words[..] else {
                errors += &format!("{path}:{number} should start with user keyword followed by the username. ");
                continue;
            };
            let shown = String::from_utf8_lossy(name);
            if has_spaces(name) {
                errors += &format!("'{path}:{number}: username '{shown}' contains invalid characters. ");
                continue;
            }
            if users.contains_key(*name) {
                errors += &format!("WARNING: Duplicate user '{shown}' found on line {number}. ");
                continue;
            }
            let Ok(merged) = merge_selectors(rules) else {
                errors += &format!("{path}:{number}: Unmatched parenthesis in selector definition.");
                continue;
            };
            let mut rights = Rights::new(scene);
            let mut is_told = false;
            for rule in &merged {
                match rights.apply(rule, scene) {
                    Ok(()) => {}
                    Err(error @ RuleError::Unknown) => {
                        let rule = String::from_utf8_lossy(rule);
                        errors += &format!("{path}:{number}: Error in applying operation '{rule}': {error}. ");
                    }
                    // After one of these the others may come from it; and which rule it is may be a secret.
                    Err(error) if !is_told => {
                        errors += &format!("{path}:{number}: {error}. ");
                        is_told = true;
                    }
                    Err(_) => {}
                }
            }
            rights.settle(scene);
            users.insert((*name).into(), rights);
        }
        if !errors.is_empty() {
            errors += "WARNING: ACL errors detected, no change to the previously active ACL rules was performed";
            return Err(errors);
        }
        for (name, rights) in self.default_alone(scene) {
            users.entry(name).or_insert(rights);
        }
        Ok(users)
    }

    /// The default user as it is when nothing is said of it.
    fn default_alone(&self, scene: Scene<'_>) -> Described {
        Described::from([(DEFAULT_USER.into(), initial_rights(&self.config.requirepass(), scene))])
    }

    /// Puts these users in the place of all others; tells whether the client that asks has lost its user. The caller
    /// holds `changing`.
    fn replace_users(&self, described: Described, asking: Option<&Client>) -> bool {
        let old = self.acl.users.read().clone();
        let (mut new, mut changed) = (BTreeMap::new(), Vec::new());
        for (name, rights) in described {
            let user = match old.get(&name) {
                Some(known) => {
                    if *known.rights() != rights {
                        known.set_rights(Arc::new(rights));
                        changed.push(Arc::clone(known));
                    }
                    Arc::clone(known)
                }
                None => Arc::new(User::new(&name, Arc::new(rights))),
            };
            new.insert(name, user);
        }
        let gone: Vec<_> = old.iter().filter(|(name, _)| !new.contains_key(*name)).map(|(_, user)| user).collect();
        *self.acl.users.write() = new;
        changed.iter().for_each(|user| self.user_changed(user));
        let asking = asking.map_or(0, |client| client.id);
        gone.into_iter().fold(false, |has_lost, user| has_lost | self.drop_user(user, asking))
    }
}

/// A user as ACL LIST and files have it.
pub fn user_line(name: &[u8], rights: &Rights) -> Vec<u8> {
    let words = [b"user".to_vec(), name.to_vec()].into_iter().chain(rights.words());
    words.collect::<Vec<_>>().join(&b' ')
}

/// A word as it stands in a configuration file. A selector is several words there, if those need no quotes.
fn config_word(word: &[u8]) -> String {
    let is_plain = |byte: &u8| (byte.is_ascii_graphic() || *byte == b' ') && !matches!(byte, b'"' | b'\'');
    let word = match word {
        [b'(', ..] if word.iter().all(is_plain) => word.to_vec(),
        _ => quote_if_needed(word),
    };
    String::from_utf8_lossy(&word).into_owned()
}
