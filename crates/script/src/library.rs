//! Function libraries: what stands in their first line, and what they register. Knows no command.

use crate::arguments::get;
use crate::interpreter::{Script, State};
use crate::raise::redis_error;
use crate::shebang::ScriptFlags;
use mlua::{Function, Lua, MultiValue, Table, Value};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use tenon_wire::resp::words_of;

const BAD_NAME: &str =
    "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long";

/// A function as a library registers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionInfo {
    /// Its name.
    pub name: Vec<u8>,
    /// What it says about itself for people.
    pub description: Option<Vec<u8>>,
    /// What it says about itself for the server.
    pub flags: ScriptFlags,
}

/// The functions that a library has registered so far, by their names.
pub(crate) type Registering = BTreeMap<Vec<u8>, (FunctionInfo, Script)>;

/// The first line of a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryHead {
    /// The library's name.
    pub name: Vec<u8>,
    /// Where its code begins: at the end of the line, so that lines keep their numbers.
    pub body: usize,
}

impl LibraryHead {
    /// Reads the first line.
    ///
    /// # Errors
    /// When it does not name engine and library, or says something else; the text begins with a code.
    pub fn parse(source: &[u8]) -> Result<LibraryHead, Vec<u8>> {
        let error =
            |text: &str, word: &[u8], rest: &str| Err([b"ERR ", text.as_bytes(), word, rest.as_bytes()].concat());
        if !source.starts_with(b"#!") {
            return error("Missing library metadata", b"", "");
        }
        let Some(body) = source.iter().position(|byte| *byte == b'\n') else {
            return error("Invalid library metadata", b"", "");
        };
        let words = words_of(&source[..body]).unwrap_or_default();
        let Some((engine, words)) = words.split_first() else { return error("Invalid library metadata", b"", "") };
        let engine = engine.strip_prefix(b"#!").unwrap_or_default();
        let mut name = None;
        for word in words {
            const NAME: &[u8] = b"name=";
            let given = word.split_at_checked(NAME.len()).filter(|(key, _)| key.eq_ignore_ascii_case(NAME));
            match given.map(|(_, name)| name) {
                Some(_) if name.is_some() => {
                    return error("Invalid metadata value, name argument was given multiple times", b"", "");
                }
                Some(given) => name = Some(given.to_vec()),
                None => return error("Invalid metadata value given: ", word, ""),
            }
        }
        let Some(name) = name else { return error("Library name was not given", b"", "") };
        if !is_name(&name) {
            return error(BAD_NAME, b"", "");
        }
        if !engine.eq_ignore_ascii_case(b"lua") {
            return error("Engine '", engine, "' not found");
        }
        Ok(LibraryHead { name, body })
    }
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// `redis.register_function`, in both of its forms.
pub(crate) fn register(lua: &Lua, state: &State, args: MultiValue) -> mlua::Result<()> {
    let (info, callback) = match args.len() {
        1 => match get(&args, 1) {
            Some(Value::Table(named)) => named_arguments(lua, named)?,
            _ => {
                return Err(redis_error(
                    "calling redis.register_function with a single argument is only applicable to Lua table \
                     (representing named arguments).",
                ));
            }
        },
        2 => {
            let Some(name) = text(lua, &args[0])? else {
                return Err(redis_error("first argument to redis.register_function must be a string"));
            };
            let Some(Value::Function(callback)) = get(&args, 2) else {
                return Err(redis_error("second argument to redis.register_function must be a function"));
            };
            (FunctionInfo { name, description: None, flags: ScriptFlags::NONE }, callback.clone())
        }
        _ => return Err(redis_error("wrong number of arguments to redis.register_function")),
    };
    if !is_name(&info.name) {
        return Err(redis_error(BAD_NAME));
    }
    let mut registering = state.registering.borrow_mut();
    let Some(functions) = registering.as_mut() else {
        return Err(redis_error("redis.register_function can only be called on FUNCTION LOAD command"));
    };
    match functions.entry(info.name.clone()) {
        Entry::Occupied(_) => return Err(redis_error("Function already exists in the library")),
        Entry::Vacant(place) => place.insert((info, Script::keep(lua, callback)?)),
    };
    Ok(())
}

fn text(lua: &Lua, value: &Value) -> mlua::Result<Option<Vec<u8>>> {
    Ok(match value {
        Value::String(_) | Value::Integer(_) | Value::Number(_) => {
            lua.coerce_string(value.clone())?.map(|text| text.as_bytes().to_vec())
        }
        _ => None,
    })
}

fn named_arguments(lua: &Lua, named: &Table) -> mlua::Result<(FunctionInfo, Function)> {
    let (mut name, mut description, mut callback, mut flags) = (None, None, None, ScriptFlags::NONE);
    for pair in named.pairs::<Value, Value>() {
        let (key, value) = pair?;
        let Some(key) = text(lua, &key)? else {
            return Err(redis_error("named argument key given to redis.register_function is not a string"));
        };
        match &key.to_ascii_lowercase()[..] {
            b"function_name" => match text(lua, &value)? {
                Some(text) => name = Some(text),
                None => {
                    return Err(redis_error(
                        "function_name argument given to redis.register_function must be a string",
                    ));
                }
            },
            b"description" => match text(lua, &value)? {
                Some(text) => description = Some(text),
                None => {
                    return Err(redis_error("description argument given to redis.register_function must be a string"));
                }
            },
            b"callback" => match value {
                Value::Function(function) => callback = Some(function),
                _ => {
                    return Err(redis_error("callback argument given to redis.register_function must be a function"));
                }
            },
            b"flags" => match value {
                Value::Table(list) => flags = read_flags(&list)?,
                _ => {
                    return Err(redis_error(
                        "flags argument to redis.register_function must be a table representing function flags",
                    ));
                }
            },
            _ => return Err(redis_error("unknown argument given to redis.register_function")),
        }
    }
    let name = name.ok_or_else(|| redis_error("redis.register_function must get a function name argument"))?;
    let callback = callback.ok_or_else(|| redis_error("redis.register_function must get a callback argument"))?;
    Ok((FunctionInfo { name, description, flags }, callback))
}

fn read_flags(list: &Table) -> mlua::Result<ScriptFlags> {
    let mut flags = ScriptFlags::NONE;
    for index in 1.. {
        match list.raw_get::<Value>(index)? {
            Value::Nil => break,
            Value::String(name) => match ScriptFlags::of(&name.as_bytes()) {
                Some(flag) => flags = flags.or(flag),
                None => return Err(redis_error("unknown flag given")),
            },
            _ => return Err(redis_error("unknown flag given")),
        }
    }
    Ok(flags)
}
