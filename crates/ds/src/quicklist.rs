//! A long sequence of strings and integers: listpacks in order, found from either end. Knows nothing of what the
//! elements mean.
//!
//! ```text
//! blocks:  [ up to 128 nodes ] [ up to 128 nodes ] ...       a block counts its elements, so that an index is found
//!             |                                               by counts, and no growth moves more than the blocks'
//!             listpack of a few KiB                           own 40 bytes each or one block's nodes
//! ```
//!
//! There is no empty node and no empty block. Only the nodes at the ends have room to grow into.

mod elements;
#[cfg(test)]
mod tests;

use crate::listpack::{COUNT_MAX, End, Listpack, ListpackBuf, encoded_len};
use crate::looks::Looks;
use crate::packed::Item;
use crate::progress;
pub use elements::Elements;
use std::collections::VecDeque;

/// Nodes of a full block.
const BLOCK_NODES: usize = 128;

/// Up to where a node takes more elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeLimits {
    /// Bytes, as Redis's listpack counts them.
    pub bytes: usize,
    /// Elements.
    pub count: usize,
    /// A string from so many bytes on has a node of its own, whatever room there is.
    pub alone_from: usize,
}

impl NodeLimits {
    /// Whether a listpack of so many bytes and elements is longer than a node may be.
    #[inline]
    pub fn are_exceeded_by(&self, redis_len: usize, count: usize) -> bool {
        redis_len > self.bytes || count > self.count.min(COUNT_MAX)
    }

    /// Whether a node has room for one more element.
    #[inline]
    fn allow(&self, node: &ListpackBuf, item: Item<'_>) -> bool {
        let view = node.view();
        if self.are_exceeded_by(view.redis_len() + encoded_len(item), view.len() + 1) {
            return false;
        }
        self.alone_from == usize::MAX || !(self.want_alone(item) || self.is_of_one_alone(view))
    }

    fn want_alone(&self, item: Item<'_>) -> bool {
        item.len() >= self.alone_from
    }

    fn is_of_one_alone(&self, view: Listpack<'_>) -> bool {
        view.len() == 1 && view.end(End::Front).is_some_and(|only| self.want_alone(only.item))
    }
}

/// Nodes that follow one another.
#[derive(Debug, Default)]
struct Block {
    nodes: VecDeque<ListpackBuf>,
    /// Elements in all nodes.
    len: usize,
}

impl Clone for Block {
    fn clone(&self) -> Block {
        progress::count_bytes(self.nodes.iter().map(ListpackBuf::memory).sum());
        Block { nodes: self.nodes.clone(), len: self.len }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        progress::count(self.nodes.len());
    }
}

impl Block {
    fn of(node: ListpackBuf) -> Block {
        Block { len: node.len(), nodes: VecDeque::from([node]) }
    }
}

/// A node that is gone through.
fn counted(node: &ListpackBuf) -> Listpack<'_> {
    progress::count(node.len());
    node.view()
}

/// A long sequence.
#[derive(Clone, Debug, Default)]
pub struct Quicklist {
    blocks: VecDeque<Block>,
    len: usize,
}

/// Where an element is, or where one could be put: before the element `index` of a node.
#[derive(Clone, Copy, Debug)]
struct Place {
    block: usize,
    node: usize,
    index: usize,
}

impl Quicklist {
    /// The sequence of these elements, which are not none.
    pub fn of(node: ListpackBuf) -> Quicklist {
        debug_assert!(!node.is_empty());
        Quicklist { len: node.len(), blocks: VecDeque::from([Block::of(node)]) }
    }

