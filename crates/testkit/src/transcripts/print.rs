//! Replies and lines in the notation of transcripts. The reverse of the pattern's parser; knows not how they are compared.

use super::escape::{escape, escape_line};
use tenon_client::Value;

/// An aggregate that fits into this many characters is written on one line.
const ONE_LINE_MAX: usize = 100;

/// Writes a line of the memcached protocol as an expectation.
pub fn line(bytes: &[u8]) -> String {
    if bytes.is_empty() { "<".to_owned() } else { format!("< {}", escape_line(bytes).replace('<', "\\<")) }
}

/// Writes a reply as an expectation, over several lines where it is long.
pub fn reply(value: &Value) -> String {
    match value {
        Value::Simple(text) => format!("+{}", full_line(text)),
        Value::Error(text) => format!("-{}", full_line(text)),
        other => nested(other, 0),
    }
}

/// A simple string or an error that has its line for itself.
fn full_line(text: &[u8]) -> String {
    let escaped = escape_line(text).replace("\\\"", "\"");
    // A quote at the front would read as the quoted form.
    if escaped.starts_with('"') { format!("\"{}\"", escape(text)) } else { escaped }
}

fn nested(value: &Value, depth: usize) -> String {
    match value {
        Value::Simple(text) => format!("+{}", bare(text)),
        Value::Error(text) => format!("-{}", bare(text)),
        Value::Int(number) => format!(":{number}"),
        Value::Bulk(bytes) => format!("\"{}\"", escape(bytes)),
        Value::NullBulk => "nil".to_owned(),
        Value::NullArray => "nil-array".to_owned(),
        Value::Null => "null".to_owned(),
        Value::Boolean(truth) => truth.to_string(),
        Value::Double(number) => format!("double {number:?}"),
        Value::BigNumber(digits) => format!("big {}", escape(digits)),
        Value::Verbatim { format, text } => format!("verbatim {} \"{}\"", escape(format), escape(text)),
        Value::Array(elements) => list("[", elements.iter().map(|one| nested(one, depth + 1)), "]", depth),
        Value::Set(elements) => list("set [", elements.iter().map(|one| nested(one, depth + 1)), "]", depth),
        Value::Push(elements) => list("push [", elements.iter().map(|one| nested(one, depth + 1)), "]", depth),
        Value::Map(pairs) => map("{", pairs, depth),
        Value::Attribute(pairs, value) => format!("{} {}", map("attribute {", pairs, depth), nested(value, depth)),
    }
}

fn map(open: &str, pairs: &[(Value, Value)], depth: usize) -> String {
    let pairs = pairs.iter().map(|(key, one)| format!("{} => {}", nested(key, depth + 1), nested(one, depth + 1)));
    list(open, pairs, "}", depth)
}

/// A simple string or an error among others.
fn bare(text: &[u8]) -> String {
    let escaped = escape_line(text);
    if escaped.is_empty() || escaped.contains(['"', ',', ']', '}', '=']) {
        format!("\"{}\"", escape(text))
    } else {
        escaped
    }
}

fn list(open: &str, elements: impl Iterator<Item = String>, close: &str, depth: usize) -> String {
    let elements: Vec<String> = elements.collect();
    let length = elements.iter().map(|one| one.len() + 2).sum::<usize>();
    if length <= ONE_LINE_MAX && !elements.iter().any(|one| one.contains('\n')) {
        return format!("{open}{}{close}", elements.join(", "));
    }
    let mut text = format!("{open}\n");
    for one in elements {
        text.push_str(&"  ".repeat(depth + 1));
        text.push_str(&one);
        text.push('\n');
    }
    text.push_str(&"  ".repeat(depth));
    text.push_str(close);
    text
}
