//! Sequences of strings and integers that can be walked from either end, in the encoding of Redis's listpack: an index.

mod element;
mod sequence;
mod view;

pub use element::{Element, LEN_MAX, append, back_len, encoded_len, is_back};
pub use sequence::ListpackBuf;
pub use view::{COUNT_MAX, End, HEADER, Iter, Listpack};
