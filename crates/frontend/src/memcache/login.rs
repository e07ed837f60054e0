//! Who a memcached client is, where it has to say so before anything else: in the text protocol by a `set` of any key
//! whose data is a name, a blank and a password (`protocol.txt`, "Authentication"), in the binary one by SASL PLAIN.
//! Knows no verb beyond.

use super::{MemcacheConnection, OUTPUT_PAUSE, Progress};
use crate::Flow;
use tenon_commands::memcache::binary::Refused;
use tenon_engine::Engine;
use tenon_engine::acl::{Identity, PasswordForm};
use tenon_engine::wire::OutBuf;
use tenon_engine::wire::memcache::binary::{BinaryHead, Status, write_status};
use tenon_engine::wire::memcache::number::parse_u32;
use tenon_engine::worker::Worker;

/// Bytes of a line that has no end, after which nobody waits for it any longer.
const LINE_MAX: usize = 2048;
/// Bytes of a name and a password; memcached's `MAX_AUTH_REQ_LEN`.
const TOKEN_MAX: usize = 16384;
/// The one way to say who one is in the binary protocol.
const MECHANISM: &str = "PLAIN";

/// What is known of who a client is.
#[derive(Debug, Default)]
pub(super) struct Login {
    identity: Option<Identity>,
    /// Whether a conversation has begun in which the client is still to say who it is.
    is_begun: bool,
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
        self.note_attempt(worker, identity)
    }

    fn note_attempt(&mut self, worker: &Worker, identity: Option<Identity>) -> bool {
        worker.stats.all.mc_auth.add(1);
        match &identity {
            Some(identity) => *self.client.user.lock() = identity.name().to_vec(),
            None => {
                worker.stats.all.mc_auth_errors.add(1);
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
            if out.len() > OUTPUT_PAUSE {
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
    pub(super) fn list_mechanisms(&mut self, head: &BinaryHead, out: &mut OutBuf) {
        if let Some(login) = &mut self.login {
            login.identity = None;
        }
        write_status(out.tail(), head, Status::Done, 0, MECHANISM);
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
        // The way is chosen once; what a step calls it does not matter.
        let is_expected = if is_step { login.is_begun } else { mechanism.eq_ignore_ascii_case(MECHANISM.as_bytes()) };
        login.is_begun = is_expected && !is_step && data.is_empty();
        if login.is_begun {
            write_status(out.tail(), head, Status::AuthContinue, 0, "");
            return Ok(());
        }
        let identity = if is_expected { plain(data) } else { None };
        let identity = identity.and_then(|(name, word)| engine.identify(name, word, PasswordForm::Token));
        if !self.note_attempt(worker, identity) {
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
    fn plain_is_two_names_and_a_password() {
        assert_eq!(plain(b"\0user\0pass"), Some((&b"user"[..], &b"pass"[..])));
        assert_eq!(plain(b"user\0user\0p\0q"), Some((&b"user"[..], &b"p\0q"[..])));
        for wrong in [&b""[..], b"user", b"\0user", b"other\0user\0pass", b"\0\0pass"] {
            assert_eq!(plain(wrong), None, "{wrong:?}");
        }
    }
}
