#![allow(clippy::unwrap_used, reason = "a test may fail")]

use palisade_sys::proc::{ResourceLimit, set_rlimit};
use palisade_sys::test_child::in_child;
use rustix::process::getrlimit;

use super::*;
use crate::stage::{Actor, MIB, eventually};

/// Proves: RES-1 rlimits
#[test]
fn files_are_held_open_only_while_there_is_room() {
    in_child(|| {
        let actor = Actor::ready(
            "
for _ in range(20):
    child()
await_children(20)
ready()
",
        );
        let limit =
            |soft| ResourceLimit { soft: Some(soft), hard: getrlimit(Resource::Nofile).maximum };
        set_rlimit(Resource::Nofile, limit(100)).unwrap();
        let mut tree = Tree::new(actor.pid()).unwrap();
        assert_eq!(tree.max_held, 100 / 4 / 4);
        assert_eq!(tree.sample().unwrap().processes, 21);
        let mut taken = Vec::new();
        while let Ok(file) = std::fs::File::open("/dev/null") {
            taken.push(file);
        }
        assert!(taken.len() > 50, "{}", taken.len());
        assert_eq!(tree.sample().unwrap().processes, 21);
        assert_eq!(tree.max_held, 0);
        let held = tree.nameless_files().unwrap();
        tree.exact(&held).unwrap();
        while let Ok(file) = std::fs::File::open("/dev/null") {
            taken.push(file);
        }
        assert!(
            matches!(tree.sample(), Err(UsageError::Sys(error)) if error.errno == Errno::MFILE)
        );
    });
}

fn sample_of(actor: &Actor) -> Sample {
    Tree::new(actor.pid()).unwrap().sample().unwrap()
}

/// Proves: RES-3 live
#[test]
fn children_and_grandchildren_of_every_thread_are_found() {
    let actor = Actor::ready(
        "
def from_a_thread():
    child(lambda: [child() for _ in range(3)])
thread = threading.Thread(target=from_a_thread)
staying = threading.Thread(target=wait_for_end, daemon=True)
staying.start()
child()
thread.start()
thread.join()
def forks_and_stays():
    child()
    wait_for_end()
threading.Thread(target=forks_and_stays, daemon=True).start()
await_children(6)
ready()
",
    );
    let sample = sample_of(&actor);
    assert_eq!(sample.processes, 7);
    assert!(sample.threads >= 9, "{sample:?}");
    assert!(!sample.was_cut);
}

/// Kernels without `CONFIG_PROC_CHILDREN` have the parents only.
/// Proves: RES-3 live
#[test]
fn looking_for_parents_finds_the_same() {
    let actor = Actor::ready(
        "
for _ in range(5):
    child(lambda: child())
await_children(10)
ready()
",
    );
    let mut tree = Tree::new(actor.pid()).unwrap();
    tree.finding = Finding::Parents(HashMap::new());
    assert_eq!(tree.sample().unwrap().processes, 11);
    assert_eq!(sample_of(&actor).processes, 11);
}

/// Orphans go to the nearest subreaper, as they go to pid 1 in a sandbox.
/// Proves: RES-3 live
#[test]
fn an_orphan_is_not_lost() {
    let mut actor = Actor::ready(
        "
ctypes.CDLL(None).prctl(36, 1)
middle = child(lambda: child(lambda: child()))
await_children(3)
ready()
os.kill(middle, signal.SIGKILL)
os.waitpid(middle, 0)
ready()
",
    );
    let mut tree = Tree::new(actor.pid()).unwrap();
    assert_eq!(tree.sample().unwrap().processes, 4);
    actor.go_on();
    actor.await_ready();
    assert_eq!(tree.sample().unwrap().processes, 3);
    assert_eq!(sample_of(&actor).processes, 3);
}

/// It seems to have no memory once its first thread has ended.
/// Proves: RES-1 memory
#[test]
fn ending_the_first_thread_hides_nothing() {
    let actor = Actor::ready(
        "
memory = bytearray(os.urandom(1)) * (64 << 20)
def child_and_memory():
    child()
    await_children(1)
    while 'Z' not in open(f'/proc/{os.getpid()}/stat').read().rsplit(')')[-1]:
        time.sleep(0.001)
    ready()
threading.Thread(target=child_and_memory).start()
ctypes.CDLL(None).syscall(60, 0)
",
    );
    let sample = sample_of(&actor);
    assert!(sample.memory_bytes >= 64 * MIB, "{sample:?}");
    assert_eq!(sample.processes, 2);
}

