//! What a killed process had appended and not written comes into its files, before anybody reads them. Knows no record.

use super::keep::{Bringing, Mapped, blocks_for, give_up, holds_anything, left, memory_len, note_bringing};
use super::trouble::words;
use super::{BLOCK_LEN, Settings};
use crate::files::{Files, Kept, Want};
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};
use tenon_ds::ring::{Remains, head_in};

/// So much of a file's end is compared with what the ring still has of it.
const COMPARED: usize = 64 << 10;

/// What was left, and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// So many bytes were put behind which files.
    pub brought: Vec<(PathBuf, u64)>,
    /// A file that is not as it was left: nothing was put behind it, nor behind later ones.
    pub changed: Option<PathBuf>,
    /// So many bytes had been reserved for records of which it is not known whether they are whole, or whose file is gone.
    pub given_up: u64,
    /// Why it could not be looked whether anything was left.
    pub not_looked: Option<String>,
}

/// Why what was left could not be brought into its files. All of it is there for the next attempt.
#[derive(Debug)]
pub enum NotBrought {
    /// It could not be looked whether there is any.
    NotLooked(io::Error),
    /// The file that it belongs to is not on the list, and it is not to be given up.
    NotListed {
        /// Where it lies meanwhile.
        left_in: PathBuf,
    },
    /// A file could not be looked at or written.
    NotWritten {
        /// Which file.
        path: PathBuf,
        /// Where it lies meanwhile.
        left_in: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}

/// What becomes of what was left for a file that is not on the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlisted {
    /// It is given up if the file is not there any more: the list is what is loaded. A file that is there is another log's.
    GivenUpIfGone,
    /// It stays where it is: the list may be another one.
    Stays,
}

/// What became of a file.
enum Outcome {
    /// It has all before this position, of which so many bytes are new; and whether that is all there was.
    Brought { end: u64, bytes: u64, is_all: bool },
    /// It is not as it was left.
    Changed,
}

/// Puts what a killed process had appended to a log in a directory, and not written, behind those of the files that it belongs
/// to, and syncs them. Nobody else may have the directory; `listed` are the log's increments in their order. What was just being
/// appended is left out: nobody was told of that.
///
/// # Errors
/// When it was found and a file cannot be looked at or written.
pub fn bring_left(
    files: &dyn Files,
    directory: &Path,
    listed: &[PathBuf],
    unlisted: Unlisted,
    settings: &Settings,
) -> Result<Left, NotBrought> {
    let kept = match files.kept_memory(directory, memory_len(settings.ring_bytes), Want::Left) {
        Ok(Some(kept)) => kept,
        Ok(None) => return Ok(Left::default()),
        Err(error) if passes(&error) => return Err(NotBrought::NotLooked(error)),
        // Nobody who starts here will overwrite it.
        Err(error) => return Ok(Left { not_looked: Some(words(&error)), ..Left::default() }),
    };
    if let Some(last) = last_of_another_list(files, &kept, listed, blocks_for(settings.ring_bytes)) {
        let stays = match unlisted {
            Unlisted::Stays => true,
            Unlisted::GivenUpIfGone => lies_in(files, directory, last).map_err(NotBrought::NotLooked)?,
        };
        if stays {
            return Err(NotBrought::NotListed { left_in: kept.path().to_owned() });
        }
    }
    let brought = bring_all(files, &kept, listed, blocks_for(settings.ring_bytes)).map_err(|(path, error)| {
        let left_in = kept.path().to_owned();
        NotBrought::NotWritten { path, left_in, error }
    })?;
    // It must not come behind what the next log writes.
    give_up(&kept);
    kept.remove();
    Ok(brought)
}

/// Whether memory that cannot be had now may be had a moment later, or by somebody else.
fn passes(error: &io::Error) -> bool {
    const ERRORS: [Errno; 4] = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::IO];
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy)
        || errno.is_some_and(|errno| ERRORS.contains(&errno))
}

/// Whether a process has left something in a directory's memory.
///
/// # Errors
/// When it cannot be looked.
pub fn is_left(files: &dyn Files, directory: &Path, settings: &Settings) -> io::Result<bool> {
    let kept = files.kept_memory(directory, memory_len(settings.ring_bytes), Want::Left)?;
    Ok(kept.is_some_and(|kept| holds_anything(kept.region())))
}

/// The last file for which something was left, if it is not on the list.
fn last_of_another_list(files: &dyn Files, kept: &Kept, listed: &[PathBuf], blocks: usize) -> Option<[u64; 2]> {
    let last = left(kept, blocks).pop().filter(|_| holds_anything(kept.region()))?.identity;
    matches!(find(files, listed, last), Ok(None)).then_some(last)
}

