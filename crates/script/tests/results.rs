//! What scripts return, as the client sees it; and that a result without end neither runs on nor fills the memory.

use std::cell::Cell;
use std::rc::Rc;
use tenon_script::{Host, Interpreter, Kind, LogLevel, NoSuchCommand, Outcome, Random, Stop, Words};
use tenon_wire::OutBuf;
use tenon_wire::resp::{Proto, Reply};

/// Ends the script when it has been asked so many times whether that may go on, and takes a reply of so many bytes.
struct Patient(usize, usize);

impl Host for Patient {
    fn call(&mut self, _: &Words, _: Proto, _: &mut OutBuf) -> Result<(), Stop> {
        unreachable!("no script here calls anything")
    }

    fn may_call(&mut self, _: &Words) -> Result<bool, NoSuchCommand> {
        unreachable!("nor asks for it")
    }

    fn log(&mut self, _: LogLevel, _: &[u8]) {}

    fn reply_max(&self) -> usize {
        self.1
    }

    fn interrupt(&mut self) -> Result<(), Stop> {
        self.0 = self.0.checked_sub(1).ok_or(Stop::Killed)?;
        Ok(())
    }
}

fn interpreter(memory_max: usize) -> Interpreter {
    let settings = tenon_script::interpreter::Settings { memory_max, redis_version: ("7.4.0", 0x0007_0400) };
    Interpreter::new(Kind::Scripts, &settings, &Rc::new(Cell::new(Random::new(1))))
}

fn run(interpreter: &Interpreter, source: &str, proto: Proto, patience: usize) -> (Outcome, Vec<u8>) {
    run_for(interpreter, source, proto, Patient(patience, usize::MAX))
}

/// Runs a script behind a reply that waits already; gives what comes behind that.
fn run_for(interpreter: &Interpreter, source: &str, proto: Proto, mut host: Patient) -> (Outcome, Vec<u8>) {
    const BEFORE: &[u8] = b"+before\r\n";
    let script = interpreter.compile(source.as_bytes(), "@user_script").expect("it compiles");
    let mut out = OutBuf::new();
    let mut reply = Reply::new(&mut out, proto);
    reply.raw(BEFORE);
    let none = std::iter::empty;
    let outcome = interpreter.eval(&script, none(), none(), &mut host, &mut reply);
    let bytes = out.take_joined();
    (outcome, bytes.strip_prefix(BEFORE).expect("what was there stays").to_vec())
}

#[track_caller]
fn check_in(proto: Proto, source: &str, expected: &str) {
    let (outcome, got) = run(&interpreter(0), source, proto, usize::MAX);
    assert!(matches!(outcome, Outcome::Done(_)), "{source}: {outcome:?}");
    assert_eq!(String::from_utf8_lossy(&got), expected, "{source}");
}

/// The reply in RESP2 and in RESP3.
#[track_caller]
fn check(source: &str, resp2: &str, resp3: &str) {
    check_in(Proto::Resp2, source, resp2);
    check_in(Proto::Resp3, source, resp3);
}

#[track_caller]
fn check_both(source: &str, reply: &str) {
    check(source, reply, reply);
}

#[test]
fn single_values() {
    check_both("return 'a\\r\\n\\0b'", "$5\r\na\r\n\0b\r\n");
    check_both("return ''", "$0\r\n\r\n");
    check_both("return 3.99", ":3\r\n");
    check_both("return -3.99", ":-3\r\n");
    check_both("return 2^63", ":-9223372036854775808\r\n");
    check_both("return 0/0", ":-9223372036854775808\r\n");
    check_both("return true", ":1\r\n");
    check("return false", "$-1\r\n", "_\r\n");
    check("return nil", "$-1\r\n", "_\r\n");
    check("return", "$-1\r\n", "_\r\n");
    check("return cjson.null", "$-1\r\n", "_\r\n");
    check("return type", "$-1\r\n", "_\r\n");
    check("redis.setresp(3) return true", ":1\r\n", "#t\r\n");
    check("redis.setresp(3) return false", ":0\r\n", "#f\r\n");
}

#[test]
fn a_list_ends_before_its_first_nil() {
    check_both("return {}", "*0\r\n");
    check_both("return {1, 'a', {2, {}}, 3}", "*4\r\n:1\r\n$1\r\na\r\n*2\r\n:2\r\n*0\r\n:3\r\n");
    check_both("return {nil, 1}", "*0\r\n");
    check_both("return {1, nil, 3}", "*1\r\n:1\r\n");
    check_both("return {1, {2, nil, 3}, 4, nil, 5}", "*3\r\n:1\r\n*1\r\n:2\r\n:4\r\n");
    check_both("return {[1]=1, [2]=2, [4]=4}", "*2\r\n:1\r\n:2\r\n");
    check_both(
        "local t = {} for i = 1, 12 do t[i] = i end t[2] = nil return {t, 'x'}",
        "*2\r\n*1\r\n:1\r\n$1\r\nx\r\n",
    );
    check_both(
        "local t = {} for i = 1, 12 do t[i] = i end t[11] = nil return t",
        "*10\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:6\r\n:7\r\n:8\r\n:9\r\n:10\r\n",
    );
    check("return {false, type}", "*2\r\n$-1\r\n$-1\r\n", "*2\r\n_\r\n_\r\n");
    check_both("return {a = 1, 'x'}", "*1\r\n$1\r\nx\r\n");
    check_both(
        "return setmetatable({1}, {__index = function() return 2 end, __len = function() return 9 end})",
        "*1\r\n:1\r\n",
    );
}

