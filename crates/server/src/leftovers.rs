//! Files of saves that were killed, removed at the start: in a directory of a server that is killed again and again they would
//! fill the disk. Knows nothing of what is in them.

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};
use tenon_engine::saving::saver_of;

/// A file that was written to since is left alone: a process in another container cannot be seen from here.
const AT_REST: Duration = Duration::from_secs(60);

fn is_gone(process: u32) -> bool {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

/// Removes from a directory what saves have left that did not end. What cannot be removed costs room, no more.
pub(crate) fn remove(directory: &Path) {
    if let Err(error) = remove_from(directory, SystemTime::now()) {
        tracing::debug!(%error, "what killed saves have left cannot be looked for");
    }
}

fn remove_from(directory: &Path, now: SystemTime) -> io::Result<()> {
    for found in std::fs::read_dir(directory)? {
        let found = found?;
        let name = found.file_name();
        if !name.to_str().and_then(saver_of).is_some_and(is_gone) {
            continue;
        }
        let Ok(metadata) = found.metadata() else { continue };
        let is_at_rest = metadata.modified()? + AT_REST < now;
        if metadata.is_file() && is_at_rest && std::fs::remove_file(found.path()).is_ok() {
            tracing::info!("Removed {}, which a save that was killed has left", found.path().display());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, id};

    #[test]
    fn only_what_a_process_that_is_gone_has_left_goes() {
        let directory = std::env::temp_dir().join(format!("tenon-leftovers-{}", id()));
        std::fs::create_dir_all(&directory).expect("it can be made");
        let mut child = Command::new("true").spawn().expect("it runs");
        let gone = child.id();
        child.wait().expect("it ends");
        let left = format!("temp-{gone}.rdb");
        let stay = [format!("temp-{}.rdb", id()), format!("temp-{gone}x.rdb"), "temp-.rdb".into(), "dump.rdb".into()];
        stay.iter().chain([&left]).for_each(|name| std::fs::write(directory.join(name), "REDIS").expect("written"));
        let now = SystemTime::now();
        let names = || {
            let mut names: Vec<String> = std::fs::read_dir(&directory)
                .expect("it is there")
                .map(|found| found.expect("it is there").file_name().into_string().expect("it is text"))
                .collect();
            names.sort();
            names
        };
        remove_from(&directory, now).expect("it can be read");
        assert!(names().contains(&left), "it was written to a moment ago");
        remove_from(&directory, now + 2 * AT_REST).expect("it can be read");
        let mut stay = stay.to_vec();
        stay.sort();
        assert_eq!(names(), stay);
        std::fs::remove_dir_all(&directory).expect("it can be removed");
    }
}
