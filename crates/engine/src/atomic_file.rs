//! Putting a text in the place of a file as one step. Knows no text.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Puts `text` in the place of a file: a reader, or a crash at any moment, finds the old text or the new one.
pub(crate) fn write_atomically(path: &Path, text: &[u8]) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = directory.join(name);
    let write = || -> io::Result<()> {
        // The file may hold a password: nobody else gets to see it, unless the old file says otherwise.
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        if let Ok(old) = fs::metadata(path) {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        File::open(directory)?.sync_all()
    };
    let written = write();
    if written.is_err() {
        // It is gone already if only the last step failed.
        let _ = fs::remove_file(&temporary);
    }
    written
}
