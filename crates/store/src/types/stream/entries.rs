//! The entries of a stream in the order of their ids, block by block. Knows no consumer group.

use super::block::{Block, Entry, Verdict};
use super::id::StreamId;
use super::limits::StreamLimits;
use std::collections::BTreeMap;
use std::ops::Bound;

/// What trimming leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// So many entries, the newest.
    Newest(u64),
    /// The entries from this id on.
    From(StreamId),
}

/// How far trimming goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// As far as it was asked for.
    Exact,
    /// Only whole blocks go, and blocks of no more than so many entries together are looked at; 0 for any number.
    WholeBlocks {
        /// The most entries.
        entries_max: u64,
    },
}

/// Which entries go and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// What stays.
    pub keep: Keep,
    /// How far it goes.
    pub reach: Reach,
}

/// Blocks that were taken out of a stream. Many take long to free.
#[derive(Debug, Default)]
pub struct TakenBlocks(Vec<Block>);

impl TakenBlocks {
    /// How many allocations there are to free.
    pub fn allocations(&self) -> usize {
        self.0.len()
    }
}

/// The entries of a stream.
///
/// The block that grows stands by itself: adding an entry does not search the others, and a short stream has one
/// allocation.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// All blocks but the last, by their first ids.
    sealed: BTreeMap<StreamId, Block>,
    /// The last block. There is one unless there are none at all.
    tail: Option<Block>,
    len: u64,
    /// Bytes that the blocks' contents take.
    block_bytes: usize,
}

impl Clone for Entries {
    fn clone(&self) -> Entries {
        let mut copy = Entries { sealed: self.sealed.clone(), tail: self.tail.clone(), ..*self };
        // What a block has room for is not copied.
        copy.block_bytes = copy.sealed.values().chain(&copy.tail).map(Block::memory).sum();
        copy
    }
}

impl Entries {
    /// How many entries there are.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// How many blocks there are.
    pub(super) fn block_count(&self) -> usize {
        self.sealed.len() + usize::from(self.tail.is_some())
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        self.block_bytes + self.sealed.len() * (size_of::<StreamId>() + size_of::<Block>())
    }

