//! An empty span keeps its pages for who needs one next, and they go in time. Alone in its process, and one at a time: no
//! other thread takes or gives spans, nor leaves a heap behind.

#![cfg(all(target_os = "linux", not(any(miri, sanitized))))]

use std::ptr::NonNull;
use std::sync::Mutex;
use tenon_ds::slab::{self, SPAN_BYTES};

const SIZE: usize = 30_000;
const PAGE: usize = 4096;
const MARK: u64 = 0x7e40_0000_8765_4321;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn span(block: NonNull<u8>) -> usize {
    block.addr().get() / SPAN_BYTES
}

/// Whether a word that was written to a span in an earlier life is still there in the next, far behind its one block.
/// `empty` comes between the lives, `alive` in the second.
fn keeps_what_was_written(empty: fn(), alive: fn()) -> bool {
    let look = move || {
        let blocks: Vec<NonNull<u8>> = (0..SPAN_BYTES / SIZE).map(|_| slab::alloc(SIZE)).collect();
        let last = *blocks.iter().rfind(|&&block| span(block) == span(blocks[0])).expect("the first is one");
        // The second page of the block: the first may be that of the new life's end.
        let mark = last.cast::<u64>().map_addr(|address| address.saturating_add(2 * PAGE));
        // SAFETY: the blocks are live until they are freed, each once; the word is within one.
        unsafe {
            mark.write_unaligned(MARK);
            // The first span gets empty last: it is the one that keeps its pages.
            blocks.iter().rev().for_each(|&block| slab::free(block, SIZE));
        }
        empty();
        let again = slab::alloc(SIZE);
        assert_eq!(span(again), span(last), "the span lives again");
        assert!(mark.addr().get() > again.addr().get() + slab::rounded(SIZE));
        alive();
        // SAFETY: the word lies in a span of this thread's, where nothing is used.
        let kept = unsafe { mark.read_unaligned() } == MARK;
        // SAFETY: the block is live and freed once.
        unsafe { slab::free(again, SIZE) };
        kept
    };
    let _one = ONE_AT_A_TIME.lock().unwrap();
    std::thread::spawn(look).join().unwrap()
}

#[test]
fn the_last_empty_span_keeps_its_pages() {
    assert!(keeps_what_was_written(|| (), || ()));
}

#[test]
fn its_pages_go_when_nobody_has_needed_them() {
    assert!(!keeps_what_was_written(slab::release_ready, || ()));
}

#[test]
fn pages_of_an_earlier_life_go_when_packing_begins() {
    let pack = || {
        slab::start_draining(usize::MAX);
        slab::stop_draining();
    };
    assert!(!keeps_what_was_written(|| (), pack));
}
