//! Who a client of memcached's protocols is: names and passwords out of a file, a line each, or users to whom nothing is
//! refused, as those protocols have no rights. Knows no protocol.

use super::cram_md5::{CramKey, DIGEST_BYTES};
use super::password::PasswordHash;
use super::user::User;
use crate::clients::Client;
use crate::clock::monotonic_ns;
use crate::engine::Engine;
use parking_lot::RwLock;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

/// Bytes of the longest file.
const FILE_MAX: u64 = 1 << 20;

/// How a client gives its password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordForm {
    /// All that stands behind the first colon of its line is the password.
    Line,
    /// It ends at any later colon: behind it memcached's SASL database has further words.
    Token,
}

/// Who a client has shown to be.
#[derive(Debug)]
pub struct Identity {
    name: Box<[u8]>,
    /// The user; nobody for a line of the file.
    user: Option<Arc<User>>,
    /// The number of changes of rights when it was last looked at.
    epoch: u64,
    /// How often settings had been taken back when its password was looked at.
    undone: u64,
}

impl Identity {
    /// The name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }
}

/// The file, as it was when it was last read.
#[derive(Debug, Default)]
pub(crate) struct PasswordFile(RwLock<Known>);

#[derive(Debug, Default)]
struct Known {
    stamp: Option<Stamp>,
    lines: Vec<Line>,
}

/// What tells one state of the file from the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    changed_s: i64,
    changed_ns: i64,
}

impl Stamp {
    fn of(file: &Metadata) -> Stamp {
        Stamp { inode: file.ino(), bytes: file.len(), changed_s: file.mtime(), changed_ns: file.mtime_nsec() }
    }
}

#[derive(Debug)]
struct Line {
    name: Box<[u8]>,
    password: Password,
    /// The same up to each of its colons.
    tokens: Vec<Password>,
}

/// A password, as it is held against what a client says or signs.
#[derive(Debug)]
struct Password {
    hash: PasswordHash,
    cram: CramKey,
}

impl Password {
    fn of(password: &[u8]) -> Password {
        Password { hash: PasswordHash::of(password), cram: CramKey::of(password) }
    }
}

impl Line {
    /// Reads `name:password`.
    fn read(text: &[u8]) -> Option<Line> {
        let colon = text.iter().position(|&byte| byte == b':')?;
        let (name, password) = (&text[..colon], &text[colon + 1..]);
        let ends = password.iter().enumerate().filter(|(_, byte)| **byte == b':').map(|(at, _)| at);
        let tokens = ends.map(|end| Password::of(&password[..end])).collect();
        Some(Line { name: name.into(), password: Password::of(password), tokens })
    }

    /// Looks at all that the line has, so that the time does not tell what is right.
    fn admits(&self, given: &PasswordHash, form: PasswordForm) -> bool {
        let by_token = self.tokens.iter().fold(false, |known, token| known | (token.hash == *given));
        (self.password.hash == *given) | (by_token && form == PasswordForm::Token)
    }

    /// Whether this is the digest of a challenge with the password, in either of its forms.
    fn signs(&self, challenge: &[u8], digest: &[u8; DIGEST_BYTES]) -> bool {
        let signs = |password: &Password| password.cram.signs(challenge, digest);
        self.tokens.iter().fold(signs(&self.password), |known, token| known | signs(token))
    }
}

fn read_lines(text: &[u8]) -> Result<Vec<Line>, String> {
    let lines = text.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let lines = lines.enumerate().filter(|(_, line)| !line.is_empty());
    lines.map(|(at, line)| Line::read(line).ok_or(format!("line {} has no ':'", at + 1))).collect()
}

fn read_file(path: &str) -> Result<Known, String> {
    let refused = |error: io::Error| format!("{path}: {error}");
    let file = File::open(path).map_err(refused)?;
    let stamp = Stamp::of(&file.metadata().map_err(refused)?);
    let mut text = Vec::new();
    file.take(FILE_MAX + 1).read_to_end(&mut text).map_err(refused)?;
    if text.len() as u64 > FILE_MAX {
        return Err(format!("{path}: longer than {FILE_MAX} bytes"));
    }
    let lines = read_lines(&text).map_err(|error| format!("{path}: {error}"))?;
    Ok(Known { stamp: Some(stamp), lines })
}

