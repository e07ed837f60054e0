//! How long at a time the scheduler lets a thread run while others want its core: the one setting of threads that the
//! server needs and no safe crate has. Knows nothing of what the thread does.

use std::io;
use std::time::Duration;

/// `struct sched_attr` of sched_setattr(2), in its first form, which all kernels take.
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

const _: () = assert!(size_of::<Attributes>() == 48);

/// Has the calling thread run with this niceness, and for this long at a time where others want its core too. Kernels
/// before 6.12 know no such length for an ordinary thread, and set the niceness alone.
///
/// # Errors
/// When the system refuses it.
pub fn set(niceness: i32, length: Duration) -> io::Result<()> {
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: 0,
        nice: niceness,
        priority: 0,
        runtime_ns: u64::try_from(length.as_nanos()).unwrap_or(u64::MAX),
        deadline_ns: 0,
        period_ns: 0,
    };
    // SAFETY: the call reads as many bytes of the structure as its first field says, which are all it has, and writes
    // none; 0 means the calling thread, and no flags.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gets_its_niceness_and_others_keep_theirs() {
        let niceness = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("is read");
            let behind_name = stat.rsplit_once(')').expect("a name in brackets").1.to_owned();
            // Field 19 of proc(5); the first behind the name is the third.
            behind_name.split_whitespace().nth(16).and_then(|word| word.parse::<i32>().ok()).expect("a number")
        };
        let before = niceness();
        let own = std::thread::spawn(move || {
            set(19, Duration::from_micros(100)).expect("is set");
            niceness()
        });
        assert_eq!(own.join().expect("ends"), 19);
        assert_eq!(niceness(), before);
    }

    #[test]
    fn what_is_no_niceness_is_put_within_the_limits() {
        let own = std::thread::spawn(|| set(100, Duration::ZERO).is_ok());
        assert!(own.join().expect("ends"));
    }
}
