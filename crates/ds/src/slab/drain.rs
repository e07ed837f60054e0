//! Emptying spans of which little is used. Knows not who owns the blocks, which moves them.

use super::classes::{CLASSES, SLAB_MAX};
use super::heap::{DRAIN_MAX, Heap};
use super::lease::own_heap;
use super::span::{SPAN_BYTES, Span, first_block, link, span_of, start_of, unlink};
use super::spare::release_pages;
use crate::pages::PAGE;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Which spans may be draining: a bit for each, by its address. Bits of spans that no longer are stay set until no
/// heap drains any; whoever finds one asks `is_draining`.
static MAY_DRAIN: [AtomicU64; FILTER_WORDS] = [const { AtomicU64::new(0) }; FILTER_WORDS];
/// Heaps that have draining spans. Held while bits are set and while all are cleared, so that none is lost.
static DRAINING_HEAPS: Mutex<usize> = Mutex::new(0);
/// Less memory than this is not worth emptying a class's spans for: a fresh one has pages that are not full either.
const WON_MIN: usize = 4 * PAGE;
/// Eighths that a span is used to when it may still be emptied: with more it is left alone.
const EIGHTHS: usize = 7;
/// As many bits as there are spans in 4 GiB: two spans share a bit only when they lie so far apart.
const FILTER_WORDS: usize = 256;

/// The word and bit of the filter for the span that an address lies in.
#[inline]
fn filter_bit(address: usize) -> (usize, u64) {
    let span = address / SPAN_BYTES;
    (span / 64 % FILTER_WORDS, 1 << (span % 64))
}

/// How full a span is.
struct Fill {
    /// Bytes that were given out once.
    touched: usize,
    /// Bytes that are.
    used: usize,
}

impl Fill {
    /// # Safety
    /// The span is live and the caller's.
    unsafe fn of(span: *mut Span) -> Fill {
        // SAFETY: as the function's contract says.
        unsafe {
            let used = (*span).used as usize * (*span).block_bytes as usize;
            Fill { touched: (*span).bump as usize - first_block(span), used }
        }
    }

    fn wasted(&self) -> usize {
        self.touched - self.used
    }

    /// Eighths begun of what was touched, less one: `EIGHTHS` is as good as full.
    fn eighths(&self) -> usize {
        (self.used * 8).div_ceil(self.touched.max(1)).saturating_sub(1).min(EIGHTHS)
    }
}

fn draining_heaps() -> MutexGuard<'static, usize> {
    DRAINING_HEAPS.lock().expect("no code panics while it holds the count")
}

impl Heap {
    /// Calls `visit` for each span of the class with room, which it may take out of its list.
    ///
    /// # Safety
    /// The caller owns the heap.
    unsafe fn each_with_room(&self, class: usize, mut visit: impl FnMut(*mut Span)) {
        // SAFETY: the caller owns the heap; spans in its lists are live, and the next one is read before `visit`.
        unsafe {
            let mut span = (*self.bins.get())[class];
            while !span.is_null() {
                let next = (*span).next;
                visit(span);
                span = next;
            }
        }
    }

    /// Gives back the pages that spans with room have kept from an earlier life and not filled again: those of a class of
    /// which little is needed would stay.
    ///
    /// # Safety
    /// The caller owns the heap.
    unsafe fn release_kept(&self) {
        for class in 0..CLASSES {
            // SAFETY: the caller owns the heap; only its live spans are passed, of which nothing is used behind `bump`.
            unsafe {
                self.each_with_room(class, |span| {
                    let bump = (*span).bump as usize;
                    if (*span).kept as usize > bump.next_multiple_of(PAGE) {
                        release_pages(span, bump);
                        (*span).kept = 0;
                    }
                })
            };
        }
    }

