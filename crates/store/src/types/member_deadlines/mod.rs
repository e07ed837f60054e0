//! When the members of a collection expire: a deadline for some of them, found by member, and which of them are past.
//! Knows neither the collection nor the present.
//!
//! ```text
//! packed behind the packed elements of a small collection, one for each member
//! few    one run of members with their deadlines
//! many   a table of such runs, with the first and the last deadline of each run, of each 16 runs, of each 256...
//! ```
//!
//! So a deadline costs 6 bytes, and outside an entry its member's once more and about 7 of slack: there is no order of time to keep, as
//! all that anybody asks is when the first one is, which ones are past, and whether all are.

mod buckets;
mod deadlines;
mod earliest;
mod lean;
pub(super) mod packed;
mod run;
mod view;

pub use deadlines::{MEMBER_DEADLINE_MAX_MS, MemberDeadlines};
pub use packed::PackedDeadlines;
pub use view::DeadlinesRef;
