//! Who a memcached client is, where it has to say so before anything else: in the text protocol by a `set` of any key
//! whose data is a name, a blank and a password (`protocol.txt`, "Authentication"), in the binary one by SASL
//! PLAIN or CRAM-MD5. Knows no verb beyond.

use super::{MemcacheConnection, Progress};
use crate::Flow;
use std::time::{SystemTime, UNIX_EPOCH};
use tenon_commands::memcache::binary::Refused;
use tenon_engine::Engine;
use tenon_engine::acl::{CRAM_MD5_BYTES, Identity, PasswordForm, from_hex};
use tenon_engine::unsent::OUTPUT_OF_STRANGER;
use tenon_engine::wire::OutBuf;
use tenon_engine::wire::memcache::binary::{BinaryHead, Status, write_status};
use tenon_engine::wire::memcache::number::parse_u32;
use tenon_engine::worker::Worker;

/// Bytes of a line that has no end, after which nobody waits for it any longer.
const LINE_MAX: usize = 2048;
/// Bytes of a name and a password; memcached's `MAX_AUTH_REQ_LEN`.
const TOKEN_MAX: usize = 16384;

/// A way to say who one is in the binary protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mechanism {
    /// A name and a password (RFC 4616).
    Plain,
    /// A name and the digest of a challenge (RFC 2195): for who stands in the file of passwords.
    CramMd5,
}

impl Mechanism {
    /// The one with a name, in letters of either case.
    fn find(name: &[u8], engine: &Engine) -> Option<Mechanism> {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        if is("PLAIN") {
            Some(Mechanism::Plain)
        } else if is("CRAM-MD5") && engine.has_passwords_to_sign_with() {
            Some(Mechanism::CramMd5)
        } else {
            None
        }
    }
}

/// A conversation in which a client is still to say who it is.
#[derive(Debug)]
enum Begun {
    Plain,
    CramMd5 { challenge: String },
}

/// What is known of who a client is.
#[derive(Debug, Default)]
pub(super) struct Login {
    identity: Option<Identity>,
    begun: Option<Begun>,
}

impl Login {
    /// Whether the client has not said who it is.
    pub(super) fn is_stranger(&self) -> bool {
        self.identity.is_none()
    }
}

impl MemcacheConnection {
    /// Whether the client still has to say who it is.
    #[inline]
    pub(crate) fn is_stranger(&self) -> bool {
        self.login.as_ref().is_some_and(|login| login.is_stranger())
    }

    /// Whether the client may go on: who it is can have been deleted or lost rights.
    #[inline]
    pub(crate) fn may_stay(&mut self, engine: &Engine) -> bool {
        let identity = self.login.as_mut().and_then(|login| login.identity.as_mut());
        identity.is_none_or(|identity| engine.still_holds(identity))
    }

    /// Holds a name and a password against those that are known. A client whose attempt fails is a stranger again.
    fn log_in(&mut self, engine: &Engine, worker: &Worker, name: &[u8], password: &[u8], form: PasswordForm) -> bool {
        let identity = engine.identify(name, password, form);
        self.note_attempt(engine, worker, "set", name, identity)
    }

    fn note_attempt(
        &mut self,
        engine: &Engine,
        worker: &Worker,
        verb: &str,
        name: &[u8],
        identity: Option<Identity>,
    ) -> bool {
        worker.stats.all.mc_auth.add(1);
        match &identity {
            Some(identity) => engine.let_in(&self.client, identity),
            None => {
                worker.stats.all.mc_auth_errors.add(1);
                engine.note_failed_login(worker, &self.client, name, verb);
                tracing::debug!(client = self.client.id, "a memcached client has not said rightly who it is");
            }
        }
        let is_known = identity.is_some();
        self.login.get_or_insert_default().identity = identity;
        is_known
    }

