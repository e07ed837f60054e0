//! Meta commands, and text commands between them: all flags that memcached 1.6.18 knows, and wrong ones. Answers are
//! compared line by line; of CAS tokens only whether it is the last that was told, of times what does not depend on the
//! moment.

use crate::sides::{Side, Token, compare, item_data};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::mem;
use tenon_testkit::random::Random;

const BATCHES: usize = 4_000;
/// None that ends while the test runs.
const TTLS: [&str; 5] = ["0", "1000", "1000", "5000", "-1"];
/// The answer to what shows that all before it were answered.
const LAST: &[u8] = b"NF O31337";
/// What a request has in place of a token that the server has told.
const LAST_TOKEN: &str = "{last}";
const WRONG_TOKEN: &str = "{wrong}";
/// 31 bytes are the most.
const OPAQUE_TOO_LONG: &str = "01234567890123456789012345678901";

fn key(random: &mut Random) -> String {
    match random.below(30) {
        0 => "k".repeat(250),
        1 => "k".repeat(251),
        2 => "\u{1}\u{ff}".to_owned(),
        _ => random.of(&["a", "b", "c", "d", "binary"]).to_owned(),
    }
}

/// One of the flags of a command, with an argument that is sometimes wrong.
fn flag(random: &mut Random, letters: &str) -> String {
    let letters: Vec<char> = letters.chars().collect();
    let letter = if random.one_in(60) { random.of(&['z', '!', '1', 'B', '~']) } else { random.of(&letters) };
    let argument = match letter {
        _ if random.one_in(60) => random.of(&["", "x", "99999999999999999999", "1x", "-1", "0"]),
        'T' | 'N' => random.of(&TTLS),
        'R' => random.of(&["30", "2000", "100000"]),
        'O' => random.of(&["1", "opaque", "0123456789012345678901234567890", OPAQUE_TOO_LONG]),
        'F' => random.of(&["0", "1", "4294967295"]),
        'C' => random.of(&[LAST_TOKEN, LAST_TOKEN, WRONG_TOKEN]),
        'J' => random.of(&["0", "5", "10", "9999999999"]),
        'D' => random.of(&["0", "1", "9", "1000"]),
        _ => "",
    };
    format!(" {letter}{argument}")
}

fn flags(random: &mut Random, letters: &str) -> String {
    let count = if random.one_in(200) { 30 } else { random.below(6) };
    let flags: String = (0..count).map(|_| flag(random, letters)).collect();
    // Whose token it is the answer tells.
    if flags.contains(" c") && !flags.contains(" k") { flags + " k" } else { flags }
}

/// Flags of a request that memcached has carried out before it sees that the opaque is too long.
fn told_first(flags: &str) -> String {
    flags.replace(OPAQUE_TOO_LONG, "1")
}

/// A mode, if one is given.
fn mode(random: &mut Random, modes: &[&'static str]) -> String {
    if random.one_in(2) { String::new() } else { format!(" M{}", random.of(modes)) }
}

/// A request's line and the data behind it.
struct Request {
    line: String,
    key: String,
    data: Option<Vec<u8>>,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\n{}", self.line)?;
        self.data.as_ref().map_or(Ok(()), |data| write!(f, " [{}]", data.escape_ascii()))
    }
}

impl Request {
    fn bytes(&self, side: &Side) -> Vec<u8> {
        let token = |token| side.token(self.key.as_bytes(), token).to_string();
        let line = self.line.replace(LAST_TOKEN, &token(Token::Last)).replace(WRONG_TOKEN, &token(Token::Wrong));
        let data = self.data.as_ref().map(|data| [data, &b"\r\n"[..]].concat());
        [line.as_bytes(), b"\r\n", &data.unwrap_or_default()].concat()
    }
}

/// The length of data as a request says it, seldom another one.
fn length(random: &mut Random, data: &[u8]) -> String {
    match random.below(80) {
        0 => (data.len() + 1 + random.below(5)).to_string(),
        1 => data.len().saturating_sub(1 + random.below(3)).to_string(),
        2 => random.of(&["x", "-1", "", "1x", "2147483647"]).to_owned(),
        _ => data.len().to_string(),
    }
}

