//! What a script's calls give it, whatever the host answers: the way over Lua's own stack against the one of mlua, which
//! RESP3 still takes, and what is left of both when something fails in the middle.

use proptest::prelude::*;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use tenon_script::{Host, Interpreter, Kind, LogLevel, NoSuchCommand, Outcome, Random, Stop, Words};
use tenon_wire::OutBuf;
use tenon_wire::resp::{Proto, Reply};

/// Answers every call with these bytes; tells what it was called with.
struct Canned {
    reply: Vec<u8>,
    called_with: Vec<Vec<u8>>,
    panics: bool,
}

impl Host for Canned {
    fn call(&mut self, words: &Words, _: Proto, reply: &mut OutBuf) -> Result<(), Stop> {
        let word = |span: &tenon_wire::Span| words.bytes[span.input_range().expect("it is there")].to_vec();
        self.called_with = words.spans.iter().map(word).collect();
        assert!(!self.panics, "the host fails");
        Reply::new(reply, Proto::Resp2).raw(&self.reply);
        Ok(())
    }

    fn may_call(&mut self, _: &Words) -> Result<bool, NoSuchCommand> {
        assert!(!self.panics, "the host fails");
        Ok(true)
    }

    fn log(&mut self, _: LogLevel, _: &[u8]) {
        assert!(!self.panics, "the host fails");
    }

    fn interrupt(&mut self) -> Result<(), Stop> {
        assert!(!self.panics, "the host fails");
        Ok(())
    }
}

fn interpreter(memory_max: usize) -> Interpreter {
    let settings = tenon_script::interpreter::Settings { memory_max, redis_version: ("7.4.0", 0x0007_0400) };
    Interpreter::new(Kind::Scripts, &settings, &Rc::new(Cell::new(Random::new(1))))
}

