//! The values that are more than a few bytes in their entry: long strings and collections.

mod collection;
mod hash;
mod list;
mod object;
mod rope;
mod value_type;

pub use collection::{Collection, PACKED_INLINE_MAX, PackedKind};
pub use hash::{Hash, HashLimits, HashRef};
pub use list::{Items, List, ListLimits, ListRef};
pub use object::Object;
pub use rope::{CHUNK_LEN, Rope};
pub use value_type::ValueType;
