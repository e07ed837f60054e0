//! FUNCTION LOAD and RESTORE: libraries that come in. Knows no Lua.

use super::host::log;
use super::interpreters::{CompiledFunction, Interpreters};
use super::libraries::{Library, Shelf};
use super::payload::{self, Restore};
use crate::clock::thread_cpu_ns;
use crate::context::ServerCx;
use crate::engine::Engine;
use crate::errors::{CmdError, exact};
use crate::locking::SLICE;
use crate::meanwhile;
use crate::record::Word;
use crate::worker::Worker;
use parking_lot::MutexGuard;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tenon_script::{FunctionInfo, Host, LibraryHead, LogLevel, NoSuchCommand, Script, Stop, Words};
use tenon_wire::OutBuf;
use tenon_wire::resp::Proto;

/// How long a library's code may take to register its functions: time on a processor, so that none is refused because others
/// are busy.
const LOAD_MAX: Duration = Duration::from_millis(500);

/// What a library sees of the server while it is loaded: the log, and a clock.
struct LoadHost {
    until_ns: Option<u64>,
}

impl LoadHost {
    fn new(time_max: Option<Duration>) -> LoadHost {
        LoadHost { until_ns: time_max.map(|time| thread_cpu_ns() + time.as_nanos() as u64) }
    }
}

/// How long code may take that this worker reads; what the log has was accepted once.
fn time_max(worker: &Worker) -> Option<Duration> {
    (!worker.is_replaying).then_some(LOAD_MAX)
}

impl Host for LoadHost {
    fn call(&mut self, _: &Words, _: Proto, _: &mut OutBuf) -> Result<(), Stop> {
        unreachable!("a library that is loaded finds no call")
    }

    fn may_call(&mut self, _: &Words) -> Result<bool, NoSuchCommand> {
        unreachable!("a library that is loaded finds no acl_check_cmd")
    }

    fn log(&mut self, level: LogLevel, text: &[u8]) {
        log(level, text);
    }

    fn interrupt(&mut self) -> Result<(), Stop> {
        if self.until_ns.is_some_and(|until_ns| thread_cpu_ns() > until_ns) { Err(Stop::LoadTimeout) } else { Ok(()) }
    }
}

/// What becomes of a library with the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnExisting {
    /// The new one is refused.
    Refuse,
    /// It goes.
    Replace,
}

/// A library, and what it registers where it was loaded.
type Loaded = (Arc<Library>, Vec<(FunctionInfo, Script)>);

impl Engine {
    /// The function of a name, in any case. Its library is loaded here if it is not yet: it was once already, by the worker
    /// to which it came. What does not load is tried again with the next call.
    ///
    /// # Errors
    /// When there is no such function, or its library does not load here.
    pub(crate) fn compiled_function(
        &self,
        interpreters: &mut Interpreters,
        name: &[u8],
    ) -> Result<Rc<CompiledFunction>, CmdError> {
        const MISSING: CmdError = CmdError::text("ERR Function not found");
        interpreters.follow(&self.scripts.libraries);
        if let Some(function) = interpreters.function(name) {
            return Ok(function);
        }
        let library = self.scripts.libraries.library_of(name).ok_or(MISSING)?;
        let memory_max = self.config.script_memory_max() as usize;
        let scripts = interpreters.load(&library.code, memory_max, &mut LoadHost::new(None))?;
        interpreters.adopt(&library, scripts);
        interpreters.function(name).ok_or(MISSING)
    }

    /// Runs a library's code and makes its functions known (FUNCTION LOAD); gives its name.
    ///
    /// # Errors
    /// When it makes no sense, does not load, or its name or one of its functions' is taken.
    pub fn function_load(&self, cx: &mut ServerCx<'_>, code: &[u8], replace: bool) -> Result<Vec<u8>, CmdError> {
        let on_existing = if replace { OnExisting::Replace } else { OnExisting::Refuse };
        self.with_interpreters(cx, |cx, interpreters| {
            let is_known = |name: &[u8]| self.scripts.libraries.has(name);
            let time_max = time_max(cx.worker);
            let (library, scripts) = self.read_library(interpreters, code, is_known, on_existing, time_max)?;
            self.change_libraries(cx.worker, |worker, shelf| {
                if on_existing == OnExisting::Refuse && shelf.has(&library.name) {
                    return Err(already_exists(&library.name));
                }
                shelf.add(Arc::clone(&library))?;
                self.log_libraries(worker, &["FUNCTION".into(), "LOAD".into(), "REPLACE".into(), code.into()]);
                Ok(())
            })?;
            // It is loaded here: who calls it through this worker need not load it again.
            interpreters.adopt(&library, scripts);
            Ok(library.name.clone())
        })
    }