    /// The blocks in order.
    pub(super) fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.sealed.values().chain(&self.tail)
    }

    /// The blocks from the one with this first id on, in order.
    pub(super) fn blocks_from(&self, first: StreamId) -> impl Iterator<Item = &Block> {
        let tail = self.tail.as_ref().filter(|tail| tail.first() >= first);
        self.sealed.range(first..).map(|(_, block)| block).chain(tail)
    }

    /// Adds an entry, whose id is higher than that of any entry before.
    pub(super) fn append<'f>(
        &mut self,
        id: StreamId,
        fields: impl ExactSizeIterator<Item = (&'f [u8], &'f [u8])> + Clone,
        limits: StreamLimits,
    ) {
        let added_bytes = fields.clone().map(|(field, value)| field.len() + value.len()).sum();
        match &mut self.tail {
            Some(tail) if !tail.is_full_for(added_bytes, limits) => {
                let before = tail.memory();
                tail.append(id, fields);
                self.block_bytes += tail.memory() - before;
            }
            _ => self.push_block(Block::new(id, fields)),
        }
        self.len += 1;
    }

    /// Adds a block, whose ids are higher than all others'; the one before grows no more. Its entries are not counted.
    pub(super) fn push_block(&mut self, block: Block) {
        self.block_bytes += block.memory();
        if let Some(mut full) = self.tail.replace(block) {
            let before = full.memory();
            full.seal();
            self.block_bytes -= before - full.memory();
            self.sealed.insert(full.first(), full);
        }
    }

    /// Adds entries to the last block by `add`, which gives how many are live.
    pub(super) fn extend_tail(&mut self, add: impl FnOnce(&mut Block) -> u64) {
        let tail = self.tail.as_mut().expect("a block was begun");
        let before = tail.memory();
        self.len += add(tail);
        self.block_bytes += tail.memory() - before;
    }

    /// Takes out the block with this first id.
    fn take_block(&mut self, first: StreamId) -> Block {
        let block = match self.sealed.remove(&first) {
            Some(block) => block,
            None => {
                let block = self.tail.take().expect("there is such a block");
                // The one before is the last now, and grows again if it has room.
                self.tail = self.sealed.pop_last().map(|(_, block)| block);
                block
            }
        };
        self.block_bytes -= block.memory();
        block
    }

    /// The block in which an entry with this id would be.
    fn block_with(&self, id: StreamId) -> Option<&Block> {
        let tail = self.tail.as_ref().filter(|tail| tail.first() <= id);
        tail.or_else(|| self.sealed.range(..=id).next_back().map(|(_, block)| block))
    }

    fn block_with_mut(&mut self, id: StreamId) -> Option<&mut Block> {
        let tail = self.tail.as_mut().filter(|tail| tail.first() <= id);
        tail.or_else(|| self.sealed.range_mut(..=id).next_back().map(|(_, block)| block))
    }

    /// The entry with this id.
    pub(super) fn get(&self, id: StreamId) -> Option<Entry<'_>> {
        self.block_with(id)?.get(id)
    }

    /// The entries from one id to another, both included, the lowest first.
    pub(super) fn range(&self, from: StreamId, to: StreamId) -> impl Iterator<Item = Entry<'_>> {
        let begin = self.block_with(from).map_or(StreamId::MIN, Block::first);
        let sealed = self.sealed.range(begin..).map(|(_, block)| block);
        sealed
            .chain(&self.tail)
            .take_while(move |block| block.first() <= to)
            .flat_map(Block::entries)
            .skip_while(move |entry| entry.id() < from)
            .take_while(move |entry| entry.id() <= to)
    }

    /// The entries from one id to another, both included, the highest first.
    pub(super) fn range_back(&self, from: StreamId, to: StreamId) -> impl Iterator<Item = Entry<'_>> {
        let tail = self.tail.iter().filter(move |tail| tail.first() <= to);
        let sealed = self.sealed.range(..=to).rev().map(|(_, block)| block);
        tail.chain(sealed)
            .take_while(move |block| block.last() >= from)
            .flat_map(Block::entries_back)
            .skip_while(move |entry| entry.id() > to)
            .take_while(move |entry| entry.id() >= from)
    }

    /// Deletes the entry with this id; tells whether it was there.
    pub(super) fn remove(&mut self, id: StreamId) -> bool {
        let Some(block) = self.block_with_mut(id) else { return false };
        let before = block.memory();
        if !block.remove(id) {
            return false;
        }
        let (first, is_empty, freed) = (block.first(), block.live() == 0, before - block.memory());
        self.len -= 1;
        self.block_bytes -= freed;
        if is_empty {
            self.take_block(first);
        }
        true
    }

    /// Deletes the oldest entries; gives how many, and the blocks that were taken out. `may_delete` is asked about each
    /// one; without it, all may go.
    pub(super) fn trim(
        &mut self,
        trim: Trim,
        mut may_delete: Option<&mut dyn FnMut(StreamId) -> bool>,
    ) -> (u64, TakenBlocks) {
        let before = self.len;
        let mut taken = Vec::new();
        let mut visited = 0;
        let mut next = self.first_block_behind(None);
        while let Some(block) = next.and_then(|first| self.block_with(first)) {
            let (first, live) = (block.first(), block.live());
            let is_whole = match trim.keep {
                Keep::Newest(count) if self.len <= count => break,
                Keep::Newest(count) => self.len - live >= count,
                Keep::From(id) => block.last() < id,
            };
            visited += live;
            match trim.reach {
                Reach::WholeBlocks { .. } if !is_whole => break,
                Reach::WholeBlocks { entries_max } if entries_max > 0 && visited > entries_max => break,
                Reach::WholeBlocks { .. } | Reach::Exact => {}
            }
            next = self.first_block_behind(Some(first));
            if is_whole && may_delete.is_none() {
                taken.push(self.take_block(first));
                self.len -= live;
                continue;
            }
            self.trim_block(first, trim.keep, &mut may_delete, &mut taken);
            if !is_whole && matches!(trim.keep, Keep::From(_)) {
                break;
            }
        }
        (before - self.len, TakenBlocks(taken))
    }

    /// Deletes entries of one block, as far as `keep` goes.
    fn trim_block(
        &mut self,
        first: StreamId,
        keep: Keep,
        may_delete: &mut Option<&mut dyn FnMut(StreamId) -> bool>,
        taken: &mut Vec<Block>,
    ) {
        let mut left = self.len;
        let block = self.block_with_mut(first).expect("the block is there");
        let before = block.memory();
        let removed = block.remove_by(|id| {
            let is_kept = match keep {
                Keep::Newest(count) => left <= count,
                Keep::From(lowest) => id >= lowest,
            };
            if is_kept {
                return Verdict::Stop;
            }
            if may_delete.as_mut().is_some_and(|may| !may(id)) {
                return Verdict::Keep;
            }
            left -= 1;
            Verdict::Delete
        });
        let (is_empty, freed) = (block.live() == 0, before - block.memory());
        self.len -= removed;
        self.block_bytes -= freed;
        if is_empty {
            taken.push(self.take_block(first));
        }
    }

    /// The first id of the first block, or of the one behind that with this first id.
    fn first_block_behind(&self, first: Option<StreamId>) -> Option<StreamId> {
        let from = first.map_or(Bound::Unbounded, Bound::Excluded);
        let sealed = self.sealed.range((from, Bound::Unbounded)).next().map(|(first, _)| *first);
        sealed.or_else(|| self.tail.as_ref().map(Block::first).filter(|tail| first.is_none_or(|first| *tail > first)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_copy_is_what_its_blocks_take() {
        let limits = StreamLimits::new(0, 3);
        let mut entries = Entries::default();
        let ids: Vec<StreamId> = (1..=8).map(|ms| StreamId { ms, seq: 0 }).collect();
        for id in &ids {
            entries.append(*id, [(&b"field"[..], &b"value"[..])].into_iter(), limits);
        }
        let copy = entries.clone();
        assert!(copy.memory() <= entries.memory());
        for mut emptied in [entries, copy] {
            assert!(ids.iter().all(|id| emptied.remove(*id)));
            assert_eq!(emptied.memory(), 0);
        }
    }
}
