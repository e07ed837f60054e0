//! The values that are more than a few bytes in their entry (long strings and collections), and what strings can be read
//! as.

pub mod bitfield;
pub mod bitmap;
mod chance;
mod collection;
pub mod geo;
mod hash;
pub mod hll;
mod list;
mod member_deadlines;
mod object;
mod rope;
pub mod set;
pub mod stream;
mod value_type;
mod with_deadlines;
pub mod zset;

pub use collection::{Collection, PACKED_INLINE_MAX, PackedForm, PackedKind};
pub use hash::{Fields, Hash, HashForm, HashLimits, HashRef};
pub use list::{Items, List, ListLimits, ListRef};
pub use member_deadlines::{DeadlinesRef, MEMBER_DEADLINE_MAX_MS, MemberDeadlines, PackedDeadlines};
pub use object::Object;
pub use rope::{CHUNK_FRONT, CHUNK_LEN, Rope};
pub use set::{Set, SetForm, SetLimits, SetRef};
pub use stream::{Stream, StreamLimits};
pub use value_type::ValueType;
pub use with_deadlines::{MemberForm, WithDeadlines};
pub use zset::{Zset, ZsetForm, ZsetLimits, ZsetRef};
