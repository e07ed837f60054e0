//! One worker's Lua states and what is compiled in them. Knows no command.

use super::known::{Known, Sha};
use super::libraries::{Function, Library, folded};
use crate::errors::{CmdError, exact};
use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::sync::Arc;
use tenon_script::interpreter::Settings;
use tenon_script::{Host, Interpreter, Kind, Random, Script};

/// Compiled scripts at which forgotten ones are let go for the first time.
const COMPILED_MAX: usize = 1_024;

/// So many scripts that the server has forgotten since are let go with the next tick, in whatever threads they are compiled: their
/// texts may be long.
const FORGOTTEN_MAX: u64 = 64;

/// Bytes up to which the state of functions is kept when all libraries that it knows are gone. One with nothing but the
/// sandbox has 100 KB, and making it costs as much as loading many libraries.
const EMPTY_STATE_MAX: usize = 1024 * 1024;

/// A script of EVAL, compiled.
pub(crate) struct Compiled {
    pub(crate) known: Arc<Known>,
    pub(crate) script: Script,
}

/// A function of a library, compiled.
pub(crate) struct CompiledFunction {
    pub(crate) function: Arc<Function>,
    pub(crate) script: Script,
}

/// A worker's states, made when they are first needed.
pub struct Interpreters {
    /// What `math.random` of all of them goes on with.
    random: Rc<Cell<Random>>,
    eval: Option<Interpreter>,
    /// The script that was run last by its text: mostly it is the next one, too.
    last: Option<Rc<Compiled>>,
    /// By a hash of their texts, which they have themselves.
    by_source: HashMap<u64, Rc<Compiled>>,
    hasher: RandomState,
    by_sha: HashMap<Sha, Rc<Compiled>>,
    /// Compiled scripts at which forgotten ones are let go, at least [`COMPILED_MAX`]. All are looked at then, and twice as
    /// many as stay are the next bound: so each script that comes costs the same, however many there are.
    let_go_at: usize,
    /// How many the server had forgotten when they were last let go.
    forgotten: u64,
    /// How many times all scripts had been forgotten when the state of EVAL was made.
    flushes: u64,
    functions: Option<Interpreter>,
    /// How many libraries had been taken away when those that are loaded here were last looked at.
    removed: u64,
    loaded: HashMap<Vec<u8>, Arc<Library>>,
    by_name: HashMap<Vec<u8>, Rc<CompiledFunction>>,
    /// How many times all scripts were looked at to let some go.
    #[cfg(test)]
    let_go_count: u32,
}

impl std::fmt::Debug for Interpreters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interpreters").field("removed", &self.removed).finish_non_exhaustive()
    }
}

/// The version that scripts are told, as a number.
fn version_number(version: &str) -> u32 {
    version.split('.').fold(0, |number, part| number << 8 | part.parse::<u32>().unwrap_or(0))
}

fn settings(memory_max: usize) -> Settings {
    Settings { memory_max, redis_version: (crate::version::REDIS, version_number(crate::version::REDIS)) }
}

impl Interpreters {
    /// None yet; `seed` is where the random numbers of scripts begin.
    pub(crate) fn new(seed: u64) -> Interpreters {
        Interpreters {
            random: Rc::new(Cell::new(Random::new(seed))),
            eval: None,
            last: None,
            by_source: HashMap::new(),
            hasher: RandomState::new(),
            by_sha: HashMap::new(),
            let_go_at: 0,
            forgotten: 0,
            flushes: 0,
            functions: None,
            removed: 0,
            loaded: HashMap::new(),
            by_name: HashMap::new(),
            #[cfg(test)]
            let_go_count: 0,
        }
    }

    /// The state of EVAL.
    pub(crate) fn eval(&mut self, memory_max: usize) -> &Interpreter {
        let new = || Interpreter::new(Kind::Scripts, &settings(memory_max), &self.random);
        let eval = self.eval.get_or_insert_with(new);
        eval.set_memory_max(memory_max);
        eval
    }

