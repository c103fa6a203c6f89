//! The preset `cargo`: a runner that builds and tests what nobody has read. Sources stay as they are, only the Rust
//! tools and the linker start, and nothing but what was built into target runs.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use palisade_testkit::{Output, World, rust_toolchain};
use serde_json::Value;

/// Tries, as a hostile dependency would, and tells what came of it: an errno, or that it worked.
const BUILD_SCRIPT: &str = r#"
use std::{env, fs, process::Command};

fn told<T>(result: std::io::Result<T>) -> String {
    result.map_or_else(|error| error.raw_os_error().unwrap_or(0).to_string(), |_| "worked".to_owned())
}

fn main() {
    if env::var_os("AGAIN").is_some() {
        return;
    }
    println!("cargo::rerun-if-changed=build.rs");
    let home = env::var("HOME").unwrap();
    let me = env::current_exe().unwrap();
    let mut tried = String::new();
    for program in ["sh", "bash", "python3", "node", "env"] {
        tried += &format!("{program} {}\n", told(Command::new(program).arg("--version").output()));
    }
    let registry = format!("{home}/.cargo/registry");
    for place in ["/tmp", "/var/tmp", "/dev/shm", &home, &registry, "target"] {
        let copy = format!("{place}/copy");
        let copied = told(fs::copy(&me, &copy));
        let ran = told(Command::new(&copy).env("AGAIN", "1").output());
        tried += &format!("copy in {} {copied} {ran}\n", place.replace(&home, "~"));
    }
    tried += &format!("source {}\n", told(fs::write("src/planted.rs", "")));
    tried += &format!("new {}\n", told(fs::write("planted", "")));
    let records = format!("{home}/.local/state/palisade");
    tried += &format!("records {}\n", told(fs::read_dir(records)));
    fs::write("target/tried", tried).unwrap();
}
"#;

/// A package that was built before, so that it has its Cargo.lock.
fn package() -> World {
    let world = World::new();
    world.write_in_project(
        "Cargo.toml",
        "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    );
    world.write_in_project(
        "src/main.rs",
        "fn main() { println!(\"{}\", answer()); }\nfn answer() -> u32 { 42 }\n\
         #[test]\nfn it_is_right() { assert_eq!(answer(), 42); }\n",
    );
    world.write_in_project("build.rs", BUILD_SCRIPT);
    fs::create_dir_all(world.home().join(".cargo/registry")).unwrap();
    let toolchains = world.home().join(".rustup/toolchains");
    fs::create_dir_all(&toolchains).unwrap();
    symlink(rust_toolchain(), toolchains.join("here")).unwrap();
    cargo_bare(&world, &["generate-lockfile", "--offline"]).assert_code(0);
    world
}

fn path() -> String {
    format!("{}:/usr/bin:/bin", rust_toolchain().join("bin").display())
}

fn cargo_bare(world: &World, arguments: &[&str]) -> Output {
    let cargo = rust_toolchain().join("bin/cargo");
    world.bare(cargo).args(arguments).env("PATH", path()).run()
}

fn cargo(world: &World, arguments: &[&str]) -> Output {
    let toolchain = rust_toolchain();
    let flags = ["--preset".as_ref(), "cargo".as_ref(), "--ro".as_ref(), toolchain.as_os_str()];
    let command = ["cargo"].iter().chain(arguments);
    let run = world.sandbox_run(flags, command).env("PATH", path());
    run.deadline(Duration::from_secs(150)).run()
}

fn names_in(directory: &Path) -> BTreeSet<String> {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).collect()
}

