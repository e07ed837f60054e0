//! Memory that outlives the process, for what it has confirmed and not written yet. Knows not what lies in it.
//!
//! It is a file of the machine's memory, `/dev/shm/tenon-log-DEVICE-INODE-BIRTH`, named by the directory that it belongs to, and
//! locked by the process that has it. A file on a disk would do it, too, but whoever writes to memory that lies in one waits
//! now and then until the system has brought a page of it to the disk: in `/dev/shm` nothing goes to a disk.

use super::disk::{self, may_become};
use super::memory::Memory;
use rustix::fs::{FallocateFlags, FlockOperation, OFlags, fallocate, flock, fstatfs};
use rustix::io::{Errno, retry_on_intr};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};
use tenon_ds::region::{Region, WORDS_LEN};

const ROOT: &str = "/dev/shm";
const PREFIX: &str = "tenon-log-";
/// What the kernel calls a file system in memory.
const TMPFS: i64 = 0x0102_1994;
/// The words of the region from this one on say to whom it belongs: length and bytes of the directory's path, behind the number
/// of what the process saw as its files.
const OWNER_AT: usize = 256;
/// How long the end of a process may take that had the directory: what it had is given back one by one.
const DYING_MAX: Duration = Duration::from_secs(1);
/// So long what is left is waited for whose directory is not there.
const WAITED_FOR: Duration = Duration::from_secs(24 * 3600);
/// No link is followed, and no pipe waited for: others may write in the folder, too.
const OPEN_FLAGS: i32 = (OFlags::NOFOLLOW.bits() | OFlags::CLOEXEC.bits() | OFlags::NONBLOCK.bits()).cast_signed();
/// The longest path that is noted.
const PATH_MAX: usize = 2000;

/// Whether to make what is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// What is left of a process that had it.
    Left,
    /// As much memory as is wanted, whatever is in it.
    Room,
}

/// Memory of a directory that nobody else has.
#[derive(Debug)]
pub struct Kept {
    region: Arc<Region>,
    era: [u64; 2],
    place: Place,
}

#[derive(Debug)]
enum Place {
    Shared { file: File, path: PathBuf },
    Memory { files: Memory, directory: PathBuf },
}

impl Kept {
    /// Of a file system in memory.
    pub(super) fn of_memory(files: &Memory, directory: &Path, region: Arc<Region>) -> Kept {
        let place = Place::Memory { files: files.clone(), directory: directory.to_owned() };
        Kept { region, era: [1, 1], place }
    }

    /// The memory: its owner has the first 256 words, and all behind the words.
    pub fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// Says when the machine was started: what was written to files since then is there, synced or not.
    pub fn era(&self) -> [u64; 2] {
        self.era
    }

    /// Where it lies, for who wants to remove it.
    pub fn path(&self) -> &Path {
        match &self.place {
            Place::Shared { path, .. } => path,
            Place::Memory { directory, .. } => directory,
        }
    }

    /// Nobody needs what is in it any more.
    pub fn remove(self) {
        match &self.place {
            // While it is locked: who waits for it sees that it is another one.
            Place::Shared { path, .. } => drop(fs::remove_file(path)),
            Place::Memory { files, directory } => files.forget_region(directory),
        }
    }

