//! What is not asked, and what of an answer is not compared, each with its reason. All else must be the same.

use crate::grammar::Request;
use crate::reply::Reply;
use crate::scripts;
use crate::sides::Connection;

/// The words from this one on, as upper-case text for names of commands and options.
fn upper(request: &[Vec<u8>], at: usize) -> String {
    request.get(at).map(|word| String::from_utf8_lossy(word).to_ascii_uppercase()).unwrap_or_default()
}

fn number(request: &[Vec<u8>], at: usize) -> Option<f64> {
    request.get(at).and_then(|word| std::str::from_utf8(word).ok()?.trim().parse().ok())
}

/// The command that a script calls with its arguments, where it does.
fn called(request: &Request) -> Option<&[Vec<u8>]> {
    let is_call = ["EVAL", "EVAL_RO", "FCALL", "FCALL_RO"].contains(&&*upper(request, 0));
    (is_call && request.len() > 3).then(|| &request[3..])
}

/// Whether the answer says something: it is the same at any time, comes soon, and takes no gigabytes.
pub fn is_comparable(request: &Request) -> bool {
    if let Some(inner) = called(request) {
        return is_plain(request) && is_plain(inner) && (inner.len() < 2 || is_plain(&inner[1..]));
    }
    is_plain(request)
}