/// Proves: RES-3 live
#[test]
fn memory_comes_and_goes_and_its_peak_stays() {
    let mut actor = Actor::ready(
        "
ready()
memory = mmap.mmap(-1, 100 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for page in range(0, 100 << 20, 4096): memory[page] = 1
ready()
memory.close()
ready()
shared = mmap.mmap(-1, 50 << 20)
for page in range(0, 50 << 20, 4096): shared[page] = 1
ready()
",
    );
    let mut tree = Tree::new(actor.pid()).unwrap();
    let before = tree.sample().unwrap().memory_bytes;
    let mut after = || {
        actor.go_on();
        actor.await_ready();
        tree.sample().unwrap().memory_bytes.saturating_sub(before) / MIB
    };
    let grown = after();
    assert!((100..105).contains(&grown), "{grown} MiB");
    assert!(after() < 5);
    let shared = after();
    assert!((50..55).contains(&shared), "{shared} MiB");
    let peak = (tree.peaks().memory_bytes - before) / MIB;
    assert!((100..105).contains(&peak), "{peak} MiB");
}

/// Between vfork(2) and exec a child seems to have all its parent has; it counts if it stays so.
/// Proves: RES-1 memory
#[test]
fn what_a_child_borrows_is_doubtful_for_a_few_looks_only() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    let mut actor = Actor::ready(&format!(
        "
memory = bytearray(b'1') * (64 << 20)
ready()
blocks = (os.POSIX_SPAWN_OPEN, 9, {fifo:?}, os.O_RDONLY, 0)
spawned = os.posix_spawn('/bin/true', ['true'], {{}}, file_actions=[blocks])
os.waitpid(spawned, 0)
ready()
"
    ));
    let mut tree = Tree::new(actor.pid()).unwrap();
    let alone = tree.sample().unwrap();
    actor.go_on();
    let mut sample = eventually(|| Some(tree.sample().unwrap()).filter(|it| it.processes == 2));
    for _ in 0..BORROWING_LOOKS {
        assert!(sample.borrowed_bytes >= 64 * MIB, "{sample:?}");
        assert!(sample.memory_bytes < alone.memory_bytes + 8 * MIB, "{sample:?}");
        sample = tree.sample().unwrap();
    }
    assert_eq!(sample.borrowed_bytes, 0);
    assert!(sample.memory_bytes >= 128 * MIB, "{sample:?}");
    drop(std::fs::OpenOptions::new().write(true).open(&fifo).unwrap());
    actor.await_ready();
    assert!(tree.sample().unwrap().memory_bytes < alone.memory_bytes + 8 * MIB);
}

/// Short-lived children are seen in their parent's account; the kernel's own sum is the measure.
/// Proves: RES-3 final
#[test]
fn five_hundred_short_lives_are_counted() {
    let mut actor = Actor::ready(
        "
import resource, subprocess
ready()
for _ in range(500):
    subprocess.run(['/bin/true'])
usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(int(sum(u.ru_utime + u.ru_stime for u in usage) * 1000000), flush=True)
wait_for_end()
",
    );
    let mut tree = Tree::new(actor.pid()).unwrap();
    let mut last = tree.sample().unwrap();
    actor.go_on();
    let watched = std::thread::scope(|scope| {
        let told = scope.spawn(|| actor.next_line().parse::<u64>().unwrap());
        while !told.is_finished() {
            let sample = tree.sample().unwrap();
            assert!(sample.cpu_user >= last.cpu_user && sample.cpu_system >= last.cpu_system);
            last = sample;
            std::thread::sleep(Duration::from_millis(20));
        }
        told.join().unwrap()
    });
    let last = tree.sample().unwrap();
    let seen = (last.cpu_user + last.cpu_system).as_secs_f64();
    let truth = Duration::from_micros(watched).as_secs_f64();
    // Four numbers are cut to ticks of 10 ms.
    assert!((seen - truth).abs() <= truth * 0.05 + 0.04, "{seen} s of {truth} s");
}

