//! Scripts in a state of their own, against a host that echoes: results, errors, and what the sandbox must not allow.

use std::cell::Cell;
use std::rc::Rc;
use tenon_script::{Host, Interpreter, Kind, LogLevel, NoSuchCommand, Outcome, Random, Stop, Words};
use tenon_wire::OutBuf;
use tenon_wire::resp::{Proto, Reply};

/// Answers each call with its words, and ends a script after so many interrupts.
#[derive(Default)]
struct Echo {
    log: Vec<String>,
    interrupts_left: Option<u32>,
}

impl Host for Echo {
    fn call(&mut self, words: &Words, proto: Proto, reply: &mut OutBuf) -> Result<(), Stop> {
        let mut reply = Reply::new(reply, proto);
        let word = |index: usize| &words.bytes[words.spans[index].input_range().unwrap()];
        match word(0) {
            b"fail" => reply.error("WRONGTYPE no"),
            b"stop" => return Err(Stop::Restart),
            _ => {
                reply.array(words.spans.len());
                (0..words.spans.len()).for_each(|index| reply.bulk(word(index)));
            }
        }
        Ok(())
    }

    fn may_call(&mut self, words: &Words) -> Result<bool, NoSuchCommand> {
        if words.bytes == b"no" { Err(NoSuchCommand) } else { Ok(words.spans.len() == 1) }
    }

    fn log(&mut self, level: LogLevel, text: &[u8]) {
        self.log.push(format!("{level:?} {}", String::from_utf8_lossy(text)));
    }

