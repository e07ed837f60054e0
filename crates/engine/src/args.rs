//! A command's arguments, where they lie in the client's bytes. Knows no protocol and no command.

use bytes::Bytes;
use std::cell::OnceCell;
use std::cell::RefCell;
use tenon_store::types::Rope;
use tenon_wire::{Place, Span};

/// The arguments of one command, its name first.
#[derive(Clone, Copy)]
pub struct Args<'a> {
    spans: &'a [Span],
    input: &'a [u8],
    scratch: &'a [u8],
    bigs: &'a [BigArg],
    /// From which position of the input on commands are known to be written as the log has them.
    plain_from: usize,
}

/// An argument so long that it was taken out of the client's stream in chunks.
#[derive(Debug, Default)]
pub struct BigArg {
    /// As it came; taking the bytes does not change it, so the slow log can tell how long the argument was.
    len: usize,
    rope: RefCell<Rope>,
    flat: OnceCell<Vec<u8>>,
}

impl BigArg {
    /// The argument made of these bytes.
    pub fn new(rope: Rope) -> BigArg {
        BigArg { len: rope.len(), rope: RefCell::new(rope), flat: OnceCell::new() }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes in one piece, which costs a copy the first time.
    #[cold]
    #[inline(never)]
    fn flat(&self) -> &[u8] {
        self.flat.get_or_init(|| self.rope.take().to_vec())
    }

    /// Calls `visit` with the slices that make up the bytes, in order.
    ///
    /// # Panics
    /// When they were taken away: what is to be read later is read before.
    pub(crate) fn for_each_slice(&self, visit: impl FnMut(&[u8])) {
        match self.flat.get() {
            Some(bytes) => std::iter::once(&bytes[..]).for_each(visit),
            None => {
                let rope = self.rope.borrow();
                assert_eq!(rope.len(), self.len, "a long argument is taken once");
                rope.slices().for_each(visit);
            }
        }
    }

    /// The bytes in chunks, to be stored: nothing is copied unless someone asked for one piece before.
    pub fn take(&self) -> Rope {
        match self.flat.get() {
            Some(bytes) => Rope::from(&bytes[..]),
            None => self.rope.take(),
        }
    }
}

impl<'a> Args<'a> {
    /// The arguments at `spans` of a command that was read from `input`.
    #[inline]
    pub fn new(spans: &'a [Span], input: &'a [u8], scratch: &'a [u8], bigs: &'a [BigArg]) -> Args<'a> {
        Args { spans, input, scratch, bigs, plain_from: usize::MAX }
    }

