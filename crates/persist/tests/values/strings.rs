//! Long strings: what is zeros in them takes next to nothing, in files and in payloads.

use super::content::{Content, LIMITS, content};
use tenon_ds::looks::Looks;
use tenon_persist::rdb::file::{Access, FileOptions, Form, OnModule, write_entry};
use tenon_persist::rdb::{Value, dump, load};
use tenon_store::entry::{Entry, Meta, NewValue};
use tenon_store::types::{Object, Rope};
use tenon_wire::rdb::Compression;

#[test]
fn long_strings_with_holes_take_little() {
    let mut rope = Rope::new();
    rope.write_at(20_000_000, b"word");
    rope.write_at(40_000_000, b"another");
    let text = rope.to_vec();
    let value = NewValue::Object(Box::new(Object::Rope(rope)));
    let entry = Entry::new(b"k", value, &Meta::default());
    let payload = dump(entry.view().value(), 0);
    for compression in [Compression::On, Compression::Off] {
        let options = FileOptions { form: Form::Rdb, compression, has_checksum: true };
        let mut written = Vec::new();
        write_entry(&mut written, &options, entry.view(), Access::Unsaid);
        let len = if compression == Compression::On { 1_500_000 } else { 41_000_000 };
        assert!(written.len() < len, "{} bytes", written.len());
    }
    assert!(payload.len() < 1_500_000, "{} bytes", payload.len());
    let loaded = load(&payload, *LIMITS, text.len(), OnModule::Refuse).expect("it is one");
    // A hole is one again, and was none in between.
    let Value::Rope(rope) = &loaded.value else { panic!("it is long") };
    assert!(rope.memory(Looks::ALL) < 2_000_000, "{} bytes", rope.memory(Looks::ALL));
    assert!(content(&loaded.value) == Content::String(text));
}
