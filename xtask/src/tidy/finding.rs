//! What a check reports. Knows nothing of the checks.

use std::fmt;

/// One breach of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, from the root.
    pub path: String,
    /// The line, counted from 1; 0 for the file as a whole.
    pub line: usize,
    /// What is wrong, what to write instead, and why.
    pub message: String,
}

impl Finding {
    /// A breach by the file as a whole.
    pub fn file(path: &str, message: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line: 0, message: message.into() }
    }

    /// A breach in one line, counted from 1.
    pub fn line(path: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}