    /// That of a directory of the machine; nothing where there is none or, if it is to be made, none can be had.
    ///
    /// # Errors
    /// When it is another process's, or what the system says.
    pub(super) fn of(directory: &Path, len: usize, want: Want) -> io::Result<Option<Kept>> {
        let owner = match fs::metadata(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && want == Want::Left => return Ok(None),
            owner => owner?,
        };
        let path = Path::new(ROOT).join(name_of(&owner));
        // Where nothing can be had nothing was left, and nothing is to be made.
        let is_in_memory = match File::open(ROOT) {
            Ok(root) => fstatfs(&root)?.f_type == TMPFS,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        if !is_in_memory {
            let nothing = || Err(io::Error::other(format!("{ROOT} is not in memory")));
            return if want == Want::Left { Ok(None) } else { nothing() };
        }
        let era = era();
        // Without it nothing is made, and what is there cannot be told from what is older.
        let Some(file) = lock(&path, want == Want::Room && era.is_ok(), owner.uid())? else {
            return if want == Want::Left { Ok(None) } else { era.map(|_| None) };
        };
        let era = era?;
        if want == Want::Left && file.metadata()?.len() != len as u64 {
            // Of a version that had another form.
            return Ok(None);
        }
        let kept = || {
            if want == Want::Room {
                take_room(&file, len as u64)?;
            }
            Region::map(&file, len)
        };
        let region = kept().inspect_err(|_| {
            if want == Want::Room {
                let _ = fs::remove_file(&path);
            }
        })?;
        let kept = Kept { region: Arc::new(region), era, place: Place::Shared { file, path } };
        if want == Want::Room {
            kept.note_owner(directory);
        }
        Ok(Some(kept))
    }

    /// Belongs to this directory from now on: its own was removed and made anew.
    ///
    /// # Errors
    /// When it cannot be found by the new one.
    pub fn follow(&mut self, directory: &Path) -> io::Result<()> {
        let Place::Shared { path, .. } = &mut self.place else { return Ok(()) };
        let new = path_of(directory)?;
        if *path != new {
            fs::rename(&*path, &new)?;
            *path = new;
            self.note_owner(directory);
        }
        Ok(())
    }

    /// Whether whoever looks for it would find it: somebody may have removed it. Its time says from then on when its process was
    /// last there.
    pub fn is_there(&self) -> bool {
        match &self.place {
            Place::Shared { file, path } => {
                // Without it what is left would be removed sooner, where nobody comes for it.
                let _ = file.set_modified(SystemTime::now());
                is_at(file, path).unwrap_or(true)
            }
            Place::Memory { .. } => true,
        }
    }

    /// Removes what processes have left whose directories are gone, unless there is something to be had of it and they were there
    /// not long ago. Where it cannot be seen whether a directory is, in another container, what holds nothing goes.
    pub fn sweep(&self, holds_anything: impl Fn(&Arc<Region>) -> bool) {
        let Place::Shared { path: own, .. } = &self.place else { return };
        let listed = fs::read_dir(ROOT).into_iter().flatten().filter_map(Result::ok);
        let others = listed.filter(|entry| entry.file_name().as_bytes().starts_with(PREFIX.as_bytes()));
        for path in others.map(|entry| entry.path()).filter(|path| path != own) {
            let owner = seen_owner(&path);
            // Before it is locked: whoever starts in the directory must find it free.
            if owner == Owner::There {
                continue;
            }
            // What is somebody else's, or in use, stays.
            let Ok(Some(file)) = open_locked(&path, false, own_user()) else { continue };
            let len = file.metadata().map_or(0, |metadata| metadata.len() as usize);
            // The directory may be one that is mounted later.
            let is_empty =
                len < WORDS_LEN || Region::map(&file, len).is_ok_and(|region| !holds_anything(&Arc::new(region)));
            if is_empty || owner == Owner::Gone && is_old(&file) {
                let _ = fs::remove_file(&path);
            }
            let _ = flock(&file, FlockOperation::Unlock);
        }
    }

    fn note_owner(&self, directory: &Path) {
        let absolute = std::path::absolute(directory).unwrap_or_default();
        let path = absolute.as_os_str().as_bytes();
        let path = if path.len() <= PATH_MAX { path } else { &[] };
        let words = &self.region.words()[OWNER_AT..];
        words[0].store(namespace(), Ordering::Relaxed);
        words[1].store(path.len() as u64, Ordering::Relaxed);
        for (word, bytes) in words[2..].iter().zip(path.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(whole), Ordering::Relaxed);
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Place::Shared { file, .. } = &self.place {
            // A process that is being started has a descriptor until it runs its program.
            let _ = flock(file, FlockOperation::Unlock);
        }
    }
}

/// Opens a file and locks it; nothing when it is not there and not to be made. Of a process that was killed it is free a moment
/// later.
fn lock(path: &Path, makes: bool, owner: u32) -> io::Result<Option<File>> {
    let until = Instant::now() + DYING_MAX;
    loop {
        match open_locked(path, makes, owner) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(1));
            }
            opened => return opened,
        }
    }
}

