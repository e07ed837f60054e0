//! What COMMAND DOCS says of each command, beside what redis-server says of those that it knows: the arguments are made
//! from the declared syntax, and must come to the same. Knows of commands only where the two differ, and why.

use tenon_client::{Resp, Value};
use tenon_testkit::oracle::oracle;
use tenon_testkit::patience::PATIENCE;
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

/// Commands whose arguments differ from those of redis-server 7.0, and why.
const DIFFERS: &[(&str, &str)] = &[
    ("acl|cat", "the category is called category, as the syntax has it"),
    ("bgsave", "CANCEL is of Valkey"),
    ("bitcount", "the end may be left out, as in Valkey"),
    ("bitop", "the operations are words of the command, as in Redis 7.2, and there are more of them"),
    ("client|kill", "MAXAGE is of a later version, and so are the filters of Valkey"),
    ("client|list", "ID and its numbers are one argument, not a block of one, and filters are of Valkey"),
    ("cluster|meet", "names are written with dashes, as in Redis 7.2"),
    ("command|getkeys", "Redis 7.0 names no argument"),
    ("command|getkeysandflags", "Redis 7.0 names no argument"),
    ("config|get", "a parameter is one argument, not a block of one"),
    ("debug", "Redis names no argument"),
    ("geoadd", "CH is called ch, as every other word"),
    ("geohash", "members may be left out, as in Redis 7.2"),
    ("geopos", "members may be left out, as in Redis 7.2"),
    ("georadius", "STORE and STOREDIST exclude one another, as in Redis 7.2"),
    ("georadiusbymember", "STORE and STOREDIST exclude one another, as in Redis 7.2"),
    ("geosearch", "BYPOLYGON is of a later version"),
    ("geosearchstore", "BYPOLYGON is of a later version"),
    ("hscan", "NOVALUES is of a later version"),
    ("lcs", "the length is called min-match-len, as in Redis 7.2"),
    ("lolwut", "Redis names no argument of a version's own"),
    (
        "migrate",
        "the empty string is called as it looks, and what stands in an optional choice is not optional once more",
    ),
    ("pfmerge", "sources may be left out, as in Redis 7.2"),
    ("psubscribe", "a pattern is one argument, not a block of one"),
    ("set", "conditions on the value are of a later version"),
    ("sort", "the patterns and the destination are numbered otherwise, and ALPHA is called alpha, as every other word"),
    ("sort_ro", "the patterns are numbered otherwise, and ALPHA is called alpha, as every other word"),
    ("xadd", "what becomes of references, and ids of producers, are of later versions"),
    ("xclaim", "the last id is called lastid, as in Redis 7.2"),
    ("xgroup|create", "a group is called group, as in Redis 7.2"),
    ("xgroup|createconsumer", "a group is called group, as in Redis 7.2"),
    ("xgroup|delconsumer", "a group is called group, as in Redis 7.2"),
    ("xgroup|destroy", "a group is called group, as in Redis 7.2"),
    ("xgroup|setid", "a group is called group, as in Redis 7.2"),
    ("xinfo|consumers", "a group is called group, as in Redis 7.2"),
    ("xinfo|stream", "FULL is a word beside COUNT, not a word before it"),
    ("xreadgroup", "CLAIM is of a later version"),
    ("xsetid", "names are written with dashes, as in Redis 7.2"),
    ("xtrim", "what becomes of references is of a later version"),
    ("zadd", "CH is called ch, as every other word"),
    ("zinter", "COUNT is of a later version"),
    ("zinterstore", "COUNT is of a later version"),
    ("zrank", "WITHSCORE is of a later version"),
    ("zrevrank", "WITHSCORE is of a later version"),
    ("zscan", "NOSCORES is of Valkey"),
    ("zunion", "COUNT is of a later version"),
    ("zunionstore", "COUNT is of a later version"),
];

/// Fields of a command that must be the same. The texts are those of later versions.
const FIELDS: [&str; 5] = ["since", "group", "doc_flags", "deprecated_since", "replaced_by"];

