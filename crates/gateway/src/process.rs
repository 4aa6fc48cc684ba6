//! Resource usage of this process, where the operating system reports it.

use std::fs;

use crate::health::LimitUsage;
use crate::metrics::{MetricKind, MetricsPage};

/// The resident memory, and its limit: that of the control group, or the total memory of the
/// machine.
pub(crate) fn memory() -> Option<LimitUsage> {
    Some(LimitUsage {
        used: resident()?,
        limit: group_limit().or_else(total),
    })
}

/// Returns a value in bytes from a file with lines such as `VmRSS:  12 kB`.
fn kib(file: &str, key: &str) -> Option<f64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let number: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(number * 1024.0)
}

fn resident() -> Option<f64> {
    kib("/proc/self/status", "VmRSS:")
}

fn total() -> Option<f64> {
    kib("/proc/meminfo", "MemTotal:")
}

/// The memory limit of the control group (version 2) of this process, if any.
fn group_limit() -> Option<f64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let limit = fs::read_to_string(format!("/sys/fs/cgroup{group}/memory.max")).ok()?;
    limit.trim().parse().ok()
}

/// Processor time used by the process, in seconds.
fn processor() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The program name, in parentheses, may contain any character.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS)
}

/// Clock ticks per second in the kernel interface to user space: 100 on every architecture.
const TICKS: f64 = 100.0;

fn descriptors() -> Option<f64> {
    Some(fs::read_dir("/proc/self/fd").ok()?.count() as f64)
}

/// Writes the available values under the conventional Prometheus names.
pub(crate) fn write(page: &mut MetricsPage) {
    let rows: [(&str, MetricKind, &str, Option<f64>); 3] = [
        (
            "process_resident_memory_bytes",
            MetricKind::Gauge,
            "Resident memory of the process.",
            resident(),
        ),
        (
            "process_cpu_seconds_total",
            MetricKind::Counter,
            "CPU time used by the process.",
            processor(),
        ),
        (
            "process_open_fds",
            MetricKind::Gauge,
            "Open file descriptors of the process.",
            descriptors(),
        ),
    ];
    for (name, kind, help, value) in rows {
        if let Some(value) = value {
            page.single(name, kind, help, value);
        }
    }
}
