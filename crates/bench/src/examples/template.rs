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

use crate::workloads::{Language, Piece, Request};

/// A template that does not say what it stands for: all are written in this program, and a test reads each.
#[derive(Debug, PartialEq, Eq)]
pub struct BadTemplate(pub String);

/// How many commands a template stands for, and the template of one.
pub fn repeated(template: &str) -> (u64, &str) {
    let counted = template.split_once("x ").and_then(|(count, rest)| Some((count.parse().ok()?, rest)));
    counted.unwrap_or((1, template))
}

/// The request that a template of one command stands for.
///
/// # Errors
/// When it is not written as it is to be.
pub fn request(template: &str, language: Language) -> Result<Request, BadTemplate> {
    Ok(match language {
        Language::Memcache => Request::plain(pieces(&format!("{template}\r\n"), 0)?),
        Language::Resp => Request::resp(words(template)?),
    })
}

/// A command's words.
fn words(template: &str) -> Result<Vec<Vec<Piece>>, BadTemplate> {
    let bad = || BadTemplate(template.to_owned());
    let (mut words, mut rest) = (Vec::new(), template);
    while !rest.is_empty() {
        rest = if let Some(quoted) = rest.strip_prefix('`') {
            let (word, behind) = quoted.split_once('`').ok_or_else(bad)?;
            // A script has braces of its own.
            words.push(vec![Piece::Text(word.to_owned())]);
            behind.strip_prefix(' ').unwrap_or(behind)
        } else if let Some(group) = rest.strip_prefix('[') {
            let (group, behind) = group.split_once(']').ok_or_else(bad)?;
            let (count, group) = group.split_once(": ").ok_or_else(bad)?;
            for j in 0..count.parse().map_err(|_| bad())? {
                for word in group.split(' ') {
                    words.push(pieces(word, j)?);
                }
            }
            behind.strip_prefix(' ').unwrap_or(behind)
        } else {
            let (word, behind) = rest.split_once(' ').unwrap_or((rest, ""));
            words.push(pieces(word, 0)?);
            behind
        };
    }
    Ok(words)
}

/// A text, taken apart where something is to be filled in; `j` is.
fn pieces(text: &str, j: u64) -> Result<Vec<Piece>, BadTemplate> {
    let bad = || BadTemplate(text.to_owned());
    let mut pieces = Vec::new();
    let mut parts = text.split('{');
    push_text(&mut pieces, parts.next().unwrap_or_default());
    for part in parts {
        let (what, behind) = part.split_once('}').ok_or_else(bad)?;
        match what {
            "i" => pieces.push(Piece::Index(0)),
            "i+1" => pieces.push(Piece::Index(1)),
            "j" => push_text(&mut pieces, &j.to_string()),
            _ => match what.split_at_checked(1).ok_or_else(bad)? {
                ("r", bounds) => pieces.push(drawn(bounds).ok_or_else(bad)?),
                ("x", len) => push_text(&mut pieces, &"x".repeat(len.parse().map_err(|_| bad())?)),
                _ => return Err(bad()),
            },
        }
        push_text(&mut pieces, behind);
    }
    Ok(pieces)
}

fn push_text(pieces: &mut Vec<Piece>, text: &str) {
    match pieces.last_mut() {
        _ if text.is_empty() => {}
        Some(Piece::Text(before)) => before.push_str(text),
        _ => pieces.push(Piece::Text(text.to_owned())),
    }
}

fn drawn(bounds: &str) -> Option<Piece> {
    let (from, to) = match bounds.split_once("..") {
        Some((from, to)) => (from.parse().ok()?, to.parse().ok()?),
        None => (0_i64, bounds.parse::<i64>().ok()?),
    };
    let width = u64::try_from(to.checked_sub(from)?).ok().filter(|width| *width > 0)?;
    Some(Piece::Drawn(from, width))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::Random;

    fn shown(template: &str, language: Language) -> String {
        let mut out = Vec::new();
        let request = request(template, language).expect(template);
        request.write(4, &mut Random::new(7), &mut Vec::new(), &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn templates_stand_for_commands() {
        assert_eq!(shown("GET k:{i}", Language::Resp), "*2\r\n$3\r\nGET\r\n$3\r\nk:4\r\n");
        assert_eq!(shown("set k:{i+1} 0 0 3\r\n{x3}", Language::Memcache), "set k:5 0 0 3\r\nxxx\r\n");
        let words = |template| shown(template, Language::Resp).lines().skip(2).step_by(2).collect::<Vec<_>>().join("|");
        assert_eq!(words("HSET h:{i} [2: f:{j} {x2}] z"), "HSET|h:4|f:0|xx|f:1|xx|z");
        assert_eq!(words("EVAL `return {1, 2}` 0 ``"), "EVAL|return {1, 2}|0|");
        assert_eq!(words("GEOADD g {r-180..-179}.5"), "GEOADD|g|-180.5");
        assert_eq!((repeated("2x GET k"), repeated("MATCH x y")), ((2, "GET k"), (1, "MATCH x y")));
    }

    #[test]
    fn what_is_written_badly_is_refused() {
        for template in
            ["GET {k", "GET {y}", "GET {r0}", "GET {r3..3}", "GET {rx}", "GET `a", "GET [2 a]", "GET [2: a", "GET {}"]
        {
            assert!(request(template, Language::Resp).is_err(), "{template}");
        }
    }
}