    /// How many elements there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The only node, when there is no more than one.
    pub fn only_node(&self) -> Option<Listpack<'_>> {
        let [block] = self.blocks.as_slices().0 else { return None };
        let only = block.nodes.front().filter(|_| self.blocks.len() == 1 && block.nodes.len() == 1);
        only.map(ListpackBuf::view)
    }

    /// Takes the only node out; the sequence is empty then.
    ///
    /// # Panics
    /// When there is not exactly one.
    pub fn take_only_node(&mut self) -> ListpackBuf {
        assert!(self.only_node().is_some(), "there is exactly one node");
        self.len = 0;
        let mut block = self.blocks.pop_front().expect("there is one block");
        block.nodes.pop_front().expect("there is one node")
    }

    /// How many nodes there are.
    #[inline]
    pub fn nodes(&self) -> usize {
        if let ([block], []) = self.blocks.as_slices() {
            return block.nodes.len();
        }
        self.blocks.iter().map(|block| block.nodes.len()).sum()
    }

    /// The nodes in order.
    pub fn iter_nodes(&self) -> impl Iterator<Item = Listpack<'_>> {
        self.blocks.iter().flat_map(|block| &block.nodes).map(counted)
    }

    /// The nodes from this one on, in order: those before are not looked at one by one.
    pub fn iter_nodes_from(&self, node: usize) -> impl Iterator<Item = Listpack<'_>> {
        let mut left = node;
        let mut blocks = self.blocks.iter();
        let first = blocks.by_ref().find(|block| {
            let is_it = left < block.nodes.len();
            left -= if is_it { 0 } else { block.nodes.len() };
            is_it
        });
        let of_first = first.into_iter().flat_map(move |block| block.nodes.iter().skip(left));
        of_first.chain(blocks.flat_map(|block| &block.nodes)).map(counted)
    }

    /// Bytes of memory beside the sequence itself.
    pub fn memory(&self, looks: Looks) -> usize {
        let blocks = looks.sum(self.blocks.len(), |number, looks| {
            let nodes = &self.blocks[number].nodes;
            let content = looks.sum(nodes.len(), |number, _| nodes[number].memory());
            content + nodes.capacity() * size_of::<ListpackBuf>()
        });
        self.blocks.capacity() * size_of::<Block>() + blocks
    }

    /// The place of this index, found from the nearer end; behind the last element of the last node for the length.
    fn place(&self, index: usize) -> Place {
        debug_assert!(index <= self.len && !self.is_empty());
        if index < self.len / 2 {
            let (mut block, mut left) = (0, index);
            while left >= self.blocks[block].len {
                left -= self.blocks[block].len;
                block += 1;
            }
            let nodes = &self.blocks[block].nodes;
            let mut node = 0;
            while left >= nodes[node].len() {
                left -= nodes[node].len();
                node += 1;
            }
            return Place { block, node, index: left };
        }
        // So many elements are behind the place.
        let mut left = self.len - index;
        let mut block = self.blocks.len() - 1;
        while left > self.blocks[block].len {
            left -= self.blocks[block].len;
            block -= 1;
        }
        let nodes = &self.blocks[block].nodes;
        let mut node = nodes.len() - 1;
        while left > nodes[node].len() {
            left -= nodes[node].len();
            node -= 1;
        }
        Place { block, node, index: nodes[node].len() - left }
    }

    fn node(&self, place: Place) -> &ListpackBuf {
        &self.blocks[place.block].nodes[place.node]
    }

    /// The element of this index.
    pub fn get(&self, index: usize) -> Option<Item<'_>> {
        if index >= self.len {
            return None;
        }
        let place = self.place(index);
        self.node(place).view().get(place.index).map(|element| element.item)
    }

    /// The elements from this index on.
    pub fn iter_from(&self, index: usize) -> Elements<'_> {
        if index >= self.len {
            return Elements { list: self, block: 0, node: 0, elements: None, towards: End::Back };
        }
        let place = self.place(index);
        let elements = Some(self.node(place).view().iter_from(place.index));
        Elements { list: self, block: place.block, node: place.node, elements, towards: End::Back }
    }

    /// The elements before this index, backward.
    pub fn iter_back_from(&self, index: usize) -> Elements<'_> {
        if self.is_empty() {
            return Elements { list: self, block: 0, node: 0, elements: None, towards: End::Front };
        }
        let place = self.place(index.min(self.len));
        let elements = Some(self.node(place).view().iter_until(place.index));
        Elements { list: self, block: place.block, node: place.node, elements, towards: End::Front }
    }

    /// Adds an element at an end.
    pub fn push(&mut self, end: End, item: Item<'_>, limits: &NodeLimits) {
        let block = match end {
            End::Front => self.blocks.front_mut(),
            End::Back => self.blocks.back_mut(),
        };
        let Some(block) = block else {
            let mut node = ListpackBuf::new();
            node.push_back(item);
            *self = Quicklist::of(node);
            return;
        };
        let node = match end {
            End::Front => block.nodes.front_mut(),
            End::Back => block.nodes.back_mut(),
        };
        let node = node.expect("no block is empty");
        self.len += 1;
        if limits.allow(node, item) {
            block.len += 1;
            match end {
                End::Front => node.push_front(item),
                End::Back => node.push_back(item),
            }
            return;
        }
        progress::count(node.len());
        // From now on it is no node at the end.
        node.shrink();
        let mut node = ListpackBuf::new();
        node.push_back(item);
        let is_full = block.nodes.len() >= BLOCK_NODES;
        match (end, is_full) {
            (End::Front, true) => self.blocks.push_front(Block::of(node)),
            (End::Back, true) => self.blocks.push_back(Block::of(node)),
            (End::Front, false) => {
                block.len += 1;
                block.nodes.push_front(node);
            }
            (End::Back, false) => {
                block.len += 1;
                block.nodes.push_back(node);
            }
        }
    }

    /// Takes an element off an end and hands it to `take`.
    pub fn pop<R>(&mut self, end: End, take: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        let at = match end {
            End::Front => 0,
            End::Back => self.blocks.len().checked_sub(1)?,
        };
        let block = self.blocks.get_mut(at)?;
        let node = match end {
            End::Front => block.nodes.front_mut(),
            End::Back => block.nodes.back_mut(),
        };
        let node = node.expect("no block is empty");
        progress::count(1);
        let element = node.view().end(end).expect("no node is empty");
        let range = element.at..element.end;
        let taken = take(element.item);
        self.len -= 1;
        block.len -= 1;
        if node.len() > 1 {
            node.remove(range, 1);
            return Some(taken);
        }
        match end {
            End::Front => block.nodes.pop_front(),
            End::Back => block.nodes.pop_back(),
        };
        if block.nodes.is_empty() {
            self.blocks.remove(at);
        }
        Some(taken)
    }

    /// Adds an element before the one of this index, or at the end.
    pub fn insert(&mut self, index: usize, item: Item<'_>, limits: &NodeLimits) {
        if index == 0 || index == self.len {
            return self.push(if index == 0 { End::Front } else { End::Back }, item, limits);
        }
        let place = self.place(index);
        let block = &mut self.blocks[place.block];
        self.len += 1;
        block.len += 1;
        let nodes = &mut block.nodes;
        let node = &mut nodes[place.node];
        if limits.allow(node, item) {
            let at = node.view().offset_of(place.index);
            return node.insert(at, item);
        }
        if place.index == 0 && place.node > 0 && limits.allow(&nodes[place.node - 1], item) {
            return nodes[place.node - 1].push_back(item);
        }
        let mut new_at = place.node;
        if place.index > 0 {
            let node = &mut nodes[place.node];
            let right = node.split_off(node.view().offset_of(place.index), place.index);
            new_at += 1;
            nodes.insert(new_at, right);
            if limits.allow(&nodes[place.node], item) {
                nodes[place.node].push_back(item);
                return self.split_full_block(place.block);
            }
        }
        let mut own = ListpackBuf::new();
        own.push_back(item);
        nodes.insert(new_at, own);
        self.split_full_block(place.block);
    }

    fn split_full_block(&mut self, at: usize) {
        let block = &mut self.blocks[at];
        if block.nodes.len() <= BLOCK_NODES {
            return;
        }
        let nodes = block.nodes.split_off(block.nodes.len() / 2);
        let len = nodes.iter().map(ListpackBuf::len).sum();
        block.len -= len;
        self.blocks.insert(at + 1, Block { nodes, len });
    }

    /// Puts an element in the place of the one of this index, which is there.
    pub fn replace(&mut self, index: usize, item: Item<'_>, limits: &NodeLimits) {
        let place = self.place(index);
        let node = &mut self.blocks[place.block].nodes[place.node];
        let view = node.view();
        let old = view.get(place.index).expect("the place is one of an element");
        let range = old.at..old.end;
        let len_after = view.redis_len() - range.len() + encoded_len(item);
        let is_alone = view.len() == 1;
        if is_alone || !limits.are_exceeded_by(len_after, 0) && !limits.want_alone(item) {
            return node.replace(range, item);
        }
        self.remove(index, 1);
        self.insert(index, item, limits);
    }

    /// Takes out `count` elements from this index on, all of which are there. Gives those that lay in whole blocks, for
    /// whoever would rather free them elsewhere.
    pub fn remove(&mut self, index: usize, count: usize) -> Quicklist {
        debug_assert!(index + count <= self.len);
        let mut whole = Quicklist::default();
        if count == 0 {
            return whole;
        }
        let mut place = self.place(index);
        self.len -= count;
        let mut left = count;
        while left > 0 {
            if place.index == 0 && place.node == 0 {
                let mut end = place.block;
                while end < self.blocks.len() && self.blocks[end].len <= left {
                    left -= self.blocks[end].len;
                    whole.len += self.blocks[end].len;
                    end += 1;
                }
                whole.blocks.extend(self.blocks.drain(place.block..end));
                if left == 0 {
                    return whole;
                }
            }
            let block = &mut self.blocks[place.block];
            let node = &mut block.nodes[place.node];
            let here = (node.len() - place.index).min(left);
            left -= here;
            block.len -= here;
            if here == node.len() {
                block.nodes.remove(place.node);
            } else {
                let view = node.view();
                let range = view.offset_of(place.index)..view.offset_of(place.index + here);
                node.remove(range, here);
                place.node += 1;
            }
            place.index = 0;
            if block.nodes.is_empty() {
                self.blocks.remove(place.block);
                place.node = 0;
            } else if place.node == block.nodes.len() {
                place.block += 1;
                place.node = 0;
            }
        }
        whole
    }

    /// Takes out up to `most` elements that are equal to `item`, the first or the last ones; gives how many.
    pub fn remove_equal(&mut self, item: Item<'_>, most: usize, from: End) -> usize {
        let mut removed = 0;
        let each_block = |list: &Quicklist, step: usize| match from {
            End::Front => step,
            End::Back => list.blocks.len() - 1 - step,
        };
        let mut has_empty_block = false;
        for step in 0..self.blocks.len() {
            if removed == most {
                break;
            }
            let at = each_block(self, step);
            let block = &mut self.blocks[at];
            let mut remove_from = |node: &mut ListpackBuf| {
                if removed < most {
                    progress::count(node.len());
                    let here = node.remove_equal(item, most - removed, from);
                    removed += here;
                    block.len -= here;
                }
            };
            match from {
                End::Front => block.nodes.iter_mut().for_each(&mut remove_from),
                End::Back => block.nodes.iter_mut().rev().for_each(&mut remove_from),
            }
            block.nodes.retain(|node| !node.is_empty());
            has_empty_block |= block.nodes.is_empty();
        }
        if has_empty_block {
            self.blocks.retain(|block| !block.nodes.is_empty());
        }
        self.len -= removed;
        removed
    }
}
