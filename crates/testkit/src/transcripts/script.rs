//! A transcript file as steps, and back to text with other replies. Knows not how steps are played.

use super::escape::{Template, is_name, split_arguments, split_quoted};
use super::expect::{Expected, parse_line};
use super::pattern::parse_reply;
use crate::target::{Dialect, Product, Setting, Side, Version};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A transcript file.
#[derive(Clone, Debug)]
pub struct Script {
    /// Where the file is.
    pub path: PathBuf,
    /// The protocol it speaks.
    pub dialect: Dialect,
    /// Which original server agrees with it.
    pub oracle: OracleRule,
    /// Settings the server must be started with.
    pub settings: Vec<Setting>,
    /// Files that settings name, and what is in them.
    pub files: Vec<(String, Template)>,
    /// Whether the file wants a server that nothing has used before.
    pub fresh: bool,
    /// What is done, in order.
    pub steps: Vec<Step>,
    lines: Vec<String>,
}

/// Which original server a file can be compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OracleRule {
    /// Any version of the dialect's first.
    Any,
    /// This version of this one, or a newer one.
    AtLeast(Product, Version),
    /// None, for this reason.
    None(String),
}

/// One thing to do and what must come of it.
#[derive(Clone, Debug)]
pub struct Step {
    /// The number of its first line, from 1.
    pub line: usize,
    /// The connection it uses; empty for the unnamed one.
    pub connection: String,
    /// What is done.
    pub action: Action,
    /// The only side that plays it, if not both.
    pub only: Option<Side>,
    /// How long it is repeated until it gives what is expected.
    pub until: Option<Duration>,
    /// What must come, in order.
    pub expected: Vec<Expectation>,
    /// The lines of the file after which, or instead of which, expectations stand.
    expected_lines: Range<usize>,
}

/// An expectation and its lines in the file.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// What is expected.
    pub what: Expected,
    /// How the file writes it.
    pub text: String,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Sends a RESP command.
    Command(Vec<Template>),
    /// Sends lines in one write, each ended with CR LF.
    Lines(Vec<Template>),
    /// Sends bytes as they are.
    Raw(Template),
    /// Sends nothing; waits for what the server sends by itself.
    Receive,
    /// Closes the connection from the client's side.
    Close,
    /// Does nothing for a while.
    Sleep(Duration),
}

impl Step {
    /// How the file writes what is done: the first line of the action.
    pub fn title<'a>(&self, script: &'a Script) -> &'a str {
        &script.lines[self.line - 1]
    }
}

impl Script {
    /// Reads a transcript's text; the path tells the dialect, by a folder called `redis` or `memcache`.
    ///
    /// # Errors
    /// `path:line: what is wrong`.
    pub fn parse(path: &Path, text: &str) -> Result<Script, String> {
        let dialect = Dialect::of_path(path).ok_or_else(|| {
            format!("{}: a transcript lies under a folder called 'redis' or 'memcache'", path.display())
        })?;
        let mut reader = Reader {
            script: Script {
                path: path.to_owned(),
                dialect,
                oracle: OracleRule::Any,
                settings: Vec::new(),
                files: Vec::new(),
                fresh: false,
                steps: Vec::new(),
                lines: text.lines().map(str::to_owned).collect(),
            },
            only: None,
            until: None,
            open: false,
        };
        let mut at = 0;
        while at < reader.script.lines.len() {
            at = reader.read(at).map_err(|what| format!("{}:{}: {what}", path.display(), at + 1))?;
        }
        if reader.only.is_some() || reader.until.is_some() {
            return Err(format!("{}: the last '!' or 'until' has no step", path.display()));
        }
        Ok(reader.script)
    }

    /// The file's text with other expectations: `fresh` gives for each step its new lines, or `None` to keep them.
    pub fn with_replies(&self, fresh: &[Option<Vec<String>>]) -> String {
        let mut text = String::new();
        let mut next = 0;
        let copy = |range: Range<usize>, text: &mut String| {
            for line in &self.lines[range] {
                text.push_str(line);
                text.push('\n');
            }
        };
        for (step, replies) in self.steps.iter().zip(fresh) {
            if let Some(replies) = replies {
                copy(next..step.expected_lines.start, &mut text);
                next = step.expected_lines.end;
                for reply in replies {
                    text.push_str(reply);
                    text.push('\n');
                }
            }
        }
        copy(next..self.lines.len(), &mut text);
        text
    }
}

struct Reader {
    script: Script,
    only: Option<Side>,
    until: Option<Duration>,
    /// Whether the line before belongs to the last step, so that its expectations or further lines can follow.
    open: bool,
}

impl Reader {
    /// Reads what begins at line `at`, counted from 0, and gives the line after it.
    fn read(&mut self, at: usize) -> Result<usize, String> {
        let line = self.script.lines[at].clone();
        if line.trim_end() != line {
            return Err("blanks at the end of a line can't be seen; write \\x20".to_owned());
        }
        if line.is_empty() || line.starts_with('#') {
            self.open = false;
        } else if let Some(mark) = line.strip_prefix("! ") {
            self.only = Some(read_mark(mark)?);
            self.open = false;
        } else if let Some(time) = line.strip_prefix("until ") {
            self.until = Some(read_duration(time)?);
            self.open = false;
        } else if let Some((connection, action)) = self.read_action(&line)? {
            self.add_step(at, connection, action)?;
        } else if self.open {
            return self.read_expected(at, &line);
        } else if self.script.steps.is_empty() && self.read_directive(&line)? {
        } else {
            return Err(format!("'{line}' is not understood here"));
        }
        Ok(at + 1)
    }

