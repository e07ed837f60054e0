//! Directories that one process has for itself, so that a second server does not write to the same files. Knows not what
//! lies in them.

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A directory that no other process has, until the last clone is dropped or the process ends, however it does.
#[derive(Debug)]
pub struct Hold {
    identity: Identity,
}

/// What this process has: parts of it may open the same directory, and must not stand in each other's way.
static HELD: Mutex<Vec<Held>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct Held {
    identity: Identity,
    locked: File,
    holds: usize,
}

/// Device and inode: a directory may have several names, and its name may come to be another one's.
type Identity = (u64, u64);

fn held() -> MutexGuard<'static, Vec<Held>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One more hold of a directory, if this process has it.
fn one_more(held: &mut [Held], identity: Identity) -> Option<Hold> {
    let found = held.iter_mut().find(|held| held.identity == identity)?;
    found.holds += 1;
    Some(Hold { identity })
}

impl Clone for Hold {
    fn clone(&self) -> Hold {
        one_more(&mut held(), self.identity).expect("what has a hold is held")
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut held = held();
        let Some(at) = held.iter().position(|held| held.identity == self.identity) else { return };
        held[at].holds -= 1;
        if held[at].holds == 0 {
            let Held { locked, .. } = held.swap_remove(at);
            // The lock goes with the last descriptor, and a process that is being started has one until it runs its
            // program. Where the lock cannot be taken off it goes with that.
            let _ = flock(&locked, FlockOperation::Unlock);
        }
    }
}

impl Hold {
    /// Takes a directory for this process; nothing where the file system knows no such thing.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when another process has it, and when it cannot be opened.
    pub(super) fn of(path: &Path) -> io::Result<Option<Hold>> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let identity = (metadata.dev(), metadata.ino());
        let mut held = held();
        if let Some(hold) = one_more(&mut held, identity) {
            return Ok(Some(hold));
        }
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(io::ErrorKind::WouldBlock.into()),
            // Some network file systems lock no directories. Servers ran there before there was this.
            Err(_) => return Ok(None),
        }
        held.push(Held { identity, locked: file, holds: 1 });
        Ok(Some(Hold { identity }))
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
        let own = held().iter().find(|held| held.identity == third.identity).map(|held| held.locked.try_clone());
        let inherited = own.expect("it is held").expect("there are descriptors");
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
