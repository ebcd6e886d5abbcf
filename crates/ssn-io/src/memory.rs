//! How much memory is left to this process: what the system has, what its group of processes may take, and what the limit of its
//! own address space leaves (`ulimit -v`).

use std::fs;
use std::path::{Path, PathBuf};

/// Bytes that can still be allocated; nothing where the system does not say it.
pub fn available_bytes() -> Option<u64> {
    let text = |path| fs::read_to_string(path).unwrap_or_default();
    let machine = text("/proc/meminfo");
    let swap = in_kilobytes(&machine, "SwapFree:").unwrap_or(0);
    let system = in_kilobytes(&machine, "MemAvailable:").map(|bytes| bytes.saturating_add(swap));
    let group = group_folders(&text("/proc/self/cgroup"))
        .into_iter()
        .filter_map(|folder| {
            let [most, current] = ["memory.max", "memory.current"].map(|name| folder.join(name));
            let [most_v1, current_v1] =
                ["memory.limit_in_bytes", "memory.usage_in_bytes"].map(|name| folder.join(name));
            let read = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
            let stat = read(folder.join("memory.stat"));
            left_to_group(&read(most), &read(current), &stat)
                .or_else(|| left_to_group(&read(most_v1), &read(current_v1), &stat))
        })
        .min();
    let own = left_to_process(&text("/proc/self/limits"), &text("/proc/self/status"));
    [system, group, own].into_iter().flatten().min()
}

/// The folders of the groups that a process is in, and of those around them: every one may have a limit. Inside a container, paths
/// may be those of the machine, and only the folder at the top is there.
fn group_folders(groups: &str) -> Vec<PathBuf> {
    let mut folders = vec![];
    for line in groups.lines() {
        let parts: Vec<&str> = line.splitn(3, ':').collect();
        let (root, path) = match parts[..] {
            ["0", "", path] => ("/sys/fs/cgroup", path),
            [_, controllers, path] if controllers.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", path)
            }
            _ => continue,
        };
        let path = Path::new(root).join(path.trim_start_matches('/'));
        folders.extend(path.ancestors().take_while(|folder| folder.starts_with(root)).map(Path::to_owned));
    }
    folders
}

/// The number behind a word at the start of a line.
fn number(text: &str, word: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(word))?;
    line.split_whitespace().next()?.parse().ok()
}

fn in_kilobytes(text: &str, word: &str) -> Option<u64> {
    number(text, word)?.checked_mul(1 << 10)
}

fn left_to_group(most: &str, current: &str, stat: &str) -> Option<u64> {
    let most: u64 = most.trim().parse().ok()?;
    let current = current.trim().parse().unwrap_or(0);
    // Files that the system keeps in memory make room where it is needed.
    let files = ["active_file ", "inactive_file "].iter().filter_map(|word| number(stat, word)).sum();
    Some(most.saturating_sub(u64::saturating_sub(current, files)))
}

fn left_to_process(limits: &str, status: &str) -> Option<u64> {
    let most = number(limits, "Max address space")?;
    Some(most.saturating_sub(in_kilobytes(status, "VmSize:").unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_says_what_is_left() {
        assert_eq!(in_kilobytes("MemTotal: 9 kB\nMemAvailable:      3 kB\n", "MemAvailable:"), Some(3072));
        assert_eq!(left_to_group("max\n", "10\n", ""), None);
        let folders = |groups: &str| -> Vec<String> {
            group_folders(groups).iter().map(|folder| folder.display().to_string()).collect()
        };
        assert_eq!(
            folders("0::/slurm/job_1\n"),
            ["/sys/fs/cgroup/slurm/job_1", "/sys/fs/cgroup/slurm", "/sys/fs/cgroup"]
        );
        assert_eq!(
            folders("5:cpu,memory:/a\n3:cpu:/b\n"),
            ["/sys/fs/cgroup/memory/a", "/sys/fs/cgroup/memory"]
        );
        assert_eq!(
            left_to_group("1000\n", "900\n", "anon 500\nactive_file 100\ninactive_file 200\n"),
            Some(400)
        );
        assert_eq!(left_to_group("1000\n", "1200\n", ""), Some(0));
        let limits = |most: &str| {
            format!(
                "Max data size  unlimited  unlimited  bytes\nMax address space  {most}  unlimited  bytes\n"
            )
        };
        assert_eq!(left_to_process(&limits("unlimited"), "VmSize:\t 2 kB\n"), None);
        assert_eq!(left_to_process(&limits("5000"), "VmSize:\t       2 kB\n"), Some(2952));
    }

    #[test]
    fn something_is_left_here() {
        assert!(available_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
