//! How long at a time the scheduler lets a thread run while others want its core: the one setting of threads that the
//! server needs and no safe crate has; and whether the system lets one ask for it. Knows nothing of what the thread does.

use std::io::{self, Read};
use std::os::fd::AsRawFd;
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

/// Whether asking for that, or for a niceness alone, may end the process: a filter of system calls can do so where others
/// refuse (seccomp(2); systemd's SystemCallFilter without a SystemCallErrorNumber). Where there is a filter, a process of its
/// own tries it, which is quick as long as this one has little memory.
pub fn is_deadly() -> bool {
    is_filtered(&std::fs::read_to_string("/proc/self/status").unwrap_or_default()) && ends_who_asks()
}

/// Whether the status of a process, as proc(5) has it, says that its system calls are filtered, or nothing about it.
fn is_filtered(status: &str) -> bool {
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
    mode.is_none_or(|mode| mode.trim() == "2")
}

/// Whether a process ends that asks for it. Where none can be made, that is not known, and said to be so.
fn ends_who_asks() -> bool {
    // A process that was told to ignore the ends of others, as its children are in turn, learns nothing of how they ended.
    let Ok((mut survived, survives)) = io::pipe() else { return true };
    // SAFETY: of what this process has the new one uses nothing but its own stack: it makes system calls, and none that another
    // thread of this process could have left a lock for. `_exit` runs nothing else.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // A dump of its memory would look as if the server had failed.
        // SAFETY: plain numbers.
        unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
        let _ = set(19, Duration::from_micros(100));
        // SAFETY: plain numbers, a byte that is there, and an end.
        unsafe {
            libc::setpriority(libc::PRIO_PROCESS, 0, 19);
            libc::write(survives.as_raw_fd(), b".".as_ptr().cast(), 1);
            libc::_exit(0)
        }
    }
    drop(survives);
    if child < 0 {
        return true;
    }
    let is_survived = survived.read_exact(&mut [0]).is_ok();
    // SAFETY: plain numbers, and no place for a status.
    while unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
    !is_survived
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::io::Write;

    /// Has the kernel end this process at a system call of this number.
    fn forbid(call: libc::c_long) -> bool {
        let step = |code, jump: u8, value| libc::sock_filter { code, jt: jump, jf: 0, k: value };
        let (load, jump_if_equal, give) = (0x20, 0x15, 0x06);
        let mut steps = [
            // The number of the call is what the kernel's record of it begins with.
            step(load, 0, 0),
            step(jump_if_equal, 1, call as u32),
            step(give, 0, libc::SECCOMP_RET_ALLOW),
            step(give, 0, libc::SECCOMP_RET_KILL_PROCESS),
        ];
        let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
        // SAFETY: the program and its steps are there until the call returns.
        unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
        }
    }

    /// Whether a process that `prepare` makes of this one says that asking is deadly; `None` if it cannot be made so.
    fn says_deadly(prepare: impl Fn() -> bool) -> Option<bool> {
        // SAFETY: as in `ends_who_asks`, which the new process calls.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let code = if !prepare() { 2 } else { i32::from(ends_who_asks()) };
            // SAFETY: a plain number, and an end.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: the status is where the call may write it.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(libc::WIFEXITED(status));
        let code = libc::WEXITSTATUS(status);
        assert!((0..=2).contains(&code), "{code}");
        (code < 2).then_some(code == 1)
    }

    #[test]
    fn a_filter_that_ends_who_asks_is_known_before() {
        assert!(!ends_who_asks());
        for call in [libc::SYS_sched_setattr, libc::SYS_setpriority] {
            match says_deadly(|| forbid(call)) {
                Some(is_deadly) => assert!(is_deadly, "the call {call}"),
                None => {
                    let _ = writeln!(io::stderr(), "skipped: no filter of system calls is to be had here");
                }
            }
        }
    }

    #[test]
    fn who_was_told_to_ignore_how_processes_end_finds_out_too() {
        // SAFETY: no handler is set.
        let ignores = || unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) != libc::SIG_ERR };
        assert_eq!(says_deadly(ignores), Some(false));
    }

    #[test]
    fn without_a_filter_nothing_is_tried() {
        assert!(!is_filtered("Name:\ttenon\nSeccomp:\t0\nSeccomp_filters:\t0\n"));
        assert!(is_filtered("Name:\ttenon\nSeccomp:\t2\nSeccomp_filters:\t1\n") && is_filtered(""));
    }

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