    /// Reads what a stranger says from `buf[*at..]` on, until it is none any more; gives how to go on when it still is.
    #[cold]
    pub(super) fn hear_stranger(
        &mut self,
        engine: &Engine,
        worker: &Worker,
        buf: &[u8],
        at: &mut usize,
        out: &mut OutBuf,
    ) -> Option<Progress> {
        while self.is_stranger() {
            let from = *at;
            if out.len() > OUTPUT_OF_STRANGER {
                return Some(Progress::Stopped { from, flow: Flow::Drain });
            }
            let rest = &buf[from..];
            let Some(line_len) = rest.iter().position(|&byte| byte == b'\n') else {
                let is_junk = rest.len() > LINE_MAX;
                return Some(if is_junk { Progress::Ended(Flow::Close) } else { Progress::Incomplete { from } });
            };
            let behind = &rest[line_len + 1..];
            let answer = match token_len(&rest[..line_len]) {
                None => {
                    *at += line_len + 1;
                    "CLIENT_ERROR unauthenticated"
                }
                Some(len) if len > TOKEN_MAX => {
                    *at += line_len + 1;
                    "CLIENT_ERROR auth token too long"
                }
                Some(len) if behind.len() < len + 2 => return Some(Progress::Incomplete { from }),
                Some(len) => {
                    *at += line_len + 1 + len + 2;
                    self.hear_token(engine, worker, &behind[..len + 2])
                }
            };
            if answer != STORED {
                worker.stats.all.errors.add(1);
            }
            out.tail().extend_from_slice(answer.as_bytes());
            out.tail().extend_from_slice(b"\r\n");
        }
        None
    }

    /// The answer to a name and a password, with the end of their line.
    fn hear_token(&mut self, engine: &Engine, worker: &Worker, token: &[u8]) -> &'static str {
        let Some(token) = token.strip_suffix(b"\r\n") else { return "CLIENT_ERROR bad command line termination" };
        let mut words = token.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
        let (Some(name), Some(password)) = (words.next(), words.next()) else {
            return "CLIENT_ERROR bad authentication token format";
        };
        if self.log_in(engine, worker, name, password, PasswordForm::Line) {
            STORED
        } else {
            "CLIENT_ERROR authentication failure"
        }
    }

    /// Writes in which ways a client of the binary protocol can say who it is. As in memcached, it is to say so then, even
    /// if it has before.
    pub(super) fn list_mechanisms(&mut self, engine: &Engine, head: &BinaryHead, out: &mut OutBuf) {
        if let Some(login) = &mut self.login {
            login.identity = None;
        }
        let names = if engine.has_passwords_to_sign_with() { "CRAM-MD5 PLAIN" } else { "PLAIN" };
        write_status(out.tail(), head, Status::Done, 0, names);
    }

    /// What a client of the binary protocol says about who it is.
    ///
    /// # Errors
    /// When nobody is.
    pub(super) fn hear_credentials(
        &mut self,
        engine: &Engine,
        worker: &Worker,
        head: &BinaryHead,
        is_step: bool,
        (mechanism, data): (&[u8], &[u8]),
        out: &mut OutBuf,
    ) -> Result<(), Refused> {
        let login = self.login.get_or_insert_default();
        login.identity = None;
        let begun = login.begun.take();
        const NOBODY: (&[u8], Option<Identity>) = (b"", None);
        let (name, identity) = if is_step {
            // The way is chosen once; what a step calls it does not matter.
            match begun {
                Some(Begun::Plain) => by_plain(engine, data),
                Some(Begun::CramMd5 { challenge }) => by_digest(engine, &challenge, data),
                None => NOBODY,
            }
        } else {
            match Mechanism::find(mechanism, engine) {
                Some(Mechanism::Plain) if data.is_empty() => {
                    login.begun = Some(Begun::Plain);
                    write_status(out.tail(), head, Status::AuthContinue, 0, "");
                    return Ok(());
                }
                Some(Mechanism::Plain) => by_plain(engine, data),
                // Here the server speaks first.
                Some(Mechanism::CramMd5) if data.is_empty() => match challenge() {
                    Some(challenge) => {
                        write_status(out.tail(), head, Status::AuthContinue, 0, &challenge);
                        login.begun = Some(Begun::CramMd5 { challenge });
                        return Ok(());
                    }
                    None => NOBODY,
                },
                Some(Mechanism::CramMd5) | None => NOBODY,
            }
        };
        let verb = if is_step { "sasl_step" } else { "sasl_auth" };
        if !self.note_attempt(engine, worker, verb, name, identity) {
            return Err(Status::AuthError.into());
        }
        write_status(out.tail(), head, Status::Done, 0, "Authenticated");
        Ok(())
    }
}

const STORED: &str = "STORED";

