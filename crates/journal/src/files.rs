//! The file layer: what the log and its files need of a file system, so that tests can put one that fails in its place.
//! Knows nothing of what is written.

pub mod disk;
pub mod fault;
mod hold;
mod kept;
pub mod memory;

pub use disk::Disk;
pub use fault::Faulty;
pub use hold::Hold;
pub use kept::{Kept, Want};
pub use memory::Memory;

use std::ffi::OsString;
use std::io::{self, IoSlice, Read};
use std::path::Path;
use std::sync::Arc;

/// A file system. Nothing is certain to survive a crash before it was synced: bytes by [`File::sync`], names by
/// [`Files::sync_directory`].
pub trait Files: Send + Sync {
    /// Makes a file anew and empty, or empties the one that has the name.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Opens a file to write behind its end, and makes it if it is not there.
    fn append(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Opens a file to read it from its start.
    fn read(&self, path: &Path) -> io::Result<Box<dyn Read + Send>>;
    /// Length of a file in bytes; nothing when there is none.
    fn len(&self, path: &Path) -> io::Result<Option<u64>>;
    /// Gives a file another name, at once; a file that has the name goes.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes a directory, unless it is there.
    fn create_directory(&self, path: &Path) -> io::Result<()>;
    /// Names of what is in a directory, in order; nothing when there is no such directory.
    fn list(&self, path: &Path) -> io::Result<Option<Vec<OsString>>>;
    /// Makes sure that the directory's names survive a crash.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
    /// Takes a directory for this process, so that no other one writes to its files; nothing where that cannot be had. An
    /// error of the kind [`io::ErrorKind::WouldBlock`] says that another one has it.
    fn hold_directory(&self, path: &Path) -> io::Result<Option<Hold>> {
        let _ = path;
        Ok(None)
    }
    /// Memory of a directory that outlives the process: so many bytes, to be made, or left by a process before. Nothing where there
    /// is none; an error of the kind [`io::ErrorKind::WouldBlock`] says that it is in use.
    fn kept_memory(&self, directory: &Path, len: usize, want: Want) -> io::Result<Option<Kept>> {
        let _ = (directory, len, want);
        Ok(None)
    }
    /// Which file this is, as [`File::identity`] has it; nothing when there is none, or that is not known.
    fn identity(&self, path: &Path) -> io::Result<Option<[u64; 2]>>;
    /// The last `len` bytes of a file, or all if it is shorter.
    fn read_end(&self, path: &Path, len: usize) -> io::Result<Vec<u8>>;
}

/// A file that is open for writing behind its end.
pub trait File: Send + Sync {
    /// Writes some of the bytes behind the end, and tells how many.
    fn write(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize>;
    /// Makes sure that what was written survives a crash. After an error nothing is known of what was written before:
    /// the system may have given it up, and answer well the next time.
    fn sync(&self) -> io::Result<()>;
    /// Gives back the memory in which the system keeps the first `len` bytes, as far as they are on the disk, and has it begin to
    /// bring the others there: nobody reads them soon. It is advice, and who does not take it does no harm.
    fn forget(&self, len: u64) {
        let _ = len;
    }
    /// Has room kept on the disk for `len` bytes from this length on, so that the file can grow to there when the disk is full.
    /// Its length stays as it is; to cut it gives the room back. Where a file system keeps no room nothing is done.
    ///
    /// # Errors
    /// When there is none.
    fn keep_room(&self, from: u64, len: u64) -> io::Result<()> {
        let _ = (from, len);
        Ok(())
    }
    /// Cuts the file.
    fn truncate(&self, len: u64) -> io::Result<()>;
    /// Which file it is, whatever its name is and was; none other has had this number. Nothing where that is not known.
    fn identity(&self) -> Option<[u64; 2]> {
        None
    }
    /// Length in bytes.
    fn size(&self) -> io::Result<u64>;
}

impl dyn File + '_ {
    /// Writes all of the bytes.
    ///
    /// # Errors
    /// As the file has them; some of the bytes may have been written.
    pub fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write(&[IoSlice::new(bytes)]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(len) => bytes = &bytes[len..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The bytes of a whole file, which must be a short one.
///
/// # Errors
/// As the file has them, and when it has more than `len_max` bytes.
pub fn read_short(files: &dyn Files, path: &Path, len_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    files.read(path)?.take(len_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > len_max { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}
