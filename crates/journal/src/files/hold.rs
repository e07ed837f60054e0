//! Directories that one process has for itself, so that a second server does not write to the same files. Knows not what
//! lies in them.

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A directory that no other process has, until the last clone is dropped or the process ends, however it does.
#[derive(Clone, Debug)]
pub struct Hold {
    /// Nothing only while it is dropped.
    locked: Option<Arc<Locked>>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        // Whoever takes the directory meanwhile would find this process's own lock in the way.
        let _held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        self.locked = None;
    }
}

/// A directory with a lock.
#[derive(Debug)]
struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        // The lock goes with the last descriptor, and a process that is being started has one until it runs its program.
        // Where there is no lock any more nothing is left to be done.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// What this process has: parts of it may open the same directory, and must not stand in each other's way.
static HELD: Mutex<Vec<(Identity, Weak<Locked>)>> = Mutex::new(Vec::new());

/// Device and inode: a directory may have several names, and its name may come to be another one's.
type Identity = (u64, u64);

impl Hold {
    /// Takes a directory for this process; nothing where the file system knows no such thing.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when another process has it, and when it cannot be opened.
    pub(super) fn of(path: &Path) -> io::Result<Option<Hold>> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let identity = (metadata.dev(), metadata.ino());
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|(_, locked)| locked.strong_count() > 0);
        let own = held.iter().find(|(other, _)| *other == identity).and_then(|(_, locked)| locked.upgrade());
        if let Some(locked) = own {
            return Ok(Some(Hold { locked: Some(locked) }));
        }
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(io::ErrorKind::WouldBlock.into()),
            // Some network file systems lock no directories. Servers ran there before there was this.
            Err(_) => return Ok(None),
        }
        let locked = Arc::new(Locked(file));
        held.push((identity, Arc::downgrade(&locked)));
        Ok(Some(Hold { locked: Some(locked) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether another process could take the directory: a lock is not the process's, but that of who opened it.
    fn is_free(path: &Path) -> bool {
        let file = File::open(path).expect("it is there");
        flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
    }

    #[test]
    fn a_directory_is_this_processs_until_all_of_it_let_go() {
        let path = std::env::temp_dir().join(format!("tenon-hold-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("it can be made");
        let first = Hold::of(&path).expect("it is free");
        let second = Hold::of(&path).expect("it is this process's");
        assert!(first.is_some() && second.is_some());
        assert!(!is_free(&path));
        drop(first);
        assert!(!is_free(&path));
        drop(second);
        assert!(is_free(&path));
        let third = Hold::of(&path).expect("it is free").expect("there are locks");
        // As a process has that is being started.
        let inherited = third.locked.as_ref().expect("it has").0.try_clone().expect("there are descriptors");
        drop(third);
        assert!(is_free(&path));
        drop(inherited);
        let other = File::open(&path).expect("it is there");
        flock(&other, FlockOperation::NonBlockingLockExclusive).expect("it is free");
        assert_eq!(Hold::of(&path).expect_err("it is another's").kind(), io::ErrorKind::WouldBlock);
        drop(other);
        assert!(Hold::of(&path).is_ok());
        std::fs::remove_dir(&path).expect("it is empty");
    }
}