/// How long the data is that follows the line, if the line is a `set`. Neither key, flags nor expiry are looked at.
fn token_len(line: &[u8]) -> Option<usize> {
    let mut words = line.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    if words.next() != Some(b"set") {
        return None;
    }
    words.nth(3).and_then(parse_u32).map(|len| len as usize)
}

/// Who a client says it is by PLAIN, and whether it is.
fn by_plain<'a>(engine: &Engine, data: &'a [u8]) -> (&'a [u8], Option<Identity>) {
    let Some((name, password)) = plain(data) else { return (b"", None) };
    (name, engine.identify(name, password, PasswordForm::Token))
}

fn by_digest<'a>(engine: &Engine, challenge: &str, data: &'a [u8]) -> (&'a [u8], Option<Identity>) {
    let Some((name, digest)) = signed(data) else { return (b"", None) };
    (name, engine.identify_by_digest(name, challenge.as_bytes(), &digest))
}

/// What nobody has been asked before, in the form that RFC 2195 wants; nothing where there is no randomness to be had.
fn challenge() -> Option<String> {
    let mut random = [0; 8];
    if let Err(error) = getrandom::fill(&mut random) {
        tracing::warn!(%error, "no randomness for a challenge: a memcached client is refused");
        return None;
    }
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    Some(format!("<{}.{seconds}@tenon>", u64::from_be_bytes(random)))
}

/// The name and the digest of a CRAM-MD5 message: `name digits`, of which the digits are hexadecimal ones, in small letters.
fn signed(data: &[u8]) -> Option<(&[u8], [u8; CRAM_MD5_BYTES])> {
    let blank = data.iter().rposition(|&byte| byte == b' ')?;
    let (name, digits) = (&data[..blank], &data[blank + 1..]);
    from_hex(digits).filter(|_| !name.is_empty()).map(|digest| (name, digest))
}

/// The name and the password of a PLAIN message (RFC 4616): `[authzid] NUL authcid NUL passwd`. Nobody acts for others.
fn plain(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut parts = data.splitn(3, |&byte| byte == 0);
    let (acting_for, name, password) = (parts.next()?, parts.next()?, parts.next()?);
    let is_itself = acting_for.is_empty() || acting_for == name;
    (is_itself && !name.is_empty()).then_some((name, password))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_with_a_set() {
        for (line, len) in [
            ("set k 0 0 7\r", Some(7)),
            ("set   k 0 0 7 noreply", Some(7)),
            ("set k x y 12", Some(12)),
            ("set k 0 0\r", None),
            ("set k 0 0 x", None),
            ("set k 0 0 -1", None),
            ("add k 0 0 7", None),
            ("SET k 0 0 7", None),
            ("", None),
        ] {
            assert_eq!(token_len(line.as_bytes()), len, "{line}");
        }
    }

    #[test]
    fn a_signature_is_a_name_and_digits() {
        let digits = "b913a602c7eda7a495b4e6e7334d3890";
        let digest = u128::from_str_radix(digits, 16).unwrap().to_be_bytes();
        assert_eq!(signed(format!("tim {digits}").as_bytes()), Some((&b"tim"[..], digest)));
        assert_eq!(signed(format!("t i m {digits}").as_bytes()), Some((&b"t i m"[..], digest)));
        for wrong in ["", "tim", digits, " ", "tim b913", &format!(" {digits}"), &format!("tim {digits} ")] {
            assert_eq!(signed(wrong.as_bytes()), None, "{wrong:?}");
        }
        assert_eq!(signed(format!("tim {}", digits.to_uppercase()).as_bytes()), None);
        assert_eq!(signed(format!("tim +{}", &digits[1..]).as_bytes()), None);
    }

    #[test]
    fn no_two_challenges_are_the_same() {
        let (one, two) = (challenge().unwrap(), challenge().unwrap());
        assert!(one != two && one.starts_with('<') && one.ends_with("@tenon>"), "{one} {two}");
    }

    #[test]
    fn plain_is_two_names_and_a_password() {
        assert_eq!(plain(b"\0user\0pass"), Some((&b"user"[..], &b"pass"[..])));
        assert_eq!(plain(b"user\0user\0p\0q"), Some((&b"user"[..], &b"p\0q"[..])));
        for wrong in [&b""[..], b"user", b"\0user", b"other\0user\0pass", b"\0\0pass"] {
            assert_eq!(plain(wrong), None, "{wrong:?}");
        }
    }
}
