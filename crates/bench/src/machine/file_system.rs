//! What kind of file system a directory lies on. Knows not what is kept there.

use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A kind of file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem(String);

impl FileSystem {
    /// That of a directory.
    ///
    /// # Errors
    /// When there is no such directory.
    pub fn of(directory: &Path) -> Result<FileSystem> {
        let directory = directory.canonicalize().with_context(|| directory.display().to_string())?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").context("/proc/self/mountinfo")?;
        FileSystem::among(&mounts, &directory).with_context(|| format!("no mount holds {}", directory.display()))
    }

    /// The mount furthest down on the way to the directory, of several in one place the one on top.
    fn among(mounts: &str, directory: &Path) -> Option<FileSystem> {
        let mounts = mounts.lines().filter_map(|line| {
            // 36 35 98:0 /root /mount/point options... - type source options
            let (mount, kind) = line.split_once(" - ")?;
            let point = unescaped(mount.split(' ').nth(4)?);
            Some((point, kind.split(' ').next()?))
        });
        let holding = mounts.filter(|(point, _)| directory.starts_with(point));
        let (_, kind) = holding.max_by_key(|(point, _)| point.components().count())?;
        Some(FileSystem(kind.to_owned()))
    }

    /// Its name, as the kernel has it.
    pub fn kind(&self) -> &str {
        &self.0
    }

    /// What must be known to read figures of what is kept there.
    pub fn note(&self) -> String {
        match self.0.as_str() {
            kind @ ("tmpfs" | "ramfs") => format!("files in memory ({kind}): no write waits for a disk"),
            kind => format!("files on {kind}"),
        }
    }
}

/// A path as the kernel lists it: blanks and the like are three octal digits behind a backslash.
fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        let octal = behind.get(..3).and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match octal {
            Some(escaped) if byte == b'\\' => {
                bytes.push(escaped);
                rest = &behind[3..];
            }
            _ => {
                bytes.push(byte);
                rest = behind;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = r"21 1 254:0 / / rw,relatime - ext4 /dev/vda rw
22 21 0:20 / /proc rw shared:5 - proc proc rw
30 21 0:31 / /tmp rw - xfs /dev/vdb rw
31 30 0:32 / /tmp rw - tmpfs tmpfs rw,size=1g
32 31 0:33 / /tmp/with\040blank rw - btrfs /dev/vdc rw
";

    #[test]
    fn the_mount_on_top_and_furthest_down_counts() {
        for (directory, note) in [
            ("/", "files on ext4"),
            ("/tmpfs/data", "files on ext4"),
            ("/tmp/data", "files in memory (tmpfs): no write waits for a disk"),
            ("/tmp/with blank/data", "files on btrfs"),
        ] {
            assert_eq!(FileSystem::among(MOUNTS, Path::new(directory)).expect("a mount").note(), note, "{directory}");
        }
    }

    #[test]
    fn this_machine_lists_its_mounts() {
        assert_eq!(FileSystem::of(Path::new("/proc/self")).expect("it is there"), FileSystem("proc".into()));
        assert!(FileSystem::of(Path::new("/proc/none")).is_err());
    }
}
