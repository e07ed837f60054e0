//! Putting a text in the place of a file as one step. Knows no text.

use rustix::process::{getegid, geteuid, getgroups};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use tenon_journal::files::disk::sync_directory;

/// Puts `text` in the place of a file: a reader, or a crash at any moment, finds the old text or the new one. Whoever does
/// so at the same time has a file of his own; which text stays, the callers' locks decide.
pub(crate) fn write_atomically(path: &Path, text: &[u8]) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (temporary, mut file) = create_beside(directory, path)?;
    let mut write = || -> io::Result<()> {
        if let Ok(old) = fs::metadata(path) {
            // While it is empty, and its own: who has given it away may set no rights.
            file.set_permissions(old.permissions())?;
            if !is_made_anothers(&file, &old)? {
                // Its group is another one, which was promised what everybody was.
                file.set_permissions(fs::Permissions::from_mode(without_group(old.mode() & 0o7777)))?;
            }
        }
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        sync_directory(directory)
    };
    let written = write();
    if written.is_err() {
        // It is gone already if only the last step failed.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// The rights of a file whose group is a stranger's.
fn without_group(mode: u32) -> u32 {
    let for_others = (mode & 0o007) << 3;
    mode & !0o070 | mode & for_others
}

/// Gives a file to the owner and the group of an old one, as far as may be; tells whether its group is that one then.
fn is_made_anothers(file: &File, old: &fs::Metadata) -> io::Result<bool> {
    let own = file.metadata()?;
    let is = |group: rustix::process::Gid| group.as_raw() == old.gid();
    let is_in_group = || is(getegid()) || getgroups().is_ok_and(|all| all.into_iter().any(is));
    // A filter of system calls may end who asks in vain.
    let may_give = geteuid().is_root() || own.uid() == old.uid() && is_in_group();
    let is_already = (own.uid(), own.gid()) == (old.uid(), old.gid());
    let is_given = is_already || may_give && fchown(file, Some(old.uid()), Some(old.gid())).is_ok();
    Ok(is_given || own.gid() == old.gid())
}

/// A new file in this directory.
fn create_beside(directory: &Path, path: &Path) -> io::Result<(PathBuf, File)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let mut name = OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(format!(".{}.{}.tmp", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        let temporary = directory.join(name);
        // The file may hold a password: nobody else gets to see it, unless the old file says otherwise.
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary) {
            // In a container each start has the same process id: a crash may have left this one.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (temporary, file)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_stays_whose_it_was() {
        let directory = std::env::temp_dir().join(format!("tenon-atomic-owner-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        let path = directory.join("file");
        fs::write(&path, "old").expect("written");
        let owner = |path: &Path| fs::metadata(path).map(|it| (it.uid(), it.gid(), it.mode() & 0o777)).expect("there");
        // Root may give it away; who may not keeps it.
        let _ = std::os::unix::fs::chown(&path, Some(65_534), Some(65_534));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("it is its own");
        let before = owner(&path);
        write_atomically(&path, b"new").expect("written");
        assert_eq!((owner(&path), fs::read(&path).expect("there")), (before, b"new".to_vec()));
        fs::remove_dir_all(&directory).expect("there");
    }

    #[test]
    fn whose_group_it_cannot_be_has_what_everybody_has() {
        let shown = |mode: u32| format!("{:o}", without_group(mode));
        assert_eq!([0o640, 0o664, 0o644, 0o600, 0o2755].map(shown), ["600", "644", "644", "600", "2755"]);
    }

    #[test]
    fn every_reader_finds_a_whole_text_however_many_write() {
        let directory = std::env::temp_dir().join(format!("tenon-atomic-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        let path = directory.join("file");
        let texts = [b"a".repeat(100_000), b"b".repeat(50_000), b"c".repeat(10)];
        write_atomically(&path, &texts[0]).expect("written");
        std::thread::scope(|scope| {
            let writers = texts
                .each_ref()
                .map(|text| scope.spawn(|| (0..30).for_each(|_| write_atomically(&path, text).expect("written"))));
            while !writers.iter().all(|writer| writer.is_finished()) {
                assert!(texts.contains(&fs::read(&path).expect("it is there")));
            }
        });
        assert_eq!(fs::read_dir(&directory).expect("a directory").count(), 1, "nothing is left beside it");
        fs::remove_dir_all(&directory).expect("it is empty");
    }
}
