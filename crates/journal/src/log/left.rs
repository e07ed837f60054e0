//! What a killed process had appended and not written comes into its files, before anybody reads them. Knows no record.

use super::keep::{Mapped, blocks_for, left, memory_len};
use super::trouble::words;
use super::{BLOCK_LEN, Settings};
use crate::files::{File, Files, Kept, Want};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tenon_ds::ring::Remains;

/// So much of a file's end is compared with what the ring still has of it.
const COMPARED: usize = 64 << 10;

/// What was left, and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// So many bytes were put behind which files.
    pub brought: Vec<(PathBuf, u64)>,
    /// A file that is not as it was left: nothing was put behind it, nor behind later ones.
    pub changed: Option<PathBuf>,
    /// Why it could not be looked whether anything was left.
    pub not_looked: Option<String>,
}

/// Why what was left could not be brought into its files. All of it is there for the next attempt.
#[derive(Debug)]
pub struct NotBrought {
    /// Which file.
    pub path: PathBuf,
    /// Where it lies meanwhile.
    pub left_in: PathBuf,
    /// What the system says.
    pub error: io::Error,
}

/// Puts what a killed process had appended to a log in a directory, and not written, behind those of the files that it belongs
/// to, and syncs them. Nobody else may have the directory. What was just being appended is left out: nobody was told of that.
///
/// # Errors
/// When it was found and a file cannot be written.
pub fn bring_left(
    files: &dyn Files,
    directory: &Path,
    listed: &[PathBuf],
    settings: &Settings,
) -> Result<Left, NotBrought> {
    if listed.is_empty() {
        return Ok(Left::default());
    }
    let blocks = blocks_for(settings.ring_bytes);
    let kept = match files.kept_memory(directory, memory_len(settings.ring_bytes), Want::Left) {
        Ok(Some(kept)) => kept,
        Ok(None) => return Ok(Left::default()),
        Err(error) => return Ok(Left { not_looked: Some(words(&error)), ..Left::default() }),
    };
    let mut brought = Left::default();
    let mapped = left(&kept, blocks);
    for (index, file) in mapped.iter().enumerate() {
        let limit = mapped.get(index + 1).map_or(u64::MAX, |next| next.begin);
        // What is not on the list was replaced by a snapshot.
        let Some((path, open)) = find(files, listed, file.identity) else { continue };
        let not_brought = |error| NotBrought { path: path.clone(), left_in: kept.path().to_owned(), error };
        let end = match bring(files, &kept, (&path, &*open), file, limit, blocks).map_err(not_brought)? {
            Some((end, bytes)) => {
                if bytes > 0 {
                    brought.brought.push((path, bytes));
                }
                end
            }
            None => {
                brought.changed = Some(path);
                break;
            }
        };
        if end < limit {
            break;
        }
    }
    // It must not come behind what the next log writes.
    kept.region().words()[0].store(0, Ordering::SeqCst);
    kept.remove();
    Ok(brought)
}

/// The file on the list that is this one.
fn find(files: &dyn Files, listed: &[PathBuf], identity: [u64; 2]) -> Option<(PathBuf, Arc<dyn File>)> {
    listed.iter().find_map(|path| {
        files.len(path).ok().flatten()?;
        let file = files.append(path).ok()?;
        (file.identity() == Some(identity)).then(|| (path.clone(), file))
    })
}

/// Brings what lies before `limit` into a file: up to which position, and how many bytes. Nothing when the file is not as it
/// was left.
fn bring(
    files: &dyn Files,
    kept: &Kept,
    (path, file): (&Path, &dyn File),
    mapped: &Mapped,
    limit: u64,
    blocks: usize,
) -> io::Result<Option<(u64, u64)>> {
    let len = file.size()?;
    let Some(written) = len.checked_sub(mapped.len) else { return Ok(None) };
    let from = mapped.begin + written;
    if from >= limit {
        return Ok((from == limit).then_some((from, 0)));
    }
    let Some(remains) = Remains::of(kept.region(), BLOCK_LEN, blocks, from) else { return Ok(None) };
    let before = remains.before(COMPARED, mapped.begin);
    if files.read_end(path, before.len())? != before {
        return Ok(None);
    }
    let (end, bytes) = remains.records(limit);
    if bytes.is_empty() {
        return Ok(Some((end, 0)));
    }
    let write = || {
        file.write_all(&bytes)?;
        file.sync()
    };
    if let Err(error) = write() {
        // Its beginning would do no harm: the rest follows it.
        let _ = file.truncate(len);
        return Err(error);
    }
    Ok(Some((end, bytes.len() as u64)))
}
