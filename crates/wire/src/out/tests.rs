//! Output buffers: what they hold, sum up and give back, whatever order pieces come in. Knows their insides.

use super::*;

/// Looks whether the sums are those of the segments.
fn check_sums(out: &OutBuf) {
    let sums = out
        .segments
        .iter()
        .fold((0, 0), |(len, spare), segment| (len + segment.remaining().len(), spare + segment.spare()));
    assert_eq!((out.segments_len, out.segments_spare), sums);
}

fn drain(out: &mut OutBuf, step: usize) -> Vec<u8> {
    let mut got = Vec::new();
    while !out.is_empty() {
        check_sums(out);
        let mut slices = [IoSlice::new(&[]); 2];
        let filled = out.io_slices(&mut slices);
        let flat: Vec<u8> = slices[..filled].iter().flat_map(|s| s.iter().copied()).take(step).collect();
        out.advance(flat.len());
        got.extend(flat);
    }
    got
}

#[test]
fn keeps_the_order_of_owned_and_shared_pieces() {
    for step in 1..12 {
        let mut out = OutBuf::new();
        out.tail().extend_from_slice(b"ab");
        out.push_shared(Bytes::from_static(b"CDE"));
        out.tail().extend_from_slice(b"fg");
        let mut more = OutBuf::new();
        more.tail().extend_from_slice(b"h");
        more.push_shared(Bytes::from_static(b"I"));
        out.append(&mut more);
        out.tail().extend_from_slice(b"j");
        assert!(more.is_empty());
        assert_eq!(out.len(), 10);
        assert_eq!(drain(&mut out, step), b"abCDEfghIj");
    }
}

#[test]
fn slices_end_at_the_bound() {
    let mut out = OutBuf::new();
    for _ in 0..3 {
        out.push_shared(Bytes::from_static(b"0123456789"));
    }
    out.tail().extend_from_slice(b"tail");
    for (bytes_max, expected) in
        [(0, vec![]), (9, vec![9]), (10, vec![10]), (25, vec![10, 10, 5]), (99, vec![10, 10, 10, 4])]
    {
        let mut slices = [IoSlice::new(&[]); 5];
        let filled = out.io_slices_within(bytes_max, &mut slices);
        let lens: Vec<usize> = slices[..filled].iter().map(|slice| slice.len()).collect();
        assert_eq!(lens, expected, "of at most {bytes_max}");
    }
}

#[test]
fn what_is_short_is_copied_and_what_is_long_moves() {
    for (len, is_one_piece) in [(0, true), (COPIED_MAX, true), (COPIED_MAX + 1, false)] {
        let (mut out, mut other) = (OutBuf::new(), OutBuf::new());
        out.tail().push(1);
        other.tail().resize(len, 2);
        out.join(&mut other);
        assert!(other.is_empty());
        assert_eq!((out.len(), out.contiguous().is_some()), (1 + len, is_one_piece));
    }
}

#[test]
fn short_pieces_are_copied_together_and_shared_ones_are_not() {
    for (shared, is_one_piece) in [(false, true), (true, false)] {
        let (mut out, mut other) = (OutBuf::new(), OutBuf::new());
        out.tail().push(1);
        other.tail().resize(PIECE - PIECE_REST, 2);
        other.tail_for(PIECE_REST + 1).resize(10_000, 3);
        other.advance(PIECE - PIECE_REST - 10_000);
        if shared {
            other.push_shared(Bytes::from_static(&[4]));
        }
        out.join(&mut other);
        assert!(other.is_empty());
        assert_eq!((out.len(), out.contiguous().is_some()), (20_001 + usize::from(shared), is_one_piece));
    }
}

#[test]
fn a_long_part_lies_with_its_head() {
    let mut out = OutBuf::new();
    out.tail().extend_from_slice(b"head");
    let len = 2 * PIECE;
    let tail = out.tail_for(len);
    tail.resize(tail.len() + len, 1);
    assert_eq!(out.contiguous().map(<[u8]>::len), Some(4 + len));
    out.tail().push(1);
    assert_eq!((out.contiguous(), out.len()), (None, 5 + len));
}

