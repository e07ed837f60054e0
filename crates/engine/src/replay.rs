//! Running the commands of a log again, for loading: no gate is asked, nothing waits, nothing expires by itself, and
//! nothing is put down for a log. Knows no file, and no command but those that hold records together.

use crate::args::{Args, OwnedArgs};
use crate::batch::Target;
use crate::clients::{Client, ClientInfo, ConnectionKey, Dialect};
use crate::command::Run;
use crate::context::KeyCx;
use crate::engine::Engine;
use crate::errors::CmdError;
use crate::locking::OnBusy;
use crate::record::FLAGS_ANNOTATION;
use crate::session::Session;
use crate::table::Resolved;
use crate::worker::Worker;
use std::fmt;
use std::sync::Arc;
use tenon_store::hash::KeyHash;
use tenon_wire::OutBuf;
use tenon_wire::resp::{Proto, Reply};

/// What is kept of the memory that answers have taken, in bytes.
const ANSWER_KEPT: usize = 4096;

/// Why a command of a log could not be run again. The log is not whole, or was written by another kind of server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// There are no words.
    Empty,
    /// There is no such command, or it takes another number of arguments.
    Refused {
        /// Its name.
        command: String,
        /// What a client would be told.
        error: CmdError,
    },
    /// The command ran and answered an error.
    Failed {
        /// Its name.
        command: String,
        /// The error, its code included.
        error: String,
    },
    /// MULTI within MULTI.
    NestedMulti,
    /// EXEC or DISCARD without MULTI.
    WithoutMulti,
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::Empty => f.write_str("a command without a name"),
            ReplayError::Refused { command, error } => write!(f, "{command}: {error}"),
            ReplayError::Failed { command, error } => write!(f, "{command}: {error}"),
            ReplayError::NestedMulti => f.write_str("MULTI within MULTI"),
            ReplayError::WithoutMulti => f.write_str("EXEC without MULTI"),
        }
    }
}

impl std::error::Error for ReplayError {}

/// Client flags that an annotation has said of the next command's value.
#[derive(Clone, Copy, Debug, Default)]
struct Annotation {
    flags: u32,
}

/// The client flags that a line says of the next command's value, if it is one of Tenon's; given with or without its `#`.
pub(crate) fn annotated_flags(line: &[u8]) -> Option<u32> {
    let line = line.strip_prefix(b"#").unwrap_or(line);
    let number = line.strip_prefix(FLAGS_ANNOTATION).and_then(|text| std::str::from_utf8(text).ok());
    number.and_then(|text| text.trim_end().parse().ok())
}

/// Runs commands again, one after another, for a client of nobody's.
pub(crate) struct Player<'e> {
    engine: &'e Engine,
    session: Session,
    /// What the commands answer, of which only an error is looked at.
    out: OutBuf,
}

