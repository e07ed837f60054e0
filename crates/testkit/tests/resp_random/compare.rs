//! Plays cases on both sides, compares what is answered and what is stored then, and makes a case that shows a difference
//! as short as it can be. Knows no command but those that look at the data; what may differ is said in `known.rs`.

use crate::grammar::{Grammar, Request};
use crate::known;
use crate::reply::Reply;
use crate::sides::{Side, sides};
use std::env;
use std::fmt::{self, Write as _};
use tenon_testkit::random::Random;

/// A request and the connection that it is sent on.
#[derive(Clone)]
pub struct Step {
    pub connection: usize,
    pub request: Request,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]", self.connection)?;
        for word in &self.request {
            let is_plain = !word.is_empty() && word.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'"');
            if is_plain {
                write!(f, " {}", word.escape_ascii())?;
            } else {
                write!(f, " \"{}\"", word.escape_ascii())?;
            }
        }
        Ok(())
    }
}

/// A place where the two differ.
struct Difference {
    what: String,
    answers: [String; 2],
}

/// How many differences are shown before a run ends.
const SHOWN: usize = 12;

/// Plays so many random cases (as many times more as `TENON_RANDOM_TIMES` says) and fails with those that differ.
pub fn compare(seed: u64, cases: usize, grammars: &[&Grammar]) {
    let Some(mut sides) = sides() else { return };
    let number = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>().expect(name));
    let cases = cases as u64 * number("TENON_RANDOM_TIMES").unwrap_or(1);
    let first = number("TENON_RANDOM_SEED").unwrap_or(seed);
    let mut report = String::new();
    let mut seen: Vec<String> = Vec::new();
    for case in 0..cases {
        let seed = first + case;
        let steps = steps(grammars, &mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1));
        let Some(difference) = play(&mut sides, &steps) else { continue };
        let (steps, difference) = shorten(&mut sides, steps, difference);
        // The same difference shows in many cases.
        let kind = kind(&steps, &difference);
        if seen.contains(&kind) {
            continue;
        }
        seen.push(kind);
        let _ = writeln!(report, "\nTENON_RANDOM_SEED={seed}, shortened:");
        for step in &steps {
            let _ = writeln!(report, "  {step:?}");
        }
        let [tenon, redis] = &difference.answers;
        let _ = writeln!(report, "{}\n  tenon: {tenon}\n  redis: {redis}", difference.what);
        if seen.len() == SHOWN {
            break;
        }
    }
    assert!(report.is_empty(), "{} differences{report}", seen.len());
}

/// What makes two differences look alike.
fn kind(steps: &[Step], difference: &Difference) -> String {
    let command = steps.last().map(|step| step.request[0].to_ascii_uppercase()).unwrap_or_default();
    let shape = |text: &str| text.chars().filter(|byte| !byte.is_ascii_digit()).take(40).collect::<String>();
    let [tenon, redis] = &difference.answers;
    format!("{} {} {}", command.escape_ascii(), shape(tenon), shape(redis))
}

/// The steps of a case: requests of these families, some in a transaction, some on another connection.
fn steps(grammars: &[&Grammar], random: &mut Random) -> Vec<Step> {
    let words = |text: &str| text.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Request>();
    let mut steps = Vec::new();
    let mut push = |connection, request| steps.push(Step { connection, request });
    if random.one_in(2) {
        push(0, words("HELLO 3"));
    }
    let mut in_transaction = false;
    for _ in 0..8 + random.below(50) {
        let grammar = if random.one_in(5) { random.of(grammars) } else { grammars[0] };
        let connection = usize::from(random.one_in(15));
        if connection == 0 {
            match random.below(60) {
                0 => {
                    in_transaction = true;
                    push(0, words("MULTI"));
                }
                1 => push(0, words("WATCH s1 l1 z1")),
                2..8 if in_transaction => {
                    in_transaction = false;
                    push(0, words(if random.one_in(5) { "DISCARD" } else { "EXEC" }));
                }
                8 if random.one_in(4) => {
                    push(0, words(random.of(&["EXEC", "DISCARD", "UNWATCH", "EXEC x", "MULTI x", "RESET"])))
                }
                _ => {}
            }
        }
        let request = grammar.request(random);
        if known::is_comparable(&request) {
            push(connection, request);
        }
    }
    push(0, words("EXEC"));
    steps
}

