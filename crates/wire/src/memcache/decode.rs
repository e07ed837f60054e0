//! Requests of memcached's text protocol out of a client's bytes, without copying them. Knows no store.

use super::error::{Fatal, Refusal, RequestError};
use super::line::{KEY_MAX, Line, Store, Tokens, get_verb, parse_line};
use super::meta::{MetaFlags, MetaWords};
use super::number::parse_i64;
use super::plain::{set_line, whole_get};
use super::request::{GetVerb, MetaVerb, Request, StoreVerb};
use crate::span::{ArgSpans, Span};
use memchr::memchr;

/// How much a client may ask for.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Longest data block in bytes (`max-value-size`).
    pub value_max: usize,
    /// Longest line in bytes, reads excepted: theirs may be endless.
    ///
    /// Memcached gives up when it has so many bytes without a line end; how long a line may be depends on how it
    /// arrives there. Here it does not.
    pub line_max: usize,
    /// A data block of this many bytes, not yet wholly there, is left to the caller to fetch. `usize::MAX`: none.
    pub big_min: usize,
    /// Whether the caller has memory to fetch such a one; if not it is refused and passed over.
    pub takes_big: bool,
    /// A shorter data block of this many bytes, not yet wholly there, is kept only if the caller has memory for it.
    pub short_min: usize,
    /// Whether it has; if not such a one is refused and passed over, too.
    pub takes_short: bool,
    /// Whether clients of the binary protocol are asked who they are.
    pub sasl: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            value_max: 512 << 20,
            line_max: 2048,
            big_min: 32 << 10,
            takes_big: true,
            short_min: 4 << 10,
            takes_short: true,
            sasl: false,
        }
    }
}

impl Limits {
    /// Whether the beginning of a data block of so many bytes is kept until its rest comes.
    pub(super) fn keeps(&self, len: usize) -> bool {
        if len >= self.big_min { self.takes_big } else { self.takes_short || len < self.short_min }
    }
}

/// What the decoder made of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A request is complete, the next one starts at `end`.
    Request {
        /// What it asks for.
        request: Request,
        /// Position behind it.
        end: usize,
    },
    /// A request is refused: to be answered, then on from `end`, where memcached goes on, too.
    Refused {
        /// Why, and what to do.
        refusal: Refusal,
        /// Position behind what was refused.
        end: usize,
    },
    /// Nothing to run and nothing to answer up to `end`: the rest of something refused, or blanks.
    Skip {
        /// Position behind it.
        end: usize,
    },
    /// The request is not complete. Keep everything from its start, and call again with at least one byte more.
    Incomplete,
    /// The next `len` bytes of the stream, from position `at` of the buffer, are the data block: big argument 0.
    ///
    /// The caller takes them out of the stream, keeps what lies before `at` from the request's start, and calls
    /// [`TextDecoder::big_taken`]. In the next buffer the bytes that follow the data (CR LF) lie at `at`. When these
    /// are wrong the request is refused, and the caller drops what it took.
    Big {
        /// Length of the data in bytes, of which fewer are in the buffer.
        len: usize,
        /// Position of its first byte.
        at: usize,
    },
}

/// What the next bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A line, of which so many bytes hold no line end.
    Line { scanned: usize },
    /// Keys of a read whose line is too long to be looked at whole.
    Keys { verb: GetVerb, exptime: Option<i64>, any: bool },
    /// A data block that starts so many bytes behind the request's start, where the key's span counts from.
    Data { store: Store, at: usize, taken: bool },
    /// The same for `ms`, whose line is read again when its data is there.
    MetaData { len: usize, at: usize, taken: bool },
    /// The rest of a refused line.
    RestOfLine,
    /// So many bytes of a refused data block and its CR LF.
    RestOfData { len: usize },
}

