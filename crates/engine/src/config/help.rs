//! What people read about the settings, made from the table: `--help` and docs/configuration.md. It knows which
//! settings a newcomer wants first, and nothing else about any of them.

use std::fmt::Write;

use super::error::LoadProblem;
use super::loader::nearest;
use super::setting::{At, Group, Initial, Kind, Setting, Support};
use super::table::{SETTINGS, find};
use super::unsupported::{ACCEPTED_AT_DEFAULT, FORGOTTEN, Otherwise, UNSUPPORTED_DIRECTIVES};

/// The settings that `--help` shows without further asking.
const FIRST: &[&str] = &[
    "port",
    "memcached-port",
    "bind",
    "unixsocket",
    "maxmemory",
    "maxmemory-policy",
    "workers",
    "maxclients",
    "timeout",
    "requirepass",
    "loglevel",
    "logfile",
    "log-format",
];

/// How many names a flag's line shows; more are listed below it.
const CHOICES_SHOWN_MAX: usize = 5;

/// Columns of the help text.
const WIDTH: usize = 100;

/// The text of `--help`, of `--help all`, or of `--help <setting>`.
pub fn help(topic: Option<&str>) -> Result<String, LoadProblem> {
    match topic {
        None => Ok(overview()),
        Some("all") => Ok(every_setting()),
        Some(topic) => {
            let name = topic.trim_start_matches("--");
            let unknown = || LoadProblem::UnknownSetting { name: name.to_owned(), nearest: nearest(name) };
            let setting = find(name).ok_or_else(unknown)?;
            let mut text = entry(setting);
            for alias in setting.aliases {
                text.push_str(&wrapped(&format!("Also known as --{alias}."), 6));
            }
            text.push_str(&wrapped(changeable(setting), 6));
            Ok(text)
        }
    }
}

fn overview() -> String {
    let mut text = String::from(
        "\
Tenon: one in-memory data server in place of Redis and Memcached, on one keyspace.

Usage: tenon [FILE] [--SETTING VALUE ...]...
       tenon memcached [OPTION]... in the place of memcached, with its options
       tenon check aof|rdb FILE    look through a file of data; an aof with --fix mends its end
       tenon -                     read the configuration from the standard input
       tenon --help all            show every setting
       tenon --help SETTING        show one setting
       tenon --version

FILE is in the form of redis.conf. Flags have the names of the settings and override the file.

Examples:
  tenon                                          RESP on 6379, memcached on 11211, loopback only
  tenon --port 7000 --memcached-port 0           RESP alone, on another port
  tenon --maxmemory 2gb --maxmemory-policy allkeys-tenon
                                                 a cache: at 2 GiB, what is of least use goes
  tenon --bind 0.0.0.0 --requirepass SECRET      reachable from other machines
  tenon /etc/redis/redis.conf --daemonize no     with the configuration of a Redis

Try it:
  redis-cli -p 6379 set greeting hello
  printf 'get greeting\\r\\nquit\\r\\n' | nc 127.0.0.1 11211
",
    );
    for group in Group::ALL {
        let mut members = SETTINGS.iter().filter(|s| s.group == *group && FIRST.contains(&s.name)).peekable();
        if members.peek().is_some() {
            let _ = write!(text, "\n{}:\n", group.title());
        }
        members.for_each(|setting| text.push_str(&entry(setting)));
    }
    text.push_str(
        "\nThe same settings can be read and changed in a running server with CONFIG GET and CONFIG SET.\n\
         docs/configuration.md explains all of them, docs/commands.md the commands.\n",
    );
    text
}

fn every_setting() -> String {
    let mut text = String::from("Every setting of Tenon, as a flag; in a file, the same without the dashes.\n");
    for group in Group::ALL {
        let _ = write!(text, "\n{}:\n", group.title());
        let members = SETTINGS.iter().filter(|setting| setting.group == *group);
        members.for_each(|setting| text.push_str(&entry(setting)));
    }
    for (otherwise, heading) in [
        (Otherwise::Refused, "These settings of Redis and Valkey are accepted at their defaults only:"),
        (Otherwise::Warned, "These settings of Redis and Valkey have no effect:"),
    ] {
        let these = ACCEPTED_AT_DEFAULT.iter().filter(|fixed| fixed.otherwise == otherwise);
        let names: Vec<_> = these.map(|fixed| fixed.name).collect();
        let _ = write!(text, "\n{heading}\n{}", wrapped(&names.join(", "), 2));
    }
    text
}