impl Engine {
    /// Reads the file that `memcached-auth-file` names, if it names one.
    ///
    /// # Errors
    /// When it cannot be read or has a line that is none; then what was known before stays.
    pub fn load_password_file(&self) -> Result<(), String> {
        let path = self.config.memcached_auth_file();
        if !path.is_empty() {
            let known = read_file(&path).map_err(|error| format!("memcached-auth-file: {error}"))?;
            *self.password_file.0.write() = known;
        }
        Ok(())
    }

    /// Reads the file anew when it has changed.
    fn follow_password_file(&self) {
        let path = self.config.memcached_auth_file();
        if path.is_empty() {
            return;
        }
        let stamp = std::fs::metadata(&*path).ok().map(|file| Stamp::of(&file));
        if self.password_file.0.read().stamp != stamp
            && let Err(error) = self.load_password_file()
            && let Some(times) = self.strangers_log.password_file.note(monotonic_ns())
        {
            tracing::warn!(times, "{error}; the passwords that were there before go on to hold");
        }
    }

    /// Whether a line of the file has this name and knows the client. All lines are looked at.
    fn stands_in_file(&self, name: &[u8], knows: impl Fn(&Line) -> bool) -> bool {
        self.follow_password_file();
        let known = self.password_file.0.read();
        known.lines.iter().fold(false, |found, line| found | (&*line.name == name && knows(line)))
    }

    /// Who comes with this name and password, if anybody.
    pub fn identify(&self, name: &[u8], password: &[u8], form: PasswordForm) -> Option<Identity> {
        let given = PasswordHash::of(password);
        let of_file = self.stands_in_file(name, |line| line.admits(&given, form));
        let (epoch, undone) = (self.acl.epoch(), self.settings_undone());
        let user = self.acl.find(name).filter(|user| may_come(user) && user.rights().admits(password));
        (of_file || user.is_some()).then(|| Identity {
            name: name.into(),
            user: if of_file { None } else { user },
            epoch,
            undone,
        })
    }

    /// Whether somebody can show by CRAM-MD5 that it knows its password: for who stands in the file. Of users only a hash is
    /// known, with which nothing can be signed.
    pub fn has_passwords_to_sign_with(&self) -> bool {
        !self.config.memcached_auth_file().is_empty()
    }

    /// Whom of the file this name and a digest of a challenge are of, if anybody.
    pub fn identify_by_digest(&self, name: &[u8], challenge: &[u8], digest: &[u8; DIGEST_BYTES]) -> Option<Identity> {
        let of_file = self.stands_in_file(name, |line| line.signs(challenge, digest));
        let (epoch, undone) = (self.acl.epoch(), self.settings_undone());
        of_file.then(|| Identity { name: name.into(), user: None, epoch, undone })
    }

    /// Makes a client who it has shown to be, for others to see.
    pub fn let_in(&self, client: &Client, identity: &Identity) {
        *client.user.lock() = identity.name().to_vec();
        if let Some(user) = &identity.user {
            self.note_login(client, user, identity.undone);
        }
    }

    /// Whether somebody still may be here: a user can be deleted, or lose rights.
    #[inline]
    pub fn still_holds(&self, identity: &mut Identity) -> bool {
        let epoch = self.acl.epoch();
        if identity.epoch == epoch {
            return true;
        }
        identity.epoch = epoch;
        identity.user.as_ref().is_none_or(|user| !user.is_removed() && may_come(user))
    }
}

