//! `sandbox bwrap`: lines of bubblewrap, with our walls.

use palisade_testkit::{Output, World, is_alive, node_packages, sandbox_program};
use serde_json::json;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// What programs need of the host.
const SYSTEM: [&str; 12] = [
    "--ro-bind",
    "/usr",
    "/usr",
    "--symlink",
    "usr/bin",
    "/bin",
    "--symlink",
    "usr/lib",
    "/lib",
    "--symlink",
    "usr/lib64",
    "/lib64",
];

/// What a shell prints at the end of this line of options.
fn shell(world: &World, options: &[&str], script: &str) -> Output {
    let line = options.iter().copied().chain(["--", "sh", "-c", script]);
    world.sandbox(["bwrap"]).args(line).run()
}

/// The same line gives the same output and exit code as bubblewrap itself.
///
/// Proves: TOOL-6 bubblewrap-lines
#[test]
fn lines_of_bubblewrap_do_what_they_do_there() {
    let world = World::new();
    world.write_in_project("file", "content\n");
    world.write_in_project("sub/deep", "deep\n");
    let project = world.project();
    let project = project.to_str().unwrap();
    let root = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all"];
    let system = [&SYSTEM[..], &["--dev", "/dev", "--proc", "/proc", "--unshare-all"]].concat();
    let bound = ["--bind", project, project];
    let elsewhere = ["--bind", project, "/work/here", "--chdir", "/work/here"];
    let covered = ["--bind", project, project, "--tmpfs", &format!("{project}/sub")];
    let read_only = ["--bind", project, "/work", "--remount-ro", "/work", "--chdir", "/work"];
    let variables = ["--setenv", "A", "one two", "--unsetenv", "LANG", "--hostname", "there"];
    let cases: [(&[&str], &[&str], &str); 10] = [
        (&root, &bound, "cat file; pwd; echo x > new && cat new; exit 3"),
        (&root, &[], "cat /etc/hostname > /dev/null && echo read; echo x > /etc/x || echo no"),
        (&system, &elsewhere, "pwd; ls; cat sub/deep; echo y > new; cat new"),
        (&system, &[], "ls /home /srv || echo none; pwd"),
        (&root, &covered, "ls sub; echo z > sub/z; cat sub/z"),
        (&system, &read_only, "cat file; echo x > file || echo no"),
        (&root, &variables, "echo $A ${LANG-unset}; hostname"),
        (
            &root,
            &["--clearenv", "--setenv", "PATH", "/usr/bin:/bin"],
            "env | grep -Ev '^(PWD|SANDBOX.*|USER|LOGNAME)=' | sort",
        ),
        (
            &root,
            &["--tmpfs", "/tmp", "--dir", "/tmp/made", "--chdir", "/tmp/made"],
            "pwd; echo t > t; cat t",
        ),
        (&root, &[], "kill -TERM $$"),
    ];
    for (first, then, script) in cases {
        let line: Vec<&str> = first.iter().chain(then).copied().collect();
        let line = [&line[..], &["--", "sh", "-c", script]].concat();
        let theirs = world.bare("bwrap").args(&line).run();
        let _ = fs::remove_file(world.project().join("new"));
        let ours = world.sandbox(["bwrap"]).args(&line).run();
        let _ = fs::remove_file(world.project().join("new"));
        assert_eq!(ours.out(), theirs.out(), "{script}\n{}\n{}", ours.err(), theirs.err());
        assert_eq!(ours.code(), theirs.code(), "{script}");
    }
    assert!(!world.project().join("sub/z").exists());
}

/// What bubblewrap shows, and a sandbox does not: secrets, other programs' files in /tmp, names that the host would run.
///
/// Proves: TOOL-6 bubblewrap-walls, FS-9 no-placeholder
#[test]
fn walls_stand_around_what_is_listed() {
    let world = World::new();
    world.git_init();
    world.write("home/.ssh/id", "top secret\n");
    let home = world.home();
    let project = world.project();
    let project = project.to_str().unwrap();
    let secret = home.join(".ssh/id");
    let options = [
        "--ro-bind",
        "/",
        "/",
        "--bind",
        project,
        project,
        "--ro-bind",
        "/dev/null",
        &format!("{project}/.planted"),
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--unshare-all",
    ];
    let script = format!(
        "cat {}; grep -c . /proc/self/mountinfo > /dev/null; echo x > .git/hooks/pre-commit; echo x > .planted; \
         grep CapEff /proc/self/status; grep Seccomp: /proc/self/status; ls -A {project}",
        secret.display()
    );
    let theirs = world.bare("bwrap").args(options).args(["sh", "-c", "cat ~/.ssh/id"]).run();
    assert_eq!(theirs.out(), "top secret\n", "{}", theirs.err());
    // bubblewrap makes what it mounts on, and leaves it there.
    fs::remove_file(world.project().join(".planted")).unwrap();
    let ours = shell(&world, &options, &script);
    assert!(!ours.out().contains("secret"), "{}", ours.out());
    assert!(ours.out().contains("CapEff:\t0000000000000000"), "{}", ours.out());
    assert!(ours.out().contains("Seccomp:\t2"), "{}", ours.out());
    assert!(!world.project().join(".git/hooks/pre-commit").exists());
    assert!(!world.project().join(".planted").exists(), "{}", ours.err());
    assert_eq!(ours.err().matches("Permission denied").count(), 2, "{}", ours.err());
}

