//! Commands out of a client's bytes, without copying them. Knows no command and no socket.

use super::error::ProtocolError;
use super::inline;
use super::number::{SHORT_COUNT_MAX, announcement, parse_i64, short_count, short_head};
use crate::span::{ArgSpans, Span};
use memchr::memchr2;

/// How much a client may ask for.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Longest argument in bytes (`proto-max-bulk-len`).
    pub bulk_len_max: usize,
    /// Most arguments of one command; Redis 7 takes what an `int` holds.
    pub multibulk_max: i64,
    /// Longest line in bytes: an inline command, or the line of a count.
    pub inline_max: usize,
    /// An argument of this many bytes, not yet wholly there, is left to the caller to fetch. `usize::MAX`: none.
    pub big_min: usize,
    /// Whether the client may send long commands. While it may not, decode one command at a time and run it: the
    /// limits may be lifted by it.
    pub authenticated: bool,
}

impl Limits {
    /// Most arguments of a client that has not authenticated, as in Redis.
    pub const UNAUTHENTICATED_MULTIBULK_MAX: i64 = 10;
    /// Longest argument in bytes of a client that has not authenticated, as in Redis.
    pub const UNAUTHENTICATED_BULK_LEN_MAX: usize = 16384;
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            bulk_len_max: 512 << 20,
            multibulk_max: i32::MAX as i64,
            inline_max: 64 << 10,
            big_min: 32 << 10,
            authenticated: true,
        }
    }
}

/// What the decoder made of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A command is complete: its arguments were appended, the next one starts at `end`.
    Command {
        /// Position behind the command.
        end: usize,
    },
    /// An empty command (a blank line, a count below one) reached to `end`: nothing to run, nothing to answer.
    Skip {
        /// Position behind the empty command.
        end: usize,
    },
    /// The command is not complete. Keep everything from its start, and call again with at least one byte more.
    Incomplete,
    /// The next `len` bytes of the stream, from position `at` of the buffer, are a big argument of the command.
    ///
    /// The caller takes them out of the stream, keeps what lies before `at` from the command's start, and calls
    /// [`CommandDecoder::big_taken`]. In the next buffer the bytes that follow the argument (its CR LF) lie at `at`.
    /// Until `big_taken` the same step is given again.
    Big {
        /// Number of the big argument in its command, counted from 0.
        index: u32,
        /// Length of the argument in bytes, of which fewer are in the buffer.
        len: usize,
        /// Position of its first byte.
        at: usize,
    },
}

/// How far the argument being read has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Bulk {
    /// Before its `$`.
    #[default]
    Length,
    /// Its length is known.
    Body(usize),
    /// The caller holds its bytes, CR LF is to come.
    Taken,
}

/// Reads commands (RESP arrays of bulk strings, or inline) one after another.
///
/// ```text
///             whole command in the buffer (fast path, no state touched)
///           +-----------------------------------------------------------+
///           |                                                           v
///  between commands --count line--> Length --length line--> Body --> Command
///           ^                         ^                      | |
///           |                         +----next argument-----+ +--> Big --big_taken--> Taken
///           +-- Skip (empty command)                                                     |
///                                     ^---------------next argument----------------------+
/// ```
///
/// Incomplete commands are resumed where they stopped: however the bytes trickle in, each is looked at a bounded
/// number of times. As in Redis the two bytes behind an argument, and the one behind a line's CR, are not looked at.
#[derive(Debug, Default)]
pub struct CommandDecoder {
    /// Arguments still to come; 0 between commands.
    missing: usize,
    /// Where to go on, counted from the command's first byte.
    pos: usize,
    /// How many bytes behind `pos` hold no line end.
    scanned: usize,
    bulk: Bulk,
    /// Big arguments of this command so far.
    bigs: u32,
    /// Arguments so far, counted from the command's first byte.
    partial: Vec<Span>,
}

/// Memory for arguments of an incomplete command that is kept for the next one, in arguments.
const PARTIAL_KEPT: usize = 64;

impl CommandDecoder {
    /// A decoder at the start of a stream; allocates nothing.
    pub const fn new() -> CommandDecoder {
        CommandDecoder { missing: 0, pos: 0, scanned: 0, bulk: Bulk::Length, bigs: 0, partial: Vec::new() }
    }

    /// Whether part of a command was read and its rest is awaited.
    pub fn is_inside_command(&self) -> bool {
        self.missing > 0 || self.scanned > 0
    }

