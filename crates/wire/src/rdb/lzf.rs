//! Compression as Redis compresses strings: LZF (Marc Lehmann's LibLZF). Knows no string's length on the wire.
//!
//! ```text
//!   000LLLLL and L + 1 bytes                 these bytes
//!   LLLooooo oooooooo                        L + 2 bytes from o + 1 bytes before, L from 1 to 6
//!   111ooooo LLLLLLLL oooooooo               L + 9 bytes from o + 1 bytes before
//! ```

/// The most bytes that one byte of input stands for.
const GAIN_MAX: usize = 132;
/// The most bytes that one literal run has.
const LITERAL_MAX: usize = 32;
/// Bytes of the shortest and the longest repetition.
const MATCH_MIN: usize = 3;
const MATCH_MAX: usize = 264;
/// How far back a repetition reaches at most, in bytes.
const REACH: usize = 8192;
/// Bytes of a piece of what is decompressed, where nobody wants all of it at once.
const PIECE: usize = 256 << 10;
/// Bits of the table's index for inputs that are longer than a repetition reaches.
const TABLE_BITS: u32 = 14;
/// Inputs up to so many bytes have a table of bytes, and one of two bytes each, on the stack.
const SHORT_LEN_MAX: usize = 64;
const MIDDLE_LEN_MAX: usize = 1024;

/// The `len` bytes that `input` decompresses to, if it does to exactly so many.
pub fn lzf_decompress(input: &[u8], len: usize) -> Option<Vec<u8>> {
    // A length is not believed before the bytes are there.
    if len > input.len().checked_mul(GAIN_MAX)? {
        return None;
    }
    let mut out = vec![0; len];
    let end = decompress(input, len, &mut out, |_, end| end)?;
    (end == len).then_some(out)
}

/// Hands the `len` bytes that `input` decompresses to on in pieces, all but the last of [`PIECE`] bytes; tells whether it does to
/// exactly so many. Some may have been handed on if not.
pub(super) fn lzf_decompress_in_pieces(input: &[u8], len: usize, mut take: impl FnMut(&[u8])) -> bool {
    if input.len().checked_mul(GAIN_MAX).is_none_or(|most| len > most) {
        return false;
    }
    let mut out = vec![0; PIECE + REACH + MATCH_MAX];
    let mut handed_on = 0;
    let found = decompress(input, len, &mut out, |out, end| {
        if end < PIECE + REACH {
            return end;
        }
        take(&out[..PIECE]);
        handed_on += PIECE;
        out.copy_within(PIECE..end, 0);
        end - PIECE
    });
    found.is_some_and(|end| {
        take(&out[..end]);
        handed_on + end == len
    })
}

/// Writes what `input` decompresses to, if that is no more than `len` bytes, to the beginning of `out`, and gives where it ends
/// there. Behind that, `out` is of no meaning. Of those bytes that are there `hand_on` may take some from the front, all but the last
/// [`REACH`], and says where they end then. There is room for one run more each time, or for all.
#[inline]
fn decompress(
    input: &[u8],
    len: usize,
    out: &mut [u8],
    mut hand_on: impl FnMut(&mut [u8], usize) -> usize,
) -> Option<usize> {
    let (mut end, mut may_come) = (0, len);
    let mut left = input;
    while let Some((&control, rest)) = left.split_first() {
        left = rest;
        let count;
        if control < LITERAL_MAX as u8 {
            count = usize::from(control) + 1;
            let (literal, rest) = left.split_at_checked(count)?;
            may_come = may_come.checked_sub(count)?;
            // With what is behind it a run is of one length, whose copy takes no call.
            match (left.first_chunk::<LITERAL_MAX>(), out[end..].first_chunk_mut()) {
                (Some(run), Some(place)) => *place = *run,
                _ => out[end..end + count].copy_from_slice(literal),
            }
            left = rest;
        } else {
            let mut length = usize::from(control >> 5);
            if length == 7 {
                let (&more, rest) = left.split_first()?;
                length += usize::from(more);
                left = rest;
            }
            count = length + 2;
            let (&low, rest) = left.split_first()?;
            left = rest;
            let back = (usize::from(control & 0x1F) << 8 | usize::from(low)) + 1;
            let from = end.checked_sub(back)?;
            may_come = may_come.checked_sub(count)?;
            repeat(out, from, end, count);
        }
        end = hand_on(out, end + count);
    }
    Some(end)
}

