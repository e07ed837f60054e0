//! The slab under several threads that allocate, hand over, free, drain, end and start anew, with every byte checked.
//! Knows only the public interface.

use std::ptr::NonNull;
use std::sync::Mutex;
use tenon_ds::{memory, slab};

const WORKERS: usize = 4;
const GENERATIONS: u64 = if cfg!(miri) { 2 } else { 8 };
const ROUNDS: u64 = if cfg!(miri) { 80 } else { 20_000 };
/// Sizes with few and with many blocks a span, multiples of four and of eight, and one that no span holds.
const SIZES: [usize; 8] = [8, 20, 56, 100, 1_024, 5_000, 30_000, 40_000];

/// A block filled with one byte, which is also known beside it.
struct Block {
    memory: NonNull<u8>,
    size: usize,
    fill: u8,
}

// SAFETY: the block is plain memory that only this value refers to.
unsafe impl Send for Block {}

impl Block {
    fn new(size: usize, fill: u8) -> Block {
        let memory = slab::alloc(size);
        assert!(memory.addr().get().is_multiple_of(if size.is_multiple_of(8) { 8 } else { 4 }));
        // SAFETY: the block has at least `size` bytes.
        unsafe { memory.write_bytes(fill, size) };
        Block { memory, size, fill }
    }

    fn check(&self) {
        // SAFETY: the block is live and was filled whole.
        let bytes = unsafe { std::slice::from_raw_parts(self.memory.as_ptr(), self.size) };
        // One comparison of memory, which Miri does in one step.
        assert!(bytes == vec![self.fill; self.size], "a block of {} was overwritten", self.size);
    }

    fn is_draining(&self) -> bool {
        // SAFETY: the block is live and came from `alloc` with this size.
        slab::may_be_draining(self.memory) && unsafe { slab::is_draining(self.memory, self.size) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.check();
        }
        // SAFETY: the block came from `alloc` with this size, and nobody else frees it.
        unsafe { slab::free(self.memory, self.size) };
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % bound
    }
}

/// What a thread does: the blocks that it has at the end stay in its inbox, for the thread that comes after it.
fn work(worker: usize, seed: u64, inboxes: &[Mutex<Vec<Block>>]) {
    let mut random = Random(seed);
    let mut own: Vec<Block> = std::mem::take(&mut *inboxes[worker].lock().unwrap());
    for round in 0..ROUNDS {
        // Now more, now less, so that spans fill up and empty.
        let grows = (round * 6 / ROUNDS).is_multiple_of(2);
        match random.below(100) {
            chance if chance < if grows { 55 } else { 25 } => {
                own.push(Block::new(SIZES[random.below(SIZES.len())], round as u8));
            }
            ..70 if !own.is_empty() => drop(own.swap_remove(random.below(own.len()))),
            70..85 if !own.is_empty() => {
                let block = own.swap_remove(random.below(own.len()));
                inboxes[random.below(WORKERS)].lock().unwrap().push(block);
            }
            85..95 => own.append(&mut inboxes[worker].lock().unwrap()),
            95 | 96 => slab::collect(),
            97 => {
                slab::start_draining(usize::MAX);
            }
            98 => {
                // What drains here or at another thread moves, as its owner would do it.
                for block in own.iter_mut().filter(|block| block.is_draining()) {
                    *block = Block::new(block.size, block.fill);
                }
            }
            _ => slab::stop_draining(),
        }
    }
    // Some threads end while they drain.
    if random.below(2) == 0 {
        slab::start_draining(usize::MAX);
    }
    inboxes[worker].lock().unwrap().append(&mut own);
}

#[test]
fn threads_share_the_slab_and_no_byte_is_lost() {
    let before = memory::used();
    let inboxes: Vec<Mutex<Vec<Block>>> = (0..WORKERS).map(|_| Mutex::default()).collect();
    // Threads of a generation end at different times, while others of it still run; the next one takes their heaps.
    for generation in 0..GENERATIONS {
        std::thread::scope(|scope| {
            let inboxes = &inboxes;
            let spawn = |worker| scope.spawn(move || work(worker, generation * 31 + worker as u64, inboxes));
            let threads: Vec<_> = (0..WORKERS).map(spawn).collect();
            // The scope alone waits for the closures, not for the threads' ends, where heaps are given back.
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
    let left = inboxes.iter().map(|inbox| inbox.lock().unwrap().len()).sum::<usize>();
    assert!(left > 0, "the last generation left blocks");
    assert!(memory::used() > before);
    // All of them are freed by a thread that allocated none.
    drop(inboxes);
    assert_eq!(memory::used(), before, "every block was counted when it came and when it went");
    slab::collect();
    // Then nothing is in use, and whatever heap a new thread gets has nothing half empty.
    std::thread::spawn(|| assert_eq!(slab::waste(), 0)).join().unwrap();
}
