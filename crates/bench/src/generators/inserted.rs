//! Which keys exist while several threads insert: numbers given out, and how far all of them are answered.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// `AcknowledgedCounterGenerator`: readers name only keys whose insertion, and every one before it, has been answered.
#[derive(Debug)]
pub struct Inserted {
    next: AtomicU64,
    /// How many keys exist from 0 on without a gap.
    present: AtomicU64,
    /// Whether a number ahead of `present` is answered, by the number's low bits.
    answered: Box<[AtomicBool]>,
    advancing: Mutex<()>,
}

const WINDOW: u64 = 1 << 20;

impl Inserted {
    /// With the numbers below `present` there already.
    pub fn new(present: u64) -> Inserted {
        Inserted {
            next: AtomicU64::new(present),
            present: AtomicU64::new(present),
            answered: (0..WINDOW).map(|_| AtomicBool::new(false)).collect(),
            advancing: Mutex::new(()),
        }
    }

    /// The number of the next key to insert.
    pub fn begin(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// How many keys exist: all below this number do.
    #[inline]
    pub fn present(&self) -> u64 {
        self.present.load(Ordering::Acquire)
    }

    /// The key of this number is stored.
    pub fn finish(&self, number: u64) {
        assert!(number < self.present() + WINDOW, "{WINDOW} insertions wait for an older one");
        self.slot(number).store(true, Ordering::Release);
        // Who finds another thread advancing leaves it to that one, or to the next to finish.
        let Ok(_advancing) = self.advancing.try_lock() else { return };
        let mut present = self.present();
        while self.slot(present).swap(false, Ordering::AcqRel) {
            present += 1;
        }
        self.present.store(present, Ordering::Release);
    }

    fn slot(&self, number: u64) -> &AtomicBool {
        &self.answered[(number % WINDOW) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_counts_when_all_before_it_do() {
        let inserted = Inserted::new(10);
        assert_eq!([inserted.begin(), inserted.begin(), inserted.begin()], [10, 11, 12]);
        inserted.finish(11);
        assert_eq!(inserted.present(), 10);
        inserted.finish(10);
        assert_eq!(inserted.present(), 12);
        inserted.finish(12);
        assert_eq!(inserted.present(), 13);
    }

    #[test]
    fn no_insertion_is_lost_between_threads() {
        let inserted = Inserted::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..50_000).for_each(|_| inserted.finish(inserted.begin())));
            }
        });
        // The last to finish may have found another advancing; one more moves past all of them.
        inserted.finish(inserted.begin());
        assert_eq!(inserted.present(), 150_001);
    }
}