/// Repeats what lies `count` bytes from `from` on at `end`, behind it. It may overlap what it is copied to: then it repeats what has
/// come of it so far. Some bytes behind may change, too.
#[inline]
fn repeat(out: &mut [u8], from: usize, end: usize, count: usize) {
    const SHORT: usize = 16;
    if count <= SHORT.min(end - from)
        && let Some(&run) = out[from..].first_chunk::<SHORT>()
        && let Some(place) = out[end..].first_chunk_mut()
    {
        *place = run;
        return;
    }
    let mut done = 0;
    while done < count {
        let there = (count - done).min(end + done - from);
        out.copy_within(from..from + there, end + done);
        done += there;
    }
}

/// Writes the compressed form of `input` to the beginning of `out` and gives its length, if there is room for it.
pub fn lzf_compress(input: &[u8], out: &mut [u8]) -> Option<usize> {
    // A string as keys mostly have it costs no allocation, and the filling of two cache lines.
    let len = input.len();
    if len <= SHORT_LEN_MAX {
        compress(input, out, &mut [0u8; 2 * SHORT_LEN_MAX])
    } else if len <= MIDDLE_LEN_MAX {
        compress(input, out, &mut [0u16; MIDDLE_LEN_MAX])
    } else if len <= REACH {
        compress(input, out, &mut vec![0u16; len.next_power_of_two()])
    } else {
        compress_long(input, out)
    }
}

/// For inputs that are longer than a repetition reaches. Their table is on the stack, where one memory serves for all of them:
/// what is allocated as zeros is of fresh pages each time, beside which those of all before are kept.
#[inline(never)]
fn compress_long(input: &[u8], out: &mut [u8]) -> Option<usize> {
    u32::try_from(input.len()).ok()?;
    compress(input, out, &mut [0u32; 1 << TABLE_BITS])
}

/// Appends the compressed form of `input`, if it has at most `len_max` bytes; tells whether it has. It is one byte in 32 longer
/// than `input` where nothing in that repeats. What is appended for several inputs stands for all of them.
pub(super) fn lzf_append(input: &[u8], len_max: usize, out: &mut Vec<u8>) -> bool {
    let begin = out.len();
    out.resize(begin + len_max.min(plain_len(input)), 0);
    let len = lzf_compress(input, &mut out[begin..]);
    out.truncate(begin + len.unwrap_or(0));
    len.is_some()
}

/// Appends what decompresses to `input`, as it is, if it has at most `len_max` bytes; tells whether it has.
pub(super) fn lzf_append_plain(input: &[u8], len_max: usize, out: &mut Vec<u8>) -> bool {
    if plain_len(input) > len_max {
        return false;
    }
    for run in input.chunks(LITERAL_MAX) {
        out.push(run.len() as u8 - 1);
        out.extend_from_slice(run);
    }
    true
}

/// How many bytes stand for an input in which nothing repeats.
fn plain_len(input: &[u8]) -> usize {
    input.len() + input.len().div_ceil(LITERAL_MAX)
}

/// A place in the input, as short as the input allows; 0 is none.
trait Position: Copy {
    /// Whether inputs are longer than a repetition reaches.
    const MAY_BE_FAR: bool;
    fn behind(at: usize) -> Self;
    fn index(self) -> usize;
}

impl Position for u8 {
    const MAY_BE_FAR: bool = false;
    fn behind(at: usize) -> u8 {
        at as u8 + 1
    }
    fn index(self) -> usize {
        self.into()
    }
}

impl Position for u16 {
    const MAY_BE_FAR: bool = false;
    fn behind(at: usize) -> u16 {
        at as u16 + 1
    }
    fn index(self) -> usize {
        self.into()
    }
}

impl Position for u32 {
    const MAY_BE_FAR: bool = true;
    fn behind(at: usize) -> u32 {
        at as u32 + 1
    }
    fn index(self) -> usize {
        self as usize
    }
}

/// The bits of a word of four bytes, little endian, that are its first three.
const THREE: u32 = 0xFF_FFFF;
/// Bytes of such a word: where fewer are left, no repetition begins.
const WORD: usize = size_of::<u32>();

