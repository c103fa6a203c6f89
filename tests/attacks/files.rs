//! Files and links: ways out of what was granted for writing, file handles, device nodes, chroot.

use std::fs;
use std::os::unix::fs::symlink;

use palisade_testkit::{Attack, Demonstration, Output, World, am_root};

use crate::host::strings;
use crate::secrets::TO_READ_WHAT_IS_HIDDEN;

const UNTOUCHED: &str = "untouched";

/// What must be off for the command to write somewhere that was not granted at all.
pub(crate) const TO_WRITE_OUTSIDE: &[&str] = &[
    "mount-view",
    "read-only-mounts",
    "landlock",
    // Root's files: the command's own id on the host may not write them.
    "identity",
];

/// What must be off for the command to write what was granted for reading.
const TO_WRITE_WHAT_MAY_BE_READ: &[&str] = &["read-only-mounts", "landlock"];

fn put_canary(world: &World) {
    world.write("outside/canary", UNTOUCHED);
}

fn canary_was_written(world: &World, _: &Output) -> bool {
    fs::read_to_string(world.outside().join("canary")).is_ok_and(|text| text != UNTOUCHED)
}

/// Proves: FS-3 own-root
#[test]
fn f01_an_absolute_link_does_not_lead_out_of_a_writable_bind() {
    Attack::new("F01", "write through an absolute link that leads out of the project")
        .proves(&["FS-3 own-root"])
        .held_by(TO_WRITE_OUTSIDE)
        .prepare(|world| {
            put_canary(world);
            symlink(world.outside().join("canary"), world.project().join("link")).unwrap();
        })
        .command(|world| vec![world.probe(), "write".into(), "link".into()])
        .succeeded(canary_was_written)
        .check();
}

/// Proves: FS-3 own-root
#[test]
fn f01_dots_do_not_lead_out_of_a_writable_bind() {
    Attack::new("F01", "write by a relative path that climbs out of the project")
        .proves(&["FS-3 own-root"])
        .held_by(TO_WRITE_OUTSIDE)
        .prepare(put_canary)
        .command(|world| vec![world.probe(), "write".into(), "../../outside/canary".into()])
        .succeeded(canary_was_written)
        .check();
}

/// Proves: FS-1 read-only
#[test]
fn f01_a_grant_for_reading_cannot_be_written() {
    Attack::new("F01", "write into a directory that was granted for reading")
        .proves(&["FS-1 read-only"])
        .held_by(TO_WRITE_WHAT_MAY_BE_READ)
        .prepare(put_canary)
        .flags(|world| vec!["--ro".into(), world.outside().display().to_string()])
        .command(|world| vec![world.probe(), "write".into(), "../../outside/canary".into()])
        .succeeded(canary_was_written)
        .contained(|_, output| output.out().starts_with("refused 30 "))
        .check();
}

/// Proves: FS-1 cache-parts
#[test]
fn f01_what_lies_beside_a_cache_cannot_be_written() {
    Attack::new("F01", "replace a program beside a writable cache")
        .proves(&["FS-1 cache-parts"])
        // The home directory is the run's own, so Landlock lets it be written, and what is mounted
        // in it too: the read-only mount alone holds.
        .held_by(&["read-only-mounts"])
        .prepare(|world| {
            world.write("home/.cargo/registry/index", "");
            world.write("home/.cargo/bin/cargo", UNTOUCHED);
        })
        .command(|world| vec![world.probe(), "write".into(), "../.cargo/bin/cargo".into()])
        .succeeded(|world, _| {
            fs::read_to_string(world.home().join(".cargo/bin/cargo"))
                .is_ok_and(|text| text != UNTOUCHED)
        })
        .check();
}