#[test]
fn memory_is_given_back_when_all_is_sent() {
    let mut out = OutBuf::new();
    for _ in 0..1_000 {
        out.push_shared(Bytes::from_static(b"piece"));
    }
    out.shrink(0);
    assert_eq!(out.len(), 5_000, "what waits stays");
    out.advance(5_000);
    out.shrink(0);
    assert_eq!(out.memory(), 0);
}

#[test]
fn a_partly_sent_tail_survives_a_shared_push() {
    let mut out = OutBuf::new();
    out.tail().extend_from_slice(b"abc");
    out.advance(2);
    assert_eq!(out.contiguous(), Some(&b"c"[..]));
    out.push_shared(Bytes::from_static(b"D"));
    assert_eq!(out.contiguous(), None);
    assert_eq!(drain(&mut out, 9), b"cD");
}

#[test]
fn a_tail_that_is_never_sent_to_its_end_does_not_grow() {
    let (mut out, mut expected, mut got) = (OutBuf::new(), Vec::new(), Vec::new());
    for round in 0..10_000_u32 {
        let piece = [round as u8; 70];
        out.tail_below(1000).extend_from_slice(&piece);
        expected.extend_from_slice(&piece);
        while out.len() > 50 {
            let mut slices = [IoSlice::new(&[])];
            let len = out.io_slices_within(out.len() - 50, &mut slices);
            assert_eq!(len, 1);
            got.extend_from_slice(&slices[0]);
            let sent = slices[0].len();
            out.advance(sent);
        }
        assert!(out.memory() < 4096, "{} bytes are held for 50", out.memory());
    }
    got.extend(drain(&mut out, 100));
    assert!(got == expected);
}

#[test]
fn a_long_reply_takes_its_bytes_and_a_piece() {
    let (mut out, mut expected) = (OutBuf::new(), Vec::new());
    let mark = out.mark();
    for number in 0..100_000_u32 {
        let bytes = number.to_le_bytes();
        out.tail().extend_from_slice(&bytes);
        out.tail().extend_from_slice(&[0; 11]);
        expected.extend_from_slice(&bytes);
        expected.extend_from_slice(&[0; 11]);
    }
    assert!(out.memory() < expected.len() + 2 * PIECE, "{} bytes for {}", out.memory(), expected.len());
    out.insert(mark, b"head");
    let mut half = out.split_off(Mark { unsent_before: 4 + expected.len() / 2 });
    assert_eq!(out.len(), 4 + expected.len() / 2);
    let mut whole = drain(&mut out, 100_000);
    assert!(out.memory() <= PIECE + 4096, "{} bytes when all is sent", out.memory());
    whole.extend(drain(&mut half, usize::MAX));
    assert!(whole.starts_with(b"head") && whole[4..] == expected);
    // Nor do long parts of one, of which a piece has room for a few, or for none.
    for (len, held) in
        [(PIECE / 10, PIECE / 10), (PIECE / 2, PIECE / 2), (PIECE / 2 + 1, PIECE), (3 * PIECE, 3 * PIECE)]
    {
        for number in 0..30 {
            let tail = out.tail_for(len);
            tail.resize(tail.len() + len, number);
        }
        let told = 30 * held..30 * held + 2 * PIECE.max(len);
        assert!(told.contains(&out.memory()), "{} bytes for 30 of {len}", out.memory());
        assert_eq!(drain(&mut out, 999_999).len(), 30 * len);
    }
}

#[test]
fn a_contiguous_piece_is_taken_without_what_is_sent() {
    let mut out = OutBuf::new();
    out.tail().extend_from_slice(b"abc");
    out.advance(1);
    assert_eq!(out.take_contiguous(Vec::with_capacity(8)), b"bc");
    assert!(out.is_empty());
    out.tail().extend_from_slice(b"d");
    assert_eq!((out.tail().capacity(), out.take_contiguous(Vec::new())), (8, b"d".to_vec()));
}

