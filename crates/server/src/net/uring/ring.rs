//! One io_uring with the memory that the kernel reads and writes behind it. Knows no connection.
//!
//! The only file of this crate with `unsafe`. Its rule: **memory that an operation in flight names belongs to the ring**, not
//! to whoever asked for it, and is freed only when the kernel is done with it.
//!
//! - Received bytes come into buffers that the ring owns. Whoever has a [`Filled`] may read that buffer, until it is given
//!   back; a buffer that the kernel may write is never read.
//! - Bytes to be sent are handed over as a `Vec`, and come back only when the kernel has consumed their entry. A send never
//!   waits for room in the socket (`MSG_DONTWAIT`), so it is done when it is consumed: no send outlives the system call that
//!   begins it.
//! - The end of a ring waits for its receives to end. If they do not, the buffers are leaked.
//!
//! The kernel takes calls of the thread alone that has made a ring (`IORING_SETUP_SINGLE_ISSUER`). A loop that goes on in another
//! thread leaves its ring behind ([`Own`]).
#![allow(unsafe_code)]

use io_uring::types::{BufRingEntry, CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue, opcode, squeue};
use rustix::fd::{AsFd, AsRawFd};
use rustix::io::Errno;
use rustix::net::SendFlags;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::VecDeque;
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

/// Entries that wait for the next system call, at most; more are given to the kernel at once.
const SUBMISSIONS: u32 = 512;
/// Room for completions: all that one system call brings, several times.
const COMPLETIONS: u32 = 4096;

/// Receive buffers; a power of two. The kernel brings no more at a time, and all are free again at each wait.
const BUFFERS: u16 = 64;
/// Bytes of a receive buffer.
const BUFFER_BYTES: usize = 4 * 1024;
/// From one buffer to the next: no power of two, whose first lines would all compete for the same few places of a cache.
const BUFFER_STRIDE: usize = BUFFER_BYTES + 192;
/// The only group of buffers.
const GROUP: u16 = 0;

/// Where buffers are announced to the kernel comes first, in a page of its own; the buffers follow.
const ANNOUNCED_BYTES: usize = 4096;
const _: () = assert!(BUFFERS.is_power_of_two() && BUFFERS as usize * size_of::<BufRingEntry>() <= ANNOUNCED_BYTES);

/// Buffers of sent bytes up to this capacity are used again, and this many of them at most.
const SPARE_BYTES_MAX: usize = 32 * 1024;
const SPARES_MAX: usize = 64;

/// The kernel is asked again this often if it takes no entries, before that counts as a failure.
const SUBMIT_TRIES_MAX: u32 = 10_000;

/// What an operation is about. With the tag it names the operation, so there is one of a kind at a time for each tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// Receives into the ring's buffers, again and again.
    Receive,
    /// Waits for each time that there is something to receive.
    Readable,
    /// Waits until something can be sent.
    Writable,
    /// Waits for each time that there is room again.
    WritableOn,
    /// Waits until the peer has ended its side.
    Ended,
    /// Waits on a descriptor that others wait on too; one of them is told.
    Shared,
    /// Waits for each wake.
    Wake,
    Send,
    Cancel,
}

impl Kind {
    const ALL: [Kind; 9] = [
        Kind::Receive,
        Kind::Readable,
        Kind::Writable,
        Kind::WritableOn,
        Kind::Ended,
        Kind::Shared,
        Kind::Wake,
        Kind::Send,
        Kind::Cancel,
    ];

    /// How the kernel names an operation of this kind: the kind above the tag.
    fn user_data(self, tag: u32) -> u64 {
        ((self as u64) << 32) | u64::from(tag)
    }
}

/// Bytes that were received into one of the ring's buffers.
#[derive(Debug)]
pub(super) struct Filled {
    buffer: u16,
    len: u32,
}

impl Filled {
    /// How many bytes there are.
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }
}

/// What the kernel has to say.
#[derive(Debug)]
pub(super) enum Completion {
    /// A receive has brought bytes, or none at the end of the stream.
    Received { tag: u32, result: Result<Option<Filled>, Errno>, goes_on: bool },
    /// A wait has ended, or with `goes_on` seen something; with the flags of poll(2).
    Polled { tag: u32, kind: Kind, result: Result<u32, Errno>, goes_on: bool },
    /// Not all bytes have left: so many have.
    SentShort { tag: u32, bytes: Vec<u8>, result: Result<usize, Errno> },
}

