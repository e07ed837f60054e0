//! The errors of commands and their texts, which clients know word for word from Redis.

use crate::scripting::Kind;
use std::borrow::Cow;
use std::fmt;

/// The longest code that Redis looks for, in bytes.
const CODE_LEN_MAX: usize = 30;

/// Why a command was refused or failed. The text begins with the error's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CmdError {
    /// The key holds another type.
    WrongType,
    /// The options make no sense together.
    Syntax,
    /// A number was expected, in the range of i64.
    NotInteger,
    /// A floating-point number was expected.
    NotFloat,
    /// The sum does not fit i64.
    Overflow,
    /// The sum is infinite or not a number.
    NotFinite,
    /// An index or count is out of its range.
    OutOfRange,
    /// The value must be positive.
    MustBePositive,
    /// The string would grow past `proto-max-bulk-len`.
    StringTooLong,
    /// The expiry is not a time that can be reached.
    InvalidExpire(&'static str),
    /// There is no such key.
    NoSuchKey,
    /// Source and destination are the same.
    SameObject,
    /// The database index is out of range.
    DbIndex,
    /// The wrong number of arguments, for the command of this name in lower case.
    Arity(String),
    /// There is no such subcommand.
    UnknownSubcommand {
        /// What was asked for.
        subcommand: String,
        /// Of which container, as it was called.
        container: String,
    },
    /// Memory is used up, and nothing can be evicted.
    OutOfMemory,
    /// The client must authenticate first.
    NoAuth,
    /// Not within MULTI.
    NotInMulti,
    /// A script of this kind runs for too long.
    Busy(Kind),
    /// Data is being loaded.
    Loading,
    /// A RESP2 client that is subscribed may not run the command of this name in lower case.
    OnlyListens(String),
    /// The command is to run again later: nobody is told.
    Later,
    /// Any other; the code is part of the text.
    Text(Cow<'static, str>),
}

impl CmdError {
    /// An error with a fixed text that begins with its code.
    pub const fn text(text: &'static str) -> CmdError {
        CmdError::Text(Cow::Borrowed(text))
    }

    /// An error with a composed text that begins with its code.
    pub fn new(text: String) -> CmdError {
        CmdError::Text(Cow::Owned(text))
    }

    /// The code: the text's first word, `ERR` where none is short enough to be one, as in Redis. Scripts may have written it: what
    /// has a meaning in INFO is not in it.
    pub fn code(&self) -> String {
        let text = self.to_string();
        // A reply has blanks in place of line ends.
        let code = text.split_once([' ', '\r', '\n']).map(|(code, _)| code);
        let code = code.filter(|code| (1..=CODE_LEN_MAX).contains(&code.len()));
        code.unwrap_or("ERR").replace(['#', ':'], "_")
    }
}

impl fmt::Display for CmdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CmdError::WrongType => "WRONGTYPE Operation against a key holding the wrong kind of value",
            CmdError::Syntax => "ERR syntax error",
            CmdError::NotInteger => "ERR value is not an integer or out of range",
            CmdError::NotFloat => "ERR value is not a valid float",
            CmdError::Overflow => "ERR increment or decrement would overflow",
            CmdError::NotFinite => "ERR increment would produce NaN or Infinity",
            CmdError::OutOfRange => "ERR index out of range",
            CmdError::MustBePositive => "ERR value is out of range, must be positive",
            CmdError::StringTooLong => "ERR string exceeds maximum allowed size (proto-max-bulk-len)",
            CmdError::InvalidExpire(command) => return write!(f, "ERR invalid expire time in '{command}' command"),
            CmdError::NoSuchKey => "ERR no such key",
            CmdError::SameObject => "ERR source and destination objects are the same",
            CmdError::DbIndex => "ERR DB index is out of range",
            CmdError::Arity(name) => return write!(f, "ERR wrong number of arguments for '{name}' command"),
            CmdError::UnknownSubcommand { subcommand, container } => {
                let shown: String = subcommand.chars().take(128).collect();
                return write!(f, "ERR unknown subcommand '{shown}'. Try {} HELP.", container.to_ascii_uppercase());
            }
            CmdError::OutOfMemory => "OOM command not allowed when used memory > 'maxmemory'.",
            CmdError::NoAuth => "NOAUTH Authentication required.",
            CmdError::Busy(Kind::Script) => {
                "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
            }
            CmdError::Busy(Kind::Function) => {
                "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
            }
            CmdError::Loading => "LOADING Redis is loading the dataset in memory",
            CmdError::NotInMulti => "ERR Command not allowed inside a transaction",
            CmdError::OnlyListens(name) => {
                return write!(
                    f,
                    "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are \
                     allowed in this context"
                );
            }
            CmdError::Later => "ERR the key is being written to disk, try again",
            CmdError::Text(text) => text,
        })
    }
}

impl std::error::Error for CmdError {}

/// The first of 256 private characters; each stands for a byte of a text that is no UTF-8.
const BYTE_FIRST: u32 = 0x10_ff00;

/// What a client has sent, as part of an error's text: up to the first NUL, where C's `printf` ends.
pub fn shown(bytes: &[u8]) -> String {
    exact(bytes.split(|&byte| byte == 0).next().unwrap_or_default())
}

/// Any bytes as part of an error's text. Those that are no UTF-8 are kept by private characters: see [`text_bytes`].
pub fn exact(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let push_bytes = |text: &mut String, bytes: &[u8]| {
        text.extend(bytes.iter().map(|&byte| char::from_u32(BYTE_FIRST + u32::from(byte)).expect("it is a character")));
    };
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                _ if u32::from(character) >= BYTE_FIRST => push_bytes(&mut text, character.to_string().as_bytes()),
                _ => text.push(character),
            }
        }
        push_bytes(&mut text, chunk.invalid());
    }
    text
}

/// An error's text as it is sent: with the bytes that [`exact`] has kept.
pub fn text_bytes(text: &str) -> Cow<'_, [u8]> {
    if !text.contains(|character| u32::from(character) >= BYTE_FIRST) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    for character in text.chars() {
        match u32::from(character).checked_sub(BYTE_FIRST) {
            Some(byte) => bytes.push(byte as u8),
            None => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_are_told_as_they_came() {
        for bytes in [&b"plain"[..], b"\xff\x80a", b"\xc3\xa9", b"\xc3", "\u{10ffff}\u{10ff00}\u{10feff}".as_bytes()] {
            assert_eq!(*text_bytes(&exact(bytes)), *bytes);
        }
        assert_eq!(shown(b"a\0b"), "a");
    }

    #[test]
    fn codes_are_first_words() {
        assert_eq!(CmdError::WrongType.code(), "WRONGTYPE");
        assert_eq!(CmdError::text("EXECABORT no").code(), "EXECABORT");
        assert_eq!(CmdError::text("QQ").code(), "ERR");
        assert_eq!(CmdError::text("A#B:C\r\nrole:slave\r\n no").code(), "A_B_C");
        assert_eq!(CmdError::text("\nrole:slave no").code(), "ERR");
        assert_eq!(CmdError::new(format!("{} no", "Q".repeat(31))).code(), "ERR");
        assert_eq!(
            CmdError::UnknownSubcommand { subcommand: "x".into(), container: "client".into() }.to_string(),
            "ERR unknown subcommand 'x'. Try CLIENT HELP."
        );
    }
}
