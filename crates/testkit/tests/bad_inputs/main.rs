//! Inputs no well-behaved client sends, against the real binary over TCP. Knows no handler.
#![forbid(unsafe_code)]

mod access;
mod complexity;
mod listed;
mod load;
mod memcache;
mod numbers;
mod resp;
mod scripts;
mod support;