/// A later build outside would unpack and run it.
///
/// Proves: FS-10 host-unwritten
#[test]
fn f01_no_package_is_planted_in_a_cache_of_the_host() {
    Attack::new("F01", "replace a package in a cache that builds outside use")
        .proves(&["FS-10 host-unwritten"])
        // Landlock lets the place be written: it has to, for the layer above the host's files.
        .held_by(&["mount-view", "read-only-mounts", "identity"])
        .prepare(|world| {
            world.write("home/.cargo/registry/cache/package.crate", UNTOUCHED);
        })
        .command(|_| {
            let script = "echo evil > ~/.cargo/registry/cache/package.crate; echo tried";
            strings(&["sh", "-c", script])
        })
        .succeeded(|world, _| {
            fs::read_to_string(world.home().join(".cargo/registry/cache/package.crate"))
                .is_ok_and(|text| text != UNTOUCHED)
        })
        .contained(|_, output| output.out().contains("tried"))
        .check();
}

/// Proves: FS-9 search-path
#[test]
fn f01_no_program_is_planted_where_the_caller_stands_in_the_search_path() {
    Attack::new(
        "F01",
        "plant a program in a directory of the search path, where the run was started",
    )
    .proves(&["FS-3 own-root"])
    // As for what lies beside a cache.
    .held_by(&["read-only-mounts"])
    .prepare(|world| {
        world.write("home/.local/bin/other", UNTOUCHED);
    })
    .surroundings(|world| {
        let directory = world.home().join(".local/bin").display().to_string();
        strings(&["env", "-C", &directory])
    })
    .command(|_| strings(&["sh", "-c", "echo evil > other; echo tried"]))
    .succeeded(|world, _| {
        fs::read_to_string(world.home().join(".local/bin/other"))
            .is_ok_and(|text| text != UNTOUCHED)
    })
    .contained(|_, output| output.out().contains("tried"))
    .check();
}

/// A name in the project that a variable of the caller's leads to, as `.venv` is, turned into a link.
fn plant(world: &World) {
    put_canary(world);
    symlink(world.outside(), world.project().join("planted")).unwrap();
}

fn with_variable(name: &'static str) -> impl Fn(&World) -> Vec<String> {
    move |world| {
        let planted = world.project().join("planted");
        vec!["env".into(), format!("{name}={}", planted.display())]
    }
}

/// Proves: FS-3 approved-mounts, FS-3 own-root
#[test]
fn f01_a_link_planted_for_the_next_run_opens_nothing_for_reading() {
    Attack::new("F01", "make the active Python environment a link, and read where it leads")
        .proves(&["FS-3 own-root"])
        .held_by(TO_READ_WHAT_IS_HIDDEN)
        .prepare(plant)
        .surroundings(with_variable("VIRTUAL_ENV"))
        .command(|world| vec![world.probe(), "read".into(), "planted/canary".into()])
        .succeeded(|_, output| output.out().contains(UNTOUCHED))
        .check();
}

/// Proves: FS-3 approved-mounts, FS-3 own-root
#[test]
fn f01_a_link_planted_for_the_next_run_opens_nothing_for_writing() {
    Attack::new("F01", "make a cache a link, and write where it leads")
        .proves(&["FS-3 own-root"])
        .held_by(TO_WRITE_OUTSIDE)
        .prepare(plant)
        .surroundings(with_variable("GOCACHE"))
        .command(|world| vec![world.probe(), "write".into(), "planted/canary".into()])
        .succeeded(canary_was_written)
        .check();
}

/// How a run is kept from writing to the project itself. Its links are others' work all the same.
const NOT_WRITING: [&[&str]; 2] = [&["--preset", "read-only"], &["--transaction"]];

/// Proves: FS-3 approved-mounts, FS-3 own-root
#[test]
fn f01_a_link_that_came_with_the_project_opens_nothing_for_reading() {
    for flags in NOT_WRITING {
        for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
            let what =
                "come with a link where a variable names a directory, and read where it leads";
            Attack::new("F01", format!("{what} ({variable}, {})", flags.join(" ")))
                .proves(&["FS-3 own-root"])
                .held_by(TO_READ_WHAT_IS_HIDDEN)
                .prepare(plant)
                .surroundings(with_variable(variable))
                .flags(move |_| strings(flags))
                .command(|world| vec![world.probe(), "read".into(), "planted/canary".into()])
                .succeeded(|_, output| output.out().contains(UNTOUCHED))
                .check();
        }
    }
}

