//! What is refused to a user, and the words for it. Knows no rule.

use crate::command::Command;

/// Why a command is refused. The order is that in which Redis prefers to name one, if several parts of a user's rights
/// refuse a command for different reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Denial {
    /// The selected database, or all there are; or the one at this argument.
    Database(Option<usize>),
    /// The command.
    Command,
    /// The key at this argument.
    Key(usize),
    /// The channel at this argument.
    Channel(usize),
}

impl Denial {
    /// What the client is told, without the error's code.
    pub fn message(self, command: &Command) -> String {
        match self {
            Denial::Database(_) => "No permissions to access database".to_owned(),
            Denial::Command => {
                format!("this user has no permissions to run the '{}' command", command.full_name())
            }
            Denial::Key(_) => "this user has no permissions to access one of the keys used as arguments".to_owned(),
            Denial::Channel(_) => {
                "this user has no permissions to access one of the channels used as arguments".to_owned()
            }
        }
    }

    /// What ACL DRYRUN answers of a user; `object` is the argument that it is about.
    pub fn explanation(self, user: &[u8], command: &Command, object: &[u8]) -> Vec<u8> {
        let (start, named, end) = match self {
            Denial::Database(_) => {
                return [b"User ", user, b" has no permissions to access database ", object].concat();
            }
            Denial::Command => ("run", command.full_name().into_bytes(), "command"),
            Denial::Key(_) => ("access", object.to_vec(), "key"),
            Denial::Channel(_) => ("access", object.to_vec(), "channel"),
        };
        let mut text = format!("This user has no permissions to {start} the '").into_bytes();
        text.extend(named);
        text.extend_from_slice(format!("' {end}").as_bytes());
        text
    }

    /// What a script is told whose user may not do what it calls.
    pub fn message_in_script(self) -> &'static str {
        match self {
            Denial::Database(_) => "ERR ACL failure in script: No permissions to access database",
            Denial::Command => "ERR The user executing the script can't run this command or subcommand",
            Denial::Key(_) => {
                "ERR The user executing the script can't access at least one of the keys mentioned in the command \
                 arguments"
            }
            Denial::Channel(_) => {
                "ERR The user executing the script can't publish to the channel mentioned in the command"
            }
        }
    }

    /// What EXEC answers in the place of a command that was allowed when it was queued.
    pub fn message_in_exec(self) -> String {
        let reason = match self {
            Denial::Database(_) => "no permission",
            Denial::Command => "no permission to execute the command or subcommand",
            Denial::Key(_) => "no permission to touch the specified keys",
            Denial::Channel(_) => "no permission to access one of the channels used as arguments to the command",
        };
        format!(
            "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This \
             command is no longer allowed for the following reason: {reason}"
        )
    }

    /// The same for the log.
    pub fn reason(self) -> Reason {
        match self {
            Denial::Database(_) => Reason::Database,
            Denial::Command => Reason::Command,
            Denial::Key(_) => Reason::Key,
            Denial::Channel(_) => Reason::Channel,
        }
    }

    /// Which argument it is about.
    pub fn argument(self) -> usize {
        match self {
            Denial::Command | Denial::Database(None) => 0,
            Denial::Key(index) | Denial::Channel(index) | Denial::Database(Some(index)) => index,
        }
    }
}

/// Why something is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A command was refused.
    Command,
    /// A key was refused.
    Key,
    /// A channel was refused.
    Channel,
    /// A client did not get in.
    Auth,
    /// A database was refused.
    Database,
}

impl Reason {
    /// Every reason, by index.
    pub const ALL: [Reason; 5] = [Reason::Command, Reason::Key, Reason::Channel, Reason::Auth, Reason::Database];

    /// The word that ACL LOG gives.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Command => "command",
            Reason::Key => "key",
            Reason::Channel => "channel",
            Reason::Auth => "auth",
            Reason::Database => "database",
        }
    }
}

/// From where a refused command came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// From the client itself.
    TopLevel,
    /// From a transaction, as it was gathered or ran.
    Multi,
    /// From a script.
    Lua,
}

impl Context {
    /// The word that ACL LOG gives.
    pub fn name(self) -> &'static str {
        match self {
            Context::TopLevel => "toplevel",
            Context::Multi => "multi",
            Context::Lua => "lua",
        }
    }
}