/// As srt has it: a proxy outside, reached by a socket that the line lists.
///
/// Proves: TOOL-6 bubblewrap-lines
#[test]
fn a_socket_that_is_listed_is_reached_and_nothing_else() {
    let world = World::new();
    let path = world.home().join("proxy.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let heard = thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        let mut text = String::new();
        connection.read_to_string(&mut text).unwrap();
        text
    });
    let place = path.to_str().unwrap();
    let options = [&SYSTEM[..], &["--bind", place, "/run/proxy.sock", "--unshare-net"]].concat();
    let script = "perl -MIO::Socket::UNIX -e 'my $s = IO::Socket::UNIX->new(Peer => \"/run/proxy.sock\") or die $!; print $s \"hello\";'; \
                  cat /proc/net/dev | grep -vc lo:";
    let output = shell(&world, &options, script);
    assert_eq!(heard.join().unwrap(), "hello", "{}", output.err());
    assert_eq!(output.out(), "2\n");
}

/// Proves: TOOL-6 bubblewrap-refusals
#[test]
fn what_has_no_meaning_here_is_an_error_and_nothing_runs() {
    let world = World::new();
    for (options, said) in [
        (&["--cap-add", "ALL"][..], "no capabilities"),
        (&["--bind", "/nowhere", "/nowhere"], "/nowhere: no such file"),
        (&["--bind", "/sys", "/sys"], "/sys is always private"),
        (&["--bind", "/usr", "/usr", "--size"], "--size: `--`"),
        (&["--bindd", "/"], "not an option of bubblewrap"),
        (&["--info-fd", "1"], "no descriptor"),
        (&["--tmpfs", "/usr/share/palisade-none"], "the listed place /usr/share/palisade-none"),
    ] {
        let line = ["--ro-bind", "/usr", "/usr"].into_iter().chain(options.iter().copied());
        let line: Vec<&str> = line.collect();
        let output = shell(&world, &line, "echo ran");
        assert_ne!(output.code(), 0, "{options:?}");
        assert!(!output.out().contains("ran"), "{options:?}");
        assert!(output.err().contains(said), "{options:?}: {}", output.err());
    }
    let minimal = world.write("home/minimal.yaml", "version: 1\nview: minimal\n");
    let widened = world
        .sandbox(["bwrap", "--ro-bind", "/", "/", "true"])
        .env("SANDBOX_POLICY", minimal)
        .run();
    assert!(widened.err().contains("view: minimal"), "{}", widened.err());
}

/// By a link of its name, as a program finds it in `PATH`; and it ends with the program that called it.
///
/// Proves: TOOL-6 bubblewrap-lines
#[test]
fn a_program_finds_it_by_its_name_and_takes_it_with_it() {
    let world = World::new();
    let directory = world.path().join("bin");
    fs::create_dir(&directory).unwrap();
    symlink(sandbox_program(), directory.join("bwrap")).unwrap();
    let path = format!("{}:/usr/bin:/bin", directory.display());
    let version = world.bare("sh").args(["-c", "bwrap --version"]).env("PATH", &path).run();
    assert!(version.out().starts_with("bubblewrap "), "{}", version.out());
    let pids = world.project().join("pids");
    let script = "bwrap --ro-bind / / --bind . . --dev /dev --proc /proc --die-with-parent sh -c 'echo up > up; sleep 1000' & \
                  echo $! > pids; until [ -e up ]; do sleep 0.02; done; kill -9 $$";
    let killed = world.bare("sh").args(["-c", script]).env("PATH", &path).run();
    assert_ne!(killed.code(), 0, "{}", killed.err());
    let pid: u32 = fs::read_to_string(pids).unwrap().trim().parse().unwrap();
    crate::sessions_support::wait_until("it has ended", || !is_alive(pid));
}