/// Reads requests one after another.
///
/// ```text
///   +--> Line --(whole line, nothing behind it)--> Request, Refused --+
///   |      +--(set ...)--> Data --> Request, Refused -----------------+
///   |      |                 +----> Big --big_taken--> Data ----------+
///   |      +--(set, too large)--> Refused, RestOfData --> Skip -------+
///   |      +--(set, no memory to fetch it, big_let_go)--> the same ---+
///   |      +--(get, line over the limit)--> Keys --> Request ...------+
///   |                                         +----> Refused, RestOfLine --> Skip
///   +------------------------------------------------------------------
/// ```
#[derive(Clone, Debug)]
pub struct TextDecoder {
    state: State,
    /// Bytes of the next request's data block that the caller had and has let go.
    let_go: usize,
}

impl Default for TextDecoder {
    fn default() -> TextDecoder {
        TextDecoder::new()
    }
}

impl TextDecoder {
    /// A decoder at the start of a stream.
    pub const fn new() -> TextDecoder {
        TextDecoder { state: State::Line { scanned: 0 }, let_go: 0 }
    }

    /// Whether part of a request was read and its rest is awaited.
    pub fn is_inside_request(&self) -> bool {
        self.state != State::Line { scanned: 0 }
    }

    /// Whether the line of a request was read and its data block is awaited.
    pub fn is_inside_data(&self) -> bool {
        matches!(self.state, State::Data { .. } | State::MetaData { .. })
    }

    /// Whether what comes next belongs to a request that was refused.
    pub fn is_skipping(&self) -> bool {
        matches!(self.state, State::RestOfLine | State::RestOfData { .. })
    }

    /// Reads one request from `buf[start..]`. Lists of arguments (keys of a read, words of `stats`) are appended to
    /// `args`; the spans of a request's fields count from the start of `buf`.
    ///
    /// After [`Step::Incomplete`] and [`Step::Big`] the next call must begin with the same request's bytes: they may
    /// have moved, `start` says where to.
    ///
    /// # Errors
    /// When the connection is to be closed; the decoder is of no use then.
    #[inline]
    pub fn next(&mut self, buf: &[u8], start: usize, args: &mut ArgSpans, limits: &Limits) -> Result<Step, Fatal> {
        if buf.len() > Span::REACH {
            return Err(Fatal::RequestTooLong);
        }
        if self.let_go > 0 {
            return self.refuse_let_go(buf, start, args, limits);
        }
        match self.state {
            State::Line { scanned: 0 } => {
                if let Some(end) = whole_get(buf, start, &mut args.spans, limits.line_max) {
                    let request = Request::Get { verb: GetVerb::Get, exptime: None, last: true };
                    return Ok(Step::Request { request, end });
                }
                if let Some((store, len)) = set_line(&buf[start..], limits.line_max)
                    && store.len <= limits.value_max
                {
                    return Ok(self.read_data(buf, start, store, len, false, limits));
                }
                self.read_line(buf, start, 0, args, limits)
            }
            State::Line { scanned } => self.read_line(buf, start, scanned, args, limits),
            State::Data { store, at, taken } => Ok(self.read_data(buf, start, store, at, taken, limits)),
            State::MetaData { len, at, taken } => self.go_on_with_meta(buf, start, len, at, taken, args, limits),
            State::Keys { verb, exptime, any } => Ok(self.read_keys(buf, start, verb, exptime, any, args)),
            State::RestOfLine => Ok(self.skip_line(buf, start)),
            State::RestOfData { len } => Ok(self.skip_data(buf, start, len)),
        }
    }

    /// Tells that a read whose keys come in parts has been answered with an error: the keys that are left are no request.
    pub fn pass_rest_of_line(&mut self) {
        if let State::Keys { .. } = self.state {
            self.state = State::RestOfLine;
        }
    }

    /// Tells that the caller holds the bytes of the data block that was asked for.
    ///
    /// # Panics
    /// When none was asked for.
    pub fn big_taken(&mut self) {
        let (State::Data { taken: taken @ false, .. } | State::MetaData { taken: taken @ false, .. }) = &mut self.state
        else {
            panic!("no data block was asked for");
        };
        *taken = true;
    }

    /// Tells that the caller has let go of the first `come` bytes of the data block that was asked for: the request is to be
    /// refused. The next call must begin with its bytes.
    pub fn big_let_go(&mut self, come: usize) {
        self.state = State::Line { scanned: 0 };
        self.let_go = come;
    }

