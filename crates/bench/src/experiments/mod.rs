//! The experiments. Each declares its name, its axes, its figures and plots beside its code.

mod cluster;
mod commands;
mod counters;
mod eviction;
mod experiment;
mod expiry;
mod fragmentation;
mod latency;
mod load;
mod memory;
mod on_spark;
mod page;
mod pagerank;
mod persistence;
mod plain;
mod records;
mod recovery;
mod rewrites;
mod scalability;
mod sizes;
mod skew;
mod snapshots;
mod tails;
mod throughput;
mod weblog;
mod ycsb;
mod ycsb_load;

pub use experiment::{Base, Experiment, Figure, Form, Limit, Ours, Plot, Published, Scale, Setting, Spot};
pub use page::page;

/// All of them, in the order of the report.
pub static ALL: [&Experiment; 21] = [
    &latency::LATENCY,
    &throughput::THROUGHPUT,
    &load::LOAD,
    &scalability::SCALABILITY,
    &sizes::SIZES,
    &skew::SKEW,
    &cluster::CLUSTER,
    &memory::MEMORY,
    &counters::COUNTERS,
    &commands::COMMANDS,
    &ycsb::YCSB,
    &ycsb_load::YCSB_LOAD,
    &records::RECORDS_EXPERIMENT,
    &weblog::WEBLOG,
    &pagerank::PAGERANK,
    &eviction::EVICTION,
    &fragmentation::FRAGMENTATION,
    &expiry::EXPIRY,
    &tails::TAILS,
    &persistence::PERSISTENCE,
    &recovery::RECOVERY,
];
