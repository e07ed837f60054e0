//! A file that takes another one's place when it is whole, and leaves nothing behind when it does not become so. Knows not
//! what is in it.

use super::synced::{Synced, Syncing};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenon_journal::files::{File, Files};

/// What a save by a process is called until it is whole, here as in Redis.
pub(super) fn temporary_name(process: u32) -> String {
    format!("temp-{process}.rdb")
}

/// The process whose save is called so until it is whole.
pub fn saver_of(name: &str) -> Option<u32> {
    let process = name.strip_prefix("temp-")?.strip_suffix(".rdb")?.parse().ok()?;
    (name == temporary_name(process)).then_some(process)
}

/// A file under a name of its own.
pub(super) struct Temporary {
    files: Arc<dyn Files>,
    out: Synced<dyn File>,
    path: PathBuf,
    is_published: bool,
}

impl Temporary {
    /// Makes the file `name` in a directory, in place of what has this name.
    pub(super) fn create(
        files: Arc<dyn Files>,
        directory: &Path,
        name: &str,
        syncing: Syncing,
    ) -> io::Result<Temporary> {
        let path = directory.join(name);
        let out = Synced::new(files.create(&path)?, syncing);
        Ok(Temporary { files, out, path, is_published: false })
    }

    /// Brings it to the disk and puts it in the place of the file `name` of its directory: a crash at any moment leaves the
    /// old one or the new one. `before` is done in between.
    pub(super) fn publish(mut self, name: &str, before: impl FnOnce()) -> io::Result<()> {
        self.out.file().sync()?;
        before();
        let directory = self.path.parent().expect("it lies in a directory").to_owned();
        self.files.rename(&self.path, &directory.join(name))?;
        self.is_published = true;
        self.files.sync_directory(&directory)
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
            let _ = self.files.remove(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_journal::files::{Faulty, Memory};

    #[test]
    fn takes_the_place_of_the_old_one_or_leaves_nothing() {
        let directory = Path::new("d");
        let memory = Memory::new();
        memory.create_directory(directory).unwrap();
        let old = memory.create(&directory.join("data")).unwrap();
        old.write_all(b"old").unwrap();
        let names = || memory.list(directory).unwrap().unwrap();
        let content = || memory.content(&directory.join("data")).unwrap();
        let create = |files: &Faulty<Memory>, syncing| {
            Temporary::create(Arc::new(files.clone()), directory, "temporary", syncing)
        };
        for syncing in [Syncing::AtEnd, Syncing::Incremental] {
            let files = Faulty::new(memory.clone(), "".parse().unwrap());
            let mut file = create(&files, syncing).unwrap();
            file.write_all(&vec![7; 9 << 20]).unwrap();
            drop(file);
            assert_eq!(names(), ["data"]);
            for plan in ["open:enospc", "write:enospc", "sync:eio", "rename:eio"] {
                files.set(plan.parse().unwrap());
                let saved = create(&files, syncing).and_then(|mut file| {
                    file.write_all(b"new")?;
                    file.publish("data", || ())
                });
                assert!(saved.is_err(), "{plan}");
                assert_eq!((names(), content()), (vec!["data".into()], b"old".to_vec()), "{plan}");
            }
        }
        let files = Faulty::new(memory.clone(), "".parse().unwrap());
        let mut file = create(&files, Syncing::Incremental).unwrap();
        file.write_all(b"new").unwrap();
        file.publish("data", || ()).unwrap();
        assert_eq!((names(), content()), (vec!["data".into()], b"new".to_vec()));
    }

    #[test]
    fn whose_save_it_is_stands_in_its_name() {
        assert_eq!(saver_of(&temporary_name(4711)), Some(4711));
        for other in [
            "temp-.rdb",
            "temp-+1.rdb",
            "temp-01.rdb",
            "temp-1x.rdb",
            "temp-1.rdb.gz",
            "dump.rdb",
            "temp-99999999999.rdb",
        ] {
            assert_eq!(saver_of(other), None, "{other}");
        }
    }
}