    /// The same arguments, which are a command of a batch whose commands are written in the plain way from this position of
    /// the input on ([`ArgSpans::plain_from`](tenon_wire::ArgSpans::plain_from)).
    #[inline(always)]
    pub(crate) fn plain_from(self, position: usize) -> Args<'a> {
        Args { plain_from: position, ..self }
    }

    /// How many, the command's name counted.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "there is always the name")]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Argument `index`.
    ///
    /// # Panics
    /// When there are not so many; the arity check of a command says how many there are at least.
    #[inline(always)]
    pub fn get(&self, index: usize) -> &'a [u8] {
        let span = self.spans[index];
        match span.input_range() {
            Some(range) => &self.input[range],
            None => self.get_elsewhere(span),
        }
    }

    /// Argument `index`, if it lies in the client's bytes, as all but few do.
    #[inline(always)]
    pub(crate) fn in_input(&self, index: usize) -> Option<&'a [u8]> {
        self.spans[index].input_range().map(|range| &self.input[range])
    }

    /// The bytes of argument `index` as a little-endian word, and how many they are: one to eight. Nothing when they are
    /// not, or when the client's bytes end less than eight bytes behind where they begin.
    #[inline(always)]
    pub(crate) fn word(&self, index: usize) -> Option<(u64, usize)> {
        let (start, len) = self.spans[index].in_input()?;
        let bytes = self.input.get(start..start + 8)?.first_chunk()?;
        matches!(len, 1..=8).then(|| (u64::from_le_bytes(*bytes) & u64::MAX >> (64 - 8 * len), len))
    }

    /// An argument that does not lie in the client's bytes.
    #[cold]
    fn get_elsewhere(&self, span: Span) -> &'a [u8] {
        match span.resolve(self.input, self.scratch) {
            Place::Bytes(bytes) => bytes,
            Place::Big(number) => self.bigs[number as usize].flat(),
        }
    }

    /// Argument `index`, if there are so many.
    #[inline]
    pub fn try_get(&self, index: usize) -> Option<&'a [u8]> {
        (index < self.len()).then(|| self.get(index))
    }

    /// Argument `index` as it was taken out of the stream, if it is a long one.
    #[inline]
    pub fn big(&self, index: usize) -> Option<&'a BigArg> {
        let span = self.spans[index];
        if span.is_big() { self.big_of(span) } else { None }
    }

    #[cold]
    fn big_of(&self, span: Span) -> Option<&'a BigArg> {
        match span.resolve(self.input, self.scratch) {
            Place::Bytes(_) => None,
            Place::Big(number) => Some(&self.bigs[number as usize]),
        }
    }

    /// Whether one of the batch's arguments was taken out of the stream as it is so long.
    #[inline(always)]
    pub(crate) fn may_have_bigs(&self) -> bool {
        !self.bigs.is_empty()
    }

    /// Length of argument `index` in bytes; long arguments are not copied for it.
    pub fn len_of(&self, index: usize) -> usize {
        self.big(index).map_or_else(|| self.get(index).len(), BigArg::len)
    }

    /// The bytes of the whole command as the client sent them, if it is known that it wrote it as the log does: an array of
    /// bulk strings, each number without a superfluous digit. Of a command with many arguments or a long name it is not.
    #[inline(always)]
    pub(crate) fn as_known_sent(&self) -> Option<&'a [u8]> {
        let (first, len) = self.spans.first()?.in_input()?;
        if first < self.plain_from || len.max(self.spans.len()) >= 10 {
            return None;
        }
        let (last, len) = self.spans.last()?.in_input()?;
        // Two lines of four bytes are before the name, and a line end is behind the last argument.
        let sent = self.input.get(first - 8..last + len + 2);
        debug_assert!(sent.is_some() && sent == self.as_sent());
        sent
    }

    /// The same, where how the command is written has to be looked at.
    #[inline(never)]
    pub(crate) fn as_sent(&self) -> Option<&'a [u8]> {
        let (first, len) = self.spans.first()?.in_input()?;
        let start = head_before(self.input, head_before(self.input, first, b'$', len)?, b'*', self.spans.len())?;
        let mut end = first + len;
        for span in &self.spans[1..] {
            let (at, len) = span.in_input()?;
            if !announces(self.input, end, at, len) {
                return None;
            }
            end = at + len;
        }
        let end = behind_line_end(self.input, end)?;
        Some(&self.input[start..end])
    }

    /// A command that stands within the arguments, from argument `first` on; `None` when there are not so many.
    pub fn inner(&self, first: usize) -> Option<Args<'a>> {
        let spans = self.spans.get(first..).filter(|spans| !spans.is_empty())?;
        Some(Args { spans, plain_from: usize::MAX, ..*self })
    }

    /// Goes on to other arguments of the same batch.
    #[inline(always)]
    pub(crate) fn go_to(&mut self, spans: &'a [Span]) {
        self.spans = spans;
    }

    /// The arguments from `first` on.
    pub fn from(&self, first: usize) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let this = *self;
        (first.min(this.len())..this.len()).map(move |index| this.get(index))
    }

    /// Bytes of the arguments as a RESP client sends them.
    pub fn wire_len(&self) -> usize {
        // A sign, the digits of a length, and a line end.
        let head = |len: usize| 1 + len.checked_ilog10().unwrap_or(0) as usize + 1 + 2;
        let words = (0..self.len()).map(|index| self.len_of(index));
        head(self.len()) + words.map(|len| head(len) + len + 2).sum::<usize>()
    }

    /// Whether argument `index` is this word, in any case.
    #[inline]
    pub fn is(&self, index: usize, word: &str) -> bool {
        self.get(index).eq_ignore_ascii_case(word.as_bytes())
    }

    /// A copy that does not refer to the client's bytes; long arguments move into it.
    pub fn to_owned(&self) -> OwnedArgs {
        let mut owned = OwnedArgs::default();
        for index in 0..self.len() {
            match self.big(index) {
                Some(big) => {
                    owned.spans.push(Span::big(owned.bigs.len() as u32));
                    owned.bigs.push(BigArg::new(big.take()));
                }
                None => owned.push(self.get(index)),
            }
        }
        owned
    }
}

/// Where the line begins that announces `number` of something and ends before `at`, if it is there, and plainly written.
#[inline(always)]
fn head_before(input: &[u8], at: usize, kind: u8, number: usize) -> Option<usize> {
    let before = input.get(..at)?;
    let has = match number {
        0..10 => before.last_chunk() == Some(&[kind, b'0' + number as u8, b'\r', b'\n']),
        10..100 => {
            let (tens, ones) = (b'0' + (number / 10) as u8, b'0' + (number % 10) as u8);
            before.last_chunk() == Some(&[kind, tens, ones, b'\r', b'\n'])
        }
        _ => return long_head_before(before, kind, number),
    };
    has.then(|| at - if number < 10 { 4 } else { 5 })
}

