//! A long argument while it is received: in the chunks that it will be stored in, so that whoever moves the bytes can put
//! them there at once. Knows no protocol and no socket.

use tenon_engine::store::types::{CHUNK_FRONT, CHUNK_LEN, Rope};

/// Room that an announcement alone is worth, in bytes: anyone can announce anything, and what is kept for it counts.
const ROOM_UNPROVEN: usize = 4 * 1024;

/// There is room for as much again as has come; from so many bytes on it is made for whole chunks. For who has sent a long
/// argument before it is at once: room that grows is copied.
const PROVEN_FROM: usize = 16 * 1024;

/// A long argument that is being received.
///
/// ```text
///   | rope: whole chunks | block, behind its front: what has come ... room |        |
///                        |<-------------- behind_rope, in the end ---------------->|
/// ```
#[derive(Debug)]
pub(crate) struct Filling {
    /// The chunks that are full.
    rope: Rope,
    /// The memory of the one that is being filled, once there is any: behind its front lies what has come.
    block: Vec<u8>,
    /// How much of the argument the rope does not have.
    behind_rope: usize,
    /// Whether the client is trusted to send what it announces.
    is_proven: bool,
}

impl Filling {
    /// An argument of `len` bytes that begins with these, from a client that has or has not sent such a one before.
    pub(crate) fn new(len: usize, begun: &[u8], is_proven: bool) -> Filling {
        let mut filling = Filling { rope: Rope::new(), block: Vec::new(), behind_rope: len, is_proven };
        let rest = filling.add(begun);
        debug_assert!(rest.is_empty(), "what is announced as long is not wholly there");
        filling
    }

    /// Bytes that have come.
    pub(crate) fn len(&self) -> usize {
        self.rope.len() + self.come()
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        self.rope.len() + self.block.capacity()
    }

    /// Bytes that have not come.
    pub(crate) fn missing(&self) -> usize {
        self.behind_rope - self.come()
    }

    /// Whether all of it has come.
    pub(crate) fn is_whole(&self) -> bool {
        self.missing() == 0
    }

