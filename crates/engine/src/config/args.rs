//! Splitting a line of a configuration file into words, and quoting words so that they are split again the same way
//! (Redis's `sdssplitargs` and `sdscatrepr`); it knows nothing of settings.

/// Quotes that do not end, or that end within a word.
#[derive(Debug, PartialEq, Eq)]
pub struct Unbalanced;

/// The words of a line. `"..."` knows `\n \r \t \b \a \xHH` and `\` before any other character; `'...'` knows `\'`.
pub fn split(line: &[u8]) -> Result<Vec<Vec<u8>>, Unbalanced> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Ok(words);
        }
        let (word, after) = next_word(rest)?;
        words.push(word);
        rest = after;
    }
}

/// The first word of `rest`, which starts with it, and what follows.
fn next_word(mut rest: &[u8]) -> Result<(Vec<u8>, &[u8]), Unbalanced> {
    let mut word = Vec::new();
    loop {
        match rest {
            [] => return Ok((word, rest)),
            [b'"', after @ ..] => return double_quoted(word, after),
            [b'\'', after @ ..] => return single_quoted(word, after),
            [blank, ..] if blank.is_ascii_whitespace() => return Ok((word, rest)),
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
        }
    }
}

fn double_quoted(mut word: Vec<u8>, mut rest: &[u8]) -> Result<(Vec<u8>, &[u8]), Unbalanced> {
    loop {
        let (byte, after) = match rest {
            [] => return Err(Unbalanced),
            [b'\\', b'x', high, low, after @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                (hex_digit(*high) << 4 | hex_digit(*low), after)
            }
            [b'\\', escaped, after @ ..] => {
                let byte = match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                };
                (byte, after)
            }
            [b'"', after @ ..] => return end_of_quotes(word, after),
            [byte, after @ ..] => (*byte, after),
        };
        word.push(byte);
        rest = after;
    }
}

fn single_quoted(mut word: Vec<u8>, mut rest: &[u8]) -> Result<(Vec<u8>, &[u8]), Unbalanced> {
    loop {
        let (byte, after) = match rest {
            [] => return Err(Unbalanced),
            [b'\\', b'\'', after @ ..] => (b'\'', after),
            [b'\'', after @ ..] => return end_of_quotes(word, after),
            [byte, after @ ..] => (*byte, after),
        };
        word.push(byte);
        rest = after;
    }
}

/// Closing quotes must be followed by a blank or by nothing.
fn end_of_quotes(word: Vec<u8>, after: &[u8]) -> Result<(Vec<u8>, &[u8]), Unbalanced> {
    match after.first() {
        Some(byte) if !byte.is_ascii_whitespace() => Err(Unbalanced),
        _ => Ok((word, after)),
    }
}

fn hex_digit(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => digit.to_ascii_lowercase() - b'a' + 10,
    }
}

/// The word as it has to stand in a file: in quotes, with escapes, where it would not be read as it is.
pub fn quote(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\' | b'#');
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_ascii_control() => quoted.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// The word as it has to stand among others: as it is, unless it would not be read so. Takes any bytes.
pub(crate) fn quote_if_needed(word: &[u8]) -> Vec<u8> {
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'');
    if !word.is_empty() && word.iter().all(is_plain) { word.to_vec() } else { quoted(word) }
}

/// The word in quotes. Takes any bytes.
pub(crate) fn quoted(word: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for &byte in word {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', byte]),
            b' ' => quoted.push(byte),
            byte if byte.is_ascii_graphic() => quoted.push(byte),
            byte => quoted.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
        }
    }
    quoted.push(b'"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<Vec<String>, Unbalanced> {
        Ok(split(line.as_bytes())?.into_iter().map(|word| String::from_utf8(word).unwrap()).collect())
    }

    #[test]
    fn splits_as_redis_does() {
        assert_eq!(words("  a  b\tc ").unwrap(), ["a", "b", "c"]);
        assert_eq!(words(r#"a "" '' "b c""#).unwrap(), ["a", "", "", "b c"]);
        assert_eq!(words(r#""\x41\n\q\"" 'it\'s \n'"#).unwrap(), ["A\nq\"", "it's \\n"]);
        assert_eq!(words(r#"ab"cd ef""#).unwrap(), ["abcd ef"], "quotes may start within a word");
        assert_eq!(words(""), Ok(vec![]));
        for unbalanced in [r#""a"#, "'a", r#""a"b"#, "'a'b", r#""a\""#] {
            assert_eq!(words(unbalanced), Err(Unbalanced), "{unbalanced}");
        }
    }

    #[test]
    fn what_is_quoted_splits_to_itself() {
        for word in ["plain", "", "a b", "a\"b", "a'b", "back\\slash", "tab\tnew\nline", "\u{1}", "größe", "#no"] {
            assert_eq!(words(&quote(word)).unwrap(), [word]);
        }
        for word in [&b"#no"[..], b"", b"a b", b"a\"b", b"a'b", b"back\\slash", b"\x00\xff\n", b"(a"] {
            assert_eq!(split(&quote_if_needed(word)).unwrap(), [word]);
        }
        assert_eq!(quote_if_needed(b"#no\\"), b"#no\\");
        assert_eq!(quote("allkeys-lru"), "allkeys-lru");
        assert_eq!(quote("a b\"c"), r#""a b\"c""#);
    }
}