fn is_plain(request: &[Vec<u8>]) -> bool {
    let Some(last) = request.len().checked_sub(1) else { return true };
    // A wait that ends soon, or is refused.
    let is_soon = |at: usize| {
        let text = upper(request, at);
        !text.contains('X')
            && number(request, at).is_none_or(|seconds| seconds < 0.0 || (seconds > 0.0 && seconds <= 0.01))
    };
    // Where the offset is large the value is, too.
    let is_large = |at: usize, most: f64| {
        let text = upper(request, at);
        text.trim_start_matches('#').parse::<f64>().is_ok_and(|offset| offset > most && offset < 8.6e9)
    };
    let lex_key = || match &*upper(request, 0) {
        "ZRANGESTORE" => upper(request, 2),
        _ => upper(request, 1),
    };
    match &*upper(request, 0) {
        // What a range of members is where scores differ is not said.
        "ZRANGEBYLEX" | "ZREVRANGEBYLEX" | "ZLEXCOUNT" | "ZREMRANGEBYLEX" if lex_key().starts_with(['Z', 'G']) => false,
        "ZRANGE" | "ZRANGESTORE"
            if request.iter().any(|word| word.eq_ignore_ascii_case(b"BYLEX")) && lex_key().starts_with(['Z', 'G']) =>
        {
            false
        }
        "ZADD" if upper(request, 1).starts_with('Y') => request[2..].iter().step_by(2).all(|score| score == b"0"),
        // Which members these give is not promised; 1,000 are all.
        "SPOP" | "SRANDMEMBER" | "HRANDFIELD" | "ZRANDMEMBER" => {
            upper(request, 1) == "NOKEY"
                || number(request, 2).is_some_and(|count| count == 0.0 || count == 1000.0 || count.abs() > 1e19)
        }
        "BLPOP" | "BRPOP" | "BLMOVE" | "BRPOPLPUSH" | "BZPOPMIN" | "BZPOPMAX" => is_soon(last),
        "BLMPOP" | "BZMPOP" => is_soon(1),
        // Whether so little time has passed depends on the moment.
        "XCLAIM" | "XAUTOCLAIM" if number(request, 4).is_some_and(|idle| idle > 0.0 && idle < 1e6) => false,
        "XPENDING" if number(request, 4).is_some_and(|idle| idle > 0.0 && idle < 1e6) => false,
        // All options are read before anybody is logged in or named, as 7.2 does it.
        "HELLO" => {
            last < 3 || (last == 3 && upper(request, 2) == "SETNAME") || (last == 4 && upper(request, 2) == "AUTH")
        }
        // No number is no amount of memory; a part of the memory there is, is; there is a bound on lengths; and not more than
        // 2^63 bytes can be had.
        "CONFIG" if upper(request, 1) == "SET" => request[2..].chunks(2).all(|pair| {
            let value = String::from_utf8_lossy(pair.get(1).map_or(b"0", Vec::as_slice)).into_owned();
            let may_be_empty = ["SAVE", "NOTIFY-KEYSPACE-EVENTS"].contains(&&*upper(pair, 0));
            // Two classes of events came with 8.2.
            let has_new_class = upper(pair, 0) == "NOTIFY-KEYSPACE-EVENTS" && value.contains(['o', 'c']);
            // What is no text is refused by that name.
            !value.contains(char::REPLACEMENT_CHARACTER)
                && !has_new_class
                && (!value.is_empty() || may_be_empty)
                && !value.ends_with('%')
                && upper(pair, 0) != "PROTO-MAX-BULK-LEN"
                // Or the test's own connections are idle for as long.
                && !(upper(pair, 0) == "TIMEOUT" && value.parse().is_ok_and(|seconds| (1..1_000).contains(&seconds)))
                // From Redis 8 on there are 64 at most.
                && (upper(pair, 0) != "MAXMEMORY-SAMPLES" || value.parse().is_ok_and(|samples| (1..=64).contains(&samples)))
                && !["9223372036854775808", "18446744073709551615", "m"].contains(&&*value)
        }),
        "XREAD" | "XREADGROUP" => (0..last).all(|at| {
            let is_short = |ms: f64| ms < 0.0 || (1.0..=5.0).contains(&ms);
            upper(request, at) != "BLOCK" || number(request, at + 1).is_none_or(is_short)
        }),
        "XADD" if request.iter().any(|word| word == b"*") => false,
        // C reads a number up to a NUL.
        name if (name.ends_with("SCAN") || name.starts_with('X')) && request.iter().any(|word| word.contains(&0)) => {
            false
        }
        // In which order equals come out of a set is nobody's business.
        "SORT" | "SORT_RO" if upper(request, 1).starts_with('T') => {
            !request.iter().any(|word| word.eq_ignore_ascii_case(b"BY"))
        }
        // Ranks with their scores came with 7.2.
        "ZRANK" | "ZREVRANK" => request.len() != 4,
        "WAIT" => number(request, 1).is_none_or(|replicas| replicas <= 0.0),
        // A number with blanks behind it may be counted on from, as memcached leaves such.
        "SET" | "SETNX" | "SETEX" | "PSETEX" | "GETSET" | "MSET" | "MSETNX" | "APPEND" | "SETRANGE"
            if request.iter().any(|word| word.ends_with(b" ")) =>
        {
            false
        }
        "SETRANGE" | "SETBIT" => !is_large(2, 100_000.0),
        "BITFIELD" => !(2..=last).any(|at| {
            is_large(at, 1_500.0)
                && upper(request, at - 1).starts_with(['I', 'U'])
                && upper(request, at - 1) != "INCRBY"
        }),
        "CLIENT" => match &*upper(request, 1) {
            "PAUSE" => last == 3 && !["WRITE", "ALL"].contains(&&*upper(request, 3)),
            "REPLY" => !["OFF", "SKIP"].contains(&&*upper(request, 2)),
            "ID" | "INFO" | "HELP" => false,
            "LIST" => last > 1,
            _ => true,
        },
        "RANDOMKEY" | "TIME" | "LASTSAVE" | "SAVE" | "BGSAVE" | "COMMAND" | "INFO" if last == 0 => false,
        "DEBUG" | "SHUTDOWN" | "QUIT" | "MONITOR" | "SYNC" | "PSYNC" | "REPLCONF" | "SUBSCRIBE" | "PSUBSCRIBE"
        | "SSUBSCRIBE" => false,
        _ => true,
    }
}