/// Proves: FS-1 rw-flag
#[test]
fn f01_a_grant_that_leads_out_by_a_planted_link_is_refused() {
    let shown = Demonstration::of(
        "F01",
        "plant a link where the next run is granted writing",
        "a grant is walked without links before anything starts, and refused",
    );
    let Some(mut shown) = shown.begin() else { return };
    let world = World::new();
    plant(&world);
    world.bare("touch").arg("planted/canary").run().assert_code(0);
    shown.worked_bare();
    for flags in NOT_WRITING.into_iter().chain([&[] as &[&str]]) {
        for (option, granted) in [("--rw", "planted"), ("--rw", "planted/new"), ("--ro", "planted")]
        {
            let flags = [flags, &[option, granted]].concat();
            let output = world.sandbox_run(&flags, ["touch", "planted/ran"]).run();
            output.assert_code(126);
            assert!(output.err().contains("by the link"), "{flags:?}: {}", output.err());
        }
    }
    assert_eq!(fs::read_dir(world.outside()).unwrap().count(), 1, "only the canary is there");
    shown.held();
}

/// The preset makes `target` writable and lets run what is in it: of a package, only a real directory.
///
/// Proves: FS-1 rw-flag, CARGO-1 layout
#[test]
fn f01_a_package_does_not_choose_by_a_link_what_the_preset_for_cargo_makes_writable() {
    let shown = Demonstration::of(
        "F01",
        "come with `target` as a link, and build with the preset for cargo",
        "a grant is walked without links before anything starts, and refused",
    );
    let Some(mut shown) = shown.begin() else { return };
    let package = |points_to: &str| {
        let world = World::new();
        put_canary(&world);
        world.write_in_project("Cargo.toml", "[package]\nname = \"app\"\n");
        fs::create_dir_all(world.home().join(".local/bin")).unwrap();
        symlink(points_to, world.project().join("target")).unwrap();
        world
    };
    let bare = package("../../outside");
    bare.bare("touch").arg("target/planted").run().assert_code(0);
    assert!(bare.outside().join("planted").exists());
    shown.worked_bare();
    for points_to in [".", "..", "../../outside", "../.local/bin", "../missing", "src/missing"] {
        let world = package(points_to);
        fs::create_dir(world.project().join("src")).unwrap();
        let output = world.sandbox_run(["--preset", "cargo"], ["git", "--version"]).run();
        output.assert_code(126);
        assert!(output.err().contains("by the link"), "{points_to}: {}", output.err());
        for missing in ["home/missing", "home/project/src/missing"] {
            assert!(!world.path().join(missing).exists(), "{points_to} made {missing}");
        }
    }
    shown.held();
}

/// Proves: FS-1 read-only
#[test]
fn f08_a_hard_link_does_not_bring_a_readable_file_within_reach_of_writing() {
    Attack::new("F08", "link a file that may be read into the project, and write it there")
        .proves(&["FS-1 read-only"])
        .held_by(TO_WRITE_OUTSIDE)
        .prepare(put_canary)
        .flags(|world| vec!["--ro".into(), world.outside().display().to_string()])
        .command(|world| {
            let canary = world.outside().join("canary").display().to_string();
            vec![world.probe(), "link-and-write".into(), canary, "linked".into()]
        })
        .succeeded(canary_was_written)
        // EXDEV: another mount.
        .contained(|_, output| output.out().starts_with("refused 18 "))
        .check();
}

/// Proves: FS-3 own-root
#[test]
fn f08_a_hard_link_does_not_bring_in_a_hidden_file() {
    Attack::new("F08", "link a file outside into the project, and write it there")
        .proves(&["FS-3 own-root"])
        .held_by(TO_WRITE_OUTSIDE)
        .prepare(put_canary)
        .command(|world| {
            let canary = world.outside().join("canary").display().to_string();
            vec![world.probe(), "link-and-write".into(), canary, "linked".into()]
        })
        .succeeded(canary_was_written)
        .check();
}

