//! What the server's process is to the system: in the background or not, whose it is, where its number stands. Knows no
//! setting.

use rustix::io::Errno;
use rustix::process::{Gid, Uid, geteuid, setsid};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};
use std::env;
use std::ffi::OsString;
use std::fmt::{self, Display, Formatter};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Said to the process in the background, so that it starts none itself.
const IN_BACKGROUND: &str = "TENON_IN_BACKGROUND";

/// Starts the same program with these arguments in the background; `false` in that program, which is to go on.
///
/// # Errors
/// When it cannot be started.
pub(crate) fn go_to_background(args: &[OsString]) -> Result<bool, String> {
    if env::var_os(IN_BACKGROUND).is_some() {
        // It fails for who leads a session already, and then nothing is to be done.
        let _ = setsid();
        return Ok(false);
    }
    let failed = |error| format!("cannot go to the background: {error}");
    let program = env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    command.args(args).env(IN_BACKGROUND, "1").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map_err(failed)?;
    Ok(true)
}

/// Why the process cannot be another user's. Holds the user's name, and the system's reason.
#[derive(Debug)]
pub(crate) enum CannotBecome {
    NoSuchUser(String),
    NotAllowed(String, Errno),
}

impl Display for CannotBecome {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchUser(name) => write!(f, "can't find the user {name} to switch to"),
            Self::NotAllowed(name, error) => write!(f, "failed to assume identity of user {name}: {error}"),
        }
    }
}

/// Becomes the user of this name, with its group and no other, if root has started the server. To be called while there is
/// one thread: threads that it starts later are that user's, too.
///
/// # Errors
/// When there is no such user, or when the system does not let it.
pub(crate) fn become_user(name: &str) -> Result<(), CannotBecome> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let (uid, gid) = find_user(&users, name).ok_or_else(|| CannotBecome::NoSuchUser(name.to_owned()))?;
    if uid == 0 {
        return Ok(());
    }
    let become_it = || {
        set_thread_groups(&[])?;
        set_thread_gid(Gid::from_raw(gid))?;
        set_thread_uid(Uid::from_raw(uid))
    };
    become_it().map_err(|error| CannotBecome::NotAllowed(name.to_owned(), error))
}

/// The numbers of a user and of its group, from lines `name:password:user:group:...`.
fn find_user(users: &str, name: &str) -> Option<(u32, u32)> {
    let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut numbers = line.split(':').skip(2).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// A file with the number of the process, there as long as this is.
#[derive(Debug)]
pub(crate) struct PidFile(PathBuf);

impl PidFile {
    /// Writes it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write(path: &Path) -> std::io::Result<PidFile> {
        fs::write(path, format!("{}\n", std::process::id()))?;
        Ok(PidFile(path.to_owned()))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!("the file '{}' stays behind: {error}", self.0.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::find_user;

    #[test]
    fn users_are_found_by_their_whole_names() {
        let users =
            "root:x:0:0:root:/root:/bin/bash\nmemcache:x:107:113:Memcached,,,:/nonexistent:/bin/false\nbad:x:y:z\n";
        assert_eq!(find_user(users, "memcache"), Some((107, 113)));
        assert_eq!(find_user(users, "root"), Some((0, 0)));
        for none in ["mem", "", "memcached", "bad", "x"] {
            assert_eq!(find_user(users, none), None, "{none}");
        }
    }
}
