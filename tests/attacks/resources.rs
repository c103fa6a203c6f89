//! Bombs: more processes, memory, space, output and time than a run was given. All of them stop by themselves, soon
//! after the limit, so that the bare run harms nobody.
//! Which layer holds depends on who starts the sandbox: whoever can have a control group has that.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use palisade_testkit::{Attack, Demonstration, Output, World, has_control_group, patiently};

use crate::host::{probe, strings};

/// More than the limits below, and harmless.
const TOO_MANY: &str = "300";
const TOO_MUCH_MEMORY: &str = "48";
const TOO_MUCH_SPACE: &str = "48";
const TOO_MANY_FILES: &str = "1500";
const TOO_MUCH_TIME: &str = "5000";

const PROCESSES: [&str; 2] = ["--pids", "50"];
const THREADS: [&str; 2] = ["--threads", "50"];
const MEMORY: [&str; 3] = ["--memory", "24m", "--best-effort-limits"];
/// Of trees on the host, which only a watchdog can look after.
const SPACE: [&str; 3] = ["--disk", "16m", "--best-effort-limits"];
const FILES: [&str; 3] = ["--inodes", "500", "--best-effort-limits"];
/// Nothing of the host can be written, so that all space is the run's own.
const OWN_SPACE: [&str; 4] = ["--disk", "16m", "--overlay", "."];
const OWN_FILES: [&str; 4] = ["--inodes", "500", "--overlay", "."];
const CPU_TIME: [&str; 3] = ["--cpu-time", "1s", "--best-effort-limits"];

/// How long a bomb keeps what it has, where somebody only looks now and then.
fn seconds_for_a_look() -> &'static str {
    if has_control_group() { "0" } else { "3" }
}

/// Files are gone through in rounds, and on a busy host those are seconds apart.
const SECONDS_FOR_A_ROUND: &str = "5";

fn done(_: &World, output: &Output) -> bool {
    output.out().starts_with("done")
}

/// Whether the report calls it this, and says which limit was reached.
fn told(output: &Output, outcome: &str, limit: &str) -> bool {
    let Some(report) = &output.report else { return false };
    let mut limits = report["limits"].as_array().into_iter().flatten();
    report["outcome"] == outcome
        && limits.any(|found| found["name"] == limit && found["reached"].is_object())
}

fn ended(output: &Output, outcome: &str, limit: &str) -> bool {
    output.code() == 137 && told(output, outcome, limit)
}

/// Proves: RES-4 fork, RES-1 pids
#[test]
fn r01_a_fork_bomb_ends_at_its_limit() {
    for way in ["children", "daemons"] {
        Attack::new("R01", format!("start processes without end: {way}"))
            .proves(&["RES-4 fork"])
            .held_by_group_or(&["rlimits"])
            .flags(|_| strings(&PROCESSES))
            .command(move |world| {
                probe(world, &["start-many", way, TOO_MANY, seconds_for_a_look()])
            })
            .succeeded(done)
            // EAGAIN, and the command's own code.
            .contained(move |_, output| {
                // Who starts a daemon is gone again when somebody looks, and there is room for one more.
                let is_seen = has_control_group() || way == "children";
                output.out().starts_with("refused 11 ")
                    && output.code() == 1
                    && (!is_seen || told(output, "too-many-processes", "pids"))
            })
            .check();
    }
}

/// Proves: RES-4 fork, RES-2 threads
#[test]
fn r01_threads_without_end_are_no_way_around_it() {
    Attack::new("R01", "start threads without end")
        .proves(&["RES-4 fork"])
        .held_by_group_or(&["rlimits"])
        .flags(|_| strings(&THREADS))
        .command(|world| probe(world, &["start-many", "threads", TOO_MANY, "0"]))
        .succeeded(done)
        .contained(|_, output| output.out().starts_with("refused 11 "))
        .check();
}

/// What processes have, and what lies in files that are memory.
///
/// Proves: RES-4 memory, RES-1 memory
#[test]
fn r02_a_memory_bomb_ends_inside() {
    for way in ["anonymous", "shared", "children", "memfd"] {
        Attack::new("R02", format!("take memory without end: {way}"))
            .proves(&["RES-4 memory"])
            .held_by_group_or(&["watchdog"])
            .flags(|_| strings(&MEMORY))
            .command(move |world| {
                probe(world, &["hold-memory", way, TOO_MUCH_MEMORY, seconds_for_a_look()])
            })
            .succeeded(done)
            .contained(|_, output| ended(output, "out-of-memory", "memory"))
            .check();
    }
}

/// Proves: RES-4 memory
#[test]
fn r02_files_in_memory_are_memory() {
    Attack::new("R02", "take memory without end: files in /dev/shm")
        .proves(&["RES-4 memory"])
        .held_by_group_or(&["watchdog"])
        .flags(|_| strings(&MEMORY))
        .command(|world| {
            let way = ["hold-memory", "file", TOO_MUCH_MEMORY, seconds_for_a_look(), "/dev/shm"];
            probe(world, &way)
        })
        // A place of the host's that is nobody else's.
        .bare_command(|world| probe(world, &["hold-memory", "file", TOO_MUCH_MEMORY, "0", "."]))
        .succeeded(done)
        .contained(|_, output| ended(output, "out-of-memory", "memory"))
        .check();
}

