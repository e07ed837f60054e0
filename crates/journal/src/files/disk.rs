//! The system's own files. Knows nothing of what is written.

use super::{File, Files, Hold, Kept, Want};
use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Resource, getrlimit};
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// The file system of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

/// As Redis makes its files.
const MODE: u32 = 0o644;

impl Files for Disk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        // An old file is emptied by its own call, as appending and truncating do not go together.
        let file = OpenOptions::new().append(true).create(true).mode(MODE).open(path)?;
        file.set_len(0)?;
        Ok(Arc::new(file))
    }

    fn append(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(OpenOptions::new().append(true).create(true).mode(MODE).open(path)?))
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(fs::File::open(path)?))
    }

    fn len(&self, path: &Path) -> io::Result<Option<u64>> {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if fs::metadata(path)?.is_dir() {
                    Ok(())
                } else {
                    Err(io::ErrorKind::NotADirectory.into())
                }
            }
            made => made,
        }
    }

    fn list(&self, path: &Path) -> io::Result<Option<Vec<OsString>>> {
        let entries = match fs::read_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            entries => entries?,
        };
        let mut names = entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<OsString>>>()?;
        names.sort_unstable();
        Ok(Some(names))
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        sync_directory(path)
    }

    fn hold_directory(&self, path: &Path) -> io::Result<Option<Hold>> {
        Hold::of(path)
    }

    fn kept_memory(&self, directory: &Path, len: usize, want: Want) -> io::Result<Option<Kept>> {
        Kept::of(directory, len, want)
    }

    fn identity(&self, path: &Path) -> io::Result<Option<[u64; 2]>> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(identity(&metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read_end(&self, path: &Path, len: usize) -> io::Result<Vec<u8>> {
        let file = fs::File::open(path)?;
        let whole = file.metadata()?.len();
        let len = len.min(usize::try_from(whole).unwrap_or(len));
        let mut bytes = vec![0; len];
        file.read_exact_at(&mut bytes, whole - len as u64)?;
        Ok(bytes)
    }
}

/// Brings a directory's names to the disk, where its file system can do that: some know no such thing, as Redis expects, too.
///
/// # Errors
/// What the system says: of a disk that fails, of a directory that is not there.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    where_it_can_be(fs::File::open(path)?.sync_all())
}

fn where_it_can_be(synced: io::Result<()>) -> io::Result<()> {
    let cannot = [Errno::INVAL, Errno::BADF].map(|errno| Some(errno.raw_os_error()));
    match synced {
        Err(error) if cannot.contains(&error.raw_os_error()) => Ok(()),
        synced => synced,
    }
}

/// Refuses a length that the limit on the length of files (RLIMIT_FSIZE) does not allow this process.
pub(super) fn may_become(len: u64) -> io::Result<()> {
    match getrlimit(Resource::Fsize).current {
        Some(limit) if limit < len => Err(io::Error::from(Errno::FBIG)),
        _ => Ok(()),
    }
}

/// Number of a file, and when it was made; nothing where the file system does not tell that.
pub(super) fn identity(metadata: &fs::Metadata) -> Option<[u64; 2]> {
    // A number of a file that was removed may be another one's later.
    let made = metadata.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some([metadata.ino(), u64::try_from(made.as_nanos()).ok()?])
}

impl File for fs::File {
    fn write(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut file = self;
        file.write_vectored(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        // The length is synced with the data; times of change are not needed.
        self.sync_data()
    }

    fn forget(&self, len: u64) {
        // Without a length it would be all of the file.
        if let Some(len) = NonZeroU64::new(len) {
            let _ = fadvise(self, 0, Some(len), Advice::DontNeed);
        }
    }

    fn keep_room(&self, from: u64, len: u64) -> io::Result<()> {
        // The kernel looks at this limit only when something is written.
        may_become(from + len)?;
        match retry_on_intr(|| fallocate(self, FallocateFlags::KEEP_SIZE, from, len)) {
            Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => Err(error.into()),
            // It is not to be had here, or something else is wrong, which a write will tell.
            _ => Ok(()),
        }
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn identity(&self) -> Option<[u64; 2]> {
        identity(&self.metadata().ok()?)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_that_syncs_no_directory_is_one_all_the_same() {
        let synced = |errno: Errno| where_it_can_be(Err(io::Error::from_raw_os_error(errno.raw_os_error())));
        assert!(synced(Errno::INVAL).is_ok() && synced(Errno::BADF).is_ok());
        assert!(synced(Errno::IO).is_err() && synced(Errno::NOSPC).is_err());
        assert!(sync_directory(Path::new("")).is_ok() && sync_directory(Path::new("/not there")).is_err());
    }
}
