//! The files of an append-only log as they lie on disk when the server starts: which are to be loaded, what of them is
//! refused, and what of a torn one is cut off. Knows no command.
//!
//! What a start finds, and what it makes of it:
//!
//! | in `dir` and `appenddirname` | |
//! | --- | --- |
//! | a manifest | its files are loaded; one that is missing is refused, and a snapshot of no bytes |
//! | a manifest, and a later increment with records, or no base on it and one beside it | refused: it was cut, or is an old one |
//! | only a file of the name of older versions, in `dir` | it becomes the base |
//! | a manifest with just this base, which still is in `dir` | a move that was interrupted goes on |
//! | nothing, or what a first start left that was interrupted | an empty log |
//! | files of a log, and no manifest | refused: somebody has to look |

use super::left::{error_of, words_of_brought, words_of_given_up, words_of_not_brought};
use super::listing::Listing;
use super::manifest::{Entry, Manifest, ManifestError};
use super::names::{Kind, Names, is_snapshot};
use super::read::ReadError;
use super::words_of_error;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use tenon_journal::Settings;
use tenon_journal::files::{Files, Hold, read_short};
use tenon_journal::log::{self, Unlisted};

/// Longest manifest that is read, in bytes.
const MANIFEST_MAX: u64 = 64 << 20;

/// The files of a log that is not open yet.
pub struct Directory {
    pub(super) files: Arc<dyn Files>,
    pub(super) names: Names,
    pub(super) manifest: Manifest,
    /// No other server has its log here meanwhile.
    pub(super) hold: Option<Hold>,
    /// What was done that an operator wants to read.
    pub notes: Vec<String>,
    /// What is not as it should be, likewise.
    pub warnings: Vec<String>,
}

/// A file that is to be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where it is.
    pub path: PathBuf,
    /// Its name.
    pub name: String,
    /// Bytes in it.
    pub size: u64,
    /// Whether it is the base, which may begin with a snapshot, or be one.
    pub is_base: bool,
    /// Whether it is the base of an older version, where commands may follow a snapshot.
    pub is_old_style: bool,
    /// Whether nothing but empty ones follow, so that its end may be torn: the next increment is made and listed some
    /// time before it is gone on with. Likewise where nobody went on: the log has begun anew behind it.
    pub is_last: bool,
    /// Whether it lacks its base, or stands behind a part that does: what its commands ran on is not all there.
    pub lacks_base: bool,
}

/// Why the files of a log are refused.
#[derive(Debug)]
pub enum OpenError {
    /// The manifest is not as it should be.
    Manifest {
        /// Its name.
        name: String,
        /// What is wrong.
        error: ManifestError,
    },
    /// The manifest cannot be read.
    ReadManifest {
        /// Its name.
        name: String,
        /// What the system says.
        error: io::Error,
    },
    /// A file of the manifest is not there.
    Missing {
        /// Its name.
        name: String,
    },
    /// Another process has the directory.
    InUse {
        /// The directory.
        directory: String,
    },
    /// There are files, and no manifest.
    NoManifest {
        /// The manifest's name.
        manifest: String,
        /// The directory.
        directory: String,
        /// One of the files.
        found: String,
    },
    /// There are files that the manifest should list.
    Unlisted {
        /// The manifest's name.
        manifest: String,
        /// The directory.
        directory: String,
        /// One of the files.
        found: String,
    },
    /// The snapshot that the increments begin with has no byte.
    EmptyBase {
        /// Its name.
        name: String,
    },
    /// Something else does not work.
    Io {
        /// What was tried, in words.
        what: String,
        /// What the system says.
        error: io::Error,
    },
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OpenError::Manifest { name, error } => write!(f, "{error} ({name})"),
            OpenError::ReadManifest { name, error } => {
                let error = words_of_error(error);
                write!(f, "Fatal error: can't open the AOF manifest file {name} for reading: {error}")
            }
            OpenError::Missing { name } => {
                write!(
                    f,
                    "The append log file {name} doesn't exist: No such file or directory. Put it back, or take its line out of \
                     the manifest to start without what is in it"
                )
            }
            OpenError::InUse { directory } => write!(
                f,
                "{directory} is in use by another server, whose log lies there: end that one first, or give this one \
                 another 'dir' or 'appenddirname'"
            ),
            OpenError::NoManifest { manifest, directory, found } => write!(
                f,
                "The AOF manifest file {manifest} doesn't exist, but {directory} has files of a log ({found}): put the \
                 manifest back, or move the files away to start without them"
            ),
            OpenError::Unlisted { manifest, directory, found } => write!(
                f,
                "The AOF manifest file {manifest} does not list {directory}/{found}, which belongs to the log: put back a \
                 manifest that does, or move the file away to start without what is in it"
            ),
            OpenError::EmptyBase { name } => write!(
                f,
                "The base file {name} is empty, and was not when it was made: put it back, or take its line out of the \
                 manifest and move it away to start without what was in it"
            ),
            OpenError::Io { what, error } => write!(f, "{what}: {}", words_of_error(error)),
        }
    }
}

