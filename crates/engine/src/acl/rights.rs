//! What a user may do, as it is at one time: its state, passwords and selectors. Knows neither names nor clients.

use super::databases::Databases;
use super::denial::Denial;
use super::error::RuleError;
use super::password::PasswordHash;
use super::selector::Selector;
use crate::args::Args;
use crate::command::{ChannelKind, KeyFlags};
use crate::config::ChannelDefault;
use crate::config::args::split;
use crate::table::{CommandTable, Resolved};
use std::collections::HashSet;

/// Whether payloads that a user restores are looked through before they are trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SanitizePayload {
    /// They are.
    Yes,
    /// They are not.
    Skip,
}

/// What rules refer to.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) table: &'a CommandTable,
    pub(super) channels: ChannelDefault,
}

/// What a user may do. Never changed: a user whose rights change gets others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    enabled: bool,
    /// Whether it comes in with any password.
    any_password: bool,
    sanitize: SanitizePayload,
    passwords: Vec<PasswordHash>,
    root: Selector,
    selectors: Vec<Selector>,
    /// Whether nothing is refused.
    everything: bool,
}

/// The keys of a command, as far as there are arguments: a script may ask before it has them all.
fn keys_of(found: Resolved, args: &Args<'_>) -> Vec<(usize, KeyFlags)> {
    let mut keys = found.command.keys_of(args);
    keys.retain(|(index, _)| *index < args.len());
    keys
}

impl Rights {
    /// A new user's: it cannot come in and may do nothing.
    pub(super) fn new(scene: Scene<'_>) -> Rights {
        Rights {
            enabled: false,
            any_password: false,
            sanitize: SanitizePayload::Yes,
            passwords: Vec::new(),
            root: Selector::new(scene.table, scene.channels),
            selectors: Vec::new(),
            everything: false,
        }
    }

