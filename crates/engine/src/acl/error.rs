//! What can be wrong with a rule, in Redis's words. Knows no rule.

use std::fmt::{self, Display, Formatter};

/// Why a rule is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// It names no command or category.
    Unknown,
    /// It is no rule.
    Syntax,
    /// A key pattern beside all keys.
    BesideAllKeys,
    /// A channel pattern beside all channels.
    BesideAllChannels,
    /// The password to be removed is not there.
    NoSuchPassword,
    /// A hash that is none.
    NotAHash,
    /// A database's number that is negative or too large.
    DatabaseOutOfRange,
    /// A user that was defined before.
    Duplicate,
    /// A first argument of a subcommand.
    FirstArgumentOfSubcommand,
}

impl Display for RuleError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RuleError::Unknown => "Unknown command or category name in ACL",
            RuleError::Syntax => "Syntax error",
            RuleError::BesideAllKeys => {
                "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any \
                 effect. Try 'resetkeys' to start with an empty list of patterns"
            }
            RuleError::BesideAllChannels => {
                "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any \
                 effect. Try 'resetchannels' to start with an empty list of channels"
            }
            RuleError::NoSuchPassword => "The password you are trying to remove from the user does not exist",
            RuleError::NotAHash => {
                "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"
            }
            RuleError::DatabaseOutOfRange => "The provided database ID is out of range",
            RuleError::Duplicate => "Duplicate user found. A user can only be defined once in config files",
            RuleError::FirstArgumentOfSubcommand => "Allowing first-arg of a subcommand is not supported",
        })
    }
}

impl std::error::Error for RuleError {}
