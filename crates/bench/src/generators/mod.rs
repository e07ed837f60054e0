//! Where keys, operations and lengths come from: YCSB's generators, computed as YCSB computes them. Know no server.

mod choice;
mod exponential;
mod fnv;
mod hotspot;
mod inserted;
mod key_chooser;
mod latest;
mod random;
mod scrambled;
mod uniform;
mod zipf_exact;
mod zipfian;

#[cfg(test)]
mod chi_squared;

pub use choice::Choice;
pub use exponential::Exponential;
pub use fnv::fnv_hash;
pub use hotspot::Hotspot;
pub use inserted::Inserted;
pub use key_chooser::{Distribution, KeyChooser};
pub use latest::Latest;
pub use random::Random;
pub use scrambled::Scrambled;
pub use uniform::Uniform;
pub use zipf_exact::ZipfExact;
pub use zipfian::Zipfian;
