//! What BY and GET name: for each element a key, a field of a hash, or the element itself. Knows no data.

use memchr::memchr;
use memchr::memmem;

/// Keys that have an element between these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KeyPattern<'a> {
    before: &'a [u8],
    behind: &'a [u8],
}

impl KeyPattern<'_> {
    /// The key that is named for an element, written into `room`.
    pub(super) fn key<'r>(&self, element: &[u8], room: &'r mut Vec<u8>) -> &'r [u8] {
        room.clear();
        [self.before, element, self.behind].iter().for_each(|part| room.extend_from_slice(part));
        room
    }
}

/// What a pattern names for an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern<'a> {
    /// `#`: the element.
    Element,
    /// The string under such a key, or the field of the hash there.
    Key { keys: KeyPattern<'a>, field: Option<&'a [u8]> },
    /// There is no asterisk: nothing, whatever the element.
    Nothing,
}

impl<'a> Pattern<'a> {
    pub(super) fn of(text: &'a [u8]) -> Pattern<'a> {
        if text == b"#" {
            return Pattern::Element;
        }
        let Some(asterisk) = memchr(b'*', text) else { return Pattern::Nothing };
        let (before, rest) = (&text[..asterisk], &text[asterisk + 1..]);
        // An arrow with nothing behind it is part of the key.
        let arrow = memmem::find(rest, b"->").filter(|at| at + 2 < rest.len());
        let (behind, field) = match arrow {
            Some(at) => (&rest[..at], Some(&rest[at + 2..])),
            None => (rest, None),
        };
        Pattern::Key { keys: KeyPattern { before, behind }, field }
    }

    /// What it names for an element where that needs no key, if it names anything.
    pub(super) fn of_itself<'e>(&self, element: &'e [u8]) -> Option<&'e [u8]> {
        (*self == Pattern::Element).then_some(element)
    }

    /// The keys that it names, if it names any.
    pub(super) fn keys(&self) -> Option<KeyPattern<'a>> {
        if let Pattern::Key { keys, .. } = self { Some(*keys) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_asterisk_is_the_element() {
        let key = |text: &str, element: &str| {
            let mut room = Vec::new();
            let pattern = Pattern::of(text.as_bytes());
            let field = if let Pattern::Key { field, .. } = pattern { field } else { None };
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            pattern.keys().map(|keys| (text(keys.key(element.as_bytes(), &mut room)), field.map(text)))
        };
        let named = |key: &str, field: Option<&str>| Some((key.to_owned(), field.map(str::to_owned)));
        assert_eq!(key("weight_*", "7"), named("weight_7", None));
        assert_eq!(key("*", ""), named("", None));
        assert_eq!(key("a*b*c", "7"), named("a7b*c", None));
        assert_eq!(key("w:*->f", "7"), named("w:7", Some("f")));
        assert_eq!(key("w:*:x->f->g", "7"), named("w:7:x", Some("f->g")));
        assert_eq!(key("w:*->", "7"), named("w:7->", None));
        assert_eq!(key("a->b*", "7"), named("a->b7", None));
        assert_eq!(key("*->f*", "7"), named("7", Some("f*")));
        assert_eq!((key("plain", "7"), key("#", "7"), key("", "7")), (None, None, None));
        assert_eq!(Pattern::of(b"#"), Pattern::Element);
        assert_eq!(key("#*", "x"), named("#x", None));
    }
}
