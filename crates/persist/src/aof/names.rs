//! How append-only files are called and where they lie. Knows no file.

use std::path::{Path, PathBuf};

/// The settings that name the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// `dir`.
    pub dir: PathBuf,
    /// `appenddirname`, a directory in `dir`.
    pub appenddirname: String,
    /// `appendfilename`, what all names of files begin with.
    pub appendfilename: String,
}

/// What a base file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseFormat {
    /// A snapshot.
    Rdb,
    /// Commands.
    Aof,
}

/// What a file of the list is by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What increments begin with.
    Base,
    /// Writes since.
    Increment,
}

impl Names {
    /// The directory of the files.
    pub fn directory(&self) -> PathBuf {
        self.dir.join(&self.appenddirname)
    }

    /// A file in it.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.directory().join(name)
    }

    /// Where older versions had their only file.
    pub fn old_file(&self) -> PathBuf {
        self.dir.join(&self.appendfilename)
    }

    /// Name of the list of files.
    pub fn manifest(&self) -> String {
        format!("{}.manifest", self.appendfilename)
    }

    /// Name of the list of files before it is the valid one.
    pub fn temporary_manifest(&self) -> String {
        format!("temp-{}", self.manifest())
    }

    /// Name of a base file.
    pub fn base(&self, seq: i64, format: BaseFormat) -> String {
        let suffix = match format {
            BaseFormat::Rdb => "rdb",
            BaseFormat::Aof => "aof",
        };
        format!("{}.{seq}.base.{suffix}", self.appendfilename)
    }

    /// Name of an increment.
    pub fn increment(&self, seq: i64) -> String {
        format!("{}.{seq}.incr.aof", self.appendfilename)
    }

    /// Name of the increment that is written until the first base is there.
    pub fn temporary_increment(&self) -> String {
        format!("temp-{}.incr", self.appendfilename)
    }

    /// Name of a base while it is written.
    pub fn temporary_base(&self) -> String {
        format!("{TEMPORARY_BASE}{}.aof", std::process::id())
    }

    /// Whether a name is that of a base while it is written, by whichever process.
    pub fn is_temporary_base(name: &str) -> bool {
        name.strip_prefix(TEMPORARY_BASE).and_then(|rest| rest.strip_suffix(".aof")).is_some_and(is_number)
    }

    /// Kind and number of a base or an increment.
    pub fn part(&self, name: &str) -> Option<(Kind, i64)> {
        let (seq, kind) = name.strip_prefix(&self.appendfilename)?.strip_prefix('.')?.split_once('.')?;
        let kind = match kind {
            "base.rdb" | "base.aof" => Kind::Base,
            "incr.aof" => Kind::Increment,
            _ => return None,
        };
        is_number(seq).then(|| (kind, seq.parse().unwrap_or(i64::MAX)))
    }
}

/// Whether a base's name says that it is a snapshot.
pub(super) fn is_snapshot(name: &str) -> bool {
    name.ends_with(".base.rdb")
}

const TEMPORARY_BASE: &str = "temp-rewriteaof-bg-";

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_redis() {
        let names = Names { dir: "/data".into(), appenddirname: "dir".into(), appendfilename: "a.aof".into() };
        assert_eq!(names.path(names.manifest()), Path::new("/data/dir/a.aof.manifest"));
        assert_eq!(names.base(3, BaseFormat::Rdb), "a.aof.3.base.rdb");
        assert_eq!(names.base(3, BaseFormat::Aof), "a.aof.3.base.aof");
        assert_eq!(names.increment(12), "a.aof.12.incr.aof");
        assert_eq!(names.temporary_increment(), "temp-a.aof.incr");
        assert_eq!(names.temporary_manifest(), "temp-a.aof.manifest");
        assert!(Names::is_temporary_base(&names.temporary_base()));
        let parts = [
            ("a.aof.1.base.rdb", Kind::Base, 1),
            ("a.aof.10.incr.aof", Kind::Increment, 10),
            ("a.aof.2.base.aof", Kind::Base, 2),
        ];
        for (name, kind, seq) in parts {
            assert_eq!(names.part(name), Some((kind, seq)), "{name}");
        }
        for other in ["a.aof.manifest", "a.aof", "b.aof.1.base.rdb", "a.aof.x.incr.aof", "a.aof.1.incr.rdb"] {
            assert_eq!(names.part(other), None, "{other}");
        }
    }
}