/// A home directory with a secret in it is shown child by child, and children come and go while a run starts.
///
/// Proves: TOOL-6 bubblewrap-lines
#[test]
fn what_comes_and_goes_beside_a_secret_stops_no_run() {
    let world = World::new();
    world.write("home/.ssh/id", "top secret\n");
    let home = world.home();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0_u32;
            while !is_over.load(Ordering::Relaxed) {
                let directory = home.join(format!("passing-{}", number % 40));
                let _ = fs::create_dir(&directory);
                let _ = fs::remove_dir(home.join(format!("passing-{}", (number + 7) % 40)));
                number += 1;
            }
        });
        let codes: Vec<i32> = (0..12)
            .map(|_| {
                let output = shell(&world, &["--ro-bind", "/", "/", "--unshare-all"], "true");
                output.code()
            })
            .collect();
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(codes, [0; 12]);
    });
}

/// A program that calls bubblewrap, unchanged: its commands run with our walls, and what it denies itself is denied, too.
///
/// Proves: TOOL-6 bubblewrap-lines, TOOL-6 bubblewrap-walls
#[test]
fn srt_runs_its_commands_here() {
    let world = World::new();
    world.git_init();
    world.write("home/.ssh/id", "top secret\n");
    world.write("home/.aws/credentials", "top secret\n");
    let directory = world.path().join("bin");
    fs::create_dir(&directory).unwrap();
    symlink(sandbox_program(), directory.join("bwrap")).unwrap();
    let path = format!("{}:/usr/bin:/bin", directory.display());
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [], "allowAllUnixSockets": true },
        "filesystem": { "denyRead": [], "allowWrite": ["."], "denyWrite": ["kept"] },
    });
    let settings = world.write("srt.json", settings.to_string());
    world.write_in_project("kept", "old\n");
    let script = "echo made > made; echo new > kept; echo x > .git/hooks/pre-commit; echo x > .mcp.json; \
                  cat ~/.ssh/id ~/.aws/credentials; echo \"$SANDBOX $(cat made)\"; exit 4";
    let srt = node_packages("srt").join("@anthropic-ai/sandbox-runtime/dist/cli.js");
    let srt = world.bare("node").arg(srt).arg("--settings").arg(settings);
    let output = srt.args(["sh", "-c", script]).env("PATH", path).run();
    assert_eq!((output.out().trim(), output.code()), ("1 made", 4), "{}", output.err());
    assert_eq!(fs::read_to_string(world.project().join("kept")).unwrap(), "old\n");
    assert_eq!(fs::read_to_string(world.project().join("made")).unwrap(), "made\n");
    for planted in [".git/hooks/pre-commit", ".mcp.json"] {
        assert!(!world.project().join(planted).exists(), "{planted}");
    }
}

/// The same for an agent's own sandbox. It takes no `bwrap` that its commands could replace, and looks for its own then.
///
/// Proves: TOOL-6 bubblewrap-lines, TOOL-6 bubblewrap-walls
#[test]
fn codex_runs_its_commands_here() {
    let world = World::new();
    world.git_init();
    world.write("home/.aws/credentials", "top secret\n");
    let script = format!("#!/bin/sh\nexec {} bwrap \"$@\"\n", sandbox_program().display());
    let bwrap = world.write("bin/bwrap", script);
    fs::set_permissions(&bwrap, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bwrap.parent().unwrap().display());
    let codex = node_packages("codex").join("@openai/codex/bin/codex.js");
    let state = world.write("home/.codex/config.toml", "");
    let temporary = world.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let run = |script: &str| {
        let codex =
            world.bare("node").arg(&codex).args(["sandbox", "-c", "sandbox_mode=workspace-write"]);
        let codex = codex.args(["--", "sh", "-c", script]).env("PATH", &path);
        codex.env("CODEX_HOME", state.parent().unwrap()).env("TMPDIR", &temporary).run()
    };
    // It makes this one whatever TMPDIR says, and leaves it.
    let user = rustix::process::geteuid().as_raw();
    let left = format!("/tmp/codex-daemon-{user}");
    let was_there = Path::new(&left).exists();
    let output = run(
        "echo made > made; echo x > .git/hooks/pre-commit; echo x > .envrc; cat ~/.aws/credentials; \
         echo \"$SANDBOX $(cat made)\"; exit 4",
    );
    if !was_there {
        fs::remove_dir(&left).unwrap();
    }
    assert_eq!((output.out().trim(), output.code()), ("1 made", 4), "{}", output.err());
    assert_eq!(fs::read_to_string(world.project().join("made")).unwrap(), "made\n");
    for planted in [".git/hooks/pre-commit", ".envrc"] {
        assert!(!world.project().join(planted).exists(), "{planted}");
    }
}