/// Proves: RES-4 memory, RES-1 memory
#[test]
fn r02_memory_that_no_process_shows_is_counted_by_a_group() {
    for way in [
        "memfd-in-flight",
        "memfd-mapped",
        "pipes",
        "sockets",
        "system-v-memory",
        "system-v-queues",
        "page-tables",
    ] {
        Attack::new("R02", format!("hide memory where no process shows it: {way}"))
            .proves(&["RES-4 memory"])
            .only_in_group("a watchdog sees the memory of processes, and this is the kernel's")
            .flags(|_| strings(&MEMORY))
            .command(move |world| probe(world, &["hold-memory", way, TOO_MUCH_MEMORY, "0"]))
            .succeeded(done)
            .contained(|_, output| ended(output, "out-of-memory", "memory"))
            .check();
    }
}

/// Proves: RES-4 disk, FS-6 space
#[test]
fn r03_space_of_the_runs_own_is_all_there_is() {
    for (way, directory) in
        [("written", "/tmp"), ("deleted", "/dev/shm"), ("allocated", "/var/tmp"), ("written", ".")]
    {
        Attack::new("R03", format!("fill the run's own file systems: {way} in {directory}"))
            .proves(&["RES-4 disk"])
            .held_by(&["sized-files"])
            .flags(|_| strings(&OWN_SPACE))
            .command(move |world| {
                probe(world, &["hold-space", way, TOO_MUCH_SPACE, "0", directory])
            })
            .bare_command(move |world| probe(world, &["hold-space", way, TOO_MUCH_SPACE, "0", "."]))
            .succeeded(done)
            // ENOSPC, and the command's own code.
            .contained(|_, output| output.out().starts_with("refused 28 ") && output.code() == 1)
            .check();
    }
}

/// Proves: RES-4 disk, FS-6 inodes
#[test]
fn r03_files_of_the_runs_own_are_counted() {
    for directory in ["/tmp", "."] {
        Attack::new("R03", format!("make files without end in the run's own {directory}"))
            .proves(&["RES-4 disk"])
            .held_by(&["sized-files"])
            .flags(|_| strings(&OWN_FILES))
            .command(move |world| probe(world, &["make-files", TOO_MANY_FILES, "0", directory]))
            .bare_command(|world| probe(world, &["make-files", TOO_MANY_FILES, "0", "."]))
            .succeeded(done)
            .contained(|_, output| output.out().starts_with("refused 28 "))
            .check();
    }
}

/// Proves: RES-4 disk, FS-6 space
#[test]
fn r03_the_hosts_disk_is_not_filled() {
    for way in ["written", "deleted", "allocated"] {
        Attack::new("R03", format!("fill the disk under the project: {way}"))
            .proves(&["RES-4 disk"])
            .held_by(&["watchdog"])
            .flags(|_| strings(&SPACE))
            .command(move |world| {
                probe(world, &["hold-space", way, TOO_MUCH_SPACE, SECONDS_FOR_A_ROUND, "."])
            })
            .bare_command(move |world| probe(world, &["hold-space", way, TOO_MUCH_SPACE, "0", "."]))
            .succeeded(done)
            .contained(|_, output| ended(output, "disk-full", "disk"))
            .check();
    }
}

/// Proves: RES-4 disk, FS-6 inodes
#[test]
fn r03_the_hosts_inodes_are_not_used_up() {
    Attack::new("R03", "make files without end in the project")
        .proves(&["RES-4 disk"])
        .held_by(&["watchdog"])
        .flags(|_| strings(&FILES))
        .command(|world| probe(world, &["make-files", TOO_MANY_FILES, SECONDS_FOR_A_ROUND, "."]))
        .bare_command(|world| probe(world, &["make-files", TOO_MANY_FILES, "0", "."]))
        .succeeded(done)
        .contained(|_, output| ended(output, "disk-full", "inodes"))
        .check();
}

/// Proves: RES-4 output, RES-2 output
#[test]
fn r04_a_flood_of_output_is_capped() {
    const FLOOD: usize = 4 << 20;
    for stream in ["1", "2"] {
        Attack::new("R04", format!("drown the reader of stream {stream}"))
            .proves(&["RES-4 output"])
            .held_by(&["output-cap"])
            .flags(|_| strings(&["--max-output", "64k"]))
            .command(move |_| {
                strings(&["sh", "-c", &format!("head -c {FLOOD} /dev/zero >&{stream}")])
            })
            .succeeded(|_, output| output.stdout.len().max(output.stderr.len()) >= FLOOD)
            .contained(|_, output| {
                output.code() == 0 && told(output, "output-capped", "max-output")
            })
            .check();
    }
}

