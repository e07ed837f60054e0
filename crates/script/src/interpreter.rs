//! One Lua state with its sandbox: compiles scripts and runs them. Belongs to one thread. Knows no command.

use crate::host::{HOST, Host, Stop, Words};
use crate::raise::{self, Raised};
use crate::random::Random;
use crate::raw::results::Written;
use crate::raw::{basic, calls, guarded, numbers, stack, strings};
use crate::{bit, cjson, cmsgpack, pattern, raw, redis, structs};
use mlua::chunk::ChunkMode;
use mlua::{
    Function, HookTriggers, IntoLuaMulti, Lua, LuaOptions, MultiValue, RegistryKey, StdLib, Table, Value, VmState,
    WeakLua,
};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use tenon_wire::OutBuf;
use tenon_wire::resp::{Proto, Reply};

/// Instructions between two looks at the time and at who wants the script dead.
const INTERRUPT_EVERY: u32 = 10_000;

/// The source of the sandbox.
const PRELUDE: &str = include_str!("prelude.lua");

/// What a state is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Scripts of EVAL.
    Scripts,
    /// Libraries of FUNCTION.
    Libraries,
}

/// What is set when a state is made.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Most memory that the state may take, in bytes; 0: any.
    pub memory_max: usize,
    /// The Redis version that scripts are told, and as a number: 0x00MMmmpp.
    pub redis_version: (&'static str, u32),
}

/// What the callbacks of a state share.
pub(crate) struct State {
    pub(crate) lua: WeakLua,
    memory_max: Cell<usize>,
    /// The thread's random numbers: each of its states goes on with them.
    random: Rc<Cell<Random>>,
    /// Those that the script has asked for with `math.randomseed`, until it ends.
    seeded: Cell<Option<Random>>,
    /// The version that the script has chosen with `redis.setresp`.
    pub(crate) proto: Cell<Proto>,
    /// Where a call's words and reply are put together; taken out while it runs.
    pub(crate) scratch: RefCell<Option<Box<(Words, OutBuf)>>>,
    /// What the last call has come to, if that is no usual reply.
    pub(crate) odd: RefCell<Option<redis::Odd>>,
    /// What was wrong with the last call of a function that gives a number.
    pub(crate) fault: RefCell<Option<stack::Fault>>,
    /// With what Rust has panicked while the script ran.
    pub(crate) panic: RefCell<Option<Box<dyn Any + Send>>>,
    /// A buffer for the texts that functions make; taken out while one runs.
    pub(crate) text: RefCell<Vec<u8>>,
    /// The keys and arguments of the run.
    pub(crate) input: Input,
    /// The functions of the library that is being loaded.
    pub(crate) registering: RefCell<Option<crate::library::Registering>>,
    /// cjson's settings, which hold until the script ends.
    pub(crate) json: Rc<cjson::Settings>,
    /// Where the script was when it was stopped.
    stopped_at: RefCell<Option<String>>,
    /// What searches of patterns leave for each other.
    pub(crate) patterns: pattern::Patterns,
    /// What was worked on since the host was last asked whether to go on.
    work: Cell<usize>,
    /// What has become of the result of the run.
    pub(crate) written: Cell<Option<Written>>,
}

/// What a run is given.
pub(crate) struct Input {
    /// How many of the words are keys.
    pub(crate) keys: Cell<usize>,
    /// The keys and arguments: where each begins and how long it is, the keys first.
    pub(crate) words: RefCell<Vec<(*const u8, usize)>>,
    /// Where its result goes.
    pub(crate) reply: Cell<*mut Reply<'static>>,
}

impl Input {
    /// Notes what a run is given.
    fn set<'a>(
        &self,
        keys: impl ExactSizeIterator<Item = &'a [u8]>,
        args: impl ExactSizeIterator<Item = &'a [u8]>,
        reply: &mut Reply<'_>,
    ) {
        self.reply.set(std::ptr::from_mut(reply).cast());
        self.keys.set(keys.len());
        let mut words = self.words.borrow_mut();
        words.clear();
        words.extend(keys.chain(args).map(|word| (word.as_ptr(), word.len())));
    }

    /// Forgets it, before what it points to is gone.
    fn clear(&self) {
        const KEPT: usize = 1024;
        let mut words = self.words.borrow_mut();
        words.clear();
        words.shrink_to(KEPT);
        self.keys.set(0);
        self.reply.set(std::ptr::null_mut());
    }
}