    /// Adds what `input` begins with as far as it belongs to the argument; gives the rest.
    pub(crate) fn add<'a>(&mut self, mut input: &'a [u8]) -> &'a [u8] {
        loop {
            self.seal();
            let now = input.len().min(self.chunk_len() - self.come());
            if now == 0 {
                return input;
            }
            self.make_room(now);
            self.block.extend_from_slice(&input[..now]);
            input = &input[now..];
        }
    }

    /// Where the next bytes belong: as many as there is room for may be put behind what is there. `None` if some of them
    /// could be those of what follows the argument.
    pub(crate) fn room(&mut self) -> Option<&mut Vec<u8>> {
        self.prepare();
        // An allocator may give more than was asked for, though none does.
        (self.block.capacity() <= CHUNK_FRONT + self.chunk_len()).then_some(&mut self.block)
    }

    /// Makes room for the next bytes.
    pub(crate) fn prepare(&mut self) {
        self.seal();
        self.make_room(0);
    }

    /// The whole argument.
    pub(crate) fn finish(mut self) -> Rope {
        debug_assert!(self.is_whole(), "some of it is missing");
        self.rope.append_block(self.block);
        self.rope
    }

    /// How much of the chunk that is being filled has come.
    fn come(&self) -> usize {
        self.block.len().saturating_sub(CHUNK_FRONT)
    }

    /// How long the chunk that is being filled will be.
    fn chunk_len(&self) -> usize {
        self.behind_rope.min(CHUNK_LEN)
    }

    /// Puts a full chunk to the others, unless it is the argument's end.
    fn seal(&mut self) {
        if self.come() == CHUNK_LEN && self.behind_rope > CHUNK_LEN {
            self.behind_rope -= CHUNK_LEN;
            self.rope.append_block(std::mem::take(&mut self.block));
        }
    }

    /// Makes room in the chunk, for `ready` bytes at least.
    fn make_room(&mut self, ready: usize) {
        self.is_proven |= self.come() + ready >= PROVEN_FROM;
        let needed = self.come() + ready.max(1);
        let wanted = if self.is_proven {
            self.chunk_len()
        } else if self.block.capacity() < CHUNK_FRONT + needed {
            (needed + self.come().max(ROOM_UNPROVEN)).min(self.chunk_len())
        } else {
            0
        };
        if self.block.capacity() < CHUNK_FRONT + wanted {
            self.block.reserve_exact(CHUNK_FRONT + wanted - self.block.len());
        }
        if self.block.is_empty() {
            self.block.resize(CHUNK_FRONT, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tenon_engine::ds::looks::Looks;

    fn pattern(len: usize) -> Vec<u8> {
        (0..len).map(|at| (at % 251) as u8).collect()
    }

    /// Receives `bytes` and what follows them in pieces of the given lengths, in turns into the room and through a buffer.
    fn received(bytes: &[u8], behind: &[u8], pieces: &[(usize, bool)]) -> (Rope, Vec<u8>) {
        let stream = [bytes, behind].concat();
        let begun = pieces[0].0.min(bytes.len() - 1);
        let mut filling = Filling::new(bytes.len(), &stream[..begun], false);
        let mut rest = &stream[begun..];
        for &(len, into_room) in pieces.iter().cycle() {
            assert_eq!(filling.len(), stream.len() - rest.len());
            if filling.is_whole() {
                break;
            }
            if into_room {
                let room = filling.room().expect("there is nothing but the argument's");
                let now = len.clamp(1, rest.len()).min(room.capacity() - room.len());
                assert!(now > 0, "there is room as long as something is missing");
                let address = room.as_ptr();
                room.extend_from_slice(&rest[..now]);
                assert_eq!(room.as_ptr(), address, "what is there does not move");
                rest = &rest[now..];
            } else {
                let now = len.clamp(1, rest.len());
                let left = filling.add(&rest[..now]);
                rest = &rest[now - left.len()..];
            }
        }
        (filling.finish(), rest.to_vec())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 200 }, ..ProptestConfig::default() })]

        #[test]
        fn whatever_the_pieces_the_argument_is_whole_and_nothing_else_is_taken(
            len in prop_oneof![1_usize..200_000, (1_usize..4).prop_map(|chunks| chunks * CHUNK_LEN), 1_usize..900_000],
            pieces in prop::collection::vec((1_usize..300_000, any::<bool>()), 1..20),
        ) {
            let bytes = pattern(len);
            let (rope, rest) = received(&bytes, b"\r\nget k\r\n", &pieces);
            prop_assert!(rope.to_vec() == bytes);
            prop_assert_eq!(rest, b"\r\nget k\r\n");
        }
    }

    #[test]
    fn an_announcement_alone_takes_little_memory() {
        let mut filling = Filling::new(512 << 20, b"", false);
        assert!(filling.room().expect("room").capacity() <= CHUNK_FRONT + ROOM_UNPROVEN + 1);
        let mut moves = 0;
        while filling.len() < PROVEN_FROM - 1 {
            let before = filling.room().expect("room").as_ptr();
            filling.add(b"1");
            moves += u32::from(filling.room().expect("room").as_ptr() != before);
            let capacity = filling.room().expect("room").capacity();
            assert!(capacity <= CHUNK_FRONT + ROOM_UNPROVEN + 2 * (filling.len() + 1), "{capacity}");
        }
        assert!(moves <= 4, "{moves}");
        filling.add(b"1");
        assert_eq!(filling.room().expect("room").capacity(), CHUNK_FRONT + CHUNK_LEN);
        // Who has sent a long one has room for a chunk of the next, and no more.
        assert_eq!(Filling::new(512 << 20, b"1", true).room().expect("room").capacity(), CHUNK_FRONT + CHUNK_LEN);
    }

    #[test]
    fn what_is_received_is_what_is_stored() {
        let len = 2 * CHUNK_LEN + 1_000;
        let mut filling = Filling::new(len, &pattern(CHUNK_LEN), false);
        let mut addresses = Vec::new();
        while !filling.is_whole() {
            let room = filling.room().expect("room");
            addresses.push(room[CHUNK_FRONT..].as_ptr());
            room.resize(room.capacity(), 7);
        }
        let rope = filling.finish();
        assert_eq!(rope.slices().skip(1).map(<[u8]>::as_ptr).collect::<Vec<_>>(), addresses);
        assert_eq!(rope.len(), len);
        assert!(rope.memory(Looks::ALL) < len + 3 * CHUNK_FRONT + 1_000, "{} bytes for {len}", rope.memory(Looks::ALL));
    }
}