/// Whether a user may be one of memcached's clients: it needs a password, and nothing is refused to it.
fn may_come(user: &User) -> bool {
    let rights = user.rights();
    rights.is_enabled() && rights.is_everything() && !rights.takes_any_password()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Loader, Machine, Origin};
    use PasswordForm::{Line as Whole, Token};

    #[test]
    fn a_line_is_a_name_and_a_password() {
        let lines = read_lines(b"foo:bar\r\n\nbaaaz:quux:plain:x\nempty:\nlast:line").unwrap();
        let admits = |name: &str, password: &str, form| {
            let given = PasswordHash::of(password.as_bytes());
            lines.iter().any(|line| &*line.name == name.as_bytes() && line.admits(&given, form))
        };
        for (name, password, by_line, by_token) in [
            ("foo", "bar", true, true),
            ("foo", "ba", false, false),
            ("foo", "bar:", false, false),
            ("baaaz", "quux", false, true),
            ("baaaz", "quux:plain", false, true),
            ("baaaz", "quux:plain:x", true, true),
            ("baaaz", "", false, false),
            ("empty", "", true, true),
            ("last", "line", true, true),
            ("nobody", "bar", false, false),
        ] {
            assert_eq!((admits(name, password, Whole), admits(name, password, Token)), (by_line, by_token), "{name}");
        }
        assert_eq!(read_lines(b"a:b\nnone\n").unwrap_err(), "line 2 has no ':'");
    }

    #[test]
    fn a_line_signs_with_its_password_and_with_what_stands_before_a_colon() {
        let line = Line::read(b"foo:bar:plain").unwrap();
        let digest = |text| u128::from_str_radix(text, 16).unwrap().to_be_bytes();
        // HMAC-MD5 of "<1.2@tenon>", by openssl.
        assert!(line.signs(b"<1.2@tenon>", &digest("c3e02489b4892c7bcb8dd64feca14121")));
        assert!(line.signs(b"<1.2@tenon>", &digest("d2d4e41e786b0d91c8f6521dbac5e5c5")));
        assert!(!line.signs(b"<1.2@tenon>", &digest("2a1eed84d4c067a3d68b1ec695b12583")));
    }

    fn engine(settings: &[(&str, &str)]) -> Engine {
        let mut loader = Loader::new(Machine::of_cores(1));
        for (name, value) in settings {
            loader.apply(name, &[(*value).to_owned()], &Origin::CommandLine).unwrap();
        }
        Engine::new(loader.finish().unwrap(), &[], 1)
    }

    #[test]
    fn users_with_a_password_and_all_rights_may_come_until_they_lose_them() {
        let open = Engine::new(Config::new(Machine::detect()), &[], 1);
        assert!(open.identify(b"default", b"", Whole).is_none(), "who needs no password says nothing with one");
        let engine = engine(&[("requirepass", "secret")]);
        assert!(engine.identify(b"default", b"wrong", Whole).is_none());
        let mut identity = engine.identify(b"default", b"secret", Token).unwrap();
        assert!(engine.still_holds(&mut identity) && identity.name() == b"default");
        engine.acl.default_user().set_rights(Arc::new(super::super::user::initial_rights(
            "",
            super::super::rights::Scene { table: &engine.commands, channels: engine.config.acl_pubsub_default() },
        )));
        engine.acl.advance_epoch();
        assert!(!engine.still_holds(&mut identity));
    }

    #[test]
    fn a_file_that_has_changed_is_read_anew_unless_it_is_wrong() {
        let path = std::env::temp_dir().join(format!("tenon-passwords-{}", std::process::id()));
        let engine = engine(&[("memcached-auth-file", path.to_str().unwrap())]);
        assert!(engine.load_password_file().is_err());
        std::fs::write(&path, "a:1\n").unwrap();
        engine.load_password_file().unwrap();
        let comes = |name: &[u8], password: &[u8]| engine.identify(name, password, Whole).is_some();
        assert!(comes(b"a", b"1") && !comes(b"b", b"22"));
        std::fs::write(&path, "a:1\nb:22\n").unwrap();
        assert!(comes(b"a", b"1") && comes(b"b", b"22"));
        std::fs::write(&path, "no line of its kind\n").unwrap();
        assert!(comes(b"b", b"22"));
        std::fs::remove_file(&path).unwrap();
        assert!(comes(b"b", b"22"));
    }
}
