//! EVAL and FCALL: what must hold before a script runs, its shards, its run, and what its client is told. Knows no Lua.

use super::host::{BetweenRuns, Reach, Rights, ScriptHost, Subject};
use super::interpreters::{Compiled, Interpreters};
use super::known::{Known, Origin, Sha};
use super::reaching::Reached;
use super::scripts::sha_of;
use crate::args::Args;
use crate::clock::monotonic_ns;
use crate::command::{Command, Flags};
use crate::context::ServerCx;
use crate::engine::Engine;
use crate::errors::{CmdError, exact, text_bytes};
use crate::locking::OnBusy;
use crate::meanwhile;
use crate::monitor;
use crate::session::Session;
use crate::shards::Held;
use crate::table::Resolved;
use crate::worker::Worker;
use std::rc::Rc;
use std::sync::Arc;
use tenon_script::{Failure, Outcome, Propagation, Script, ScriptFlags, Stop, shebang};
use tenon_store::hash::KeyHash;
use tenon_wire::resp::Reply;

/// Whether a command lets its script write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// EVAL, EVALSHA, FCALL.
    ReadWrite,
    /// Those with `_RO` behind their names.
    ReadOnly,
}

/// How a command names its script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// With its text (EVAL).
    Source,
    /// With its SHA1 (EVALSHA).
    Sha,
}

/// What to run, compiled.
enum Runnable {
    Script(Rc<Compiled>),
    Function(Rc<super::interpreters::CompiledFunction>),
}

impl Runnable {
    fn subject(&self) -> Subject<'_> {
        match self {
            Runnable::Script(compiled) => Subject::Script(&compiled.known),
            Runnable::Function(compiled) => Subject::Function(&compiled.function),
        }
    }

    fn script(&self) -> &Script {
        match self {
            Runnable::Script(compiled) => &compiled.script,
            Runnable::Function(compiled) => &compiled.script,
        }
    }

    fn flags(&self) -> ScriptFlags {
        match self {
            Runnable::Script(compiled) => compiled.known.flags,
            Runnable::Function(compiled) => compiled.function.info.flags,
        }
    }
}

const NO_SCRIPT: CmdError = CmdError::text("NOSCRIPT No matching script. Please use EVAL.");

/// How many of the arguments behind argument 2 are keys.
fn key_count(args: &Args<'_>, no_number: CmdError) -> Result<usize, CmdError> {
    let count = tenon_wire::resp::number::parse_i64(args.get(2)).ok_or(no_number)?;
    if count > args.len() as i64 - 3 {
        return Err(CmdError::text("ERR Number of keys can't be greater than number of args"));
    }
    usize::try_from(count).map_err(|_| CmdError::text("ERR Number of keys can't be negative"))
}

/// Whether a command runs a script or a function.
pub(crate) fn is_script_call(command: &Command) -> bool {
    matches!(command.name, "EVAL" | "EVAL_RO" | "EVALSHA" | "EVALSHA_RO" | "FCALL" | "FCALL_RO")
}

/// The SHA1 that an argument is, in any case.
pub(crate) fn sha_argument(text: &[u8]) -> Option<Sha> {
    let mut sha: Sha = text.try_into().ok()?;
    sha.make_ascii_lowercase();
    Some(sha)
}

impl Engine {
    /// Runs EVAL and its kin.
    ///
    /// # Errors
    /// When the script cannot run, or ends with an error.
    pub fn eval(
        &self,
        cx: &mut ServerCx<'_>,
        args: &Args<'_>,
        by: By,
        access: Access,
        reply: &mut Reply<'_>,
    ) -> Result<(), CmdError> {
        self.show_call(cx, args);
        let sha = match by {
            By::Source => None,
            By::Sha => Some(sha_argument(args.get(1)).ok_or(NO_SCRIPT)?),
        };
        let keys = self.declared(args, key_count(args, CmdError::NotInteger)?);
        self.with_interpreters(cx, |cx, interpreters| {
            let compiled = match sha {
                None => self.compiled_of_source(interpreters, args.get(1), Origin::Eval)?,
                Some(sha) => self.compiled_of_sha(interpreters, &sha)?,
            };
            self.run_script(cx, interpreters, &Runnable::Script(compiled), &keys, args, access, reply)
        })
    }