/// Bytes of a send that the kernel may not have read yet.
struct Sending {
    tag: u32,
    /// How many entries had been queued before its own.
    entry: u64,
    bytes: Vec<u8>,
}

/// The ring. Operations are queued, and begin with the next [`Ring::wait`].
pub(super) struct Ring {
    uring: IoUring,
    buffers: Buffers,
    /// Entries that were queued so far.
    queued: u64,
    /// Sends in the order of their entries; the name of the first, the following ones count on.
    sending: VecDeque<Sending>,
    first_sending: u32,
    /// Empty buffers for bytes to be sent.
    spares: Vec<Vec<u8>>,
    completed: VecDeque<Completion>,
    /// Receives and waits that were begun and have not ended.
    unended: usize,
    /// Whether a wait here does not count as waiting for a disk.
    enter_flags: EnterFlags,
}

// SAFETY: it owns its descriptor and its memory, which any thread may read, write and free; what the kernel writes to is read
// behind its completion. Another thread's calls the kernel refuses with an error: then an operation stays one in flight, whose
// memory is not freed.
unsafe impl Send for Ring {}

/// The ring of the thread that runs the loop; none where the loop is on its way to another thread, or was lent.
#[derive(Default)]
pub(super) struct Own(pub(super) Option<Box<Ring>>);

/// Where a thread runs a loop it has a ring.
const HERE: &str = "whoever runs a loop has a ring";

impl Deref for Own {
    type Target = Ring;

    #[inline]
    fn deref(&self) -> &Ring {
        self.0.as_ref().expect(HERE)
    }
}

impl DerefMut for Own {
    #[inline]
    fn deref_mut(&mut self) -> &mut Ring {
        self.0.as_mut().expect(HERE)
    }
}

impl Ring {
    /// A ring for the calling thread; fails where the kernel has none, forbids it, or is too old for all that it is to do.
    pub(super) fn new() -> io::Result<Ring> {
        let uring = IoUring::builder()
            .dontfork()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .setup_cqsize(COMPLETIONS)
            .build(SUBMISSIONS)?;
        let features = uring.params();
        if !(features.is_feature_ext_arg() && features.is_feature_nodrop() && features.is_feature_skip_cqe_on_success())
        {
            return Err(Errno::OPNOTSUPP.into());
        }
        let mut enter_flags = EnterFlags::EXT_ARG | EnterFlags::GETEVENTS;
        if features.is_feature_no_iowait() {
            enter_flags |= EnterFlags::NO_IOWAIT;
        }
        let buffers = Buffers::new();
        // SAFETY: the address is that of a page of our own with room for as many entries, and stays one until the ring is
        // gone: `Ring` drops `uring` before `buffers`.
        unsafe {
            uring.submitter().register_buf_ring_with_flags(buffers.memory.as_ptr() as u64, BUFFERS, GROUP, 0)?;
        }
        let mut ring = Ring {
            uring,
            buffers,
            queued: 0,
            sending: VecDeque::new(),
            first_sending: 0,
            spares: Vec::new(),
            completed: VecDeque::new(),
            unended: 0,
            enter_flags,
        };
        for buffer in 0..BUFFERS {
            ring.buffers.announce(buffer);
        }
        Ok(ring)
    }

    /// Receives from a socket until that ends or fails, the buffers run out or it is cancelled: the completion says so.
    /// The socket stays open until then.
    pub(super) fn receive(&mut self, socket: &impl AsFd, tag: u32) {
        let entry = opcode::RecvMulti::new(Fd(socket.as_fd().as_raw_fd()), GROUP).build();
        self.unended += 1;
        // SAFETY: the bytes go to the ring's buffers, which outlive the operation.
        unsafe { self.push(entry.user_data(Kind::Receive.user_data(tag))) }
    }

    /// Waits for any of the events of poll(2), and for trouble. The descriptor stays open until the completion that says
    /// that it does not go on.
    pub(super) fn poll(&mut self, fd: &impl AsFd, kind: Kind, events: u32, tag: u32) {
        let goes_on = matches!(kind, Kind::Wake | Kind::Readable | Kind::WritableOn);
        self.unended += 1;
        let entry = opcode::PollAdd::new(Fd(fd.as_fd().as_raw_fd()), events).multi(goes_on).build();
        // SAFETY: the operation names no memory.
        unsafe { self.push(entry.user_data(kind.user_data(tag))) }
    }

