//! The start-up self-check: with a wall down and the check on, nothing of the command may run.

use palisade_testkit::{World, am_root};

/// Exit code of a sandbox that could not do its own work.
const OWN_FAILURE: i32 = 125;
const NO_NAMESPACES: [&str; 3] = ["--level", "1", "--no-userns"];

/// Runs with the layers off: the run must stop and name the probe that noticed.
#[track_caller]
fn stops(flags: &[&str], layers: &[&str], probe: &str) {
    let world = World::new();
    let command = ["sh", "-c", "touch ran; echo ran"];
    let output = world.sandbox_run(flags, command).layers_off(layers).run();
    output.assert_code(OWN_FAILURE);
    assert!(output.err().contains(probe), "{}", output.err());
    assert!(output.stdout.is_empty(), "{}", output.out());
    assert!(!world.project().join("ran").exists(), "the command ran");
}

/// Proves: ESC-2 stops
#[test]
fn a_canary_outside_that_can_be_read_stops_the_run() {
    // In the whole host's tree root's home is closed to another id, and nothing would start.
    let layers = if am_root() { &["mount-view", "identity"][..] } else { &["mount-view"] };
    stops(&[], layers, "read-canary");
}

/// Proves: ESC-2 stops
#[test]
fn a_writable_system_directory_stops_the_run() {
    stops(&[], &["read-only-mounts"], "write-outside");
}

/// Proves: ESC-2 stops
#[test]
fn a_reachable_network_stops_the_run() {
    stops(&[], &["net-namespace"], "reach-network");
}

/// Proves: ESC-2 stops
#[test]
fn a_visible_supervisor_stops_the_run() {
    stops(&[], &["pid-namespace"], "see-supervisor");
}

/// Proves: ESC-2 stops
#[test]
fn a_capability_that_can_be_regained_stops_the_run() {
    stops(&[], &["capabilities"], "regain-capability");
}

/// Proves: ESC-2 stops
#[test]
fn a_missing_filter_stops_the_run() {
    stops(&[], &["seccomp"], "forbidden-syscall");
}

/// Proves: ESC-2 stops, FS-9 self-check
#[test]
fn a_tree_that_the_command_itself_can_write_to_stops_the_run() {
    for layer in ["guard", "landlock"] {
        let world = World::new();
        let output = world.sandbox_run([""; 0], ["true"]).layers_off(&[layer]).run();
        output.assert_code(OWN_FAILURE);
        assert!(output.err().contains("write-guarded"), "{}", output.err());
        let left = std::fs::read_dir(world.project()).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        assert!(!left.iter().any(|name| name == ".palisade-self-check"), "{left:?}");
    }
}

/// Proves: ESC-2 stops, PROC-7 never-less
#[test]
fn a_missing_layer_stops_the_run_without_namespaces_too() {
    if am_root() {
        println!("tested as an ordinary user only: that level is refused to root");
        return;
    }
    stops(&NO_NAMESPACES, &["landlock"], "read-canary");
    stops(&NO_NAMESPACES, &["seccomp"], "forbidden-syscall");
}

/// Proves: ESC-2 walls-stand, ESC-2 observed
#[test]
fn the_report_tells_what_every_probe_met() {
    let world = World::new();
    let output = world.sandbox_run([""; 0], ["true"]).run();
    output.assert_code(0);
    let report = output.report.unwrap();
    let met: Vec<String> = report["selfCheck"]
        .as_array()
        .unwrap()
        .iter()
        .map(|probe| format!("{} {} {}", probe["probe"], probe["observed"], probe["ok"]))
        .collect();
    let expected = [
        r#""read-canary" "ENOENT" true"#,
        r#""write-outside" "EROFS" true"#,
        r#""reach-network" "ECONNREFUSED" true"#,
        r#""see-supervisor" "ESRCH" true"#,
        r#""write-guarded" "EACCES" true"#,
        r#""regain-capability" "EPERM" true"#,
        r#""forbidden-syscall" "EPERM" true"#,
    ];
    assert_eq!(met, expected);
    let of = |id: &str| {
        let promises = report["promises"].as_array().unwrap();
        promises.iter().find(|promise| promise["id"] == id).unwrap().clone()
    };
    assert_eq!(of("NET-1")["observed"], "held");
    assert_eq!(of("FS-9")["observed"], "held");
    assert_eq!(of("PROC-4")["observed"], "notProbed");
}