    /// Runs FCALL and FCALL_RO.
    ///
    /// # Errors
    /// When there is no such function, it cannot run, or ends with an error.
    pub fn fcall(
        &self,
        cx: &mut ServerCx<'_>,
        args: &Args<'_>,
        access: Access,
        reply: &mut Reply<'_>,
    ) -> Result<(), CmdError> {
        self.show_call(cx, args);
        self.with_interpreters(cx, |cx, interpreters| {
            let function = self.compiled_function(interpreters, args.get(1))?;
            let keys = self.declared(args, key_count(args, CmdError::text("ERR Bad number of keys provided"))?);
            self.run_script(cx, interpreters, &Runnable::Function(function), &keys, args, access, reply)
        })
    }

    /// Shows a call to those who watch: before the commands that the script calls, and even if there is no such script.
    fn show_call(&self, cx: &ServerCx<'_>, args: &Args<'_>) {
        if self.monitors.are_watching() {
            let origin = monitor::Origin::Client(&cx.session.client);
            self.show_monitors(origin, cx.session.database, args, &cx.worker.secrets);
        }
    }

    /// The flags of a call. As in Redis, what a script or function says of itself takes the place of what its command says.
    pub(crate) fn flags_of(&self, resolved: Resolved, args: &Args<'_>) -> Flags {
        let flags = resolved.command.flags;
        if !is_script_call(resolved.command) {
            return flags;
        }
        let said = match resolved.command.name {
            "EVAL" | "EVAL_RO" => shebang::parse_script(args.get(1)).ok().map(|(flags, _)| flags),
            "EVALSHA" | "EVALSHA_RO" => {
                sha_argument(args.get(1)).and_then(|sha| Some(self.scripts.known.get(&sha)?.flags))
            }
            _ => self.scripts.libraries.function(args.get(1)).map(|function| function.info.flags),
        };
        let Some(said) = said.filter(|said| !said.any(ScriptFlags::UNSAID)) else { return flags };
        let mut flags = flags.without(Flags::WRITE.or(Flags::DENY_OOM).or(Flags::MAY_REPLICATE));
        if !said.any(ScriptFlags::NO_WRITES) {
            flags = flags.or(Flags::WRITE);
        }
        if !said.any(ScriptFlags::ALLOW_OOM.or(ScriptFlags::NO_WRITES)) {
            flags = flags.or(Flags::DENY_OOM);
        }
        flags
    }

    /// The keys that a script declares, behind argument 2.
    fn declared(&self, args: &Args<'_>, count: usize) -> Vec<KeyHash> {
        self.hashes_of(3..3 + count, args).collect()
    }

    /// Makes a script known without running it (SCRIPT LOAD); gives its SHA1.
    ///
    /// # Errors
    /// When it does not compile.
    pub fn script_load(&self, worker: &mut Worker, source: &[u8]) -> Result<Sha, CmdError> {
        let mut interpreters = worker.take_interpreters();
        interpreters.follow_flushes(self.scripts.known.flushes());
        let compiled = self.compiled_of_source(&mut interpreters, source, Origin::Load);
        worker.interpreters = Some(interpreters);
        compiled.map(|compiled| compiled.known.sha)
    }

    /// The script of this SHA1, in any case, if it is known (SCRIPT EXISTS and SHOW).
    pub fn script(&self, sha: &[u8]) -> Option<Arc<Known>> {
        self.scripts.known.get(&sha_argument(sha)?)
    }