/// Lifts the memory limit while Rust works for a script: mlua then needs no protected call for each value that it makes.
/// What Rust makes in one call is bounded by what it was given.
pub(crate) struct Unlimited<'a> {
    lua: &'a Lua,
    memory_max: usize,
}

impl<'a> Unlimited<'a> {
    pub(crate) fn new(lua: &'a Lua, state: &State) -> Unlimited<'a> {
        let memory_max = state.memory_max.get();
        set_limit(lua, 0);
        Unlimited { lua, memory_max }
    }
}

impl Drop for Unlimited<'_> {
    fn drop(&mut self) {
        set_limit(self.lua, self.memory_max);
    }
}

fn set_limit(lua: &Lua, memory_max: usize) {
    lua.set_memory_limit(memory_max).expect("the state has an allocator of mlua's");
}

impl State {
    /// The script's next random number, from 0 to 1, 1 excluded.
    pub(crate) fn next_random(&self) -> f64 {
        let mut random = self.seeded.get().unwrap_or_else(|| self.random.get());
        let number = random.next();
        match self.seeded.get() {
            Some(_) => self.seeded.set(Some(random)),
            None => self.random.set(random),
        }
        number
    }

    /// Counts so many pieces of work that are Rust's; tells whether the host is to be asked whether to go on.
    pub(crate) fn is_time(&self, work: usize) -> bool {
        const ASKED_EVERY: usize = 4096;
        let work = self.work.get().saturating_add(work);
        self.work.set(if work >= ASKED_EVERY { 0 } else { work });
        work >= ASKED_EVERY
    }

    /// The most memory that the state may take, in bytes; 0: any.
    pub(crate) fn memory_max(&self) -> usize {
        self.memory_max.get()
    }

    /// Lets the script's own code run from within a function of Rust, under the memory limit.
    pub(crate) fn limited<R>(&self, lua: &Lua, run: impl FnOnce() -> R) -> R {
        set_limit(lua, self.memory_max.get());
        let result = run();
        set_limit(lua, 0);
        result
    }

    /// Runs something; a panic ends the run, whatever the script would do about an error, and goes on behind it.
    fn unless_panicking<R>(&self, run: impl FnOnce() -> mlua::Result<R>) -> mlua::Result<R> {
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
            self.panic.replace(Some(panic));
            Err(Raised::Panicked.into())
        })
    }

    /// Whether the state may grow by so many bytes.
    pub(crate) fn has_room(&self, lua: &Lua, bytes: usize) -> bool {
        let most = self.memory_max.get();
        most == 0 || lua.used_memory().saturating_add(bytes) <= most
    }
}

/// A function of Rust as one of Lua.
pub(crate) fn function<R: IntoLuaMulti + 'static>(
    lua: &Lua,
    state: &Rc<State>,
    call: impl Fn(&Lua, &State, MultiValue) -> mlua::Result<R> + 'static,
) -> mlua::Result<Function> {
    let state = Rc::clone(state);
    lua.create_function(move |lua, args: MultiValue| {
        let _unlimited = Unlimited::new(lua, &state);
        state.unless_panicking(|| call(lua, &state, args))
    })
}

/// A compiled script. It lies in Lua's registry: of the handles that are a [`Function`] a state has room for 8,000.
#[derive(Clone, Debug)]
pub struct Script {
    key: Rc<RegistryKey>,
}

impl Script {
    pub(crate) fn keep(lua: &Lua, function: Function) -> mlua::Result<Script> {
        Ok(Script { key: Rc::new(lua.create_registry_value(function)?) })
    }
}

/// How a script ended.
#[derive(Debug)]
pub enum Outcome {
    /// Its result is written as a reply, with these errors in it.
    Done(Vec<Failure>),
    /// With an error.
    Failed(Failure),
    /// It was stopped, and where, if that was in a script.
    Stopped(Stop, Option<String>),
}

