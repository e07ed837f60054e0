//! Running the commands of a log again, for loading: no gate is asked, nothing waits, nothing expires by itself, and
//! nothing is put down for a log. Knows no file, and no command but those that hold records together.

use crate::args::{Args, OwnedArgs};
use crate::batch::Target;
use crate::clients::{Client, ClientInfo, ConnectionKey, Dialect};
use crate::command::Run;
use crate::engine::Engine;
use crate::errors::CmdError;
use crate::locking::OnBusy;
use crate::record::FLAGS_ANNOTATION;
use crate::session::Session;
use crate::table::Resolved;
use crate::worker::Worker;
use std::fmt;
use std::sync::Arc;
use tenon_wire::OutBuf;
use tenon_wire::resp::{Proto, Reply};

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

/// Runs the commands of one ordered log again.
pub struct Replayer<'e> {
    engine: &'e Engine,
    session: Session,
    /// What MULTI has begun, if it has.
    queue: Option<Vec<(OwnedArgs, Annotation)>>,
    annotation: Annotation,
}

impl<'e> Replayer<'e> {
    /// At the start of a log, in database 0.
    pub fn new(engine: &'e Engine) -> Replayer<'e> {
        let key = ConnectionKey { worker: 0, index: 0, generation: 0 };
        let (remote, local) = (String::new(), String::new());
        let info = ClientInfo { key, dialect: Dialect::Resp, remote, local, fd: -1, unix: false };
        let session = engine.open_own_session(Arc::new(Client::of_nobody(info)));
        Replayer { engine, session, queue: None, annotation: Annotation::default() }
    }

    /// Whether MULTI has begun something whose EXEC has not come: at the end of a log that is a torn tail, of which
    /// nothing has been done.
    pub fn is_in_multi(&self) -> bool {
        self.queue.is_some()
    }

    /// Takes note of a line that begins with `#`, given with or without that, and without its end. Those that are not
    /// Tenon's say nothing.
    pub fn annotation(&mut self, line: &[u8]) {
        let line = line.strip_prefix(b"#").unwrap_or(line);
        let number = line.strip_prefix(FLAGS_ANNOTATION).and_then(|text| std::str::from_utf8(text).ok());
        if let Some(flags) = number.and_then(|text| text.trim_end().parse().ok()) {
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
        let name = || String::from_utf8_lossy(args.get(0)).into_owned();
        let resolved = match self.engine.resolve(args) {
            Target::Key(resolved, _) | Target::Other(resolved) => resolved,
            Target::Settled(_) => unreachable!("nothing has run yet"),
            Target::Refused(error, _) => return Err(ReplayError::Refused { command: name(), error: *error }),
        };
        let mut out = OutBuf::new();
        let (was_replaying, was_muted) = (worker.is_replaying, worker.record.mute(true));
        worker.is_replaying = true;
        let result = self.run_one(worker, resolved, args, &mut out);
        if result.is_ok() && annotation.flags != 0 {
            self.set_flags(worker, resolved, args, annotation.flags);
        }
        worker.is_replaying = was_replaying;
        worker.record.mute(was_muted);
        worker.sweep();
        let error = match result {
            Err(error) => error.to_string(),
            // A script says so in its reply.
            Ok(()) if out.tail().first() == Some(&b'-') => {
                String::from_utf8_lossy(&out.tail()[1..]).trim_end().to_owned()
            }
            Ok(()) => return Ok(()),
        };
        Err(ReplayError::Failed { command: name(), error })
    }

    fn run_one(
        &mut self,
        worker: &mut Worker,
        resolved: Resolved,
        args: &Args<'_>,
        out: &mut OutBuf,
    ) -> Result<(), CmdError> {
        let engine = self.engine;
        let mut reply = Reply::new(out, Proto::Resp2);
        match resolved.command.run {
            // As within EXEC: it does not wait.
            Run::Blocking(_) => {
                let indexes = engine.shards_of(resolved.command, args);
                let mut held = engine.lock_several(worker, indexes, OnBusy::Serve)?;
                engine.run_to_end(worker, &mut self.session, resolved, args, &mut held, &mut reply)
            }
            _ => engine.run_one(worker, &mut self.session, resolved, args, &mut reply),
        }
    }

    /// Gives the value that a command has stored the client flags that an annotation said.
    fn set_flags(&self, worker: &mut Worker, resolved: Resolved, args: &Args<'_>, flags: u32) {
        let Some(at) = resolved.single_key(args.len()) else { return };
        let key = args.get(at);
        let hash = self.engine.shards.hash(key);
        self.engine.with_key(worker, self.session.database, hash, key, |cx| {
            if let Some(slot) = cx.find() {
                let meta = tenon_store::entry::Meta { flags, ..cx.entry(slot).meta() };
                cx.set_meta(slot, &meta);
            }
        });
    }
}
