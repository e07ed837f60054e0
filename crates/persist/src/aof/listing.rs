//! How the list of an append-only log's files changes, so that the list that is valid names files that are there wherever it
//! ends. Knows no log.

use super::manifest::Manifest;
use super::names::{Kind, Names};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use tenon_journal::files::Files;

/// How far a list came that could not be made valid for certain.
pub(super) enum Unpublished {
    /// The old one is valid.
    Not(io::Error),
    /// The new one is valid unless the machine crashes.
    NotForCertain(io::Error),
}

impl From<Unpublished> for io::Error {
    fn from(unpublished: Unpublished) -> io::Error {
        match unpublished {
            Unpublished::Not(error) | Unpublished::NotForCertain(error) => error,
        }
    }
}

/// Where a list and its files lie.
#[derive(Clone, Copy)]
pub(super) struct Listing<'a> {
    /// The file system.
    pub files: &'a dyn Files,
    /// What they are called.
    pub names: &'a Names,
}

impl Listing<'_> {
    /// Writes a list under its temporary name.
    pub(super) fn stage(&self, manifest: &Manifest) -> io::Result<()> {
        let file = self.files.create(&self.names.path(self.names.temporary_manifest()))?;
        file.write_all(&manifest.to_text())?;
        file.sync()
    }

    /// Makes the list that was staged the valid one.
    ///
    /// # Errors
    /// With how far it came.
    pub(super) fn commit(&self) -> Result<(), Unpublished> {
        let directory = self.names.directory();
        // What the list names survives a crash at least as well as the list.
        self.files.sync_directory(&directory).map_err(Unpublished::Not)?;
        let (from, to) = (self.names.path(self.names.temporary_manifest()), self.names.path(self.names.manifest()));
        self.files.rename(&from, &to).map_err(Unpublished::Not)?;
        self.files.sync_directory(&directory).map_err(Unpublished::NotForCertain)
    }

    /// Writes a list and makes it the valid one.
    ///
    /// # Errors
    /// With how far it came.
    pub(super) fn publish(&self, valid: &mut Manifest, manifest: Manifest) -> Result<(), Unpublished> {
        self.stage(&manifest).map_err(Unpublished::Not)?;
        self.publish_staged(valid, manifest)
    }

    /// Makes the list that was staged the valid one, and notes it as that.
    ///
    /// # Errors
    /// With how far it came.
    pub(super) fn publish_staged(&self, valid: &mut Manifest, manifest: Manifest) -> Result<(), Unpublished> {
        let committed = self.commit();
        if !matches!(committed, Err(Unpublished::Not(_))) {
            // It is what a start finds.
            *valid = manifest;
        }
        committed
    }

    /// Takes the increments that lack their base, from this number on, off the list and deletes them; tells whether there
    /// was one.
    ///
    /// # Errors
    /// When the list cannot be written: then it may still have them.
    pub(super) fn withdraw(&self, valid: &mut Manifest, from_seq: i64) -> io::Result<bool> {
        let mut manifest = valid.clone();
        if !manifest.withdraw_lacking(from_seq) {
            return Ok(false);
        }
        // As history first: a start that finds files which no list names refuses them.
        self.publish(valid, manifest)?;
        self.delete_history(valid);
        Ok(true)
    }

    /// Deletes files that are not needed, and then takes them off the list. What fails is tried again next time.
    pub(super) fn delete_history(&self, valid: &mut Manifest) {
        if valid.history.is_empty() {
            return;
        }
        let mut manifest = valid.clone();
        manifest.history.retain(|entry| {
            let removed = self.files.remove(&self.names.path(OsStr::from_bytes(&entry.name)));
            removed.is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
        });
        // A list that names files of no use does no harm, and one that names none must not be there.
        if !manifest.is_blank() {
            let _ = self.publish(valid, manifest);
        } else if self.delete_strays().is_ok() && self.files.remove(&self.names.path(self.names.manifest())).is_ok() {
            *valid = manifest;
            // If it fails, the list may be there once more after a crash, and names files that are gone.
            let _ = self.files.sync_directory(&self.names.directory());
        }
    }

    /// Deletes bases that no list names, and increments without a record, which rewrites left that were interrupted: without a
    /// list, a start would refuse them.
    fn delete_strays(&self) -> io::Result<()> {
        let listed = self.files.list(&self.names.directory())?.unwrap_or_default();
        let is_stray = |name: &OsString| match self.names.part(&name.to_string_lossy()) {
            Some((Kind::Base, _)) => true,
            Some((Kind::Increment, _)) => matches!(self.files.len(&self.names.path(name)), Ok(Some(0))),
            None => false,
        };
        listed.iter().filter(|name| is_stray(name)).try_for_each(|name| self.files.remove(&self.names.path(name)))
    }
}