    fn read_directive(&mut self, line: &str) -> Result<bool, String> {
        let Some((name, value)) = line.split_once(": ") else { return Ok(false) };
        let side = match name {
            "oracle" => {
                self.script.oracle = read_oracle(value, self.script.dialect)?;
                return Ok(true);
            }
            "server" if value == "fresh" => {
                self.script.fresh = true;
                return Ok(true);
            }
            "file" => {
                let (name, text) = value.split_once(' ').ok_or("a file is a name, a blank and a text")?;
                self.script.files.push((name.to_owned(), Template::parse(text)?));
                return Ok(true);
            }
            "config" => None,
            "config tenon" => Some(Side::Tenon),
            "config oracle" => Some(Side::Oracle),
            _ => return Ok(false),
        };
        let (name, value) = value.split_once(' ').ok_or("a setting is a name, a blank and a value")?;
        self.script.settings.push(Setting { name: name.to_owned(), value: value.to_owned(), side });
        Ok(true)
    }

    fn read_action(&self, line: &str) -> Result<Option<(String, Action)>, String> {
        if let Some(time) = line.strip_prefix("sleep ") {
            return Ok(Some((String::new(), Action::Sleep(read_duration(time)?))));
        }
        let (connection, rest) = split_connection(line);
        let action = if let Some(command) = line_after(rest, ">") {
            match self.script.dialect {
                Dialect::Redis => Action::Command(split_arguments(command)?),
                Dialect::Memcache => Action::Lines(vec![Template::parse(command)?]),
            }
        } else if let Some(raw) = rest.strip_prefix("raw> ") {
            match split_quoted(raw)? {
                (inside, "") => Action::Raw(Template::parse(inside)?),
                (_, after) => return Err(format!("'{after}' after the closing quote")),
            }
        } else if rest == "receive" {
            Action::Receive
        } else if rest == "close" {
            Action::Close
        } else {
            return Ok(None);
        };
        if matches!(&action, Action::Command(arguments) if arguments.is_empty()) {
            return Err("a command needs a name".to_owned());
        }
        Ok(Some((connection.to_owned(), action)))
    }

    fn add_step(&mut self, at: usize, connection: String, action: Action) -> Result<(), String> {
        // Lines right below each other go out together: a storage command and its data block.
        if self.open
            && let Some(last) = self.script.steps.last_mut()
            && let (Action::Lines(lines), Action::Lines(more)) = (&mut last.action, &action)
            && last.connection == connection
            && last.expected.is_empty()
        {
            lines.extend(more.iter().cloned());
            last.expected_lines = at + 1..at + 1;
            return Ok(());
        }
        self.open = !matches!(action, Action::Sleep(_) | Action::Close);
        if self.until.is_some() && !matches!(action, Action::Command(_) | Action::Lines(_) | Action::Raw(_)) {
            return Err("only a step that sends something can be repeated".to_owned());
        }
        self.script.steps.push(Step {
            line: at + 1,
            connection,
            action,
            only: self.only.take(),
            until: self.until.take(),
            expected: Vec::new(),
            expected_lines: at + 1..at + 1,
        });
        Ok(())
    }

    fn read_expected(&mut self, at: usize, line: &str) -> Result<usize, String> {
        let (what, end) = match line {
            "<closed>" => (Expected::Closed, at + 1),
            "<none>" => (Expected::Nothing, at + 1),
            _ => match self.script.dialect {
                Dialect::Memcache if line == "<...>" => (Expected::AnyLines, at + 1),
                Dialect::Memcache => {
                    let text =
                        line_after(line, "<").ok_or_else(|| format!("a reply line begins with '< ': '{line}'"))?;
                    (Expected::Line(parse_line(text)?), at + 1)
                }
                Dialect::Redis => {
                    let text = self.script.lines[at..].join("\n");
                    let (pattern, rest) = parse_reply(&text)?;
                    if !(rest.is_empty() || rest.starts_with('\n')) {
                        let rest = rest.lines().next().unwrap_or_default();
                        return Err(format!("'{rest}' is left over behind a reply"));
                    }
                    let consumed = &text[..text.len() - rest.len()];
                    (Expected::Reply(pattern), at + 1 + consumed.matches('\n').count())
                }
            },
        };
        let text = self.script.lines[at..end].join("\n");
        let step = self.script.steps.last_mut().ok_or("a reply before the first step")?;
        step.expected.push(Expectation { what, text });
        step.expected_lines.end = end;
        Ok(end)
    }
}

/// What follows `mark` and a blank; nothing when `line` is the mark alone.
fn line_after<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    if line == mark { Some("") } else { line.strip_prefix(mark)?.strip_prefix(' ') }
}