    /// Bytes of memory held for an incomplete command.
    pub fn memory(&self) -> usize {
        self.partial.capacity() * size_of::<Span>()
    }

    /// Reads one command from `buf[start..]`; its arguments are appended to `args` when it is complete, and only then. One
    /// that may be written in another way than the plain one moves [`ArgSpans::plain_from`] behind itself.
    ///
    /// After [`Step::Incomplete`] and [`Step::Big`] the next call must begin with the same command's bytes: they may
    /// have moved, `start` says where to.
    ///
    /// # Errors
    /// When the stream is no RESP, or `buf` is longer than [`Span::REACH`]; the decoder is of no use then.
    #[inline]
    pub fn next(
        &mut self,
        buf: &[u8],
        start: usize,
        args: &mut ArgSpans,
        limits: &Limits,
    ) -> Result<Step, ProtocolError> {
        if self.missing == 0
            && limits.authenticated
            && buf.len() <= Span::REACH
            && let Some(end) = whole_command(buf, start, &mut args.spans, limits)
        {
            self.scanned = 0;
            return Ok(Step::Command { end });
        }
        self.resume(buf, start, args, limits)
    }

    /// Tells that the caller holds the bytes of the big argument that was asked for last.
    ///
    /// # Panics
    /// When none was asked for.
    pub fn big_taken(&mut self) {
        assert!(matches!(self.bulk, Bulk::Body(_)), "no big argument was asked for");
        self.bulk = Bulk::Taken;
    }

    /// The careful way: any command, in any number of pieces.
    #[inline(never)]
    fn resume(
        &mut self,
        buf: &[u8],
        start: usize,
        args: &mut ArgSpans,
        limits: &Limits,
    ) -> Result<Step, ProtocolError> {
        if buf.len() > Span::REACH {
            return Err(ProtocolError::CommandTooLong);
        }
        let input = &buf[start..];
        if self.missing == 0 {
            match input.first() {
                None => return Ok(Step::Incomplete),
                Some(b'*') => match self.read_count(input, limits)? {
                    None => return Ok(Step::Incomplete),
                    Some(count) if count <= 0 => {
                        let end = start + self.pos;
                        self.pos = 0;
                        return Ok(Step::Skip { end });
                    }
                    // At most `multibulk_max`, positive.
                    Some(count) => self.missing = count as usize,
                },
                Some(_) => return self.read_inline(input, start, args, limits),
            }
        }
        while self.missing > 0 {
            let ready = input.len() - self.pos;
            match self.bulk {
                Bulk::Length => match self.read_length(input, limits)? {
                    None => return Ok(Step::Incomplete),
                    Some(len) => self.bulk = Bulk::Body(len),
                },
                Bulk::Body(len) if ready >= len && ready - len >= 2 => {
                    self.partial.push(Span::bytes(self.pos, len));
                    self.argument_done(len);
                }
                Bulk::Body(len) if ready < len && len >= limits.big_min => {
                    return Ok(Step::Big { index: self.bigs, len, at: start + self.pos });
                }
                Bulk::Taken if ready >= 2 => {
                    self.partial.push(Span::big(self.bigs));
                    self.bigs += 1;
                    self.argument_done(0);
                }
                Bulk::Body(_) | Bulk::Taken => return Ok(Step::Incomplete),
            }
        }
        args.spans.extend(self.partial.iter().map(|span| span.shifted(start)));
        let end = start + self.pos;
        args.plain_from = args.plain_from.max(end);
        self.partial.clear();
        self.partial.shrink_to(PARTIAL_KEPT);
        self.pos = 0;
        self.bigs = 0;
        Ok(Step::Command { end })
    }

    /// Moves behind an argument of `len` bytes and its CR LF.
    fn argument_done(&mut self, len: usize) {
        self.pos += len + 2;
        self.bulk = Bulk::Length;
        self.missing -= 1;
    }

    /// The line with the number of arguments.
    fn read_count(&mut self, input: &[u8], limits: &Limits) -> Result<Option<i64>, ProtocolError> {
        let Some(line) = self.read_line(input, limits, ProtocolError::MultibulkCountTooLong)? else {
            return Ok(None);
        };
        match parse_i64(&line[1..]) {
            Some(count) if count <= limits.multibulk_max => {
                if count > Limits::UNAUTHENTICATED_MULTIBULK_MAX && !limits.authenticated {
                    return Err(ProtocolError::UnauthenticatedMultibulkLength);
                }
                Ok(Some(count))
            }
            _ => Err(ProtocolError::InvalidMultibulkLength),
        }
    }