/// Plays the steps on both sides, each from an empty store; gives the first difference.
fn play(sides: &mut [Side; 2], steps: &[Step]) -> Option<Difference> {
    let [tenon, redis] = sides.each_mut().map(|side| answers(side, steps));
    let mut queued = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let [tenon, redis] = [&tenon[index], &redis[index]];
        if step.connection == 0 {
            note_queued(&mut queued, &step.request, redis);
        }
        let shown = known::comparable(&step.request, &queued, [tenon.clone(), redis.clone()]);
        if shown[0] != shown[1] {
            let what = format!("step {index}, {step:?}");
            return Some(Difference { what, answers: shown.map(|reply| format!("{reply:?}")) });
        }
    }
    stored(sides)
}

/// Keeps in mind what EXEC will answer.
fn note_queued(queued: &mut Vec<Request>, request: &Request, answer: &Reply) {
    if answer.text() == Some(b"QUEUED") {
        queued.push(request.clone());
    } else if request[0].eq_ignore_ascii_case(b"MULTI") && !answer.is_error() {
        queued.clear();
    }
}

fn answers(side: &mut Side, steps: &[Step]) -> Vec<Reply> {
    side.reset();
    if steps.iter().any(|step| step.request[0].eq_ignore_ascii_case(b"CONFIG")) {
        side.reset_settings();
    }
    let mut answers = Vec::new();
    for together in steps.chunk_by(|one, other| one.connection == other.connection) {
        let number = together[0].connection;
        let requests: Vec<&Request> = together.iter().map(|step| &step.request).collect();
        let connection = side.connection(number);
        connection.send(&requests);
        let answered = connection.answers(requests.len());
        if answered.last() == Some(&Reply::Closed) {
            side.forget(number);
        }
        answers.extend(answered);
    }
    answers
}

/// Compares what is stored.
fn stored(sides: &mut [Side; 2]) -> Option<Difference> {
    for db in [b"0", b"1"] {
        let keys = sides.each_mut().map(|side| {
            side.admin().ask(&[b"SELECT", db]);
            side.admin().ask(&[b"KEYS", b"*"]).sorted(1)
        });
        if keys[0] != keys[1] {
            return Some(Difference { what: "all keys".to_owned(), answers: keys.map(|keys| format!("{keys:?}")) });
        }
        let keys: Vec<Vec<u8>> = keys[0].elements().iter().filter_map(|key| key.text().map(<[u8]>::to_vec)).collect();
        for key in &keys {
            let looks = sides.each_mut().map(|side| known::looks(side.admin(), key));
            for (tenon, redis) in looks[0].iter().zip(&looks[1]) {
                let shown = known::comparable(&tenon.0, &[], [tenon.1.clone(), redis.1.clone()]);
                if shown[0] != shown[1] {
                    let what = format!("stored: {:?}", Step { connection: 0, request: tenon.0.clone() });
                    return Some(Difference { what, answers: shown.map(|reply| format!("{reply:?}")) });
                }
            }
            if let Some(answers) = moved(sides, key) {
                let what = format!("DUMP of {} and RESTORE on the other side", key.escape_ascii());
                return Some(Difference { what, answers });
            }
        }
    }
    for side in sides {
        side.admin().ask(&[b"SELECT", b"0"]);
    }
    None
}

/// Restores each side's value on the other, and compares the digests there.
fn moved(sides: &mut [Side; 2], key: &[u8]) -> Option<[String; 2]> {
    let dumped = sides.each_mut().map(|side| side.admin().ask(&[b"DUMP", key]));
    let [tenon, redis] = dumped.each_ref().map(|reply| reply.text().unwrap_or_default());
    let payloads = [redis, tenon];
    let mut answers = [String::new(), String::new()];
    for (index, side) in sides.iter_mut().enumerate() {
        // A digest has the expiry in it.
        let expiry = side.admin().ask(&[b"PEXPIRETIME", key]).integer().unwrap_or_default().max(0).to_string();
        let restored = side.admin().ask(&[b"RESTORE", b"moved", expiry.as_bytes(), payloads[index], b"ABSTTL"]);
        let digests = side.admin().ask(&[b"DEBUG", b"DIGEST-VALUE", key, b"moved"]);
        side.admin().ask(&[b"DEL", b"moved"]);
        if restored.is_error() || digests.elements().first() != digests.elements().last() {
            answers[index] = format!("{restored:?} {digests:?}");
        }
    }
    answers.iter().any(|answer| !answer.is_empty()).then_some(answers)
}

/// Leaves out steps as long as there still is a difference.
fn shorten(sides: &mut [Side; 2], mut steps: Vec<Step>, mut difference: Difference) -> (Vec<Step>, Difference) {
    let mut width = steps.len() / 2;
    while width > 0 {
        let mut at = 0;
        while at < steps.len() {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + width).min(steps.len()));
            match play(sides, &fewer) {
                Some(other) => (steps, difference) = (fewer, other),
                None => at += width,
            }
        }
        width /= 2;
    }
    (steps, difference)
}
