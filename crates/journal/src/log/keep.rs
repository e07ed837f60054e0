//! Which bytes of the ring belong into which file, noted beside the ring for who finds both after the process was killed.
//! Knows no record.
//!
//! The notes are words of the region that the ring lies in:
//!
//! | words | |
//! | --- | --- |
//! | 0, 1 | a mark, there while the rest means something, and the number of this form |
//! | 2, 3 | when the machine was started |
//! | 4, 5 | bytes of the ring's blocks, and how many there are |
//! | 8 to 15, 16 to 23 | a file each: the how manieth it is, or 0 for none, its two numbers, from which position on it is written to, its length then, up to which position it is known to have been written, and, of who brings into it what was left, to which length the file is cut for that, plus 1, and from which position on |

use crate::files::{File, Kept};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tenon_ds::region::Region;
use tenon_ds::ring::{head_in, region_len};

const MARK: u64 = u64::from_le_bytes(*b"TENONLOG");
const FORM: u64 = 1;
const FILES_AT: usize = 8;
const FILE_WORDS: usize = 8;
const WRITTEN: usize = 5;
const CUT_TO: usize = 6;
const BROUGHT_FROM: usize = 7;
/// The one that is written to, and the one that it is gone on in.
const FILES: usize = 2;

/// The blocks of a ring of so many bytes, at least.
pub(super) fn blocks_for(ring_bytes: usize) -> usize {
    (ring_bytes / super::BLOCK_LEN).next_power_of_two().max(2)
}

/// Bytes of a region for a log with a ring of so many.
pub(super) fn memory_len(ring_bytes: usize) -> usize {
    region_len(super::BLOCK_LEN, blocks_for(ring_bytes))
}

/// A file, and what of the ring goes into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mapped {
    pub(super) identity: [u64; 2],
    /// Records from this position on are its.
    pub(super) begin: u64,
    /// What it held before them.
    pub(super) len: u64,
    /// Up to here it is known to have been written.
    pub(super) written: u64,
    /// Somebody has begun to bring into it what was left.
    pub(super) bringing: Option<Bringing>,
    /// Which of the notes it is.
    index: usize,
}

/// What is to be brought into a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bringing {
    /// The file is cut to this length before.
    pub(super) cut_to: u64,
    /// From this position on.
    pub(super) from: u64,
}

impl Mapped {
    /// A file that is empty or has `len` bytes, and gets the records from `begin` on.
    pub(super) fn new(identity: [u64; 2], begin: u64, len: u64) -> Mapped {
        Mapped { identity, begin, len, written: begin, bringing: None, index: 0 }
    }

    /// The position that belongs to a length of the file.
    pub(super) fn position(&self, len: u64) -> Option<u64> {
        len.checked_sub(self.len)?.checked_add(self.begin)
    }

    /// The length of the file that belongs to a position.
    pub(super) fn len_at(&self, position: u64) -> Option<u64> {
        position.checked_sub(self.begin)?.checked_add(self.len)
    }
}

/// Memory that outlives the process, with the notes of a log that runs.
pub(super) struct Keep {
    kept: Mutex<Option<Kept>>,
    region: Arc<Region>,
    /// How many files were begun.
    begun: AtomicU64,
}

impl Keep {
    /// Takes memory for a log: from now on what was in it means nothing.
    pub(super) fn begin(kept: Kept, blocks: usize) -> Keep {
        let era = kept.era();
        let keep = Keep { region: Arc::clone(kept.region()), kept: Mutex::new(Some(kept)), begun: AtomicU64::new(0) };
        keep.words()[0].store(0, Ordering::SeqCst);
        let values = [FORM, era[0], era[1], super::BLOCK_LEN as u64, blocks as u64];
        for (word, value) in keep.words()[1..].iter().zip(values) {
            word.store(value, Ordering::SeqCst);
        }
        for index in 0..FILES {
            file_words(keep.words(), index)[0].store(0, Ordering::SeqCst);
        }
        keep
    }

    /// Where the ring lies.
    pub(super) fn region(&self) -> &Arc<Region> {
        &self.region
    }

