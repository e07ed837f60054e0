//! Conditions on a string's present value: IFEQ, IFNE, IFDEQ and IFDNE. Knows no command.

use tenon_engine::errors::CmdError;
use tenon_engine::store::entry::ValueRef;
use tenon_engine::string;
use xxhash_rust::xxh3::Xxh3;

/// What a condition compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// IFEQ: the value is these bytes.
    Equal,
    /// IFNE: it is not.
    NotEqual,
    /// IFDEQ: the value's digest is this one.
    DigestEqual,
    /// IFDNE: it is not.
    DigestNotEqual,
}

/// A condition on a string's present value.
#[derive(Clone, Copy, Debug)]
pub struct Condition<'a> {
    comparison: Comparison,
    operand: &'a [u8],
}

impl Comparison {
    /// The comparison of this name, in any case.
    pub fn named(word: &[u8]) -> Option<Comparison> {
        const NAMES: [(&[u8], Comparison); 4] = [
            (b"IFEQ", Comparison::Equal),
            (b"IFNE", Comparison::NotEqual),
            (b"IFDEQ", Comparison::DigestEqual),
            (b"IFDNE", Comparison::DigestNotEqual),
        ];
        NAMES.iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|&(_, comparison)| comparison)
    }
}

impl<'a> Condition<'a> {
    /// A condition.
    pub fn new(comparison: Comparison, operand: &'a [u8]) -> Condition<'a> {
        Condition { comparison, operand }
    }

    /// What it compares.
    pub fn comparison(&self) -> Comparison {
        self.comparison
    }

    /// Whether it holds; a key that is not there equals nothing.
    ///
    /// # Errors
    /// When a value is to be compared with a digest that has not the length of one. As in Redis any 16 bytes will do: those
    /// that are no digest are no string's; and where there is no value, nobody looks at the digest.
    pub fn holds(&self, value: Option<ValueRef<'_>>) -> Result<bool, CmdError> {
        let is_equal = match (self.comparison, value) {
            (_, None) => false,
            (Comparison::Equal | Comparison::NotEqual, Some(value)) => string::equals(value, self.operand),
            (Comparison::DigestEqual | Comparison::DigestNotEqual, Some(value)) => self.is_digest_of(value)?,
        };
        Ok(match self.comparison {
            Comparison::Equal | Comparison::DigestEqual => is_equal,
            Comparison::NotEqual | Comparison::DigestNotEqual => !is_equal,
        })
    }

    fn is_digest_of(&self, value: ValueRef<'_>) -> Result<bool, CmdError> {
        if self.operand.len() != DIGEST_LEN {
            return Err(CmdError::text("ERR must be exactly 16 hexadecimal characters"));
        }
        Ok(self.operand.eq_ignore_ascii_case(digest(value).as_bytes()))
    }
}

/// Length of a digest's text, in bytes.
const DIGEST_LEN: usize = 16;

/// The digest of a string: 16 hexadecimal digits of its XXH3 hash of 64 bits.
pub fn digest(value: ValueRef<'_>) -> String {
    let mut hash = Xxh3::new();
    string::for_each_slice(value, |slice| hash.update(slice));
    format!("{:016x}", hash.digest())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_engine::store::types::{CHUNK_LEN, Object, Rope};

    #[test]
    fn digests_are_those_of_redis() {
        // From the documentation of DIGEST, and from clients' tests against Redis 8.4.
        for (value, expected) in [
            (&b"Hello world"[..], "b6acb9d84a38ff74"),
            (b"hello", "9555e8555c62dcfd"),
            (b"", "2d06800538d394c2"),
            (b"123", "404a763b3f4c8c9a"),
            (b"v8", "0cc76dbb41381419"),
        ] {
            assert_eq!(digest(ValueRef::Bytes(value)), expected);
        }
        assert_eq!(digest(ValueRef::Int(123)), "404a763b3f4c8c9a");
        let long = vec![b'x'; 2 * CHUNK_LEN + 5];
        let rope = Object::Rope(Rope::from(&long[..]));
        assert_eq!(digest(ValueRef::Object(&rope)), digest(ValueRef::Bytes(&long)));
    }

    #[test]
    fn a_missing_key_equals_nothing() {
        let hello = ValueRef::Bytes(b"hello");
        for (word, operand, missing, same) in [
            ("IFEQ", "hello", false, true),
            ("ifne", "hello", true, false),
            ("IfDeQ", "9555E8555C62DCFD", false, true),
            ("IFDNE", "9555e8555c62dcfd", true, false),
            ("IFDEQ", "zzzzzzzzzzzzzzzz", false, false),
            ("IFDNE", "zzzzzzzzzzzzzzzz", true, true),
        ] {
            let comparison = Comparison::named(word.as_bytes()).unwrap();
            let condition = Condition::new(comparison, operand.as_bytes());
            let holds = [None, Some(hello)].map(|value| condition.holds(value).unwrap());
            assert_eq!(holds, [missing, same], "{word} {operand}");
        }
        assert_eq!(Comparison::named(b"IFE"), None);
        for (comparison, missing) in [(Comparison::DigestEqual, false), (Comparison::DigestNotEqual, true)] {
            let condition = Condition::new(comparison, b"123");
            assert_eq!(condition.holds(None), Ok(missing));
            assert!(condition.holds(Some(hello)).is_err());
        }
    }
}
