//! Where an entry's object is: a box of its own, or with those who read it while its shard is free. Knows no entry.
//!
//! ```text
//!   own:  the address that `Box::into_raw` gave       its lowest bit is 0, as an object is aligned
//!   lent: the address that `Arc::into_raw` gave, + 1
//! ```
//!
//! What is lent stays as it is for as long as somebody has it, whatever becomes of the entry. Whoever changes it takes it back before,
//! or copies it if somebody still reads it.

use crate::types::Object;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The bit of an address that says that the object is lent.
const LENT: usize = 1;

const _: () = assert!(align_of::<Object>() > LENT && align_of::<Lent>() > LENT);

/// A value that is read while its shard is free.
#[derive(Debug)]
pub struct Lent {
    object: Object,
    /// Somebody who wants to change it waits for those who read it.
    is_awaited: AtomicBool,
}

impl Lent {
    /// The value.
    pub fn object(&self) -> &Object {
        &self.object
    }
}

/// The address that stands in an entry.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct ObjectPlace(*mut u8);

impl ObjectPlace {
    /// That of an entry's own object.
    pub(super) fn of(object: Box<Object>) -> ObjectPlace {
        ObjectPlace(Box::into_raw(object).cast())
    }

    fn of_lent(lent: Arc<Lent>) -> ObjectPlace {
        ObjectPlace(Arc::into_raw(lent).cast::<u8>().cast_mut().map_addr(|address| address | LENT))
    }

    fn is_lent(self) -> bool {
        self.0.addr() & LENT != 0
    }

    fn lent(self) -> *const Lent {
        self.0.map_addr(|address| address & !LENT).cast_const().cast()
    }

    /// The entry's reference, which stays the entry's.
    ///
    /// # Safety
    /// The object is lent, and the entry is there.
    unsafe fn reference(self) -> ManuallyDrop<Arc<Lent>> {
        debug_assert!(self.is_lent());
        // SAFETY: `of_lent` has got the address so, and the reference is not dropped here.
        ManuallyDrop::new(unsafe { Arc::from_raw(self.lent()) })
    }

    /// The object.
    ///
    /// # Safety
    /// For `'a` the entry is there and nobody changes its object.
    #[inline]
    pub(super) unsafe fn get<'a>(self) -> &'a Object {
        // SAFETY: the address is of one or the other, and the entry keeps what is there alive, as the function's contract says.
        unsafe { if self.is_lent() { &(*self.lent()).object } else { &*self.0.cast_const().cast() } }
    }

    /// The object, to be changed, if it is the entry's own.
    ///
    /// # Safety
    /// For `'a` the entry is there and borrowed exclusively.
    pub(super) unsafe fn own<'a>(self) -> Option<&'a mut Object> {
        // SAFETY: nobody else has the box, as the function's contract says.
        (!self.is_lent()).then(|| unsafe { &mut *self.0.cast() })
    }

    /// The object in a box: what was lent is taken back, or copied if somebody still reads it.
    ///
    /// # Safety
    /// The entry gives the object up, or gets another address.
    pub(super) unsafe fn into_box(self) -> Box<Object> {
        // SAFETY: the address is of one or the other, and it is taken back once, as the function's contract says.
        unsafe {
            if !self.is_lent() {
                return Box::from_raw(self.0.cast());
            }
            let lent = self.reference();
            // While it is copied the reference is the entry's still: whatever ends that, the entry has its object.
            let copy = (Arc::strong_count(&lent) > 1).then(|| Box::new(lent.object.share()));
            let lent = ManuallyDrop::into_inner(lent);
            // Only an entry's holder lends, so nobody has begun to read it meanwhile.
            copy.unwrap_or_else(|| Box::new(Arc::into_inner(lent).expect("nobody else reads it").object))
        }
    }

    /// Frees the object, or leaves it to those who read it.
    ///
    /// # Safety
    /// As for [`into_box`](ObjectPlace::into_box).
    pub(super) unsafe fn discard(self) {
        // SAFETY: as the function's contract says.
        unsafe {
            if self.is_lent() {
                drop(Arc::from_raw(self.lent()));
            } else {
                drop(Box::<Object>::from_raw(self.0.cast()));
            }
        }
    }

    /// Lends the object: gives the address that is to stand in the entry from now on, and a reference unless somebody waits
    /// for those who have one already: more would keep him waiting.
    ///
    /// # Safety
    /// The entry is there, borrowed exclusively, and gets the address.
    pub(super) unsafe fn lend(self) -> (ObjectPlace, Option<Arc<Lent>>) {
        // SAFETY: the object is the entry's, and goes on being so under the address that is given.
        unsafe {
            if !self.is_lent() {
                let object = *self.into_box();
                let lent = Arc::new(Lent { object, is_awaited: AtomicBool::new(false) });
                return (ObjectPlace::of_lent(Arc::clone(&lent)), Some(lent));
            }
            let lent = self.reference();
            let is_awaited = lent.is_awaited.load(Ordering::Relaxed);
            // The last of them has just ended: the next one holds the shard, as does whoever waits, who may have gone.
            if is_awaited && Arc::strong_count(&lent) == 1 {
                lent.is_awaited.store(false, Ordering::Relaxed);
            }
            (self, (!is_awaited).then(|| Arc::clone(&lent)))
        }
    }

    /// Whether it is this that the entry has lent.
    pub(super) fn is(self, lent: &Arc<Lent>) -> bool {
        self.is_lent() && self.lent() == Arc::as_ptr(lent)
    }

    /// Whether others read the object.
    ///
    /// # Safety
    /// The entry is there.
    pub(super) unsafe fn is_read(self) -> bool {
        // SAFETY: the entry is there, as the function's contract says.
        self.is_lent() && unsafe { Arc::strong_count(&self.reference()) > 1 }
    }

    /// Notes that somebody wants to change the object, and tells whether others read it.
    ///
    /// # Safety
    /// The entry is there.
    pub(super) unsafe fn awaits_readers(self) -> bool {
        // SAFETY: the entry is there, as the function's contract says.
        let is_read = unsafe { self.is_read() };
        if is_read {
            // SAFETY: it is lent, and the entry is there.
            unsafe { self.reference() }.is_awaited.store(true, Ordering::Relaxed);
        }
        is_read
    }
}