/// The flag, what it takes, its default, and below it what it does.
fn entry(setting: &Setting) -> String {
    let (default, _) = default_of(setting);
    let mut text = format!("  --{} {}\n", setting.name, placeholder(&setting.kind));
    let default = if default.is_empty() { "none".to_owned() } else { default };
    let names = match setting.kind {
        Kind::Choice(names) if names.len() > CHOICES_SHOWN_MAX => format!(" One of {}.", names.join(", ")),
        _ => String::new(),
    };
    text.push_str(&wrapped(&format!("{}{names} [{default}]", described(setting)), 6));
    text
}

/// What a value looks like, for help.
fn placeholder(kind: &Kind) -> String {
    match kind {
        Kind::Bool => "yes|no".into(),
        Kind::Int { .. } | Kind::Clamped { .. } | Kind::PowerOfTwo { .. } => "NUMBER".into(),
        Kind::Octal { .. } => "MODE".into(),
        Kind::Memory { .. } | Kind::MemoryUpTo { .. } => "BYTES".into(),
        Kind::MemoryOrPercent | Kind::MemoryOrShare => "BYTES|PERCENT%".into(),
        Kind::Choice(names) if names.len() <= CHOICES_SHOWN_MAX => names.join("|"),
        Kind::Choice(_) => "NAME".into(),
        Kind::Text => "TEXT".into(),
        Kind::FileName | Kind::PlainName(_) => "NAME".into(),
        Kind::Directory => "DIRECTORY".into(),
        Kind::Words { .. } => "WORD...".into(),
        Kind::SavePoints => "[SECONDS CHANGES]...".into(),
        Kind::OutputBufferLimits => "[CLASS HARD SOFT SECONDS]...".into(),
        Kind::NotifyFlags => "LETTERS".into(),
        Kind::Percentiles => "NUMBER...".into(),
        Kind::EndWords => "WORD...".into(),
    }
}

/// The default, and whether it is a literal value rather than a description of one.
fn default_of(setting: &Setting) -> (String, bool) {
    match setting.initial {
        Initial::Is(text) => (text.to_owned(), true),
        Initial::OfMachine { text, .. } => (text.to_owned(), false),
    }
}

/// The setting's doc, and how far Tenon honours it.
fn described(setting: &Setting) -> String {
    let doc = setting.doc.trim();
    match setting.support {
        Support::Full => doc.to_owned(),
        Support::Only { values, reason } => {
            let values: Vec<_> = values.iter().map(|value| if value.is_empty() { "\"\"" } else { value }).collect();
            format!("{doc} Only {} for now: {reason}.", values.join(" and "))
        }
        Support::Moot(note) => format!("{doc} Any value will do: {}", decapitalised(note)),
        Support::NoEffect(note) => format!("{doc} Without effect: {}", decapitalised(note)),
    }
}

/// A sentence as it stands after a colon. The name of the product keeps its capital.
fn decapitalised(sentence: &str) -> String {
    match sentence.split_at_checked(1) {
        Some((first, rest)) if !sentence.starts_with("Tenon") => first.to_ascii_lowercase() + rest,
        _ => sentence.to_owned(),
    }
}

fn changeable(setting: &Setting) -> &'static str {
    match setting.at {
        At::Runtime => "CONFIG SET can change it in a running server.",
        At::Start => "It can only be given at the start.",
    }
}

/// A text broken into lines that start with so many blanks.
fn wrapped(text: &str, indent: usize) -> String {
    let mut lines = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let len = word.chars().count();
        if column > 0 && column + 1 + len <= WIDTH {
            lines.push(' ');
            column += 1 + len;
        } else {
            if column > 0 {
                lines.push('\n');
            }
            lines.push_str(&" ".repeat(indent));
            column = indent + len;
        }
        lines.push_str(word);
    }
    lines.push('\n');
    lines
}

