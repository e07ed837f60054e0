//! Ends a server, and deletes the files of all, when the bench is gone, even if it was killed and could not. Knows nothing of a
//! server but its number.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A process that waits for the bench's end. As long as the bench lives, it holds the other end of a pipe; when it dies
/// without a word, the guard ends the server, or deletes the files.
#[derive(Debug)]
pub struct Guard {
    child: Child,
}

/// A word through the pipe means that the server has been ended already.
const END: &str = "read -r _ && exit; kill -TERM \"$1\" 2>/dev/null; sleep 5; kill -KILL \"$1\" 2>/dev/null";

/// Once no server writes any more: gigabytes, where a bench of logs and snapshots was killed.
const DELETE: &str = "read -r _ && exit; sleep 7; rm -rf -- \"$1\"";

impl Guard {
    /// Watches over the process of this number.
    pub fn over(pid: u32) -> std::io::Result<Guard> {
        Guard::start(END, pid.to_string().as_ref())
    }

    /// Watches over what servers write into this directory.
    pub fn over_files(directory: &Path) -> std::io::Result<Guard> {
        Guard::start(DELETE, directory.as_os_str())
    }

    fn start(script: &str, over: &OsStr) -> std::io::Result<Guard> {
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(over);
        // In a group of its own: an interrupt from the terminal, which ends the bench, must leave the guard.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Ok(Guard { child: command.spawn()? })
    }

    /// The server has ended, or the files are gone.
    pub fn dismiss(&mut self) {
        // A guard that is gone already needs no word.
        let _ = self.child.stdin.take().map(|mut pipe| pipe.write_all(b"\n"));
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn sleeper() -> Child {
        Command::new("sleep").arg("600").spawn().expect("sleep")
    }

    #[test]
    fn a_server_ends_when_its_bench_is_gone() {
        let mut server = sleeper();
        let mut guard = Guard::over(server.id()).expect("sh");
        // What the kernel does with the pipe of a process that was killed.
        drop(guard.child.stdin.take());
        assert_eq!(server.wait().expect("it ends").signal(), Some(15));
        guard.child.kill().expect("the guard waits to see whether it must be harsher");
        guard.child.wait().expect("it ends");
    }

    #[test]
    fn a_dismissed_guard_does_nothing() {
        let mut server = sleeper();
        Guard::over(server.id()).expect("sh").dismiss();
        assert!(server.try_wait().expect("a child").is_none());
        server.kill().expect("it lives");
        server.wait().expect("it ends");
    }
}
