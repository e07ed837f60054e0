//! Going through the elements of a sequence, in order or backward.

use super::{Quicklist, counted};
use crate::listpack::{End, Iter};
use crate::packed::Item;

/// Elements in order, or backward.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    pub(super) list: &'a Quicklist,
    pub(super) block: usize,
    pub(super) node: usize,
    pub(super) elements: Option<Iter<'a>>,
    pub(super) towards: End,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Item<'a>;

    #[inline]
    fn next(&mut self) -> Option<Item<'a>> {
        loop {
            let elements = self.elements.as_mut()?;
            let element = match self.towards {
                End::Back => elements.next(),
                End::Front => elements.next_back(),
            };
            if let Some(element) = element {
                return Some(element.item);
            }
            self.go_on();
        }
    }
}

impl Elements<'_> {
    /// Goes on until behind the next element that is equal to `wanted`, over `at_most` elements; gives how many others lay
    /// before it.
    pub fn find_next(&mut self, wanted: Item<'_>, at_most: usize) -> Option<usize> {
        let mut passed = 0;
        loop {
            let elements = self.elements.as_mut()?;
            let left = elements.len();
            if let Some(others) = elements.find_next(wanted, self.towards, at_most - passed) {
                return Some(passed + others);
            }
            if left >= at_most - passed {
                return None;
            }
            passed += left;
            self.go_on();
        }
    }

    /// Moves on to the next node. Not inlined: it is done once a node, and those who go through packed lists would pay for it.
    #[inline(never)]
    fn go_on(&mut self) {
        let blocks = &self.list.blocks;
        match self.towards {
            End::Back => {
                self.node += 1;
                if self.node == blocks[self.block].nodes.len() {
                    (self.block, self.node) = (self.block + 1, 0);
                }
            }
            End::Front => match (self.block, self.node) {
                (0, 0) => self.block = blocks.len(),
                (block, 0) => (self.block, self.node) = (block - 1, blocks[block - 1].nodes.len() - 1),
                (_, node) => self.node = node - 1,
            },
        }
        self.elements = blocks.get(self.block).map(|block| counted(&block.nodes[self.node]).iter());
    }
}
