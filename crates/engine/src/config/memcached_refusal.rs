//! Arguments that memcached does not start with, in its words and with its exit code. It knows neither the options nor what
//! Tenon does with them.

use std::fmt::{self, Display, Formatter};

use super::error::LoadProblem;

/// Why memcached does not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemcachedRefusal {
    /// `-t`.
    Threads,
    /// `-c`.
    Connections,
    /// `-R`.
    Requests,
    /// `-f`.
    Factor,
    /// `-n`.
    Chunk,
    /// `-D`.
    Delimiter,
    /// `-p`: the number.
    Port(i64),
    /// `-B`: the name.
    Protocol(String),
}

impl Display for MemcachedRefusal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threads => f.write_str("Number of threads must be greater than 0"),
            Self::Connections => f.write_str("Maximum connections must be greater than 0"),
            Self::Requests => f.write_str("Number of requests per event must be greater than 0"),
            Self::Factor => f.write_str("Factor must be greater than 1"),
            Self::Chunk => f.write_str("Chunk size must be greater than 0"),
            Self::Delimiter => f.write_str("No delimiter specified"),
            Self::Port(port) => write!(f, "ERROR: Invalid port number {port}."),
            Self::Protocol(name) => {
                write!(f, "Invalid value for binding protocol: {name}\n -- should be one of auto, binary, or ascii")
            }
        }
    }
}

impl MemcachedRefusal {
    /// What memcached ends with: `EX_USAGE` for some of them.
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Self::Port(_) | Self::Protocol(_) => 64,
            Self::Threads | Self::Connections | Self::Requests | Self::Factor | Self::Chunk | Self::Delimiter => 1,
        }
    }
}

impl From<MemcachedRefusal> for LoadProblem {
    fn from(refusal: MemcachedRefusal) -> LoadProblem {
        LoadProblem::MemcachedRefusal(refusal)
    }
}

/// The number that a word begins with, 0 where there is none: as C's `atoi` reads it, but for what it cuts down to 32 bits.
pub(super) fn integer(word: &str) -> i64 {
    let word = word.trim_ascii_start();
    let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
    let end = digits.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    let number = digits[..end]
        .bytes()
        .fold(0_i64, |number, digit| number.saturating_mul(10).saturating_add(i64::from(digit - b'0')));
    if word.starts_with('-') { -number } else { number }
}

/// The number that a word begins with, as C's `atof` reads it.
pub(super) fn float(word: &str) -> f64 {
    let word = word.trim_ascii_start();
    (1..=word.len()).rev().find_map(|end| word.get(..end)?.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        for (word, number) in [
            ("12", 12),
            (" -12x", -12),
            ("+3", 3),
            ("", 0),
            ("x", 0),
            ("-", 0),
            ("1.5", 1),
            ("4294967296", 4_294_967_296),
            ("99999999999999999999", i64::MAX),
        ] {
            assert_eq!(integer(word), number, "{word}");
        }
        for (word, number) in [("1.25", 1.25), ("0.5x", 0.5), ("x", 0.0), ("", 0.0), (" 2", 2.0), ("1e1", 10.0)] {
            assert_eq!(float(word), number, "{word}");
        }
    }
}