/// Keys that were counted, and the flag that says how they are told.
type Counted = BTreeSet<(String, &'static str)>;

/// A request, unless it would look at a number that was `counted`.
fn request(random: &mut Random, counted: &mut Counted) -> Option<Request> {
    let name = key(random);
    // One key is always told in base64: to which memcached answers in base64 depends on how the item was stored.
    let (word, encoded) = match name.as_str() {
        "binary" => ("AP8=".to_owned(), " b"),
        "b" if random.one_in(40) => ("b!".to_owned(), " b"),
        _ => (name.clone(), ""),
    };
    let plain = |line: String| Request { line, key: word.clone(), data: None };
    // An item that memcached 1.6.18 makes for N is not known to it as one whose key is told in base64.
    let letters = |letters: &str| if encoded.is_empty() { letters.to_owned() } else { letters.replace('N', "") };
    let (is_counter, shows_text, made) = match random.below(20) {
        0..7 => {
            let flags = told_first(&flags(random, &letters("vvftkscchlquONRT")));
            (false, true, plain(format!("mg {word}{encoded}{flags}")))
        }
        // Memcached 1.6.18 takes the data for requests then, and does not pass it over.
        7..12 if word.len() > 250 => return None,
        7..12 => {
            let (data, mode) =
                (item_data(random), mode(random, &["S", "E", "A", "P", "R", "s", "e", "a", "p", "r", "x", "SS"]));
            let (len, flags) = (length(random, &data), flags(random, "cCFIkOqTT"));
            let line = format!("ms {word} {len}{encoded}{mode}{flags}");
            // Nor does it where there are too many flags.
            if line.split(' ').count() > 18 {
                return None;
            }
            let made = Request { key: word.clone(), line, data: Some(data) };
            (false, mode.contains(['A', 'P', 'a', 'p']), made)
        }
        12..14 => (false, false, plain(format!("md {word}{encoded}{}", flags(random, "qITCkO")))),
        14..17 => {
            let mode = mode(random, &["I", "i", "+", "D", "d", "-", "x", "II"]);
            let flags = told_first(&flags(random, &letters("tcvkOqNNJDC")));
            // A counter that memcached 1.6.18 makes is told of even to who asks for no answer.
            let flags = if flags.contains(" N") { flags.replace(" q", "") } else { flags };
            (true, false, plain(format!("ma {word}{encoded}{mode}{flags}")))
        }
        // Of a key in base64 memcached 1.6.18 tells the bytes, which may be any.
        17 if !encoded.is_empty() => return None,
        17 => (false, true, plain(format!("me {word}"))),
        18 => {
            let line = match random.below(8) {
                0 => "mn".to_owned(),
                1 => "mg".to_owned(),
                2 => "ms a".to_owned(),
                3 => "md".to_owned(),
                4 => "ma".to_owned(),
                5 => "me".to_owned(),
                6 => "mx a v".to_owned(),
                _ => String::new(),
            };
            (false, false, plain(line))
        }
        // After `get` with a key that is too long memcached forgets the answers that it has not sent yet.
        _ if word.len() > 250 || !encoded.is_empty() => return None,
        _ => match random.below(4) {
            0 => (false, true, plain(format!("get {word}"))),
            1 => (false, false, plain(format!("touch {word} 1000"))),
            2 => (true, false, plain(format!("incr {word} 1"))),
            _ => (false, false, plain(format!("delete {word}"))),
        },
    };
    if shows_text && counted.contains(&(word.clone(), encoded)) {
        return None;
    }
    if is_counter && word.len() <= 250 {
        counted.insert((word, encoded));
    }
    Some(made)
}

/// Some requests that are sent together. In memcached a number that becomes longer is a new item, which nobody has read;
/// of one that becomes shorter the text depends on who else holds the item at that moment. So keys that were `counted` are
/// stored anew before anything else, and in the batch that counts them nobody looks at them. An expiry that `ma` sets is
/// lost there with the old item, so T is not among its flags.
fn batch(random: &mut Random, counted: &mut Counted) -> Vec<Request> {
    let anew = |(key, encoded): (String, &str)| {
        let data = item_data(random);
        let line = format!("ms {key} {} T1000 q{encoded}", data.len());
        Request { line, key, data: Some(data) }
    };
    let mut batch: Vec<Request> = mem::take(counted).into_iter().map(anew).collect();
    for _ in 0..1 + random.below(10) {
        batch.extend(request(random, counted));
    }
    batch
}

/// The time to live that so many seconds were, a moment ago.
fn ttl(seconds: &str) -> String {
    match seconds.parse::<u64>() {
        // Of what has expired meanwhile memcached tells how long ago, in 32 bits without a sign.
        Ok(1_000_000_000..) => "0".to_owned(),
        Ok(seconds) => {
            let told = [1_000, 5_000].into_iter().find(|&ttl| (ttl - 200..=ttl).contains(&seconds));
            told.unwrap_or(seconds).to_string()
        }
        Err(_) => seconds.to_owned(),
    }
}

/// What can be compared of a line of an answer.
fn comparable(side: &mut Side, line: &str) -> String {
    // In which form the key in base64 is told depends there on who made the item, too.
    let line = line.replace("kAP8= b", "kbinary").replace("k\\x00\\xff", "kbinary");
    let mut words = line.split(' ');
    let first = words.next().unwrap_or_default();
    let is_meta = ["VA", "HD", "NS", "EX", "NF", "EN", "ME"].contains(&first);
    let mut shown = first.to_owned();
    let key = line.split(' ').skip(1).find_map(|word| word.strip_prefix('k')).unwrap_or_default();
    for (index, word) in words.enumerate() {
        shown.push(' ');
        let is_value_len = first == "VA" && index == 0;
        match word.split_at_checked(1) {
            Some(("c", token)) if is_meta && token.parse::<u64>().is_ok() => {
                shown.push_str("c-");
                shown.push_str(side.told(
                    if key == "binary" { b"AP8=" } else { key.as_bytes() },
                    token.parse().expect("it is a number"),
                ));
            }
            Some(("t", seconds)) if is_meta && !is_value_len => shown.push_str(&format!("t{}", ttl(seconds))),
            Some(("l", seconds)) if is_meta && seconds.parse::<u64>().is_ok() => shown.push('l'),
            _ if first == "ME" => match word.split_once('=') {
                // memcached 1.6.18 counts the seconds that are left below 0.
                Some(("exp", seconds)) => {
                    let left = if seconds == "-1" { seconds } else { seconds.trim_start_matches('-') };
                    shown.push_str(&format!("exp={}", ttl(left)));
                }
                Some((name @ ("la" | "cas" | "cls" | "size"), _)) => shown.push_str(name),
                _ => shown.push_str(word),
            },
            _ => shown.push_str(word),
        }
    }
    shown
}

fn read_line(side: &mut Side) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let mut byte = [0];
    while !line.ends_with(b"\r\n") {
        side.stream.read_exact(&mut byte).ok()?;
        line.push(byte[0]);
    }
    line.truncate(line.len() - 2);
    Some(line)
}

