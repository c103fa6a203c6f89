use super::*;

const PAGE: u64 = 4096;

fn explained(resident: u64, shared: u64, shmem: u64) -> Memory {
    let mut memory = Memory::default();
    memory.note(Statm { resident, shared }, PAGE);
    memory.explain(Resident { shmem: shmem * PAGE, swap: 0 });
    memory
}

#[test]
fn pages_of_files_do_not_count_and_shared_memory_does() {
    assert_eq!(explained(100, 60, 0).bytes(), 40 * PAGE);
    assert_eq!(explained(100, 60, 50).bytes(), 90 * PAGE);
}

#[test]
fn what_is_not_explained_counts() {
    let mut memory = Memory::default();
    memory.note(Statm { resident: 100, shared: 60 }, PAGE);
    assert!(memory.needs_status(false));
    assert_eq!(memory.bytes(), 100 * PAGE);
}

/// Proves: RES-1 overshoot
#[test]
fn growth_counts_before_it_is_explained() {
    let mut memory = explained(100, 60, 0);
    memory.note(Statm { resident: 200, shared: 160 }, PAGE);
    assert!(!memory.needs_status(false));
    assert!(memory.needs_status(true));
    assert_eq!(memory.bytes(), 140 * PAGE);
    memory.note(Statm { resident: 500, shared: 460 }, PAGE);
    assert!(memory.needs_status(false));
}

#[test]
fn only_much_the_same_resembles() {
    let parent = explained(1_000_000, 1000, 0);
    assert!(explained(1_000_050, 1001, 0).resembles(&parent));
    assert!(!explained(900_000, 1000, 0).resembles(&parent));
    assert!(!explained(1_000_000, 100_000, 0).resembles(&parent));
}