impl<'e> Player<'e> {
    /// In database 0.
    pub(crate) fn new(engine: &'e Engine) -> Player<'e> {
        let key = ConnectionKey { worker: 0, index: 0, generation: 0 };
        let (remote, local) = (String::new(), String::new());
        let info = ClientInfo { key, dialect: Dialect::Resp, remote, local, fd: -1, unix: false };
        let session = engine.open_own_session(Arc::new(Client::of_nobody(info)));
        Player { engine, session, out: OutBuf::new() }
    }

    /// Goes on in a database, which there is.
    pub(crate) fn go_to(&mut self, database: usize) {
        self.session.database = database;
    }

    /// Runs a command, whose value has these client flags then.
    pub(crate) fn play(
        &mut self,
        worker: &mut Worker,
        target: &Target,
        args: &Args<'_>,
        flags: u32,
    ) -> Result<(), ReplayError> {
        if let Target::Refused(wrong, resolved) = target {
            return Err(ReplayError::Refused { command: name_of(args), error: wrong.error(*resolved, args) });
        }
        let (was_replaying, was_muted) = (worker.is_replaying, worker.record.mute(true));
        worker.is_replaying = true;
        let result = match target {
            Target::Key(resolved, hash) => self.run_key(worker, *resolved, *hash, args),
            Target::Other(resolved) => self.run(worker, *resolved, args),
            Target::Settled(_) | Target::Refused(..) => unreachable!("nothing has run yet, and there is a command"),
        };
        if result.is_ok()
            && flags != 0
            && let Target::Key(resolved, hash) = target
        {
            self.set_flags(worker, *hash, args.get(usize::from(resolved.key)), flags);
        }
        worker.is_replaying = was_replaying;
        worker.record.mute(was_muted);
        worker.sweep();
        // A script says in its reply what went wrong.
        let answer = self.out.contiguous().unwrap_or_default();
        // What is of several pieces is a long text, and the last of them may begin with anything.
        let has_failed = result.is_err() || answer.first() == Some(&b'-');
        if !has_failed {
            self.forget_answer();
            return Ok(());
        }
        let error = match result {
            Err(error) => error.to_string(),
            Ok(()) => String::from_utf8_lossy(&answer[1..]).trim_end().to_owned(),
        };
        self.forget_answer();
        Err(ReplayError::Failed { command: name_of(args), error })
    }

    fn forget_answer(&mut self) {
        self.out.clear();
        self.out.shrink(ANSWER_KEPT);
    }

    /// Runs a command on one key: nearly all that a log has.
    fn run_key(
        &mut self,
        worker: &mut Worker,
        resolved: Resolved,
        hash: KeyHash,
        args: &Args<'_>,
    ) -> Result<(), CmdError> {
        let engine = self.engine;
        let index = engine.shards.index(hash);
        let mut state = engine.lock_serving(worker, index);
        if state.shard.needs_care() {
            drop(state);
            return self.run(worker, resolved, args);
        }
        let (database, key) = (self.session.database, args.get(usize::from(resolved.key)));
        let mut cx = KeyCx { engine, worker, state: &mut state, database, hash, key, touches: true };
        let mut reply = Reply::new(&mut self.out, Proto::Resp2);
        resolved.command.run_on_key(&mut cx, args, &mut reply).map(|_effect| ())
    }

    fn run(&mut self, worker: &mut Worker, resolved: Resolved, args: &Args<'_>) -> Result<(), CmdError> {
        let engine = self.engine;
        let mut reply = Reply::new(&mut self.out, Proto::Resp2);
        match resolved.command.run {
            // As within EXEC: it does not wait.
            Run::Blocking(_) => {
                let indexes = engine.shards_of(resolved.command, args);
                let held = engine.lock_several(worker, indexes, OnBusy::Serve)?;
                engine.run_to_end(worker, &mut self.session, resolved, args, held, &mut reply)
            }
            _ => engine.run_one(worker, &mut self.session, resolved, args, &mut reply),
        }
    }

    /// Gives the value that a command has stored the client flags that an annotation said.
    fn set_flags(&self, worker: &mut Worker, hash: KeyHash, key: &[u8], flags: u32) {
        self.engine.with_key(worker, self.session.database, hash, key, |cx| {
            if let Some(slot) = cx.find() {
                let meta = tenon_store::entry::Meta { flags, ..cx.entry(slot).meta() };
                cx.set_meta(slot, &meta);
            }
        });
    }
}

fn name_of(args: &Args<'_>) -> String {
    String::from_utf8_lossy(args.get(0)).into_owned()
}

/// Runs the commands of one ordered log again.
pub struct Replayer<'e> {
    player: Player<'e>,
    /// What MULTI has begun, if it has.
    queue: Option<Vec<(OwnedArgs, Annotation)>>,
    annotation: Annotation,
}