    /// Sends bytes, as far as the socket takes them at once. Only what falls short has a completion, with the next
    /// [`Ring::wait`]; until then the socket stays open.
    pub(super) fn send(&mut self, socket: &impl AsFd, bytes: Vec<u8>, tag: u32) {
        // The whole or what fits: a short send counts as failed, and so has a completion where the others are skipped.
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT | SendFlags::from_bits_retain(MSG_WAITALL);
        let len = u32::try_from(bytes.len()).expect("short outputs alone are sent here");
        let name = self.first_sending.wrapping_add(self.sending.len() as u32);
        let entry = opcode::Send::new(Fd(socket.as_fd().as_raw_fd()), bytes.as_ptr(), len)
            .flags(flags.bits() as i32)
            .build()
            .flags(squeue::Flags::SKIP_SUCCESS)
            .user_data(Kind::Send.user_data(name));
        self.make_room();
        self.sending.push_back(Sending { tag, entry: self.queued, bytes });
        // SAFETY: the bytes' allocation lies in `sending` from now on, and leaves it in `settle` when the kernel has
        // consumed the entry; moving the `Vec` does not move it.
        unsafe { self.push(entry) }
    }

    /// Has an operation end; its completion says so, unless it has ended by itself.
    pub(super) fn cancel(&mut self, kind: Kind, tag: u32) {
        let entry = opcode::AsyncCancel::new(kind.user_data(tag)).build().flags(squeue::Flags::SKIP_SUCCESS);
        // SAFETY: the operation names no memory.
        unsafe { self.push(entry.user_data(Kind::Cancel.user_data(tag))) }
    }

    /// An empty buffer for bytes to be sent.
    pub(super) fn spare(&mut self) -> Vec<u8> {
        self.spares.pop().unwrap_or_default()
    }

