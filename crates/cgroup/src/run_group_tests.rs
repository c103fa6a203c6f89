//! Against the kernel, in whichever version this host lets us make groups. Where it lets us make none, and
//! as an ordinary user on most hosts, these have nothing to try.

use super::*;
use crate::test_support::*;
use palisade_plan::limit::GroupSettings;
use palisade_sys::clone::{CloneFlags, Forked, fork};
use palisade_sys::proc::{PollFd, Status, exit_now, poll, sig};
use palisade_sys::test_child::{in_child, park};
use std::time::Instant;

const MIB: u64 = 1024 * 1024;

fn memory(bytes: u64) -> GroupSettings {
    GroupSettings { memory: Some(bytes), swap: Some(0), ..GroupSettings::default() }
}

/// Whether any event is ready within the time.
fn is_told(held: &RunGroup, patience: Duration) -> bool {
    let watched = held.events();
    let mut fds: Vec<PollFd<'_>> =
        watched.iter().map(|it| PollFd::from_borrowed_fd(it.fd, it.interest)).collect();
    assert!(!fds.is_empty());
    poll(&mut fds, Some(patience)).unwrap() > 0
}

/// Proves: RES-1 memory, RES-1 swap
#[test]
fn memory_just_under_passes_and_over_is_killed_and_told() {
    in_child(|| {
        let Some(held) = create(memory(32 * MIB)) else { return };
        let under = start(held.entry(), || use_memory(24 << 20));
        assert_eq!(end_of(under), Status::Exited(0));
        assert_eq!(held.hits().unwrap().oom_kills, 0);
        assert!(!is_told(&held, Duration::ZERO));

        let over = start(held.entry(), || use_memory(48 << 20));
        assert!(is_told(&held, Duration::from_secs(20)));
        assert!(matches!(end_of(over), Status::Signaled { signal: sig::SIGKILL, .. }));
        let hits = held.hits().unwrap();
        assert!(hits.oom_kills >= 1, "{hits:?}");
        assert!(!hits.oom_expected, "{hits:?}");
        // v2 tells of what else belongs to it up to ten milliseconds later.
        wait_until(|| held.hits().is_ok() && !is_told(&held, Duration::ZERO));
        let peak = held.usage().unwrap().memory_peak;
        assert!(peak.is_none_or(|peak| (24 * MIB..=32 * MIB).contains(&peak)), "{peak:?}");
        held.remove().unwrap();
    });
}

#[test]
fn a_grandchild_that_runs_out_counts_though_its_parent_is_content() {
    in_child(|| {
        let Some(held) = create(memory(32 * MIB)) else { return };
        let parent = start(held.entry(), || match fork().unwrap() {
            Forked::Child => exit_now(use_memory(64 << 20)),
            Forked::Parent { pid, .. } => {
                end_of(pid);
                0
            }
        });
        end_of(parent);
        assert!(held.hits().unwrap().oom_kills >= 1);
        held.remove().unwrap();
    });
}

/// Proves: RES-1 pids
#[test]
fn one_process_more_than_allowed_is_refused_and_counted() {
    in_child(|| {
        let settings = GroupSettings { tasks: Some(4), ..GroupSettings::default() };
        let Some(held) = create(settings) else { return };
        let parent = start(held.entry(), || {
            let mut made = Vec::new();
            while let Ok(forked) = fork() {
                match forked {
                    Forked::Child => park(),
                    Forked::Parent { pid, .. } => made.push(pid),
                }
            }
            for pid in &made {
                palisade_sys::proc::kill(*pid, sig::SIGKILL).unwrap();
                end_of(*pid);
            }
            i32::try_from(made.len()).unwrap()
        });
        assert_eq!(end_of(parent), Status::Exited(3));
        assert!(held.hits().unwrap().forks_refused.is_some_and(|refused| refused >= 1));
        let peak = held.usage().unwrap().tasks_peak;
        assert!(peak.is_none_or(|peak| peak == 4), "{peak:?}");
        held.remove().unwrap();
    });
}