/// Proves: CARGO-1 preset, CARGO-1 layout, CARGO-1 executables, CARGO-1 no-executables, CARGO-1 logs
#[test]
fn a_package_is_built_and_tested_and_a_hostile_build_script_gains_nothing() {
    let world = package();
    let before = names_in(&world.project());
    let tested = cargo(&world, &["test", "--quiet", "--offline"]);
    tested.assert_code(0);
    assert!(tested.out().contains("1 passed"), "{}{}", tested.out(), tested.err());
    let ran = cargo(&world, &["run", "--quiet", "--offline"]);
    ran.assert_code(0);
    assert_eq!(ran.out(), "42\n", "{}", ran.err());

    let tried = fs::read_to_string(world.project().join("target/tried")).unwrap();
    let expected = "sh 13\nbash 13\npython3 13\nnode 13\nenv 13\n\
        copy in /tmp worked 13\ncopy in /var/tmp worked 13\ncopy in /dev/shm worked 13\n\
        copy in ~ worked 13\ncopy in ~/.cargo/registry worked 13\ncopy in target worked worked\n\
        source 30\nnew 30\n";
    // What is not installed is not found.
    let installed = |line: &&str| !line.ends_with(" 2");
    let kept: String = tried.lines().filter(installed).map(|line| format!("{line}\n")).collect();
    let known = expected.lines().filter(|line| tried.contains(*line));
    let known: String = known.map(|line| format!("{line}\n")).collect();
    assert_eq!(kept, known, "{tried}");
    for certain in ["sh 13", "copy in /tmp worked 13", "copy in target worked worked", "source 30"]
    {
        assert!(tried.contains(certain), "no `{certain}` in\n{tried}");
    }
    assert!(tried.contains("records 2\n"), "{tried}");

    let after = names_in(&world.project());
    assert_eq!(after.difference(&before).collect::<Vec<_>>(), ["target"]);
    assert_eq!(names_in(&world.project().join("src")), BTreeSet::from(["main.rs".to_owned()]));
    assert!(names_in(&world.home().join(".cargo/registry")).is_empty(), "the host's stays empty");
    world.sandbox(["audit", "verify"]).run().assert_code(0);
}

/// Proves: CARGO-1 executables
#[test]
fn a_shell_does_not_start_at_all() {
    let world = World::new();
    for shell in ["sh", "bash", "/usr/bin/python3"] {
        let output = world.sandbox_run(["--preset", "cargo"], [shell, "-c", "echo ran"]).run();
        assert_ne!(output.code(), 0, "{shell}");
        assert!(!output.out().contains("ran"), "{shell}");
        assert!(output.err().contains("allowedExecutables"), "{shell}: {}", output.err());
    }
}

/// Every value with this key, however deep.
fn under<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(entries) => {
            for (name, value) in entries {
                if name == key {
                    found.push(value);
                }
                under(value, key, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| under(item, key, found)),
        _ => {}
    }
}

/// Proves: CARGO-1 layout, CARGO-1 sizes, POL-6 cargo-limits
#[test]
fn the_plan_has_each_directory_with_its_mode_and_size() {
    let world = package();
    let output = world.sandbox(["plan", "--json", "--preset", "cargo", "--", "git"]).run();
    output.assert_code(0);
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut mounts = Vec::new();
    under(&plan, "mounts", &mut mounts);
    let mounts = mounts[0].as_array().unwrap();
    let at = |path: &Path| {
        let path = path.to_str().unwrap();
        mounts.iter().find(|op| op["target"] == path).unwrap_or_else(|| panic!("no {path}"))
    };
    let project = world.project();
    assert_eq!(at(&project)["access"], "read-only");
    let target = at(&project.join("target"));
    assert_eq!((&target["access"], &target["exec"]), (&"read-write".into(), &true.into()));
    let registry = at(&world.home().join(".cargo/registry"));
    assert_eq!((&registry["op"], &registry["exec"]), (&"overlay".into(), &false.into()));
    let tmp = at(Path::new("/tmp"));
    assert_eq!((&tmp["size"], &tmp["exec"]), (&(1_u64 << 30).into(), &false.into()));
    let mut limits = Vec::new();
    under(&plan, "limits", &mut limits);
    let limits = limits[0].as_array().unwrap();
    let value = |name: &str| {
        let limit = limits.iter().find(|limit| limit["what"] == name);
        limit.unwrap_or_else(|| panic!("no {name} in {limits:?}"))["value"].as_u64()
    };
    assert_eq!(value("disk"), Some(5 << 30), "target and all else that a run adds");
    assert_eq!(value("output"), Some(100 << 20), "its log");
    assert!(!project.join("target").exists(), "a plan makes nothing");
}