impl std::error::Error for OpenError {}

/// For `map_err`: an error with what was tried.
pub(super) fn tried(what: impl Into<String>) -> impl FnOnce(io::Error) -> OpenError {
    let what = what.into();
    move |error| OpenError::Io { what, error }
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

impl Directory {
    /// Looks what there is, and takes over the file of an older version.
    ///
    /// # Errors
    /// When it must not be loaded, nor begun anew.
    pub fn open(files: Arc<dyn Files>, names: Names) -> Result<Directory, OpenError> {
        let hold = hold(&*files, &names)?;
        let manifest = read_manifest(&*files, &names)?;
        let has_manifest = manifest.is_some();
        let mut directory = Directory {
            files,
            names,
            manifest: manifest.unwrap_or_default(),
            hold,
            notes: Vec::new(),
            warnings: Vec::new(),
        };
        if directory.has_old_file()? && directory.may_upgrade()? {
            directory.upgrade()?;
        } else if has_manifest {
            directory.refuse_unlisted()?;
        } else {
            directory.refuse_orphans()?;
        }
        Ok(directory)
    }

    /// The file system that they lie on.
    pub fn files(&self) -> &Arc<dyn Files> {
        &self.files
    }

    /// Whether there is nothing to load.
    pub fn is_empty(&self) -> bool {
        self.manifest.is_empty()
    }

    /// The files to be loaded, in their order.
    ///
    /// # Errors
    /// When one is missing.
    pub fn parts(&self) -> Result<Vec<Part>, OpenError> {
        let base = self.manifest.base.as_ref();
        let part = |entry: &Entry| {
            let (path, name) = (self.path(entry), text(&entry.name));
            let what = format!("Unable to obtain the AOF file {name} length. stat");
            let size = self.files.len(&path).map_err(tried(what))?;
            let size = size.ok_or_else(|| OpenError::Missing { name: name.clone() })?;
            let is_base = base.is_some_and(|base| std::ptr::eq(base, entry));
            if is_base && size == 0 && is_snapshot(&name) {
                return Err(OpenError::EmptyBase { name });
            }
            let is_old_style = is_base && name == self.names.appendfilename;
            Ok(Part { path, name, size, is_base, is_old_style, is_last: false, lacks_base: entry.lacks_base })
        };
        let mut parts: Vec<Part> = self.manifest.to_load().map(part).collect::<Result<_, OpenError>>()?;
        let mut nothing_follows = true;
        for part in parts.iter_mut().rev() {
            part.is_last = nothing_follows;
            nothing_follows = nothing_follows && part.size == 0 || part.lacks_base;
        }
        let mut is_lacking = false;
        for part in &mut parts {
            is_lacking |= part.lacks_base;
            part.lacks_base = is_lacking;
        }
        Ok(parts)
    }

    /// Whether the log began while the server ran and never got its base, so that it needs a rewrite.
    pub fn lacks_base(&self) -> bool {
        self.manifest.increments.iter().any(|entry| entry.lacks_base)
    }

    /// Whether it did, and there was no older log either whose data it could stand on.
    pub fn lacks_every_base(&self) -> bool {
        self.manifest.lacks_every_base()
    }

    /// The bytes of a log that began while a server ran and has neither got its base nor an older one: its commands would be
    /// played upon the snapshot file. `None` where there is no such log, or where its list cannot be read.
    pub fn baseless(files: &dyn Files, names: &Names) -> Option<u64> {
        let manifest = read_manifest(files, names).ok().flatten().filter(Manifest::lacks_every_base)?;
        let len = |entry: &Entry| files.len(&names.path(OsStr::from_bytes(&entry.name))).ok().flatten().unwrap_or(0);
        Some(manifest.to_load().map(len).sum())
    }

    /// Deletes a log that has no base, as a snapshot file has been saved by a server that has not loaded it: nothing that is
    /// on disk is what its commands ran on any more. Tells whether there was one.
    ///
    /// # Errors
    /// When its list cannot be written, or another server has its log here.
    pub fn withdraw_baseless(files: &dyn Files, names: &Names) -> Result<bool, OpenError> {
        if Directory::baseless(files, names).is_none() {
            return Ok(false);
        }
        let _hold = hold(files, names)?;
        let Some(mut manifest) = read_manifest(files, names)?.filter(Manifest::lacks_every_base) else {
            return Ok(false);
        };
        let withdrawn = Listing { files, names }.withdraw(&mut manifest, i64::MIN);
        withdrawn.map_err(tried(format!("Can't write the AOF manifest file {}", names.manifest())))
    }

    /// What to do about a part in which no whole record follows: a torn end of the last part is cut off if that is
    /// wanted, everything else is refused. Gives the position of the cut and what an operator wants to read.
    ///
    /// # Errors
    /// When it is refused.
    pub fn cut_torn_tail(
        &self,
        part: &Part,
        error: ReadError,
        load_truncated: LoadTruncated,
    ) -> Result<Cut, LoadError> {
        let name = part.name.clone();
        let (at, in_transaction) = match error {
            ReadError::Truncated { valid_up_to, in_transaction } => (valid_up_to, in_transaction),
            ReadError::Format { at, valid_up_to, fault } => {
                return Err(LoadError::Format { name, at, valid_up_to, fault: fault.to_string() });
            }
            ReadError::Read(error) => return Err(LoadError::Read { name, error }),
        };
        if load_truncated == LoadTruncated::Refuse {
            return Err(LoadError::Truncated { name, at });
        }
        if !part.is_last {
            return Err(LoadError::NotTheLast { name, at });
        }
        let cut = || {
            let file = self.files.append(&part.path)?;
            file.truncate(at)?;
            file.sync()
        };
        cut().map_err(|error| LoadError::NotCut { name: name.clone(), error })?;
        let mut notes = Vec::new();
        if in_transaction {
            notes.push(format!("Revert incomplete MULTI/EXEC transaction in AOF file {name}"));
        }
        notes.push(format!("!!! Warning: short read while loading the AOF file {name}!!!"));
        let cut_off = part.size.saturating_sub(at);
        notes.push(format!("!!! Truncating the AOF {name} at offset {at}, by {cut_off} bytes !!!"));
        notes.push(format!("AOF {name} loaded anyway because aof-load-truncated is enabled"));
        Ok(Cut { at, notes })
    }

    /// Puts what a killed server had confirmed and not yet written behind the files that it belongs to. To be called before they
    /// are loaded, and before another log begins behind them.
    ///
    /// # Errors
    /// When there is such and a file cannot be written, or it belongs to another log here: then it is there for the next attempt.
    pub fn bring_left(&mut self, settings: &Settings) -> Result<(), OpenError> {
        let listed: Vec<PathBuf> = self.manifest.to_load().map(|entry| self.path(entry)).collect();
        let directory = self.names.directory();
        let left = log::bring_left(&*self.files, &directory, &listed, Unlisted::GivenUpIfGone, settings);
        let left = left.map_err(|not| tried(words_of_not_brought(&not))(error_of(not)))?;
        self.notes.extend(words_of_brought(&left));
        self.warnings.extend(words_of_given_up(&left));
        Ok(())
    }

    /// Makes the directory of the files, if it is not there.
    ///
    /// # Errors
    /// When it cannot be made, or is another server's.
    pub fn make(&mut self) -> Result<(), OpenError> {
        self.hold = make(&*self.files, &self.names)?;
        Ok(())
    }

    pub(super) fn path(&self, entry: &Entry) -> PathBuf {
        self.names.path(OsStr::from_bytes(&entry.name))
    }

    pub(super) fn listing(&self) -> Listing<'_> {
        Listing { files: &*self.files, names: &self.names }
    }

    /// Writes the list and makes it the valid one.
    pub(super) fn publish(&self) -> io::Result<()> {
        self.listing().stage(&self.manifest)?;
        Ok(self.listing().commit()?)
    }

    fn has_old_file(&self) -> Result<bool, OpenError> {
        let path = self.names.old_file();
        match self.files.len(&path) {
            Ok(len) => Ok(len.is_some()),
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => Ok(false),
            Err(error) => Err(tried(format!("Unable to obtain the AOF file {} length. stat", path.display()))(error)),
        }
    }

    /// Whether the old file is all there is.
    fn may_upgrade(&self) -> Result<bool, OpenError> {
        let Some(base) = &self.manifest.base else { return Ok(self.manifest.increments.is_empty()) };
        let is_old = base.name == self.names.appendfilename.as_bytes() && self.manifest.increments.is_empty();
        let moved = self.files.len(&self.path(base)).map_err(tried("Unable to obtain the AOF file length. stat"))?;
        Ok(is_old && moved.is_none())
    }

    /// The old file becomes the base. The list comes first: should it end in between, the next start goes on.
    fn upgrade(&mut self) -> Result<(), OpenError> {
        let (name, directory) = (self.names.appendfilename.clone(), self.names.appenddirname.clone());
        self.make()?;
        if self.manifest.base.is_none() {
            self.refuse_orphans()?;
            self.manifest.base = Some(Entry { name: name.clone().into_bytes(), seq: 1, lacks_base: false });
            self.manifest.base_seq = 1;
            self.publish()
                .map_err(tried(format!("Error trying to write the AOF manifest file {}", self.names.manifest())))?;
        }
        let move_it = || {
            self.files.rename(&self.names.old_file(), &self.names.path(&name))?;
            self.files.sync_directory(&self.names.directory())?;
            self.files.sync_directory(&self.names.dir)
        };
        move_it().map_err(tried(format!("Error trying to move the old AOF file {name} into dir {directory}")))?;
        self.notes.push(format!(
            "Successfully migrated an old-style AOF file ({name}) into the AOF directory ({directory})."
        ));
        Ok(())
    }

    /// What lies in the directory.
    fn found(&self) -> Result<Vec<Lying>, OpenError> {
        let directory = self.names.directory();
        let listed = self.files.list(&directory).map_err(tried(format!("Can't read {}", directory.display())))?;
        let lying = |name: OsString| {
            let name = name.to_string_lossy().into_owned();
            let part = self.names.part(&name);
            let size = part.and_then(|_| self.files.len(&self.names.path(&name)).ok().flatten()).unwrap_or(0);
            Lying { name, part, size }
        };
        Ok(listed.unwrap_or_default().into_iter().map(lying).collect())
    }

    /// Without a manifest there must be no files, but for those of a first start that did not get so far: it leaves
    /// its list under the temporary name. That one lists a single increment, or is torn and nothing is in any yet.
    fn refuse_orphans(&self) -> Result<(), OpenError> {
        let found = self.found()?;
        let temporary = self.names.temporary_manifest();
        let is_first_start = found.iter().any(|file| file.name == temporary);
        let list = read_short(&*self.files, &self.names.path(&temporary), MANIFEST_MAX).unwrap_or_default();
        let lists_one = Manifest::parse(&list)
            .is_ok_and(|list| list.history.is_empty() && list.increments.len() == 1 && list.increment_seq == 1);
        let is_of_first_start = |file: &Lying| match file.part {
            Some((Kind::Base, seq)) => seq == 1,
            Some((Kind::Increment, seq)) => file.size == 0 || lists_one && seq == 1,
            None => true,
        };
        let is_left = |file: &Lying| file.part.is_some() && !(is_first_start && is_of_first_start(file));
        match found.into_iter().find(is_left) {
            None => Ok(()),
            Some(found) => Err(OpenError::NoManifest {
                manifest: self.names.manifest(),
                directory: self.names.appenddirname.clone(),
                found: found.name,
            }),
        }
    }

    /// A manifest that was cut or put back from an earlier day leaves records out that are there: every increment is listed
    /// before anything is written to it, and increments alone stand on nothing. Older ones than the list's, and bases, may be
    /// what a rewrite left that was interrupted.
    fn refuse_unlisted(&self) -> Result<(), OpenError> {
        let listed = || self.manifest.to_load().chain(&self.manifest.history);
        let is_listed = |name: &str| listed().any(|entry| entry.name == name.as_bytes());
        let wants_base = self.manifest.base.is_none() && !self.manifest.increments.iter().any(|entry| entry.lacks_base);
        let is_left_out = |file: &Lying| match file.part {
            Some((Kind::Base, _)) => wants_base,
            Some((Kind::Increment, seq)) => seq > self.manifest.increment_seq && file.size > 0,
            None => false,
        };
        match self.found()?.into_iter().find(|file| is_left_out(file) && !is_listed(&file.name)) {
            None => Ok(()),
            Some(found) => Err(OpenError::Unlisted {
                manifest: self.names.manifest(),
                directory: self.names.appenddirname.clone(),
                found: found.name,
            }),
        }
    }
}