/// Whether a directory has this file, whatever it is called.
fn lies_in(files: &dyn Files, directory: &Path, identity: [u64; 2]) -> io::Result<bool> {
    let paths = files.list(directory)?.unwrap_or_default().into_iter().map(|name| directory.join(name));
    for path in paths {
        if files.identity(&path)? == Some(identity) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn bring_all(files: &dyn Files, kept: &Kept, listed: &[PathBuf], blocks: usize) -> Result<Left, (PathBuf, io::Error)> {
    let mapped = left(kept, blocks);
    let mut found = Vec::with_capacity(mapped.len());
    for file in &mapped {
        found.push(find(files, listed, file.identity)?);
    }
    let mut left = Left::default();
    let mut known_to = None;
    for (index, file) in mapped.iter().enumerate() {
        let limit = mapped.get(index + 1).map_or(u64::MAX, |next| next.begin);
        let Some(at) = found[index] else {
            // What is not on the list was replaced by a snapshot, if it is not the last one.
            known_to = Some(file.written);
            continue;
        };
        let path = &listed[at];
        let failed = |error| (path.clone(), error);
        let head = head_in(kept.region()).unwrap_or(u64::MAX);
        if file.written >= limit.min(head) && file.bringing.is_none() {
            // Nothing was left, whatever has become of the file since.
            known_to = None;
            continue;
        }
        let is_followed = is_followed_by_others(files, &listed[at + 1..], &found, at + 1).map_err(failed)?;
        let outcome = if is_followed { Ok(Outcome::Changed) } else { bring(files, kept, path, file, limit, blocks) };
        match outcome.map_err(failed)? {
            Outcome::Brought { end, bytes, is_all } => {
                if bytes > 0 {
                    left.brought.push((path.clone(), bytes));
                }
                known_to = (!is_all).then_some(end);
                if end < limit {
                    break;
                }
            }
            Outcome::Changed => {
                left.changed = Some(path.clone());
                known_to = None;
                break;
            }
        }
    }
    if let (Some(known_to), Some(head)) = (known_to, head_in(kept.region())) {
        left.given_up = head.saturating_sub(known_to);
    }
    Ok(left)
}

/// Which one on the list this file is.
fn find(files: &dyn Files, listed: &[PathBuf], identity: [u64; 2]) -> Result<Option<usize>, (PathBuf, io::Error)> {
    for (index, path) in listed.iter().enumerate() {
        if files.identity(path).map_err(|error| (path.clone(), error))? == Some(identity) {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// Whether somebody else has gone on in files behind one.
fn is_followed_by_others(
    files: &dyn Files,
    later: &[PathBuf],
    found: &[Option<usize>],
    first: usize,
) -> io::Result<bool> {
    for (index, path) in later.iter().enumerate() {
        if !found.contains(&Some(first + index)) && files.len(path)?.is_some_and(|len| len > 0) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Brings what lies before `limit` into a file.
fn bring(
    files: &dyn Files,
    kept: &Kept,
    path: &Path,
    mapped: &Mapped,
    limit: u64,
    blocks: usize,
) -> io::Result<Outcome> {
    let len = files.len(path)?.unwrap_or(0);
    // Who has brought some of it knew how the file had been left.
    let from = match mapped.bringing {
        Some(bringing) => Some(bringing.from),
        // Less than it is known to have had is what somebody has cut.
        None => mapped.position(len).filter(|&from| from >= mapped.written),
    };
    let Some(from) = from else { return Ok(Outcome::Changed) };
    if from >= limit {
        let nothing = Outcome::Brought { end: from, bytes: 0, is_all: true };
        return Ok(if from == limit { nothing } else { Outcome::Changed });
    }
    let Some(remains) = Remains::of(kept.region(), BLOCK_LEN, blocks, from) else { return Ok(Outcome::Changed) };
    let before = remains.before(COMPARED, mapped.begin);
    let found = remains.records(limit);
    let Some(cut_to) = mapped.len_at(found.start) else { return Ok(Outcome::Changed) };
    let Some(there) = len.checked_sub(cut_to) else { return Ok(Outcome::Changed) };
    let end = |bytes: &[u8]| files.read_end(path, bytes.len()).map(|end| end == bytes);
    if mapped.bringing.is_none() && !end(&before)? {
        return Ok(Outcome::Changed);
    }
    // What is there of it already: nothing, the part of a record that is to be cut off, or what an attempt before this one has brought.
    let there = files.read_end(path, usize::try_from(there).map_err(io::Error::other)?)?;
    let has_part = there.len() as u64 == from - found.start;
    let done = match found.bytes.starts_with(&there) {
        true => there.len(),
        false if has_part => 0,
        false => return Ok(Outcome::Changed),
    };
    if found.bytes.len() == done && (found.start == from || !has_part) {
        return Ok(Outcome::Brought { end: found.end, bytes: 0, is_all: found.is_all });
    }
    note_bringing(kept, mapped, Bringing { cut_to, from });
    let file = files.append(path)?;
    // To cut it where it ends would give back the room that was kept for what comes.
    if done == 0 && len > cut_to {
        file.truncate(cut_to)?;
    }
    file.write_all(&found.bytes[done..])?;
    file.sync()?;
    Ok(Outcome::Brought { end: found.end, bytes: (found.bytes.len() - done) as u64, is_all: found.is_all })
}
