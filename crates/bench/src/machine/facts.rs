//! What machine this is, for whoever reads its figures. Knows nothing of what runs on it.

use std::fs;

/// Lines on processor, memory, kernel and what of its settings moves figures, as far as the kernel tells.
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
    let setting = |path: &str| fs::read_to_string(path).ok();
    let settings = [
        // A processor that slows down when it has little to do favours whoever keeps it busy.
        setting("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
            .map(|name| format!("governor {}", name.trim())),
        setting("/sys/kernel/mm/transparent_hugepage/enabled")
            .and_then(|text| Some(format!("huge pages {}", chosen(&text)?))),
        field(&cpu, "flags").filter(|flags| is_virtual(flags)).map(|_| "in a virtual machine".to_owned()),
    ];
    let settings = settings.into_iter().flatten().collect::<Vec<_>>().join(", ");
    lines.extend(Some(settings).filter(|settings| !settings.is_empty()));
    lines
}

/// The word in brackets.
fn chosen(text: &str) -> Option<&str> {
    Some(text.split_once('[')?.1.split_once(']')?.0)
}

fn is_virtual(flags: &str) -> bool {
    flags.split_whitespace().any(|flag| flag == "hypervisor")
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
        assert_eq!(chosen("always [madvise] never\n"), Some("madvise"));
        assert_eq!(chosen("always"), None);
        assert!(is_virtual("fpu hypervisor lahf_lm") && !is_virtual("fpu lahf_lm"));
    }
}