/// A file of the directory.
struct Lying {
    name: String,
    /// Kind and number, if it is a part of a log.
    part: Option<(Kind, i64)>,
    /// Bytes of a part.
    size: u64,
}

/// Makes the directory of the files, if it is not there, and takes it for this process.
pub(super) fn make(files: &dyn Files, names: &Names) -> Result<Option<Hold>, OpenError> {
    let what = format!("Can't open or create append-only dir {}", names.appenddirname);
    files.create_directory(&names.directory()).map_err(tried(what.clone()))?;
    files.sync_directory(&names.dir).map_err(tried(what))?;
    hold(files, names)
}

/// Takes the directory of the files for this process; nothing while it is not there.
fn hold(files: &dyn Files, names: &Names) -> Result<Option<Hold>, OpenError> {
    let directory = names.directory();
    match files.hold_directory(&directory) {
        Ok(hold) => Ok(hold),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            let directory = std::path::absolute(&directory).unwrap_or(directory);
            Err(OpenError::InUse { directory: directory.display().to_string() })
        }
        // Whoever reads it says what is wrong with it.
        Err(_) => Ok(None),
    }
}

fn read_manifest(files: &dyn Files, names: &Names) -> Result<Option<Manifest>, OpenError> {
    match read_short(files, &names.path(names.manifest()), MANIFEST_MAX) {
        Ok(text) => match Manifest::parse(&text) {
            Ok(manifest) => Ok(Some(manifest)),
            Err(error) => Err(OpenError::Manifest { name: names.manifest(), error }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(OpenError::ReadManifest { name: names.manifest(), error }),
    }
}

/// `aof-load-truncated`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadTruncated {
    /// A torn end is cut off.
    Cut,
    /// A torn end is refused.
    Refuse,
}

/// A torn end was cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Where.
    pub at: u64,
    /// What an operator wants to read of it.
    pub notes: Vec<String>,
}

