//! How long the scheduler lets this thread run at a time. See sched_setattr(2).
//! Must never change its policy or nice value.

use rustix::io::Errno;

use crate::error::check;

/// The shortest that the scheduler takes.
const SHORTEST: u64 = 100_000;

/// Runs soon after each wake-up, for less time at once: EEVDF takes a shorter slice for an earlier deadline.
/// Needs no privileges. No effect on kernels before 6.12.
pub fn run_soon_after_waking() -> Result<(), Errno> {
    let mut attributes = attributes()?;
    // A thread with a real-time policy already runs at once, and this field is its budget.
    if [libc::SCHED_OTHER, libc::SCHED_BATCH].contains(&attributes.sched_policy.cast_signed()) {
        attributes.sched_runtime = SHORTEST;
        // SAFETY: the kernel reads one `struct sched_attr` of the size that it names.
        let changed =
            unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
        check(changed)?;
    }
    Ok(())
}

fn attributes() -> Result<libc::sched_attr, Errno> {
    let mut attributes = libc::sched_attr {
        size: 0,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    let size = size_of::<libc::sched_attr>();
    // SAFETY: the kernel writes at most `size` bytes, which are ours.
    let read = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    check(read)?;
    Ok(attributes)
}

#[cfg(test)]
mod tests {
    use super::{SHORTEST, attributes, run_soon_after_waking};

    #[test]
    fn a_short_slice_changes_nothing_else() {
        std::thread::spawn(|| {
            let before = attributes().unwrap();
            run_soon_after_waking().unwrap();
            let after = attributes().unwrap();
            assert_eq!(
                (before.sched_policy, before.sched_nice),
                (after.sched_policy, after.sched_nice)
            );
            // Kernels before 6.12 know no slices, and say 0.
            assert!([0, SHORTEST].contains(&after.sched_runtime), "{}", after.sched_runtime);
        })
        .join()
        .unwrap();
    }
}
