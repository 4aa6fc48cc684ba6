//! What the system tells about this process; nothing where it does not.

use std::fs;

use crate::metric::{Exposition, Kind};
use crate::vital::Usage;

/// The resident memory, and the most that the process may have: that of its control group, or all
/// there is.
pub(crate) fn memory() -> Option<Usage> {
    Some(Usage {
        used: resident()?,
        most: group_limit().or_else(total),
    })
}

/// A value in KiB of a file of lines such as `VmRSS:  12 kB`, in octets.
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

/// The limit of our control group (version 2), if it has one.
fn group_limit() -> Option<f64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let limit = fs::read_to_string(format!("/sys/fs/cgroup{group}/memory.max")).ok()?;
    limit.trim().parse().ok()
}

/// Seconds of processor time that the process has used.
fn processor() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in brackets, may have anything in it.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS)
}

/// The kernel counts for user space in hundredths of a second on every architecture.
const TICKS: f64 = 100.0;

fn descriptors() -> Option<f64> {
    Some(fs::read_dir("/proc/self/fd").ok()?.count() as f64)
}

/// Writes what there is, under the names that the field has agreed on.
pub(crate) fn write(exposition: &mut Exposition) {
    let rows: [(&str, Kind, &str, Option<f64>); 3] = [
        (
            "process_resident_memory_bytes",
            Kind::Gauge,
            "Resident memory of the process.",
            resident(),
        ),
        (
            "process_cpu_seconds_total",
            Kind::Counter,
            "Processor time that the process has used.",
            processor(),
        ),
        (
            "process_open_fds",
            Kind::Gauge,
            "File descriptors that the process has open.",
            descriptors(),
        ),
    ];
    for (name, kind, help, value) in rows {
        if let Some(value) = value {
            exposition.one(name, kind, help, value);
        }
    }
}