fn long_head_before(before: &[u8], kind: u8, number: usize) -> Option<usize> {
    let before = before.strip_suffix(b"\r\n")?;
    let before = before.strip_suffix(itoa::Buffer::new().format(number).as_bytes())?;
    before.strip_suffix(&[kind]).map(<[u8]>::len)
}

/// The two digits of each number below a hundred, the first one in the low byte.
const PAIRS: [u16; 100] = {
    let mut pairs = [0; 100];
    let mut number = 0;
    while number < pairs.len() {
        pairs[number] = u16::from_le_bytes([b'0' + (number / 10) as u8, b'0' + (number % 10) as u8]);
        number += 1;
    }
    pairs
};

/// Whether all that lies between an argument's `end` and the next one's start `at` is a line end and the plainly written
/// announcement of `len` bytes.
#[inline(always)]
fn announces(input: &[u8], end: usize, at: usize, len: usize) -> bool {
    // There are always eight bytes: the shortest announcement, and the line end of what it announces.
    let Some(bytes) = input.get(end..).and_then(<[u8]>::first_chunk) else { return false };
    let (head, head_len) = match len {
        0..10 => (u64::from_le_bytes(*b"\r\n$0\r\n\0\0") + ((len as u64) << 24), 6),
        10..100 => (u64::from_le_bytes(*b"\r\n$\0\0\r\n\0") + (u64::from(PAIRS[len]) << 24), 7),
        100..1_000 => {
            let (hundreds, pair) = (len as u64 / 100, u64::from(PAIRS[len % 100]));
            (u64::from_le_bytes(*b"\r\n$0\0\0\r\n") + (hundreds << 24) + (pair << 32), 8)
        }
        _ => return long_announces(input, end, at, len),
    };
    // What lies behind the announcement is shifted out.
    at == end + head_len && (u64::from_le_bytes(*bytes) ^ head) << (64 - 8 * head_len) == 0
}

fn long_announces(input: &[u8], end: usize, at: usize, len: usize) -> bool {
    behind_line_end(input, end).is_some_and(|start| head_before(input, at, b'$', len) == Some(start))
}

/// The position behind the end of a line at `at`, if there is one.
#[inline(always)]
fn behind_line_end(input: &[u8], at: usize) -> Option<usize> {
    (input.get(at..at + 2)? == b"\r\n").then_some(at + 2)
}

impl std::fmt::Debug for Args<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.from(0).map(Bytes::copy_from_slice)).finish()
    }
}

/// Arguments with bytes of their own.
#[derive(Debug, Default)]
pub struct OwnedArgs {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    bigs: Vec<BigArg>,
}

impl OwnedArgs {
    /// The arguments `words`.
    pub fn new<W: AsRef<[u8]>>(words: impl IntoIterator<Item = W>) -> OwnedArgs {
        let mut owned = OwnedArgs::default();
        words.into_iter().for_each(|word| owned.push(word.as_ref()));
        owned
    }

    /// Adds an argument.
    pub fn push(&mut self, word: &[u8]) {
        if self.bytes.len() + word.len() > Span::REACH {
            let mut rope = Rope::new();
            rope.append(word);
            self.spans.push(Span::big(self.bigs.len() as u32));
            self.bigs.push(BigArg::new(rope));
            return;
        }
        self.spans.push(Span::bytes(self.bytes.len(), word.len()));
        self.bytes.extend_from_slice(word);
    }

    /// A view of them.
    pub fn view(&self) -> Args<'_> {
        Args::new(&self.spans, &self.bytes, &[], &self.bigs)
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.bytes.capacity()
            + self.spans.capacity() * size_of::<Span>()
            + self.bigs.iter().map(BigArg::len).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_arguments_read_like_others_and_can_be_taken() {
        let long = vec![b'x'; 600_000];
        let bigs = [BigArg::new(Rope::from(&long[..]))];
        let spans = [Span::bytes(0, 3), Span::bytes(3, 1), Span::big(0)];
        let args = Args::new(&spans, b"SETk", &[], &bigs);
        assert_eq!((args.len(), args.get(0), args.len_of(2)), (3, &b"SET"[..], 600_000));
        assert!(args.is(0, "set") && !args.is(1, "set"));
        assert_eq!(args.get(2), long);
        let owned = args.to_owned();
        assert_eq!(owned.view().from(1).collect::<Vec<_>>(), [b"k", &long[..]]);
        assert_eq!(owned.view().big(2).unwrap().take().to_vec(), long);
        assert_eq!(args.try_get(3), None);
    }

