//! `sandbox check-path`: allowed, refused and why, by exit code and in words (FS-4).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use palisade_testkit::{Output, World, sandbox_program};

fn check(world: &World, options: &[&str], paths: &[&str]) -> Output {
    world.sandbox(["check-path", "--root", "."]).args(options).arg("--").args(paths).run()
}

fn answers(output: &Output) -> Vec<serde_json::Value> {
    serde_json::from_slice(&output.stdout).unwrap()
}

fn real(world: &World, path: &str) -> String {
    world.project().canonicalize().unwrap().join(path).to_string_lossy().into_owned()
}

/// Proves: FS-4 command
#[test]
fn an_allowed_path_is_answered_with_where_it_leads() {
    let world = World::new();
    world.write_in_project("src/main.rs", "");
    let output = check(&world, &[], &["./src//main.rs"]);
    output.assert_code(0);
    assert_eq!(
        output.out(),
        format!("allowed ./src//main.rs -> {}\n", real(&world, "src/main.rs"))
    );
    let absolute = real(&world, "src");
    check(&world, &[], &[&absolute]).assert_code(0);
    let elsewhere =
        world.sandbox(["check-path", "--root"]).arg(world.project()).arg("src").cwd("/");
    elsewhere.run().assert_code(0);
}

/// Proves: FS-4 command, FS-4 traversal
#[test]
fn what_leads_out_is_refused_and_one_refusal_decides() {
    let world = World::new();
    world.write_in_project("file", "");
    let outside = world.outside().to_string_lossy().into_owned();
    for path in ["..", "../outside", "file/../../../outside", "/etc/passwd", &outside, ""] {
        let output = check(&world, &[], &["file", path]);
        output.assert_code(1);
        assert!(output.out().contains(&format!("denied {path}: ")), "{}", output.out());
        assert!(output.out().contains("allowed file -> "), "{}", output.out());
    }
}

/// Proves: FS-4 command, FS-4 links
#[test]
fn a_link_is_judged_by_where_it_leads() {
    let world = World::new();
    world.write("outside/secret", "");
    world.write_in_project("dir/file", "");
    let link = |target: &Path, name: &str| symlink(target, world.project().join(name)).unwrap();
    link(Path::new("dir/file"), "in");
    link(&world.project().canonicalize().unwrap().join("dir"), "absolute");
    link(Path::new("../../outside/secret"), "out");
    link(Path::new("/proc/self/root"), "magic");
    check(&world, &[], &["in", "absolute/file"]).assert_code(0);
    let refused = check(&world, &["--json"], &["out", "magic/etc"]);
    refused.assert_code(1);
    for answer in answers(&refused) {
        assert_eq!(
            (&answer["allowed"], &answer["reason"]),
            (&false.into(), &"link-outside".into())
        );
    }
}

/// Proves: FS-4 command, FS-4 denied-paths
#[test]
fn denied_paths_and_patterns_are_refused_by_any_name() {
    let world = World::new();
    world.write_in_project(".env", "");
    world.write_in_project("keys/server.pem", "");
    world.write_in_project("plain", "");
    fs::hard_link(world.project().join(".env"), world.project().join("innocent")).unwrap();
    symlink("keys", world.project().join("k")).unwrap();
    let deny = ["--deny", ".env", "--deny", "**/*.pem", "--json"];
    let paths = [".env", "./.env/", "innocent", "k/server.pem", "k/new.pem"];
    let refused = check(&world, &deny, &paths);
    refused.assert_code(1);
    for answer in answers(&refused) {
        assert_eq!(answer["reason"], "denied", "{answer}");
    }
    let allowed = check(&world, &deny, &["plain", "keys/server.pub", ".ENV"]);
    allowed.assert_code(0);
    assert_eq!(answers(&allowed)[0]["realPath"], real(&world, "plain"));
    assert_eq!(answers(&allowed)[1]["exists"], false);
}

/// Proves: FS-4 denied-paths
#[test]
fn a_denied_directory_is_denied_where_a_part_of_it_is_mounted_again() {
    let world = World::new();
    world.write_in_project("keys/part/file", "");
    fs::create_dir(world.project().join("alias")).unwrap();
    let check = |before: &str| {
        let script = format!("{before}exec \"$0\" check-path --root . --deny keys alias/file");
        world
            .bare("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
            .arg(sandbox_program())
            .run()
    };
    check("").assert_code(0);
    let mounted = check("mount --bind keys/part alias && ");
    mounted.assert_code(1);
    assert!(mounted.out().contains("is denied by keys"), "{}", mounted.out());
}

/// Proves: FS-4 command
#[test]
fn checking_makes_nothing() {
    let world = World::new();
    let output = check(&world, &[], &["new/deeper/file"]);
    output.assert_code(0);
    assert!(output.out().ends_with("(does not exist yet)\n"), "{}", output.out());
    assert_eq!(fs::read_dir(world.project()).unwrap().count(), 0);
    assert!(!world.home().join(".local").exists(), "a check is not a run and leaves no record");
}

/// Proves: FS-4 command
#[test]
fn our_own_failure_is_no_answer() {
    let world = World::new();
    world.write_in_project("file", "");
    for arguments in [
        &["check-path", "--root", "nowhere", "x"][..],
        &["check-path", "--root", "file", "x"],
        &["check-path", "x"],
        &["check-path", "--root", "."],
    ] {
        let output = world.sandbox(arguments).run();
        output.assert_code(125);
        assert!(output.err().starts_with("sandbox: "), "{}", output.err());
    }
}

/// Proves: FS-4 command
#[test]
fn a_name_cannot_speak_to_the_terminal() {
    let world = World::new();
    let output = check(&world, &[], &["\u{1b}[31mred"]);
    output.assert_code(0);
    assert!(!output.out().contains('\u{1b}'), "{:?}", output.out());
}