/// Where that of a directory lies.
fn path_of(directory: &Path) -> io::Result<PathBuf> {
    Ok(Path::new(ROOT).join(name_of(&fs::metadata(directory)?)))
}

/// How that of a directory is called. A number of one that was removed may be another one's later, so the time of its birth
/// belongs to it, where that is known.
fn name_of(owner: &fs::Metadata) -> String {
    let [_, born] = disk::identity(owner).unwrap_or_default();
    format!("{PREFIX}{:x}-{:x}-{born:x}", owner.dev(), owner.ino())
}

/// Whether its process has long not been there.
fn is_old(file: &File) -> bool {
    let age = file.metadata().and_then(|metadata| metadata.modified()).map(|then| then.elapsed());
    matches!(age, Ok(Ok(age)) if age > WAITED_FOR)
}

/// Whether a file has this name.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let metadata = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (metadata.dev(), metadata.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether what was to be opened is no file that can be written: a link, a directory, a socket.
fn is_another_kind(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    errno.is_some_and(|errno| [Errno::LOOP, Errno::ISDIR, Errno::NXIO, Errno::ROFS, Errno::ACCESS].contains(&errno))
}

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// It may be what one looks for, and is not to be taken for that: who owns it could have root write what he likes, and where.
fn owners(path: &Path, owner: u32) -> io::Error {
    let path = path.display();
    let what = format!("{path} is of user {owner}, to whom the directory belongs: run this as that user, or remove it");
    io::Error::new(io::ErrorKind::ResourceBusy, what)
}

fn somebody_elses(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, format!("{} is somebody else's", path.display()))
}

fn open_locked(path: &Path, makes: bool, owner: u32) -> io::Result<Option<File>> {
    loop {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(makes).mode(0o600).custom_flags(OPEN_FLAGS);
        let opened = options.open(path);
        let file = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !makes => return Ok(None),
            // Others may put there what they like.
            Err(error) if is_another_kind(&error) => return Err(somebody_elses(path)),
            opened => opened?,
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.uid() != own_user() {
            let is_owners = metadata.is_file() && metadata.uid() == owner;
            return Err(if is_owners { owners(path, owner) } else { somebody_elses(path) });
        }
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(io::Error::new(io::ErrorKind::WouldBlock, format!("{} is in use", path.display())));
            }
            Err(error) => return Err(error.into()),
        }
        // Who had it may have removed it before it let go.
        if is_at(&file, path).unwrap_or(false) {
            return Ok(Some(file));
        }
    }
}

/// Has the system keep all of the room: who touches a page that it then has not is ended.
fn take_room(file: &File, len: u64) -> io::Result<()> {
    // The signal would end the process.
    may_become(len)?;
    if file.metadata()?.len() != len {
        file.set_len(0)?;
        file.set_len(len)?;
    }
    Ok(retry_on_intr(|| fallocate(file, FallocateFlags::empty(), 0, len))?)
}

/// When the machine was started, as the kernel tells it: a number by chance.
fn era() -> io::Result<[u64; 2]> {
    let mut text = String::new();
    File::open("/proc/sys/kernel/random/boot_id")?.take(64).read_to_string(&mut text)?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let number = u128::from_str_radix(&digits, 16).map_err(io::Error::other)?;
    Ok([(number >> 64) as u64, number as u64])
}

/// Which files this process sees, as a number.
fn namespace() -> u64 {
    fs::metadata("/proc/self/ns/mnt").map_or(0, |metadata| metadata.ino())
}

/// What is seen of the directory that one belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    There,
    Gone,
    /// Its process saw other files than this one.
    Elsewhere,
}

