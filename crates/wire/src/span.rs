//! Where an argument lies: a reference into a buffer that is not borrowed. Knows no protocol.

/// Where an argument lies, in eight bytes.
///
/// ```text
///  len                        start
///  0 ..= 2^31-1               offset in the input buffer
///  2^31 + length              offset in the scratch buffer (arguments that had to be unescaped)
///  u32::MAX                   number of the big argument, which the caller took out of the stream itself
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Span {
    start: u32,
    len: u32,
}

const _: () = assert!(size_of::<Span>() == 8);

/// Marks a length as one in the scratch buffer.
const SCRATCH: u32 = 1 << 31;
/// The length that marks a big argument.
const BIG: u32 = u32::MAX;

/// What a span resolves to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// The argument's bytes.
    Bytes(&'a [u8]),
    /// The number of a big argument of this command, counted from 0; the caller holds it.
    Big(u32),
}

impl Span {
    /// Longest input buffer that spans reach into, in bytes.
    pub const REACH: usize = SCRATCH as usize - 1;

    /// Bytes `[start, start + len)` of the input buffer; both within [`Span::REACH`].
    #[inline]
    pub const fn bytes(start: usize, len: usize) -> Span {
        debug_assert!(start <= Span::REACH && len <= Span::REACH);
        Span { start: start as u32, len: len as u32 }
    }

    /// Bytes `[start, start + len)` of the scratch buffer.
    pub(crate) const fn scratch(start: usize, len: usize) -> Span {
        assert!(start <= Span::REACH && len < Span::REACH);
        Span { start: start as u32, len: SCRATCH | len as u32 }
    }

    /// Big argument `number` of the command.
    pub const fn big(number: u32) -> Span {
        Span { start: number, len: BIG }
    }

    /// Whether the argument is a big one, which the caller holds.
    #[inline]
    pub const fn is_big(self) -> bool {
        self.len == BIG
    }

    /// Where in the input buffer the argument begins and how long it is, if it lies there.
    #[inline]
    pub const fn in_input(self) -> Option<(usize, usize)> {
        if self.len < SCRATCH { Some((self.start as usize, self.len as usize)) } else { None }
    }

    /// Where in the input buffer the argument lies, if it does.
    #[inline]
    pub const fn input_range(self) -> Option<std::ops::Range<usize>> {
        if self.len < SCRATCH { Some(self.start as usize..self.start as usize + self.len as usize) } else { None }
    }

    /// The argument, given the buffer it was read from and the scratch buffer of its [`ArgSpans`].
    ///
    /// # Panics
    /// When the buffers are not those that the span was made for.
    #[inline]
    pub fn resolve<'a>(self, input: &'a [u8], scratch: &'a [u8]) -> Place<'a> {
        if self.len < SCRATCH {
            Place::Bytes(&input[self.start as usize..][..self.len as usize])
        } else if self.is_big() {
            Place::Big(self.start)
        } else {
            Place::Bytes(&scratch[self.start as usize..][..(self.len - SCRATCH) as usize])
        }
    }

    /// The same argument when the buffer's content has moved `by` bytes towards its end.
    #[inline]
    #[must_use]
    pub(crate) const fn shifted(self, by: usize) -> Span {
        if self.len < SCRATCH { Span::bytes(self.start as usize + by, self.len as usize) } else { self }
    }

    /// The same argument, counted from `by` bytes behind the buffer's start.
    #[inline]
    #[must_use]
    pub(crate) const fn back_by(self, by: usize) -> Span {
        if self.len < SCRATCH { Span::bytes(self.start as usize - by, self.len as usize) } else { self }
    }
}

impl std::fmt::Debug for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.len {
            BIG => write!(f, "big {}", self.start),
            len if len >= SCRATCH => write!(f, "scratch {}+{}", self.start, len - SCRATCH),
            len => write!(f, "{}+{len}", self.start),
        }
    }
}

/// The arguments of one or more commands, as a decoder gives them out.
///
/// A batch is decoded into one list; the commands' boundaries are the list's lengths before and after each step.
#[derive(Debug)]
pub struct ArgSpans {
    /// The arguments, in order.
    pub spans: Vec<Span>,
    /// Arguments that differ from their bytes on the wire: quoted ones of inline commands.
    pub scratch: Vec<u8>,
    /// RESP commands whose arguments lie from this position of the input buffer on are written there in the one plain
    /// way, to the byte: an array of bulk strings. How those before it are written is not known. Whoever has commands
    /// decoded and wants to know sets it to where the first begins; the decoder moves it behind those that may not be plain.
    pub plain_from: usize,
}

impl Default for ArgSpans {
    fn default() -> ArgSpans {
        ArgSpans::new()
    }
}

impl ArgSpans {
    /// An empty list; allocates nothing.
    pub const fn new() -> ArgSpans {
        ArgSpans { spans: Vec::new(), scratch: Vec::new(), plain_from: usize::MAX }
    }

    /// Forgets all arguments; keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.spans.clear();
        self.scratch.clear();
        self.plain_from = usize::MAX;
    }

    /// Argument `index` of the list.
    ///
    /// # Panics
    /// When there is no such argument, or `input` is not the buffer it was read from.
    #[inline]
    pub fn get<'a>(&'a self, index: usize, input: &'a [u8]) -> Place<'a> {
        self.spans[index].resolve(input, &self.scratch)
    }
}
