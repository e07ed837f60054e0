//! Commands as one writes them down, with what differs from one to the next in braces. Knows no command.
//!
//! ```text
//! 100x HSET h:{i} [10: field:{j} val:{j}]
//! ```
//! stands for a hundred commands of 22 words. In braces stand
//!
//! - `i`, how many of those commands were before; `i+1`, one more;
//! - `j`, how often what is between brackets was there before; `[N: ...]` is there N times;
//! - `rN`, a number below N, drawn anew each time, and `rA..B`, one from A to below B;
//! - `xN`, so many bytes.
//!
//! Words with blanks stand in backticks. memcached's commands are not taken apart into words: of them `\r\n` stands between
//! lines, and they have no brackets.

use crate::generators::Random;
use crate::workloads::Language;
use tenon_client::resp::encode_command;

/// What is written instead of a template that does not say what it stands for: all are written in this program, and a test
/// reads each.
#[derive(Debug, PartialEq, Eq)]
pub struct BadTemplate(pub String);

/// How many commands a template stands for, and the template of one.
pub fn repeated(template: &str) -> (u64, &str) {
    let counted = template.split_once("x ").and_then(|(count, rest)| Some((count.parse().ok()?, rest)));
    counted.unwrap_or((1, template))
}

/// The commands that a template stands for, as they are sent.
///
/// # Errors
/// When it is not written as it is to be.
pub fn requests(template: &str, language: Language, random: &mut Random) -> Result<Vec<Vec<u8>>, BadTemplate> {
    let (count, one) = repeated(template);
    (0..count).map(|i| request(one, i, language, random)).collect()
}

fn request(template: &str, i: u64, language: Language, random: &mut Random) -> Result<Vec<u8>, BadTemplate> {
    match language {
        Language::Memcache => Ok(format!("{}\r\n", filled(template, i, 0, random)?).into_bytes()),
        Language::Resp => {
            let words = words(template, i, random)?;
            let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
            let mut request = Vec::new();
            encode_command(&words, &mut request);
            Ok(request)
        }
    }
}

/// A command's words.
fn words(template: &str, i: u64, random: &mut Random) -> Result<Vec<String>, BadTemplate> {
    let bad = || BadTemplate(template.to_owned());
    let (mut words, mut rest) = (Vec::new(), template);
    while !rest.is_empty() {
        let (part, behind) = match rest.strip_prefix('`') {
            Some(quoted) => {
                let (word, behind) = quoted.split_once('`').ok_or_else(bad)?;
                // A script has braces of its own.
                words.push(word.to_owned());
                (None, behind.strip_prefix(' ').unwrap_or(behind))
            }
            None if rest.starts_with('[') => {
                let (group, behind) = rest[1..].split_once(']').ok_or_else(bad)?;
                (Some(group), behind.strip_prefix(' ').unwrap_or(behind))
            }
            None => {
                let (word, behind) = rest.split_once(' ').unwrap_or((rest, ""));
                words.push(filled(word, i, 0, random)?);
                (None, behind)
            }
        };
        if let Some(group) = part {
            let (count, group) = group.split_once(": ").ok_or_else(bad)?;
            for j in 0..count.parse().map_err(|_| bad())? {
                for word in group.split(' ') {
                    words.push(filled(word, i, j, random)?);
                }
            }
        }
        rest = behind;
    }
    Ok(words)
}

/// A text with what is in braces filled in.
fn filled(text: &str, i: u64, j: u64, random: &mut Random) -> Result<String, BadTemplate> {
    let bad = || BadTemplate(text.to_owned());
    let mut parts = text.split('{');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (what, behind) = part.split_once('}').ok_or_else(bad)?;
        match what {
            "i" => filled += &i.to_string(),
            "i+1" => filled += &(i + 1).to_string(),
            "j" => filled += &j.to_string(),
            _ => match what.split_at_checked(1).ok_or_else(bad)? {
                ("r", bounds) => filled += &drawn(bounds, random).ok_or_else(bad)?.to_string(),
                ("x", len) => filled += &"x".repeat(len.parse().map_err(|_| bad())?),
                _ => return Err(bad()),
            },
        }
        filled += behind;
    }
    Ok(filled)
}

fn drawn(bounds: &str, random: &mut Random) -> Option<i64> {
    let (from, to) = match bounds.split_once("..") {
        Some((from, to)) => (from.parse().ok()?, to.parse().ok()?),
        None => (0_i64, bounds.parse::<i64>().ok()?),
    };
    let width = u64::try_from(to.checked_sub(from)?).ok().filter(|width| *width > 0)?;
    Some(from + random.below(width).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(template: &str, language: Language) -> Vec<String> {
        let requests = requests(template, language, &mut Random::new(7)).expect(template);
        requests.into_iter().map(|request| String::from_utf8(request).expect("text")).collect()
    }

    fn words_of(template: &str) -> Vec<String> {
        words(template, 4, &mut Random::new(7)).expect(template)
    }

    #[test]
    fn templates_stand_for_commands() {
        assert_eq!(
            shown("2x GET k:{i}", Language::Resp),
            ["*2\r\n$3\r\nGET\r\n$3\r\nk:0\r\n", "*2\r\n$3\r\nGET\r\n$3\r\nk:1\r\n"]
        );
        assert_eq!(shown("set k:{i+1} 0 0 3\r\n{x3}", Language::Memcache), ["set k:1 0 0 3\r\nxxx\r\n"]);
        assert_eq!(words_of("HSET h:{i} [2: f:{j} {x2}] z"), ["HSET", "h:4", "f:0", "xx", "f:1", "xx", "z"]);
        assert_eq!(words_of("EVAL `return {1, 2}` 0"), ["EVAL", "return {1, 2}", "0"]);
        assert_eq!(repeated("MATCH x y"), (1, "MATCH x y"));
    }

    #[test]
    fn what_is_drawn_is_within_its_bounds_and_drawn_anew() {
        let drawn: Vec<i64> =
            (0..200).map(|seed| super::drawn("-2..3", &mut Random::new(seed)).expect("one")).collect();
        assert!((-2..3).all(|wanted| drawn.contains(&wanted)) && drawn.iter().all(|one| (-2..3).contains(one)));
        let mut all = shown("200x GET {r1000000}", Language::Resp);
        all.sort_unstable();
        all.dedup();
        assert!(all.len() > 190, "{}", all.len());
    }

    #[test]
    fn what_is_written_badly_is_refused() {
        for template in
            ["GET {k", "GET {y}", "GET {r0}", "GET {r3..3}", "GET {rx}", "GET `a", "GET [2 a]", "GET [2: a", "GET {}"]
        {
            assert!(requests(template, Language::Resp, &mut Random::new(1)).is_err(), "{template}");
        }
    }
}
