//! What a step expects: replies, lines, silence or the end; and how what came is compared. Knows no socket.

use super::escape::{Captures, Template};
use super::pattern::{Kind, Matcher, Order, Pattern, parse_matcher};
use super::print;
use regex::bytes::Regex;
use tenon_client::Value;

/// One expectation of a step.
#[derive(Clone, Debug)]
pub enum Expected {
    /// A RESP reply.
    Reply(Pattern),
    /// A line of the memcached protocol, without its end.
    Line(Vec<LinePiece>),
    /// `<...>`: any number of lines, up to one that the next expectation accepts.
    AnyLines,
    /// `<none>`: nothing is waited for now. What comes nevertheless shows at the connection's next step or end.
    Nothing,
    /// `<closed>`: the server closes the connection.
    Closed,
}

/// A part of an expected line.
#[derive(Clone, Debug)]
pub enum LinePiece {
    /// Exactly this text.
    Text(Template),
    /// `<int 1..9 $name>`, `<any>` or `<bulk /regex/>`; a number or any text.
    Matcher(Matcher),
}

/// One thing that came from the server.
#[derive(Clone, Debug, PartialEq)]
pub enum Came {
    /// A RESP reply.
    Reply(Value),
    /// A line of the memcached protocol, without its end.
    Line(Vec<u8>),
    /// Bytes that are not what the protocol allows, and why.
    Garbage(Vec<u8>, String),
    /// Nothing, in the time given.
    Nothing,
    /// The end of the connection.
    Closed,
}

/// Reads the text of an expected line of the memcached protocol.
///
/// # Errors
/// Says what is not understood.
pub fn parse_line(text: &str) -> Result<Vec<LinePiece>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    loop {
        let at = unescaped_angle(rest).unwrap_or(rest.len());
        if at > 0 {
            pieces.push(LinePiece::Text(Template::parse(&rest[..at])?));
        }
        if at == rest.len() {
            return Ok(pieces);
        }
        let (matcher, after) = parse_matcher(&rest[at..])?;
        if !matches!(matcher.kind, Kind::Any | Kind::Int | Kind::Bulk) {
            return Err("a line is matched with <any>, <int> or <bulk /regex/>".to_owned());
        }
        pieces.push(LinePiece::Matcher(matcher));
        rest = after;
    }
}

fn unescaped_angle(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'<' => return Some(at),
            _ => {}
        }
    }
    None
}

impl Expected {
    /// Whether `came` is what is expected; if so, fills the captures it names.
    ///
    /// # Errors
    /// When a capture that the expectation uses is not filled.
    pub fn accepts(&self, came: &Came, captures: &mut Captures) -> Result<bool, String> {
        // Captured only when the whole matches: half a match must not leave a value behind.
        let mut found = captures.clone();
        let accepted = match (self, came) {
            (Expected::Reply(pattern), Came::Reply(value)) => reply_matches(pattern, value, &mut found)?,
            (Expected::Line(pieces), Came::Line(line)) => line_matches(pieces, line, &mut found)?,
            (Expected::AnyLines, Came::Line(_)) => true,
            (Expected::Nothing, Came::Nothing) | (Expected::Closed, Came::Closed) => true,
            _ => false,
        };
        if accepted {
            *captures = found;
        }
        Ok(accepted)
    }
}

impl Came {
    /// How a transcript would write it, over one or more lines.
    pub fn print(&self) -> String {
        match self {
            Came::Reply(value) => print::reply(value),
            Came::Line(line) => print::line(line),
            Came::Garbage(bytes, why) => format!("# {why}: \"{}\"", super::escape::escape(bytes)),
            Came::Nothing => "<none>".to_owned(),
            Came::Closed => "<closed>".to_owned(),
        }
    }
}