    fn interrupt(&mut self) -> Result<(), Stop> {
        match &mut self.interrupts_left {
            Some(0) => Err(Stop::Killed),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

fn interpreter(memory_max: usize) -> Interpreter {
    let settings = tenon_script::interpreter::Settings { memory_max, redis_version: ("7.4.0", 0x0007_0400) };
    Interpreter::new(Kind::Scripts, &settings, &Rc::new(Cell::new(Random::new(1))))
}

fn run_on(interpreter: &Interpreter, source: &str, host: &mut Echo) -> String {
    let script = match interpreter.compile(source.as_bytes(), "@user_script") {
        Ok(script) => script,
        Err(text) => return format!("compile: {}", String::from_utf8_lossy(&text)),
    };
    let mut out = OutBuf::new();
    let mut reply = Reply::new(&mut out, Proto::Resp3);
    let (keys, args) = ([b"k1".as_slice()], [b"a1".as_slice(), b"a2"]);
    let outcome = interpreter.eval(&script, keys.into_iter(), args.into_iter(), host, &mut reply);
    match outcome {
        Outcome::Done(_) => String::from_utf8_lossy(out.contiguous().unwrap()).replace("\r\n", " ").trim().to_owned(),
        Outcome::Failed(failure) => {
            let place = failure.place.map(|place| format!(" at {place}")).unwrap_or_default();
            format!("failed: {}{place}", String::from_utf8_lossy(&failure.text))
        }
        Outcome::Stopped(stop, _) => format!("{stop:?}"),
    }
}

#[track_caller]
fn check(source: &str, expected: &str) {
    assert_eq!(run_on(&interpreter(0), source, &mut Echo::default()), expected, "{source}");
}

#[test]
fn results_become_replies() {
    check("return {KEYS[1], ARGV[2], #ARGV}", "*3 $2 k1 $2 a2 :2");
    check("return redis.call('x', 1, 2.5, 'z')", "*4 $1 x $1 1 $3 2.5 $1 z");
    check("return {1, {2, {3}}, nil, 4}", "*2 :1 *2 :2 *1 :3");
    check("redis.setresp(3) return {true, false}", "*2 #t #f");
    check("return {double=1.5}", ",1.5");
    check("return {map={a=1}}", "%1 $1 a :1");
}

#[test]
fn errors_say_where() {
    check("return redis.call('fail')", "failed: WRONGTYPE no at @user_script:1");
    check("\nlocal x = redis.call('fail')", "failed: WRONGTYPE no at @user_script:2");
    check("return redis.pcall('fail').err", "$12 WRONGTYPE no");
    check("return {pcall(redis.call, 'fail')}", "*2 _ $12 WRONGTYPE no");
    check(
        "return cjson.decode('x')",
        "failed: ERR user_script:1: Expected value but found invalid token at character 1 at @user_script:1",
    );
    check(
        "local ok, e = pcall(cjson.decode, 'x') return e",
        "$53 Expected value but found invalid token at character 1",
    );
    check("error({err='A b'})", "failed: A b at @user_script:1");
    check("string.gsub('a', 'a', function() error('x', 0) end)", "failed: ERR x at @user_script:1");
    check("string.gsub('a', 'a', function()\nerror('x') end)", "failed: ERR user_script:2: x at @user_script:2");
    check(
        "return table.insert({}, 'x', 1)",
        "failed: ERR user_script:1: bad argument #2 to 'insert' (number expected, got string) at @user_script:1",
    );
    check(
        "return bit.band(1, {})",
        "failed: ERR user_script:1: bad argument #2 to 'band' (number expected, got table) at @user_script:1",
    );
    check(
        "local x = math.random(0)",
        "failed: ERR user_script:1: bad argument #1 to 'random' (interval is empty) at @user_script:1",
    );
}

#[test]
fn numbers_for_the_server_may_be_texts_and_are_cut() {
    check("redis.setresp('3') return {true}", "*1 #t");
    check("redis.setresp(3.5) return {true}", "*1 #t");
    check("redis.setresp(3) redis.setresp('2.9') return redis.call('x')", "*1 $1 x");
    check("redis.setresp(4)", "failed: ERR RESP version must be 2 or 3. at @user_script:1");
    check("redis.setresp({})", "failed: ERR RESP version must be 2 or 3. at @user_script:1");
    let mut host = Echo::default();
    run_on(
        &interpreter(0),
        "redis.log('1', 'a') redis.log(2.9, 'b') redis.log('0x3', 'c') redis.log(-0.5, 'd')",
        &mut host,
    );
    assert_eq!(host.log, ["Verbose a", "Notice b", "Warning c", "Debug d"]);
    check("redis.log('x', 'a')", "failed: ERR First argument must be a number (log level). at @user_script:1");
    check("redis.log('4', 'a')", "failed: ERR Invalid debug level. at @user_script:1");
    check("redis.log(0/0, 'a')", "failed: ERR Invalid debug level. at @user_script:1");
}

#[test]
fn random_numbers_go_on_from_state_to_state_and_a_seed_holds_until_the_script_ends() {
    let settings = tenon_script::interpreter::Settings { memory_max: 0, redis_version: ("7.4.0", 0x0007_0400) };
    let random = Rc::new(Cell::new(Random::new(1)));
    let (one, other) = (Interpreter::new(Kind::Scripts, &settings, &random), interpreter(0));
    let number = |interpreter: &Interpreter, before: &str| {
        run_on(interpreter, &format!("{before} return tostring(math.random())"), &mut Echo::default())
    };
    let numbers: Vec<_> = (0..3).map(|_| number(&other, "")).collect();
    assert!(numbers[0] != numbers[1] && numbers[1] != numbers[2]);
    assert_eq!(number(&one, ""), numbers[0]);
    let seeded = number(&one, "math.randomseed(5)");
    assert_eq!(seeded, number(&other, "math.randomseed(5)"));
    assert_eq!(seeded, "$16 0.52483957937213");
    assert_eq!(number(&one, ""), numbers[1], "the seed was that script's");
    drop(one);
    assert_eq!(number(&Interpreter::new(Kind::Libraries, &settings, &random), ""), numbers[2]);
}

#[test]
fn errors_of_what_the_prelude_calls_say_where_the_script_is() {
    let bracket = "malformed pattern (missing ']')";
    for source in [
        "\nlocal x = string.gmatch('a','[a')()",
        "\nfor x in string.gmatch('a','[a') do end",
        "\nlocal x = string.gsub('a','[a',function() end)",
        "\nlocal x = string.gsub('a','[a',{})",
        "\nlocal x = string.gsub('a','[a','')",
    ] {
        check(source, &format!("failed: ERR user_script:2: {bracket} at @user_script:2"));
    }
    let caught = |call: &str, text: &str| {
        check(&format!("local ok, e = pcall({call}) return e"), &format!("${} {text}", text.len()));
    };
    caught("string.gmatch('a','[a')", bracket);
    caught("string.gsub,'a','[a',{}", bracket);
    caught("string.gsub,'abc','%1',{}", "invalid capture index");
    caught("string.gsub,'abc','(a',function() end", "unfinished capture");
    let unordered = "table.sort({3,1,2,5,4,9,8},function() return true end)";
    check(unordered, "failed: ERR user_script:1: invalid order function for sorting at @user_script:1");
    caught("table.sort,{3,1,2,5,4,9,8},function() return true end", "invalid order function for sorting");
    check(
        "\ntable.sort({1,2},function()\nreturn 1 < {} end)",
        "failed: ERR user_script:3: attempt to compare number with table at @user_script:3",
    );
    check(
        "string.gsub('a','a',setmetatable({},{__index=1}))",
        "failed: ERR attempt to index a number value at @user_script:1",
    );
    check(
        "coroutine.wrap(string.rep)",
        "failed: ERR user_script:1: bad argument #1 to 'wrap' (Lua function expected) at @user_script:1",
    );
}

#[test]
fn an_argument_that_is_missing_is_none_that_is_nil() {
    for (call, said) in [
        ("setmetatable({})", "#2 to 'setmetatable' (nil or table expected)"),
        ("setmetatable()", "#1 to 'setmetatable' (table expected, got no value)"),
        ("rawget({})", "#2 to 'rawget' (value expected)"),
        ("rawget()", "#1 to 'rawget' (table expected, got no value)"),
        ("rawset({}, nil)", "#3 to 'rawset' (value expected)"),
        ("rawset({})", "#2 to 'rawset' (value expected)"),
        ("xpcall(nil)", "#2 to 'xpcall' (value expected)"),
        ("getmetatable()", "#1 to 'getmetatable' (value expected)"),
        ("next()", "#1 to 'next' (table expected, got no value)"),
        ("next(nil)", "#1 to 'next' (table expected, got nil)"),
        ("pairs()", "#1 to 'pairs' (table expected, got no value)"),
        ("unpack()", "#1 to 'unpack' (table expected, got no value)"),
        ("unpack({}, nil, 'x')", "#3 to 'unpack' (number expected, got string)"),
        ("table.insert()", "#1 to 'insert' (table expected, got no value)"),
        ("table.insert(nil)", "#1 to 'insert' (table expected, got nil)"),
        ("table.insert({}, nil, 1)", "#2 to 'insert' (number expected, got nil)"),
        ("table.remove()", "#1 to 'remove' (table expected, got no value)"),
        ("table.remove({}, 'x')", "#2 to 'remove' (number expected, got string)"),
        ("table.sort()", "#1 to 'sort' (table expected, got no value)"),
        ("table.sort({}, 1)", "#2 to 'sort' (function expected, got number)"),
        ("table.foreach({})", "#2 to 'foreach' (function expected, got no value)"),
        ("table.foreach({}, nil)", "#2 to 'foreach' (function expected, got nil)"),
        ("loadstring()", "#1 to 'loadstring' (string expected, got no value)"),
        ("loadstring('x', {})", "#2 to 'loadstring' (string expected, got table)"),
        ("load()", "#1 to 'load' (function expected, got no value)"),
        ("load(1, {})", "#2 to 'load' (string expected, got table)"),
        ("string.gmatch('a')", "#2 to 'gmatch' (string expected, got no value)"),
        ("string.gmatch('a', nil)", "#2 to 'gmatch' (string expected, got nil)"),
    ] {
        check(
            &format!("local x = {call} return x"),
            &format!("failed: ERR user_script:1: bad argument {said} at @user_script:1"),
        );
    }
    // What Lua itself does is named as the script does.
    let named = "bad argument #1 to 'f' (table expected, got nil)";
    check("local f = rawget return f(nil, 1)", &format!("failed: ERR user_script:1: {named} at @user_script:1"));
    check("local ok, e = pcall(table.sort) return e", "$53 bad argument #1 to '?' (table expected, got no value)");
    check("local f = string.gmatch('ab', 'a') f() return {select('#', f()), select('#', f())}", "*2 :0 :0");
    check("return {xpcall(function() return 7 end, nil)}", "*2 :1 :7");
    check("return {xpcall(nil, nil)}", "*2 _ $23 error in error handling");
    check("return {select('#', rawset({}, 1, 2, 3)), rawget(redis, 'LOG_WARNING'), (next(bit)) ~= nil}", "*3 :1 :3 :1");
    check("local n = 0 table.foreach(bit, function() n = n + 1 end) return n > 5", ":1");
    check(
        "local t = setmetatable({}, {__metatable = 1}) setmetatable(t, nil)",
        "failed: ERR user_script:1: cannot change a protected metatable at @user_script:1",
    );
}

#[test]
fn a_compilers_error_has_the_bytes_of_the_text() {
    let compiled = |source: &[u8]| interpreter(0).compile(source, "@user_script").map(|_| ());
    assert_eq!(compiled(b"return \xFF"), Err(b"user_script:1: unexpected symbol near '\xFF'".to_vec()));
    assert_eq!(compiled(b"return '\xFF\0'"), Ok(()));
    assert_eq!(compiled(b"\x1BLua"), Err(b"attempt to load chunk with wrong mode".to_vec()));
    let error = r#"'[string "\255"]:1: unexpected symbol near \'\255\''"#;
    check(&format!("local f, e = loadstring('\\255') return e == {error}"), ":1");
    check(
        "local f, e = loadstring('return 1 +', '=\\255\\0x') return e == '\\255:1: unexpected symbol near \\'<eof>\\''",
        ":1",
    );
    check("return loadstring('return KEYS[1]')()", "$2 k1");
}

#[test]
fn more_results_than_a_frame_has_room_for_end_no_process() {
    check("return select('#', unpack({}, -32))", ":33");
    check("return unpack({}, -32)", "_");
    check("return select('#', coroutine.resume(coroutine.create(function() return unpack({}, -32) end)))", ":34");
    check("local function f() return pcall(f) end return tostring(f())", "$4 true");
}

#[test]
fn what_is_shared_cannot_be_changed() {
    let refused = "Attempt to modify a readonly table";
    for source in [
        "redis.call = 1",
        "x = 1",
        "string.rep = 1",
        "rawset(_G, 'x', 1)",
        "rawset(redis, 'x', 1)",
        "setmetatable(redis, {})",
        "setmetatable(_G, {})",
        "getmetatable('').__index = 1",
        "getmetatable('').__index.upper = 1",
        "getmetatable(_G).__index = 1",
        "table.insert(redis, 1)",
        "table.sort(redis)",
        "cjson.encode = 1",
        "_G.string.rep = 1",
        "for k, v in pairs(_G) do if type(v) == 'table' and k ~= 'KEYS' and k ~= 'ARGV' then v.x = 1 end end",
        "KEYS = 1",
    ] {
        let got = run_on(&interpreter(0), source, &mut Echo::default());
        assert!(got.contains(refused), "{source}: {got}");
    }
    check(
        "return {type(getfenv), 1}",
        "failed: ERR user_script:1: Script attempted to access nonexistent global variable 'getfenv' at @user_script:1",
    );
    for name in ["setfenv", "newproxy", "print", "dofile", "loadfile", "require", "module", "io", "debug", "package"] {
        let got = run_on(&interpreter(0), &format!("return {name}"), &mut Echo::default());
        assert!(got.contains("nonexistent global"), "{name}: {got}");
    }
    check("for k in pairs(os) do assert(k == 'clock') end return type(os.clock())", "$6 number");
    check("return {loadstring(string.dump(function() return 1 end))}", "*0");
}

#[test]
fn a_stop_passes_through_everything_that_catches() {
    for source in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "while true do xpcall(function() while true do end end, function() return 1 end) end",
        "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
        "local f = function() while true do end end while true do pcall(coroutine.wrap(f)) end",
        "return string.find(('a'):rep(100000), '.-.-.-.-.-b')",
        "string.gsub(('a'):rep(100000), '.-.-.-.-.-b', '')",
        "load(function() while true do end end)",
        "string.gsub('a', 'a', function() while true do end end)",
        "string.gsub(('a'):rep(1e7), 'a', {})",
        "string.gsub(('a'):rep(1e7), '[^b]', 'c')",
        "for _ in ('a'):rep(1e7):gmatch('.') do end",
        "while true do pcall(string.gsub, ('a'):rep(1e5), '.-.-.-.-.-b', tostring) end",
        "return ('a'):rep(1e7):find('[^%a]')",
        "pcall(pcall, pcall, pcall, function() while true do end end)",
        "table.sort({1, 2, 3}, function() while true do end end)",
        "table.insert({}, -1e15, 1)",
        "table.insert({}, 2147483648, 1)",
        "return string.find(('a'):rep(1e6), '[' .. ('b'):rep(1e6) .. ']')",
        "local t = {} for i = 1, 1e5 do t[i] = 1 end return cjson.encode({t, t, t, t, t, t, t, t})",
        "local t = {} for i = 1, 1e5 do t[i] = 1 end return cmsgpack.pack(t, t, t, t, t, t, t, t)",
    ] {
        let mut host = Echo { interrupts_left: Some(20), ..Echo::default() };
        assert_eq!(run_on(&interpreter(0), source, &mut host), "Killed", "{source}");
    }
    check("pcall(redis.call, 'stop') return 1", "Restart");
}

#[test]
fn memory_and_stacks_are_bounded() {
    let small = interpreter(32 << 20);
    let mut host = Echo::default();
    for source in [
        "local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end",
        "local s = 'x' while true do s = s .. s end",
        "return ('x'):rep(1e9)",
        "return (('x'):rep(1e6)):gsub('x', ('y'):rep(1e6))",
        "return (('x'):rep(1e6)):gsub('x', '%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0')",
        "return (('x'):rep(1e6)):gsub('.*', ('%0'):rep(1e6))",
        "local s = ('y'):rep(1e5) return (('x'):rep(1e6)):gsub('x', function() return s end)",
        "return (('x'):rep(1e6)):gsub('x', {x = ('y'):rep(1e5)})",
        "return (('x'):rep(1e6)):gsub('x', function(x) return (x:rep(1e6):gsub(x, function() return x:rep(1e6) end)) end)",
        "local all = {} for x in ('x'):rep(1e7):gmatch('.') do all[#all + 1] = {x} end",
        "local t = 'x' for i = 1, 15 do t = {t, t, t, t, t, t, t, t} end return cjson.encode(t)",
        "local t = ('x'):rep(100) for i = 1, 15 do t = {t, t, t, t, t, t, t, t} end return cmsgpack.pack(t)",
        "cjson.encode_sparse_array(false, 0) return #cjson.encode({[2147483647] = 1})",
        "local t = {} for i = 1, 15 do t[i] = 123456789012345 end for i = 1, 9 do t = {t, t, t, t, t, t, t, t} end return cmsgpack.pack(t)",
        "return assert(loadstring(('_=function() _=function()end _=function()end end '):rep(150000)))",
    ] {
        let got = run_on(&small, source, &mut host);
        assert!(got.contains("not enough memory"), "{source}: {got}");
        assert_eq!(run_on(&small, "return 1", &mut host), ":1", "after {source}");
    }
    for (source, text) in [
        ("local function f() return 1 + f() end return f()", "stack overflow"),
        ("local function f() local ok, e = pcall(f) if not ok then error(e, 0) end end f()", "C stack overflow"),
        (
            "local function f() local ok, e = coroutine.resume(coroutine.create(f)) if not ok then error(e, 0) end end f()",
            "C stack overflow",
        ),
        ("local function f() return (coroutine.wrap(f)()) end f()", "C stack overflow"),
        ("return unpack({}, 1, 1e8)", "too many results to unpack"),
        ("return unpack({}, -2147483648, 2147483647)", "too many results to unpack"),
        ("return unpack({}, 0, 2147483647)", "too many results to unpack"),
        // What is no int for C: CVE-2025-46817.
        ("return unpack({}, 4294967296, 2147483647)", "too many results to unpack"),
        ("return unpack({}, 4294967291, 2147483647)", "too many results to unpack"),
        ("return unpack({}, 0/0, 2147483647)", "too many results to unpack"),
        ("return unpack({}, math.huge, 2147483647)", "too many results to unpack"),
        ("return unpack({}, 1, 4294967297)", "too many results to unpack"),
        ("return cjson.encode(setmetatable({}, {__index = 1}), 2)", "expected 1 argument"),
        ("local t = {} for i = 1, 1001 do t = {t} end return cjson.encode(t)", "excessive nesting"),
        ("return cjson.decode(('['):rep(2000))", "too many nested data structures"),
        ("return cmsgpack.unpack(('\\145'):rep(5000))", "stack overflow"),
        ("return struct.pack('>i2147483647', 1)", "larger than limit"),
        ("return struct.unpack('c9999999999', 'x')", "integral size overflow"),
        ("return ('x'):rep(99):find(('(x'):rep(99))", "too many captures"),
        ("return string.format('%99999d', 1)", "invalid format"),
        ("return ('x'):find(('a?'):rep(300) .. 'b')", "_"),
    ] {
        let got = run_on(&small, source, &mut host);
        assert!(got.contains(text), "{source}: {got}");
    }
    let circle = run_on(&small, "local a = {} a[1] = a return a", &mut host);
    assert!(circle.ends_with("-ERR reached lua stack limit"), "{}", circle.len());
    check("local a = {} a[1] = a return #cmsgpack.pack(a)", ":17");
}

#[test]
fn the_deepest_nesting_fits_a_workers_stack() {
    // Coroutines within coroutines, each with as many calls through C and Rust as Lua lets it have.
    let deepest = || {
        let interpreter = interpreter(256 << 20);
        for inner in ["pcall(down, n - 1)", "string.gsub('a', 'a', function() down(n - 1) end)"] {
            let source = format!(
                "local level = 0
                 local start
                 local function down(n) if n == 0 then start() else {inner} end end
                 start = function()
                   level = level + 1
                   local ok, e = coroutine.resume(coroutine.create(function() down(150) end))
                   if not ok then error(e, 0) end
                 end
                 pcall(start)
                 return level"
            );
            let got = run_on(&interpreter, &source, &mut Echo::default());
            assert!(got.starts_with(':') && got.len() > 1, "{got}");
        }
    };
    // As large as the server's workers' stacks.
    std::thread::Builder::new().stack_size(16 << 20).spawn(deepest).unwrap().join().unwrap();
}

#[test]
fn nothing_of_a_run_is_left_for_the_next() {
    let interpreter = interpreter(0);
    let mut host = Echo::default();
    run_on(&interpreter, "collectgarbage('stop') cjson.encode_max_depth(3) redis.setresp(3)", &mut host);
    assert_eq!(
        run_on(&interpreter, "return {cjson.encode_max_depth(), true, KEYS[2] == nil}", &mut host),
        "*3 :1000 :1 :1"
    );
    let before = interpreter.memory();
    for _ in 0..50 {
        run_on(&interpreter, "local t = {} for i = 1, 10000 do t[i] = 'x' .. i end", &mut host);
    }
    assert!(interpreter.memory() < before + (16 << 20), "{}", interpreter.memory());
}

#[test]
fn logs_and_asks_the_host() {
    let interpreter = interpreter(0);
    let mut host = Echo::default();
    run_on(&interpreter, "redis.log(redis.LOG_WARNING, 'a', 1, 'b')", &mut host);
    assert_eq!(host.log, ["Warning a 1 b"]);
    assert_eq!(
        run_on(&interpreter, "return {redis.acl_check_cmd('x'), redis.acl_check_cmd('x', 'y')}", &mut host),
        "*2 :1 _"
    );
}
