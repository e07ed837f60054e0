//! What the kernel says and does about processes and cores. Knows nothing of what they run.

pub mod counters;
pub mod cpu;
pub mod facts;
pub mod file_system;
pub mod listening;
pub mod neighbours;
pub mod placement;
pub mod process;
pub mod sampler;
pub mod topology;