    /// Up to how many eighths a span may be used that is to be emptied: no more than needed for half of the waste, as the
    /// emptiest cost least to move.
    ///
    /// # Safety
    /// The caller owns the heap.
    unsafe fn fill_max(&self) -> usize {
        let mut wasted = [0; EIGHTHS];
        for class in 0..CLASSES {
            // SAFETY: the caller owns the heap; only its live spans are passed.
            unsafe {
                self.each_with_room(class, |span| {
                    if let Some(wasted) = wasted.get_mut(Fill::of(span).eighths()) {
                        *wasted += Fill::of(span).wasted();
                    }
                })
            };
        }
        let most: usize = wasted.iter().sum();
        let mut sum = 0;
        let enough = |wasted: &usize| {
            sum += wasted;
            sum * 2 >= most
        };
        wasted.iter().position(enough).unwrap_or(EIGHTHS - 1)
    }

    /// Marks the spans of a class that are used up to so many eighths, as far as they hold no more than so many bytes; gives
    /// what is left of these. One alone is enough: what is left in it takes the first pages of a fresh one, of which the
    /// others are not touched.
    ///
    /// # Safety
    /// The caller owns the heap and holds `DRAINING_HEAPS`.
    unsafe fn drain_class(&self, class: usize, fill_max: usize, mut bytes_left: usize) -> usize {
        // SAFETY: the caller owns the heap; only its live spans are passed.
        unsafe {
            let is_sparse = |span: *mut Span| Fill::of(span).eighths() <= fill_max;
            let mut won = 0;
            self.each_with_room(class, |span| won += if is_sparse(span) { Fill::of(span).wasted() } else { 0 });
            if won < WON_MIN {
                return bytes_left;
            }
            self.each_with_room(class, |span| {
                if is_sparse(span) && bytes_left > 0 {
                    bytes_left = bytes_left.saturating_sub(Fill::of(span).used);
                    self.unlist(span);
                    link(self.draining.get(), span);
                    (*span).draining.store(true, Ordering::Relaxed);
                    let (word, bit) = filter_bit(start_of(span).addr());
                    MAY_DRAIN[word].fetch_or(bit, Ordering::Relaxed);
                }
            });
        }
        bytes_left
    }

    /// Lets the spans that are being emptied give out blocks again.
    ///
    /// # Safety
    /// The caller owns the heap.
    pub(super) unsafe fn stop_draining(&self) {
        if !self.drains.replace(false) {
            return;
        }
        // SAFETY: the caller owns the heap, and the spans in its lists are live. A span that gave out no blocks since
        // some of its were freed has room.
        unsafe {
            while !(*self.draining.get()).is_null() {
                let span = *self.draining.get();
                unlink(self.draining.get(), span);
                (*span).draining.store(false, Ordering::Relaxed);
                self.list(span);
            }
        }
        let mut heaps = draining_heaps();
        *heaps -= 1;
        if *heaps == 0 {
            MAY_DRAIN.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        }
    }
}

/// Bytes of this thread's freed blocks whose memory is still taken.
pub fn waste() -> usize {
    own_heap().waste()
}

/// Marks this thread's spans of which little is used, so that they give out no more blocks; tells whether there are
/// any. Their blocks should then be moved by whoever owns them. Blocks that other threads have freed and that were not
/// collected count as used.
///
/// No more spans than hold so many bytes, and the last one's: until the spans are empty, what is moved takes memory twice.
pub fn start_draining(bytes_max: usize) -> bool {
    let heap = own_heap();
    // SAFETY: this thread owns its heap.
    unsafe {
        heap.release_kept();
        let mut heaps = draining_heaps();
        if !heap.drains.replace(true) {
            *heaps += 1;
        }
        let fill_max = heap.fill_max();
        let mut bytes_left = bytes_max;
        let from = heap.drains_from.get();
        for class in (from..CLASSES).chain(0..from) {
            bytes_left = heap.drain_class(class, fill_max, bytes_left);
            if bytes_left == 0 {
                heap.drains_from.set((class + 1) % CLASSES);
                break;
            }
        }
        drop(heaps);
        let any = !(*heap.draining.get()).is_null();
        if !any {
            heap.stop_draining();
        }
        any
    }
}