/// The error that a script ended with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its text, the code first.
    pub text: Vec<u8>,
    /// The chunk and line where it was raised, if that was in a script: `@user_script:1`.
    pub place: Option<String>,
    /// Whether the statistics know the error already.
    pub is_counted: bool,
    /// Whether it came from Lua's innards (memory, its stack), and the script has no say.
    pub is_broken: bool,
}

/// A Lua state with its sandbox.
pub struct Interpreter {
    lua: Lua,
    state: Rc<State>,
    env: Table,
    eval: Function,
    call: Function,
    load: Function,
    /// Collections of garbage that are to be gone through until what runs have left behind is gone for certain: the one
    /// that may be under way misses what came after its beginning.
    cycles_left: Cell<u8>,
    /// Bytes that were taken when that was so last.
    clean: Cell<usize>,
}

/// Bytes of garbage that may stay until Lua needs the room.
const GARBAGE_KEPT: usize = 1 << 20;
/// Bytes that a collection has to free for another one to follow it.
const FREED_BY_ANOTHER: usize = 1 << 16;
/// Steps of a collection that are made at once, each of some two kilobytes: together less than a millisecond's work.
const STEPS_AT_ONCE: usize = 256;

impl Interpreter {
    /// A state at its start, with the thread's random numbers.
    pub fn new(kind: Kind, settings: &Settings, random: &Rc<Cell<Random>>) -> Interpreter {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::OS;
        let lua = Lua::new_with(libraries, LuaOptions::default()).expect("all of these libraries are safe");
        let state = Rc::new(State {
            lua: lua.weak(),
            memory_max: Cell::new(0),
            fault: RefCell::default(),
            panic: RefCell::default(),
            text: RefCell::default(),
            random: Rc::clone(random),
            seeded: Cell::new(None),
            proto: Cell::new(Proto::Resp2),
            scratch: RefCell::default(),
            odd: RefCell::default(),
            input: Input { keys: Cell::new(0), words: RefCell::default(), reply: Cell::new(std::ptr::null_mut()) },
            registering: RefCell::default(),
            json: Rc::default(),
            stopped_at: RefCell::default(),
            patterns: pattern::Patterns::default(),
            work: Cell::new(0),
            written: Cell::new(None),
        });
        let built = build(&lua, &state, kind, settings).expect("the sandbox can be built");
        let get = |name: &str| built.raw_get::<Function>(name).expect("the prelude gives it");
        let runner = |name: &str| calls::runner(&lua, &state, &get(name)).expect("there is memory");
        let (eval, call, load) = (runner("eval"), runner("call"), get("load"));
        let env = built.raw_get("env").expect("the prelude gives it");
        state.memory_max.set(settings.memory_max);
        let clean = Cell::new(lua.used_memory());
        Interpreter { lua, state, env, eval, call, load, cycles_left: Cell::new(0), clean }
    }

    /// Bytes of memory that the state takes.
    pub fn memory(&self) -> usize {
        self.lua.used_memory()
    }

    /// Collects a part of the garbage that runs have left behind, if it is much: Lua itself does that only while a script
    /// allocates. Tells whether something is left to do.
    pub fn collect_some(&self) -> bool {
        let cycles = self.cycles_left.get();
        if cycles > 0 {
            // What scripts that are gone have left in the registry.
            self.lua.expire_registry_values();
        }
        // An error of a finalizer: scripts have none.
        if cycles > 0 && (0..STEPS_AT_ONCE).any(|_| self.lua.gc_step().unwrap_or(true)) {
            let used = self.lua.used_memory();
            // The table of strings is halved once a collection, however many of them have gone.
            let is_worth_another = self.clean.replace(used) > used + FREED_BY_ANOTHER;
            self.cycles_left.set(if is_worth_another { 1 } else { cycles - 1 });
        }
        self.cycles_left.get() > 0
    }

    /// Sets the most memory that the state may take, in bytes; 0: any.
    pub fn set_memory_max(&self, memory_max: usize) {
        self.state.memory_max.set(memory_max);
    }

    /// Compiles a script; `name` is what errors call it, behind `@`.
    ///
    /// # Errors
    /// The compiler's text when it is no script.
    pub fn compile(&self, source: &[u8], name: &str) -> Result<Script, Vec<u8>> {
        let function = self.compile_limited(source, name.as_bytes())?;
        Script::keep(&self.lua, function).map_err(|error| error.to_string().into_bytes())
    }