fn line_matches(pieces: &[LinePiece], line: &[u8], captures: &mut Captures) -> Result<bool, String> {
    // Most lines have no matcher, and some are megabytes long, which a regular expression must not be.
    if let [LinePiece::Text(template)] = pieces {
        return Ok(template.fill(captures)? == line);
    }
    if pieces.is_empty() {
        return Ok(line.is_empty());
    }
    let mut source = "(?s-u)^".to_owned();
    for piece in pieces {
        match piece {
            LinePiece::Text(template) => {
                template.fill(captures)?.iter().for_each(|byte| source.push_str(&format!("\\x{byte:02x}")));
            }
            LinePiece::Matcher(Matcher { kind: Kind::Int, .. }) => source.push_str("(-?[0-9]+)"),
            LinePiece::Matcher(Matcher { regex: Some(regex), .. }) => {
                source.push_str(&format!("((?:{}))", regex.as_str()));
            }
            LinePiece::Matcher(_) => source.push_str("(.*)"),
        }
    }
    source.push('$');
    let regex = Regex::new(&source).map_err(|error| error.to_string())?;
    let Some(found) = regex.captures(line) else { return Ok(false) };
    let matchers = pieces.iter().filter_map(|piece| match piece {
        LinePiece::Matcher(matcher) => Some(matcher),
        LinePiece::Text(_) => None,
    });
    let mut group = 1;
    for matcher in matchers {
        let text = found.get(group).map_or(&b""[..], |text| text.as_bytes());
        let number = || std::str::from_utf8(text).ok()?.parse::<f64>().ok();
        if let Some((low, high)) = matcher.range
            && !number().is_some_and(|number| (low..=high).contains(&number))
        {
            return Ok(false);
        }
        if let Some(name) = &matcher.name {
            captures.insert(name.clone(), text.to_vec());
        }
        // A regular expression of the transcript's own may hold groups too.
        group += 1 + matcher.regex.as_ref().map_or(0, |regex| regex.captures_len() - 1);
    }
    Ok(true)
}

fn reply_matches(pattern: &Pattern, value: &Value, captures: &mut Captures) -> Result<bool, String> {
    let text = |template: &Template, bytes: &[u8], captures: &Captures| Ok(template.fill(captures)? == bytes);
    match (pattern, value) {
        (Pattern::Simple(wanted), Value::Simple(got)) => text(wanted, got, captures),
        (Pattern::Error(wanted), Value::Error(got)) => text(wanted, got, captures),
        (Pattern::Bulk(wanted), Value::Bulk(got)) => text(wanted, got, captures),
        (Pattern::Verbatim(wanted_format, wanted), Value::Verbatim { format, text: got }) => {
            Ok(wanted_format.as_bytes() == format && text(wanted, got, captures)?)
        }
        (Pattern::Int(wanted), Value::Int(got)) => Ok(wanted == got),
        // Bits are compared: NaN is NaN here, and -0 is not 0.
        (Pattern::Double(wanted), Value::Double(got)) => Ok(wanted.to_bits() == got.to_bits()),
        (Pattern::Big(wanted), Value::BigNumber(got)) => Ok(wanted.as_bytes() == got.as_slice()),
        (Pattern::Bool(wanted), Value::Boolean(got)) => Ok(wanted == got),
        (Pattern::Nil, Value::NullBulk) | (Pattern::NilArray, Value::NullArray) | (Pattern::Null, Value::Null) => {
            Ok(true)
        }
        (Pattern::Array(Order::AsWritten, wanted), Value::Array(got)) | (Pattern::Push(wanted), Value::Push(got)) => {
            in_order(wanted, got, captures, reply_matches)
        }
        (Pattern::Array(Order::Any, wanted), Value::Array(got)) | (Pattern::Set(wanted), Value::Set(got)) => {
            in_any_order(wanted, got, captures, reply_matches)
        }
        (Pattern::Map(Order::AsWritten, wanted), Value::Map(got)) => in_order(wanted, got, captures, pair_matches),
        (Pattern::Map(Order::Any, wanted), Value::Map(got)) => in_any_order(wanted, got, captures, pair_matches),
        (Pattern::Attribute(wanted, about), Value::Attribute(got, value)) => {
            Ok(in_order(wanted, got, captures, pair_matches)? && reply_matches(about, value, captures)?)
        }
        (Pattern::Matcher(matcher), value) => Ok(matcher_accepts(matcher, value, captures)),
        _ => Ok(false),
    }
}

fn pair_matches(wanted: &(Pattern, Pattern), got: &(Value, Value), captures: &mut Captures) -> Result<bool, String> {
    Ok(reply_matches(&wanted.0, &got.0, captures)? && reply_matches(&wanted.1, &got.1, captures)?)
}

type Matches<W, G> = fn(&W, &G, &mut Captures) -> Result<bool, String>;

