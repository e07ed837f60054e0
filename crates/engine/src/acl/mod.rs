//! Access control lists: users, what each may do, and who was refused. An index.

mod category;
mod check;
mod cram_md5;
mod databases;
mod denial;
mod error;
mod file;
mod log;
mod login;
mod manage;
mod merge;
mod password;
mod password_file;
mod rights;
mod selector;
mod user;

pub use category::{CATEGORIES, category};
pub use cram_md5::DIGEST_BYTES as CRAM_MD5_BYTES;
pub use databases::Databases;
pub use denial::{Context, Denial, Reason};
pub use error::RuleError;
pub use file::{FileError, user_line};
pub use log::{AclLog, LogEntry};
pub use manage::{Deletion, SetUserError};
pub use password::from_hex;
pub(crate) use password_file::PasswordFile;
pub use password_file::{Identity, PasswordForm};
pub use rights::{Rights, SanitizePayload};
pub use selector::Selector;
pub use user::{Acl, User};

/// The user that every client is before it says who it is.
pub const DEFAULT_USER: &[u8] = b"default";