    /// Runs the code of a library that a file has, and makes its functions known.
    ///
    /// # Errors
    /// As `function_load`.
    pub(crate) fn add_library(
        &self,
        worker: &mut Worker,
        code: &[u8],
        on_existing: OnExisting,
    ) -> Result<(), CmdError> {
        let mut interpreters = worker.take_interpreters();
        let is_known = |name: &[u8]| self.scripts.libraries.has(name);
        let library = self.read_library(&mut interpreters, code, is_known, on_existing, None);
        let (eval, functions) = interpreters.memory();
        worker.stats.note_lua(eval, functions);
        worker.interpreters = Some(interpreters);
        let (library, _) = library?;
        self.scripts.libraries.change(|shelf| shelf.add(library))
    }

    /// Runs a library's code in this worker: the library, and what it registers here.
    fn read_library(
        &self,
        interpreters: &mut Interpreters,
        code: &[u8],
        is_known: impl Fn(&[u8]) -> bool,
        on_existing: OnExisting,
        time_max: Option<Duration>,
    ) -> Result<Loaded, CmdError> {
        let text = |text: Vec<u8>| CmdError::new(exact(&text));
        let head = LibraryHead::parse(code).map_err(text)?;
        if on_existing == OnExisting::Refuse && is_known(&head.name) {
            return Err(already_exists(&head.name));
        }
        // What is loaded without a limit of time was accepted once, under whatever limits there were.
        let memory_max = time_max.map_or(0, |_| self.config.script_memory_max() as usize);
        let scripts = interpreters.load(code, memory_max, &mut LoadHost::new(time_max))?;
        let library = Library::new(head.name, code, scripts.iter().map(|(info, _)| info.clone()));
        Ok((Arc::new(library), scripts))
    }

    /// Removes a library (FUNCTION DELETE).
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn function_delete(&self, worker: &mut Worker, name: &[u8]) -> Result<(), CmdError> {
        self.change_libraries(worker, |worker, shelf| match shelf.remove(name) {
            Some(_) => {
                self.log_libraries(worker, &["FUNCTION".into(), "DELETE".into(), name.into()]);
                Ok(())
            }
            None => Err(CmdError::text("ERR Library not found")),
        })
    }

    /// Removes all libraries (FUNCTION FLUSH).
    pub fn function_flush(&self, worker: &mut Worker) {
        let emptied = self.change_libraries(worker, |worker, shelf| {
            if shelf.libraries().len() > 0 {
                self.log_libraries(worker, &["FUNCTION".into(), "FLUSH".into()]);
            }
            shelf.clear();
            Ok(())
        });
        emptied.expect("emptying does not fail");
    }

    /// All libraries as a payload (FUNCTION DUMP).
    pub fn function_dump(&self) -> Vec<u8> {
        let shelf = self.scripts.libraries.shelf();
        payload::encode(shelf.libraries().map(|library| &library.code[..]))
    }

    /// Adds the libraries of a payload, all of them or none (FUNCTION RESTORE).
    ///
    /// # Errors
    /// When the payload is none, one of its libraries does not load, or a name is taken.
    pub fn function_restore(&self, cx: &mut ServerCx<'_>, bytes: &[u8], how: Restore) -> Result<(), CmdError> {
        let codes = payload::decode(bytes)?;
        self.with_interpreters(cx, |cx, interpreters| {
            let mut restored = Shelf::default();
            for code in &codes {
                let time_max = time_max(cx.worker);
                let is_known = |name: &[u8]| restored.has(name);
                let (library, _) = self.read_library(interpreters, code, is_known, OnExisting::Refuse, time_max)?;
                restored.add(library)?;
            }
            self.change_libraries(cx.worker, |worker, shelf| {
                // All libraries or none: what fails does so on a copy.
                let mut next = shelf.clone();
                if how == Restore::Flush {
                    next.clear();
                }
                for library in restored.libraries() {
                    if how == Restore::Append && next.has(&library.name) {
                        let name = String::from_utf8_lossy(&library.name);
                        return Err(CmdError::new(format!("ERR Library {name} already exists")));
                    }
                    next.remove(&library.name);
                }
                restored.libraries().try_for_each(|library| next.add(Arc::clone(library)))?;
                *shelf = next;
                let policy = if how == Restore::Flush { "FLUSH" } else { "REPLACE" };
                self.log_libraries(worker, &["FUNCTION".into(), "RESTORE".into(), bytes.into(), policy.into()]);
                Ok(())
            })
        })
    }

