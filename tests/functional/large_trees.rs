//! Large directories that hold secrets, granted for reading: one mount that lacks them, not one for each file.

use std::fs;

use palisade_testkit::World;

use crate::inside::{eventually, inside};

/// More in the home directory than is mounted one by one.
fn crowded() -> World {
    let world = World::new();
    for number in 0..200 {
        world.write(format!("home/notes-{number}/letter"), "harmless\n");
    }
    world.write("home/.ssh/id", "top secret\n");
    world.write("home/.ssh/known_hosts", "hosts\n");
    world.write("home/.config/gh/hosts.yml", "top secret\n");
    world.write("home/.config/application/settings", "harmless\n");
    world.write("home/diary/today", "top secret\n");
    world
}

/// Proves: FS-2 hidden, FS-1 ro-flag
#[test]
fn a_crowded_home_is_readable_without_its_secrets_and_not_writable() {
    let world = crowded();
    let script = "cat ~/notes-150/letter ~/.config/application/settings; ls -A ~ | wc -l; \
                  ls -A ~ ~/.config | grep -E 'ssh|gh|diary'; \
                  cat ~/.ssh/id ~/.config/gh/hosts.yml ~/diary/today 2>/dev/null; \
                  touch ~/new ~/notes-1/new ~/.ssh ~/.config/new 2>/dev/null; mkdir ~/.aws 2>/dev/null; \
                  echo mine > made; cat made";
    for flags in [&["--static"][..], &[]] {
        let flags = [flags, &["--ro", "~", "--blacklist", "~/diary"]].concat();
        let output = inside(&world, &flags, script);
        output.assert_code(0);
        let text = output.out();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{flags:?}: {}{}", output.out(), output.err());
        assert_eq!((lines[0], lines[1], lines[3]), ("harmless", "harmless", "mine"));
        assert!(lines[2].parse::<usize>().unwrap() > 200, "{}", lines[2]);
        assert!(!world.home().join("new").exists() && !world.home().join(".aws").exists());
        assert_eq!(fs::read_to_string(world.project().join("made")).unwrap(), "mine\n");
    }
}

/// Proves: FS-2 hidden
#[test]
fn one_file_of_a_secret_directory_can_be_named_in_a_crowded_home() {
    let world = crowded();
    let flags = ["--ro", "~", "--ro", "~/.ssh/known_hosts"];
    let output = inside(&world, &flags, "ls ~/.ssh; cat ~/.ssh/known_hosts ~/.ssh/id");
    assert_eq!(output.out(), "known_hosts\nhosts\n", "{}", output.err());
}

/// Proves: FS-2 host-rename
#[test]
fn what_the_host_moves_over_a_hidden_name_in_a_crowded_home_stays_hidden() {
    let world = crowded();
    world.write("outside/new/.ssh/id", "top secret\n");
    let script = "echo ready; read go; cat ~/.ssh/id ~/.netrc ~/.config/gh/hosts.yml 2>/dev/null; \
                  ls -A ~ | grep -E 'ssh|netrc'; cat ~/notes-3/letter";
    let flags = ["--static", "--ro", "~"];
    let mut run = world.sandbox_run(flags, ["sh", "-c", script]).keep_stdin_open().spawn();
    run.wait_for_stdout("ready");
    fs::rename(world.home().join(".ssh"), world.outside().join("old")).unwrap();
    fs::rename(world.outside().join("new/.ssh"), world.home().join(".ssh")).unwrap();
    world.write("home/.netrc", "top secret\n");
    eventually("the rename", || world.home().join(".ssh/id").exists());
    run.send(b"go\n");
    let output = run.wait();
    output.assert_code(0);
    assert_eq!(output.out(), "ready\nharmless\n", "{}", output.err());
}