    /// Calls `work` with the worker's states, which leave the worker for that time: a script needs both.
    pub(crate) fn with_interpreters<R>(
        &self,
        cx: &mut ServerCx<'_>,
        work: impl FnOnce(&mut ServerCx<'_>, &mut Interpreters) -> R,
    ) -> R {
        let mut interpreters = cx.worker.take_interpreters();
        interpreters.follow_flushes(self.scripts.known.flushes());
        let ran_script = std::mem::replace(&mut cx.worker.runs_script, true);
        let result = work(cx, &mut interpreters);
        cx.worker.runs_script = ran_script;
        let (eval, functions) = interpreters.memory();
        cx.worker.stats.note_lua(eval, functions);
        cx.worker.interpreters = Some(interpreters);
        result
    }

    /// What a thread does for its Lua states now and then; tells whether something is left to do.
    pub(crate) fn tidy_interpreters(&self, worker: &mut Worker) -> bool {
        let Some(interpreters) = &mut worker.interpreters else { return false };
        interpreters.follow_flushes(self.scripts.known.flushes());
        interpreters.follow_forgetting(self.scripts.known.evicted());
        interpreters.follow(&self.scripts.libraries);
        let is_left = interpreters.collect_some();
        let (eval, functions) = interpreters.memory();
        worker.stats.note_lua(eval, functions);
        is_left
    }

    fn compiled_of_source(
        &self,
        interpreters: &mut Interpreters,
        source: &[u8],
        origin: Origin,
    ) -> Result<Rc<Compiled>, CmdError> {
        if let Some(compiled) = interpreters.of_source(source) {
            self.scripts.known.note_use(&compiled.known);
            if origin == Origin::Load {
                let known = &compiled.known;
                self.scripts.known.add(Known::new(known.sha, source, known.flags, known.body), origin);
            }
            return Ok(compiled);
        }
        let text = |text: Vec<u8>| CmdError::new(exact(&text));
        let (flags, body) = shebang::parse_script(source).map_err(text)?;
        let known = Known::new(sha_of(source), source, flags, body);
        let script = self.compile(interpreters, &known)?;
        let known = self.scripts.known.add(known, origin);
        Ok(interpreters.keep(Compiled { known, script }))
    }

    fn compiled_of_sha(&self, interpreters: &mut Interpreters, sha: &Sha) -> Result<Rc<Compiled>, CmdError> {
        if let Some(compiled) = interpreters.of_sha(sha) {
            self.scripts.known.note_use(&compiled.known);
            return Ok(compiled);
        }
        let known = self.scripts.known.get(sha).ok_or(NO_SCRIPT)?;
        self.scripts.known.note_use(&known);
        let script = self.compile(interpreters, &known)?;
        Ok(interpreters.keep(Compiled { known, script }))
    }

    fn compile(&self, interpreters: &mut Interpreters, known: &Known) -> Result<Script, CmdError> {
        let memory_max = self.config.script_memory_max() as usize;
        let compile = |interpreters: &mut Interpreters| {
            interpreters.eval(memory_max).compile(&known.source[known.body..], "@user_script")
        };
        let mut compiled = compile(interpreters);
        let lacks_memory = compiled.as_ref().is_err_and(|text| text.ends_with(b"not enough memory"));
        // Where other scripts have taken the room, which would stay so for ever, they are compiled again when they come.
        if lacks_memory && interpreters.memory().0 > memory_max / 2 {
            interpreters.begin_eval_anew();
            compiled = compile(interpreters);
        }
        compiled.map_err(|text| {
            let text = exact(&text);
            CmdError::new(format!("ERR Error compiling script (new function): {text}"))
        })
    }

    /// What must hold before a script runs, and what it may then do.
    fn rights(
        &self,
        worker: &mut Worker,
        session: &Session,
        flags: ScriptFlags,
        access: Access,
    ) -> Result<Rights, CmdError> {
        // As in Redis it is looked once for all of EXEC's commands.
        let out_of_memory = session.in_exec.as_ref().map_or_else(|| !self.make_room(worker), |exec| exec.out_of_memory);
        let no_writes = flags.any(ScriptFlags::NO_WRITES);
        if !flags.any(ScriptFlags::UNSAID) {
            if !no_writes && let Some(error) = self.refusal_of_scripts(session) {
                return Err(error);
            }
            if !no_writes && access == Access::ReadOnly {
                return Err(CmdError::text("ERR Can not execute a script with write flag using *_ro command."));
            }
            if out_of_memory && !flags.any(ScriptFlags::ALLOW_OOM.or(ScriptFlags::NO_WRITES)) {
                return Err(CmdError::OutOfMemory);
            }
        }
        Ok(Rights {
            read_only: no_writes || access == Access::ReadOnly,
            out_of_memory: out_of_memory && !flags.any(ScriptFlags::ALLOW_OOM),
        })
    }

    /// Runs a compiled script, anew if it has to be.
    #[expect(clippy::too_many_arguments, reason = "they are what a call of a script is made of")]
    fn run_script(
        &self,
        cx: &mut ServerCx<'_>,
        interpreters: &mut Interpreters,
        runnable: &Runnable,
        keys: &[KeyHash],
        args: &Args<'_>,
        access: Access,
        reply: &mut Reply<'_>,
    ) -> Result<(), CmdError> {
        let rights = self.rights(cx.worker, cx.session, runnable.flags(), access)?;
        let memory_max = self.config.script_memory_max() as usize;
        let subject = runnable.subject();
        let interpreter = match runnable {
            Runnable::Script(_) => interpreters.eval(memory_max),
            Runnable::Function(_) => interpreters.functions(memory_max),
        };
        let everything = || (0..self.shards.count()).collect();
        let needs_everything = subject.reaching().furthest() == Reached::Everything;
        let mut indexes = if needs_everything { everything() } else { self.shards.indexes(keys) };
        let (database, started_ns) = (cx.session.database, monotonic_ns());
        let mut is_stray = false;
        let mut between = BetweenRuns { engine: self, long: None };
        for attempt in 0.. {
            let reach = match &mut cx.held {
                Some(held) => Reach::Given(&mut **held),
                // It may wait for any shard, and takes each when it touches it.
                None if is_stray => Reach::Own(Held::none()),
                None => {
                    let held = self.lock_several(cx.worker, indexes, OnBusy::Refuse)?;
                    // What an earlier attempt has found to be wanted may be without some of them.
                    if attempt == 0 {
                        held.prefetch_entries(&self.shards, database, keys);
                    }
                    Reach::Own(held)
                }
            };
            // All that it changes is one record.
            self.begin_unit(cx.worker);
            let mut host = ScriptHost {
                engine: self,
                worker: cx.worker,
                session: cx.session,
                reach,
                subject,
                rights,
                command: *args,
                started_ns,
                acted: false,
                wrote: false,
                wanted: Vec::new(),
                unsaid: Vec::new(),
                long: between.long.take(),
                is_stray: std::mem::take(&mut is_stray),
                begins_as_stray: false,
                is_recording: true,
                propagation: Propagation::default(),
                lends_at_ns: started_ns + meanwhile::LENT_AFTER_NS,
            };
            let (words, rest) = (args.from(3), args.from(3 + keys.len()));
            let keys_of = Taken { words, left: keys.len() };
            let mut outcome = match runnable {
                Runnable::Script(_) => interpreter.eval(runnable.script(), keys_of, rest, &mut host, reply),
                Runnable::Function(_) => interpreter.call(runnable.script(), keys_of, rest, &mut host, reply),
            };
            host.serve();
            if let Outcome::Stopped(stop @ Stop::Restart, _) = &mut outcome {
                // It is said again.
                host.unsaid.clear();
                // Whoever waits to kill it goes on waiting.
                between.long = host.long.take();
                if !between.may_go_on() {
                    *stop = Stop::Killed;
                }
            }
            let (wanted, begins_as_stray) = (std::mem::take(&mut host.wanted), host.begins_as_stray);
            drop(host);
            self.tell_served(cx.worker);
            if cx.session.database != database {
                cx.session.select(database);
            }
            match outcome {
                Outcome::Done(errors) => {
                    self.note_errors(cx.worker, args, &errors);
                    return Ok(());
                }
                Outcome::Failed(failure) => return self.fail(cx.worker, args, subject, &failure, reply),
                Outcome::Stopped(Stop::Restart, _) if begins_as_stray => {
                    self.begin_stray(cx.worker)?;
                    (is_stray, indexes) = (true, Vec::new());
                }
                Outcome::Stopped(Stop::Restart, _) => {
                    indexes = if attempt == 0 { wanted } else { everything() };
                }
                Outcome::Stopped(Stop::Killed | Stop::LoadTimeout, place) => {
                    // Of a function, too.
                    let text = b"ERR Script killed by user with SCRIPT KILL...".to_vec();
                    let failure = Failure { text, place, is_counted: false, is_broken: false };
                    return self.fail(cx.worker, args, subject, &failure, reply);
                }
            }
        }
        unreachable!("with everything held no script starts anew")
    }

    /// Counts the errors in a script's reply, those that no command has counted yet, and the call as one that failed.
    fn note_errors(&self, worker: &Worker, args: &Args<'_>, errors: &[Failure]) {
        if !errors.is_empty()
            && let Some(number) = self.resolve(args).number()
        {
            worker.stats.commands[usize::from(number)].failed.add(1);
        }
        for error in errors.iter().filter(|error| !error.is_counted) {
            worker.stats.all.errors.add(1);
            self.count_error(CmdError::new(exact(&error.text)).code());
        }
    }

    /// Tells the client of a script's error, with the place where it was raised.
    fn fail(
        &self,
        worker: &Worker,
        args: &Args<'_>,
        subject: Subject<'_>,
        failure: &Failure,
        reply: &mut Reply<'_>,
    ) -> Result<(), CmdError> {
        let text = exact(&failure.text);
        let name = subject.name();
        let text = match &failure.place {
            _ if failure.is_broken => {
                let text: String = text.chars().take(100).collect();
                format!("ERR Error running script {name}, {text}")
            }
            Some(place) => format!("{text} script: {name}, on {place}."),
            None => text,
        };
        if failure.is_counted {
            self.note_errors(worker, args, std::slice::from_ref(failure));
            reply.error(text_bytes(&text));
            return Ok(());
        }
        Err(CmdError::new(text))
    }
}

/// The first few of an iterator, which knows how many they are.
struct Taken<I> {
    words: I,
    left: usize,
}

impl<I: Iterator> Iterator for Taken<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        self.left = self.left.checked_sub(1)?;
        self.words.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<I: Iterator> ExactSizeIterator for Taken<I> {}
