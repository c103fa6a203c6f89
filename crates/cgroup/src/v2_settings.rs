//! Limits of a group in the unified hierarchy. Must never accept a looser limit: each is read back.

use crate::directory::Directory;
use crate::disks;
use crate::error::{CgroupError, Doing as _, Result};
use crate::setting::{
    SETTING, WAIVE, check_cpus, looser, most_operations, most_tasks, no_swap_to_count, quota,
    refuse_no_io, set_number,
};
use crate::text::{cpu_list, of_device};
use palisade_plan::limit::GroupSettings;
use palisade_sys::Errno;

pub(crate) fn apply(directory: &Directory, settings: &GroupSettings) -> Result<()> {
    let GroupSettings { memory, memory_high, swap, milli_cpus, tasks, io_bandwidth, iops, cpus } =
        settings;
    if let Some(swap) = swap {
        set_swap(directory, *swap)?;
    }
    if let Some(high) = memory_high {
        set_number(directory, "memory.high", *high)?;
    }
    if let Some(memory) = memory {
        set_number(directory, "memory.max", *memory)?;
        // Kill all of a run's processes together: the others would wait for the missing one.
        directory.write("memory.oom.group", "1").doing(SETTING, WAIVE)?;
    }
    if let Some(milli) = milli_cpus {
        set_cpu(directory, *milli)?;
    }
    if let Some(tasks) = tasks {
        set_number(directory, "pids.max", most_tasks(*tasks))?;
    }
    if io_bandwidth.or(*iops).is_some() {
        set_io(directory, *io_bandwidth, *iops, &disks::whole())?;
    }
    if let Some(cpus) = cpus {
        set_cpus(directory, cpus)?;
    }
    Ok(())
}

fn set_swap(directory: &Directory, asked: u64) -> Result<()> {
    const FILE: &str = "memory.swap.max";
    match set_number(directory, FILE, asked) {
        Err(CgroupError::Refused { source, .. }) if source.errno == Errno::NOENT => {
            no_swap_to_count(FILE)
        }
        set => set,
    }
}

fn set_cpu(directory: &Directory, milli_cpus: u64) -> Result<()> {
    const FILE: &str = "cpu.max";
    let (quota, period) = quota(milli_cpus);
    let asked = format!("{quota} {period}");
    directory.write(FILE, &asked).doing(SETTING, WAIVE)?;
    let stands = directory.read(FILE).doing(SETTING, WAIVE)?;
    if stands.trim() == asked { Ok(()) } else { Err(looser(directory, FILE, &asked, &stands)) }
}

fn set_io(
    directory: &Directory,
    bandwidth: Option<u64>,
    iops: Option<u64>,
    disks: &[String],
) -> Result<()> {
    const FILE: &str = "io.max";
    refuse_no_io(bandwidth, iops)?;
    let iops = iops.map(most_operations);
    let keys = [("rbps", bandwidth), ("wbps", bandwidth), ("riops", iops), ("wiops", iops)];
    let asked: Vec<(&str, u64)> =
        keys.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
    let words: Vec<String> = asked.iter().map(|(key, value)| format!("{key}={value}")).collect();
    for disk in disks {
        directory.write(FILE, &format!("{disk} {}", words.join(" "))).doing(SETTING, WAIVE)?;
    }
    let stands = directory.read(FILE).doing(SETTING, WAIVE)?;
    for disk in disks {
        for (key, value) in &asked {
            if of_device(&stands, disk, key).is_none_or(|stands| stands > *value) {
                return Err(looser(directory, FILE, &format!("{disk} {key}={value}"), &stands));
            }
        }
    }
    Ok(())
}

/// If none of the requested CPUs is available, the kernel silently uses the parent's.
fn set_cpus(directory: &Directory, asked: &[u32]) -> Result<()> {
    directory.write("cpuset.cpus", &cpu_list(asked)).doing(SETTING, WAIVE)?;
    check_cpus(directory, "cpuset.cpus.effective", asked)
}

#[cfg(test)]
#[path = "v2_settings_tests.rs"]
mod tests;
