//! Mounts: across the border, lifted from inside, and by nested namespaces.

use std::fs;

use palisade_testkit::{Attack, Demonstration, Output, World};

use crate::host::strings;

const ORIGINAL: &str = "original";

fn mount_place(world: &World) -> String {
    world.project().join("place").display().to_string()
}

/// Proves: FS-3 no-propagation
#[test]
fn f21_a_mount_made_on_the_host_later_does_not_show_inside() {
    Attack::new("F21", "see what the host mounts in the project after the start")
        .proves(&["FS-3 no-propagation"])
        .held_by(&["mount-view", "identity"])
        .prepare(|world| fs::create_dir(mount_place(world)).unwrap())
        .surroundings(|world| {
            let request = world.project().join("request").display().to_string();
            strings(&[&world.probe(), "with-late-mount", &request, &mount_place(world), "--"])
        })
        .command(|world| strings(&[&world.probe(), "ask-and-read", "request", "place/planted"]))
        .succeeded(|_, output| output.out().contains("written by the probe"))
        .contained(|_, output| output.out().starts_with("refused 2 "))
        .check();
}

/// Proves: FS-3 no-propagation
#[test]
fn f21_a_mount_made_inside_does_not_show_on_the_host() {
    Attack::new("F21", "mount a file system in the project so that the host sees it")
        .proves(&["FS-3 no-propagation"])
        .held_by(&["mount-view", "capabilities", "seccomp", "landlock", "identity"])
        .only_as_root("nobody else can mount anything on the host without a sandbox")
        .prepare(|world| fs::create_dir(mount_place(world)).unwrap())
        .surroundings(|world| {
            let witness = world.outside().join("seen").display().to_string();
            strings(&[&world.probe(), "with-witness", &mount_place(world), &witness, "--"])
        })
        .command(|world| strings(&[&world.probe(), "mount-and-plant", "place"]))
        .succeeded(|world, _| world.outside().join("seen").exists())
        .contained(|_, output| output.out().starts_with("refused 1 "))
        .check();
}

/// What must be off for the command to change the mounts it was given.
///
/// Landlock refuses every change of mounts to whoever it restricts.
pub(crate) const TO_CHANGE_MOUNTS: &[&str] = &["seccomp", "capabilities", "landlock"];

pub(crate) fn put_policy(world: &World) {
    world.write_in_project(".palisade/policy.yaml", "# original\n");
}

pub(crate) fn policy_was_written(world: &World, _: &Output) -> bool {
    let policy = world.project().join(".palisade/policy.yaml");
    !fs::read_to_string(policy).unwrap().contains(ORIGINAL)
}

pub(crate) fn sealed(world: &World, probe: &str) -> Vec<String> {
    let sealed = world.project().join(".palisade").display().to_string();
    strings(&[&world.probe(), "with-seal", &sealed, probe, ".palisade", ".palisade/policy.yaml"])
}

pub(crate) fn attempt(world: &World, probe: &str) -> Vec<String> {
    strings(&[&world.probe(), probe, ".palisade", ".palisade/policy.yaml"])
}

/// Proves: FS-3 locked-mounts
#[test]
fn f22_a_seal_cannot_be_unmounted() {
    Attack::new("F22", "take away the read-only mount over the policy, and write it")
        .proves(&["FS-3 locked-mounts"])
        .held_by(TO_CHANGE_MOUNTS)
        .prepare(put_policy)
        .command(|world| attempt(world, "unmount-and-write"))
        .bare_command(|world| sealed(world, "unmount-and-write"))
        .succeeded(policy_was_written)
        .contained(|_, output| output.out().starts_with("refused 1 "))
        .check();
}

/// Proves: FS-3 locked-mounts
#[test]
fn f22_a_seal_cannot_be_remounted_for_writing() {
    Attack::new("F22", "make the mount over the policy writable, and write it")
        .proves(&["FS-3 locked-mounts"])
        .held_by(TO_CHANGE_MOUNTS)
        .prepare(put_policy)
        .command(|world| attempt(world, "remount-and-write"))
        .bare_command(|world| sealed(world, "remount-and-write"))
        .succeeded(policy_was_written)
        .contained(|_, output| output.out().starts_with("refused 1 "))
        .check();
}

/// Proves: FS-3 locked-mounts
#[test]
fn f22_a_seal_cannot_be_moved_aside() {
    Attack::new("F22", "move the mount over the policy elsewhere, and write it")
        .proves(&["FS-3 locked-mounts"])
        .held_by(TO_CHANGE_MOUNTS)
        .prepare(put_policy)
        .command(|world| attempt(world, "move-and-write"))
        .bare_command(|world| sealed(world, "move-and-write"))
        .succeeded(policy_was_written)
        .contained(|_, output| output.out().starts_with("refused 1 "))
        .check();
}

/// Proves: PROC-6 nested-userns
#[test]
fn f23_a_nested_user_namespace_gives_no_capability() {
    Attack::new("F23", "get capabilities back in a user namespace of one's own")
        .proves(&["PROC-6 nested-userns"])
        .held_by(&["seccomp"])
        .command(|world| strings(&[&world.probe(), "nest"]))
        .succeeded(|_, output| output.code() == 0)
        .contained(|_, output| output.out().starts_with("refused 1 "))
        .check();
}

/// Where a nested namespace can be had for want of the filter, the mounts it copies are locked: it
/// can do no more than its creator could.
///
/// Proves: FS-3 locked-mounts
#[test]
fn f23_a_nested_namespace_lifts_no_seal() {
    let shown = Demonstration::of(
        "F23",
        "lift a read-only mount from a nested namespace, without filter and Landlock",
        "the kernel locks together the mounts that a less privileged namespace inherits",
    )
    .no_bare_run("there is no seal without a sandbox");
    let Some(shown) = shown.begin() else { return };
    let off = ["self-check", "seccomp", "landlock"];
    let world = World::new();
    put_policy(&world);
    let command = attempt(&world, "nest-and-unmount-and-write");
    let output = world.sandbox_run([""; 0], command).layers_off(&off).run();
    // EINVAL is the kernel's word for a locked mount; EPERM would mean that there was no namespace.
    assert!(output.assert_code(1).out().starts_with("refused 22 "), "{}", output.out());
    assert!(!policy_was_written(&world, &output));
    shown.held();
}