/// Whether Redis promises no order of what is answered, and how many elements belong together.
fn unordered(request: &[Vec<u8>]) -> Option<usize> {
    match &*upper(request, 0) {
        "SMEMBERS" | "SINTER" | "SUNION" | "SDIFF" | "KEYS" | "SPOP" | "SRANDMEMBER" | "HKEYS" | "HVALS" => Some(1),
        "HGETALL" => Some(2),
        "HRANDFIELD" if request.len() > 3 => Some(2),
        "HRANDFIELD" | "ZRANDMEMBER" => Some(1),
        "ACL" if upper(request, 1) == "USERS" => Some(1),
        _ => None,
    }
}

/// What can be compared of both sides' answers, Tenon's first.
pub fn comparable(request: &Request, queued: &[Request], answers: [Reply; 2]) -> [Reply; 2] {
    if upper(request, 0) == "EXEC"
        && answers.iter().all(|answer| answer.elements().len() == queued.len() && !queued.is_empty())
    {
        let [tenon, redis] = answers.each_ref().map(|answer| answer.elements());
        let pairs = queued.iter().zip(tenon.iter().zip(redis));
        let pairs = pairs.map(|(request, (tenon, redis))| comparable(request, &[], [tenon.clone(), redis.clone()]));
        let (tenon, redis) = pairs.map(|[tenon, redis]| (tenon, redis)).unzip();
        return [Reply::Many(b'*', tenon), Reply::Many(b'*', redis)];
    }
    if let Some(inner) = called(request) {
        let inner = inner.to_vec();
        let behind_key = inner[1..].to_vec();
        let answers = if behind_key.is_empty() { answers } else { one(&behind_key, answers) };
        return one(request, one(&inner, answers));
    }
    one(request, answers)
}

fn one(request: &Request, answers: [Reply; 2]) -> [Reply; 2] {
    if answers[0] == answers[1] {
        return answers;
    }
    if is_meant(request, &answers) {
        return [const { Reply::Closed }; 2];
    }
    let answers = answers.map(|answer| spelled(alone(request, answer)));
    if upper(request, 0).ends_with("SCAN") && answers.iter().any(|answer| answer.text() == Some(b"a part")) {
        return [const { Reply::Closed }; 2];
    }
    let integers = answers.each_ref().map(Reply::integer);
    let tolerance = match &*upper(request, 0) {
        "TTL" | "EXPIRETIME" => 5,
        "PTTL" | "PEXPIRETIME" => 5_000,
        "MEMORY" => i64::MAX,
        _ => 0,
    };
    if let [Some(tenon), Some(redis)] = integers
        && tenon >= 0
        && redis >= 0
        && tenon.abs_diff(redis) <= tolerance as u64
    {
        return [Reply::of_integer(redis), Reply::of_integer(redis)];
    }
    answers
}