/// How many of this thread's spans that are to be emptied are not yet.
pub fn draining_spans() -> usize {
    let heap = own_heap();
    // SAFETY: this thread owns its heap, and the spans in its lists are live.
    unsafe {
        heap.drain_remote(DRAIN_MAX);
        std::iter::successors(NonNull::new(*heap.draining.get()), |span| NonNull::new((*span.as_ptr()).next)).count()
    }
}

/// Ends what `start_draining` has started: spans that are still not empty give out blocks again. The end of a thread
/// does the same.
pub fn stop_draining() {
    // SAFETY: this thread owns its heap.
    unsafe { own_heap().stop_draining() };
}

/// Whether the block at this address may have to be moved: a look that reads neither block nor span.
#[inline]
pub fn may_be_draining(block: NonNull<u8>) -> bool {
    let (word, bit) = filter_bit(block.addr().get());
    MAY_DRAIN[word].load(Ordering::Relaxed) & bit != 0
}

/// Whether a block should be moved: to a new one that is filled and used instead, so that this one can be freed.
///
/// # Safety
/// `block` came from `alloc` with the same `size`, is in use, and its provenance covers its whole span.
#[inline]
pub unsafe fn is_draining(block: NonNull<u8>, size: usize) -> bool {
    if size > SLAB_MAX {
        return false;
    }
    let span = span_of(block.as_ptr());
    // SAFETY: the block lies in a live span; the flag is atomic.
    unsafe { (*span).draining.load(Ordering::Relaxed) }
}

#[cfg(test)]
mod tests {
    use super::super::block::{alloc, free};
    use super::*;

    #[test]
    fn sparse_spans_can_be_emptied() {
        // On a thread of its own: the heap's other spans are out of the way.
        let check = || {
            let size = if cfg!(miri) { 30_000 } else { 4_000 };
            let count = 6 * (SPAN_BYTES / size);
            let mut blocks: Vec<NonNull<u8>> = (0..count).map(|_| alloc(size)).collect();
            let mut index = 0;
            blocks.retain(|&block| {
                index += 1;
                let keep = index % 4 == 0;
                if !keep {
                    // SAFETY: the block is live and freed once.
                    unsafe { free(block, size) };
                }
                keep
            });
            let before = waste();
            assert!(before > count / 2 * size, "{before}");
            assert!(start_draining(usize::MAX));
            for block in &mut blocks {
                // SAFETY: the block is live; the old one is freed once and not used after.
                unsafe {
                    if is_draining(*block, size) {
                        let moved = alloc(size);
                        assert!(!is_draining(moved, size), "a span that is emptied gives out no blocks");
                        free(*block, size);
                        *block = moved;
                    }
                }
            }
            stop_draining();
            assert_eq!(waste(), 0);
            assert!(!start_draining(usize::MAX), "nothing is left to win");
            for block in blocks {
                // SAFETY: as above.
                unsafe { free(block, size) };
            }
            assert_eq!(waste(), 0);
        };
        std::thread::spawn(check).join().unwrap();
    }

    #[test]
    fn a_single_sparse_span_is_emptied_too() {
        let check = || {
            let size = 4_000;
            let all: Vec<NonNull<u8>> = (0..SPAN_BYTES / size).map(|_| alloc(size)).collect();
            let (mut stay, go): (Vec<_>, Vec<_>) = all.into_iter().enumerate().partition(|(index, _)| index % 10 == 0);
            for (_, block) in go {
                // SAFETY: the block is live and freed once.
                unsafe { free(block, size) };
            }
            assert!(start_draining(usize::MAX));
            for (_, block) in &mut stay {
                // SAFETY: the block is live; the old one is freed once and not used after.
                unsafe {
                    assert!(is_draining(*block, size));
                    let moved = alloc(size);
                    free(*block, size);
                    *block = moved;
                }
            }
            assert_eq!(draining_spans(), 0, "the span is empty and gone");
            stop_draining();
            assert_eq!(waste(), 0, "the rest of the fresh span was never touched");
            for (_, block) in stay {
                // SAFETY: as above.
                unsafe { free(block, size) };
            }
        };
        std::thread::spawn(check).join().unwrap();
    }