    #[test]
    fn what_was_sent_is_the_record_when_it_is_plainly_written() {
        fn sent(input: &str, spans: &[(usize, usize)]) -> Option<String> {
            let spans: Vec<Span> = spans.iter().map(|(start, len)| Span::bytes(*start, *len)).collect();
            let args = Args::new(&spans, input.as_bytes(), &[], &[]);
            args.as_sent().map(|bytes| String::from_utf8(bytes.to_vec()).expect("text"))
        }
        let get = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
        assert_eq!(sent(get, &[(8, 3), (17, 1)]).as_deref(), Some(get));
        let within = format!("PING\r\n{get}*1\r\n");
        assert_eq!(sent(&within, &[(14, 3), (23, 1)]).as_deref(), Some(get));
        let of_two = (0..=1_001).map(|len| (len, 2));
        for (len, count) in of_two.chain([(10, 10), (99, 99), (100, 100), (1_234, 1_000)]) {
            let word = "w".repeat(len);
            let mut input = format!("*{count}\r\n");
            let spans: Vec<_> = (0..count)
                .map(|_| {
                    input += &format!("${len}\r\n");
                    let at = input.len();
                    input += &format!("{word}\r\n");
                    (at, len)
                })
                .collect();
            assert_eq!(sent(&input, &spans).as_deref(), Some(&*input));
            // Any other byte between the first two.
            for at in spans[0].0 + len..spans[1].0 {
                let mut other = input.clone();
                other.replace_range(at..=at, "x");
                assert_eq!(sent(&other, &spans), None, "{other:?}");
            }
        }
        // Redis and the decoder take these as well; a reader of the log need not.
        for odd in [
            "*2\r\n$03\r\nGET\r\n$1\r\nk\r\n",
            "*02\r\n$3\r\nGET\r\n$1\r\nk\r\n",
            "*2\r\n$3\r\nGET\r\n$01\r\nk\r\n",
            "*2\r\n$3\r\nGETxx$1\r\nk\r\n",
            "*2\r\n$3\r\nGET\r\n$1\r\nkxx",
            "*2\r\n$3\r\nGET\r\n$1\r\nk\r",
            "*2\r\n$3\r\nGET\r\n$1\rxk\r\n",
            "GET k\r\n",
        ] {
            let at = (odd.find("GET").expect("a name"), odd.rfind('k').expect("a key"));
            assert_eq!(sent(odd, &[(at.0, 3), (at.1, 1)]), None, "{odd:?}");
        }
        assert_eq!(OwnedArgs::new(["GET", "k"]).view().as_sent(), None);
    }

    #[test]
    fn what_is_known_to_be_plain_is_not_looked_at() {
        let input = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n*2\r\n$3\r\nGET\r\n$1\r\nb\r\n";
        let (first, second) = input.split_at(input.len() / 2);
        let spans = [Span::bytes(8, 3), Span::bytes(17, 1), Span::bytes(28, 3), Span::bytes(37, 1)];
        let known = |spans, from| Args::new(spans, input, &[], &[]).plain_from(from).as_known_sent();
        assert_eq!((known(&spans[..2], 0), known(&spans[2..], 0)), (Some(first), Some(second)));
        assert_eq!((known(&spans[..2], 20), known(&spans[2..], 20)), (None, Some(second)));
        assert_eq!(Args::new(&spans[..2], input, &[], &[]).as_known_sent(), None, "nobody knows");
        let args = Args::new(&spans[..2], input, &[], &[]).plain_from(0);
        assert!(args.inner(1).is_some_and(|inner| inner.as_known_sent().is_none()), "a part of a command");
        let long = [Span::bytes(8, 10)];
        assert_eq!(Args::new(&long, b"*1\r\n$10\r\nHOTKEYSXYZ\r\n", &[], &[]).plain_from(0).as_known_sent(), None);
    }

    #[test]
    fn the_length_is_that_of_what_a_client_sends() {
        for (words, sent) in [
            (vec!["PING".to_owned()], "*1\r\n$4\r\nPING\r\n".len()),
            (vec!["GET".to_owned(), String::new()], "*2\r\n$3\r\nGET\r\n$0\r\n\r\n".len()),
            (vec!["x".repeat(10); 10], "*10\r\n".len() + 10 * ("$10\r\n\r\n".len() + 10)),
        ] {
            assert_eq!(OwnedArgs::new(words).view().wire_len(), sent);
        }
    }
}
