//! Development tasks of Tenon.

fn main() {}
