//! Running a program to its end, for so long at most: one that hangs fails its test instead of hanging with the whole run.

use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Far longer than any of these takes on a slow machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// What a program has written that has no input.
pub fn ended(mut command: Command) -> Output {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let pid = child.id().to_string();
    let (ended, end) = channel();
    std::thread::spawn(move || ended.send(child.wait_with_output()));
    end.recv_timeout(PATIENCE).map_or_else(
        |_| {
            let _ = Command::new("kill").args(["-KILL", &pid]).status();
            panic!("waited in vain for the end of {command:?}")
        },
        |output| output.expect("it is a child"),
    )
}
