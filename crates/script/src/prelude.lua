-- The sandbox. Runs once when a state is made, with Rust's functions in `raw`; gives what Rust calls in return.
--
-- Lua 5.1 has no read-only tables. What all scripts share is therefore reached through empty tables, the proxies, whose
-- metatable reads from the real table and refuses writes. Functions that pass metatables by are replaced by ones that
-- know the proxies. Functions that catch errors are replaced too: see raise.rs.
--
-- One difference to functions of C shows: `return f(x)` leaves the frame of who called when `f` is written in Lua. An
-- error in the arguments of such a call has no place in its text.
local raw = ...

local assert, error, next, pcall, xpcall, rawequal, select = assert, error, next, pcall, xpcall, rawequal, select
local tonumber, tostring, type, unpack, collectgarbage = tonumber, tostring, type, unpack, collectgarbage
local getmetatable, setmetatable, rawget, rawset = getmetatable, setmetatable, rawget, rawset
local concat, insert, remove, sort, foreach = table.concat, table.insert, table.remove, table.sort, table.foreach
local create, resume, wrapped_null = coroutine.create, coroutine.resume, raw.null
local explain, compile, position, step = raw.explain, raw.compile, raw.position, raw.step

local READONLY = "Attempt to modify a readonly table"
-- More results than this `unpack` cannot give; the difference is formed before C could overflow over it.
local STACK_MAX = 8000
-- Coroutines within coroutines: each has 200 nested calls of its own, on one stack of C.
local NESTED_MAX = 15

-- Real tables by their proxies, and what `getmetatable` answers for a proxy.
local real_of, metatable_of = {}, {}

local function refuse()
  error(READONLY, 2)
end

local function protect(real, behind)
  local proxy = {}
  real_of[proxy] = real
  setmetatable(proxy, {__index = real, __newindex = refuse})
  if behind then
    metatable_of[proxy] = protect(behind)
  end
  return proxy
end

local function bad_argument(number, name, text)
  error("bad argument #" .. number .. " to '" .. name .. "' (" .. text .. ")", 3)
end

local function bad_type(number, name, expected, value)
  error("bad argument #" .. number .. " to '" .. name .. "' (" .. expected .. " expected, got "
    .. (value == nil and number > 1 and "no value" or type(value)) .. ")", 3)
end

-- What a script sees of an error that it has caught. One that stops the script is raised again.
local function seen(failure)
  if type(failure) ~= "userdata" or rawequal(failure, wrapped_null) then
    return failure
  end
  local shown, value = explain(failure)
  if not shown then
    error(failure, 0)
  end
  return value
end

local function stops(failure)
  return type(failure) == "userdata" and not rawequal(failure, wrapped_null) and not explain(failure)
end

-- Everything that scripts find.
local real = {_VERSION = _VERSION}
local env
for _, name in ipairs({"assert", "error", "gcinfo", "ipairs", "rawequal", "select", "tonumber", "tostring", "type"}) do
  real[name] = assert(_G[name])
end
local function copy(from)
  local to = {}
  for name, value in next, from do
    to[name] = value
  end
  return to
end
local strings, tables, maths, coroutines = copy(string), copy(table), copy(math), copy(coroutine)

-- Errors.
local function settle_pcall(ok, ...)
  if ok then
    return true, ...
  end
  local failure = seen((...))
  if type(failure) == "table" then
    local text = failure.err
    if type(text) == "string" or type(text) == "number" then
      failure = text
    end
  end
  return false, failure
end

function real.pcall(...)
  if select("#", ...) == 0 then
    -- What Redis makes of it.
    return false, "attempt to call a boolean value"
  end
  return settle_pcall(pcall(...))
end

local function settle_xpcall(ok, ...)
  if not ok and stops((...)) then
    error((...), 0)
  end
  return ok, ...
end

function real.xpcall(f, handler)
  return settle_xpcall(xpcall(f, function(failure)
    if stops(failure) then
      return failure
    end
    return handler(seen(failure))
  end))
end

-- Tables.
function real.rawget(t, key)
  local hidden = real_of[t]
  if hidden then
    return rawget(hidden, key)
  end
  if type(t) ~= "table" then
    bad_type(1, "rawget", "table", t)
  end
  return rawget(t, key)
end

function real.rawset(t, key, value)
  if type(t) ~= "table" then
    bad_type(1, "rawset", "table", t)
  elseif real_of[t] then
    error(READONLY, 0)
  elseif key == nil then
    error("table index is nil", 0)
  elseif key ~= key then
    error("table index is NaN", 0)
  end
  return rawset(t, key, value)
end

function real.next(t, key)
  local hidden = real_of[t]
  if hidden then
    return next(hidden, key)
  end
  if type(t) ~= "table" then
    bad_type(1, "next", "table", t)
  end
  return next(t, key)
end

function real.pairs(t)
  if type(t) ~= "table" then
    bad_type(1, "pairs", "table", t)
  end
  if real_of[t] then
    return real.next, t, nil
  end
  return next, t, nil
end

-- The metatable of all strings may be seen, and not be changed.
local of_strings = getmetatable("")
local shown_of_strings