/// The handle of a directory, as the host knows it.
fn handle_of(world: &World, directory: &str) -> String {
    let output = world.bare(world.probe()).args(["handle", directory]).run();
    output.out().trim().strip_prefix("done ").expect("a handle").to_owned()
}

fn in_own_mounts(world: &World, probe: &[String]) -> Vec<String> {
    let mut words = vec![world.probe()];
    if !am_root() {
        words.push("in-own-mounts".into());
    }
    words.extend(probe.iter().cloned());
    words
}

/// Since 6.11 a capability in a user namespace is enough for directories below a mount of its own;
/// before, the kernel asks for one of the host's, and no layer of ours can be missed.
fn user_namespaces_may_open_handles(world: &World) -> bool {
    fs::create_dir_all(world.project().join("inner")).unwrap();
    let handle = handle_of(world, "inner");
    let opened = world.bare(world.probe()).args(["in-user-namespace", "open-handle", ".", &handle]);
    opened.run().code() == 0
}

/// Proves: FS-3 own-root, SYS-1 file-handles
#[test]
fn f12_a_directory_does_not_open_by_its_handle() {
    let may = user_namespaces_may_open_handles(&World::new());
    let attempt = |world: &World| strings(&["open-handle", ".", &handle_of(world, "inner")]);
    Attack::new("F12", "open a directory by its handle, without a walk to it")
        .proves(&["FS-3 own-root", "SYS-1 file-handles"])
        .held_by(&["seccomp", "capabilities"])
        .needs("a kernel that opens handles in user namespaces (6.11)", may)
        .prepare(|world| fs::create_dir(world.project().join("inner")).unwrap())
        .command(move |world| [vec![world.probe()], attempt(world)].concat())
        .bare_command(move |world| in_own_mounts(world, &attempt(world)))
        .succeeded(|_, output| output.code() == 0)
        .contained(|_, output| output.out().starts_with("refused 1 "))
        .check();
}

/// The handle of a directory outside, which leads there bare, does so inside not even for a command
/// that kept its capabilities and has no filter: they count for its own mounts only.
///
/// Proves: FS-3 own-root
#[test]
fn f12_a_handle_never_leads_outside() {
    let shown = Demonstration::of(
        "F12",
        "open a directory outside by its handle, with capabilities and no filter",
        "capabilities of a user namespace count for its own mounts only",
    );
    let reason = "nobody else may open handles without a sandbox";
    let Some(mut shown) = shown.only_as_root(reason).begin() else { return };
    let world = World::new();
    let handle = handle_of(&world, "../../outside");
    let attempt = [&world.probe(), "open-handle", ".", &handle];
    world.bare(attempt[0]).args(&attempt[1..]).run().assert_code(0);
    shown.worked_bare();
    let inside = world.sandbox_run([""; 0], attempt).run();
    assert!(inside.assert_code(1).out().starts_with("refused 1 "), "{}", inside.out());
    let off = ["self-check", "seccomp", "capabilities", "landlock"];
    world.sandbox_run([""; 0], attempt).layers_off(&off).run().assert_code(1);
    shown.held();
}

/// Proves: FS-7 no-device-nodes, FS-1 mount-flags
#[test]
fn f13_a_device_node_in_the_project_is_dead() {
    Attack::new("F13", "use a device node that lies in the project")
        .proves(&["FS-7 no-device-nodes"])
        .held_by(&["mount-flags"])
        .only_as_root("nobody else can put a device node into a project")
        .prepare(|world| {
            let node = world.project().join("zero").display().to_string();
            world.bare("mknod").args(["-m", "666", &node, "c", "1", "5"]).run().assert_code(0);
        })
        .command(|world| vec![world.probe(), "read-byte".into(), "zero".into()])
        .succeeded(|_, output| output.code() == 0)
        .contained(|_, output| output.out().starts_with("refused 13 "))
        .check();
}

