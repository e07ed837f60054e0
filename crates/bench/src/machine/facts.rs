//! What machine this is, for whoever reads its figures. Knows nothing of what runs on it.

use std::fs;

/// Lines on processor, memory and kernel, as far as the kernel tells.
pub fn lines() -> Vec<String> {
    let mut lines = Vec::new();
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cores = cpu.lines().filter(|line| line.starts_with("processor")).count();
    let model = field(&cpu, "model name").unwrap_or("a processor without a name");
    lines.push(format!(
        "Machine: {cores} cores, {model}{}",
        memory().map_or_else(String::new, |gib| format!(", {gib} GiB"))
    ));
    if let Ok(kernel) = fs::read_to_string("/proc/sys/kernel/osrelease") {
        lines.push(format!("Linux {}", kernel.trim()));
    }
    lines
}

fn memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let kilobytes: u64 = field(&text, "MemTotal")?.strip_suffix("kB")?.trim().parse().ok()?;
    Some((kilobytes + (1 << 19)) >> 20)
}

/// The value behind a name and a colon.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(rest.split_once(':')?.1.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_described() {
        assert_eq!(field("model name\t: X 9\n", "model name"), Some("X 9"));
        assert!(lines()[0].starts_with("Machine: "));
    }
}