    /// Refuses the request whose data block was let go; the rest of that is passed over.
    #[cold]
    fn refuse_let_go(&mut self, buf: &[u8], start: usize, args: &mut ArgSpans, limits: &Limits) -> Result<Step, Fatal> {
        // It was no longer than it may be when it began.
        let limits = Limits { value_max: usize::MAX, ..limits.clone() };
        let step = self.read_line(buf, start, 0, args, &limits);
        debug_assert_eq!(self.let_go, 0, "what follows is the rest of the data");
        self.let_go = 0;
        step
    }

    /// Whether a data block of so many bytes that is not wholly there is awaited.
    #[cold]
    fn is_wanted(&self, len: usize, limits: &Limits) -> bool {
        limits.keeps(len) && self.let_go == 0
    }

    #[inline(never)]
    fn read_line(
        &mut self,
        buf: &[u8],
        start: usize,
        scanned: usize,
        args: &mut ArgSpans,
        limits: &Limits,
    ) -> Result<Step, Fatal> {
        let input = &buf[start..];
        let line = &input[..input.len().min(limits.line_max.saturating_add(1))];
        let Some(found) = memchr(b'\n', &line[scanned..]) else {
            if line.len() > limits.line_max {
                return self.begin_long_line(buf, start, line.len(), args);
            }
            self.state = State::Line { scanned: line.len() };
            return Ok(Step::Incomplete);
        };
        let found = scanned + found;
        self.state = State::Line { scanned: 0 };
        let end = start + found + 1;
        let first = args.spans.len();
        match parse_line(without_cr(&line[..found]), start, args, limits.value_max)? {
            Line::Request(request) => Ok(Step::Request { request, end }),
            Line::Store(store) if store.len <= limits.value_max => {
                let store = Store { key: store.key.back_by(start), ..store };
                Ok(self.read_data(buf, start, store, end - start, false, limits))
            }
            Line::Store(store) => {
                let write = Some((store.verb, store.key));
                let refusal = Refusal { error: RequestError::TooLarge, noreply: store.noreply, write };
                self.state = State::RestOfData { len: store.len + 2 };
                Ok(Step::Refused { refusal, end })
            }
            Line::MetaSet { len } => Ok(self.begin_meta_data(buf, start, len, end - start, first, args, limits)),
            Line::Refused { error, noreply } => {
                Ok(Step::Refused { refusal: Refusal { error, noreply, write: None }, end })
            }
            Line::RefusedStore { error, noreply, len } => {
                self.state = State::RestOfData { len: len + 2 };
                Ok(Step::Refused { refusal: Refusal { error, noreply, write: None }, end })
            }
        }
    }

    /// The data block of `store`, which starts `at` bytes behind the request's `start`.
    #[inline]
    fn read_data(&mut self, buf: &[u8], start: usize, store: Store, at: usize, taken: bool, limits: &Limits) -> Step {
        let data_start = start + at;
        let len = if taken { 0 } else { store.len };
        let ready = buf.len() - data_start;
        if ready < len || ready - len < 2 {
            if ready < len && !self.is_wanted(len, limits) {
                let write = Some((store.verb, store.key.shifted(start)));
                let refusal = Refusal { error: RequestError::OutOfMemory, noreply: store.noreply, write };
                self.state = State::RestOfData { len: len + 2 - std::mem::take(&mut self.let_go) };
                return Step::Refused { refusal, end: data_start };
            }
            self.state = State::Data { store, at, taken };
            return if ready < len && len >= limits.big_min {
                Step::Big { len, at: data_start }
            } else {
                Step::Incomplete
            };
        }
        self.state = State::Line { scanned: 0 };
        let end = data_start + len + 2;
        let Store { verb, key, flags, exptime, noreply, .. } = store;
        if &buf[end - 2..end] != b"\r\n" {
            let refusal = Refusal { error: RequestError::BadDataChunk, noreply, write: None };
            return Step::Refused { refusal, end };
        }
        let data = if taken { Span::big(0) } else { Span::bytes(data_start, len) };
        let key = key.shifted(start);
        Step::Request { request: Request::Store { verb, key, flags, exptime, data, noreply }, end }
    }

