//! Debian's `/etc/memcached.conf`: options of memcached's command line, one a line, as the wrapper reads them with which
//! Debian's unit starts memcached. It knows no option but those that the wrapper passes by.

/// What the file says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct File {
    /// The words of its options.
    pub(super) words: Vec<String>,
    /// Whether it names a file for the log, which the wrapper leaves to who has started it.
    pub(super) names_log: bool,
}

/// Reads the file's text. `-d` and `-h` are passed by: whether the server goes to the background is for the unit or the
/// init script to say.
///
/// # Errors
/// With the number of a line that begins with another word than an option, counted from 1.
pub(super) fn read(text: &str) -> Result<File, usize> {
    let mut file = File { words: Vec::new(), names_log: false };
    for (number, line) in text.lines().enumerate() {
        let line = without_comment(line);
        match line.split_ascii_whitespace().next() {
            None => {}
            Some(option) if option.starts_with("-d") || option.starts_with("-h") => {}
            Some(option) if option.starts_with('-') => {
                file.words.extend(line.split_ascii_whitespace().map(str::to_owned));
            }
            Some("logfile") => file.names_log = true,
            Some(_) => return Err(number + 1),
        }
    }
    Ok(file)
}

/// The part of a line before a `#` that has no `\` before it.
fn without_comment(line: &str) -> &str {
    let begins = |&(at, _): &(usize, &str)| !line[..at].ends_with('\\');
    line.match_indices('#').find(begins).map_or(line, |(at, _)| &line[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_as_debians_wrapper_reads_it() {
        // Debian's own, without most of its comments.
        let text = "# memcached default config file\n\n# Run memcached as a daemon.\n-d\n\n\
                    # Log memcached's output\nlogfile /var/log/memcached.log\n\n# -v\n\n-m 64\n  -p 11211 # the default\n\
                    -u memcache\n-l 127.0.0.1\n# -c 1024\n-P /var/run/memcached/memcached.pid\n";
        let file = read(text).expect("it is right");
        let words = "-m 64 -p 11211 -u memcache -l 127.0.0.1 -P /var/run/memcached/memcached.pid";
        assert_eq!((file.words.join(" ").as_str(), file.names_log), (words, true));
        let file = read("-h\n-o idle_timeout=5 -vv\n-s /run/a\\#b\r\n").expect("it is right");
        assert_eq!((file.words.join(" ").as_str(), file.names_log), ("-o idle_timeout=5 -vv -s /run/a\\#b", false));
        assert_eq!(read("").expect("it is right").words, Vec::<String>::new());
        assert_eq!(read("-m 64\nport 11211\n"), Err(2));
    }
}