/// Where one of those differs, and why.
const FIELD_DIFFERS: &[(&str, &str, &str)] =
    &[("client|pause", "since", "as Redis 7.2 corrected it: 2.9.50 was no version that was released")];

fn field<'a>(map: &'a Value, wanted: &str) -> Option<&'a Value> {
    let items = match map {
        Value::Array(items) => items,
        other => panic!("{other:?} is no map of RESP2"),
    };
    items.chunks_exact(2).find(|pair| pair[0] == Value::Bulk(wanted.as_bytes().to_vec())).map(|pair| &pair[1])
}

fn list(value: Option<&Value>) -> &[Value] {
    match value {
        Some(Value::Array(items)) => items,
        Some(other) => panic!("{other:?} is no list"),
        None => &[],
    }
}

fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::Bulk(bytes) | Value::Simple(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        Some(Value::Int(number)) => number.to_string(),
        Some(other) => panic!("{other:?} is no text"),
        None => String::new(),
    }
}

/// An argument in a form that does not depend on what a block or a choice is called, nor on whether a block's word is
/// the block's or its first argument's.
fn shown(argument: &Value, token: Option<String>) -> String {
    let kind = text(field(argument, "type"));
    let mut token = token.unwrap_or_else(|| text(field(argument, "token")));
    let mut flags: Vec<String> = list(field(argument, "flags")).iter().map(|flag| text(Some(flag))).collect();
    flags.sort_unstable();
    let mut inner = Vec::new();
    for (index, argument) in list(field(argument, "arguments")).iter().enumerate() {
        let has_own = field(argument, "token").is_some();
        let moved = index == 0 && kind == "block" && !has_own && !token.is_empty();
        inner.push(shown(argument, moved.then(|| std::mem::take(&mut token))));
    }
    let name = if inner.is_empty() { text(field(argument, "name")) } else { String::new() };
    let row = text(field(argument, "key_spec_index"));
    format!("{kind} {token}:{name}{row} {flags:?} ({})", inner.join(", "))
}

fn arguments(docs: &Value) -> String {
    list(field(docs, "arguments")).iter().map(|argument| shown(argument, None)).collect::<Vec<_>>().join("; ")
}

fn docs(client: &mut Resp, name: &str) -> Option<Value> {
    let answer = client.call(&[b"COMMAND", b"DOCS", name.as_bytes()]).expect("an answer");
    let Value::Array(mut items) = answer else { panic!("COMMAND DOCS gives a map") };
    items.pop()
}

#[test]
fn arguments_are_documented_as_redis_documents_them() {
    let Some(redis) = oracle(Dialect::Redis, &[]) else { return };
    let tenon = Server::tenon(&[]).expect("tenon starts");
    let client = |server: &Server| {
        Resp::connect_to(server.address(Dialect::Redis).expect("a RESP port"), Some(PATIENCE)).expect("connected")
    };
    let (mut redis, mut tenon) = (client(&redis), client(&tenon));
    let mut problems = Vec::new();
    let mut compared = 0;
    for command in tenon_commands::ALL.iter().flat_map(|it| std::iter::once(it).chain(it.subcommands())) {
        let name = command.full_name();
        let Some(theirs) = docs(&mut redis, &name) else { continue };
        let ours = docs(&mut tenon, &name).expect("Tenon knows its commands");
        compared += 1;
        let [our_arguments, their_arguments] = [&ours, &theirs].map(arguments);
        let is_meant = DIFFERS.iter().any(|(known, _)| *known == name);
        if (our_arguments == their_arguments) == is_meant {
            problems.push(format!("{name}:\n  redis-server {their_arguments}\n  Tenon        {our_arguments}"));
        }
        for wanted in FIELDS {
            let [our_field, their_field] = [&ours, &theirs].map(|docs| format!("{:?}", field(docs, wanted)));
            let is_meant = FIELD_DIFFERS.iter().any(|(known, differs, _)| *known == name && *differs == wanted);
            if (our_field == their_field) == is_meant {
                problems.push(format!("{name}: {wanted}: redis-server {their_field}, Tenon {our_field}"));
            }
        }
    }
    assert!(compared > 250, "only {compared} commands are known to both");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
