//! Sessions and their users: coming in, being nobody again, and rights that change meanwhile. Knows no command.

use super::check::Refusal;
use super::denial::{Context, Reason};
use super::rights::Rights;
use super::user::{Acl, User};
use crate::args::Args;
use crate::client_line::Lines;
use crate::clients::Client;
use crate::engine::Engine;
use crate::errors::CmdError;
use crate::session::Session;
use crate::worker::Worker;
use std::sync::Arc;
use tenon_wire::OutBuf;

impl Engine {
    /// A new client's session: it is the default user, and has to authenticate if that one needs a password.
    pub fn open_session(&self, client: Arc<Client>) -> Session {
        let epoch = self.acl.epoch();
        let user = Arc::clone(self.acl.default_user());
        let authenticated = !self.wants_login();
        let mut session = Session::new(client, user, authenticated, epoch);
        self.refresh_rights(&mut session);
        session
    }

    /// A session that may do everything: the server's own.
    pub(crate) fn open_own_session(&self, client: Arc<Client>) -> Session {
        let epoch = self.acl.epoch();
        let owner = Acl::owner(&self.config, &self.commands);
        let rights = owner.rights();
        let mut session = Session::new(client, owner, true, epoch);
        session.set_rights(rights, epoch, true);
        session
    }

    /// Whether a client has to say who it is before it may run just any command.
    pub fn wants_login(&self) -> bool {
        let rights = self.acl.default_user().rights();
        !rights.takes_any_password() || !rights.is_enabled()
    }

    /// Whether any password will do for the default user.
    pub fn is_open(&self) -> bool {
        self.acl.default_user().rights().takes_any_password()
    }

    /// Whether the session has to authenticate before it may run just any command.
    pub fn wants_password(&self, session: &Session) -> bool {
        !session.authenticated && self.wants_login()
    }

    /// Makes a session a user's, if the password is right. A failed attempt is noted in the log and leaves the session
    /// as it is. `args` are those of the command that says who comes.
    ///
    /// # Errors
    /// When there is no such user, it is off, or the password is wrong.
    pub fn log_in(
        &self,
        worker: &Worker,
        session: &mut Session,
        (name, password): (&[u8], &[u8]),
        args: &Args<'_>,
    ) -> Result<(), CmdError> {
        let undone = self.settings_undone();
        let user = self.acl.find(name).filter(|user| user.rights().admits(password));
        if let Some(user) = user
            && self.become_user(session, &user)
        {
            self.note_login(&session.client, &user, undone);
            return Ok(());
        }
        let in_transaction = session.transaction.is_some() || session.is_in_exec();
        let context = if in_transaction { Context::Multi } else { Context::TopLevel };
        let refusal = Refusal { reason: Reason::Auth, context, object: args.get(0).to_vec(), user: name.to_vec() };
        if let Some(found) = self.commands.find(args.get(0)) {
            self.note_refusal(worker, session, found, args, refusal);
        }
        Err(CmdError::text("WRONGPASS invalid username-password pair or user is disabled."))
    }

    /// Notes that a memcached client has not said rightly who it is: who it has said it was, and by which verb.
    pub fn note_failed_login(&self, worker: &Worker, client: &Client, name: &[u8], verb: &str) {
        let now_ms = worker.clock.now_ms;
        let mut lines = Lines::for_nobody(self, now_ms);
        lines.push(client);
        let object = verb.as_bytes().to_vec();
        let refusal = Refusal { reason: Reason::Auth, context: Context::TopLevel, object, user: name.to_vec() };
        self.note_in_log(now_ms, &lines, refusal);
    }

    /// `false`: the user was deleted a moment ago.
    fn become_user(&self, session: &mut Session, user: &Arc<User>) -> bool {
        let before = std::mem::replace(&mut *session.client.user.lock(), user.name.to_vec());
        // Whoever deletes a user marks it and then looks whose clients to close: one of the two sees the other.
        if user.is_removed() {
            *session.client.user.lock() = before;
            return false;
        }
        session.set_user(Arc::clone(user), true);
        self.refresh_rights(session);
        true
    }

    /// Makes a session what it was at its start: the default user's (RESET).
    pub fn log_out(&self, session: &mut Session) {
        let user = Arc::clone(self.acl.default_user());
        *session.client.user.lock() = user.name.to_vec();
        session.set_user(user, !self.wants_login());
        self.refresh_rights(session);
    }

    /// Looks up a session's rights anew.
    #[cold]
    pub(crate) fn refresh_rights(&self, session: &mut Session) {
        // Read before the rights: what changes in between is looked up once more.
        let epoch = self.acl.epoch();
        if session.user().is_removed() {
            // Its connection is about to be closed. Of what it still runs, such as the rest of a transaction, it may do
            // nothing: not even what the default user may, as nobody asks here whether it has said that it is that.
            let user = Arc::clone(self.acl.default_user());
            *session.client.user.lock() = user.name.to_vec();
            session.set_user(user, false);
            session.set_rights(Arc::new(Rights::new(self.acl_scene())), epoch, false);
            session.closing = true;
            return;
        }
        let rights = session.user().rights();
        let may_run = session.authenticated || !self.wants_login();
        session.set_rights(rights, epoch, may_run);
    }

    /// Looks up a session's rights anew if any user's have changed. If they are others now, and it may not keep what it is
    /// subscribed to, it is closed and sent nothing more.
    #[inline]
    pub(crate) fn follow_rights(&self, session: &mut Session) {
        if session.rights_epoch() != self.acl.epoch() {
            self.rights_may_have_changed(session);
        }
    }

    #[cold]
    fn rights_may_have_changed(&self, session: &mut Session) {
        // Another user's may have: what a client has subscribed to as somebody else before, it keeps.
        let before = session.rights_shared();
        self.refresh_rights(session);
        let have_changed = !Arc::ptr_eq(&before, &session.rights_shared());
        // One whose user is gone ends by itself, behind its reply.
        if have_changed && !session.closing && !session.may_use_its_channels() {
            self.clients.kill(&session.client);
        }
    }

    /// Whether a session may keep what it is subscribed to; asked when its user's rights have changed.
    #[cold]
    pub fn may_stay_subscribed(&self, session: &mut Session) -> bool {
        if session.rights_epoch() != self.acl.epoch() {
            // From then on it is not found among its former user's clients.
            let is_nobody = session.user().is_removed();
            self.refresh_rights(session);
            if is_nobody {
                return false;
            }
        }
        session.may_use_its_channels()
    }

    /// Moves what a session is sent beside replies to the end of `out`; nothing where it is to be closed. Rights that were taken
    /// hold from the answer to whoever took them on: what came behind that may lie here together with what came before.
    pub fn take_messages(&self, session: &mut Session, out: &mut OutBuf) {
        self.follow_rights(session);
        if !session.client.is_told_no_more() {
            session.client.outbox.take(out);
        }
    }
}
