//! Secrets are not in the view, under no name and in no mode, until somebody asks for one (FS-2).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use palisade_testkit::{World, am_root, gate_is_fuse, landlock_abi};

use crate::inside::{eventually, inside, private_mounts};

/// The list that ships; every line of it is tried.
const SECRETS: &str = include_str!("../../resources/view/secrets.txt");

/// The entries below the home directory, as paths relative to it.
fn listed() -> Vec<String> {
    SECRETS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_whitespace().next())
        .map(|path| path.replace("${CARGO_HOME:-~/.cargo}", "~/.cargo"))
        .filter_map(|path| path.strip_prefix("~/").map(|path| path.replace('*', "-one")))
        .collect()
}

/// A home with every listed secret in it, half of them files and half directories.
fn home_full_of_secrets(world: &World) -> Vec<PathBuf> {
    let mut made = Vec::new();
    for (number, path) in listed().into_iter().enumerate() {
        let as_file = number % 2 == 0 && !has_below(&path);
        let place = if as_file || path.contains(".env") { path } else { format!("{path}/inner") };
        // Of settings only that much is hidden.
        let content = if as_file { "password = top secret\n" } else { "top secret\n" };
        made.push(world.write(PathBuf::from("home").join(place), content));
    }
    world.write("home/notes/letter", "harmless\n");
    made
}

fn has_below(path: &str) -> bool {
    let prefix = format!("{path}/");
    listed().iter().any(|other| other.starts_with(&prefix))
}

/// Proves: FS-2 secret-list, FS-2 hidden
#[test]
fn every_listed_secret_is_hidden_in_every_mode() {
    let world = World::new();
    let secrets = home_full_of_secrets(&world);
    assert!(secrets.len() > 100, "{}", secrets.len());
    let names: String = secrets.iter().map(|path| format!("{}\n", path.display())).collect();
    world.write_in_project("names", names);
    let script = "while read -r name; do cat \"$name\"; done < names 2>/dev/null; \
                  cat ~/notes/letter 2>/dev/null; true";
    let bare = world.bare("sh").args(["-c", script]).run();
    assert_eq!(bare.out().matches("top secret").count(), secrets.len());

    // Static mode shows the rest as it is used, where the gate is a file system.
    let mut ways = vec![
        (vec!["--static"], gate_is_fuse()),
        (vec!["--static", "--ro", "~"], true),
        (vec![], false),
    ];
    ways.push((vec!["--static", "--ro", "~", "--level", "1"], true));
    if !am_root() && landlock_abi() > 0 {
        ways.push((vec!["--static", "--ro", "~", "--level", "1", "--no-userns"], true));
    }
    for (flags, shows_rest) in ways {
        let output = inside(&world, &flags, script);
        output.assert_code(0);
        assert_eq!(output.out(), if shows_rest { "harmless\n" } else { "" }, "{flags:?}");
    }
}

/// Proves: FS-2 aliases
#[test]
fn links_do_not_lead_to_secrets() {
    let world = World::new();
    world.write("home/real-keys/id", "top secret\n");
    world.write("home/.aws/credentials", "top secret\n");
    symlink("real-keys", world.home().join(".ssh")).unwrap();
    symlink(world.home().join(".aws"), world.home().join("cloud")).unwrap();
    symlink("../.aws/credentials", world.project().join("config")).unwrap();
    let script = "cat ~/.ssh/id ~/real-keys/id ~/.aws/credentials ~/cloud/credentials config";
    assert_eq!(world.bare("sh").args(["-c", script]).run().out().lines().count(), 5);
    for flags in [&["--static"][..], &["--static", "--ro", "~"], &[]] {
        let output = inside(&world, flags, script);
        assert_eq!(output.out(), "", "{flags:?}");
        output.assert_code(1);
    }
}

/// Proves: FS-2 aliases
#[test]
fn another_mount_of_a_secret_is_hidden_too() {
    if !am_root() {
        eprintln!("skipped: only root can mount on the host");
        return;
    }
    let world = World::new();
    world.write("home/.ssh/id", "top secret\n");
    world.write("home/.ssh/sub/id", "top secret\n");
    for place in ["home/alias", "home/part", "home/whole"] {
        fs::create_dir(world.path().join(place)).unwrap();
    }
    let script = r#"
        mount --bind ~/.ssh ~/alias; mount --bind ~/.ssh/sub ~/part; mount --rbind ~ ~/whole
        look='cat ~/alias/id ~/part/id ~/whole/.ssh/id 2>/dev/null; echo looked'
        sh -c "$look"
        "$PALISADE" run --static --ro ~ -- sh -c "$look"
        "$PALISADE" run --ro ~/whole -- sh -c "$look"
    "#;
    let output = private_mounts(&world, script).run();
    output.assert_code(0);
    assert_eq!(
        output.out(),
        "top secret\ntop secret\ntop secret\nlooked\nlooked\nlooked\n",
        "{}",
        output.err()
    );
}

