-- The sandbox. Runs once when a state is made, with Rust's functions in `raw`; gives what Rust calls in return.
--
-- Lua 5.1 has no read-only tables. What all scripts share is therefore reached through empty tables, the proxies, whose
-- metatable reads from the real table and refuses writes. Functions that pass metatables by stand behind a guard that
-- knows the proxies, see raw/guarded.rs, or are replaced. Functions that catch errors are replaced too: see raise.rs.
--
-- One difference to functions of C shows: `return f(x)` leaves the frame of who called when `f` is written in Lua. An
-- error in the arguments of such a call has no place in its text.
local raw = ...

local assert, error, next, pcall, xpcall, rawequal, select = assert, error, next, pcall, xpcall, rawequal, select
local tostring, type, collectgarbage = tostring, type, collectgarbage
local getmetatable, setmetatable, rawget, rawset = getmetatable, setmetatable, rawget, rawset
local concat, insert, remove = table.concat, table.insert, table.remove
local create, resume, wrapped_null = coroutine.create, coroutine.resume, raw.null
local explain, compile, position = raw.explain, raw.compile, raw.position

local READONLY = "Attempt to modify a readonly table"
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

-- With all arguments of the call behind, as one that is missing is not one that is nil.
local function bad_type(number, name, expected, ...)
  local got = select("#", ...) < number and "no value" or type((select(number, ...)))
  error("bad argument #" .. number .. " to '" .. name .. "' (" .. expected .. " expected, got " .. got .. ")", 3)
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
for _, name in ipairs({"assert", "error", "gcinfo", "ipairs", "rawequal", "select", "tonumber", "type"}) do
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
real.pcall = raw.catching(function(failure)
  failure = seen(failure)
  if type(failure) == "table" then
    local text = failure.err
    if type(text) == "string" or type(text) == "number" then
      return text
    end
  end
  return failure
end)

local function settle_xpcall(ok, ...)
  if not ok and stops((...)) then
    error((...), 0)
  end
  return ok, ...
end

function real.xpcall(...)
  if select("#", ...) < 2 then
    bad_argument(2, "xpcall", "value expected")
  end
  local f, handler = ...
  return settle_xpcall(xpcall(f, function(failure)
    if stops(failure) then
      return failure
    end
    return handler(seen(failure))
  end))
end

-- Tables.
real.rawget, real.next = raw.reading(rawget, real_of), raw.reading(next, real_of)
real.rawset, real.setmetatable = raw.writing(rawset, real_of), raw.writing(setmetatable, real_of)

real.pairs = raw.walking(real_of, next, real.next)

-- The metatable of all strings may be seen, and not be changed.
local of_strings = getmetatable("")
local shown_of_strings

function real.getmetatable(...)
  if select("#", ...) == 0 then
    bad_argument(1, "getmetatable", "value expected")
  end
  local value = ...
  if type(value) == "string" then
    return shown_of_strings
  elseif real_of[value] then
    return metatable_of[value]
  end
  return getmetatable(value)
end

real.unpack, real.tostring = raw.unpack, raw.writing_out(tostring)

tables.insert = raw.inserting(insert, real_of, function(t, at, value)
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
    t[at] = value
    return
  end
  insert(t, at, value)
end)
tables.remove = raw.removing(remove, real_of)
tables.sort, tables.foreach = raw.writing(table.sort, real_of), raw.reading(table.foreach, real_of)

-- Chunks.
local function is_text(value)
  return type(value) == "string" or type(value) == "number"
end

function real.loadstring(...)
  local text, name = ...
  if not is_text(text) then
    bad_type(1, "loadstring", "string", ...)
  elseif name ~= nil and not is_text(name) then
    bad_type(2, "loadstring", "string", ...)
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
  local ok, thread = pcall(create, f)
  if not ok and tostring(thread):find("Lua function expected", 1, true) then
    bad_argument(1, "wrap", "Lua function expected")
  elseif not ok then
    error(thread, 0)
  end
  return function(...)
    return settle_wrap(coroutines.resume(thread, ...))
  end
end

-- Strings: what matches patterns is Rust's, which can be interrupted and does not recurse without bound.
for _, name in ipairs({"find", "match", "gmatch", "gsub", "rep"}) do
  strings[name] = assert(raw[name])
end
strings.gfind = strings.gmatch

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

function real.load(...)
  local reader, name = ...
  if name ~= nil and not is_text(name) then
    bad_type(2, "load", "string", ...)
  elseif type(reader) ~= "function" then
    bad_type(1, "load", "function", ...)
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

local is_eval = false
local called, its_keys, its_args
local function call_it()
  return called(its_keys, its_args)
end

local function finish(...)
  -- Its words go with the run: the next one needs the room. Their names stay, else the table would grow anew.
  if is_eval then
    is_eval, real.KEYS, real.ARGV = false, false, false
  end
  called, its_keys, its_args = nil, nil, nil
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

local env_metatable = getmetatable(env)

return {
  env = env,
  -- An EVAL script.
  eval = function(f, keys, args)
    is_eval, real.KEYS, real.ARGV = true, keys, args
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
