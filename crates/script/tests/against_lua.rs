//! The string functions that Rust has in Lua's place, against Lua's own: the same results and the same errors for random
//! patterns.

use mlua::{Lua, MultiValue, Value};
use proptest::prelude::*;
use std::cell::Cell;
use std::rc::Rc;
use tenon_script::interpreter::Settings;
use tenon_script::{Host, Interpreter, Kind, LogLevel, NoSuchCommand, Outcome, Random, Stop, Words};
use tenon_wire::OutBuf;
use tenon_wire::resp::{Proto, Reply};

struct Nobody;

impl Host for Nobody {
    fn call(&mut self, _: &Words, _: Proto, _: &mut OutBuf) -> Result<(), Stop> {
        unreachable!("the scripts here call nothing")
    }

    fn may_call(&mut self, _: &Words) -> Result<bool, NoSuchCommand> {
        Err(NoSuchCommand)
    }

    fn log(&mut self, _: LogLevel, _: &[u8]) {}

    fn interrupt(&mut self) -> Result<(), Stop> {
        Ok(())
    }
}

/// Everything that a call gives, as text: `shown(pcall(f, ...))`. An error's place is left out.
const SHOWN: &str = "local function shown(ok, ...)
  local all = {tostring(ok)}
  for i = 1, select('#', ...) do
    all[#all + 1] = type((select(i, ...))) .. ' ' .. tostring((select(i, ...)))
  end
  return (table.concat(all, '|'):gsub('^false|string [%w_]*:%d+: ', 'false|string '))
end\n";

/// What Redis's `pcall` and Lua's give for the same call.
fn both(call: &str, words: &[&[u8]]) -> (String, String) {
    let source = format!("{SHOWN}return shown(pcall({call}))");
    let lua = Lua::new();
    let arguments: MultiValue = words.iter().map(|word| Value::String(lua.create_string(word).unwrap())).collect();
    let list = lua.create_sequence_from(arguments).unwrap();
    lua.globals().set("ARGV", list).unwrap();
    let expected: mlua::LuaString = lua.load(&source).set_name("=lua").eval().unwrap();
    let expected = expected.to_string_lossy();

    thread_local! {
        static OURS: Interpreter = Interpreter::new(
            Kind::Scripts,
            &Settings { memory_max: 0, redis_version: ("7.4.0", 0) },
            &Rc::new(Cell::new(Random::new(1))),
        );
    }
    let got = OURS.with(|ours| {
        let script = ours.compile(source.as_bytes(), "@user_script").unwrap();
        let mut out = OutBuf::new();
        let mut reply = Reply::new(&mut out, Proto::Resp2);
        let none: [&[u8]; 0] = [];
        match ours.eval(&script, none.into_iter(), words.iter().copied(), &mut Nobody, &mut reply) {
            Outcome::Done(_) => {
                let bytes = out.contiguous().unwrap();
                let text = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
                String::from_utf8_lossy(&bytes[text..bytes.len() - 2]).into_owned()
            }
            other => format!("{other:?}"),
        }
    });
    (expected, got)
}

fn pattern() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "a", "b", "x", ".", "%a", "%d", "%w", "%s", "%%", "%.", "[ab]", "[^a]", "[a-c]", "[%w_]", "(", ")", "()", "*",
        "+", "-", "?", "^", "$", "%1", "%2", "%b()", "%bab", "%f[%w]", "%f[^a]", "[]a]", "[", "%", "]", "[a-]", "[%]",
        "%Z", "\0",
    ]);
    prop::collection::vec(pieces, 0..8).prop_map(|pieces| pieces.concat())
}

fn text() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec!["a", "b", "c", "x", "1", " ", ".", "(", ")", "ab", "aa", "-", "%", "\0"]);
    prop::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn patterns_find_what_lua_finds(text in text(), pattern in pattern(), init in -3_i32..8, by in pattern()) {
        let init = init.to_string();
        let words: [&[u8]; 4] = [text.as_bytes(), pattern.as_bytes(), init.as_bytes(), by.as_bytes()];
        for call in [
            "string.find, ARGV[1], ARGV[2], ARGV[3]",
            "string.find, ARGV[1], ARGV[2], ARGV[3], true",
            "string.match, ARGV[1], ARGV[2], ARGV[3]",
            "string.gsub, ARGV[1], ARGV[2], ARGV[4]",
            "string.gsub, ARGV[1], ARGV[2], ARGV[4], ARGV[3]",
            "string.gsub, ARGV[1], ARGV[2], {a = 'A', ab = 'AB', [1] = 'one'}",
            "string.gsub, ARGV[1], ARGV[2], function(...) return '<' .. select('#', ...) .. tostring((...)) .. '>' end",
            "function() local all = {} for a, b in string.gmatch(ARGV[1], ARGV[2]) do \
               all[#all + 1] = tostring(a) .. ':' .. tostring(b) end return table.concat(all, ',') end",
            "string.rep, ARGV[1], ARGV[3]",
        ] {
            let (expected, got) = both(call, &words);
            prop_assert_eq!(got, expected, "{}", call);
        }
    }
}