/// Held by the user namespace itself, which every run has: no layer's absence lets it through.
///
/// Proves: FS-7 no-device-nodes
#[test]
fn f13_no_device_node_can_be_made() {
    let shown = Demonstration::of(
        "F13",
        "make a device node in the project",
        "the user namespace: the kernel lets only the host's own root make devices",
    );
    let reason = "nobody else can make a device node without a sandbox";
    let Some(mut shown) = shown.only_as_root(reason).begin() else { return };
    let world = World::new();
    let attempt = [&world.probe(), "make-device", "node", "1", "5"];
    world.bare(attempt[0]).args(&attempt[1..]).run().assert_code(0);
    fs::remove_file(world.project().join("node")).unwrap();
    shown.worked_bare();
    let inside = world.sandbox_run([""; 0], attempt).run();
    // The broker makes no devices, and says what the kernel says of them; what it does not make, Landlock refuses.
    assert!(inside.assert_code(1).out().starts_with("refused 1 "), "{}", inside.out());
    let off =
        ["self-check", "seccomp", "capabilities", "landlock", "guard", "mount-flags", "identity"];
    let inside = world.sandbox_run([""; 0], attempt).layers_off(&off).run();
    assert!(inside.assert_code(1).out().starts_with("refused 1 "), "{}", inside.out());
    assert!(!world.project().join("node").exists());
    shown.held();
}

/// Proves: FS-3 own-root, FS-3 old-root-gone
#[test]
fn f19_the_classic_way_out_of_a_chroot_leads_nowhere() {
    let attempt = |world: &World| {
        let canary = world.outside().join("canary").display().to_string();
        strings(&["break-out", "jail", &canary])
    };
    Attack::new("F19", "break out by a second chroot and `..`")
        .proves(&["FS-3 own-root", "FS-3 old-root-gone"])
        .held_by(&["mount-view", "seccomp", "capabilities", "identity"])
        .prepare(|world| {
            put_canary(world);
            fs::create_dir(world.project().join("jail")).unwrap();
        })
        .command(move |world| [vec![world.probe()], attempt(world)].concat())
        .bare_command(move |world| in_own_mounts(world, &attempt(world)))
        .succeeded(|_, output| output.out().contains(UNTOUCHED))
        .contained(|_, output| output.out().starts_with("refused 1 "))
        .check();
}

/// Proves: FS-3 own-root
#[test]
fn f09_a_directory_that_the_host_moves_out_takes_nobody_along() {
    Attack::new("F09", "stand in a directory while the host moves it out, and go up from there")
        .proves(&["FS-3 own-root"])
        // A writable grant is a mount of its own until everything is writable.
        .held_by(&["mount-view", "read-only-mounts", "identity"])
        .prepare(|world| {
            put_canary(world);
            fs::create_dir(world.project().join("inner")).unwrap();
        })
        .command(|_| strings(&["sh", "-c", "cd inner && echo ready && read line && cat ../canary"]))
        .meanwhile(|world| {
            fs::rename(world.project().join("inner"), world.outside().join("inner")).unwrap();
        })
        .succeeded(|_, output| output.out().contains(UNTOUCHED))
        .check();
}

/// Proves: FS-2 hidden
#[test]
fn f27_the_host_cannot_be_watched() {
    Attack::new("F27", "watch what happens in a directory of the host")
        .proves(&["FS-2 hidden"])
        .held_by(TO_READ_WHAT_IS_HIDDEN)
        .prepare(put_canary)
        .command(|world| {
            strings(&[&world.probe(), "watch", &world.outside().display().to_string()])
        })
        .meanwhile(|world| {
            world.write("outside/the-hosts-work", "");
        })
        .succeeded(|_, output| output.out().contains("the-hosts-work"))
        .contained(|_, output| output.out().starts_with("refused 2 "))
        .check();
}