/// Calls `check` for every way in which pieces may lie around a mark that is taken before piece `at`, with a buffer of
/// which something was sent before and with one of which nothing was.
fn around_marks(check: impl Fn(&str, usize, OutBuf)) {
    for pieces in ["", "o", "s", "oo", "os", "so", "ss", "oso", "sos", "osso", "soos"] {
        for at in 0..=pieces.len() {
            for sent in [0, 1] {
                let mut out = OutBuf::new();
                out.tail().extend_from_slice(&b"!"[..sent]);
                out.advance(sent);
                check(pieces, at, out);
            }
        }
    }
}

/// Appends a piece, 'o' to the tail, 's' as a shared one; gives its bytes.
fn append_piece(out: &mut OutBuf, piece: u8) -> &'static [u8] {
    if piece == b'o' {
        out.tail().extend_from_slice(b"ab");
        b"ab"
    } else {
        out.push_shared(Bytes::from_static(b"CD"));
        b"CD"
    }
}

#[test]
fn what_was_appended_since_a_mark_is_taken() {
    around_marks(|pieces, at, mut out| {
        let mut expected = [Vec::new(), Vec::new()];
        let (before, behind) = pieces.as_bytes().split_at(at);
        before.iter().for_each(|&piece| expected[0].extend_from_slice(append_piece(&mut out, piece)));
        let mark = out.mark();
        behind.iter().for_each(|&piece| expected[1].extend_from_slice(append_piece(&mut out, piece)));
        let mut taken = out.split_off(mark);
        assert_eq!((out.len(), taken.len()), (expected[0].len(), expected[1].len()), "{pieces} at {at}");
        out.tail().extend_from_slice(b".");
        expected[0].push(b'.');
        assert_eq!([drain(&mut out, 1), drain(&mut taken, 1)], expected, "{pieces} at {at}");
    });
}

#[test]
fn inserts_at_marks_whatever_was_pushed_since() {
    around_marks(|pieces, at, mut out| {
        let mut expected = Vec::new();
        let (before, behind) = pieces.as_bytes().split_at(at);
        before.iter().for_each(|&piece| expected.extend_from_slice(append_piece(&mut out, piece)));
        let marks = [out.mark(), out.mark()];
        expected.extend_from_slice(b"<1><2>");
        behind.iter().for_each(|&piece| expected.extend_from_slice(append_piece(&mut out, piece)));
        // The inner one of two at the same place is finished first.
        out.insert(marks[1], b"<2>");
        out.insert(marks[0], b"<1>");
        assert_eq!(out.len(), expected.len(), "{pieces} {at}");
        assert_eq!(drain(&mut out, 100), expected, "{pieces} {at}");
    });
}

#[test]
fn replaces_what_follows_marks_whatever_was_pushed_since() {
    around_marks(|pieces, at, mut out| {
        let mut expected = Vec::new();
        let (before, behind) = pieces.as_bytes().split_at(at);
        before.iter().for_each(|&piece| expected.extend_from_slice(append_piece(&mut out, piece)));
        let mark = out.mark();
        out.tail().extend_from_slice(b"old");
        let since = expected.len();
        expected.extend_from_slice(b"a new one");
        behind.iter().for_each(|&piece| expected.extend_from_slice(append_piece(&mut out, piece)));
        let moved = behind.iter().take_while(|&&piece| piece == b'o').count() * 2;
        assert_eq!(out.replace(mark, 3, b"a new one"), moved, "{pieces} {at}");
        assert_eq!(out.len_since(mark), expected.len() - since, "{pieces} {at}");
        let mut copy = OutBuf::new();
        copy.tail().extend_from_slice(b"!");
        copy.advance(1);
        copy.append(&mut out);
        assert_eq!(copy.take_joined(), expected, "{pieces} {at}");
        assert!(copy.is_empty());
    });
}