/// The kernel drops what a child used if its parent ignores `SIGCHLD`: what was seen stays.
/// Proves: RES-2 cpu-time
#[test]
fn children_that_nobody_waits_for_have_still_run() {
    let mut actor = Actor::ready(
        "
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
worker = child(lambda: burn(0.3))
await_children(1)
ready()
os.kill(worker, signal.SIGKILL)
try:
    os.waitpid(worker, 0)
except ChildProcessError:
    pass
ready()
",
    );
    let mut tree = Tree::new(actor.pid()).unwrap();
    let used = |sample: Sample| sample.cpu_user + sample.cpu_system;
    let with_worker = used(tree.sample().unwrap());
    assert!(with_worker >= Duration::from_millis(250), "{with_worker:?}");
    actor.go_on();
    actor.await_ready();
    for _ in 0..4 {
        assert!(used(tree.sample().unwrap()) >= with_worker);
    }
    let kept = used(sample_of(&actor));
    assert!(kept < Duration::from_millis(250), "the kernel has kept {kept:?}");
}

/// Proves: RES-3 final
#[test]
fn input_and_output_outlive_those_who_did_it() {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = directory.path().join("written");
    let mut actor = Actor::ready(&format!(
        "
ready()
def write():
    file = os.open({file:?}, os.O_CREAT | os.O_WRONLY)
    for _ in range(64):
        os.write(file, b'x' * 65536)
os.waitpid(child(write, then=lambda: None), 0)
ready()
"
    ));
    let mut tree = Tree::new(actor.pid()).unwrap();
    let before = tree.sample().unwrap().io.unwrap();
    actor.go_on();
    actor.await_ready();
    let after = eventually(|| {
        let io = tree.sample().unwrap().io.unwrap();
        (io.writes >= before.writes + 64).then_some(io)
    });
    assert!(after.writes < before.writes + 80);
    let on_tmpfs = rustix::fs::statfs(directory.path()).unwrap().f_type == 0x0102_1994;
    if !on_tmpfs {
        // A block of the directory or of the inode may be in it.
        let written = after.written_bytes - before.written_bytes;
        assert!((64 * 65536..65 * 65536).contains(&written), "{written}");
    }
}

/// Proves: RES-4 fork
#[test]
fn a_fork_bomb_makes_no_sample_endless() {
    let actor = Actor::ready(
        "
for _ in range(60):
    child()
await_children(60)
ready()
",
    );
    let mut tree = Tree::new(actor.pid()).unwrap();
    tree.max_processes = 20;
    let sample = tree.sample().unwrap();
    assert!(sample.was_cut);
    assert_eq!(sample.processes, 20);
    tree.max_processes = 61;
    let sample = tree.sample().unwrap();
    assert!(!sample.was_cut);
    assert_eq!(sample.processes, 61);
}

/// Processes that fork and end all the time move away from under the walk.
/// Proves: RES-4 fork
#[test]
fn a_tree_that_changes_all_the_time_is_sampled() {
    let mut actor = Actor::ready(
        "
ctypes.CDLL(None).prctl(36, 1)
signal.signal(signal.SIGCHLD, lambda *_: None)
def hop():
    for _ in range(400):
        if os.fork():
            os._exit(0)
for _ in range(4):
    child(hop)
ready()
while True:
    try:
        os.wait()
    except ChildProcessError:
        time.sleep(0.01)
",
    );
    actor.go_on();
    let mut tree = Tree::new(actor.pid()).unwrap();
    let mut last = Duration::ZERO;
    for _ in 0..300 {
        let sample = tree.sample().unwrap();
        assert!(!sample.was_cut, "{sample:?}");
        assert!(sample.cpu_user >= last);
        last = sample.cpu_user;
    }
}

/// Proves: RES-3 live
#[test]
fn the_end_of_the_first_process_is_told() {
    let mut actor = Actor::ready("ready()");
    let mut tree = Tree::new(actor.pid()).unwrap();
    tree.sample().unwrap();
    let pid = actor.pid();
    actor.end();
    assert!(
        matches!(tree.sample(), Err(UsageError::Gone(gone)) if gone == pid.as_raw_nonzero().get())
    );
    assert!(matches!(Tree::new(pid), Err(UsageError::Gone(_))));
}