/// What this process sees of the directory that it belongs to; one of which that is not known is there.
fn seen_owner(path: &Path) -> Owner {
    let Ok(file) = OpenOptions::new().read(true).custom_flags(OPEN_FLAGS).open(path) else { return Owner::There };
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Owner::There;
    }
    let mut owner = vec![0; 16 + PATH_MAX];
    if file.read_exact_at(&mut owner, (OWNER_AT * size_of::<u64>()) as u64).is_err() {
        return Owner::There;
    }
    let word = |at: usize| u64::from_ne_bytes(owner[at..at + 8].try_into().expect("eight bytes"));
    let (seen_by, len) = (word(0), word(8) as usize);
    if len == 0 || len > PATH_MAX {
        return Owner::There;
    }
    if seen_by != namespace() {
        return Owner::Elsewhere;
    }
    let is_there = match fs::metadata(OsStr::from_bytes(&owner[16..16 + len])) {
        Ok(found) => path.file_name() == Some(name_of(&found).as_ref()),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    };
    if is_there { Owner::There } else { Owner::Gone }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    const LEN: usize = 8192;

    /// A directory of this test's own; nothing where the system has no such memory.
    fn directory(name: &str) -> Option<PathBuf> {
        let is_there = fs::File::open(ROOT).is_ok_and(|root| fstatfs(&root).is_ok_and(|it| it.f_type == TMPFS));
        let path = std::env::temp_dir().join(format!("tenon-kept-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("it can be made");
        is_there.then_some(path)
    }

    fn kept(directory: &Path, want: Want) -> Option<Kept> {
        Kept::of(directory, LEN, want).expect("there is memory")
    }

    #[test]
    fn what_one_has_left_the_next_one_finds() {
        let Some(directory) = directory("left") else { return };
        assert!(kept(&directory, Want::Left).is_none());
        let first = kept(&directory, Want::Room).expect("it is made");
        first.region().words()[9].store(7, Ordering::Relaxed);
        let path = first.path().to_owned();
        assert_eq!(fs::metadata(&path).expect("it is there").mode() & 0o777, 0o600);
        let refused = Kept::of(&directory, LEN, Want::Left).expect_err("the first one has it");
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        drop(first);
        assert!(Kept::of(&directory, 2 * LEN, Want::Left).expect("it is free").is_none(), "it is another form's");
        let second = kept(&directory, Want::Left).expect("it was left");
        assert_eq!(second.region().words()[9].load(Ordering::Relaxed), 7);
        assert_eq!(second.era(), era().expect("the kernel tells it"));
        second.remove();
        assert!(!path.exists() && kept(&directory, Want::Left).is_none());
        fs::remove_dir(&directory).expect("it is empty");
    }

    #[test]
    fn what_was_left_of_directories_that_are_gone_is_removed() {
        let Some(gone) = directory("gone") else { return };
        // In this order: a directory that is made later may have the number of one that has gone.
        let [there, mounted_later, other] =
            ["there", "mounted", "other"].map(|name| directory(name).expect("there is memory"));
        let [of_gone, of_there, of_mounted_later] =
            [(&gone, 0), (&there, 0), (&mounted_later, 7)].map(|(directory, word)| {
                let kept = kept(directory, Want::Room).expect("it is made");
                kept.region().words()[9].store(word, Ordering::Relaxed);
                kept.path().to_owned()
            });
        let in_use = kept(&there, Want::Room).expect("it is free");
        in_use.sweep(|_| false);
        assert!(of_gone.exists(), "its directory is there");
        drop(in_use);
        fs::remove_dir(&gone).expect("it is empty");
        fs::remove_dir(&mounted_later).expect("it is empty");
        let of_other = kept(&other, Want::Room).expect("it is made");
        of_other.sweep(|region| region.words()[9].load(Ordering::Relaxed) == 7);
        assert!(!of_gone.exists() && of_there.exists() && of_mounted_later.exists());
        let file = OpenOptions::new().write(true).open(&of_mounted_later).expect("it is there");
        file.set_modified(SystemTime::now() - 2 * WAITED_FOR).expect("it is its own");
        of_other.sweep(|_| true);
        assert!(!of_mounted_later.exists() && of_there.exists(), "nobody has come for it");
        // Of one that this process cannot see it is not known that it is gone.
        let elsewhere = kept(&there, Want::Room).expect("it is free");
        elsewhere.region().words()[OWNER_AT].fetch_add(1, Ordering::Relaxed);
        drop(elsewhere);
        let file = OpenOptions::new().write(true).open(&of_there).expect("it is there");
        file.set_modified(SystemTime::now() - 2 * WAITED_FOR).expect("it is its own");
        of_other.sweep(|_| true);
        assert!(of_there.exists());
        of_other.sweep(|_| false);
        assert!(!of_there.exists(), "nobody misses it");
        of_other.remove();
        fs::remove_dir(&there).expect("it is empty");
        fs::remove_dir(&other).expect("it is empty");
    }

    #[test]
    fn root_is_told_whose_it_is() {
        const NOBODY: u32 = 65_534;
        let Some(directory) = directory("root") else { return };
        let path = kept(&directory, Want::Room).expect("it is made").path().to_owned();
        if own_user() == 0 {
            let give = |path: &Path| std::os::unix::fs::chown(path, Some(NOBODY), None).expect("root may");
            let refused = || Kept::of(&directory, LEN, Want::Left).expect_err("it is not root's");
            give(&path);
            assert_eq!(refused().kind(), io::ErrorKind::PermissionDenied, "the directory is root's");
            give(&directory);
            assert_eq!(refused().kind(), io::ErrorKind::ResourceBusy);
            assert!(refused().to_string().contains("is of user 65534"), "{}", refused());
        }
        fs::remove_file(&path).expect("it is there");
        fs::remove_dir(&directory).expect("it is empty");
    }

    #[test]
    fn it_follows_a_directory_that_is_made_anew() {
        let Some(directory) = directory("anew") else { return };
        let mut own = kept(&directory, Want::Room).expect("it is made");
        // So that the new one is another one.
        fs::rename(&directory, directory.with_extension("old")).expect("it is there");
        fs::create_dir(&directory).expect("it can be made");
        own.follow(&directory).expect("it can be moved");
        assert!(own.is_there());
        drop(own);
        let found = kept(&directory, Want::Left).expect("it was left");
        fs::remove_file(found.path()).expect("it is there");
        assert!(!found.is_there());
        fs::remove_dir(&directory).expect("it is empty");
        fs::remove_dir(directory.with_extension("old")).expect("it is empty");
    }

    #[test]
    fn nobody_waits_for_what_others_put_there() {
        let Some(directory) = directory("pipe") else { return };
        let own = kept(&directory, Want::Room).expect("it is made");
        let pipe = Path::new(ROOT).join(format!("{PREFIX}pipe-{}", std::process::id()));
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).expect("it can be made");
        own.sweep(|_| true);
        assert!(Kept::of(&directory, LEN, Want::Room).is_err(), "it is in use");
        fs::remove_file(&pipe).expect("it is there");
        own.remove();
        fs::remove_dir(&directory).expect("it is empty");
    }

    #[test]
    fn what_is_no_file_of_ones_own_is_left_alone() {
        let Some(directory) = directory("link") else { return };
        let path = kept(&directory, Want::Room).expect("it is made").path().to_owned();
        fs::remove_file(&path).expect("it is there");
        let target = directory.join("target");
        fs::write(&target, "as it was").expect("there is room");
        let refused = |want| {
            let error = Kept::of(&directory, LEN, want).expect_err("it is no file");
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
            assert_eq!(error.to_string(), format!("{} is somebody else's", path.display()));
        };
        std::os::unix::fs::symlink(&target, &path).expect("it can be made");
        [Want::Room, Want::Left].into_iter().for_each(refused);
        assert_eq!(fs::read(&target).expect("it is there"), b"as it was");
        fs::remove_file(&path).expect("it is there");
        fs::create_dir(&path).expect("it can be made");
        [Want::Room, Want::Left].into_iter().for_each(refused);
        fs::remove_dir(&path).expect("it is there");
        let socket = std::os::unix::net::UnixListener::bind(&path).expect("it can be made");
        [Want::Room, Want::Left].into_iter().for_each(refused);
        drop(socket);
        fs::remove_file(&path).expect("it is there");
        fs::remove_dir_all(&directory).expect("it is there");
    }
}