impl<'e> Replayer<'e> {
    /// At the start of a log, in database 0.
    pub fn new(engine: &'e Engine) -> Replayer<'e> {
        Replayer { player: Player::new(engine), queue: None, annotation: Annotation::default() }
    }

    /// Whether MULTI has begun something whose EXEC has not come: at the end of a log that is a torn tail, of which
    /// nothing has been done.
    pub fn is_in_multi(&self) -> bool {
        self.queue.is_some()
    }

    /// Takes note of a line that begins with `#`, given with or without that, and without its end. Those that are not
    /// Tenon's say nothing.
    pub fn annotation(&mut self, line: &[u8]) {
        if let Some(flags) = annotated_flags(line) {
            self.annotation.flags = flags;
        }
    }

    /// Runs a command again, its name first; within MULTI it is run by EXEC.
    ///
    /// # Errors
    /// When it is no command, or answers an error. What came before it is done.
    pub fn command(&mut self, worker: &mut Worker, words: &[&[u8]]) -> Result<(), ReplayError> {
        let annotation = std::mem::take(&mut self.annotation);
        let name = words.first().ok_or(ReplayError::Empty)?;
        let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        match &mut self.queue {
            Some(_) if is("MULTI") => Err(ReplayError::NestedMulti),
            Some(queue) if is("EXEC") => {
                let queue = std::mem::take(queue);
                self.queue = None;
                queue.iter().try_for_each(|(args, annotation)| self.run(worker, &args.view(), *annotation))
            }
            Some(_) if is("DISCARD") => {
                self.queue = None;
                Ok(())
            }
            Some(queue) => {
                queue.push((OwnedArgs::new(words), annotation));
                Ok(())
            }
            None if is("MULTI") => {
                self.queue = Some(Vec::new());
                Ok(())
            }
            None if is("EXEC") || is("DISCARD") => Err(ReplayError::WithoutMulti),
            None => self.run(worker, &OwnedArgs::new(words).view(), annotation),
        }
    }

    fn run(&mut self, worker: &mut Worker, args: &Args<'_>, annotation: Annotation) -> Result<(), ReplayError> {
        let target = self.player.engine.resolve_logged(args);
        self.player.play(worker, &target, args, annotation.flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Machine};
    use crate::test_set::SET;

    fn play(lines: &[&str]) -> (Engine, Vec<Result<(), ReplayError>>, bool) {
        let engine = Engine::new(Config::new(Machine::detect()), &[&SET], 1);
        let mut worker = engine.worker(0);
        let mut replayer = Replayer::new(&engine);
        let mut results = Vec::new();
        for line in lines {
            if line.starts_with('#') {
                replayer.annotation(line.as_bytes());
                continue;
            }
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            results.push(replayer.command(&mut worker, &words));
        }
        let is_in_multi = replayer.is_in_multi();
        (engine, results, is_in_multi)
    }

    /// The value and flags of a key, past its deadline or not.
    fn found(engine: &Engine, key: &str) -> Option<(Vec<u8>, u32)> {
        let hash = engine.shards.hash(key.as_bytes());
        engine.with_key(&mut engine.worker(0), 0, hash, key.as_bytes(), |cx| {
            let slot = cx.find_as_it_is()?;
            Some((crate::string::to_vec(cx.entry(slot).value()), cx.entry(slot).flags()))
        })
    }

    #[test]
    fn nothing_expires_while_a_log_is_read_back() {
        let (engine, results, _) = play(&["SET k v"]);
        assert_eq!(results, [Ok(())]);
        assert_eq!(found(&engine, "k"), Some((b"v".to_vec(), 0)));
    }

    #[test]
    fn a_transaction_is_done_with_its_end() {
        let (engine, results, is_in_multi) = play(&["MULTI", "#TENON:FLAGS 5", "SET k v"]);
        assert_eq!((results, is_in_multi), (vec![Ok(()), Ok(())], true));
        assert_eq!(found(&engine, "k"), None);
        let (engine, results, is_in_multi) =
            play(&["MULTI", "#TENON:FLAGS 5", "#TS:1700000000", "SET k v", "SET l w", "EXEC"]);
        assert!(results.iter().all(Result::is_ok) && !is_in_multi);
        assert_eq!(found(&engine, "k"), Some((b"v".to_vec(), 5)));
        assert_eq!(found(&engine, "l"), Some((b"w".to_vec(), 0)));
    }

    #[test]
    fn what_is_no_log_is_refused() {
        let text = |lines: &[&str]| play(lines).1.pop().expect("there is a line").unwrap_err().to_string();
        assert_eq!(text(&["EXEC"]), "EXEC without MULTI");
        assert_eq!(text(&["MULTI", "MULTI"]), "MULTI within MULTI");
        assert!(text(&["NOTHING"]).starts_with("NOTHING: ERR unknown command"));
        assert!(text(&["SET k"]).contains("wrong number of arguments"));
        assert_eq!(text(&["SET k no"]), "SET: ERR syntax error");
    }
}