    /// The state of functions.
    pub(crate) fn functions(&mut self, memory_max: usize) -> &Interpreter {
        let new = || Interpreter::new(Kind::Libraries, &settings(memory_max), &self.random);
        let functions = self.functions.get_or_insert_with(new);
        functions.set_memory_max(memory_max);
        functions
    }

    /// Bytes that the states take.
    pub(crate) fn memory(&self) -> (usize, usize) {
        (self.eval.as_ref().map_or(0, Interpreter::memory), self.functions.as_ref().map_or(0, Interpreter::memory))
    }

    /// Lets the state of EVAL go if all scripts have been forgotten since it was made, as Redis does.
    pub(crate) fn follow_flushes(&mut self, flushes: u64) {
        if self.flushes != flushes {
            self.flushes = flushes;
            self.begin_eval_anew();
        }
    }

    /// Lets the state of EVAL go with all scripts that are compiled in it; each is compiled again when it is run next.
    pub(crate) fn begin_eval_anew(&mut self) {
        self.last = None;
        self.by_source.clear();
        self.by_sha.clear();
        self.let_go_at = 0;
        self.eval = None;
    }

    /// Collects a part of the states' garbage, where there is much; tells whether something is left to do.
    pub(crate) fn collect_some(&self) -> bool {
        // Each has its turn.
        [&self.eval, &self.functions].map(|state| state.as_ref().is_some_and(Interpreter::collect_some)).contains(&true)
    }

    /// The compiled script of a text.
    pub(crate) fn of_source(&mut self, source: &[u8]) -> Option<Rc<Compiled>> {
        let last = self.last.as_ref().filter(|compiled| *compiled.known.source == *source);
        let found = last.or_else(|| self.by_text(source)).filter(|compiled| !compiled.known.is_forgotten()).cloned();
        self.last.clone_from(&found);
        found
    }

    fn by_text(&self, source: &[u8]) -> Option<&Rc<Compiled>> {
        let found = self.by_source.get(&self.hasher.hash_one(source));
        // Another one may have the same hash.
        found.filter(|compiled| *compiled.known.source == *source)
    }

    /// The compiled script of a SHA1.
    pub(crate) fn of_sha(&self, sha: &Sha) -> Option<Rc<Compiled>> {
        self.by_sha.get(sha).filter(|compiled| !compiled.known.is_forgotten()).cloned()
    }

    /// Keeps a compiled script.
    pub(crate) fn keep(&mut self, compiled: Compiled) -> Rc<Compiled> {
        if self.by_sha.len() >= self.let_go_at.max(COMPILED_MAX) {
            self.let_go();
        }
        let compiled = Rc::new(compiled);
        self.by_source.insert(self.hasher.hash_one(&*compiled.known.source), Rc::clone(&compiled));
        self.by_sha.insert(compiled.known.sha, Rc::clone(&compiled));
        compiled
    }

    /// Lets forgotten scripts go where the server has forgotten many, of which there have been so many in all.
    pub(crate) fn follow_forgetting(&mut self, forgotten: u64) {
        if forgotten.abs_diff(self.forgotten) >= FORGOTTEN_MAX {
            self.forgotten = forgotten;
            self.let_go();
        }
    }

    /// Lets forgotten scripts go.
    fn let_go(&mut self) {
        self.last.take_if(|compiled| compiled.known.is_forgotten());
        self.by_source.retain(|_, compiled| !compiled.known.is_forgotten());
        self.by_sha.retain(|_, compiled| !compiled.known.is_forgotten());
        self.let_go_at = 2 * self.by_sha.len();
        #[cfg(test)]
        {
            self.let_go_count += 1;
        }
    }

    /// Lets go of the libraries that are gone since it was last called. Those that are new are loaded when a function of theirs is
    /// first called: so none stands in another's way.
    #[inline]
    pub(crate) fn follow(&mut self, libraries: &super::libraries::Libraries) {
        let removed = libraries.removed();
        if self.removed != removed {
            self.unload_gone(libraries);
            self.removed = removed;
        }
    }