    fn kept(&self) -> MutexGuard<'_, Option<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn words(&self) -> &[AtomicU64] {
        self.region.words()
    }

    /// From now on the notes say something.
    pub(super) fn set_valid(&self) {
        self.words()[0].store(MARK, Ordering::SeqCst);
    }

    /// Records from this position on go into this file, behind `len` bytes. To be called while nobody appends any.
    pub(super) fn begin_file(&self, mapped: Mapped) {
        let free = (0..FILES).find(|&index| file_words(self.words(), index)[0].load(Ordering::SeqCst) == 0);
        // Never more than one switch is under way.
        let words = file_words(self.words(), free.expect("only two files are written to"));
        let [first, second] = mapped.identity;
        for (word, value) in words[1..].iter().zip([first, second, mapped.begin, mapped.len, mapped.written, 0, 0]) {
            word.store(value, Ordering::SeqCst);
        }
        words[0].store(self.begun.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
    }

    /// The file that is written to has everything before this position.
    pub(super) fn set_written(&self, position: u64) {
        // The first of those that are there is the one that is written to.
        let files = (0..FILES).map(|index| file_words(self.words(), index));
        let current = files.filter(|words| words[0].load(Ordering::Relaxed) > 0);
        if let Some(words) = current.min_by_key(|words| words[0].load(Ordering::Relaxed)) {
            words[WRITTEN].store(position, Ordering::Release);
        }
    }

    /// All that goes into files but the last is in them.
    pub(super) fn end_former_files(&self) {
        let last = self.begun.load(Ordering::SeqCst);
        for index in 0..FILES {
            let number = &file_words(self.words(), index)[0];
            if number.load(Ordering::SeqCst) != last {
                number.store(0, Ordering::SeqCst);
            }
        }
    }

    /// The files go on in a directory that was made anew.
    ///
    /// # Errors
    /// When what is in the ring would not be found there.
    pub(super) fn follow(&self, directory: &Path) -> io::Result<()> {
        self.kept().as_mut().map_or(Ok(()), |kept| kept.follow(directory))
    }

    /// Whether it would be found.
    pub(super) fn is_there(&self) -> bool {
        self.kept().as_ref().is_none_or(Kept::is_there)
    }

    /// Everything is in its files: nothing is to be found.
    pub(super) fn end(&self) {
        if let Some(kept) = self.kept().take() {
            self.words()[0].store(0, Ordering::SeqCst);
            kept.remove();
        }
    }

    /// The log has ended, and something is not in its files: who comes next finds it.
    pub(super) fn leave(&self) {
        *self.kept() = None;
    }
}

fn file_words(words: &[AtomicU64], index: usize) -> &[AtomicU64] {
    &words[FILES_AT + index * FILE_WORDS..][..FILE_WORDS]
}

/// Which file this is, with records from `begin` on behind what it holds.
///
/// # Errors
/// When its length is not known.
pub(super) fn mapped(file: &dyn File, begin: u64) -> io::Result<Option<Mapped>> {
    let len = file.size()?;
    Ok(file.identity().map(|identity| Mapped::new(identity, begin, len)))
}

/// What the notes say that a process has left, in the order of the positions; nothing if they are none, or of another time.
pub(super) fn left(kept: &Kept, blocks: usize) -> Vec<Mapped> {
    let words = kept.region().words();
    let load = |at: usize| words[at].load(Ordering::SeqCst);
    let era = kept.era();
    let expected = [MARK, FORM, era[0], era[1], super::BLOCK_LEN as u64, blocks as u64];
    if (0..expected.len()).any(|at| load(at) != expected[at]) {
        return Vec::new();
    }
    let mut files: Vec<(u64, Mapped)> = (0..FILES)
        .map(|index| {
            let [number, first, second, begin, len, written, cut_to, from] =
                std::array::from_fn(|word| file_words(words, index)[word].load(Ordering::SeqCst));
            let bringing = cut_to.checked_sub(1).map(|cut_to| Bringing { cut_to, from });
            (number, Mapped { identity: [first, second], begin, len, written, bringing, index })
        })
        .filter(|&(number, _)| number > 0)
        .collect();
    files.sort_by_key(|&(number, _)| number);
    files.into_iter().map(|(_, file)| file).collect()
}

/// Notes what is about to be brought into a file, so that whoever does it again knows.
pub(super) fn note_bringing(kept: &Kept, file: &Mapped, bringing: Bringing) {
    let words = file_words(kept.region().words(), file.index);
    words[BROUGHT_FROM].store(bringing.from, Ordering::SeqCst);
    words[CUT_TO].store(bringing.cut_to + 1, Ordering::SeqCst);
}

/// Has nothing be found any more.
pub(super) fn give_up(kept: &Kept) {
    kept.region().words()[0].store(0, Ordering::SeqCst);
}

/// Whether a region has records that are not in their file.
pub(super) fn holds_anything(region: &Arc<Region>) -> bool {
    let words = region.words();
    let numbers = (0..FILES).map(|index| file_words(words, index)).filter(|words| words[0].load(Ordering::SeqCst) > 0);
    // Of two the first may lack what lies before the second.
    let written = numbers.map(|words| words[WRITTEN].load(Ordering::SeqCst)).min();
    // What cannot be understood may be of another version.
    words[0].load(Ordering::SeqCst) != 0 && (words[1].load(Ordering::SeqCst) != FORM || written != head_in(region))
}