    /// The line with the length of an argument.
    fn read_length(&mut self, input: &[u8], limits: &Limits) -> Result<Option<usize>, ProtocolError> {
        let Some(line) = self.read_line(input, limits, ProtocolError::BulkCountTooLong)? else {
            return Ok(None);
        };
        let digits = match line {
            [b'$', digits @ ..] => digits,
            // An empty line is only its CR, which is what Redis names then.
            [] => return Err(ProtocolError::ExpectedDollar(b'\r')),
            [got, ..] => return Err(ProtocolError::ExpectedDollar(*got)),
        };
        match parse_i64(digits).map(usize::try_from) {
            Some(Ok(len)) if len <= limits.bulk_len_max => {
                if len > Limits::UNAUTHENTICATED_BULK_LEN_MAX && !limits.authenticated {
                    return Err(ProtocolError::UnauthenticatedBulkLength);
                }
                Ok(Some(len))
            }
            _ => Err(ProtocolError::InvalidBulkLength),
        }
    }

    /// The line at `pos` without its CR LF, and moves behind it.
    ///
    /// A line that ends with a bare LF is given with it: it is no number. (Redis waits for a CR and says so then.)
    fn read_line<'a>(
        &mut self,
        input: &'a [u8],
        limits: &Limits,
        too_long: ProtocolError,
    ) -> Result<Option<&'a [u8]>, ProtocolError> {
        let line = &input[self.pos..];
        let line = &line[..line.len().min(limits.inline_max.saturating_add(1))];
        let Some(found) = memchr2(b'\r', b'\n', &line[self.scanned..]) else {
            self.scanned = line.len();
            return if line.len() > limits.inline_max { Err(too_long) } else { Ok(None) };
        };
        let found = self.scanned + found;
        if line[found] == b'\n' {
            return Ok(Some(&line[..=found]));
        }
        if input.len() - self.pos < found + 2 {
            self.scanned = found;
            return Ok(None);
        }
        self.pos += found + 2;
        self.scanned = 0;
        Ok(Some(&line[..found]))
    }

    /// A command on one line of plain text.
    #[cold]
    fn read_inline(
        &mut self,
        input: &[u8],
        start: usize,
        args: &mut ArgSpans,
        limits: &Limits,
    ) -> Result<Step, ProtocolError> {
        let line = &input[..input.len().min(limits.inline_max.saturating_add(1))];
        let Some(found) = memchr2(b'\n', 0, &line[self.scanned..]) else {
            self.scanned = line.len();
            return if line.len() > limits.inline_max {
                Err(ProtocolError::InlineTooLong)
            } else {
                Ok(Step::Incomplete)
            };
        };
        let found = self.scanned + found;
        if line[found] == 0 {
            return Err(ProtocolError::NulInInline);
        }
        self.scanned = 0;
        let line = line[..found].strip_suffix(b"\r").unwrap_or(&line[..found]);
        let end = start + found + 1;
        let before = args.spans.len();
        args.plain_from = args.plain_from.max(end);
        if let Err(error) = inline::split(line, start, args) {
            args.spans.truncate(before);
            return Err(error);
        }
        Ok(if args.spans.len() > before { Step::Command { end } } else { Step::Skip { end } })
    }
}

/// The end of the command at `start` when it is wholly in the buffer and plainly written, to the byte; its arguments are
/// appended.
///
/// Anything unusual, short or wrong gives nothing and appends nothing: [`CommandDecoder::resume`] finds out what it is. Not
/// inlined: on its own, all it works with stays in registers.
#[inline(never)]
fn whole_command(buf: &[u8], start: usize, spans: &mut Vec<Span>, limits: &Limits) -> Option<usize> {
    // No number read here is over the smallest limits that Redis lets one set.
    if limits.bulk_len_max < SHORT_COUNT_MAX || limits.multibulk_max < SHORT_COUNT_MAX as i64 {
        return None;
    }
    let before = spans.len();
    let end = append_whole(buf, start, spans);
    if end.is_none() {
        spans.truncate(before);
    }
    end
}