    /// The data block of an `ms`, `len` bytes long, which starts `at` bytes behind the request's `start`. Its key and flags
    /// are the arguments from `first` on.
    #[expect(clippy::too_many_arguments, reason = "where the line is, where the data is, and what they mean")]
    fn begin_meta_data(
        &mut self,
        buf: &[u8],
        start: usize,
        len: usize,
        at: usize,
        first: usize,
        args: &mut ArgSpans,
        limits: &Limits,
    ) -> Step {
        if len <= limits.value_max && buf.len() - start - at >= len + 2 {
            return self.end_meta_data(buf, start + at, len, Span::bytes(start + at, len), first, args);
        }
        // What will be refused is not awaited.
        let words = MetaWords::new(&args.spans[first..], buf, &args.scratch);
        // Whatever its mode is, memcached takes it for a set.
        let write = Some((StoreVerb::Set, args.spans[first]));
        let refusal = match MetaFlags::parse(MetaVerb::Set, words) {
            Err(error) => Some(Refusal { error, noreply: false, write: None }),
            Ok(_) if len > limits.value_max => Some(Refusal { error: RequestError::TooLarge, noreply: false, write }),
            Ok(_) if buf.len() - start - at < len && !self.is_wanted(len, limits) => {
                Some(Refusal { error: RequestError::OutOfMemory, noreply: false, write })
            }
            Ok(_) => None,
        };
        args.spans.truncate(first);
        match refusal {
            Some(refusal) => {
                self.state = State::RestOfData { len: len + 2 - std::mem::take(&mut self.let_go) };
                Step::Refused { refusal, end: start + at }
            }
            None => self.await_meta_data(buf, start, len, at, false, limits),
        }
    }

    /// The data block of an `ms` that was not there before.
    #[expect(clippy::too_many_arguments, reason = "where the line is, where the data is, and what they mean")]
    fn go_on_with_meta(
        &mut self,
        buf: &[u8],
        start: usize,
        len: usize,
        at: usize,
        taken: bool,
        args: &mut ArgSpans,
        limits: &Limits,
    ) -> Result<Step, Fatal> {
        let (data, beside) = if taken { (Span::big(0), 0) } else { (Span::bytes(start + at, len), len) };
        if buf.len() - start - at < beside + 2 {
            if buf.len() - start - at < beside && !self.is_wanted(len, limits) {
                // As if it had not begun to come.
                return self.read_line(buf, start, 0, args, &Limits { value_max: usize::MAX, ..limits.clone() });
            }
            return Ok(self.await_meta_data(buf, start, len, at, taken, limits));
        }
        let first = args.spans.len();
        // Its length was found good when the line came; the limit may have become lower since.
        parse_line(without_cr(&buf[start..start + at - 1]), start, args, usize::MAX)?;
        Ok(self.end_meta_data(buf, start + at, beside, data, first, args))
    }

    fn await_meta_data(
        &mut self,
        buf: &[u8],
        start: usize,
        len: usize,
        at: usize,
        taken: bool,
        limits: &Limits,
    ) -> Step {
        self.state = State::MetaData { len, at, taken };
        if !taken && buf.len() - start - at < len && len >= limits.big_min {
            Step::Big { len, at: start + at }
        } else {
            Step::Incomplete
        }
    }

    /// An `ms` whose data is there, `len` bytes from `data_start` on and CR LF.
    fn end_meta_data(
        &mut self,
        buf: &[u8],
        data_start: usize,
        len: usize,
        data: Span,
        first: usize,
        args: &mut ArgSpans,
    ) -> Step {
        self.state = State::Line { scanned: 0 };
        let end = data_start + len + 2;
        if &buf[end - 2..end] == b"\r\n" {
            Step::Request { request: Request::Meta { verb: MetaVerb::Set, data, writes: true }, end }
        } else {
            // Memcached looks at the flags before it has the data.
            let words = MetaWords::new(&args.spans[first..], buf, &args.scratch);
            let error = MetaFlags::parse(MetaVerb::Set, words).err().unwrap_or(RequestError::BadDataChunk);
            args.spans.truncate(first);
            refused(error, end)
        }
    }