/// Proves: RES-1 cpu, RES-3 final
#[test]
fn a_quota_slows_down_and_is_counted() {
    in_child(|| {
        let settings = GroupSettings { milli_cpus: Some(50), ..GroupSettings::default() };
        let Some(held) = create(settings) else { return };
        let begun = Instant::now();
        let busy = start(held.entry(), || use_cpu(Duration::from_secs(60)));
        // However little of a CPU the host itself gets: held three times is held.
        wait_until(|| held.hits().unwrap().throttled_periods.is_some_and(|periods| periods >= 3));
        palisade_sys::proc::kill(busy, sig::SIGKILL).unwrap();
        end_of(busy);
        let elapsed = begun.elapsed();
        assert!(held.hits().unwrap().throttled.is_some_and(|throttled| !throttled.is_zero()));
        let usage = held.usage().unwrap();
        let used = usage.cpu_user.unwrap() + usage.cpu_system.unwrap();
        // A twentieth of a CPU, and some to begin with.
        assert!(used < elapsed / 4, "{used:?} of {elapsed:?}");
        held.remove().unwrap();
    });
}

/// A share below what the kernel takes in its usual period.
/// Proves: RES-1 cpu
#[test]
fn a_very_small_share_of_a_cpu_is_held_too() {
    in_child(|| {
        let settings = GroupSettings { milli_cpus: Some(5), ..GroupSettings::default() };
        let Some(held) = create(settings) else { return };
        held.remove().unwrap();
    });
}

/// Proves: RES-3 final
#[test]
fn the_cpu_time_of_everybody_is_counted() {
    in_child(|| {
        let Some(held) = create(memory(64 * MIB)) else { return };
        let busy = start(held.entry(), || {
            for _ in 0..4 {
                match fork().unwrap() {
                    Forked::Child => exit_now(use_cpu(Duration::from_millis(50))),
                    Forked::Parent { pid, .. } => assert_eq!(end_of(pid), Status::Exited(0)),
                }
            }
            0
        });
        let reaped = palisade_sys::proc::wait_pid_rusage(busy).unwrap();
        let rusage = reaped.usage.user_time + reaped.usage.system_time;
        let usage = held.usage().unwrap();
        let counted = usage.cpu_user.unwrap() + usage.cpu_system.unwrap();
        let difference = counted.abs_diff(rusage);
        assert!(difference < rusage / 20 + Duration::from_millis(10), "{counted:?} {rusage:?}");
        held.remove().unwrap();
    });
}

/// Proves: RES-2 affinity
#[test]
fn a_set_of_cpus_is_all_there_is() {
    in_child(|| {
        let settings = GroupSettings { cpus: Some(vec![0]), ..GroupSettings::default() };
        let Some(held) = create(settings) else { return };
        let inside = start(held.entry(), || {
            let all = rustix::thread::sched_getaffinity(None).unwrap();
            i32::try_from(all.count()).unwrap()
        });
        assert_eq!(end_of(inside), Status::Exited(1));
        held.remove().unwrap();
    });
}

/// Proves: RES-1 io
#[test]
fn reading_and_writing_can_be_limited_on_every_disk() {
    in_child(|| {
        let settings = GroupSettings {
            io_bandwidth: Some(8 * MIB),
            iops: Some(u64::MAX),
            ..GroupSettings::default()
        };
        let Some(held) = create(settings) else { return };
        held.remove().unwrap();
    });
}

#[test]
fn no_bandwidth_at_all_is_refused_and_leaves_nothing() {
    in_child(|| {
        let settings = GroupSettings { io_bandwidth: Some(0), ..memory(MIB) };
        let Some(refused) = try_create(settings) else { return };
        let error = refused.unwrap_err();
        assert!(matches!(error, CgroupError::NoSuchLimit { .. }), "{error}");
    });
}

#[test]
fn a_group_is_gone_after_its_removal_and_after_its_loss() {
    in_child(|| {
        let Some(held) = create(memory(64 * MIB)) else { return };
        let here = held.directories();
        assert!(!here.is_empty() && here.iter().all(|path| path.exists()));
        let child = start(held.entry(), || 0);
        end_of(child);
        held.remove().unwrap();
        assert!(here.iter().all(|path| !path.exists()), "{here:?}");

        let Some(held) = create(memory(64 * MIB)) else { return };
        let here = held.directories();
        drop(held);
        assert!(here.iter().all(|path| !path.exists()), "{here:?}");
    });
}

