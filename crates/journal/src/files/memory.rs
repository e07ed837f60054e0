//! A file system in memory that can lose power: for tests of what a crash leaves. Knows nothing of what is written.
//!
//! What a crash leaves: of each file what was synced, and of the writes behind it as much as chance lets through, the
//! last one perhaps in part, or with a block of zeros where its length came through and its bytes did not; of each
//! directory the names as they were when it was synced, and of the later changes the first few, in their order.

use super::{File, Files, Kept, Want};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, IoSlice, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use tenon_ds::region::Region;

/// The file system; clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    directories: Vec<PathBuf>,
    /// Names as running programs see them.
    names: BTreeMap<PathBuf, Inode>,
    /// Names as they are certain to survive.
    durable_names: BTreeMap<PathBuf, Inode>,
    /// Changes to names that are not certain.
    changes: Vec<Change>,
    inodes: Vec<Content>,
    /// What outlives processes, of directories; it goes with the power.
    regions: BTreeMap<PathBuf, Arc<Region>>,
    /// Calls so far, and the one at which the power goes.
    calls: u64,
    power_goes_at: Option<u64>,
}

type Inode = usize;

#[derive(Clone, Debug)]
struct Change {
    directory: PathBuf,
    removed: Option<PathBuf>,
    added: Option<(PathBuf, Inode)>,
}

#[derive(Debug, Default)]
struct Content {
    bytes: Vec<u8>,
    /// What is certain to survive.
    durable: Vec<u8>,
    /// Lengths behind each write or cut since.
    steps: Vec<usize>,
}

impl Memory {
    /// An empty file system.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// Calls that change or sync something, so far.
    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// Lets the power go at the call of this number, counted from 0: it and all later ones fail.
    pub fn lose_power_at(&self, call: u64) {
        self.lock().power_goes_at = Some(call);
    }

    /// What a crash now leaves, as a file system of its own. `chance` gives a number below the one it is given.
    pub fn after_crash(&self, mut chance: impl FnMut(usize) -> usize) -> Memory {
        let state = self.lock();
        let mut names = state.durable_names.clone();
        let mut kept = BTreeMap::new();
        for change in &state.changes {
            let of_directory: Vec<&Change> =
                state.changes.iter().filter(|other| other.directory == change.directory).collect();
            let all = of_directory.len();
            let (kept, seen) = kept.entry(change.directory.clone()).or_insert_with(|| (chance(all + 1), 0usize));
            if *seen < *kept {
                change.apply(&mut names);
            }
            *seen += 1;
        }
        let inodes = state.inodes.iter().map(|content| content.after_crash(&mut chance)).collect();
        let directories = state.directories.clone();
        let durable_names = names.clone();
        let state = State { directories, names, durable_names, inodes, ..State::default() };
        Memory { state: Arc::new(Mutex::new(state)) }
    }

    /// The bytes of a file, if there is one.
    pub fn content(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.lock();
        state.names.get(path).map(|&inode| state.inodes[inode].bytes.clone())
    }

    /// Puts a file there, synced.
    pub fn put(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.lock();
        let inode = state.inodes.len();
        state.inodes.push(Content { bytes: bytes.to_vec(), durable: bytes.to_vec(), steps: Vec::new() });
        state.names.insert(path.to_owned(), inode);
        state.durable_names.insert(path.to_owned(), inode);
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        if !state.directories.contains(&directory) {
            state.directories.push(directory);
        }
    }

    pub(super) fn forget_region(&self, directory: &Path) {
        self.lock().regions.remove(directory);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The state, for a call that changes something.
    fn change(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.lock();
        let call = state.calls;
        state.calls += 1;
        if state.power_goes_at.is_some_and(|at| call >= at) {
            return Err(io::Error::other("the power is gone"));
        }
        Ok(state)
    }
}

impl Change {
    fn apply(&self, names: &mut BTreeMap<PathBuf, Inode>) {
        if let Some(path) = &self.removed {
            names.remove(path);
        }
        if let Some((path, inode)) = &self.added {
            names.insert(path.clone(), *inode);
        }
    }
}

impl Content {
    fn after_crash(&self, chance: &mut impl FnMut(usize) -> usize) -> Content {
        let mut bytes = self.durable.clone();
        let steps = chance(self.steps.len() + 1);
        if steps > 0 {
            let len = self.steps[steps - 1];
            let before = if steps > 1 { self.steps[steps - 2] } else { self.durable.len() };
            bytes = self.bytes[..len.min(self.bytes.len())].to_vec();
            if len > before && bytes.len() == len {
                // The last write came through whole, in part, or as a length with zeros behind.
                let torn = before + chance(len - before + 1);
                match chance(3) {
                    0 => bytes.truncate(torn),
                    1 => bytes[torn..].fill(0),
                    _ => {}
                }
            }
        }
        Content { durable: bytes.clone(), bytes, steps: Vec::new() }
    }
}

impl State {
    fn change_name(&mut self, removed: Option<&Path>, added: Option<(&Path, Inode)>) {
        let path = added.map(|(path, _)| path).or(removed).expect("one of them is there");
        let change = Change {
            directory: path.parent().unwrap_or(Path::new("")).to_owned(),
            removed: removed.map(Path::to_owned),
            added: added.map(|(path, inode)| (path.to_owned(), inode)),
        };
        change.apply(&mut self.names);
        self.changes.push(change);
    }