    /// What a compiler makes can be many times as long as the source.
    fn compile_limited(&self, source: &[u8], name: &[u8]) -> Result<Function, Vec<u8>> {
        self.state.limited(&self.lua, || compile(&self.lua, source, name, &self.env))
    }

    /// Runs a script with its keys and arguments, and writes its result as a reply.
    pub fn eval<'a>(
        &self,
        script: &Script,
        keys: impl ExactSizeIterator<Item = &'a [u8]>,
        args: impl ExactSizeIterator<Item = &'a [u8]>,
        host: &mut dyn Host,
        reply: &mut Reply<'_>,
    ) -> Outcome {
        self.run(&self.eval, script, keys, args, host, reply)
    }

    /// Runs a function of a library in the same way.
    pub fn call<'a>(
        &self,
        function: &Script,
        keys: impl ExactSizeIterator<Item = &'a [u8]>,
        args: impl ExactSizeIterator<Item = &'a [u8]>,
        host: &mut dyn Host,
        reply: &mut Reply<'_>,
    ) -> Outcome {
        self.run(&self.call, function, keys, args, host, reply)
    }

    fn run<'a>(
        &self,
        runner: &Function,
        script: &Script,
        keys: impl ExactSizeIterator<Item = &'a [u8]>,
        args: impl ExactSizeIterator<Item = &'a [u8]>,
        host: &mut dyn Host,
        reply: &mut Reply<'_>,
    ) -> Outcome {
        self.state.proto.set(Proto::Resp2);
        self.state.json.reset();
        self.state.seeded.set(None);
        self.state.input.set(keys, args, reply);
        let result = HOST.set(host, || {
            let function = self.lua.registry_value::<Function>(&script.key).expect("the script is of this state");
            set_limit(&self.lua, self.state.memory_max.get());
            let result = runner.call::<Value>(&function);
            set_limit(&self.lua, 0);
            result
        });
        self.state.input.clear();
        // A call that did not end as usual has left its words or its reply.
        calls::settle(&self.state);
        strings::settle(&self.state);
        self.go_on_panicking();
        let outcome = match (result, self.state.written.take()) {
            (Ok(_), Some(Written::Whole(errors))) => Outcome::Done(errors),
            (Ok(_), Some(Written::Stopped(stop))) => Outcome::Stopped(stop, None),
            (Ok(_), Some(Written::LongerThan(most))) => {
                let text =
                    format!("ERR the answer would be longer than the {most} bytes that it may have").into_bytes();
                Outcome::Failed(Failure { text, place: None, is_counted: false, is_broken: false })
            }
            (Ok(_), Some(Written::TooLong)) => broken(b"not enough memory for the reply".to_vec()),
            (Ok(value), None) => self.failed(value),
            (Err(error), _) => self.failed(Value::Error(Box::new(error))),
        };
        self.look_at_garbage();
        outcome
    }

    /// A panic of the run that has ended goes on from here, as it would from any other command.
    fn go_on_panicking(&self) {
        if let Some(panic) = self.state.panic.take() {
            resume_unwind(panic);
        }
    }

    /// Lua 5.1 does not collect garbage when its memory is used up: a run that ends with much of it taken leaves the next
    /// one what it can. Where there is less it is left to [`Interpreter::collect_some`].
    fn look_at_garbage(&self) {
        let (used, most) = (self.lua.used_memory(), self.state.memory_max.get());
        if most > 0 && used > most / 2 {
            // An error of a finalizer: scripts have none.
            let _ = self.lua.gc_collect();
            self.clean.set(self.lua.used_memory());
        } else if used > self.clean.get() + GARBAGE_KEPT {
            self.cycles_left.set(2);
        }
    }

    /// What a run that did not end well has come to.
    fn failed(&self, value: Value) -> Outcome {
        match value {
            Value::Error(error) => match raise::raised(&error) {
                Some(Raised::Stop(stop)) => Outcome::Stopped(*stop, self.state.stopped_at.take()),
                Some(Raised::Text(text) | Raised::Table { err: text, .. }) => broken(text.clone()),
                Some(Raised::Panicked) | None => broken(error.to_string().into_bytes()),
            },
            Value::Table(table) => Outcome::Failed(described(&table)),
            Value::String(text) => broken(text.as_bytes().to_vec()),
            _ => broken(b"execution failure".to_vec()),
        }
    }

    /// Runs the code of a library and gives the functions that it has registered, in the order of their names.
    ///
    /// # Errors
    /// When it fails or is stopped; the text begins with a code.
    pub fn load_library(
        &self,
        code: &[u8],
        host: &mut dyn Host,
    ) -> Result<Vec<(crate::library::FunctionInfo, Script)>, Vec<u8>> {
        let function = self
            .compile_limited(code, b"@user_function")
            .map_err(|text| [b"ERR Error compiling function: ", &text[..]].concat())?;
        self.state.json.reset();
        *self.state.registering.borrow_mut() = Some(crate::library::Registering::new());
        let result = HOST.set(host, || {
            set_limit(&self.lua, self.state.memory_max.get());
            let result = self.load.call::<(bool, Value)>(function);
            set_limit(&self.lua, 0);
            result
        });
        let registered = self.state.registering.take().unwrap_or_default();
        self.look_at_garbage();
        self.go_on_panicking();
        let outcome = match result {
            Ok((true, _)) => Outcome::Done(Vec::new()),
            Ok((false, value)) => self.failed(value),
            Err(error) => self.failed(Value::Error(Box::new(error))),
        };
        match outcome {
            Outcome::Done(_) if registered.is_empty() => Err(b"ERR No functions registered".to_vec()),
            Outcome::Done(_) => Ok(registered.into_values().collect()),
            Outcome::Failed(failure) => Err([b"ERR Error registering functions: ", &failure.text[..]].concat()),
            Outcome::Stopped(..) => Err(b"ERR Error registering functions: ERR FUNCTION LOAD timeout".to_vec()),
        }
    }
}