    /// Changes the libraries, in the order in which the log has it. A change that fails has to leave them as they were.
    fn change_libraries<R>(
        &self,
        worker: &mut Worker,
        change: impl FnOnce(&mut Worker, &mut Shelf) -> Result<R, CmdError>,
    ) -> Result<R, CmdError> {
        // EXEC keeps it until the record of the whole transaction is appended.
        let _order = if worker.record.is_in_unit() { None } else { Some(self.wait_for_order()?) };
        self.scripts.libraries.change(|shelf| change(worker, shelf))
    }

    /// Waits until no transaction changes libraries. Who waits does not keep its worker's other clients waiting, and goes
    /// away when that transaction has a busy script.
    fn wait_for_order(&self) -> Result<MutexGuard<'_, ()>, CmdError> {
        loop {
            if let Some(order) = self.scripts.libraries.try_keep_order(SLICE) {
                return Ok(order);
            }
            self.refuse_if_busy()?;
            meanwhile::lend();
        }
    }

    /// Puts down what has become of the libraries: as a record of its own, or as a part of the transaction's. Save points count it.
    fn log_libraries(&self, worker: &mut Worker, words: &[Word<'_>]) {
        worker.stats.changed();
        if worker.record.is_in_unit() {
            return self.log(worker, 0, words);
        }
        self.with_own_record(worker, |worker| {
            self.log(worker, 0, words);
            self.commit(worker);
        });
    }

    /// Makes the server forget all scripts of EVAL (SCRIPT FLUSH).
    pub fn script_flush(&self, worker: &mut Worker) {
        self.scripts.known.flush();
        // The other threads let theirs go when they run a script, or with their next tick.
        self.tidy_interpreters(worker);
    }
}

fn already_exists(name: &[u8]) -> CmdError {
    CmdError::new(format!("ERR Library '{}' already exists", String::from_utf8_lossy(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Caller, Config, Machine};
    use tenon_script::ScriptFlags;

    #[test]
    fn a_library_that_does_not_load_stands_in_no_others_way_and_is_tried_again() {
        let engine = Engine::new(Config::new(Machine::detect()), &[], 1);
        let add = |name: &[u8], code: &str| {
            let info = FunctionInfo { name: name.to_vec(), description: None, flags: ScriptFlags::NONE };
            let library = Arc::new(Library::new(name.to_vec(), code.as_bytes(), [info]));
            engine.scripts.libraries.change(|shelf| shelf.add(library)).expect("its name is free");
        };
        let memory_max = |bytes: &[u8]| engine.config.set(&[(b"script-memory-max", bytes)], Caller::Local).is_ok();
        add(b"a", "#!lua name=a\nlocal s = ('x'):rep(3000000) redis.register_function('a', function() return #s end)");
        add(b"b", "#!lua name=b\nredis.register_function('b', function() return 1 end)");
        add(b"c", "#!lua name=c\nnothing()");
        assert!(memory_max(b"1mb"));
        let mut interpreters = Interpreters::new(1);
        let mut compile = |name: &[u8]| {
            let compiled = engine.compiled_function(&mut interpreters, name);
            compiled.map(|compiled| compiled.function.info.name.clone()).map_err(|error| error.to_string())
        };
        assert_eq!(compile(b"B"), Ok(b"b".to_vec()));
        assert!(compile(b"a").expect_err("it is too large").contains("not enough memory"));
        assert!(compile(b"c").expect_err("there is no such thing").contains("nonexistent global variable 'nothing'"));
        assert_eq!(compile(b"d"), Err("ERR Function not found".to_owned()));
        assert_eq!(compile(b"b"), Ok(b"b".to_vec()));
        assert!(memory_max(b"16mb"));
        assert_eq!(compile(b"a"), Ok(b"a".to_vec()));
    }
}