#[test]
fn tables_with_a_field_that_means_something() {
    check_both("return {err = 'MY error\\0 x', 1}", "-MY error\r\n");
    check_both("return {ok = 'fi\\r\\nne\\0 x'}", "+fi  ne\r\n");
    check_both("return {ok = 1, 2}", "*1\r\n:2\r\n");
    check_both("return setmetatable({1}, {__index = {ok = 'no'}})", "*1\r\n:1\r\n");
    check("return {double = 1.5}", "$3\r\n1.5\r\n", ",1.5\r\n");
    check("return {double = 1e-17}", "$5\r\n1e-17\r\n", ",1e-17\r\n");
    check("return {double = '1.5', 1}", "*1\r\n:1\r\n", "*1\r\n:1\r\n");
    check("return {map = {a = {1, 2}}}", "*2\r\n$1\r\na\r\n*2\r\n:1\r\n:2\r\n", "%1\r\n$1\r\na\r\n*2\r\n:1\r\n:2\r\n");
    check("return {map = {}, 1}", "*0\r\n", "%0\r\n");
    check(
        "return {{map = {10, {map = {[3] = 4}}}}, 'z'}",
        "*2\r\n*4\r\n:1\r\n:10\r\n:2\r\n*2\r\n:3\r\n:4\r\n$1\r\nz\r\n",
        "*2\r\n%2\r\n:1\r\n:10\r\n:2\r\n%1\r\n:3\r\n:4\r\n$1\r\nz\r\n",
    );
    check("return {set = {a = true}}", "*1\r\n$1\r\na\r\n", "~1\r\n$1\r\na\r\n");
    check("return {set = {[{1, 2}] = true}}", "*1\r\n*2\r\n:1\r\n:2\r\n", "~1\r\n*2\r\n:1\r\n:2\r\n");
    check("return {big_number = '12\\r3'}", "$4\r\n12 3\r\n", "(12 3\r\n");
    check("return {verbatim_string = {format = 'tx', string = 'abc'}}", "$3\r\nabc\r\n", "=7\r\ntx :abc\r\n");
    check_both("return {verbatim_string = {format = 'txt'}, 7}", "*1\r\n:7\r\n");
    check_both("return {{err = 'A b'}, {ok = 'c'}, {double = 'x'}}", "*3\r\n-A b\r\n+c\r\n*0\r\n");
}

#[test]
fn errors_in_a_result_are_told() {
    let source = "return {{err = 'A b'}, {{err = 'C', ignore_error_stats_update = true}}, {set = {[{err = 'D'}] = 1}}}";
    let (outcome, got) = run(&interpreter(0), source, Proto::Resp2, usize::MAX);
    assert_eq!(got, b"*3\r\n-A b\r\n*1\r\n-C\r\n*1\r\n-D\r\n");
    let Outcome::Done(errors) = outcome else { panic!("{outcome:?}") };
    let told: Vec<_> = errors.iter().map(|error| (&error.text[..], error.is_counted)).collect();
    assert_eq!(told, [(&b"A b"[..], false), (b"C", true), (b"D", false)]);
}

#[test]
fn deep_values_end_where_redis_stack_does() {
    for (source, levels) in [
        ("local t = 1 for i = 1, 9000 do t = {t} end return t", "*1\r\n"),
        ("local t = 1 for i = 1, 9000 do t = {set = {[t] = 1}} end return t", "*1\r\n"),
        ("local t = {} t[1] = t return t", "*1\r\n"),
    ] {
        let (outcome, got) = run(&interpreter(0), source, Proto::Resp2, usize::MAX);
        assert!(matches!(outcome, Outcome::Done(_)), "{source}: {outcome:?}");
        let expected = format!("{}-ERR reached lua stack limit\r\n", levels.repeat(4_000));
        assert!(got == expected.as_bytes(), "{source}: {} bytes", got.len());
    }
    // Keys lie as deep as their values.
    let (_, got) = run(&interpreter(0), "local t = {} t.map = {t} return t", Proto::Resp2, usize::MAX);
    let refused = "-ERR reached lua stack limit\r\n";
    let expected = format!("{}*2\r\n{refused}{refused}", "*2\r\n:1\r\n".repeat(3_999));
    assert!(got == expected.as_bytes(), "{} bytes", got.len());
}