/// Proves: FS-2 host-rename
#[test]
fn a_rename_on_the_host_uncovers_nothing() {
    let world = World::new();
    world.write("home/.ssh/id", "top secret\n");
    world.write("home/notes/letter", "harmless\n");
    let script = "echo ready; read go; cat ~/.ssh/id ~/renamed/id ~/*/id 2>/dev/null; \
                  cat ~/notes/letter";
    let flags = ["--static", "--ro", "~"];
    let mut run = world.sandbox_run(flags, ["sh", "-c", script]).keep_stdin_open().spawn();
    run.wait_for_stdout("ready");
    fs::rename(world.home().join(".ssh"), world.home().join("renamed")).unwrap();
    eventually("the rename", || world.home().join("renamed/id").exists());
    run.send(b"go\n");
    let output = run.wait();
    output.assert_code(0);
    assert_eq!(output.out(), "ready\nharmless\n");
}

/// Proves: FS-2 env-file
#[test]
fn environment_files_are_hidden_outside_the_project_until_their_directory_is_named() {
    let world = World::new();
    world.write("home/other/.env", "top secret\n");
    world.write("home/other/deep/.env.local", "top secret\n");
    world.write("home/other/readme", "harmless\n");
    world.write_in_project(".env", "own\n");
    let script = "cat ~/other/.env ~/other/deep/.env.local ~/other/readme 2>/dev/null; cat .env";
    let as_used = if gate_is_fuse() { "harmless\nown\n" } else { "own\n" };
    for (flags, shown) in [(&["--static"][..], as_used), (&["--on-ask", "deny"], "own\n")] {
        let output = inside(&world, flags, script);
        assert_eq!(output.out(), shown, "{flags:?} {}", output.err());
    }
    let named = inside(&world, &["--static", "--ro", "~/other"], script);
    assert_eq!(named.out(), "top secret\ntop secret\nharmless\nown\n", "{}", named.err());
}

/// Proves: FS-2 hidden
#[test]
fn an_explicit_grant_opens_a_secret_and_is_recorded() {
    let world = World::new();
    world.write("home/.ssh/id", "top secret\n");
    let output = inside(&world, &["--ro", "~/.ssh"], "cat ~/.ssh/id");
    assert_eq!(output.out(), "top secret\n", "{}", output.err());
    assert!(output.err().contains("list of secrets"), "{}", output.err());
    let report = output.report.unwrap();
    assert_eq!(report["approvals"][0]["what"], "secret-path");
    let both = inside(&world, &["--ro", "~/.ssh", "--blacklist", "~/.ssh"], "true");
    both.assert_code(125);
    assert!(both.err().contains("keep one of the two"), "{}", both.err());
    // A grant of what holds it is no grant of the secret.
    let around = inside(&world, &["--ro", "~"], "cat ~/.ssh/id");
    assert_eq!(around.out(), "");
    inside(&world, &["--rw", "~"], "cat ~/.ssh/id").assert_code(126);
}

/// Proves: FS-2 sockets
#[test]
fn control_sockets_and_session_buses_are_not_there() {
    if !am_root() {
        eprintln!("skipped: only root can put sockets into /run");
        return;
    }
    let world = World::new();
    let script = r#"
        mount -t tmpfs none /run
        mkdir -p /run/user/0 /run/podman
        for s in docker.sock podman/podman.sock user/0/bus; do
            /usr/bin/python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' /run/$s
        done
        find /run -type s | wc -l
        export XDG_RUNTIME_DIR=/run/user/0
        "$PALISADE" run -- sh -c 'find /run /var/run/ -type s; ls -ld $XDG_RUNTIME_DIR | cut -c1-10'
        "$PALISADE" run --static -- find /run /var/run/ -type s
    "#;
    let output = private_mounts(&world, script).run();
    assert_eq!(output.out(), "3\ndrwx------\n", "{}", output.err());
}
