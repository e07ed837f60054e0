//! Rust source without its comments, texts and unit tests, so that a check can look for words. Knows only as much of
//! the language as that takes.

/// The source with comments and the contents of string and character literals replaced by blanks; lines keep their
/// numbers.
pub fn blank(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => line_end(bytes, at),
            b'/' if bytes[at..].starts_with(b"/*") => block_comment_end(bytes, at),
            b'"' => string_end(bytes, at),
            b'r' if !continues_word(bytes, at) => match raw_string_end(bytes, at) {
                Some(end) => end,
                None => {
                    at += 1;
                    continue;
                }
            },
            b'\'' => match char_end(bytes, at) {
                Some(end) => end,
                None => {
                    at += 1;
                    continue;
                }
            },
            _ => {
                at += 1;
                continue;
            }
        };
        for byte in &mut out[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    String::from_utf8(out).expect("whole literals and comments were blanked, and those are whole characters")
}

/// The blanked source up to its unit tests.
pub fn without_tests(blanked: &str) -> &str {
    let mut from = 0;
    while let Some(found) = blanked[from..].find("#[cfg(test)]") {
        let attribute = from + found;
        let item = blanked[attribute + "#[cfg(test)]".len()..].trim_start();
        if item.starts_with("mod ")
            && item.split(['{', ';']).next().is_some_and(|head| item[head.len()..].starts_with('{'))
        {
            return &blanked[..attribute];
        }
        from = attribute + 1;
    }
    blanked
}

/// Where `word` stands by itself, as line numbers counted from 1.
pub fn lines_with_word<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.lines().enumerate().filter(move |(_, line)| has_word(line, word)).map(|(index, _)| index + 1)
}

fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn continues_word(bytes: &[u8], at: usize) -> bool {
    // `br"..."` is a raw string too; every other letter before the `r` makes it part of a name.
    match at.checked_sub(1).map(|before| bytes[before]) {
        None => false,
        Some(b'b') => at >= 2 && (bytes[at - 2].is_ascii_alphanumeric() || bytes[at - 2] == b'_'),
        Some(before) => before.is_ascii_alphanumeric() || before == b'_',
    }
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |length| at + length)
}

fn block_comment_end(bytes: &[u8], at: usize) -> usize {
    let mut depth = 0;
    let mut at = at;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn raw_string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let hashes = bytes[at + 1..].iter().take_while(|byte| **byte == b'#').count();
    let open = at + 1 + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let close = [&b"\""[..], &vec![b'#'; hashes]].concat();
    let length = bytes[open + 1..].windows(close.len()).position(|window| window == close);
    Some(length.map_or(bytes.len(), |length| open + 1 + length + close.len()))
}

/// The end of a character literal; `None` for a lifetime or a label.
fn char_end(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at + 1) == Some(&b'\\') {
        let close = bytes.get(at + 3..)?.iter().position(|byte| *byte == b'\'')?;
        return Some(at + 3 + close + 1);
    }
    let text = std::str::from_utf8(&bytes[at + 1..]).ok()?;
    let c = text.chars().next()?;
    (bytes.get(at + 1 + c.len_utf8()) == Some(&b'\'')).then_some(at + 1 + c.len_utf8() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_vanish_and_lines_stay() {
        let source = "let a = \"unsafe \\\" x\"; // unsafe\n/* unsafe /* nested */ */ fn f<'a>(c: &'a str) {}\n\
                      let q = '\"'; let e = '\\''; let r = r#\"unsafe \"quoted\" \"#; let b = br\"x\"; unsafe {}\n";
        let blanked = blank(source);
        assert_eq!(blanked.len(), source.len());
        assert_eq!(blanked.lines().count(), 3);
        assert_eq!(lines_with_word(&blanked, "unsafe").collect::<Vec<_>>(), [3]);
        assert!(blanked.contains("fn f<'a>(c: &'a str) {}"), "{blanked}");
    }

    #[test]
    fn a_word_is_not_part_of_another() {
        assert_eq!(lines_with_word("#![forbid(unsafe_code)]\nmyunsafe", "unsafe").count(), 0);
        assert_eq!(lines_with_word("x\nunsafe{", "unsafe").collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn unit_tests_are_cut_off() {
        assert_eq!(without_tests("fn a() {}\n#[cfg(test)]\nmod tests { fn b() {} }"), "fn a() {}\n");
        let other = "#[cfg(test)]\nmod elsewhere;\nfn a() {}";
        assert_eq!(without_tests(other), other);
    }
}
