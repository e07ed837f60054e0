//! A file that takes another one's place when it is whole, and leaves nothing behind when it does not become so. Knows not
//! what is in it.

use super::synced::{Synced, Syncing};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file under a name of its own.
pub(super) struct Temporary {
    out: Synced<File>,
    path: PathBuf,
    is_published: bool,
}

impl Temporary {
    /// Makes the file `name` in a directory, in place of what has this name.
    pub(super) fn create(directory: &Path, name: &str, syncing: Syncing) -> io::Result<Temporary> {
        let path = directory.join(name);
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path)?;
        Ok(Temporary { out: Synced::new(Arc::new(file), syncing), path, is_published: false })
    }

    /// Brings it to the disk and puts it in the place of the file `name` of its directory: a crash at any moment leaves the
    /// old one or the new one.
    pub(super) fn publish(mut self, name: &str) -> io::Result<()> {
        self.out.file().sync_all()?;
        let directory = self.path.parent().expect("it lies in a directory").to_owned();
        fs::rename(&self.path, directory.join(name))?;
        self.is_published = true;
        File::open(directory)?.sync_all()
    }
}

impl Write for Temporary {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.is_published {
            // Nobody is left to tell when this fails, and the next one takes its place.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_place_of_the_old_one_or_leaves_nothing() {
        let directory = std::env::temp_dir().join(format!("tenon-saving-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory for the test");
        fs::write(directory.join("data"), b"old").expect("a file for the test");
        let names = || {
            let mut names: Vec<_> = fs::read_dir(&directory).unwrap().map(|one| one.unwrap().file_name()).collect();
            names.sort();
            names
        };
        for syncing in [Syncing::AtEnd, Syncing::Incremental] {
            let mut file = Temporary::create(&directory, "temporary", syncing).unwrap();
            file.write_all(&vec![7; 9 << 20]).unwrap();
            drop(file);
            assert_eq!(names(), ["data"]);
        }
        assert_eq!(fs::read(directory.join("data")).unwrap(), b"old");
        let mut file = Temporary::create(&directory, "temporary", Syncing::Incremental).unwrap();
        file.write_all(b"new").unwrap();
        file.publish("data").unwrap();
        assert_eq!((names(), fs::read(directory.join("data")).unwrap()), (vec!["data".into()], b"new".to_vec()));
        fs::remove_dir_all(&directory).expect("the test's directory goes");
    }
}
