//! An entry on its way to another key or database. Knows no command.

use tenon_engine::context::KeyCx;
use tenon_engine::store::entry::{Entry, NewValue, ValueRef};

/// Stores an entry that was taken out elsewhere as the value of this key; objects move, they are not copied.
pub(super) fn put(cx: &mut KeyCx<'_>, entry: Entry) {
    let view = entry.view();
    let meta = view.meta();
    match view.value() {
        ValueRef::Bytes(bytes) => {
            cx.store_moved(NewValue::Bytes(bytes), &meta);
            if view.is_raw()
                && let Some(slot) = cx.find()
            {
                cx.mark_raw(slot);
            }
        }
        ValueRef::Int(int) => cx.store_moved(NewValue::Int(int), &meta),
        ValueRef::Packed(form, bytes) => cx.store_moved(NewValue::Packed(form, bytes), &meta),
        ValueRef::Object(_) => {
            let object = entry.into_object().expect("the value is an object");
            cx.store_moved(NewValue::Object(object), &meta);
        }
    }
}
