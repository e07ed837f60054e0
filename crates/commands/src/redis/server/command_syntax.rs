//! The arguments that a command's declared syntax says, as a tree for COMMAND DOCS. Knows no command, only the notation
//! of <https://redis.io/docs/latest/commands/>.
//!
//! ```text
//! WORD name            a token, and what stands behind it          [ ... ]      may be left out
//! name                 what the client chooses                     < A | B >    one of them
//! name [name ...]      once or more                                [ A | B ]    one of them or none
//! ```

use super::command_argument_types::{compound_name, leaf_kind};
use std::iter::Peekable;
use std::str::Chars;

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any bytes.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Double,
    /// The name of a key.
    Key,
    /// A glob.
    Pattern,
    /// Seconds or milliseconds since the UNIX epoch.
    UnixTime,
    /// A word of the command's own.
    PureToken,
    /// One of several.
    OneOf,
    /// Several in a row.
    Block,
}

impl Kind {
    /// The name that COMMAND DOCS gives.
    pub fn name(self) -> &'static str {
        match self {
            Kind::String => "string",
            Kind::Integer => "integer",
            Kind::Double => "double",
            Kind::Key => "key",
            Kind::Pattern => "pattern",
            Kind::UnixTime => "unix-time",
            Kind::PureToken => "pure-token",
            Kind::OneOf => "oneof",
            Kind::Block => "block",
        }
    }

    /// Whether it consists of others.
    pub fn is_compound(self) -> bool {
        matches!(self, Kind::OneOf | Kind::Block)
    }
}

/// An argument, or several that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// What it is called.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// The word before it.
    pub token: Option<String>,
    /// Whether it may be left out.
    pub is_optional: bool,
    /// Whether there may be several.
    pub is_multiple: bool,
    /// Whether the word stands before each of several.
    pub repeats_token: bool,
    /// What it consists of.
    pub arguments: Vec<Argument>,
}

/// The arguments of a command with this name and syntax.
pub fn arguments(command: &str, syntax: &str) -> Vec<Argument> {
    let mut alternatives = Parser { chars: syntax.chars().peekable() }.alternatives(None);
    match alternatives.len() {
        1 => row(command, &alternatives.remove(0)),
        _ => vec![one_of(command, &alternatives)],
    }
}

/// A part of the notation.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Element {
    Word(String),
    Optional(Vec<Vec<Element>>),
    Choice(Vec<Vec<Element>>),
    /// `...`
    Repeat,
}

struct Parser<'a> {
    chars: Peekable<Chars<'a>>,
}

impl Parser<'_> {
    /// What stands between bars, up to the closing bracket or the end.
    fn alternatives(&mut self, close: Option<char>) -> Vec<Vec<Element>> {
        let mut alternatives = vec![Vec::new()];
        while let Some(char) = self.chars.next() {
            let element = match char {
                ' ' => continue,
                '|' => {
                    alternatives.push(Vec::new());
                    continue;
                }
                '[' => Element::Optional(self.alternatives(Some(']'))),
                '<' => Element::Choice(self.alternatives(Some('>'))),
                char if Some(char) == close => break,
                char => self.word(char),
            };
            alternatives.last_mut().expect("there is one at least").push(element);
        }
        alternatives
    }

    fn word(&mut self, first: char) -> Element {
        let mut word = String::from(first);
        while let Some(char) = self.chars.next_if(|char| !" |[]<>".contains(*char)) {
            word.push(char);
        }
        if word == "..." { Element::Repeat } else { Element::Word(word) }
    }
}

impl Element {
    /// The word that the command itself says.
    fn token(&self) -> Option<&str> {
        match self {
            Element::Word(word) if !word.starts_with(|char: char| char.is_ascii_lowercase()) => Some(word),
            _ => None,
        }
    }

