//! What INFO says of a server. Knows none of its fields.

use tenon_client::{Resp, Value};

/// A field of a section of INFO.
///
/// # Panics
/// When the server does not answer, or has no such field.
pub fn field(client: &mut Resp, section: &str, name: &str) -> String {
    let answer = client.call(&[b"INFO", section.as_bytes()]).expect("a reply");
    let Value::Bulk(info) = answer else { panic!("INFO is a text, not {answer:?}") };
    let info = String::from_utf8(info).expect("it is text");
    let found = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    found.unwrap_or_else(|| panic!("INFO has no {name}: {info}")).to_owned()
}