/// A supervisor that was killed removes nothing; the next one does.
#[test]
fn what_a_killed_supervisor_left_behind_is_swept() {
    in_child(|| {
        let Some(held) = create(memory(64 * MIB)) else { return };
        let living = held.directories();
        let (mut heard, told) = std::io::pipe().unwrap();
        let Forked::Parent { pid, .. } = fork().unwrap() else {
            let lost = create(memory(64 * MIB)).unwrap();
            let paths: Vec<String> =
                lost.directories().iter().map(|path| path.display().to_string()).collect();
            std::io::Write::write_all(&mut &told, paths.join("\n").as_bytes()).unwrap();
            drop(told);
            park();
        };
        drop(told);
        let lost = std::io::read_to_string(&mut heard).unwrap();
        let lost: Vec<&Path> = lost.lines().map(Path::new).collect();
        // Alive, it is left alone.
        create(memory(64 * MIB)).unwrap().remove().unwrap();
        assert!(!lost.is_empty() && lost.iter().all(|path| path.exists()));
        palisade_sys::proc::kill(pid, sig::SIGKILL).unwrap();
        end_of(pid);
        create(memory(64 * MIB)).unwrap().remove().unwrap();
        assert!(lost.iter().all(|path| !path.exists()), "{lost:?}");
        assert!(living.iter().all(|path| path.exists()));
        held.remove().unwrap();
    });
}

/// Each sweeps where the others are making theirs.
#[test]
fn many_at_once_leave_each_other_alone() {
    in_child(|| {
        let Some(held) = create(memory(64 * MIB)) else { return };
        let supervisors: Vec<_> = (0..8)
            .map(|_| match fork().unwrap() {
                Forked::Child => exit_now(i32::from(!(0..20).all(|_| {
                    let held = create(memory(64 * MIB)).unwrap();
                    let inside = start(held.entry(), || 7);
                    end_of(inside) == Status::Exited(7) && held.remove().is_ok()
                }))),
                Forked::Parent { pid, .. } => pid,
            })
            .collect();
        for pid in supervisors {
            assert_eq!(end_of(pid), Status::Exited(0));
        }
        assert!(held.directories().iter().all(|path| path.exists()));
        held.remove().unwrap();
    });
}

/// Proves: RES-1 unheld
#[test]
fn a_group_that_somebody_took_away_is_not_taken_for_one_that_holds() {
    in_child(|| {
        let Some(held) = create(GroupSettings { tasks: Some(9), ..memory(64 * MIB) }) else {
            return;
        };
        for directory in held.directories() {
            rustix::fs::rmdir(&directory).unwrap();
        }
        let error = held.hits().unwrap_err().to_string();
        assert!(error.contains("palisade-"), "{error}");
        held.remove().unwrap();
    });
}

/// A fork of the supervisor that ends must not take the group with it.
#[test]
fn a_copy_of_it_in_a_fork_removes_nothing() {
    in_child(|| {
        let Some(held) = create(memory(64 * MIB)) else { return };
        let here = held.directories();
        let Forked::Parent { pid, .. } = fork().unwrap() else {
            drop(held);
            exit_now(0);
        };
        end_of(pid);
        assert!(here.iter().all(|path| path.exists()));
        held.remove().unwrap();
    });
}

#[test]
fn the_same_session_has_one_group_only() {
    in_child(|| {
        let home = crate::find();
        if matches!(home, CgroupHome::Nowhere { .. }) {
            return;
        }
        let group = Group { home, settings: memory(64 * MIB) };
        let session = session();
        let held = RunGroup::create(&group, &session).unwrap();
        let error = RunGroup::create(&group, &session).unwrap_err().to_string();
        assert!(error.contains("EEXIST") && error.contains(&session), "{error}");
        held.remove().unwrap();
    });
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let home = CgroupHome::Nowhere { why: "a test".to_owned() };
    let group = Group { home, settings: GroupSettings::default() };
    for name in ["", "../x", "a/b", "a.b", &"x".repeat(65)] {
        let error = RunGroup::create(&group, name).unwrap_err();
        assert!(matches!(error, CgroupError::Name { .. }), "{name}: {error}");
    }
    let error = RunGroup::create(&group, "a-1").unwrap_err();
    assert_eq!(error.to_string(), "cannot create a control group: a test");
}

/// The namespaces come with the group at one stroke.
#[test]
fn the_first_process_can_have_namespaces_of_its_own() {
    in_child(|| {
        let Some(held) = create(memory(64 * MIB)) else { return };
        let flags = CloneFlags::NEWUSER | CloneFlags::NEWPID | CloneFlags::NEWCGROUP;
        let birth = held.entry().clone3(flags).unwrap();
        match birth.forked {
            Forked::Child => exit_now(match birth.to_join.join() {
                Ok(()) => rustix::process::getpid().as_raw_pid(),
                Err(_) => 99,
            }),
            Forked::Parent { pid, .. } => assert_eq!(end_of(pid), Status::Exited(1)),
        }
        held.remove().unwrap();
    });
}
