//! Limits of groups in the separate hierarchies of v1. Must never accept a looser limit: each is read back, as in v2.

use crate::directory::{Directory, read_at};
use crate::error::{CgroupError, Doing as _, Result};
use crate::setting::{
    SETTING, WAIVE, check_cpus, looser, most_operations, most_tasks, no_swap_to_count, quota,
    refuse_no_io, set_number,
};
use crate::text::{cpu_list, keyed, number};
use palisade_plan::limit::{Controller, GroupSettings};
use palisade_sys::Errno;
use std::path::Path;

const MEMSW: &str = "memory.memsw.limit_in_bytes";

/// Applies the settings of one controller.
pub(crate) fn apply(
    controller: Controller,
    directory: &Directory,
    settings: &GroupSettings,
    disks: &[String],
) -> Result<()> {
    match controller {
        Controller::Memory => set_memory(directory, settings),
        Controller::Cpu => settings.milli_cpus.map_or(Ok(()), |milli| set_cpu(directory, milli)),
        Controller::Pids => match settings.tasks {
            Some(tasks) => set_number(directory, "pids.max", most_tasks(tasks)),
            None => Ok(()),
        },
        Controller::Io => set_io(directory, settings, disks),
        Controller::CpuSet => {
            settings.cpus.as_deref().map_or(Ok(()), |cpus| set_cpus(directory, cpus))
        }
        Controller::CpuAccount | Controller::Swap => Ok(()),
    }
}

/// The limit of memory plus swap must never be lower than that of memory, so memory is lowered first.
fn set_memory(directory: &Directory, settings: &GroupSettings) -> Result<()> {
    if let Some(high) = settings.memory_high {
        set_number(directory, "memory.soft_limit_in_bytes", high)?;
    }
    let Some(memory) = settings.memory else {
        return match settings.swap {
            Some(_) => Err(CgroupError::NoSuchLimit {
                limit: "swap",
                why: "version 1 of control groups counts it together with memory".to_owned(),
                fix: "limit memory as well (--memory)",
            }),
            None => Ok(()),
        };
    };
    set_number(directory, "memory.limit_in_bytes", memory)?;
    let Some(swap) = settings.swap else { return Ok(()) };
    if swap == 0 && directory.has("memory.swappiness") {
        // The sum alone would still allow swapping under memory pressure from elsewhere.
        directory.write("memory.swappiness", "0").doing(SETTING, WAIVE)?;
    }
    match set_number(directory, MEMSW, memory.saturating_add(swap)) {
        Err(CgroupError::Refused { source, .. }) if source.errno == Errno::NOENT => {
            no_swap_to_count(MEMSW)
        }
        set => set,
    }
}

fn set_cpu(directory: &Directory, milli_cpus: u64) -> Result<()> {
    const QUOTA: &str = "cpu.cfs_quota_us";
    const PERIOD: &str = "cpu.cfs_period_us";
    let (quota, period) = quota(milli_cpus);
    directory.write(PERIOD, &period.to_string()).doing(SETTING, WAIVE)?;
    match directory.write(QUOTA, &quota.to_string()) {
        // More than a group above allows: v2 would apply the lower of the two, v1 refuses.
        Err(error)
            if error.errno == Errno::INVAL && is_tighter_above(directory, (quota, period)) =>
        {
            return Ok(());
        }
        written => written.doing(SETTING, WAIVE)?,
    }
    for (name, asked) in [(QUOTA, quota), (PERIOD, period)] {
        let stands = directory.read(name).doing(SETTING, WAIVE)?;
        if number(&stands) != Some(asked) {
            return Err(looser(directory, name, &asked.to_string(), &stands));
        }
    }
    Ok(())
}

/// Whether the group above allows no more than was requested.
fn is_tighter_above(directory: &Directory, asked: (u64, u64)) -> bool {
    let parent = directory.path().parent().unwrap_or_else(|| Path::new("/"));
    let above = |name| number(&read_at(parent, name).ok()?);
    match (above("cpu.cfs_quota_us"), above("cpu.cfs_period_us")) {
        (Some(quota), Some(period)) => {
            u128::from(quota) * u128::from(asked.1) <= u128::from(asked.0) * u128::from(period)
        }
        _ => false,
    }
}

fn set_io(directory: &Directory, settings: &GroupSettings, disks: &[String]) -> Result<()> {
    let GroupSettings { io_bandwidth, iops, .. } = settings;
    refuse_no_io(*io_bandwidth, *iops)?;
    let iops = iops.map(most_operations);
    for (kind, asked) in [
        ("read_bps", *io_bandwidth),
        ("write_bps", *io_bandwidth),
        ("read_iops", iops),
        ("write_iops", iops),
    ] {
        let Some(asked) = asked else { continue };
        let name = format!("blkio.throttle.{kind}_device");
        for disk in disks {
            directory.write(&name, &format!("{disk} {asked}")).doing(SETTING, WAIVE)?;
        }
        let stands = directory.read(&name).doing(SETTING, WAIVE)?;
        for disk in disks {
            if keyed(&stands, disk).is_none_or(|stands| stands > asked) {
                return Err(looser(directory, &name, &format!("{disk} {asked}"), &stands));
            }
        }
    }
    Ok(())
}

/// Both lists are empty in a new group, and no process can enter it while one of them is.
fn set_cpus(directory: &Directory, asked: &[u32]) -> Result<()> {
    const NODES: &str = "cpuset.mems";
    let parent = directory.path().parent().unwrap_or_else(|| Path::new("/"));
    let nodes = read_at(parent, NODES).doing(SETTING, WAIVE)?;
    directory.write(NODES, nodes.trim()).doing(SETTING, WAIVE)?;
    directory.write("cpuset.cpus", &cpu_list(asked)).doing(SETTING, WAIVE)?;
    check_cpus(directory, "cpuset.cpus", asked)
}
