//! Lua values to replies, as Redis converts a script's result. Knows no command.

use crate::arguments::truncate;
use crate::interpreter::{Failure, described};
use mlua::{Table, Value};
use tenon_wire::resp::{Proto, Reply};

/// How deep lists may lie in each other: as far as Redis's stack reaches, at two slots a level.
const DEPTH_MAX: usize = 4_000;

/// An aggregate whose elements are being written.
enum Open {
    /// A list, and the index of its next element.
    List { table: Table, next: i64, len: i64 },
    /// The values of a map, each with its key before it, or the members of a set alone; the last comes first.
    Rest(Vec<Value>),
}

/// Writes a script's result; gives the errors in it. `chosen` is the version that the script has set: in RESP2 truth is 1
/// and falsehood null.
///
/// Deep values are walked with a list of what is open and not by recursion: a script decides how deep they are.
pub(crate) fn write(value: &Value, reply: &mut Reply<'_>, chosen: Proto) -> Vec<Failure> {
    let mut writer = Writer { chosen, open: Vec::new(), errors: Vec::new() };
    writer.write_one(value, reply);
    while let Some(innermost) = writer.open.last_mut() {
        let next = match innermost {
            Open::List { table, next, len } if *next <= *len => {
                let value = table.raw_get::<Value>(*next).unwrap_or(Value::Nil);
                *next += 1;
                Some(value)
            }
            Open::List { .. } => None,
            Open::Rest(values) => values.pop(),
        };
        match next {
            Some(value) => writer.write_one(&value, reply),
            None => drop(writer.open.pop()),
        }
    }
    writer.errors
}

/// A line as C has it: it ends at the first NUL.
fn until_nul(text: &[u8]) -> &[u8] {
    text.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// How far the writing of a result has come.
struct Writer {
    chosen: Proto,
    open: Vec<Open>,
    errors: Vec<Failure>,
}

impl Writer {
    fn write_one(&mut self, value: &Value, reply: &mut Reply<'_>) {
        if self.open.len() >= DEPTH_MAX {
            return reply.error("ERR reached lua stack limit");
        }
        match value {
            Value::String(text) => reply.bulk(&text.as_bytes()),
            Value::Integer(number) => reply.int(*number),
            Value::Number(number) => reply.int(truncate(*number)),
            Value::Boolean(truth) if self.chosen == Proto::Resp2 => {
                if *truth {
                    reply.int(1);
                } else {
                    reply.null();
                }
            }
            Value::Boolean(truth) => reply.boolean(*truth),
            Value::Table(table) => self.write_table(table, reply),
            _ => reply.null(),
        }
    }

    fn write_table(&mut self, table: &Table, reply: &mut Reply<'_>) {
        let field = |name: &str| table.raw_get::<Value>(name).unwrap_or(Value::Nil);
        if let Value::String(_) = field("err") {
            let error = described(table);
            reply.error(until_nul(&error.text));
            return self.errors.push(error);
        }
        if let Value::String(text) = field("ok") {
            let line: Vec<u8> = until_nul(&text.as_bytes())
                .iter()
                .map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte })
                .collect();
            reply.raw(b"+");
            reply.raw(&line);
            return reply.raw(b"\r\n");
        }
        match field("double") {
            Value::Integer(number) => return reply.double(number as f64),
            Value::Number(number) => return reply.double(number),
            _ => {}
        }
        if let Value::Table(map) = field("map") {
            let mut rest = Vec::new();
            for pair in map.pairs::<Value, Value>() {
                let Ok((key, value)) = pair else { break };
                rest.push(key);
                rest.push(value);
            }
            reply.map(rest.len() / 2);
            rest.reverse();
            return self.open.push(Open::Rest(rest));
        }
        if let Value::Table(set) = field("set") {
            let mut rest: Vec<Value> =
                set.pairs::<Value, Value>().map_while(Result::ok).map(|(member, _)| member).collect();
            reply.set(rest.len());
            rest.reverse();
            return self.open.push(Open::Rest(rest));
        }
        if let Value::String(digits) = field("big_number") {
            let line: Vec<u8> =
                digits.as_bytes().iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }).collect();
            return match reply.proto() {
                Proto::Resp2 => reply.bulk(&line),
                Proto::Resp3 => {
                    reply.raw(b"(");
                    reply.raw(&line);
                    reply.raw(b"\r\n");
                }
            };
        }
        if let Value::Table(verbatim) = field("verbatim_string")
            && let Ok(Value::String(format)) = verbatim.raw_get::<Value>("format")
            && let Ok(Value::String(text)) = verbatim.raw_get::<Value>("string")
        {
            let mut three = [b' '; 3];
            for (to, from) in three.iter_mut().zip(format.as_bytes().iter()) {
                *to = *from;
            }
            return reply.verbatim(&three, &text.as_bytes());
        }
        // A list ends before its first nil.
        let mut len = 0;
        while !table.raw_get::<Value>(len + 1).unwrap_or(Value::Nil).is_nil() {
            len += 1;
        }
        reply.array(len as usize);
        self.open.push(Open::List { table: table.clone(), next: 1, len });
    }
}
