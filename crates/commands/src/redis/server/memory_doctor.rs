//! What MEMORY DOCTOR says. Knows figures only, and not where they come from; the thresholds and the tone are Redis's.

use tenon_engine::info::MemoryFacts;

/// Below this there is nothing to judge.
const TOO_LITTLE_BYTES: u64 = 5 << 20;
/// Fragmentation of fewer bytes than this is no matter.
const FRAGMENTATION_BYTES: u64 = 10 << 20;
/// Buffers of a client that are large on average.
const CLIENT_BYTES: u64 = 200 << 10;

/// The report.
pub fn diagnose(facts: &MemoryFacts, clients: u64) -> String {
    if facts.used < TOO_LITTLE_BYTES {
        return "Hi Sam, this instance is empty or is using very little memory, my issues detector can't be used in these \
                conditions. Please, leave for your mission on Earth and fill it with some data. The new Sam and I will \
                be back to our programming as soon as I finished rebooting.\n"
            .to_owned();
    }
    let mut issues = String::new();
    if facts.peak as f64 / facts.used as f64 > 1.5 {
        issues.push_str(
            " * Peak memory: In the past this instance used more than 150% the memory that is currently using. The \
             allocator may not have given all of it back, so a Resident Set Size (RSS) that is bigger than expected is \
             harmless: it will be used as soon as you fill the instance with more data.\n\n",
        );
    }
    let wasted = facts.resident.saturating_sub(facts.used);
    if facts.fragmentation_ratio() > 1.4 && wasted > FRAGMENTATION_BYTES {
        issues.push_str(
            " * High total RSS: This instance has a memory fragmentation and RSS overhead greater than 1.4 (this means \
             that the Resident Set Size of the process is much larger than the sum of the logical allocations it \
             performed). This is usually due either to a large peak memory (check if there is a peak memory entry above \
             in the report) or to a workload that causes the allocator to fragment memory a lot.\n\n",
        );
    }
    if facts.clients.checked_div(clients).unwrap_or(0) > CLIENT_BYTES {
        issues.push_str(
            " * Big client buffers: The buffers of clients in this instance are greater than 200K per client (on \
             average). Clients may not read their replies fast enough, or send commands with large replies or very large \
             sequences of commands in the same pipeline. Please use the CLIENT LIST command in order to see which.\n\n",
        );
    }
    if issues.is_empty() {
        return "Hi Sam, I can't find any memory issue in your instance. I can only account for what occurs on this base.\n"
            .to_owned();
    }
    format!(
        "Sam, I detected a few issues in this instance memory implants:\n\n{issues}I'm here to keep you safe, Sam. I want \
         to help you.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    #[test]
    fn finds_what_is_wrong() {
        let healthy = MemoryFacts { used: 100 * MB, peak: 110 * MB, resident: 120 * MB, ..MemoryFacts::default() };
        assert!(diagnose(&MemoryFacts { used: MB, ..healthy }, 1).starts_with("Hi Sam, this instance is empty"));
        assert!(diagnose(&healthy, 1).starts_with("Hi Sam, I can't find any"));
        for (facts, issue) in [
            (MemoryFacts { peak: 151 * MB, ..healthy }, " * Peak memory"),
            (MemoryFacts { resident: 141 * MB, ..healthy }, " * High total RSS"),
            (MemoryFacts { clients: MB, ..healthy }, " * Big client buffers"),
        ] {
            let report = diagnose(&facts, 2);
            assert!(report.contains(issue) && report.matches(" * ").count() == 1, "{report}");
        }
    }
}