    /// A line of which the first `seen` bytes hold no line end: only a read may be so long.
    #[cold]
    fn begin_long_line(&mut self, buf: &[u8], start: usize, seen: usize, args: &mut ArgSpans) -> Result<Step, Fatal> {
        let line = &buf[start..start + seen];
        // A token that reaches to the end may go on.
        let mut whole = Tokens::new(line).take_while(|(at, token)| at + token.len() < line.len());
        let (at, verb) = whole.next().ok_or(Fatal::LineTooLong)?;
        let mut keys_at = at + verb.len();
        let verb = get_verb(verb).ok_or(Fatal::LineTooLong)?;
        let mut exptime = None;
        if verb.has_exptime() {
            let (at, token) = whole.next().ok_or(Fatal::LineTooLong)?;
            keys_at = at + token.len();
            exptime = parse_i64(token);
            if exptime.is_none() {
                self.state = State::RestOfLine;
                return Ok(refused(RequestError::InvalidExptime, start + keys_at));
            }
        }
        Ok(self.read_keys(buf, start + keys_at, verb, exptime, false, args))
    }

    /// The keys that are there of a long line, whose part before `start` is done.
    ///
    /// A key that is too long is refused only when all before it were given out: what a client gets does not depend
    /// on how its bytes arrived.
    fn read_keys(
        &mut self,
        buf: &[u8],
        start: usize,
        verb: GetVerb,
        exptime: Option<i64>,
        any: bool,
        args: &mut ArgSpans,
    ) -> Step {
        let input = &buf[start..];
        let line_end = memchr(b'\n', input);
        let line = line_end.map_or(input, |found| without_cr(&input[..found]));
        let before = args.spans.len();
        // Behind the last key that is given out, and the blanks that follow.
        let mut done = line.iter().take_while(|&&byte| byte == b' ').count();
        for (at, key) in Tokens::new(line) {
            done = at;
            let may_go_on = line_end.is_none() && at + key.len() == line.len();
            // The CR of a line end that is still to come is none of the key's.
            let known = if may_go_on { without_cr(key) } else { key };
            if known.len() > KEY_MAX {
                if args.spans.len() == before {
                    self.state = State::RestOfLine;
                    return refused(RequestError::BadFormat, start + at);
                }
                self.state = State::Keys { verb, exptime, any: true };
                return Step::Request { request: Request::Get { verb, exptime, last: false }, end: start + at };
            }
            if may_go_on {
                break;
            }
            args.spans.push(Span::bytes(start + at, key.len()));
            done = at + key.len();
        }
        let found = args.spans.len() > before;
        let any = any || found;
        if let Some(line_end) = line_end {
            self.state = State::Line { scanned: 0 };
            let end = start + line_end + 1;
            return if any || exptime.is_some() {
                Step::Request { request: Request::Get { verb, exptime, last: true }, end }
            } else {
                refused(RequestError::Unknown, end)
            };
        }
        self.state = State::Keys { verb, exptime, any };
        let end = start + done;
        match (found, done) {
            (true, _) => Step::Request { request: Request::Get { verb, exptime, last: false }, end },
            (false, 0) => Step::Incomplete,
            (false, _) => Step::Skip { end },
        }
    }

    fn skip_line(&mut self, buf: &[u8], start: usize) -> Step {
        match memchr(b'\n', &buf[start..]) {
            Some(found) => {
                self.state = State::Line { scanned: 0 };
                Step::Skip { end: start + found + 1 }
            }
            None if start == buf.len() => Step::Incomplete,
            None => Step::Skip { end: buf.len() },
        }
    }

    fn skip_data(&mut self, buf: &[u8], start: usize, len: usize) -> Step {
        let skipped = len.min(buf.len() - start);
        if skipped == 0 {
            return Step::Incomplete;
        }
        self.state = if skipped == len { State::Line { scanned: 0 } } else { State::RestOfData { len: len - skipped } };
        Step::Skip { end: start + skipped }
    }
}

const fn refused(error: RequestError, end: usize) -> Step {
    Step::Refused { refusal: Refusal { error, noreply: false, write: None }, end }
}

/// A line without the one CR before its LF.
fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}
