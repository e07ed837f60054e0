//! What is freed of an ended thread's blocks does not wait for the next thread. Alone in its process, so that no other
//! test's thread takes the heap.

use std::ptr::NonNull;
use tenon_ds::slab;

const SIZE: usize = 1_000;
const BLOCKS: usize = 20;

struct Blocks(Vec<NonNull<u8>>);
// SAFETY: the blocks are plain memory that nobody else refers to.
unsafe impl Send for Blocks {}

#[test]
fn blocks_of_an_ended_thread_are_taken_back() {
    // This thread has a heap of its own before the other one ends.
    assert_eq!(slab::waste(), 0);
    let allocate = || Blocks((0..BLOCKS).map(|_| slab::alloc(SIZE)).collect());
    let mut blocks = std::thread::spawn(allocate).join().unwrap().0;
    for block in blocks.drain(1..) {
        // SAFETY: the block is live and freed once.
        unsafe { slab::free(block, SIZE) };
    }
    slab::collect();
    assert_eq!(slab::waste(), 0, "they are not this thread's");
    // The next thread gets the ended one's heap, and does not collect itself.
    let waste = std::thread::spawn(slab::waste).join().unwrap();
    assert_eq!(waste, (BLOCKS - 1) * SIZE);
    // SAFETY: as above.
    unsafe { slab::free(blocks[0], SIZE) };
    slab::collect();
    assert_eq!(std::thread::spawn(slab::waste).join().unwrap(), 0);
}
