//! Templates of requests, one a line, and requests made from them. Knows what a request may look like, not what it means.
//!
//! `word` stands for itself and `$slot` for a word of that kind; `( a | b )` is one of them, `[ a | b ]` one or none, and
//! `{ a | b }` up to four, each any of them. Blanks stand between all of these.

use crate::words;
use std::iter::Peekable;
use std::str::SplitWhitespace;
use tenon_testkit::random::Random;

/// The arguments of a command.
pub type Request = Vec<Vec<u8>>;

enum Node {
    Word(&'static str),
    Slot(&'static str),
    Group { fewest: usize, most: usize, alternatives: Vec<Vec<Node>> },
}

/// Templates of one family.
pub struct Grammar {
    lines: Vec<Vec<Node>>,
    /// How many of the lines are the family's own; `$command` may be one of the others, too.
    own: usize,
}

impl Grammar {
    /// Reads templates; lines that are empty or begin with `#` are none.
    pub fn new(texts: &[&'static str]) -> Grammar {
        let lines = lines(texts);
        Grammar { own: lines.len(), lines }
    }

    /// Likewise, where `$command` may also be a request of these families.
    pub fn calling(mut self, texts: &[&'static str]) -> Grammar {
        self.lines.extend(lines(texts));
        self
    }

    /// A request of this family, now and then with something wrong.
    pub fn request(&self, random: &mut Random) -> Request {
        let mut request = self.well_formed(random);
        if random.one_in(7) {
            words::spoil(&mut request, random);
        }
        if random.one_in(9) && !request.is_empty() {
            let word = random.below(request.len());
            // Of names of commands and options the case does not matter, of others it does.
            request[word].make_ascii_lowercase();
        }
        request
    }

    /// A request as its template has it.
    pub fn well_formed(&self, random: &mut Random) -> Request {
        self.of_first(self.own, random)
    }

    fn of_first(&self, count: usize, random: &mut Random) -> Request {
        let mut out = Vec::new();
        self.append(&self.lines[random.below(count)], random, &mut out);
        out
    }

    fn append(&self, nodes: &[Node], random: &mut Random, out: &mut Request) {
        for node in nodes {
            match node {
                Node::Word(word) => out.push(word.as_bytes().to_vec()),
                Node::Slot("$command") => out.extend(self.of_first(self.lines.len(), random)),
                Node::Slot(slot) => words::append(slot, random, out),
                Node::Group { fewest, most, alternatives } => {
                    let times = fewest + random.below(most - fewest + 1);
                    for _ in 0..times {
                        self.append(&alternatives[random.below(alternatives.len())], random, out);
                    }
                }
            }
        }
    }
}

fn lines(texts: &[&'static str]) -> Vec<Vec<Node>> {
    let lines = texts.iter().flat_map(|text| text.lines()).map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let lines = lines.map(|line| {
        let mut words = line.split_whitespace().peekable();
        let nodes = sequence(&mut words);
        assert!(words.next().is_none(), "a bracket too many: {line}");
        nodes
    });
    lines.collect()
}

fn sequence(words: &mut Peekable<SplitWhitespace<'static>>) -> Vec<Node> {
    let mut nodes = Vec::new();
    while let Some(&word) = words.peek() {
        if [")", "]", "}", "|"].contains(&word) {
            break;
        }
        words.next();
        nodes.push(match word {
            "(" => group(words, ")", 1, 1),
            "[" => group(words, "]", 0, 1),
            "{" => group(words, "}", 0, 4),
            _ if word.len() > 1 && word.starts_with('$') => Node::Slot(word),
            _ => Node::Word(word),
        });
    }
    nodes
}

fn group(words: &mut Peekable<SplitWhitespace<'static>>, end: &str, fewest: usize, most: usize) -> Node {
    let mut alternatives = Vec::new();
    loop {
        alternatives.push(sequence(words));
        match words.next() {
            Some("|") => continue,
            Some(word) if word == end => return Node::Group { fewest, most, alternatives },
            other => panic!("{end} expected, not {other:?}"),
        }
    }
}