/// Sends the batch and gives what is answered, up to the last answer or the connection's end.
fn converse(side: &mut Side, batch: &[Request]) -> Vec<String> {
    let mut bytes: Vec<u8> = batch.iter().flat_map(|request| request.bytes(side)).collect();
    // Enough for the rest of data that was said to be longer.
    bytes.extend_from_slice(b"mn\r\nmn\r\nmn\r\nmn\r\nmd no-such-key O31337\r\n");
    side.stream.write_all(&bytes).expect("sent");
    let mut answers = Vec::new();
    loop {
        let Some(line) = read_line(side) else {
            answers.push("closed".to_owned());
            side.reconnect();
            return answers;
        };
        if line == LAST {
            return answers;
        }
        let line = line.escape_ascii().to_string();
        let len = match line.split(' ').collect::<Vec<_>>()[..] {
            ["VA", len, ..] | ["VALUE", _, _, len] => len.parse::<usize>().ok(),
            _ => None,
        };
        answers.push(comparable(side, &line));
        if let Some(len) = len {
            let mut data = vec![0; len + 2];
            side.stream.read_exact(&mut data).expect("the data is as long as its line says");
            answers.push(data.escape_ascii().to_string());
        }
    }
}

#[test]
fn random_meta_requests_are_answered_as_memcached_answers_them() {
    let mut counted = BTreeSet::new();
    let compared = compare(0x7e40_0003, BATCHES, |random| batch(random, &mut counted), converse);
    let Some(answered) = compared else { return };
    assert!(answered > BATCHES * 5, "{answered} answers are too few to say anything");
}