    /// Begins what was queued, and waits until something completes or until the timeout. All sends are done afterwards.
    pub(super) fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        let timeout = if self.completed.is_empty() { timeout } else { Duration::ZERO };
        for _ in 0..SUBMIT_TRIES_MAX {
            self.enter(u32::from(!timeout.is_zero()), timeout)?;
            if self.uring.submission().is_empty() {
                return Ok(());
            }
        }
        Err(Errno::AGAIN.into())
    }

    /// Begins what was queued, and ends all that goes on; whether nothing does any more. What that has brought is among what
    /// has completed.
    pub(super) fn end_all(&mut self) -> bool {
        let _ = self.wait(Duration::ZERO);
        if self.unended > 0 {
            // It fails where all have ended meanwhile.
            let _ = self.uring.submitter().register_sync_cancel(None, CancelBuilder::any());
        }
        let mut before = usize::MAX;
        while self.unended > 0 && self.unended < before {
            before = self.unended;
            let want = self.unended.min(COMPLETIONS as usize / 2) as u32;
            if self.enter(want, Duration::from_millis(500)).is_err() {
                break;
            }
        }
        !self.has_operations()
    }

    /// Whether anything goes on, or is to begin with the next system call.
    pub(super) fn has_operations(&self) -> bool {
        self.unended > 0 || !self.sending.is_empty()
    }

    /// Whether something has completed that is not handed out yet.
    #[inline]
    pub(super) fn has_completed(&self) -> bool {
        !self.completed.is_empty()
    }

    /// The next of what has completed.
    #[inline]
    pub(super) fn completion(&mut self) -> Option<Completion> {
        self.completed.pop_front()
    }

    /// The bytes.
    #[inline]
    pub(super) fn bytes(&self, filled: &Filled) -> &[u8] {
        self.buffers.bytes(filled)
    }

    /// Lets the kernel fill the buffer again.
    #[inline]
    pub(super) fn give_back(&mut self, filled: Filled) {
        self.buffers.give_back(filled);
    }

    /// Queues an entry.
    ///
    /// # Safety
    /// What the entry points to stays valid until the operation has ended.
    #[inline]
    unsafe fn push(&mut self, entry: squeue::Entry) {
        self.make_room();
        self.queued += 1;
        // SAFETY: passed on to the caller.
        unsafe { self.uring.submission().push(&entry) }.expect("there is room");
    }

    /// Has the kernel take what is queued, if there is no room for another entry.
    #[inline]
    fn make_room(&mut self) {
        if self.uring.submission().is_full() {
            self.submit();
        }
    }

    #[cold]
    fn submit(&mut self) {
        for _ in 0..SUBMIT_TRIES_MAX {
            // A kernel that cannot now may be able to in a moment; one that never can fails the next wait, too.
            let _ = self.enter(0, Duration::ZERO);
            if !self.uring.submission().is_full() {
                return;
            }
        }
        panic!("the kernel takes no more operations");
    }

    /// One system call: begins what is queued, waits for `want` completions, and takes note of all that have come.
    fn enter(&mut self, want: u32, timeout: Duration) -> io::Result<()> {
        let timeout = Timespec::from(timeout);
        let arguments = SubmitArgs::new().timespec(&timeout);
        let queued = self.uring.submission().len() as u32;
        let flags = self.enter_flags.bits();
        // SAFETY: the argument is what EXT_ARG says it is, and lives through the call.
        let result = unsafe { self.uring.submitter().enter(queued, want, flags, Some(&arguments)) };
        self.take_completions();
        match result.map_err(|error| (Errno::from_io_error(&error), error)) {
            Ok(_) | Err((Some(Errno::TIME | Errno::INTR | Errno::AGAIN | Errno::BUSY), _)) => Ok(()),
            Err((_, error)) => Err(error),
        }
    }

    fn take_completions(&mut self) {
        loop {
            loop {
                let Some(entry) = self.uring.completion().next() else { break };
                self.take_completion(&entry);
            }
            // What had no room waits in the kernel, and the word that a send fell short may be among it.
            if !self.uring.submission().cq_overflow() {
                break;
            }
            let flags = EnterFlags::GETEVENTS.bits();
            // SAFETY: no argument is passed.
            if unsafe { self.uring.submitter().enter::<()>(0, 0, flags, None) }.is_err() {
                // Nothing is settled before the rest has come.
                return;
            }
        }
        self.settle();
    }

    #[inline]
    fn take_completion(&mut self, entry: &cqueue::Entry) {
        let (user_data, flags) = (entry.user_data(), entry.flags());
        let (kind, tag) = (Kind::ALL[(user_data >> 32) as usize], user_data as u32);
        let goes_on = cqueue::more(flags);
        let result = match entry.result() {
            error if error < 0 => Err(Errno::from_raw_os_error(-error)),
            number => Ok(number as u32),
        };
        match kind {
            Kind::Receive => {
                self.unended -= usize::from(!goes_on);
                let len = result.unwrap_or(0);
                let filled = cqueue::buffer_select(flags).map(|buffer| self.buffers.hand_out(buffer, len));
                let filled = match filled {
                    Some(filled) if filled.len == 0 => {
                        self.buffers.give_back(filled);
                        None
                    }
                    filled => filled,
                };
                self.completed.push_back(Completion::Received { tag, result: result.map(|_| filled), goes_on });
            }
            Kind::Send => {
                let index = tag.wrapping_sub(self.first_sending) as usize;
                let Some(sending) = self.sending.get_mut(index) else { return };
                let (tag, bytes) = (sending.tag, std::mem::take(&mut sending.bytes));
                let result = result.map(|sent| sent as usize);
                self.completed.push_back(Completion::SentShort { tag, bytes, result });
            }
            // Only one that has found nothing is reported: what it was to end has ended.
            Kind::Cancel => {}
            kind => {
                self.unended -= usize::from(!goes_on);
                self.completed.push_back(Completion::Polled { tag, kind, result, goes_on });
            }
        }
    }

    /// Takes back the bytes of all sends that the kernel is done with.
    fn settle(&mut self) {
        if self.sending.is_empty() {
            return;
        }
        let consumed = self.queued - self.uring.submission().len() as u64;
        while let Some(sending) = self.sending.front()
            && sending.entry < consumed
        {
            let mut bytes = self.sending.pop_front().expect("it was just there").bytes;
            self.first_sending = self.first_sending.wrapping_add(1);
            if (1..=SPARE_BYTES_MAX).contains(&bytes.capacity()) && self.spares.len() < SPARES_MAX {
                bytes.clear();
                self.spares.push(bytes);
            }
        }
    }
}