/// A run that has ended for a reason that the script has not given.
fn broken(text: Vec<u8>) -> Outcome {
    Outcome::Failed(Failure { text, place: None, is_counted: false, is_broken: true })
}

/// Makes Rust's functions and runs the prelude over them.
fn build(lua: &Lua, state: &Rc<State>, kind: Kind, settings: &Settings) -> mlua::Result<Table> {
    let raw = lua.create_table()?;
    raw.raw_set("null", Value::NULL)?;
    raw.raw_set("explain", lua.create_function(explain)?)?;
    raw.raw_set("position", lua.create_function(|lua, _: ()| Ok(position(lua)))?)?;
    raw.raw_set(
        "stopped",
        function(lua, state, |_, state, args| {
            if let (Some(Value::String(source)), Some(line)) = (args.front(), args.get(1)) {
                let place = format!("{}:{}", source.to_string_lossy(), line.to_string()?);
                state.stopped_at.replace(Some(place));
            }
            Ok(())
        })?,
    )?;
    raw.raw_set("compile", function(lua, state, compile_chunk)?)?;
    basic::register(lua, &raw)?;
    guarded::register(lua, &raw)?;
    strings::register(lua, state, &raw)?;
    numbers::register(lua, state, &state.json, &raw, &[("random", redis::random)])?;
    raw.raw_set(
        "randomseed",
        function(lua, state, |lua, state, args| {
            state.seeded.set(Some(Random::seeded(crate::arguments::int(lua, &args, 1)?)));
            Ok(())
        })?,
    )?;
    let libraries = lua.create_table()?;
    libraries.raw_set("cjson", cjson::library(lua, state, &state.json)?)?;
    libraries.raw_set("cmsgpack", cmsgpack::library(lua, state)?)?;
    libraries.raw_set("struct", structs::library(lua, state)?)?;
    libraries.raw_set("bit", bit::library(lua, state)?)?;
    libraries.raw_set("redis", redis::library(lua, state, kind, settings)?)?;
    raw.raw_set("libraries", libraries)?;
    if kind == Kind::Libraries {
        raw.raw_set("while_loading", redis::while_loading(lua, state, settings)?)?;
    }
    // One function of `os` is harmless: how much time the process has used. Redis has it since 7.4.
    let os = lua.create_table()?;
    os.raw_set("clock", lua.globals().get::<Table>("os")?.get::<Function>("clock")?)?;
    raw.raw_set("os", os)?;
    let built = lua.load(PRELUDE).set_name("=prelude").set_mode(ChunkMode::Text).call(raw)?;
    let shared = Rc::clone(state);
    lua.set_global_hook(HookTriggers::new().every_nth_instruction(INTERRUPT_EVERY), move |_, _| {
        if HOST.is_set() {
            shared.unless_panicking(|| Ok(HOST.with(|host| host.interrupt()).map_err(Raised::Stop)?))?;
        }
        Ok(VmState::Continue)
    })?;
    Ok(built)
}

