//! Data structures of Tenon: the only data crate that may use unsafe.