/// The text of docs/configuration.md.
pub fn docs() -> String {
    let mut text = String::from(
        "\
# Configuration

<!-- Generated from the table of settings in crates/engine/src/config/table.rs: change it there. -->

Settings come from three places, each overriding the one before:

1. a file in the form of redis.conf: `tenon FILE`, or `tenon -` for the standard input;
2. flags of the same names: `tenon FILE --maxmemory 2gb --bind 127.0.0.1 ::1`;
3. `CONFIG SET` in the running server, where the table says \"runtime\". `CONFIG GET` shows what is in force, and
   `CONFIG REWRITE` makes the file say it: comments and order stay, changed lines are replaced in place, new ones are
   appended.

A setting that is unknown or has a wrong value stops the start with its file, its line and the nearest known name.

## The form of a file

- One setting a line: a name, blanks, a value. Lines that start with `#` are comments.
- Values with blanks stand in quotes: `\"a \\\"b\\\" \\x41\\n\"` with escapes, `'it\\'s'` without.
- Bytes take a unit: `1k` is 1,000, `1kb` is 1,024, and so on with `m`, `mb`, `g` and `gb`. Percentages, where allowed,
  are of the memory the process may use, those of `maxmemory-clients` of `maxmemory`.
- `include PATH` reads another file in that place; wildcards may match any number of files, in order of their names.
- `rename-command OLD NEW` has clients and scripts call a command by another name, or by none where that is `\"\"`. The
  names of other commands cannot be taken, not even of those that have another one now. Rules of users name commands as
  they are declared, and so does the log.
- `user NAME RULES...` makes a user, with rules as ACL SETUSER takes them; not beside `aclfile`.
- Repeated `save` lines add up, with those of the command line behind them, up to an empty one; so do
  `client-output-buffer-limit` lines of different classes. Of other settings the last line counts.

## Coming from Redis

A redis.conf loads as it is unless it asks for something that Tenon does not do; Debian's `/etc/redis/redis.conf` does
not. Its `logfile` and `dir` must be accessible, as for Redis. Settings of Redis that have no effect here load with a warning in the log; so
do those that tune features which Tenon lacks. What would promise such a feature stops the start (see the end of this page).

Four defaults differ from Redis. Clients of memcached are served too, at `memcached-port` 11211, and asked for a password by
`memcached-auth` alone: a second server on the machine, or beside a memcached, needs another port or `memcached-port 0`. The port is
not opened unless it is named where clients of RESP are guarded by `requirepass`, `user` or `aclfile`, or where `port 0`
leaves them a UNIX socket or TLS; the log says so. (A password that is set while the server runs leaves the port as it is, and CONFIG
REWRITE names it then.) `bind` is `127.0.0.1` rather than all addresses, `maxmemory` is 80% of the memory
rather than unlimited (`--maxmemory 0`), and `save` is empty. A redis.conf without a `save` line, like Debian's, has Redis
write `dump.rdb` by `save 3600 1 300 100 60 10000` and at its end; Tenon wants the line to be there, and says at its start
what keeps the data. `daemonize` alone writes no `pidfile`: it has to be named.

A unit of systemd's that was written for Redis, such as Debian's, wants three changes (`systemctl edit`): `ExecStart=` and
`ExecPaths=` name the program; `RemoveIPC=no`, since systemd otherwise takes from `/dev/shm` what a killed server has confirmed and not yet
written, and with `appendfsync everysec` the next one lacks the last milliseconds; `SystemCallFilter=sched_setattr setpriority`, without
which a save takes as much of the cores as the clients (the log says so).
",
    );
    for group in Group::ALL {
        let _ =
            write!(text, "\n## {}\n\n| setting | default | changes | meaning |\n|---|---|---|---|\n", group.title());
        SETTINGS.iter().filter(|setting| setting.group == *group).for_each(|setting| docs_row(&mut text, setting));
    }
    text.push_str(
        "\n## Not supported yet\n\nThese settings of Redis and Valkey have this value only. CONFIG SET refuses any \
         other; in a file or on the command line it stops the start, or brings a warning where it has no effect.\n\n\
         | setting | value | another one | reason |\n|---|---|---|---|\n",
    );
    for fixed in ACCEPTED_AT_DEFAULT {
        let names: Vec<_> = fixed.names().map(|name| format!("`{name}`")).collect();
        let other = match fixed.otherwise {
            Otherwise::Refused => "stops the start",
            Otherwise::Warned => "has no effect",
        };
        let _ = writeln!(text, "| {} | {} | {other} | {}. |", names.join(", "), code(fixed.value), fixed.reason);
    }
    text.push_str("\nThese directives of Redis always stop the start:\n\n");
    for (name, reason) in UNSUPPORTED_DIRECTIVES {
        let _ = writeln!(text, "- `{name}`: {reason}.");
    }
    let forgotten: Vec<_> = FORGOTTEN.iter().map(|name| format!("`{name}`")).collect();
    let names = forgotten.join(", ");
    let _ = writeln!(text, "\nThese have no effect, as in Redis or Valkey itself, and bring a warning: {names}.");
    text
}

fn docs_row(text: &mut String, setting: &Setting) {
    let names: Vec<_> = setting.names().map(|name| format!("`{name}`")).collect();
    let default = match default_of(setting) {
        (default, true) => code(&default),
        (default, false) => default,
    };
    let changes = match setting.at {
        At::Runtime => "runtime",
        At::Start => "start",
    };
    let values = match setting.kind {
        Kind::Choice(names) => {
            format!(" One of {}.", names.iter().map(|name| code(name)).collect::<Vec<_>>().join(", "))
        }
        _ => String::new(),
    };
    let _ = writeln!(text, "| {} | {default} | {changes} | {}{values} |", names.join(", "), described(setting));
}

/// A value in a Markdown table.
fn code(value: &str) -> String {
    if value.is_empty() { "`\"\"`".to_owned() } else { format!("`{value}`") }
}
