//! What another thread frees comes back to the one that has allocated it. Alone in its process: an empty span may go to
//! any thread that wants one.

use std::collections::HashSet;
use std::ptr::NonNull;
use tenon_ds::slab;

const SIZE: usize = 4_000;

struct Blocks(Vec<NonNull<u8>>);
// SAFETY: the blocks are plain memory that nobody else refers to.
unsafe impl Send for Blocks {}

impl Blocks {
    fn allocate() -> Blocks {
        let count = if cfg!(miri) { 20 } else { 5_000 };
        Blocks((0..count).map(|_| slab::alloc(SIZE)).collect())
    }

    fn free(self) {
        for block in self.0 {
            // SAFETY: the block is live and, as its owner is gone now, freed once.
            unsafe { slab::free(block, SIZE) };
        }
    }
}

#[test]
fn blocks_freed_by_another_thread_come_back() {
    for _ in 0..3 {
        let blocks = Blocks::allocate();
        let addresses: HashSet<_> = blocks.0.iter().map(|block| block.addr()).collect();
        std::thread::spawn(move || blocks.free()).join().unwrap();
        slab::collect();
        let again = Blocks::allocate();
        assert!(again.0.iter().any(|block| addresses.contains(&block.addr())), "nothing was reused");
        again.free();
    }
}