/// Whether a script may see this error, and what it then sees.
fn explain(lua: &Lua, value: Value) -> mlua::Result<(bool, Value)> {
    match &value {
        Value::Error(error) => Ok(match raise::explain(lua, error)? {
            Some(value) => (true, value),
            None => (false, Value::Nil),
        }),
        _ => Ok((true, value)),
    }
}

/// The chunk and the line of the innermost function that is neither Rust's nor the prelude's.
fn position(lua: &Lua) -> (Option<String>, Option<usize>) {
    for level in 1.. {
        let found = lua.inspect_stack(level, |debug| {
            let source = debug.source();
            if source.what == "C" || source.what == "tail" || source.short_src.as_deref() == Some("prelude") {
                return None;
            }
            Some((source.source.map(|source| source.into_owned()), debug.current_line()))
        });
        match found {
            None => break,
            Some(None) => {}
            Some(Some(place)) => return place,
        }
    }
    (None, None)
}

/// `loadstring` without its protection: text alone, bytecode is refused as it could break the machine.
fn compile_chunk(
    lua: &Lua,
    state: &State,
    args: MultiValue,
) -> mlua::Result<(Option<Function>, Option<mlua::LuaString>)> {
    let (source, name) = (crate::arguments::string(lua, &args, 1)?, crate::arguments::string(lua, &args, 2)?);
    let Some(Value::Table(env)) = args.get(2) else { unreachable!("the prelude gives the environment") };
    match state.limited(lua, || compile(lua, &source.as_bytes(), &name.as_bytes(), env)) {
        Ok(function) => Ok((Some(function), None)),
        Err(text) => Ok((None, Some(lua.create_string(text)?))),
    }
}

fn compile(lua: &Lua, source: &[u8], name: &[u8], env: &Table) -> Result<Function, Vec<u8>> {
    if source.first() == Some(&0x1B) {
        return Err(b"attempt to load chunk with wrong mode".to_vec());
    }
    // Lua's lexer counts what belongs together in an int (CVE-2025-46819).
    if source.len() > i32::MAX as usize {
        return Err(b"not enough memory".to_vec());
    }
    let text = |error: mlua::Error| error.to_string().into_bytes();
    match raw::compile::compile(lua, source, name).map_err(text)? {
        Value::Function(function) => {
            function.set_environment(env.clone()).map_err(text)?;
            Ok(function)
        }
        Value::String(error) => Err(error.as_bytes().to_vec()),
        other => unreachable!("the compiler gives no {}", other.type_name()),
    }
}

/// The error in a table with `err`, and maybe the place.
pub(crate) fn described(table: &Table) -> Failure {
    let field = |name: &str| table.raw_get::<Value>(name).unwrap_or(Value::Nil);
    let text = match field("err") {
        Value::String(text) => text.as_bytes().to_vec(),
        value @ (Value::Integer(_) | Value::Number(_)) => value.to_string().unwrap_or_default().into_bytes(),
        _ => b"ERR unknown error".to_vec(),
    };
    let place = match (field("source"), field("line")) {
        (Value::String(source), line @ (Value::Integer(_) | Value::Number(_) | Value::String(_))) => {
            let line = line.to_string().unwrap_or_default();
            Some(format!("{}:{line}", source.to_string_lossy()))
        }
        _ => None,
    };
    let is_counted = matches!(field("ignore_error_stats_update"), Value::Boolean(true));
    Failure { text, place, is_counted, is_broken: false }
}
