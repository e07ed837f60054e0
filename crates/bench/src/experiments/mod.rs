//! The experiments. Each declares its name, its axes, its figures and plots beside its code.

mod experiment;
mod fragmentation;
mod latency;
mod load;
mod memory;
mod persistence;
mod plain;
mod records;
mod recovery;
mod scalability;
mod sizes;
mod skew;
mod throughput;
mod ycsb;

pub use experiment::{Experiment, Figure, Plot, Published, Scale};

/// All of them, in the order of the report.
pub static ALL: [&Experiment; 12] = [
    &latency::LATENCY,
    &throughput::THROUGHPUT,
    &load::LOAD,
    &scalability::SCALABILITY,
    &sizes::SIZES,
    &skew::SKEW,
    &memory::MEMORY,
    &ycsb::YCSB,
    &records::RECORDS_EXPERIMENT,
    &fragmentation::FRAGMENTATION,
    &persistence::PERSISTENCE,
    &recovery::RECOVERY,
];
