//! Waiting in tests, for so long at most: who waits for what does not come says what that is, instead of hanging with the whole run.
//! Far longer than anything takes on a slow machine. Knows no server.

use std::io;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// How long anything is waited for.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// How often it is looked.
const PERIOD: Duration = Duration::from_millis(5);

/// Waits until `found` gives something.
///
/// # Panics
/// When that does not come.
pub fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    wait_within(PATIENCE, what, &mut found)
}

fn wait_within<T>(patience: Duration, what: &str, found: &mut dyn FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(PERIOD);
    }
}

/// Waits until it is so.
///
/// # Panics
/// When that does not come.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    wait_for(what, || is_so().then_some(()));
}

/// Waits until a process has ended by itself.
///
/// # Panics
/// When it does not.
pub fn end_of(child: &mut Child, what: &str) -> ExitStatus {
    wait_for(&format!("the end of {what}"), || child.try_wait().expect("it is a child"))
}

/// Waits until a process has ended, and gives what it has written.
///
/// # Panics
/// When it does not end: it is killed then.
pub fn output_of(child: Child, what: &str) -> Output {
    output_within(PATIENCE, child, what)
}

fn output_within(patience: Duration, child: Child, what: &str) -> Output {
    let pid = child.id().to_string();
    let (ended, end) = channel();
    std::thread::spawn(move || ended.send(child.wait_with_output()));
    end.recv_timeout(patience).map_or_else(
        |_| {
            let _ = Command::new("kill").args(["-KILL", &pid]).status();
            panic!("waited in vain for the end of {what}")
        },
        |output| output.expect("it is a child"),
    )
}

/// Runs a command to its end without input, and gives what it has written.
///
/// # Errors
/// When it cannot be started.
///
/// # Panics
/// When it does not end.
pub fn run(command: &mut Command) -> io::Result<Output> {
    run_within(PATIENCE, command)
}

/// [`run`] for what takes longer than anything else: with patience of its own.
///
/// # Errors
/// As for [`run`].
///
/// # Panics
/// As for [`run`].
pub fn run_within(patience: Duration, command: &mut Command) -> io::Result<Output> {
    let what = command.get_program().display().to_string();
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    Ok(output_within(patience, child, &what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    fn said(wait: impl FnOnce() + std::panic::UnwindSafe) -> String {
        let panic = catch_unwind(wait).expect_err("it does not come");
        panic.downcast_ref::<String>().expect("it says so in words").clone()
    }

    #[test]
    fn what_does_not_come_is_named() {
        let short = Duration::from_millis(20);
        assert_eq!(said(|| wait_within(short, "Godot", &mut || None)), "waited in vain for Godot");
        let endless = || Command::new("sleep").arg("1000").spawn().expect("it runs");
        assert_eq!(said(move || drop(output_within(short, endless(), "sleep"))), "waited in vain for the end of sleep");
    }

    #[test]
    fn what_comes_is_given() {
        let mut looks = 0;
        let third = wait_for("the third look", || {
            looks += 1;
            (looks == 3).then_some(looks)
        });
        assert_eq!(third, 3);
        let output = run(Command::new("sh").args(["-c", "echo said; exit 3"])).expect("it runs");
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(3), &b"said\n"[..]));
    }
}