    /// What is repeated, if it is one of the parts that say so.
    fn repeated(&self) -> Option<&[Element]> {
        match self {
            Element::Optional(alternatives) => match alternatives.as_slice() {
                [row] => row.strip_suffix(&[Element::Repeat]),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Argument {
    fn new(name: String, kind: Kind) -> Argument {
        Argument {
            name,
            kind,
            token: None,
            is_optional: false,
            is_multiple: false,
            repeats_token: false,
            arguments: Vec::new(),
        }
    }

    fn compound(kind: Kind, arguments: Vec<Argument>) -> Argument {
        Argument { arguments: arguments.clone(), ..Argument::new(compound_name(kind, &arguments), kind) }
    }

    /// Several in a row; one alone stays what it is.
    fn block(mut arguments: Vec<Argument>) -> Argument {
        if arguments.len() == 1 { arguments.remove(0) } else { Argument::compound(Kind::Block, arguments) }
    }

    /// The argument behind a word.
    fn behind(token: &str, body: Vec<Argument>) -> Argument {
        let mut argument = match body.len() {
            0 => Argument::new(token.to_ascii_lowercase(), Kind::PureToken),
            _ => Argument::block(body),
        };
        if argument.token.is_some() {
            argument = Argument::compound(Kind::Block, vec![argument]);
        }
        argument.token = Some(token.to_owned());
        argument
    }
}

/// One of several; where the last one ends with their repetition, any of them.
fn one_of(command: &str, alternatives: &[Vec<Element>]) -> Argument {
    let mut alternatives = alternatives.to_vec();
    let mut is_multiple = false;
    if let Some(last) = alternatives.last_mut()
        && let Some(Element::Optional(mut repeated)) = last.pop_if(|it| matches!(it, Element::Optional(_)))
    {
        let is_repeat = repeated.last_mut().is_some_and(|row| row.pop_if(|it| *it == Element::Repeat).is_some());
        is_multiple = is_repeat && repeated == alternatives;
        if !is_multiple {
            if is_repeat && let Some(row) = repeated.last_mut() {
                row.push(Element::Repeat);
            }
            alternatives.last_mut().expect("it was just there").push(Element::Optional(repeated));
        }
    }
    let arguments = alternatives.iter().map(|alternative| Argument::block(row(command, alternative))).collect();
    Argument { is_multiple, ..Argument::compound(Kind::OneOf, arguments) }
}

/// The arguments of elements that stand in a row.
fn row(command: &str, elements: &[Element]) -> Vec<Argument> {
    let mut arguments: Vec<Argument> = Vec::new();
    // How many elements each argument was made of.
    let mut made_of: Vec<usize> = Vec::new();
    let mut at = 0;
    while let Some(element) = elements.get(at) {
        let mut taken = 1;
        if let Some(repeated) = element.repeated()
            && elements[..at].ends_with(repeated)
        {
            repeat(&mut arguments, &mut made_of, repeated);
            at += 1;
            continue;
        }
        let argument = match element {
            Element::Word(_) if element.token().is_some() => {
                let token = element.token().expect("it was just seen");
                let behind = elements[at + 1..].iter().take_while(|it| belongs_to_token(it)).count();
                taken += behind;
                Argument::behind(token, row(command, &elements[at + 1..at + taken]))
            }
            Element::Word(name) => Argument::new(name.clone(), leaf_kind(command, name)),
            Element::Choice(alternatives) => one_of(command, alternatives),
            Element::Optional(alternatives) => {
                let argument = match alternatives.as_slice() {
                    [alternative] => Argument::block(row(command, alternative)),
                    several => one_of(command, several),
                };
                Argument { is_optional: true, ..argument }
            }
            // Beside what it repeats it says nothing more.
            Element::Repeat => {
                at += 1;
                continue;
            }
        };
        arguments.push(argument);
        made_of.push(taken);
        at += taken;
    }
    arguments
}

/// Whether what stands behind a word belongs to it: names up to the next word, and repetitions of them.
fn belongs_to_token(element: &Element) -> bool {
    match element {
        Element::Word(_) => element.token().is_none(),
        Element::Choice(_) => true,
        Element::Optional(_) => {
            element.repeated().is_some_and(|repeated| repeated.first().is_some_and(|first| first.token().is_none()))
        }
        Element::Repeat => false,
    }
}

/// Says of the last arguments, which these elements made, that there may be several.
fn repeat(arguments: &mut Vec<Argument>, made_of: &mut Vec<usize>, repeated: &[Element]) {
    let mut first = arguments.len();
    let mut elements = 0;
    while elements < repeated.len() && first > 0 {
        first -= 1;
        elements += made_of[first];
    }
    made_of.truncate(first);
    made_of.push(elements);
    let mut argument = Argument::block(arguments.split_off(first));
    argument.is_multiple = true;
    argument.repeats_token = argument.token.is_some();
    arguments.push(argument);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree in one line: `token:name(kind)`, `?` may be left out, `+` may be several, `++` with the word each.
    fn shown(arguments: &[Argument]) -> String {
        let show = |argument: &Argument| {
            let token = argument.token.as_ref().map_or(String::new(), |token| format!("{token}:"));
            let inner = match argument.kind {
                Kind::OneOf => format!("<{}>", shown(&argument.arguments)),
                Kind::Block => format!("({})", shown(&argument.arguments)),
                Kind::PureToken => String::new(),
                kind => format!("{}={}", argument.name, kind.name()),
            };
            let optional = if argument.is_optional { "?" } else { "" };
            let multiple = match (argument.is_multiple, argument.repeats_token) {
                (true, true) => "++",
                (true, false) => "+",
                (false, _) => "",
            };
            format!("{token}{inner}{optional}{multiple}")
        };
        arguments.iter().map(show).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_notation_is_read_as_redis_means_it() {
        for (syntax, tree) in [
            ("", ""),
            ("key value", "key=key value=string"),
            ("key [key ...]", "key=key+"),
            ("key [member [member ...]]", "key=key member=string?+"),
            ("key value [key value ...]", "(key=key value=string)+"),
            ("key [NX | XX] [GET]", "key=key <NX: XX:>? GET:?"),
            ("[EX seconds | KEEPTTL]", "<EX:seconds=integer KEEPTTL:>?"),
            ("<BYBOX width height <M | KM> | ANY>", "<BYBOX:(width=double height=double <M: KM:>) ANY:>"),
            ("[WEIGHTS weight [weight ...]] [REV]", "WEIGHTS:weight=integer?+ REV:?"),
            ("[PREFIX prefix [PREFIX prefix ...]] [BCAST]", "PREFIX:prefix=string?++ BCAST:?"),
            ("[COUNT count [ANY]]", "(COUNT:count=integer ANY:?)?"),
            ("STREAMS key [key ...] id [id ...]", "STREAMS:(key=key+ id=string+)"),
            ("YES | SYNC | NO", "<YES: SYNC: NO:>"),
            ("<a | B b [a | B b ...]> c", "<a=string B:b=string>+ c=string"),
            ("[MAXLEN [= | ~] threshold]", "(MAXLEN: <=: ~:>? threshold=string)?"),
        ] {
            assert_eq!(shown(&arguments("NONE", syntax)), tree, "{syntax}");
        }
    }

    #[test]
    fn every_declared_syntax_is_read_whole() {
        for command in crate::redis::ALL.iter().flat_map(|it| std::iter::once(it).chain(it.subcommands())) {
            let words = |text: &str| {
                let split = text.split(|char| " |[]<>".contains(char));
                let mut words: Vec<String> =
                    split.filter(|word| !word.is_empty() && *word != "...").map(str::to_owned).collect();
                words.sort_unstable();
                words.dedup();
                words
            };
            let mut said = Vec::new();
            let mut left = arguments(command.name, command.syntax);
            while let Some(argument) = left.pop() {
                assert!(!argument.name.is_empty(), "{}", command.name);
                said.extend(argument.token);
                if !argument.kind.is_compound() && argument.kind != Kind::PureToken {
                    said.push(argument.name);
                }
                left.extend(argument.arguments);
            }
            assert_eq!(words(&said.join(" ")), words(command.syntax), "{}: {}", command.name, command.syntax);
            for (open, close) in [('[', ']'), ('<', '>')] {
                let count = |wanted: char| command.syntax.chars().filter(|&char| char == wanted).count();
                assert_eq!(count(open), count(close), "{}: {}", command.name, command.syntax);
            }
        }
    }
}
