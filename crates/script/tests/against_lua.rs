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

/// Arguments as a script writes them.
fn arguments() -> impl Strategy<Value = String> {
    let values = prop::sample::select(vec![
        "t",
        "t",
        "t",
        "{}",
        "nil",
        "1",
        "2",
        "4",
        "-1",
        "0",
        "'2'",
        "'x'",
        "2.7",
        "'0x2'",
        "-0",
        "0.1",
        "print",
        "''",
        "true",
        "setmetatable({}, {__tostring = function() return 'named' end})",
    ]);
    prop::collection::vec(values, 0..4).prop_map(|values| values.iter().map(|value| format!(", {value}")).collect())
}

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "table.insert",
        "table.remove",
        "unpack",
        "tostring",
        "next",
        "rawget",
        "rawset",
        "pairs",
    ])
}

#[test]
fn arguments_are_refused_as_lua_refuses_them() {
    for call in [
        "string.gsub, 'a', 'a', nil, 'x'",
        "string.gsub, 'a', 'a', nil",
        "string.gsub, 'a', 'a'",
        "string.gsub, 'a', 'a', true",
        "string.gsub, 'a'",
        "string.gsub, {}, 'a', ''",
        "string.gsub, 'aaa', 'a', {}, '2x'",
        "string.gsub, 'aaa', 'a', 7, 2.9",
        "string.gsub, 111, 1, {['1'] = 2}, '2'",
        "string.gsub, 'aaa', 'a', '%', 2",
        "string.gsub, 'aaa', 'a', '%2', 2",
        "string.gmatch, nil, 'a'",
        "string.gmatch, 'a'",
        "string.find, 'a'",
        "string.find, 'a', 'a', 'x'",
        "string.match, 'a', {}",
        "string.rep, 'a'",
        "string.rep, 'a', {}",
        "function() ('a'):gsub() end",
        "function() ('a'):gsub('a', nil) end",
        "function() ('a'):gmatch() end",
        "function() ('a'):find() end",
        "function() string.gmatch('a', '(')() end",
        "function() return string.gsub('a', '(a', tostring) end",
        "pcall",
        "pcall, pcall",
        "pcall, error",
        "pcall, error, nil",
        "pcall, error, 7",
        "pcall, 7",
        "pcall, tostring",
        "pcall, select, '#', nil, nil",
        "tostring",
        "tostring, nil",
        "tostring, 99999999999999",
        "tostring, -99999999999999",
        "tostring, 100000000000000",
        "tostring, -100000000000000",
        "tostring, 0",
        "tostring, -0",
        "tostring, 0 / -1",
        "tostring, 0.5",
        "tostring, 1 / 0",
        "tostring, 2 ^ 53",
        "unpack, {1, 2, nil, 4}, 1, 4",
        "unpack, {1, 2}, 2",
        "unpack, {1, 2}, nil, 1",
        "unpack, {1, 2}, '1', '2'",
        "unpack, {1, 2}, -1.9, 1.9",
        "unpack, {1, 2}, 2147483647, 2147483647",
        "unpack, {1, 2}, -2147483648, -2147483648",
        "function() return select('#', unpack({}, 1, 7997)) end",
        "function() return select('#', unpack({}, 1, 7998)) end",
        "unpack, 7",
        "table.insert",
        "table.insert, {}",
        "table.insert, {}, 1, 2, 3",
        "table.insert, {}, 'x', 2",
        "table.remove",
        "table.remove, {}, 'x'",
        "pairs",
        "pairs, nil",
        "function() table.insert({}, 'x', 1) end",
        "function() unpack({}, 'x') end",
        "function() unpack({}, 1, 1e8) end",
        "function() pairs(7) end",
    ] {
        let (expected, got) = both(call, &[]);
        // Its own `pcall` says of nothing what Redis does.
        if call != "pcall" && call != "pcall, pcall" {
            assert_eq!(got, expected, "{call}");
        }
    }
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
            // What is put together is longer than the frame has room for.
            "string.gsub, ARGV[1], ARGV[2], function() return ('y'):rep(100) end",
            "string.gsub, ARGV[1], ARGV[2], function(found) return (found or ''):gsub('a', function() return 7 end) end",
            "string.gsub, ARGV[1], ARGV[2], function() return {} end, ARGV[3]",
            "string.gsub, ARGV[1], ARGV[2], function() error('of the call', 0) end",
            "string.gsub, ARGV[1], ARGV[2], setmetatable({}, {__index = function(_, key) return #tostring(key) end})",
            "function() local all = {} for a in string.gmatch(ARGV[1], ARGV[2]) do \
               all[#all + 1] = ARGV[1]:gsub(ARGV[2], '%0%0') .. tostring(a) end return table.concat(all, ',') end",
            "string.rep, ARGV[1], ARGV[3]",
        ] {
            let (expected, got) = both(call, &words);
            prop_assert_eq!(got, expected, "{}", call);
        }
    }

    #[test]
    fn tables_change_as_lua_changes_them(calls in prop::collection::vec((name(), arguments()), 1..4)) {
        let calls: Vec<_> = calls.iter().map(|(name, arguments)| format!("all(pcall({name}{arguments}))")).collect();
        let call = format!(
            "function()
               local t, print, said = {{1, 2, 3, [7] = 'seven'}}, function() end, {{}}
               local function all(...)
                 for i = 1, select('#', ...) do
                   local value = (select(i, ...))
                   said[#said + 1] = (tostring(value):gsub('0x%x+', 'somewhere'))
                 end
                 for i = -3, 8 do said[#said + 1] = (tostring(rawget(t, i)):gsub('0x%x+', 'somewhere')) end
               end
               {}
               return table.concat(said, ' ')
             end",
            calls.join(" ")
        );
        let (expected, got) = both(&call, &[]);
        prop_assert_eq!(got, expected, "{}", call);
    }
}