/// Writes a value down as a script sees it.
const SHOW: &str = "
local function show(v)
  if type(v) == 'string' then return string.format('%q', v) end
  if type(v) ~= 'table' then return tostring(v) end
  local names, parts = {}, {}
  for name in pairs(v) do if type(name) == 'string' then names[#names + 1] = name end end
  table.sort(names)
  for _, name in ipairs(names) do parts[#parts + 1] = name .. '=' .. show(v[name]) end
  for i = 1, #v do parts[#parts + 1] = show(v[i]) end
  return '{' .. table.concat(parts, ',') .. '}'
end
";

fn run(interpreter: &Interpreter, source: &str, args: &[&[u8]], host: &mut Canned) -> Result<Vec<u8>, String> {
    let script = interpreter.compile(source.as_bytes(), "@user_script").expect("it compiles");
    let mut out = OutBuf::new();
    let mut reply = Reply::new(&mut out, Proto::Resp2);
    match interpreter.eval(&script, std::iter::empty(), args.iter().copied(), host, &mut reply) {
        Outcome::Done(_) => Ok(out.contiguous().expect("it is short").to_vec()),
        Outcome::Failed(failure) => Err(String::from_utf8_lossy(&failure.text).into_owned()),
        Outcome::Stopped(stop, _) => Err(format!("{stop:?}")),
    }
}

fn canned(reply: &[u8]) -> Canned {
    Canned { reply: reply.to_vec(), called_with: Vec::new(), panics: false }
}

#[test]
fn any_number_of_scripts_is_kept() {
    let interpreter = interpreter(0);
    // Lua's stack has room for 8,000.
    let count = if cfg!(miri) { 10 } else { 20_000 };
    let compiled = |number: usize| {
        interpreter.compile(format!("return {number}").as_bytes(), "@user_script").expect("it compiles")
    };
    let scripts: Vec<_> = (0..count).map(compiled).collect();
    for number in [0, count / 2, count - 1] {
        let mut out = OutBuf::new();
        let mut reply = Reply::new(&mut out, Proto::Resp2);
        let host = &mut canned(b"");
        let none = std::iter::empty;
        let outcome = interpreter.eval(&scripts[number], none(), none(), host, &mut reply);
        assert!(matches!(&outcome, Outcome::Done(errors) if errors.is_empty()), "{outcome:?}");
        assert_eq!(out.contiguous().expect("it is short"), format!(":{number}\r\n").as_bytes());
    }
    let before = interpreter.memory();
    drop(scripts);
    // Their places are taken by others.
    let scripts: Vec<_> = (0..count).map(compiled).collect();
    assert!(interpreter.memory() < before * 2, "{} bytes, {before} before", interpreter.memory());
    drop(scripts);
}

#[track_caller]
fn check(reply: &str, shown: &str) {
    let interpreter = interpreter(0);
    for (first, call) in [("", "call"), ("", "pcall"), ("redis.setresp(3) ", "call")] {
        let source = format!("{SHOW} {first} return show(redis.{call}('x'))");
        let got = run(&interpreter, &source, &[], &mut canned(reply.as_bytes())).expect("it ends well");
        assert_eq!(
            String::from_utf8_lossy(&got),
            format!("${}\r\n{shown}\r\n", shown.len()),
            "{reply:?} {first}{call}"
        );
    }
}

#[test]
fn replies_are_the_same_both_ways() {
    check("+OK\r\n", "{ok=\"OK\"}");
    check("+\r\n", "{ok=\"\"}");
    check(":-12\r\n", "-12");
    check("$3\r\na\r\n\r\n", "\"a\\r\\\n\"");
    check("$0\r\n\r\n", "\"\"");
    check("$-1\r\n", "false");
    check("*-1\r\n", "false");
    check("*0\r\n", "{}");
    check("*3\r\n:1\r\n*2\r\n$1\r\na\r\n*1\r\n+b\r\n$-1\r\n", "{1,{\"a\",{{ok=\"b\"}}},false}");
    check(
        "*2\r\n-WRONGTYPE no\r\n-odd\r\n",
        "{{err=\"WRONGTYPE no\",ignore_error_stats_update=true},{err=\"ERR odd\",ignore_error_stats_update=true}}",
    );
}

#[test]
fn words_are_what_was_given() {
    let interpreter = interpreter(0);
    let mut host = canned(b"+OK\r\n");
    let source = "return redis.call('set', ARGV[1], 1, -0.0, 1e15, 2^53, 2^63, -2^63, 0.1, math.huge, -math.huge, '')";
    run(&interpreter, source, &[b"\0\xFF\r\n"], &mut host).expect("it ends well");
    let expected: [&[u8]; 12] = [
        b"set",
        b"\0\xFF\r\n",
        b"1",
        b"0",
        b"1000000000000000",
        b"9007199254740992",
        b"9223372036854776000",
        b"-9223372036854776000",
        b"0.1",
        b"inf",
        b"-inf",
        b"",
    ];
    assert_eq!(host.called_with, expected);
    for (call, error) in [
        ("redis.call()", "ERR Please specify at least one argument for this redis lib call"),
        ("redis.call('a', {})", "ERR Lua redis lib command arguments must be strings or integers"),
        ("redis.call(nil)", "ERR Lua redis lib command arguments must be strings or integers"),
    ] {
        let failed = run(&interpreter, &format!("return {call}"), &[], &mut host).expect_err("it is no call");
        assert_eq!(failed, error, "{call}");
        let caught = run(&interpreter, &format!("return redis.p{}.err", &call[6..]), &[], &mut host);
        assert_eq!(caught, Ok(format!("${}\r\n{error}\r\n", error.len()).into_bytes()), "{call}");
    }
}

#[test]
fn no_script_catches_a_panic_of_the_host() {
    let interpreter = interpreter(0);
    for source in [
        "redis.call('x') return 1",
        "redis.pcall('x') return 1",
        "pcall(redis.call, 'x') return 1",
        "pcall(pcall, redis.call, 'x') return 1",
        "xpcall(function() redis.call('x') end, function() return 1 end) return 1",
        "local c = coroutine.create(function() redis.call('x') end) coroutine.resume(c) return 1",
        "pcall(coroutine.wrap(function() redis.call('x') end)) return 1",
        "pcall(string.gsub, 'a', 'a', function() redis.call('x') end) return 1",
        "pcall(table.sort, {1, 2}, function() redis.call('x') end) return 1",
        "local t = setmetatable({}, {__index = function() redis.call('x') end}) pcall(function() return t.x end) return 1",
        "pcall(redis.log, redis.LOG_WARNING, 'x') return 1",
        "pcall(redis.acl_check_cmd, 'x') return 1",
        "pcall(function() while true do end end) return 1",
        "pcall(function() while true do cjson.decode('[1,2,3,4,5]') end end) return 1",
    ] {
        let mut host = Canned { panics: true, ..canned(b"+OK\r\n") };
        let ran = catch_unwind(AssertUnwindSafe(|| run(&interpreter, source, &[], &mut host)));
        let panic = ran.expect_err(source);
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"the host fails"), "{source}");
        let after = run(&interpreter, "return redis.call('x').ok", &[], &mut canned(b"+OK\r\n"));
        assert_eq!(after, Ok(b"$2\r\nOK\r\n".to_vec()), "after {source}");
    }
}