    /// The same rights changed by rules, one after another.
    ///
    /// # Errors
    /// The first wrong rule.
    pub(super) fn with<'r>(
        &self,
        rules: impl IntoIterator<Item = &'r [u8]>,
        scene: Scene<'_>,
    ) -> Result<Rights, (&'r [u8], RuleError)> {
        let mut rights = self.clone();
        for rule in rules {
            rights.apply(rule, scene).map_err(|error| (rule, error))?;
        }
        rights.settle(scene);
        Ok(rights)
    }

    /// What comes behind the last rule that is applied: what was said twice is there once.
    pub(super) fn settle(&mut self, scene: Scene<'_>) {
        let mut seen = HashSet::new();
        self.passwords.retain(|hash| seen.insert(hash.bytes()));
        self.root.settle();
        let mut selectors = std::iter::once(&self.root).chain(&self.selectors);
        self.everything = selectors.any(|selector| selector.is_everything(scene.table));
    }

    /// Changes them by a rule. They are settled behind the last one.
    ///
    /// # Errors
    /// When it is wrong; then nothing has changed.
    pub(super) fn apply(&mut self, rule: &[u8], scene: Scene<'_>) -> Result<(), RuleError> {
        match rule.to_ascii_lowercase().as_slice() {
            b"" => {}
            b"on" => self.enabled = true,
            b"off" => self.enabled = false,
            b"nopass" => {
                self.any_password = true;
                self.passwords.clear();
            }
            b"resetpass" => {
                self.any_password = false;
                self.passwords.clear();
            }
            b"sanitize-payload" => self.sanitize = SanitizePayload::Yes,
            b"skip-sanitize-payload" => self.sanitize = SanitizePayload::Skip,
            b"clearselectors" => self.selectors.clear(),
            b"reset" => *self = Rights::new(scene),
            _ => match rule {
                [b'>', password @ ..] => self.add_password(PasswordHash::of(password)),
                [b'#', digits @ ..] => self.add_password(PasswordHash::parse(digits).ok_or(RuleError::NotAHash)?),
                [b'<', password @ ..] => self.remove_password(&PasswordHash::of(password))?,
                [b'!', digits @ ..] => {
                    self.remove_password(&PasswordHash::parse(digits).ok_or(RuleError::NotAHash)?)?;
                }
                [b'(', inner @ .., b')'] => {
                    let mut selector = Selector::new(scene.table, scene.channels);
                    for rule in split(inner).map_err(|_| RuleError::Syntax)? {
                        selector.apply(&rule, scene.table)?;
                    }
                    selector.settle();
                    self.selectors.push(selector);
                }
                rule => self.root.apply(rule, scene.table)?,
            },
        }
        Ok(())
    }

    fn add_password(&mut self, hash: PasswordHash) {
        self.passwords.push(hash);
        self.any_password = false;
    }

    fn remove_password(&mut self, hash: &PasswordHash) -> Result<(), RuleError> {
        let before = self.passwords.len();
        self.passwords.retain(|known| known != hash);
        if self.passwords.len() == before { Err(RuleError::NoSuchPassword) } else { Ok(()) }
    }

    /// Whether it comes in at all.
    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// These rights with the passwords of those `before` in place of the ones that were `applied` to them, if they have these
    /// still. Others that they have are theirs.
    pub(super) fn with_passwords_back(&self, before: &Rights, applied: &Rights) -> Option<Rights> {
        if !applied.passwords.iter().all(|password| self.passwords.contains(password)) {
            return None;
        }
        let known =
            |password: &&PasswordHash| applied.passwords.contains(password) || before.passwords.contains(password);
        let others: Vec<_> = self.passwords.iter().filter(|password| !known(password)).cloned().collect();
        // Whoever adds a password takes it that none is wanted.
        let any_password = before.any_password && others.is_empty();
        Some(Rights { any_password, passwords: [&before.passwords[..], &others].concat(), ..self.clone() })
    }

    /// Whether any password will do.
    pub fn takes_any_password(&self) -> bool {
        self.any_password
    }

    /// Whether it comes in with this password. Looks at all passwords, so that the time does not tell which is right.
    pub(crate) fn admits(&self, password: &[u8]) -> bool {
        let given = PasswordHash::of(password);
        let known = self.passwords.iter().fold(false, |known, hash| known | (*hash == given));
        self.enabled && (self.any_password || known)
    }

    /// Whether what the user restores is looked through first.
    pub fn sanitize_payload(&self) -> SanitizePayload {
        self.sanitize
    }

    /// Whether nothing is refused to the user.
    #[inline]
    pub fn is_everything(&self) -> bool {
        self.everything
    }

    /// Whether a command may run with these arguments.
    ///
    /// # Errors
    /// Why not; if the selectors refuse it for different reasons, the one that Redis would name.
    pub fn check(&self, found: Resolved, args: &Args<'_>, databases: Databases) -> Result<(), Denial> {
        if self.everything {
            return Ok(());
        }
        let keys = keys_of(found, args);
        let mut denial = Denial::Database(None);
        for selector in std::iter::once(&self.root).chain(&self.selectors) {
            match selector.check(found, args, &keys, databases) {
                Ok(()) => return Ok(()),
                Err(other) => denial = denial.max(other),
            }
        }
        Err(denial)
    }

    /// Whether a command may run with these arguments by a selector that lets this be done to every key there is: for keys
    /// that nobody can tell beforehand, as those of SORT's BY and GET.
    pub fn may_use_all_keys(&self, found: Resolved, args: &Args<'_>, flags: KeyFlags, databases: Databases) -> bool {
        if self.everything {
            return true;
        }
        let keys = keys_of(found, args);
        let mut selectors = std::iter::once(&self.root).chain(&self.selectors);
        selectors.any(|it| it.may_use_all_keys(flags) && it.check(found, args, &keys, databases).is_ok())
    }

    /// Whether a channel may be used, or subscribed to by a pattern.
    pub fn may_use_channel(&self, channel: &[u8], kind: ChannelKind) -> bool {
        let mut selectors = std::iter::once(&self.root).chain(&self.selectors);
        selectors.any(|selector| selector.may_use_channel(channel, kind))
    }

    /// The selector that rules outside parentheses are about.
    pub fn root(&self) -> &Selector {
        &self.root
    }

    /// The others.
    pub fn selectors(&self) -> &[Selector] {
        &self.selectors
    }

    /// The words of ACL GETUSER's flags.
    pub fn flag_names(&self) -> Vec<&'static str> {
        let mut names = vec![if self.enabled { "on" } else { "off" }];
        if self.any_password {
            names.push("nopass");
        }
        names.push(match self.sanitize {
            SanitizePayload::Yes => "sanitize-payload",
            SanitizePayload::Skip => "skip-sanitize-payload",
        });
        names
    }

    /// The hashes of the passwords, in hexadecimal digits.
    pub fn password_hashes(&self) -> Vec<String> {
        self.passwords.iter().map(PasswordHash::to_string).collect()
    }

    /// Rules that give a new user the same rights, each a word, as ACL LIST and files have them.
    pub fn words(&self) -> Vec<Vec<u8>> {
        let mut words: Vec<Vec<u8>> = self.flag_names().iter().map(|name| name.as_bytes().to_vec()).collect();
        words.extend(self.passwords.iter().map(|hash| format!("#{hash}").into_bytes()));
        words.extend(self.root.words());
        words.extend(self.selectors.iter().map(Selector::in_parentheses));
        words
    }
}