/// The word at byte `at`, if there is all of it.
#[inline]
fn word_at(input: &[u8], at: usize) -> Option<u32> {
    input.get(at..at + WORD)?.first_chunk().map(|word| u32::from_le_bytes(*word))
}

/// How many bytes are the same from the beginning on, up to the end of `other`, which is not the longer one.
#[inline]
fn same_len(one: &[u8], other: &[u8]) -> usize {
    let (words, _) = other.as_chunks::<8>();
    let mut len = 0;
    for (a, b) in one.as_chunks::<8>().0.iter().zip(words) {
        let differing = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differing != 0 {
            return len + differing.trailing_zeros() as usize / 8;
        }
        len += 8;
    }
    len + one[len..].iter().zip(&other[len..]).take_while(|(a, b)| a == b).count()
}

/// `seen` is where three bytes were seen last, plus one; its length is a power of two.
#[inline]
fn compress<P: Position>(input: &[u8], out: &mut [u8], seen: &mut [P]) -> Option<usize> {
    let shift = u32::BITS - seen.len().trailing_zeros();
    let mask = seen.len() - 1;
    // Fibonacci hashing; the fourth byte is shifted out.
    let slot = |word: u32| ((word << 8).wrapping_mul(0x9E37_79B1) >> shift) as usize & mask;
    let mut room = Room { out, len: 0 };
    let mut literals_from = 0;
    let mut at = 0;
    while let Some(word) = word_at(input, at) {
        let before = std::mem::replace(&mut seen[slot(word)], P::behind(at)).index();
        // Seldom the same: if it were first asked whether it is near, which is a toss-up, noise would take twice as long. Nor is
        // whether there was any asked by itself, for the same reason.
        let other = word_at(input, before.saturating_sub(1)).expect("there is one further on");
        if (before == 0) | ((other ^ word) & THREE != 0) || P::MAY_BE_FAR && at + 1 - before > REACH {
            at += 1;
            continue;
        }
        let from = before - 1;
        let most = MATCH_MAX.min(input.len() - at);
        let len = MATCH_MIN + same_len(&input[from + MATCH_MIN..], &input[at + MATCH_MIN..at + most]);
        room.literals(input, literals_from, at)?;
        room.repetition(at - from - 1, len)?;
        // The ends of what was repeated are found again; its middle less often pays.
        for again in [at + 1, at + len - 2, at + len - 1] {
            if let Some(word) = word_at(input, again) {
                seen[slot(word)] = P::behind(again);
            }
        }
        at += len;
        literals_from = at;
    }
    room.literals(input, literals_from, input.len())?;
    Some(room.len)
}

/// The output, and how much of it is written.
struct Room<'o> {
    out: &'o mut [u8],
    len: usize,
}