#[test]
fn what_libraries_make_is_bounded_by_the_memory_and_the_next_script_runs() {
    let interpreter = interpreter(4 << 20);
    let text = format!("[{}]", vec!["\"\\u00e4\""; 60_000].join(","));
    let text = text.as_bytes();
    for source in [
        "local t = {} for i = 1, 1e6 do t[i] = cjson.decode(ARGV[1]) end",
        "local t = {} for i = 1, 1e6 do t[i] = cjson.encode({ARGV[1], i}) end",
        "local t = {} for i = 1, 1e6 do t[i] = cmsgpack.pack(ARGV[1], i) end",
        "local t = {} for i = 1, 1e6 do t[i] = {cmsgpack.unpack(('\\1'):rep(1000))} end",
        "local t = {} for i = 1, 1e6 do t[i] = struct.pack('ss', ARGV[1], i) end",
        "local t = {} for i = 1, 1e6 do t[i] = {struct.unpack(('B'):rep(1000), ('x'):rep(1000))} end",
        "local t = {} for i = 1, 1e6 do t[i] = bit.tohex(i) .. redis.sha1hex(i) end",
        "local t = {} for i = 1, 1e6 do t[i] = redis.status_reply(ARGV[1] .. i) end",
    ] {
        let failed = run(&interpreter, source, &[text], &mut canned(b"")).expect_err("it is too much");
        assert!(failed.contains("not enough memory"), "{source}: {failed}");
        let after = run(&interpreter, "return #cjson.encode({cjson.decode('{\"a\":[1,2]}')})", &[], &mut canned(b""));
        assert_eq!(after, Ok(b":13\r\n".to_vec()), "after {source}");
    }
}

#[test]
fn a_length_that_no_machine_has_is_an_error_where_memory_is_not_bounded() {
    let interpreter = interpreter(0);
    let petabytes = "return #('x'):rep(2^20):rep(2^31 - 1)";
    let failed = run(&interpreter, petabytes, &[], &mut canned(b"")).expect_err("it is too much");
    assert!(failed.contains("not enough memory"), "{failed}");
    let source = "return {#('abc'):rep(5), ('abc'):rep(3), ('ab'):rep(1), ('ab'):rep(0), (''):rep(9)}";
    let expected = b"*5\r\n:15\r\n$9\r\nabcabcabc\r\n$2\r\nab\r\n$0\r\n\r\n$0\r\n\r\n".to_vec();
    assert_eq!(run(&interpreter, source, &[], &mut canned(b"")), Ok(expected));
}

#[test]
fn libraries_work_where_the_stacks_end() {
    // Where garbage is collected at the last call that C's or Lua's stack has room for; errors of mlua's have finalizers.
    let interpreter = interpreter(64 << 20);
    for deeper in ["pcall(down, n + 1)", "down(n + 1) return nil"] {
        let source = format!(
            "local text = cjson.encode({{1, 2, {{a = ('x'):rep(1000)}}}})
             local function down(n)
               if n > 150 and n < 250 then
                 for i = 1, 20 do pcall(string.gsub, 'a', '(', '') end
                 for i = 1, 20 do pcall(cjson.decode, text) end
               end
               pcall(cjson.decode, text)
               {deeper}
             end
             pcall(down, 1)
             return #cjson.decode(text)"
        );
        assert_eq!(run(&interpreter, &source, &[], &mut canned(b"")), Ok(b":3\r\n".to_vec()), "{deeper}");
        let memory = "local t = {} for i = 1, 1e7 do t[i] = {i} end";
        let failed = run(&interpreter, memory, &[], &mut canned(b"")).expect_err("the limit holds");
        assert!(failed.contains("not enough memory"), "{failed}");
    }
}