/// Results that would take for ever.
const ENDLESS: [&str; 4] = [
    "local t = {1} for i = 1, 60 do t = {t, t} end return t",
    "local t = {1} for i = 1, 60 do t = {map = {t, t}} end return t",
    "local t = {1} for i = 1, 60 do t = {t, t, nil, 1} end return t",
    "local s = ('x'):rep(1000) local t = {s} for i = 1, 60 do t = {s, t, t} end return t",
];

#[test]
fn a_result_is_stopped_as_a_script_is_and_leaves_nothing_behind() {
    let interpreter = interpreter(0);
    for source in ENDLESS {
        let (outcome, got) = run(&interpreter, source, Proto::Resp3, 20);
        assert!(matches!(outcome, Outcome::Stopped(Stop::Killed, _)), "{source}: {outcome:?}");
        assert!(got.is_empty(), "{source}: {} bytes", got.len());
        let (outcome, got) = run(&interpreter, "return {7}", Proto::Resp3, 0);
        assert!(matches!(outcome, Outcome::Done(_)) && got == b"*1\r\n:7\r\n", "{outcome:?}");
    }
}

#[test]
fn a_reply_is_no_longer_than_the_host_allows() {
    let interpreter = interpreter(0);
    let long = "local s = ('x'):rep(1000000) return {s, s, s, s}";
    let many = "local t = {} for i = 1, 1000000 do t[i] = 1000 end return {t}";
    let run = |source: &str| run_for(&interpreter, source, Proto::Resp2, Patient(usize::MAX, 3 << 20));
    for source in [long, many] {
        let (outcome, got) = run(source);
        let Outcome::Failed(failure) = outcome else { panic!("{source}: {outcome:?}") };
        let expected = "ERR the answer would be longer than the 3145728 bytes that it may have";
        assert_eq!(String::from_utf8_lossy(&failure.text), expected, "{source}");
        assert!(got.is_empty(), "{source}: {} bytes", got.len());
    }
    let (outcome, got) = run("local s = ('x'):rep(1000000) return {s, s, s}");
    assert!(matches!(outcome, Outcome::Done(_)) && got.len() > 3_000_000, "{outcome:?}");
}

#[test]
fn a_reply_is_no_longer_than_a_state_may_be_large() {
    let interpreter = interpreter(4 << 20);
    let long = "local s = ('x'):rep(1000000) return {s, s, s, s, s, s}";
    // Each of its levels is a map of its own.
    let wide = "local m = {} for i = 1, 20000 do m[i] = i end local t = {map = m} m[1] = t return t";
    for source in ENDLESS.into_iter().chain([long, wide]) {
        let (outcome, got) = run(&interpreter, source, Proto::Resp2, usize::MAX);
        let Outcome::Failed(failure) = outcome else { panic!("{source}: {outcome:?}") };
        assert_eq!(String::from_utf8_lossy(&failure.text), "not enough memory for the reply", "{source}");
        assert!(failure.is_broken && got.is_empty(), "{source}");
    }
    let (outcome, got) = run(&interpreter, "local s = ('x'):rep(1000000) return {s, s, s}", Proto::Resp2, usize::MAX);
    assert!(matches!(outcome, Outcome::Done(_)) && got.len() > 3_000_000, "{outcome:?}");
}

#[test]
fn a_list_that_ends_early_may_be_long() {
    let source = "local t = {} for i = 1, 60000 do t[i] = 'element' end t[50001] = nil return {t, 7}";
    let (outcome, got) = run(&interpreter(0), source, Proto::Resp2, usize::MAX);
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    let expected = format!("*2\r\n*50000\r\n{}:7\r\n", "$7\r\nelement\r\n".repeat(50_000));
    assert!(got == expected.as_bytes(), "{} bytes, not {}", got.len(), expected.len());
}

#[test]
fn one_long_string_is_work_and_memory_by_its_bytes() {
    let source = "return #cjson.encode(('\\1'):rep(1000000))";
    let (outcome, _) = run(&interpreter(0), source, Proto::Resp2, 2);
    assert!(matches!(outcome, Outcome::Stopped(Stop::Killed, _)), "{outcome:?}");
    let (outcome, got) = run(&interpreter(0), source, Proto::Resp2, usize::MAX);
    assert!(matches!(outcome, Outcome::Done(_)) && got == b":6000002\r\n", "{outcome:?}");
    // It fits but once; the text and the string that Lua makes of it do not.
    let (outcome, _) = run(&interpreter(10 << 20), source, Proto::Resp2, usize::MAX);
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    let text = String::from_utf8_lossy(&failure.text);
    assert!(text.contains("not enough memory"), "{text}");
}
