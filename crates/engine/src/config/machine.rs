//! What the process may use: cores, memory, its directory. It reads the system once, on request, and knows no
//! setting.

use std::fs;
use std::path::{Path, PathBuf};

/// What the process may use. Filled by `detect`, or by hand in tests.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Cores the process may run on: its affinity and its cgroup's CPU quota counted.
    pub cores: usize,
    /// The least of RAM and cgroup limits, in bytes; `None` where none could be found out.
    pub memory_bytes: Option<u64>,
    /// The working directory.
    pub directory: String,
}

impl Machine {
    /// Asks the system.
    pub fn detect() -> Self {
        let directory = std::env::current_dir().map(|path| path.display().to_string()).unwrap_or_else(|_| "/".into());
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory_bytes(Path::new("/"), installed_memory()),
            directory,
        }
    }

    /// One of which a test needs to know only the cores.
    #[cfg(test)]
    pub(crate) fn of_cores(cores: usize) -> Self {
        Self { cores, memory_bytes: None, directory: "/".into() }
    }

    /// How much data there may be where nothing else is said, in bytes: most of the memory. The log's records wait in 8 MiB that
    /// are no data and that a container pays for: where it is small, those are left out first.
    pub fn memory_for_data(&self) -> Option<u64> {
        const SMALL: u64 = 128 << 20;
        const LOG: u64 = 10 << 20;
        let bytes = self.memory_bytes?;
        let left = if bytes < SMALL { bytes.saturating_sub(LOG) } else { bytes };
        Some(percent_of(80, left).max(1 << 20))
    }

    /// So many percent of the memory, in bytes.
    pub fn percent_of_memory(&self, percent: u64) -> Option<u64> {
        self.memory_bytes.map(|bytes| percent_of(percent, bytes))
    }
}

fn percent_of(percent: u64, bytes: u64) -> u64 {
    (u128::from(bytes) * u128::from(percent) / 100) as u64
}

/// The least limit found below `root`, which is `/` but in tests, and of RAM as the kernel tells it.
fn memory_bytes(root: &Path, installed: Option<u64>) -> Option<u64> {
    let read = |path: &str| fs::read_to_string(root.join(path)).ok();
    let ram = read("proc/meminfo").as_deref().and_then(mem_total);
    // Without /proc, as in some sandboxes, the mount's root is taken for the group.
    let cgroup = cgroup_limit(root, read("proc/self/cgroup").as_deref().unwrap_or("0::/"));
    [ram, cgroup, installed].into_iter().flatten().min()
}

/// RAM as the kernel tells it, also to whoever has no /proc/meminfo, but not of a container's own.
fn installed_memory() -> Option<u64> {
    let info = rustix::system::sysinfo();
    Some(info.totalram.checked_mul(info.mem_unit.into())?).filter(|&bytes| bytes > 0)
}

/// `MemTotal` of /proc/meminfo, in bytes.
fn mem_total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The least soft limit on address space and data of /proc/self/limits, in bytes. What is reserved counts in both, so they say
/// little about how much data there may be.
pub fn reservation_limit() -> Option<u64> {
    least_of_reservations(&fs::read_to_string("/proc/self/limits").ok()?)
}

fn least_of_reservations(limits: &str) -> Option<u64> {
    let soft = |name| limits.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok());
    ["Max address space", "Max data size"].into_iter().filter_map(soft).min()
}

/// The least limit of the process's control groups and all that hold them, in bytes. /proc/self/cgroup names the
/// group once a hierarchy: `0::<path>` for v2, `<n>:<controllers>:<path>` for v1.
fn cgroup_limit(root: &Path, cgroup: &str) -> Option<u64> {
    let mut least = None;
    for line in cgroup.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (mount, files): (&str, &[&str]) = if controllers.is_empty() {
            ("sys/fs/cgroup", &["memory.max", "memory.high"])
        } else if controllers.split(',').any(|name| name == "memory") {
            ("sys/fs/cgroup/memory", &["memory.limit_in_bytes"])
        } else {
            continue;
        };
        // In a container the path may be one of the host's, absent here: then the mount's root is the group itself.
        let path = PathBuf::from(path.trim_start_matches('/'));
        for group in path.ancestors() {
            for file in files {
                let limit = fs::read_to_string(root.join(mount).join(group).join(file));
                let limit = limit.ok().and_then(|text| text.trim().parse::<u64>().ok());
                least = least.into_iter().chain(limit).min();
            }
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A made-up system: paths with contents, below a directory of its own.
    fn limit_of(name: &str, files: &[(&str, &str)]) -> Option<u64> {
        limit_beside(name, files, None)
    }

    fn limit_beside(name: &str, files: &[(&str, &str)], installed: Option<u64>) -> Option<u64> {
        let root = std::env::temp_dir().join(format!("tenon-machine-{}-{name}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let bytes = memory_bytes(&root, installed);
        let _ = fs::remove_dir_all(&root);
        bytes
    }

    #[test]
    fn data_leaves_the_log_its_place_where_there_is_little() {
        let for_data = |memory_bytes| Machine { memory_bytes, ..Machine::of_cores(1) }.memory_for_data();
        assert_eq!((for_data(None), for_data(Some(1_000_000_000))), (None, Some(800_000_000)));
        assert_eq!(for_data(Some(48 << 20)), Some(percent_of(80, 38 << 20)));
        assert_eq!(for_data(Some(4 << 20)), Some(1 << 20), "some there must be");
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal:       16000000 kB\nMemFree: 1 kB\n");

    #[test]
    fn ram_alone() {
        assert_eq!(limit_of("ram", &[MEMINFO]), Some(16_384_000_000));
        assert_eq!(limit_of("none", &[]), None);
        assert_eq!(limit_beside("less", &[MEMINFO], Some(17_000_000_000)), Some(16_384_000_000));
        // Where /proc has processes alone, version 1 of cgroups still says what is no limit.
        let files = [
            ("proc/self/cgroup", "4:memory:/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        assert_eq!(limit_beside("pids", &files, Some(17_000_000_000)), Some(17_000_000_000));
    }

    #[test]
    fn cgroup_v2_counts_the_groups_above() {
        let files = [
            MEMINFO,
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/memory.max", "1000000\n"),
        ];
        assert_eq!(limit_of("v2", &files), Some(1_000_000));
    }

    #[test]
    fn cgroup_v2_in_a_container_without_its_own_namespace() {
        let files = [
            MEMINFO,
            ("proc/self/cgroup", "0::/docker/0123\n"),
            ("sys/fs/cgroup/memory.max", "max\n"),
            ("sys/fs/cgroup/memory.high", "3000000\n"),
        ];
        assert_eq!(limit_of("v2c", &files), Some(3_000_000));
    }

    #[test]
    fn cgroup_v1() {
        let files = [
            MEMINFO,
            ("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/x\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "2000000\n"),
        ];
        assert_eq!(limit_of("v1", &files), Some(2_000_000));
    }

    #[test]
    fn resource_limits() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max data size             unlimited            unlimited            bytes     \n\
                      Max address space         5000000              unlimited            bytes     \n";
        assert_eq!(least_of_reservations(limits), Some(5_000_000));
        assert_eq!(limit_of("rlimit", &[MEMINFO, ("proc/self/limits", limits)]), Some(16_384_000_000));
    }

    #[test]
    fn this_machine() {
        let machine = Machine::detect();
        assert!(machine.cores >= 1 && Path::new(&machine.directory).is_absolute());
    }
}