    #[cold]
    fn unload_gone(&mut self, libraries: &super::libraries::Libraries) {
        let shelf = libraries.shelf();
        let gone: Vec<_> = self
            .loaded
            .values()
            .filter(|loaded| !shelf.library(&loaded.name).is_some_and(|library| Arc::ptr_eq(library, loaded)))
            .cloned()
            .collect();
        for library in gone {
            self.unload(&library);
        }
        if self.loaded.is_empty() && self.memory().1 > EMPTY_STATE_MAX {
            // What was loaded before is garbage as a whole, and a new state is less work than finding it.
            self.functions = None;
        }
    }

    /// Runs a library's code; gives the functions that it registers.
    ///
    /// # Errors
    /// When it fails.
    pub(crate) fn load(
        &mut self,
        code: &[u8],
        memory_max: usize,
        host: &mut dyn Host,
    ) -> Result<Vec<(tenon_script::FunctionInfo, Script)>, CmdError> {
        let body = code.iter().position(|byte| *byte == b'\n').unwrap_or(code.len());
        let loaded = self.functions(memory_max).load_library(&code[body..], host);
        loaded.map_err(|text| CmdError::new(exact(&text)))
    }

    /// Keeps the functions of a library that was loaded here, in the place of one with the same name.
    pub(crate) fn adopt(&mut self, library: &Arc<Library>, scripts: Vec<(tenon_script::FunctionInfo, Script)>) {
        if let Some(replaced) = self.loaded.get(&library.name).cloned() {
            self.unload(&replaced);
        }
        for (info, script) in scripts {
            // A library registers the same functions wherever it is loaded: it sees nothing that could differ.
            let Some(function) = library.function(&info.name).cloned() else { continue };
            self.by_name.insert(folded(&info.name).into_owned(), Rc::new(CompiledFunction { function, script }));
        }
        self.loaded.insert(library.name.clone(), Arc::clone(library));
    }

    /// Lets a library's functions go, those that no other library has taken over meanwhile.
    fn unload(&mut self, library: &Library) {
        self.loaded.remove(&library.name);
        for function in &library.functions {
            let name = folded(&function.info.name);
            if self.by_name.get(&*name).is_some_and(|compiled| Arc::ptr_eq(&compiled.function, function)) {
                self.by_name.remove(&*name);
            }
        }
    }

    /// The compiled function of a name, in any case.
    pub(crate) fn function(&self, name: &[u8]) -> Option<Rc<CompiledFunction>> {
        self.by_name.get(&*folded(name)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Machine};
    use crate::engine::Engine;
    use crate::scripting::known::{KnownScripts, Origin};
    use crate::scripting::scripts::sha_of;
    use tenon_script::ScriptFlags;

    #[test]
    fn scripts_that_stay_are_rarely_looked_at_and_forgotten_ones_go() {
        let (mut interpreters, known) = (Interpreters::new(1), KnownScripts::default());
        let mut keep = |number: usize, origin| {
            let source = format!("return {number}");
            let script = interpreters.eval(0).compile(source.as_bytes(), "@user_script").expect("it is a script");
            let new = Known::new(sha_of(source.as_bytes()), source.as_bytes(), ScriptFlags::UNSAID, 0);
            interpreters.keep(Compiled { known: known.add(new, origin), script });
            (interpreters.let_go_count, interpreters.by_sha.len())
        };
        let (loaded, evals) = (5_000, 20_000);
        let (count, _) = (0..loaded).map(|number| keep(number, Origin::Load)).last().expect("there are some");
        assert_eq!(count, 3, "at 1,024, 2,048 and 4,096");
        let mut most = 0;
        let mut count = 0;
        for number in loaded..loaded + evals {
            let (so_far, compiled) = keep(number, Origin::Eval);
            (count, most) = (so_far, most.max(compiled));
        }
        assert!(count < 10, "{count}");
        assert!(most < 3 * loaded, "{most}");
    }

    #[test]
    fn each_worker_has_random_numbers_of_its_own() {
        let engine = Engine::new(Config::new(Machine::detect()), &[], 1);
        let first = |worker: usize| engine.worker(worker).take_interpreters().random.get();
        assert_ne!(first(0), first(1));
    }
}
