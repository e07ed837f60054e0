//! Files that a server loads for as long as a test likes, as they are pipes; a log on disk whose first file is one. Knows of a
//! log only how its files are called.

use crate::patience::wait_for;
use crate::server::Folder;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Of `open(2)`, on Linux for all machines that Tenon runs on.
const O_NONBLOCK: i32 = 0o4000;

/// The log: a list of the pipe and of an empty increment behind it.
#[derive(Debug)]
pub struct SlowLog {
    /// The server's `dir`.
    pub folder: Folder,
    pipe: PathBuf,
}

impl SlowLog {
    /// Makes one.
    ///
    /// # Panics
    /// When its files cannot be made.
    pub fn new() -> SlowLog {
        let folder = Folder::new().expect("a folder");
        let files = folder.path.join("appendonlydir");
        fs::create_dir_all(&files).expect("it can be made");
        let pipe = files.join("appendonly.aof.1.incr.aof");
        make_pipe(&pipe);
        fs::write(files.join("appendonly.aof.2.incr.aof"), "").expect("it is written");
        let list = "file appendonly.aof.1.incr.aof seq 1 type i\nfile appendonly.aof.2.incr.aof seq 2 type i\n";
        fs::write(files.join("appendonly.aof.manifest"), list).expect("it is written");
        SlowLog { folder, pipe }
    }

    /// What the list of files says now.
    ///
    /// # Panics
    /// When there is none.
    pub fn list(&self) -> String {
        fs::read_to_string(self.pipe.with_file_name("appendonly.aof.manifest")).expect("it is there")
    }

    /// Where a test writes what the server loads. The server must be started while this is there.
    pub fn writer(&self) -> Writer<'_> {
        Writer::of(&self.pipe)
    }
}

impl Default for SlowLog {
    fn default() -> SlowLog {
        SlowLog::new()
    }
}

/// The other end of the pipe. Loading ends when it is dropped, also by a test that fails.
#[derive(Debug)]
pub struct Writer<'a> {
    pipe: &'a Path,
    file: Option<File>,
}

/// Makes a pipe, from which a server reads what a test writes.
///
/// # Panics
/// When it cannot be made.
pub fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("it runs").success());
}

impl Writer<'_> {
    /// Where what the server reads from this pipe is written.
    pub fn of(pipe: &Path) -> Writer<'_> {
        Writer { pipe, file: None }
    }

    /// Has the server load a `SET key v`, once it reads.
    ///
    /// # Panics
    /// When nobody reads in time.
    pub fn set(&mut self, key: &str) {
        self.write(format!("*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n$1\r\nv\r\n", key.len()).as_bytes());
    }

    /// Has the server load these bytes, no more than a pipe takes at once, once it reads.
    ///
    /// # Panics
    /// When nobody reads in time.
    pub fn write(&mut self, bytes: &[u8]) {
        // One that nobody reads is not opened, instead of waiting for a reader without end.
        let open = || OpenOptions::new().write(true).custom_flags(O_NONBLOCK).open(self.pipe).ok();
        let file = self.file.get_or_insert_with(|| wait_for("somebody to read the pipe", open));
        file.write_all(bytes).expect("somebody reads");
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        if self.file.is_none() {
            // Whoever waits for a writer comes to the end of what was written, which is nothing.
            let _ = OpenOptions::new().read(true).write(true).open(self.pipe);
        }
    }
}