    fn open(&mut self, path: &Path) -> io::Result<Inode> {
        let directory = path.parent().unwrap_or(Path::new(""));
        if directory != Path::new("") && !self.directories.iter().any(|known| known == directory) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if let Some(&inode) = self.names.get(path) {
            return Ok(inode);
        }
        let inode = self.inodes.len();
        self.inodes.push(Content::default());
        self.change_name(None, Some((path, inode)));
        Ok(inode)
    }
}

#[derive(Debug)]
struct Open {
    files: Memory,
    inode: Inode,
}

impl Files for Memory {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let inode = self.change()?.open(path)?;
        let file = Open { files: self.clone(), inode };
        file.truncate(0)?;
        Ok(Arc::new(file))
    }

    fn append(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let inode = self.change()?.open(path)?;
        Ok(Arc::new(Open { files: self.clone(), inode }))
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        let bytes = self.content(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(io::Cursor::new(bytes)))
    }

    fn len(&self, path: &Path) -> io::Result<Option<u64>> {
        Ok(self.content(path).map(|bytes| bytes.len() as u64))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.change()?;
        let inode = *state.names.get(from).ok_or(io::ErrorKind::NotFound)?;
        // One step, wherever they lie: no file system has a file in neither place, or in both.
        state.change_name(Some(from), Some((to, inode)));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.change()?;
        if !state.names.contains_key(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.change_name(Some(path), None);
        Ok(())
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        let mut state = self.change()?;
        if !state.directories.iter().any(|known| known == path) {
            state.directories.push(path.to_owned());
        }
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Option<Vec<OsString>>> {
        let state = self.lock();
        if !state.directories.iter().any(|known| known == path) {
            return Ok(None);
        }
        let here = state.names.keys().filter(|name| name.parent() == Some(path));
        Ok(Some(here.filter_map(|name| name.file_name()).map(OsString::from).collect()))
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        let mut state = self.change()?;
        let (synced, rest) = std::mem::take(&mut state.changes).into_iter().partition(|c| c.directory == path);
        state.changes = rest;
        let synced: Vec<Change> = synced;
        for change in synced {
            change.apply(&mut state.durable_names);
        }
        Ok(())
    }

    fn kept_memory(&self, directory: &Path, len: usize, want: Want) -> io::Result<Option<Kept>> {
        let mut state = self.lock();
        if want == Want::Room && state.regions.get(directory).is_none_or(|region| region.len() != len) {
            state.regions.insert(directory.to_owned(), Arc::new(Region::zeroed(len)));
        }
        let region = state.regions.get(directory).filter(|region| region.len() == len).map(Arc::clone);
        Ok(region.map(|region| Kept::of_memory(self, directory, region)))
    }

    fn identity(&self, path: &Path) -> io::Result<Option<[u64; 2]>> {
        Ok(self.lock().names.get(path).map(|&inode| [inode as u64, 0]))
    }

    fn read_end(&self, path: &Path, len: usize) -> io::Result<Vec<u8>> {
        let bytes = self.content(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(bytes[bytes.len().saturating_sub(len)..].to_vec())
    }
}

impl File for Open {
    fn write(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut state = self.files.change()?;
        let content = &mut state.inodes[self.inode];
        bytes.iter().for_each(|slice| content.bytes.extend_from_slice(slice));
        content.steps.push(content.bytes.len());
        Ok(bytes.iter().map(|slice| slice.len()).sum())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.files.change()?;
        let content = &mut state.inodes[self.inode];
        content.durable = content.bytes.clone();
        content.steps.clear();
        Ok(())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let mut state = self.files.change()?;
        let content = &mut state.inodes[self.inode];
        let len = usize::try_from(len).map_err(io::Error::other)?;
        content.bytes.resize(len, 0);
        content.steps.push(len);
        Ok(())
    }

    fn identity(&self) -> Option<[u64; 2]> {
        Some([self.inode as u64, 0])
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.files.lock().inodes[self.inode].bytes.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(file: &Arc<dyn File>, bytes: &[u8]) {
        file.write_all(bytes).expect("it has power");
    }

    #[test]
    fn what_was_synced_survives() {
        let files = Memory::new();
        let (old, new) = (Path::new("d/old"), Path::new("d/new"));
        files.create_directory(Path::new("d")).expect("it has power");
        let file = files.create(old).expect("it has power");
        write(&file, b"certain");
        file.sync().expect("it has power");
        assert_eq!(files.after_crash(|_| 0).content(old), None, "its name was not synced");
        files.sync_directory(Path::new("d")).expect("it has power");
        write(&file, b", perhaps");
        assert_eq!(files.after_crash(|_| 0).content(old).as_deref(), Some(&b"certain"[..]));
        let lucky = files.after_crash(|below| below - 1);
        assert_eq!(lucky.content(old).as_deref(), Some(&b"certain, perhaps"[..]));
        files.rename(old, new).expect("it has power");
        assert_eq!(files.after_crash(|_| 0).content(new), None);
        assert!(files.after_crash(|below| below - 1).content(new).is_some());
    }

    #[test]
    fn without_power_nothing_goes_on() {
        let files = Memory::new();
        files.create_directory(Path::new("d")).expect("it has power");
        files.lose_power_at(files.calls() + 1);
        let file = files.append(Path::new("d/f")).expect("it has power");
        assert!(file.sync().is_err() && files.remove(Path::new("d/f")).is_err());
    }
}
