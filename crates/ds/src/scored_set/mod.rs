//! Strings with numbers, in the order of the numbers: a table of the strings and a counted B-tree, both of which point
//! to one allocation a member. Knows nothing of what the numbers mean.
//!
//! ```text
//!  ExtendibleTable            ScoredBlob                      tree
//!  member's hash -----------> | number | length | bytes | <--- leaf: | numbers ... | pointers ... |
//!                                                                        ^
//!                             inner node: | first numbers | first pointers | counts | children |
//! ```
//!
//! A number stands in its blob, where the table finds it, and once more in its leaf, so that a search of the tree goes
//! from number to number and looks at blobs only where numbers are equal. The counts say how many members lie below
//! each child: the rank of a member and the member of a rank are found in one descent.
//!
//! A leaf holds up to 63 members, an inner node up to 63 children. A node that is full splits: in halves, or where the
//! new one comes last (or first), so that members added in order leave full nodes behind them. A node of which a
//! quarter is left joins a neighbour if both fit into three quarters of one. A range of ranks is cut out with the nodes
//! that lie in it whole.

mod inner;
mod leaf;
mod set;
mod tree;

pub use set::{MemberHash, ScoredSet};
pub use tree::Direction;