    #[test]
    fn spans_that_stay_in_use_are_used_again() {
        let check = || {
            let size = 30_000;
            let blocks: Vec<NonNull<u8>> = (0..24).map(|_| alloc(size)).collect();
            let (stay, go): (Vec<_>, Vec<_>) = blocks.into_iter().enumerate().partition(|(index, _)| index % 4 == 0);
            for (_, block) in go {
                // SAFETY: the block is live and freed once.
                unsafe { free(block, size) };
            }
            assert!(start_draining(usize::MAX));
            stop_draining();
            let before = waste();
            let again: Vec<NonNull<u8>> = (0..18).map(|_| alloc(size)).collect();
            assert!(waste() < before, "the spans give out blocks again");
            for block in stay.into_iter().map(|(_, block)| block).chain(again) {
                // SAFETY: as above.
                unsafe { free(block, size) };
            }
        };
        std::thread::spawn(check).join().unwrap();
    }

    /// Blocks in six spans, of which every fourth stays.
    fn leave_every_fourth(size: usize) -> Vec<NonNull<u8>> {
        let blocks: Vec<NonNull<u8>> = (0..6 * (SPAN_BYTES / size)).map(|_| alloc(size)).collect();
        let (stay, go): (Vec<_>, Vec<_>) = blocks.into_iter().enumerate().partition(|(index, _)| index % 4 == 0);
        for (_, block) in go {
            // SAFETY: the block is live and freed once.
            unsafe { free(block, size) };
        }
        stay.into_iter().map(|(_, block)| block).collect()
    }

    #[test]
    fn no_more_is_moved_at_a_time_than_wanted_and_all_classes_have_their_turn() {
        let check = || {
            let sizes = [24_000, 30_000];
            let blocks = sizes.map(leave_every_fourth);
            let draining = |index: usize| {
                // SAFETY: the blocks are live.
                blocks[index].iter().filter(|&&block| unsafe { is_draining(block, sizes[index]) }).count()
            };
            let mut turns = [0; 2];
            for _ in 0..4 {
                assert!(start_draining(1));
                assert_eq!(draining_spans(), 1);
                [0, 1].iter().for_each(|&index| turns[index] += usize::from(draining(index) > 0));
                stop_draining();
            }
            assert_eq!(turns, [2, 2]);
            for (blocks, size) in blocks.into_iter().zip(sizes) {
                for block in blocks {
                    // SAFETY: the block is live and freed once.
                    unsafe { free(block, size) };
                }
            }
        };
        std::thread::spawn(check).join().unwrap();
    }

    #[test]
    fn draining_ends_with_its_thread() {
        struct Blocks(Vec<NonNull<u8>>);
        // SAFETY: the blocks are plain memory that nobody else refers to.
        unsafe impl Send for Blocks {}
        let size = 30_000;
        let start = move || {
            let blocks = leave_every_fourth(size);
            assert!(start_draining(usize::MAX));
            assert!(start_draining(usize::MAX), "it still drains");
            // SAFETY: the blocks are live.
            assert!(blocks.iter().any(|&block| unsafe { is_draining(block, size) }));
            Blocks(blocks)
        };
        for block in std::thread::spawn(start).join().unwrap().0 {
            // SAFETY: the block is live until it is freed, once.
            unsafe {
                assert!(!is_draining(block, size));
                free(block, size);
            }
        }
    }

    #[test]
    fn stopping_what_was_not_started_changes_nothing() {
        let check = || {
            let size = 30_000;
            let blocks = leave_every_fourth(size);
            assert!(start_draining(usize::MAX));
            assert!(own_heap().drains.get() && *draining_heaps() > 0);
            for _ in 0..3 {
                stop_draining();
                assert!(!own_heap().drains.get());
                assert!(*draining_heaps() < usize::MAX / 2, "the count has not wrapped");
            }
            for block in blocks {
                // SAFETY: the block is live and freed once.
                unsafe { free(block, size) };
            }
        };
        std::thread::spawn(check).join().unwrap();
    }
}
