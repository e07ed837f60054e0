//! What clients asked, when, and what they were answered. Knows no server and no order.

use std::fmt;
use tenon_client::Value;

/// The words of a command, its name in upper case; a memcached verb is in lower case.
pub type Words = Vec<String>;

/// The words of a text, which are divided by blanks.
pub fn words(text: &str) -> Words {
    text.split(' ').map(str::to_owned).collect()
}

/// What happens at one moment, or so it should seem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// A command of RESP, or a request of memcached's that is on one key.
    Command(Words),
    /// What EXEC runs, with its replies.
    Exec(Vec<Words>),
    /// What a script calls, with the replies.
    Script {
        /// The commands that it calls.
        calls: Vec<Words>,
        /// Whether KEYS names its keys.
        declared: bool,
        /// How many turns of a loop it makes between its calls.
        idles: u32,
    },
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |calls: &[Words]| calls.iter().map(|words| words.join(" ")).collect::<Vec<_>>().join("; ");
        match self {
            Call::Command(words) => f.write_str(&words.join(" ")),
            Call::Exec(calls) => write!(f, "EXEC {{{}}}", joined(calls)),
            Call::Script { calls, declared, idles } => {
                let declared = if *declared { "" } else { ", undeclared" };
                write!(f, "EVAL (idles {idles}{declared}) {{{}}}", joined(calls))
            }
        }
    }
}

/// A call and what came of it. Times are in nanoseconds from any one moment.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Whose it is: an operation of a client comes behind those of the same one before it.
    pub client: usize,
    /// The database that the client has selected.
    pub database: usize,
    /// Before its first byte was sent.
    pub invoked_ns: u64,
    /// After the last byte of its reply had come.
    pub answered_ns: u64,
    /// What was asked.
    pub call: Call,
    /// What was answered, in its [`canonical`] form.
    pub reply: Value,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (self.invoked_ns as f64 / 1e3, self.answered_ns as f64 / 1e3);
        write!(f, "{from:11.1} {to:11.1} us  client {}  ", self.client)?;
        if self.database > 0 {
            write!(f, "[{}] ", self.database)?;
        }
        write!(f, "{}  ->  {}", self.call, show(&self.reply))
    }
}

/// A reply on one line; of a long array only the start.
pub fn show(value: &Value) -> String {
    match value {
        Value::Simple(text) => format!("+{}", text.escape_ascii()),
        Value::Error(text) => format!("-{}", text.escape_ascii()),
        Value::Int(number) => number.to_string(),
        Value::Bulk(text) if text.len() > 40 => format!("\"{}\"... ({})", text[..40].escape_ascii(), text.len()),
        Value::Bulk(text) => format!("\"{}\"", text.escape_ascii()),
        Value::NullBulk | Value::NullArray | Value::Null => "null".to_owned(),
        Value::Array(all) => {
            let shown: Vec<String> = all.iter().take(40).map(show).collect();
            let more = if all.len() > 40 { format!(" ... ({})", all.len()) } else { String::new() };
            format!("[{}{more}]", shown.join(" "))
        }
        other => format!("{other:?}"),
    }
}

/// A reply in the form in which it is compared: one kind of null, of an error only its first word, and sorted where the order
/// means nothing.
pub fn canonical(call: &Call, reply: Value) -> Value {
    match (call, reply) {
        (Call::Command(words), reply) => canonical_of_command(&words[0], reply),
        (Call::Exec(calls) | Call::Script { calls, .. }, Value::Array(replies)) => {
            let replies = replies.into_iter().enumerate();
            let name = |at: usize| calls.get(at).map_or("", |words: &Words| words[0].as_str());
            Value::Array(replies.map(|(at, reply)| canonical_of_command(name(at), reply)).collect())
        }
        (_, reply) => canonical_of_command("", reply),
    }
}

fn canonical_of_command(name: &str, reply: Value) -> Value {
    match reply {
        Value::NullArray | Value::Null => Value::NullBulk,
        Value::Error(text) => Value::Error(text.split(|&byte| byte == b' ').next().unwrap_or_default().to_vec()),
        Value::Array(all) => {
            let mut all: Vec<Value> = all.into_iter().map(|part| canonical_of_command("", part)).collect();
            match name {
                "SMEMBERS" | "SINTER" | "SUNION" | "SDIFF" => all.sort_by_cached_key(bytes),
                "HGETALL" => {
                    let mut pairs: Vec<&[Value]> = all.chunks(2).collect();
                    pairs.sort_by_cached_key(|pair| bytes(&pair[0]));
                    all = pairs.concat();
                }
                _ => {}
            }
            Value::Array(all)
        }
        other => other,
    }
}

fn bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::Bulk(bytes) => bytes.clone(),
        other => format!("{other:?}").into_bytes(),
    }
}