impl Room<'_> {
    #[inline]
    fn literals(&mut self, input: &[u8], mut from: usize, to: usize) -> Option<()> {
        loop {
            let run = (to - from).min(LITERAL_MAX);
            // With what is behind it a run is of one length, whose copy takes no call. Whether it is empty is a toss-up and
            // not asked: the next bytes then take the place of what was written.
            if let Some(place) = self.out[self.len..].first_chunk_mut::<{ 1 + LITERAL_MAX }>()
                && let Some(literals) = input[from..].first_chunk::<LITERAL_MAX>()
            {
                place[0] = (run as u8).wrapping_sub(1);
                place[1..].copy_from_slice(literals);
                self.len += if run == 0 { 0 } else { 1 + run };
            } else if run > 0 {
                let (control, bytes) = self.out[self.len..].get_mut(..1 + run)?.split_first_mut()?;
                *control = run as u8 - 1;
                bytes.copy_from_slice(&input[from..from + run]);
                self.len += 1 + run;
            }
            from += run;
            if from == to {
                return Some(());
            }
        }
    }

    #[inline]
    fn repetition(&mut self, offset: usize, len: usize) -> Option<()> {
        let (high, low) = ((offset >> 8) as u8, offset as u8);
        let place = &mut self.out[self.len..];
        match len - 2 {
            count @ ..7 => {
                *place.first_chunk_mut()? = [(count as u8) << 5 | high, low];
                self.len += 2;
            }
            count => {
                *place.first_chunk_mut()? = [7 << 5 | high, (count - 7) as u8, low];
                self.len += 3;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn compressed(input: &[u8], len_max: usize) -> Option<Vec<u8>> {
        let mut out = vec![0; len_max];
        let len = lzf_compress(input, &mut out)?;
        out.truncate(len);
        Some(out)
    }

    #[test]
    fn literals_and_repetitions() {
        assert_eq!(lzf_decompress(b"\x02abc", 3).unwrap(), b"abc");
        assert_eq!(lzf_decompress(b"\x00a\xE0\x05\x00", 15).unwrap(), b"a".repeat(15));
        assert_eq!(lzf_decompress(b"\x02abc", 4), None);
        assert_eq!(lzf_decompress(b"\x02abc", 2), None);
        assert_eq!(lzf_decompress(b"\x02ab", 3), None);
        assert_eq!(lzf_decompress(b"\x00a\x20\x05", 5), None);
        assert_eq!(lzf_decompress(b"\x00a\xE0\x05\x00", 14), None);
        assert_eq!(lzf_decompress(b"\x00a", usize::MAX), None);
    }

    #[test]
    fn pieces_are_what_the_whole_is() {
        let text: Vec<u8> = (0..900_000u32).flat_map(|at| [(at % 251) as u8, (at >> 13) as u8]).collect();
        for len in [0, 1, PIECE, PIECE + REACH, 3 * PIECE, text.len()] {
            let short = compressed(&text[..len], 2 * text.len()).unwrap();
            let mut pieces = Vec::new();
            assert!(lzf_decompress_in_pieces(&short, len, |piece| pieces.push(piece.to_vec())));
            assert!(pieces.iter().all(|piece| piece.len() < PIECE + REACH + MATCH_MAX));
            assert_eq!(pieces.concat(), &text[..len]);
            assert!(!lzf_decompress_in_pieces(&short, len + 1, |_| {}));
            assert!(len == 0 || !lzf_decompress_in_pieces(&short, len - 1, |_| {}));
        }
        assert!(!lzf_decompress_in_pieces(b"\x00a", usize::MAX, |_| {}));
    }

    #[test]
    fn what_repeats_becomes_short() {
        let zeros = vec![0; 100_000];
        assert!(compressed(&zeros, zeros.len()).unwrap().len() < 100_000 / 80);
        let far: Vec<u8> = (0..40_000u32).map(|at| ((at % 8_192).wrapping_mul(2_654_435_769) >> 13) as u8).collect();
        assert!(compressed(&far, far.len()).unwrap().len() < 12_000);
        assert_eq!(compressed(b"abcdefghijklmnopqrstuvwxyz", 25), None);
        assert_eq!(compressed(b"", 0), Some(Vec::new()));
        // On both sides of every length at which another table is used.
        for len in [63, 64, 65, 1023, 1024, 1025, 9000] {
            let mut random = 1u64;
            let mut input: Vec<u8> = std::iter::repeat_with(|| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (random >> 56) as u8
            })
            .take(len)
            .collect();
            let plain = compressed(&input, 2 * len).unwrap().len();
            let end = len - 20;
            input.copy_within(0..20, end);
            let short = compressed(&input, 2 * len).unwrap();
            assert_eq!(short.len() + 10 < plain, end <= REACH, "{len}");
            assert_eq!(lzf_decompress(&short, len), Some(input));
        }
    }

    proptest! {
        #[test]
        fn comes_back(input in prop_oneof![
            proptest::collection::vec(0..3u8, 0..3_000),
            proptest::collection::vec(any::<u8>(), 0..200),
            proptest::collection::vec(prop_oneof![Just(b"abcabd".to_vec()), Just(vec![7; 300]), Just(b"x".to_vec())], 0..80)
                .prop_map(|parts| parts.concat()),
        ]) {
            let short = compressed(&input, 2 * input.len()).unwrap();
            prop_assert_eq!(lzf_decompress(&short, input.len()), Some(input.clone()));
            prop_assert_eq!(compressed(&input, short.len()), Some(short.clone()));
            if let Some(less) = short.len().checked_sub(1) {
                prop_assert_eq!(compressed(&input, less), None);
            }
        }

        #[test]
        fn garbage_ends(input in proptest::collection::vec(any::<u8>(), 0..200), len in 0..30_000usize) {
            if let Some(out) = lzf_decompress(&input, len) {
                prop_assert_eq!(out.len(), len);
            }
        }
    }
}