fn in_order<W, G>(wanted: &[W], got: &[G], captures: &mut Captures, matches: Matches<W, G>) -> Result<bool, String> {
    if wanted.len() != got.len() {
        return Ok(false);
    }
    for (wanted, got) in wanted.iter().zip(got) {
        if !matches(wanted, got, captures)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Takes for each wanted element the first left that fits: write those that fit the fewest first.
fn in_any_order<W, G>(
    wanted: &[W],
    got: &[G],
    captures: &mut Captures,
    matches: Matches<W, G>,
) -> Result<bool, String> {
    if wanted.len() != got.len() {
        return Ok(false);
    }
    let mut left: Vec<&G> = got.iter().collect();
    for wanted in wanted {
        let mut found = None;
        for (at, got) in left.iter().enumerate() {
            if matches(wanted, got, captures)? {
                found = Some(at);
                break;
            }
        }
        let Some(at) = found else { return Ok(false) };
        left.remove(at);
    }
    Ok(true)
}

fn matcher_accepts(matcher: &Matcher, value: &Value, captures: &mut Captures) -> bool {
    let (kind, number, text) = match value {
        Value::Int(number) => (Kind::Int, Some(*number as f64), number.to_string().into_bytes()),
        Value::Double(number) => (Kind::Double, Some(*number), number.to_string().into_bytes()),
        Value::Bulk(bytes) => (Kind::Bulk, None, bytes.clone()),
        Value::Simple(bytes) => (Kind::Simple, None, bytes.clone()),
        Value::Error(bytes) => (Kind::Error, None, bytes.clone()),
        Value::Verbatim { text, .. } => (Kind::Verbatim, None, text.clone()),
        // Nothing of the other types can be captured; `<any>` still accepts them.
        _ => (Kind::Any, None, Vec::new()),
    };
    let in_range = matcher.range.is_none_or(|(low, high)| number.is_some_and(|number| (low..=high).contains(&number)));
    let fits = matcher.regex.as_ref().is_none_or(|regex| regex.is_match(&text));
    let accepted = (matcher.kind == Kind::Any || matcher.kind == kind) && in_range && fits;
    if accepted && let Some(name) = &matcher.name {
        captures.insert(name.clone(), text);
    }
    accepted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcripts::pattern::parse_reply;

    fn value(bytes: &[u8]) -> Value {
        Value::decode(bytes).expect("RESP").expect("whole").0
    }

    fn accepts(pattern: &str, bytes: &[u8]) -> bool {
        let (pattern, rest) = parse_reply(pattern).expect("a pattern");
        assert_eq!(rest, "");
        Expected::Reply(pattern).accepts(&Came::Reply(value(bytes)), &mut Captures::new()).expect("no captures used")
    }

    const ALL: &[&[u8]] = &[
        b"+OK\r\n",
        b"+\r\n",
        b"+\"q\"\r\n",
        b"+a, b] \r\n",
        b"-ERR Protocol error: expected '$', got \"x\"\r\n",
        b"-OK\r\n",
        b":0\r\n",
        b":-9223372036854775808\r\n",
        b"$2\r\nOK\r\n",
        b"$0\r\n\r\n",
        b"$3\r\n\r\n\0\r\n",
        b"$1\r\n0\r\n",
        b"$-1\r\n",
        b"*-1\r\n",
        b"_\r\n",
        b"#t\r\n",
        b"#f\r\n",
        b",0\r\n",
        b",1.5\r\n",
        b",1e300\r\n",
        b",inf\r\n",
        b",nan\r\n",
        b"(12345678901234567890123\r\n",
        b"=7\r\ntxt:OK!\r\n",
        b"=7\r\nmkd:OK!\r\n",
        b"*0\r\n",
        b"~0\r\n",
        b"%0\r\n",
        b">0\r\n",
        b"*2\r\n+a, b\r\n*1\r\n-ERR x = y]\r\n",
        b"*2\r\n*1\r\n-ERR x = y]\r\n+a, b\r\n",
        b"*1\r\n*1\r\n*-1\r\n",
        b"~2\r\n:1\r\n:2\r\n",
        b"|1\r\n+ttl\r\n:5\r\n$1\r\na\r\n",
        b"*1\r\n|1\r\n+ttl\r\n:5\r\n+a\r\n",
        b"!7\r\nERR a\nb\r\n",
        b">2\r\n+message\r\n$1\r\na\r\n",
        b"%2\r\n+a\r\n:1\r\n$1\r\nb\r\n%1\r\n:1\r\n#t\r\n",
    ];

    #[test]
    fn a_printed_reply_accepts_itself_and_no_other() {
        for one in ALL {
            let printed = print::reply(&value(one));
            for other in ALL {
                assert_eq!(accepts(&printed, other), one == other, "{printed} against {}", other.escape_ascii());
            }
        }
    }

    #[test]
    fn a_long_reply_is_printed_over_lines_and_read_back() {
        let inner = [&b"*30\r\n"[..], &b"+some text\r\n".repeat(30)].concat();
        let bytes = [&b"%1\r\n+k\r\n"[..], &inner].concat();
        let printed = print::reply(&value(&bytes));
        assert_eq!(printed.lines().count(), 34);
        assert!(accepts(&printed, &bytes));
    }

    #[test]
    fn matchers_accept_what_they_say() {
        for (pattern, yes, no) in [
            ("<int>", &b":5\r\n"[..], &b"$1\r\n5\r\n"[..]),
            ("<int 90..100>", b":90\r\n", b":101\r\n"),
            ("<bulk /^a.c$/>", b"$3\r\nabc\r\n", b"$3\r\nabd\r\n"),
            ("<bulk /b/>", b"$3\r\nabc\r\n", b"+abc\r\n"),
            ("<error /^ERR/>", b"-ERR x\r\n", b"-WRONGTYPE x\r\n"),
            ("<double 1..2>", b",1.5\r\n", b",2.5\r\n"),
            ("[<any>, :1]", b"*2\r\n*0\r\n:1\r\n", b"*2\r\n*0\r\n:2\r\n"),
            ("unordered [:1, :2]", b"*2\r\n:2\r\n:1\r\n", b"*2\r\n:2\r\n:2\r\n"),
            ("set [:1, :2]", b"~2\r\n:2\r\n:1\r\n", b"*2\r\n:2\r\n:1\r\n"),
            ("[:1, :2]", b"*2\r\n:1\r\n:2\r\n", b"*2\r\n:2\r\n:1\r\n"),
            ("unordered {:1 => :2, :3 => :4}", b"%2\r\n:3\r\n:4\r\n:1\r\n:2\r\n", b"%2\r\n:3\r\n:2\r\n:1\r\n:4\r\n"),
        ] {
            assert!(accepts(pattern, yes), "{pattern}");
            assert!(!accepts(pattern, no), "{pattern}");
        }
    }

    #[test]
    fn captures_are_kept_only_when_the_whole_fits() {
        let mut captures = Captures::new();
        let (pattern, _) = parse_reply("[<int $id>, :1]").expect("a pattern");
        let expected = Expected::Reply(pattern);
        assert_eq!(expected.accepts(&Came::Reply(value(b"*2\r\n:7\r\n:2\r\n")), &mut captures), Ok(false));
        assert!(captures.is_empty());
        assert_eq!(expected.accepts(&Came::Reply(value(b"*2\r\n:7\r\n:1\r\n")), &mut captures), Ok(true));
        assert_eq!(captures["id"], b"7");
    }

    #[test]
    fn lines_match_whole_with_their_pieces() {
        let mut captures = Captures::new();
        let mut matches = |pattern: &str, line: &[u8]| {
            let expected = Expected::Line(parse_line(pattern).expect("a line"));
            expected.accepts(&Came::Line(line.to_vec()), &mut captures).expect("captures")
        };
        assert!(matches("VALUE k 0 3 <int $cas>", b"VALUE k 0 3 71"));
        assert!(matches(r"again \{$cas}", b"again 71"));
        assert!(!matches("VALUE k 0 3 <int>", b"VALUE k 0 3 x"));
        assert!(!matches("STORED", b"STORED "));
        assert!(!matches("STORED", b"NOT_STORED"));
        assert!(matches(r"STORED\x20", b"STORED "));
        assert!(matches(r"<bulk /(a)|b/> <int 1..2>", b"b 2"));
        assert!(!matches(r"<bulk /(a)|b/> <int 1..2>", b"b 3"));
        assert!(matches(r"a\<b.c", b"a<b.c"));
        assert!(!matches(r"a\<b.c", b"a<bxc"));
        assert!(matches(r"\xff<any>", b"\xff\n\xfe"));
        assert!(matches(r"\{x*2000000}", &[b'x'; 2_000_000]));
        assert!(!matches(r"\{x*2000000}", &[b'x'; 1_999_999]));
        assert!(matches("", b""));
        assert!(!matches("", b" "));
        let came = Came::Line(b" <x>\n\xff ".to_vec());
        let printed = came.print();
        assert!(matches(printed.strip_prefix("< ").expect("a line"), b" <x>\n\xff "), "{printed}");
    }
}