/// Whether this is a difference that Tenon means, and why.
fn is_meant(request: &[Vec<u8>], [tenon, redis]: &[Reply; 2]) -> bool {
    if ["EVAL", "EVAL_RO", "FCALL", "FCALL_RO"].contains(&&*upper(request, 0)) {
        // From 7.4 on XREAD may be told to wait, and does not.
        if format!("{redis:?}").contains("command is not allowed with BLOCK option from scripts") {
            return true;
        }
        let inner = upper(request, 3);
        // From 7.2 on it answers at once.
        if inner == "WAIT" && format!("{redis:?}").contains("command is not allowed from script") {
            return true;
        }
        // Whatever a script makes of such an answer.
        return ["BITCOUNT", "BITPOS"].contains(&&*inner) && format!("{tenon:?}{redis:?}").contains("ERR ");
    }
    let [tenon, redis] = [tenon, redis].map(|reply| match reply {
        Reply::Line(line) | Reply::Text(_, line) => String::from_utf8_lossy(line).into_owned(),
        _ => String::new(),
    });
    match &*upper(request, 0) {
        // As in Valkey, a range may have no end, and CLIENT LIST several filters.
        "BITCOUNT" if request.len() == 3 => redis == "-ERR syntax error" || redis == ":0" && tenon.starts_with("-ERR"),
        "CLIENT" if ["LIST", "KILL"].contains(&&*upper(request, 1)) => {
            request.len() > 4 && redis == "-ERR syntax error"
        }
        // Redis 7.0 does not look at the range where there is no key.
        "BITCOUNT" | "BITPOS" => tenon.starts_with("-ERR") && !redis.starts_with("-ERR"),
        // A rank's score came with 7.2.
        "COMMAND" => matches!(&*upper(request, 2), "ZRANK" | "ZREVRANK") && request.len() == 6,
        // -2^63 has no counterpart; Redis 7.0 finds nothing.
        "LPOS" => tenon.contains("must between -9223372036854775807"),
        // From 7.2 on a consumer is there once it has asked.
        "XGROUP" if ["CREATECONSUMER", "DELCONSUMER"].contains(&&*upper(request, 1)) => redis.starts_with(':'),
        // Worded differently since 7.4.
        "XREAD" | "XREADGROUP" if redis.contains("ERR Unbalanced") => tenon.contains("ERR Unbalanced"),
        // `+` is the last entry since 7.4.
        "XREAD" if redis.starts_with("-ERR Invalid stream ID") => request.iter().any(|word| word == b"+"),
        // A write that changes nothing leaves the string as it is kept.
        "OBJECT" => ["int", "embstr"].contains(&&*tenon) && redis == "raw",
        // One level more since 7.2, one policy more, and two classes of events since 8.2.
        "CONFIG" => {
            ["warning, nothing", "noeviction, allkeys-tenon", "KEtmdnoc"].iter().any(|more| tenon.contains(more))
        }
        // In MULTI Redis looks at memory before it looks at what is asked.
        "WATCH" | "MULTI" => redis.starts_with("-OOM"),
        // A picture of its own.
        "LOLWUT" => true,
        _ => false,
    }
}

/// What can be compared of an answer by itself.
fn alone(request: &Request, answer: Reply) -> Reply {
    let answer = sort_maps(answer);
    if answer.is_error() {
        return answer;
    }
    if let Some(width) = unordered(request) {
        // In RESP3 the pairs are arrays.
        let width = if matches!(answer.elements().first(), Some(Reply::Many(..))) { 1 } else { width };
        return answer.sorted(width);
    }
    let first = upper(request, 0);
    match (&*first, &*upper(request, 1)) {
        ("SCAN", _) if request[1] != b"0" => Reply::Line(b"+a part".to_vec()),
        ("SSCAN" | "HSCAN" | "ZSCAN", _) if request[2] != b"0" => Reply::Line(b"+a part".to_vec()),
        ("SCAN" | "SSCAN" | "HSCAN" | "ZSCAN", _) => scanned(&first, answer),
        ("FUNCTION", "LIST") => sort_all(answer),
        ("SORT" | "SORT_RO", _) => answer,
        ("XPENDING" | "XINFO" | "XCLAIM" | "XAUTOCLAIM", _) => without_times(answer),
        // Random, or about this very server.
        ("ACL", "GENPASS" | "CAT" | "LOG")
        | ("COMMAND", "LIST" | "COUNT" | "INFO" | "DOCS")
        | ("INFO", _)
        | ("SLOWLOG", "GET") => Reply::Line(b"+any".to_vec()),
        ("MEMORY", "USAGE") if answer.integer().is_some() => Reply::of_integer(1),
        ("HELLO", _) => described(answer),
        ("OBJECT", "ENCODING") => encoding(answer),
        ("ACL", "GETUSER" | "LIST") => without_rules(answer),
        ("CONFIG", "GET") => configured(answer),
        _ => answer,
    }
}