/// `MSG_WAITALL`, which rustix has among the flags of receives only.
const MSG_WAITALL: u32 = 0x100;

impl Drop for Ring {
    fn drop(&mut self) {
        // Until they have ended they also keep their descriptors open.
        self.end_all();
        self.buffers.leak |= self.unended > 0;
        // Only where the kernel has refused to take them.
        self.sending.drain(..).for_each(|sending| std::mem::forget(sending.bytes));
    }
}

/// The memory of all receive buffers: first the ring by which they are announced to the kernel, then the buffers.
struct Buffers {
    memory: NonNull<u8>,
    /// Which of them are not the kernel's now.
    is_out: [bool; BUFFERS as usize],
    /// How many were announced so far.
    announced: u16,
    /// Whether the kernel may write even when this is dropped.
    leak: bool,
}

impl Buffers {
    fn layout() -> Layout {
        let bytes = ANNOUNCED_BYTES + usize::from(BUFFERS) * BUFFER_STRIDE;
        Layout::from_size_align(bytes, ANNOUNCED_BYTES).expect("some hundred thousand bytes are a layout")
    }

    fn new() -> Buffers {
        let layout = Buffers::layout();
        // SAFETY: the layout is not empty.
        let memory = unsafe { alloc_zeroed(layout) };
        let memory = NonNull::new(memory).unwrap_or_else(|| std::alloc::handle_alloc_error(layout));
        Buffers { memory, is_out: [true; BUFFERS as usize], announced: 0, leak: false }
    }

    /// Where a buffer begins.
    #[inline]
    fn start(&self, buffer: u16) -> *mut u8 {
        debug_assert!(buffer < BUFFERS);
        // SAFETY: within the allocation, whose length is that of all buffers.
        unsafe { self.memory.as_ptr().add(ANNOUNCED_BYTES + usize::from(buffer) * BUFFER_STRIDE) }
    }

    /// Makes a buffer the kernel's, which is not its now.
    #[inline]
    fn announce(&mut self, buffer: u16) {
        assert!(std::mem::replace(&mut self.is_out[usize::from(buffer)], false), "the buffer is the kernel's already");
        let start = self.start(buffer) as u64;
        let entries = self.memory.as_ptr().cast::<BufRingEntry>();
        // SAFETY: the index is less than the number of entries, for which there is room and which are aligned, as a page
        // is. The kernel reads an entry only when the number behind has been raised past it. That number lies in a field
        // of the first entry that setting the others leaves alone.
        unsafe {
            let entry = &mut *entries.add(usize::from(self.announced & (BUFFERS - 1)));
            entry.set_addr(start);
            entry.set_len(BUFFER_BYTES as u32);
            entry.set_bid(buffer);
            self.announced = self.announced.wrapping_add(1);
            let number = BufRingEntry::tail(entries).cast_mut().cast::<AtomicU16>();
            (*number).store(self.announced, Ordering::Release);
        }
    }

    /// Takes note that the kernel has filled a buffer.
    ///
    /// # Panics
    /// When the kernel names one that is not its.
    #[inline]
    fn hand_out(&mut self, buffer: u16, len: u32) -> Filled {
        assert!(!self.is_out[usize::from(buffer)] && len as usize <= BUFFER_BYTES, "the kernel names a wrong buffer");
        self.is_out[usize::from(buffer)] = true;
        Filled { buffer, len }
    }

    #[inline]
    fn bytes(&self, filled: &Filled) -> &[u8] {
        assert!(
            self.is_out[usize::from(filled.buffer)] && filled.len() <= BUFFER_BYTES,
            "the buffer is another ring's"
        );
        // SAFETY: the buffer is not the kernel's as long as it is out, and cannot become its while `self` is borrowed;
        // all of it was initialised, with zeros, when it was allocated.
        unsafe { std::slice::from_raw_parts(self.start(filled.buffer), filled.len()) }
    }

    #[inline]
    fn give_back(&mut self, filled: Filled) {
        self.announce(filled.buffer);
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        if !self.leak {
            // SAFETY: allocated with this layout, and the kernel writes to it no more.
            unsafe { dealloc(self.memory.as_ptr(), Buffers::layout()) }
        }
    }
}
