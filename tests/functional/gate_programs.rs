//! Programs from outside the view: what they need to start is asked about with them (GATE-2).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use palisade_testkit::World;
use serde_json::Value;

use crate::gate::{Client, asking};

fn executable(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Copies a program of the system to a place outside.
fn copied(world: &World, program: &str, name: &str) -> PathBuf {
    let copy = world.outside().join(name);
    fs::create_dir_all(copy.parent().unwrap()).unwrap();
    world.bare("cp").arg("-L").arg(program).arg(&copy).run().assert_code(0);
    executable(&copy);
    copy
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array()
        .map(|list| list.iter().map(|text| text.as_str().unwrap()).collect())
        .unwrap_or_default()
}

/// A copy of a dynamic program that wants this loader: the kernel reads the path from wherever the header says.
fn with_loader(world: &World, loader: &Path) -> PathBuf {
    const PT_INTERP: u32 = 3;
    let mut program = fs::read(fs::canonicalize("/usr/bin/printf").unwrap()).unwrap();
    let word = |at: usize| usize::from_le_bytes(program[at..at + 8].try_into().unwrap());
    let half = |at: usize| usize::from(u16::from_le_bytes(program[at..at + 2].try_into().unwrap()));
    let (table, size, count) = (word(32), half(54), half(56));
    let kind = |at: usize| u32::from_le_bytes(program[at..at + 4].try_into().unwrap());
    let header = (0..count).map(|n| table + n * size).find(|at| kind(*at) == PT_INTERP).unwrap();
    let mut text = loader.as_os_str().as_encoded_bytes().to_vec();
    text.push(0);
    let (offset, length) = (program.len() as u64, text.len() as u64);
    program[header + 8..header + 16].copy_from_slice(&offset.to_le_bytes());
    program[header + 32..header + 40].copy_from_slice(&length.to_le_bytes());
    program.extend(text);
    let path = world.write("outside/tool/printf", program);
    // What is open for writing elsewhere, in a child another test forks, cannot be executed.
    let own = path.with_extension("own");
    world.bare("cp").arg(&path).arg(&own).run().assert_code(0);
    executable(&own);
    own
}

/// The loader that this system's programs name.
fn system_loader() -> &'static str {
    if cfg!(target_arch = "aarch64") {
        "/lib/ld-linux-aarch64.so.1"
    } else {
        "/lib64/ld-linux-x86-64.so.2"
    }
}

/// Proves: GATE-2 exec, GATE-4 once, GATE-4 session
#[test]
fn a_script_is_asked_about_with_its_interpreter() {
    for lifetime in ["once", "session"] {
        let world = World::new();
        let shell = copied(&world, "/bin/sh", "shells/own-sh");
        let text = format!("#!{}\necho ran by $0\n", shell.display());
        let script = world.write("outside/scripts/hello", text);
        executable(&script);
        let run = asking(&world, &[], &[script.to_str().unwrap()]).spawn();
        let mut client = Client::connect(&world);
        let question = client.question_about(script.to_str().unwrap());
        assert_eq!(question["access"], "execute");
        assert_eq!(texts(&question["also"]), [shell.to_str().unwrap()]);
        client.allow(&question, lifetime);
        let asked = client.answer_all(&crate::gate::no("once"));
        let output = run.wait();
        output.assert_code(0);
        assert_eq!(output.out(), format!("ran by {}\n", script.display()), "{lifetime}");
        assert_eq!(asked.len(), 0, "{asked:?}");
    }
}

/// Proves: GATE-2 exec, GATE-4 once, GATE-4 session
#[test]
fn a_program_is_asked_about_with_its_loader() {
    for lifetime in ["once", "session"] {
        let world = World::new();
        let loader = copied(&world, system_loader(), "lib/own-loader.so");
        let program = with_loader(&world, &loader);
        let run = asking(&world, &[], &[program.to_str().unwrap(), "it runs\\n"]).spawn();
        let mut client = Client::connect(&world);
        let question = client.question_about(program.to_str().unwrap());
        assert_eq!(texts(&question["also"]), [loader.to_str().unwrap()]);
        client.allow(&question, lifetime);
        let output = run.wait();
        output.assert_code(0);
        assert_eq!(output.out(), "it runs\n", "{lifetime}");
    }
}

/// Proves: GATE-2 exec, GATE-1 deny-eacces
#[test]
fn a_program_that_was_denied_does_not_run() {
    let world = World::new();
    let program = copied(&world, "/usr/bin/printf", "tool/printf");
    let run = asking(&world, &[], &["sh", "-c", &format!("{} ran", program.display())]).spawn();
    let mut client = Client::connect(&world);
    let question = client.question_about(program.to_str().unwrap());
    client.deny(&question, "session");
    let output = run.wait();
    output.assert_code(126);
    assert_eq!(output.out(), "");
    assert!(output.err().contains("Permission denied"), "{}", output.err());
}

/// What was given to be read is not given to be run: that is asked anew.
///
/// Proves: GATE-4 access
#[test]
fn to_read_a_program_is_not_to_run_it() {
    let world = World::new();
    let program = copied(&world, "/usr/bin/printf", "tool/printf");
    let path = program.to_str().unwrap();
    let run = asking(&world, &[], &["sh", "-c", &format!("test -s {path} && {path} ran")]).spawn();
    let mut client = Client::connect(&world);
    let reading = client.question_about(path);
    assert_eq!(reading["access"], "read");
    client.allow(&reading, "session");
    let running = client.question_about(path);
    assert_eq!(running["access"], "execute");
    client.allow(&running, "session");
    let output = run.wait();
    output.assert_code(0);
    assert_eq!(output.out(), "ran");
}

/// Tools look for a `.venv` above every project by themselves; a program in one is run because somebody named it.
///
/// Proves: GATE-2 exec
#[test]
fn a_program_in_an_environment_above_the_project_is_asked_about() {
    let world = World::new();
    let program = world.write("home/.venv/bin/tool", "#!/bin/sh\necho ran\n");
    executable(&program);
    let run = asking(&world, &[], &[program.to_str().unwrap()]).spawn();
    let mut client = Client::connect(&world);
    let question = client.question();
    assert_eq!(question["path"], program.to_str().unwrap());
    client.allow(&question, "session");
    let output = run.wait();
    assert_eq!(output.out(), "ran\n", "{}", output.err());
}

/// Proves: FS-1 own-program
#[test]
fn a_program_finds_what_was_installed_with_it() {
    let world = World::new();
    world.write("home/.venv/pyvenv.cfg", "home = /usr/bin\n");
    world.write("home/.venv/lib/data", "its own\n");
    world.write("home/.venv-other/data", "another's\n");
    let script = "#!/bin/sh\ncat ~/.venv/lib/data\ncat ~/.venv-other/data\n";
    let program = world.write("home/.venv/bin/tool", script);
    executable(&program);
    let output = world.sandbox_run(["--on-ask", "deny"], [program.to_str().unwrap()]).run();
    assert_eq!(output.out(), "its own\n", "{}", output.err());
}