#[test]
fn a_reply_beyond_the_memory_is_an_error_and_the_next_script_runs() {
    let interpreter = interpreter(1 << 20);
    // Equal strings would be one.
    let strings: String = (0..40_000).map(|number| format!("$40\r\n{number:040}\r\n")).collect();
    let long = format!("*40000\r\n{strings}").into_bytes();
    for _ in 0..20 {
        let failed = run(&interpreter, "return #redis.call('x')", &[], &mut canned(&long)).expect_err("it is too much");
        assert!(failed.contains("not enough memory"), "{failed}");
        let caught = run(&interpreter, "return pcall(redis.call, 'x') and 1 or 0", &[], &mut canned(&long));
        assert!(caught.as_ref().is_ok_and(|it| it == b":0\r\n") || caught.is_err_and(|it| it.contains("memory")));
        let after = run(&interpreter, "return redis.call('x')", &[], &mut canned(b":7\r\n"));
        assert_eq!(after, Ok(b":7\r\n".to_vec()));
    }
    let args: Vec<String> = (0..5_000).map(|number| format!("{number:01000}")).collect();
    let args: Vec<&[u8]> = args.iter().map(String::as_bytes).collect();
    let failed = run(&interpreter, "return 1", &args, &mut canned(b"")).expect_err("it is too much");
    assert!(failed.contains("not enough memory"), "{failed}");
    assert_eq!(run(&interpreter, "return #ARGV", &[b"a"], &mut canned(b"")), Ok(b":1\r\n".to_vec()));
}

#[test]
fn calls_in_coroutines_and_in_functions_that_sort_are_calls() {
    let interpreter = interpreter(0);
    let source = "
        local f = coroutine.wrap(function() coroutine.yield(redis.call('x')) return redis.pcall('y') end)
        local t = {3, 1, 2}
        table.sort(t, function(a, b) redis.call('z') return a < b end)
        return {f(), t[1], select(2, pcall(f))}";
    let got = run(&interpreter, source, &[], &mut canned(b":5\r\n"));
    assert_eq!(got, Ok(b"*3\r\n:5\r\n:1\r\n:5\r\n".to_vec()));
}

#[test]
fn garbage_is_collected_a_part_at_a_time_and_what_is_in_use_stays() {
    let interpreter = interpreter(0);
    let mut host = canned(b"");
    let before = interpreter.memory();
    assert!(!interpreter.collect_some(), "there is none");
    let kept = interpreter.compile(b"return 'kept'", "@user_script").expect("it compiles");
    let made = run(&interpreter, "local t = {} for i = 1, 100000 do t[i] = 'x' .. i end return #t", &[], &mut host);
    assert_eq!(made.as_deref(), Ok(&b":100000\r\n"[..]));
    assert!(interpreter.memory() > before + (4 << 20));
    assert!(interpreter.collect_some(), "one part is not all");
    while interpreter.collect_some() {}
    // Lua's table of strings had 1 MiB, and gets smaller a step at a time.
    assert!(interpreter.memory() < before + (1 << 17), "{} bytes, {before} before", interpreter.memory());
    let mut out = OutBuf::new();
    let none = std::iter::empty;
    interpreter.eval(&kept, none(), none(), &mut host, &mut Reply::new(&mut out, Proto::Resp2));
    assert_eq!(out.contiguous(), Some(&b"$4\r\nkept\r\n"[..]));
}

fn reply() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "[a-z ]{0,9}".prop_map(|text| format!("+{text}\r\n")),
        any::<i32>().prop_map(|number| format!(":{number}\r\n")),
        "[a-z\r\n]{0,9}".prop_map(|text| format!("${}\r\n{text}\r\n", text.len())),
        "[A-Z]{1,4}( [a-z]{0,4})?".prop_map(|text| format!("-{text}\r\n")),
        Just("$-1\r\n".to_owned()),
        Just("*-1\r\n".to_owned()),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        proptest::collection::vec(inner, 0..6).prop_map(|items| format!("*{}\r\n{}", items.len(), items.concat()))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_reply_is_the_same_both_ways(reply in reply()) {
        let interpreter = interpreter(0);
        let [over_stack, over_mlua] = ["", "redis.setresp(3) "].map(|first| {
            let source = format!("{SHOW} {first} return show(redis.pcall('x'))");
            run(&interpreter, &source, &[], &mut canned(reply.as_bytes()))
        });
        prop_assert!(over_stack.is_ok());
        prop_assert_eq!(over_stack, over_mlua);
    }
}

#[test]
fn the_words_of_a_run_go_with_it() {
    const LEN: usize = 5 << 20;
    let limited = interpreter(8 << 20);
    for byte in [b'a', b'b', b'c'] {
        let got = run(&limited, "return #ARGV[1]", &[&vec![byte; LEN]], &mut canned(b""));
        assert_eq!(got, Ok(format!(":{LEN}\r\n").into_bytes()), "each has room alone");
    }
    let unlimited = interpreter(0);
    let before = unlimited.memory();
    run(&unlimited, "return 1", &[&vec![b'a'; LEN]], &mut canned(b"")).expect("it ends well");
    while unlimited.collect_some() {}
    let after = unlimited.memory();
    assert!(after < before + LEN / 2, "{after} bytes are left, {before} before");
}