function real.getmetatable(value)
  if type(value) == "string" then
    return shown_of_strings
  elseif real_of[value] then
    return metatable_of[value]
  end
  return getmetatable(value)
end

function real.setmetatable(t, metatable)
  if type(t) ~= "table" then
    bad_type(1, "setmetatable", "table", t)
  elseif metatable ~= nil and type(metatable) ~= "table" then
    bad_argument(2, "setmetatable", "nil or table expected")
  elseif real_of[t] then
    error(READONLY, 0)
  end
  local before = getmetatable(t)
  if type(before) ~= "table" and before ~= nil or type(before) == "table" and rawget(before, "__metatable") ~= nil then
    error("cannot change a protected metatable", 2)
  end
  return setmetatable(t, metatable)
end

function real.unpack(t, first, last)
  if type(t) ~= "table" then
    bad_type(1, "unpack", "table", t)
  end
  -- The arguments take places on the stack beside the results, so no more of them are passed on than were given.
  local from, to, given = 1, #t, 1
  if first ~= nil then
    from, given = tonumber(first) or bad_type(2, "unpack", "number", first), 2
  end
  if last ~= nil then
    to, given = tonumber(last) or bad_type(3, "unpack", "number", last), 3
  end
  -- C cuts both to an int, between which the difference may overflow (CVE-2025-46817): what is none is refused, as is NaN.
  local are_ints = from > -2147483649 and from < 2147483648 and to > -2147483649 and to < 2147483648
  if not are_ints or to - from + 1 + given > STACK_MAX then
    error("too many results to unpack", 2)
  end
  if given == 1 then
    return unpack(t)
  elseif given == 2 then
    return unpack(t, from)
  end
  return unpack(t, from, to)
end

function tables.insert(t, ...)
  if type(t) ~= "table" then
    bad_type(1, "insert", "table", t)
  elseif real_of[t] then
    error(READONLY, 0)
  end
  local count = select("#", ...)
  if count == 2 then
    local at = tonumber((...))
    if not at then
      bad_type(2, "insert", "number", (...))
    end
    local length = #t
    if at > 2147483647 then
      -- C takes it as a number of 32 bits.
      at = (at - at % 1 + 2147483648) % 4294967296 - 2147483648
    end
    if at < 1 then
      -- C would move what lies between in one go, which nobody could interrupt.
      for index = length, at, -1 do
        t[index + 1] = t[index]
      end
      t[at] = select(2, ...)
      return
    end
  elseif count ~= 1 then
    error("wrong number of arguments to 'insert'", 2)
  end
  return insert(t, ...)
end

function tables.remove(t, ...)
  if type(t) ~= "table" then
    bad_type(1, "remove", "table", t)
  elseif real_of[t] then
    -- There is no element that could go.
    return
  elseif select("#", ...) > 0 and (...) ~= nil and not tonumber((...)) then
    bad_type(2, "remove", "number", (...))
  end
  return remove(t, ...)
end

function tables.sort(t, order)
  if type(t) ~= "table" then
    bad_type(1, "sort", "table", t)
  elseif real_of[t] then
    error(READONLY, 0)
  elseif order ~= nil and type(order) ~= "function" then
    bad_type(2, "sort", "function", order)
  end
  return sort(t, order)
end

function tables.foreach(t, f)
  if type(t) ~= "table" then
    bad_type(1, "foreach", "table", t)
  elseif type(f) ~= "function" then
    bad_type(2, "foreach", "function", f)
  end
  return foreach(real_of[t] or t, f)
end

-- Chunks.
function real.loadstring(text, name)
  if type(text) ~= "string" and type(text) ~= "number" then
    bad_type(1, "loadstring", "string", text)
  elseif name ~= nil and type(name) ~= "string" and type(name) ~= "number" then
    bad_type(2, "loadstring", "string", name)
  end
  text = tostring(text)
  return compile(text, name and tostring(name) or text, env)
end

-- The garbage collector works for all scripts: what one changes about it holds until its end.
local collector_changed = false
function real.collectgarbage(what, ...)
  if what ~= nil and what ~= "collect" and what ~= "count" and what ~= "step" then
    collector_changed = true
  end
  local ok, result = pcall(collectgarbage, what, ...)
  if not ok then
    error((tostring(result):gsub("'%?'", "'collectgarbage'")), 2)
  end
  return result
end

-- Coroutines.
local nested = 0
local function settle_resume(ok, ...)
  nested = nested - 1
  if ok then
    return true, ...
  end
  return false, seen((...))
end

function coroutines.resume(thread, ...)
  if type(thread) ~= "thread" then
    bad_argument(1, "resume", "coroutine expected")
  elseif nested >= NESTED_MAX then
    return false, "C stack overflow"
  end
  nested = nested + 1
  return settle_resume(resume(thread, ...))
end

local function settle_wrap(ok, ...)
  if ok then
    return ...
  end
  -- As in C a text is given the place of the call in front, once more.
  error((...), type((...)) == "string" and 3 or 0)
end

function coroutines.wrap(f)
  if type(f) ~= "function" then
    bad_argument(1, "wrap", "Lua function expected")
  end
  local thread = create(f)
  return function(...)
    return settle_wrap(coroutines.resume(thread, ...))
  end
