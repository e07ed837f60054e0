//! What another thread has freed comes back a part at a time, so that nobody waits for all of it. Alone in its process: the
//! thread has a heap that none has had before.

use std::ptr::NonNull;
use tenon_ds::slab;

const SIZE: usize = 4_000;
/// As many as fit a span, so that none gets empty.
const COUNT: usize = 40;

struct Blocks(Vec<NonNull<u8>>);
// SAFETY: the blocks are plain memory that nobody else refers to.
unsafe impl Send for Blocks {}

impl Blocks {
    fn allocate(count: usize) -> Blocks {
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
fn blocks_come_back_a_part_at_a_time() {
    let check = || {
        let mut blocks = Blocks::allocate(COUNT);
        let stays = Blocks(vec![blocks.0.pop().expect("there are some")]);
        let block_bytes = slab::rounded(SIZE);
        assert_eq!(slab::waste(), 0);
        std::thread::spawn(move || blocks.free()).join().unwrap();
        assert_eq!(slab::waste(), 0);
        for parts in 1..=3 {
            assert!(slab::collect_some(10), "nine are left in the end");
            assert_eq!(slab::waste(), parts * 10 * block_bytes);
        }
        // There are some to be had again: whoever allocates does not wait for the rest.
        let other = Blocks::allocate(1);
        assert_eq!(slab::waste(), 29 * block_bytes);
        while slab::collect_some(10) {}
        assert_eq!(slab::waste(), 38 * block_bytes);
        stays.free();
        other.free();
        assert_eq!(slab::waste(), 0, "the span was given back");
    };
    std::thread::spawn(check).join().unwrap();
}
