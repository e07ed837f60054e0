//! HyperLogLog in Redis's byte format: how many different elements were added, within about 0.8 %, in 12 KiB or less.
//! Pure functions over bytes; knows neither keys nor commands.
//!
//! ```text
//! +------+----------+----------+-------------------+-----------+
//! | HYLL | encoding | unused   | last estimate     | registers |
//! | 4 B  | 1 B      | 3 B      | 8 B little-endian |           |
//! +------+----------+----------+-------------------+-----------+
//! ```
//!
//! The top bit of the estimate says that the registers have changed since. The registers are packed (`dense`) or
//! written as runs (`sparse`).

mod dense;
mod estimate;
mod position;
mod registers;
mod sketch;
mod sparse;

pub use position::Position;
pub use registers::{REGISTERS, Registers};
pub use sketch::{Below, Corrupt, DENSE_LEN, Encoding, NoSketch, Sketch, SketchRef, estimate_field, raise_dense};
pub use sparse::Run;
