//! Everything that needs a server: one that behaves as told, or a real one where it is installed.

mod ended;
mod loads;
mod peers;
mod program;
mod toy;