/// Numbers as the shortest text that reads as the number, as Redis has it from 7.2 on.
fn spelled(answer: Reply) -> Reply {
    let shortest = |text: &[u8]| {
        let text = std::str::from_utf8(text).ok()?;
        let is_long = text.len() > 15 || text.contains(['.', 'e']);
        is_long.then(|| text.parse::<f64>().ok()).flatten().map(|number| format!("{number:e}").into_bytes())
    };
    match answer {
        Reply::Text(kind, text) => Reply::Text(kind, shortest(&text).unwrap_or(text)),
        Reply::Line(line) if line[0] == b',' => Reply::Line(shortest(&line[1..]).unwrap_or(line)),
        Reply::Many(kind, all) => Reply::Many(kind, all.into_iter().map(spelled).collect()),
        other => other,
    }
}

/// The order of a map's pairs and of a set's members is nobody's business.
fn sort_maps(answer: Reply) -> Reply {
    match answer {
        Reply::Many(kind, all) => {
            let all = Reply::Many(kind, all.into_iter().map(sort_maps).collect());
            match kind {
                b'%' => all.sorted(2),
                b'~' => all.sorted(1),
                _ => all,
            }
        }
        other => other,
    }
}

/// All in one order, however deep.
fn sort_all(answer: Reply) -> Reply {
    match answer {
        Reply::Many(kind, all) => Reply::Many(kind, all.into_iter().map(sort_all).collect()).sorted(1),
        other => other,
    }
}

/// What SCAN finds, in one order, where it has found all; how many there are in one step is the server's business.
fn scanned(command: &str, answer: Reply) -> Reply {
    let width = if ["HSCAN", "ZSCAN"].contains(&command) { 2 } else { 1 };
    match answer {
        Reply::Many(kind, all) if all.len() == 2 && all[0].text() == Some(b"0") => {
            let found = all[1].clone().sorted(width);
            Reply::Many(kind, vec![all[0].clone(), found])
        }
        _ => Reply::Line(b"+a part".to_vec()),
    }
}

/// Without idle times, which depend on the moment, what Redis 7.2 has added, and what 7.0 counts otherwise: how many
/// entries a group has read (since 8.4 no more than there were), and how many are left.
fn without_times(answer: Reply) -> Reply {
    match answer {
        Reply::Many(kind, all) => {
            let mut kept = Vec::new();
            let mut all = all.into_iter().peekable();
            while let Some(element) = all.next() {
                match element.text() {
                    Some(
                        b"idle" | b"inactive" | b"seen-time" | b"active-time" | b"radix-tree-keys"
                        | b"radix-tree-nodes" | b"lag" | b"entries-read",
                    ) => {
                        all.next();
                    }
                    // From Redis 8.6 on.
                    Some(
                        b"nacked-count" | b"idmp-duration" | b"idmp-maxsize" | b"pids-tracked" | b"iids-tracked"
                        | b"iids-added" | b"iids-duplicates",
                    ) => {
                        all.next();
                    }
                    // How many consumers there are; which, in the full form, is looked at below.
                    Some(b"consumers") if all.peek().is_some_and(|next| next.integer().is_some()) => {
                        all.next();
                    }
                    _ => kept.push(without_times(element)),
                }
            }
            // From 7.2 on a consumer is there once it has asked; before, once it was given something.
            kept.retain(|element| !is_idle_consumer(element));
            // Who has waited for an acknowledgement: id, consumer, time, deliveries; and the same without a consumer.
            if let [Reply::Text(..), Reply::Text(..), Reply::Line(_), Reply::Line(_)] = kept[..] {
                kept[2] = Reply::of_integer(0);
            }
            if let [Reply::Text(..), Reply::Line(_), Reply::Line(_)] = kept[..] {
                kept[1] = Reply::of_integer(0);
            }
            Reply::Many(kind, kept)
        }
        other => other,
    }
}