/// Splits `[name] rest`; the name is empty where there is none. `[` also begins an array, which has no such name.
fn split_connection(line: &str) -> (&str, &str) {
    let named = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    match named {
        Some((name, rest)) if is_name(name) => (name, rest),
        _ => ("", line),
    }
}

fn read_mark(mark: &str) -> Result<Side, String> {
    let (who, reason) =
        mark.split_once(": ").ok_or("'! tenon only: reason' or '! oracle only: reason' was expected")?;
    if reason.trim().is_empty() {
        return Err("a step for one side only needs a reason".to_owned());
    }
    match who {
        "tenon only" => Ok(Side::Tenon),
        "oracle only" => Ok(Side::Oracle),
        _ => Err(format!("'! {who}' is not understood; '! tenon only' and '! oracle only' are")),
    }
}

fn read_oracle(value: &str, dialect: Dialect) -> Result<OracleRule, String> {
    if let Some(reason) = value.strip_prefix("none, ") {
        return Ok(OracleRule::None(reason.to_owned()));
    }
    let first = dialect.product().name();
    if value == first {
        return Ok(OracleRule::Any);
    }
    let rule = Product::speaking(dialect).iter().find_map(|&product| {
        let version = value.strip_prefix(product.name())?.strip_prefix(" >= ").and_then(Version::parse)?;
        Some(OracleRule::AtLeast(product, version))
    });
    rule.ok_or_else(|| format!("'oracle: {first}', 'oracle: {first} >= 1.2' or 'oracle: none, reason' was expected"))
}

fn read_duration(text: &str) -> Result<Duration, String> {
    let parsed = if let Some(number) = text.strip_suffix("ms") {
        number.parse().map(Duration::from_millis)
    } else if let Some(number) = text.strip_suffix('s') {
        number.parse().map(Duration::from_secs)
    } else {
        return Err(format!("'{text}' is no time such as 20ms or 2s"));
    };
    parsed.map_err(|_| format!("'{text}' is no time such as 20ms or 2s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redis(text: &str) -> Result<Script, String> {
        Script::parse(Path::new("t/redis/a/b.txt"), text)
    }

    #[test]
    fn steps_hold_what_follows_them() {
        let script = redis(
            "# Why.\noracle: redis >= 7.0\nconfig: maxmemory 10mb\n\n> GET a\nnil\n[a] > EXEC\n[\n  +OK\n]\n:1\n\n! tenon only: reason\nuntil 2s\n[a] raw> \"x\\n\"\n<closed>\nsleep 20ms\n",
        )
        .expect("a script");
        assert_eq!(script.oracle, OracleRule::AtLeast(Product::Redis, Version::parse("7.0").expect("a version")));
        assert_eq!(script.settings.len(), 1);
        let shape: Vec<_> = script.steps.iter().map(|s| (s.line, s.connection.as_str(), s.expected.len())).collect();
        assert_eq!(shape, [(5, "", 1), (7, "a", 2), (15, "a", 1), (17, "", 0)]);
        assert_eq!(script.steps[2].only, Some(Side::Tenon));
        assert_eq!(script.steps[2].until, Some(Duration::from_secs(2)));
    }

    #[test]
    fn other_replies_go_where_the_old_ones_stood() {
        let text = "# Why.\n> A\n:1\n:2\n\n> B\n# Note.\n> C\n+OK\n";
        let script = redis(text).expect("a script");
        assert_eq!(script.with_replies(&[None, None, None]), text);
        let fresh = [Some(vec![":9".to_owned()]), Some(vec!["[\n  +x\n]".to_owned()]), None];
        assert_eq!(script.with_replies(&fresh), "# Why.\n> A\n:9\n\n> B\n[\n  +x\n]\n# Note.\n> C\n+OK\n");
    }

    #[test]
    fn lines_below_each_other_go_out_together() {
        let path = Path::new("t/memcache/a/set.txt");
        let script =
            Script::parse(path, "> set k 0 0 1\n> a\n< STORED\n> get k\n<...>\n\n> quit\n\n> x\n").expect("a script");
        let lines: Vec<usize> = script
            .steps
            .iter()
            .map(|step| if let Action::Lines(lines) = &step.action { lines.len() } else { 0 })
            .collect();
        assert_eq!(lines, [2, 1, 1, 1]);
        assert_eq!(
            script.with_replies(&[None, None, Some(vec!["<closed>".to_owned()]), None]).lines().nth(7),
            Some("<closed>")
        );
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_line() {
        for (text, line) in [
            ("> GET a\nOK\n", 2),
            ("colour: red\n", 1),
            ("> GET a\n\nnil\n", 3),
            ("oracle: valkey\n", 1),
            ("> GET \"a\n", 1),
            ("> GET a \nnil", 1),
            ("! tenon: x\n", 1),
            ("until 3\n", 1),
            ("> A\n:1 :2\n", 2),
            (">\n", 1),
        ] {
            let error = redis(text).expect_err(text);
            assert!(error.starts_with(&format!("t/redis/a/b.txt:{line}: ")), "{error}");
        }
        assert!(redis("> A\n:1\nuntil 2s\n").is_err());
    }
}