end

-- Strings: what matches patterns is Rust's, which can be interrupted and does not recurse without bound.
strings.find, strings.match, strings.rep, strings.gsub = raw.find, raw.match, raw.rep, raw.gsub

local function advance(state, first, behind, ...)
  if not first then
    state.from = #state.text + 2
    return nil
  end
  state.from = behind == first and behind + 1 or behind
  return ...
end

function strings.gmatch(text, pattern)
  if type(text) ~= "string" and type(text) ~= "number" then
    bad_type(1, "gmatch", "string", text)
  elseif type(pattern) ~= "string" and type(pattern) ~= "number" then
    bad_type(2, "gmatch", "string", pattern)
  end
  local state = {text = tostring(text), pattern = tostring(pattern), from = 1}
  return function()
    if state.from <= #state.text + 1 then
      return advance(state, step(state.text, state.pattern, state.from, true))
    end
  end
end
strings.gfind = strings.gmatch

local function replaced(replacing, first, behind, ...)
  if not first then
    return nil
  elseif type(replacing) == "table" then
    return first, behind, replacing[(...)]
  end
  return first, behind, (replacing(...))
end

-- `gsub` with a table or a function, as Rust's `gsub` calls it.
raw.replace(function(text, pattern, replacing, most)
  local pieces, at, count = {}, 1, 0
  local anchored = pattern:sub(1, 1) == "^"
  while count < most and at <= #text + 1 do
    local first, behind, value = replaced(replacing, step(text, pattern, at, false, type(replacing) == "table"))
    if not first then
      break
    end
    count = count + 1
    pieces[#pieces + 1] = text:sub(at, first - 1)
    if not value then
      value = text:sub(first, behind - 1)
    elseif type(value) ~= "string" and type(value) ~= "number" then
      return nil, "invalid replacement value (a " .. type(value) .. ")"
    end
    pieces[#pieces + 1] = value
    if behind > first then
      at = behind
    else
      pieces[#pieces + 1] = text:sub(first, first)
      at = first + 1
    end
    if anchored then
      break
    end
  end
  pieces[#pieces + 1] = text:sub(at)
  return concat(pieces), count
end, pcall)

maths.random, maths.randomseed = raw.random, raw.randomseed

-- The tables that all scripts share.
of_strings.__index = protect(strings)
shown_of_strings = protect(of_strings)
real.string, real.table, real.math = of_strings.__index, protect(tables), protect(maths)
real.coroutine = protect(coroutines)
real.os = raw.os and protect(raw.os)
for name, library in next, raw.libraries do
  real[name] = protect(library)
end
-- Valkey's name for it.
real.server = real.redis
local function nonexistent(_, name)
  error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
end
local metatable = {__index = nonexistent}
setmetatable(real, metatable)
env = protect(real, metatable)
real._G = env

-- While a library is loaded it finds nothing but a small `redis`.
local loading = setmetatable({}, metatable)
if raw.while_loading then
  loading.redis = protect(setmetatable(raw.while_loading, metatable))
  loading.server = loading.redis
end

-- What a run gives of an error: a table with `err`, and the place where it was raised.
local function describe(failure)
  if stops(failure) then
    raw.stopped(position())
    return failure
  end
  local value = seen(failure)
  if type(value) ~= "table" then
    value = {err = "ERR " .. tostring(value)}
  end
  local source, line = position()
  if source then
    value.source, value.line = source, line
  end
  return value
end

function real.load(reader, name)
  if type(reader) ~= "function" then
    bad_type(1, "load", "function", reader)
  end
  local pieces = {}
  local ok, failure = xpcall(function()
    for piece in reader do
      if type(piece) ~= "string" and type(piece) ~= "number" then
        error("reader function must return a string", 0)
      elseif piece == "" then
        return
      end
      pieces[#pieces + 1] = piece
    end
  end, describe)
  if not ok then
    -- A table, as Redis's handler makes it of errors in here too.
    if stops(failure) then
      error(failure, 0)
    end
    return nil, failure
  end
  return compile(concat(pieces), name and tostring(name) or "=(load)", env)
end

local function finish(...)
  if collector_changed then
    collector_changed = false
    collectgarbage("restart")
    collectgarbage("setpause", 200)
    collectgarbage("setstepmul", 200)
  end
  return ...
end

local function run(f)
  nested = 0
  return finish(xpcall(f, describe))
end

local called, its_keys, its_args
local function call_it()
  return called(its_keys, its_args)
end

local env_metatable = getmetatable(env)

return {
  env = env,
  -- An EVAL script.
  eval = function(f, keys, args)
    real.KEYS, real.ARGV = keys, args
    return run(f)
  end,
  -- A function of a library.
  call = function(f, keys, args)
    called, its_keys, its_args = f, keys, args
    return run(call_it)
  end,
  -- The code of a library.
  load = function(f)
    env_metatable.__index = loading
    real_of[env] = loading
    return (function(...)
      env_metatable.__index = real
      real_of[env] = real
      return ...
    end)(run(f))
  end,
}