/// Whether this describes a consumer to which nothing is pending.
fn is_idle_consumer(element: &Reply) -> bool {
    let mut pairs = element.elements().chunks(2);
    let is_named = pairs.next().is_some_and(|pair| pair[0].text() == Some(b"name"));
    is_named
        && pairs.any(|pair| matches!(pair[0].text(), Some(b"pending" | b"pel-count")) && pair[1].integer() == Some(0))
        && !element.elements().iter().any(|field| field.text() == Some(b"last-delivered-id"))
}

/// HELLO without version and id.
fn described(answer: Reply) -> Reply {
    without_field(answer, &[b"version", b"id"])
}

/// Rules of commands are told as they were given, as Redis 7.2 does; 7.0 makes others up that come to the same. Likewise
/// the flag that says that payloads are looked at.
fn without_rules(answer: Reply) -> Reply {
    match answer {
        Reply::Many(kind, all) => {
            let all = all.into_iter().map(without_rules).filter(|reply| reply.text() != Some(b"sanitize-payload"));
            Reply::Many(kind, all.collect())
        }
        Reply::Text(kind, text) if text.contains(&b' ') || text.starts_with(b"+") || text.starts_with(b"-") => {
            let kept = text.split(|&byte| byte == b' ').filter(|word| {
                let word = word.strip_prefix(b"(").unwrap_or(word);
                !word.starts_with(b"+") && !word.starts_with(b"-") && word != b"sanitize-payload"
            });
            Reply::Text(kind, kept.collect::<Vec<_>>().join(&b' '))
        }
        other => other,
    }
}

/// The settings that the test knows; each has others, too.
fn configured(answer: Reply) -> Reply {
    match answer {
        Reply::Many(kind, all) => {
            let is_known = |reply: &Reply| {
                reply.text().is_some_and(|name| scripts::SETTINGS.iter().any(|known| known.as_bytes() == name))
            };
            let pairs = all.chunks(2).filter(|pair| is_known(&pair[0])).flatten().cloned();
            Reply::Many(kind, pairs.collect()).sorted(2)
        }
        other => other,
    }
}

fn without_field(answer: Reply, names: &[&[u8]]) -> Reply {
    match answer {
        Reply::Many(kind, all) => {
            let pairs = all.chunks(2).filter(|pair| !names.iter().any(|name| pair[0].text() == Some(name)));
            Reply::Many(kind, pairs.flatten().cloned().collect())
        }
        other => other,
    }
}

/// Short lists and sets of words are listpacks from Redis 7.2 on, and here.
fn encoding(answer: Reply) -> Reply {
    match answer.text() {
        Some(b"quicklist" | b"hashtable" | b"listpack" | b"skiplist") => Reply::Line(b"+any".to_vec()),
        _ => answer,
    }
}

/// Looks at a key's value and expiry.
pub fn looks(connection: &mut Connection, key: &[u8]) -> Vec<(Request, Reply)> {
    let kind = connection.ask(&[b"TYPE", key]);
    let read: &[&[u8]] = match kind.text() {
        Some(b"string") => &[b"GET", key],
        Some(b"list") => &[b"LRANGE", key, b"0", b"-1"],
        Some(b"set") => &[b"SMEMBERS", key],
        Some(b"zset") => &[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"],
        Some(b"hash") => &[b"HGETALL", key],
        Some(b"stream") => &[b"XINFO", b"STREAM", key, b"FULL", b"COUNT", b"0"],
        _ => &[b"TYPE", key],
    };
    let all = [
        &[b"TYPE", key][..],
        read,
        &[b"PEXPIRETIME", key],
        &[b"OBJECT", b"ENCODING", key],
        &[b"DEBUG", b"DIGEST-VALUE", key],
    ];
    let ask = |words: &[&[u8]]| (words.iter().map(|word| word.to_vec()).collect(), connection.ask(words));
    all.into_iter().map(ask).collect()
}
