//! Requests that differ from one to the next in a few places, filled in when they are sent. Know no command.

use crate::generators::Random;

/// A request as it is sent, but for what differs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// As they are.
    Bytes(Vec<u8>),
    /// With its length before it, and a line's end behind both: a bulk string of RESP.
    Bulk(Vec<Piece>),
    /// Without.
    Plain(Vec<Piece>),
}

/// What a word is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Always the same.
    Text(String),
    /// How many requests of the kind were before, and so many.
    Index(u64),
    /// A number drawn anew each time: from the first one on, one of so many.
    Drawn(i64, u64),
}

impl Request {
    /// One of RESP, of these words.
    pub fn resp(words: Vec<Vec<Piece>>) -> Request {
        let mut request = Request::default();
        request.bytes(format!("*{}\r\n", words.len()).as_bytes());
        for word in words {
            match fixed(&word) {
                Some(text) => request.bytes(format!("${}\r\n{text}\r\n", text.len()).as_bytes()),
                None => request.parts.push(Part::Bulk(word)),
            }
        }
        request
    }

    /// One of another language, whatever it is.
    pub fn plain(pieces: Vec<Piece>) -> Request {
        let mut request = Request::default();
        match fixed(&pieces) {
            Some(text) => request.bytes(text.as_bytes()),
            None => request.parts.push(Part::Plain(pieces)),
        }
        request
    }

    fn bytes(&mut self, bytes: &[u8]) {
        match self.parts.last_mut() {
            Some(Part::Bytes(before)) => before.extend_from_slice(bytes),
            _ => self.parts.push(Part::Bytes(bytes.to_vec())),
        }
    }

    /// Appends it; `index` of its kind were before.
    #[inline]
    pub fn write(&self, index: u64, random: &mut Random, word: &mut Vec<u8>, out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                Part::Bytes(bytes) => out.extend_from_slice(bytes),
                Part::Plain(pieces) => write_pieces(pieces, index, random, out),
                Part::Bulk(pieces) => {
                    word.clear();
                    write_pieces(pieces, index, random, word);
                    out.push(b'$');
                    push_integer(word.len() as i64, out);
                    out.extend_from_slice(b"\r\n");
                    out.extend_from_slice(word);
                    out.extend_from_slice(b"\r\n");
                }
            }
        }
    }
}

/// The text that pieces are where nothing in them differs.
fn fixed(pieces: &[Piece]) -> Option<String> {
    let text = |piece: &Piece| match piece {
        Piece::Text(text) => Some(text.clone()),
        Piece::Index(_) | Piece::Drawn(..) => None,
    };
    pieces.iter().map(text).collect()
}

#[inline]
fn write_pieces(pieces: &[Piece], index: u64, random: &mut Random, out: &mut Vec<u8>) {
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
            Piece::Index(more) => push_integer((index + more).cast_signed(), out),
            Piece::Drawn(from, width) => push_integer(from + random.below(*width).cast_signed(), out),
        }
    }
}

fn push_integer(number: i64, out: &mut Vec<u8>) {
    if number < 0 {
        out.push(b'-');
    }
    crate::dialects::push_number(number.unsigned_abs() as usize, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(request: &Request, index: u64, seed: u64) -> String {
        let mut out = Vec::new();
        request.write(index, &mut Random::new(seed), &mut Vec::new(), &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn what_differs_is_filled_in() {
        let text = |text: &str| Piece::Text(text.to_owned());
        let request = Request::resp(vec![vec![text("GET")], vec![text("k:"), Piece::Index(1)], vec![text("v")]]);
        assert_eq!(written(&request, 99, 1), "*3\r\n$3\r\nGET\r\n$5\r\nk:100\r\n$1\r\nv\r\n");
        let request = Request::plain(vec![text("get "), Piece::Drawn(-3, 1), text("\r\n")]);
        assert_eq!(written(&request, 0, 1), "get -3\r\n");
        let drawn = Request::plain(vec![Piece::Drawn(-2, 5)]);
        let drawn: Vec<String> = (0..200).map(|seed| written(&drawn, 0, seed)).collect();
        for number in -2..3 {
            assert!(drawn.contains(&number.to_string()), "{number}");
        }
        assert!(drawn.iter().all(|number| (-2..3).contains(&number.parse().unwrap_or(9))));
    }
}