/// Why a file cannot be loaded.
#[derive(Debug)]
pub enum LoadError {
    /// It ends within a record, and that is refused.
    Truncated {
        /// The file's name.
        name: String,
        /// Where its last whole record ended.
        at: u64,
    },
    /// It ends within a record, and there are later files.
    NotTheLast {
        /// The file's name.
        name: String,
        /// Where its last whole record ended.
        at: u64,
    },
    /// Its torn end cannot be cut off.
    NotCut {
        /// The file's name.
        name: String,
        /// What the system says.
        error: io::Error,
    },
    /// What stands in it is no record.
    Format {
        /// The file's name.
        name: String,
        /// Where it is wrong.
        at: u64,
        /// Where its last whole record ended.
        valid_up_to: u64,
        /// What is wrong.
        fault: String,
    },
    /// It cannot be read.
    Read {
        /// The file's name.
        name: String,
        /// What the system says.
        error: io::Error,
    },
}

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LoadError::Truncated { name, at } => write!(
                f,
                "Unexpected end of file reading the append only file {name} (its last whole record ends at offset {at}). \
                 You can: 1) Make a backup of your AOF file, then use tenon check aof --fix <filename.manifest>. \
                 2) Alternatively you can set the 'aof-load-truncated' configuration option to yes and restart the \
                 server."
            ),
            LoadError::NotTheLast { name, at } => {
                write!(
                    f,
                    "Fatal error: the truncated file is not the last file: {name}, truncated at offset {at}. Records are \
                     missing before those of later files: put a whole {name} back, or, to give up what is in the later \
                     files, move them away and their lines out of the manifest, then use tenon check aof --fix \
                     <filename.manifest>"
                )
            }
            LoadError::NotCut { name, error } => {
                write!(f, "Error truncating the AOF file {name}: {}", words_of_error(error))
            }
            LoadError::Format { name, at, valid_up_to, fault } => write!(
                f,
                "Bad file format reading the append only file {name} at offset {at}: {fault}. Its last whole record \
                 ends at offset {valid_up_to}: make a backup of your AOF file, then use tenon check aof --fix \
                 <filename.manifest>"
            ),
            LoadError::Read { name, error } => {
                let error = words_of_error(error);
                write!(f, "Unrecoverable error reading the append only file {name}: {error}")
            }
        }
    }
}

impl std::error::Error for LoadError {}