/// Appends the arguments of the command at `start`; gives its end.
#[inline(always)]
fn append_whole(buf: &[u8], start: usize, spans: &mut Vec<Span>) -> Option<usize> {
    let input = buf.get(start..)?;
    // `at` is where the line ends that is before the next argument. Most commands have few and a short name.
    let (missing, mut at) = match short_head(input) {
        Some((count @ 1.., len)) => {
            spans.push(Span::bytes(start + 8, len));
            (count - 1, start + 8 + len)
        }
        _ => {
            let (count, head_len) = short_count(input, b'*')?;
            // The shortest argument takes six bytes: a count that cannot be met is not tried.
            if count == 0 || count * 6 > input.len() - head_len {
                return None;
            }
            (count, start + head_len)
        }
    };
    for _ in 0..missing {
        let (len, head_len) = announcement(buf.get(at..)?)?;
        spans.push(Span::bytes(at + head_len, len));
        at += head_len + len;
    }
    buf.get(at..)?.starts_with(b"\r\n").then_some(at + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes all of `input` and tells what came of it, one line a step.
    fn transcript(input: &[u8], limits: &Limits) -> String {
        let mut decoder = CommandDecoder::new();
        let mut args = ArgSpans::new();
        let mut start = 0;
        let mut lines = Vec::new();
        while start < input.len() {
            args.clear();
            match decoder.next(input, start, &mut args, limits) {
                Ok(Step::Command { end }) => {
                    let shown = (0..args.spans.len()).map(|i| match args.get(i, input) {
                        crate::Place::Bytes(bytes) => bytes.escape_ascii().to_string(),
                        crate::Place::Big(number) => format!("<big {number}>"),
                    });
                    lines.push(shown.collect::<Vec<_>>().join(" "));
                    start = end;
                }
                Ok(Step::Skip { end }) => {
                    lines.push("(skip)".to_owned());
                    start = end;
                }
                Ok(Step::Incomplete) => {
                    lines.push("(incomplete)".to_owned());
                    break;
                }
                Ok(Step::Big { index, len, at }) => {
                    lines.push(format!("(big {index} len {len} at {at})"));
                    break;
                }
                Err(error) => {
                    let mut text = Vec::new();
                    error.write_to(&mut text);
                    lines.push(format!("({})", text.escape_ascii()));
                    break;
                }
            }
        }
        lines.join("\n")
    }

    #[track_caller]
    fn check(input: impl AsRef<[u8]>, expected: &str) {
        assert_eq!(transcript(input.as_ref(), &Limits::default()), expected);
    }

    #[test]
    fn commands() {
        check("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*1\r\n$4\r\nPING\r\n", "GET k\nPING");
        check("*1\r\n$0\r\n\r\n", "");
        check("*-10\r\n*0\r\n*1\r\n$4\r\nPING\r\n", "(skip)\n(skip)\nPING");
        check("\r\n\nPING\r\n  \nSET k \"a b\"\n", "(skip)\n(skip)\nPING\n(skip)\nSET k a b");
        check("*1\r\n$12\r\n123456789012\r\n", "123456789012");
        check("*1\r\n$4\r\nPI\r\n\r\n", "PI\\r\\n");
    }

    /// Put to redis-server 7.0.15: it answers PONG twice.
    #[test]
    fn does_not_look_at_the_line_ends_behind_lengths_and_arguments() {
        check("*1\rX$4\rYPINGZZPING\r\n", "PING\nPING");
    }

    #[test]
    fn incomplete() {
        let whole = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
        for cut in 1..whole.len() {
            check(&whole[..cut], "(incomplete)");
        }
        check("*2147483647\r\n", "(incomplete)");
        check("PING", "(incomplete)");
    }

    /// Texts and the limits' exact places as redis-server 7.0.15 gives them.
    #[test]
    fn errors() {
        for count in ["abc", "", "+1", "01", "-0", " 1", "2147483648", "99999999999999999999", "-99999999999999999999"]
        {
            check(format!("*{count}\r\n"), "(Protocol error: invalid multibulk length)");
        }
        for len in ["-1", "536870913", "04", "", "x", "99999999999999999999", "4\0"] {
            check(format!("*1\r\n${len}\r\n"), "(Protocol error: invalid bulk length)");
        }
        check("*1\r\nPING\r\n", "(Protocol error: expected \\'$\\', got \\'P\\')");
        check("*1\r\n*1\r\n$4\r\nPING\r\n", "(Protocol error: expected \\'$\\', got \\'*\\')");
        check(b"*1\r\n\xff\r\n", "(Protocol error: expected \\'$\\', got \\'\\xff\\')");
        check("*1\r\n\rX\r\n", "(Protocol error: expected \\'$\\', got \\'\\r\\')");
        check("*1\r\n\n\r\n", "(Protocol error: expected \\'$\\', got \\'\\n\\')");
        check("*1\n$4\r\nPING\r\n", "(Protocol error: invalid multibulk length)");
        check("*1\r\n$4\nPING\r\n", "(Protocol error: invalid bulk length)");
        check("PING \"a\r\n", "(Protocol error: unbalanced quotes in request)");
        check("PING\0\r\n", "(Protocol error: NUL byte in inline request)");
    }

    #[test]
    fn long_lines() {
        let ones = "1".repeat(70_000);
        for (before, text) in [("", "inline request"), ("*", "mbulk count string"), ("*1\r\n$", "bulk count string")] {
            let expected = format!("(Protocol error: too big {text})");
            check(format!("{before}{ones}"), &expected);
            // The sigil counts, the count line before it does not.
            let fits = 65_536 - usize::from(!before.is_empty());
            check(format!("{before}{}", &ones[..fits]), "(incomplete)");
            check(format!("{before}{}", &ones[..fits + 1]), &expected);
        }
        let blanks = " ".repeat(65_532);
        check(format!("PING{blanks}\n"), "PING");
        check(format!("PING{blanks} \n"), "(Protocol error: too big inline request)");
    }

    #[test]
    fn unauthenticated_clients_are_kept_short() {
        let limits = Limits { authenticated: false, ..Limits::default() };
        let check = |input: &str, expected: &str| assert_eq!(transcript(input.as_bytes(), &limits), expected);
        check("*11\r\n", "(Protocol error: unauthenticated multibulk length)");
        check("*10\r\n$16384\r\n", "(incomplete)");
        check("*2\r\n$16385\r\n", "(Protocol error: unauthenticated bulk length)");
        check("*2\r\n$4\r\nAUTH\r\n$1\r\nx\r\n", "AUTH x");
    }

    #[test]
    fn the_limits_are_kept_on_the_fast_path_too() {
        for bulk_len_max in [3, SHORT_COUNT_MAX] {
            let limits = Limits { bulk_len_max, multibulk_max: 2, ..Limits::default() };
            let check = |input: &str, expected: &str| assert_eq!(transcript(input.as_bytes(), &limits), expected);
            check("*2\r\n$3\r\nabc\r\n$0\r\n\r\n", "abc ");
            let over = bulk_len_max + 1;
            check(&format!("*1\r\n${over}\r\n{}\r\n", "x".repeat(over)), "(Protocol error: invalid bulk length)");
            check("*3\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n", "(Protocol error: invalid multibulk length)");
        }
    }

    #[test]
    fn a_big_argument_is_left_to_the_caller() {
        let limits = Limits { big_min: 8, ..Limits::default() };
        let mut decoder = CommandDecoder::new();
        let mut args = ArgSpans::new();
        let mut buf = b"xx*4\r\n$3\r\nSET\r\n$10\r\n0123".to_vec();
        let big = Ok(Step::Big { index: 0, len: 10, at: 20 });
        assert_eq!(decoder.next(&buf, 2, &mut args, &limits), big);
        assert_eq!(decoder.next(&buf, 2, &mut args, &limits), big, "until it is taken");
        decoder.big_taken();
        // The command's front moves to the start of another buffer.
        buf = buf[2..20].to_vec();
        assert_eq!(decoder.next(&buf, 0, &mut args, &limits), Ok(Step::Incomplete));
        buf.extend(b"\r");
        assert_eq!(decoder.next(&buf, 0, &mut args, &limits), Ok(Step::Incomplete));
        buf.extend(b"\n$9\r\n");
        let at = buf.len();
        assert_eq!(decoder.next(&buf, 0, &mut args, &limits), Ok(Step::Big { index: 1, len: 9, at }));
        decoder.big_taken();
        buf.extend(b"\r\n$8\r\nabcdefgh");
        assert_eq!(decoder.next(&buf, 0, &mut args, &limits), Ok(Step::Incomplete), "wholly there: not big");
        assert!(args.spans.is_empty());
        buf.extend(b"\r\n*1\r\n$4\r\nPING\r\n");
        let end = buf.len() - 14;
        assert_eq!(decoder.next(&buf, 0, &mut args, &limits), Ok(Step::Command { end }));
        let got: Vec<_> = (0..4).map(|i| args.get(i, &buf)).collect();
        use crate::Place::{Big, Bytes};
        assert_eq!(got, [Bytes(b"SET"), Big(0), Big(1), Bytes(b"abcdefgh")]);
        args.clear();
        assert_eq!(decoder.next(&buf, end, &mut args, &limits), Ok(Step::Command { end: buf.len() }));
        assert_eq!(args.get(0, &buf), Bytes(b"PING"));
    }
}