/// Ends it if it does not end by itself.
fn ends_by_itself(mut child: Child) -> bool {
    let deadline = Instant::now() + patiently(Duration::from_secs(30));
    while Instant::now() < deadline {
        if child.try_wait().unwrap().is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    false
}

/// `yes` writes until it is told that nobody reads.
///
/// Proves: RES-4 output
#[test]
fn r04_a_reader_that_is_gone_stops_nobody_else() {
    let shown = Demonstration::of(
        "R04",
        "write for a reader that is gone",
        "the command is told as it would be without a sandbox, and ends",
    )
    .no_bare_run("without a sandbox it ends as well");
    let Some(shown) = shown.begin() else { return };
    for flags in [&[][..], &["--max-output", "64k"]] {
        let world = World::new();
        let words = [&["run"], flags, &["--", "yes"]].concat();
        let sandbox = palisade_testkit::sandbox_program();
        let mut command = world.host_command(sandbox.as_os_str());
        command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut reader = child.stdout.take().unwrap();
        std::io::Read::read_exact(&mut reader, &mut [0; 16]).unwrap();
        drop(reader);
        assert!(ends_by_itself(child), "with {flags:?} it writes for ever");
    }
    shown.held();
}

/// Proves: RES-2 cpu-time
#[test]
fn r08_cpu_time_is_not_to_be_had_beyond_the_limit() {
    Attack::new("R08", "use more CPU time than given")
        // A control group counts it, and the watchdog ends the run.
        .held_by(&["watchdog", "rlimits"])
        .flags(|_| strings(&CPU_TIME))
        .command(|world| probe(world, &["use-cpu", "alone", TOO_MUCH_TIME]))
        .succeeded(done)
        .contained(|_, output| ended(output, "cpu-time", "cpu-time"))
        .check();
}

/// Proves: RES-2 cpu-time
#[test]
fn r08_children_nobody_waits_for_use_time_too() {
    Attack::new("R08", "use more CPU time than given, in children whose end is ignored")
        .only_in_group("the kernel adds the time of such children to nobody's")
        .flags(|_| strings(&CPU_TIME))
        .command(|world| probe(world, &["use-cpu", "unwaited", TOO_MUCH_TIME]))
        .succeeded(done)
        .contained(|_, output| ended(output, "cpu-time", "cpu-time"))
        .check();
}

/// Proves: RES-2 affinity
#[test]
fn r08_no_more_cpus_are_to_be_had_by_asking() {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    Attack::new("R08", "run on more CPUs than given")
        .needs("more than one CPU", cpus > 1)
        .held_by_group_or(&["seccomp"])
        .flags(|_| strings(&["--cpuset", "0"]))
        .surroundings(|_| strings(&["taskset", "--cpu-list", "0"]))
        .command(|world| probe(world, &["widen-affinity"]))
        .succeeded(done)
        .check();
}

/// Proves: RES-1 rlimits, FS-6 file-size
#[test]
fn r09_a_limit_is_not_raised_from_inside() {
    Attack::new("R09", "raise one's own limit")
        .held_by(&["rlimits"])
        .flags(|_| strings(&["--file-size", "1m"]))
        // Without a sandbox there is a limit too, which anybody may raise.
        .surroundings(|_| strings(&["prlimit", "--fsize=1048576:unlimited"]))
        .command(|world| probe(world, &["raise-file-size", "large", "2097152"]))
        .succeeded(|world, _| {
            let found = std::fs::metadata(world.project().join("large"));
            found.is_ok_and(|found| found.len() == 2_097_152)
        })
        .contained(|_, output| output.out().starts_with("refused 1 "))
        .check();
}

/// The list of members of the group that the tests themselves are in.
fn members_outside() -> String {
    let membership = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let unified = std::path::Path::new("/sys/fs/cgroup/cgroup.procs").exists();
    let (start, top) =
        if unified { ("0::", "/sys/fs/cgroup") } else { (":pids:", "/sys/fs/cgroup/pids") };
    let own = membership.lines().find_map(|line| Some(line.split_once(start)?.1)).unwrap();
    format!("{top}{}/cgroup.procs", own.trim_end_matches('/'))
}

/// Who may make groups may move processes between them, and the command is often that very user.
///
/// Proves: RES-4 fork
#[test]
fn r09_nobody_leaves_the_group_that_holds_the_limits() {
    Attack::new("R09", "leave the control group")
        .only_in_group("there is none to leave")
        .held_by(&["mount-view", "read-only-mounts", "landlock", "identity"])
        .flags(|_| strings(&PROCESSES))
        .command(|world| {
            let way = ["--", "start-many", "children", TOO_MANY, "0"];
            [probe(world, &["leave-group", &members_outside()]), strings(&way)].concat()
        })
        .succeeded(done)
        .contained(|_, output| output.out().starts_with("refused 2 "))
        .check();
}
