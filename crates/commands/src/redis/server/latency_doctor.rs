//! What LATENCY DOCTOR says. Knows spikes only; the tone is Redis's, the advice is for what Tenon has.

use std::fmt::Write;
use tenon_engine::latency::Spikes;

const DISABLED: &str = "I'm sorry, Dave, I can't do that. Latency monitoring is disabled in this Redis instance. You may \
use \"CONFIG SET latency-monitor-threshold <milliseconds>.\" in order to enable it. If we weren't in a deep space mission \
I'd suggest to take a look at https://redis.io/topics/latency-monitor.\n";
const NONE: &str = "Dave, no latency spike was observed during the lifetime of this Redis instance, not in the slightest \
bit. I honestly think you ought to sit down calmly, take a stress pill, and think things over.\n";

/// The report on these events, with the settings `latency-monitor-threshold` and `slowlog-log-slower-than`.
pub fn diagnose(events: &[(&'static str, Spikes)], threshold_ms: u64, slowlog_us: i64) -> String {
    let mut report = String::new();
    let mut advice: Vec<String> = Vec::new();
    for (number, (event, spikes)) in events.iter().enumerate() {
        if number == 0 {
            report.push_str(
                "Dave, I have observed latency spikes in this Redis instance. You don't mind talking about it, do you \
                 Dave?\n\n",
            );
        }
        let samples = || spikes.samples.iter();
        let count = spikes.samples.len().max(1) as u64;
        let average = samples().map(|(_, ms)| ms).sum::<u64>() / count;
        let deviation = samples().map(|(_, ms)| ms.abs_diff(average)).sum::<u64>() / count;
        let ends = spikes.samples.front().zip(spikes.samples.back());
        let period = ends.map_or(0.0, |((first, _), (last, _))| (last - first) as f64 / count as f64);
        let worst = spikes.max_ms;
        let _ = writeln!(
            report,
            "{}. {event}: {} latency spikes (average {average}ms, mean deviation {deviation}ms, period {period:.2} sec). \
             Worst all time event {worst}ms.",
            number + 1,
            spikes.samples.len()
        );
        if *event == "command" {
            if slowlog_us < 0 {
                advice.push(format!(
                    "- There are latency issues with potentially slow commands you are using. Try to enable the Slow Log \
                     Redis feature using the command 'CONFIG SET slowlog-log-slower-than {}'. If the Slow log is disabled \
                     Redis is not able to log slow commands execution for you.",
                    threshold_ms * 1_000
                ));
            } else if slowlog_us as u64 / 1_000 > threshold_ms {
                advice.push(format!(
                    "- Your current Slow Log configuration only logs events that are slower than your configured latency \
                     monitor threshold. Please use 'CONFIG SET slowlog-log-slower-than {}'.",
                    threshold_ms * 1_000
                ));
            }
            advice.push(
                "- Check your Slow Log to understand what are the commands you are running which are too slow to execute. \
                 Please check https://redis.io/commands/slowlog for more information."
                    .to_owned(),
            );
        } else if *event == "fast-command" {
            advice.push(
                "- Fast commands that take this long point to the machine rather than to the commands: look whether other \
                 processes want the same cores, or the host takes them away."
                    .to_owned(),
            );
        } else if *event == "eviction-cycle" {
            advice.push(
                "- Evicting takes long: writes may be faster than memory becomes free. A larger 'maxmemory', or a smaller \
                 'maxmemory-samples', makes it shorter."
                    .to_owned(),
            );
        }
    }
    if events.is_empty() {
        return if threshold_ms == 0 { DISABLED } else { NONE }.to_owned();
    }
    if !advice.is_empty() {
        report.push_str("\nI have a few advices for you:\n\n");
        advice.iter().for_each(|line| report.extend([line, "\n"]));
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_what_was_seen() {
        assert_eq!(diagnose(&[], 0, 10_000), DISABLED);
        assert_eq!(diagnose(&[], 100, 10_000), NONE);
        let spikes = Spikes { samples: [(10, 100), (20, 300)].into(), max_ms: 400 };
        let report = diagnose(&[("command", spikes)], 100, 10_000);
        assert!(report.contains(
            "1. command: 2 latency spikes (average 200ms, mean deviation 100ms, period 5.00 sec). Worst all time event \
             400ms."
        ));
        assert!(report.contains("- Check your Slow Log"), "{report}");
    }
}
