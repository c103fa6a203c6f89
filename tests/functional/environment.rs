//! Variables and the working directory (PROC-8).

use std::os::unix::net::UnixListener;

use palisade_testkit::World;

use crate::inside::{host_script, inside};

/// Proves: PROC-8 inherit, PROC-8 scrubbed
#[test]
fn the_environment_is_inherited_without_what_looks_like_a_secret() {
    let world = World::new();
    let secrets = [
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_TOKEN",
        "SSH_AUTH_SOCK",
        "DB_PASSWORD",
        "OPENAI_API_KEY",
        "DOCKER_HOST",
        "KUBECONFIG",
        "my_secret_thing",
        "DBUS_SESSION_BUS_ADDRESS",
    ];
    let mut run = world.sandbox_run(["--env", "DB_PASSWORD"], ["env"]);
    for name in secrets {
        run = run.env(name, "hidden value");
    }
    let output = run.env("PLAIN", "plain value").env("AWS_REGION", "here").run();
    output.assert_code(0);
    for expected in
        ["PLAIN=plain value", "AWS_REGION=here", "DB_PASSWORD=hidden value", "SANDBOX=1"]
    {
        assert!(output.out().lines().any(|line| line == expected), "{expected}: {}", output.out());
    }
    assert_eq!(output.out().matches("hidden value").count(), 1, "{}", output.out());
    assert!(output.out().contains("\nSANDBOX_SESSION="), "{}", output.out());
    let report = output.report.unwrap().to_string();
    assert!(report.contains("GITHUB_TOKEN") && !report.contains("hidden value"), "{report}");
}

/// Each names something of the host that is not inside: a program would write, wait or fail there.
///
/// Proves: PROC-8 misleading
#[test]
fn variables_that_name_what_is_not_inside_are_not_passed_on() {
    let world = World::new();
    let outside = world.outside().display().to_string();
    let socket = world.outside().join("server.sock");
    let _listener = UnixListener::bind(&socket).unwrap();
    world.write("outside/agent.js", "");
    let script = "echo x >\"$TMPDIR/made\" && mktemp >/dev/null && node -p '6 * 7'; env";
    let output = world
        .sandbox_run([""; 0], ["sh", "-c", script])
        .env("TMPDIR", &outside)
        .env("XDG_CACHE_HOME", format!("{outside}/cache"))
        .env("TMUX", format!("{},1,0", socket.display()))
        .env("NODE_OPTIONS", format!("--require {outside}/agent.js"))
        .run();
    output.assert_code(0);
    assert!(output.out().starts_with("42\n"), "{}{}", output.out(), output.err());
    assert!(output.out().contains("\nTMPDIR=/tmp\n"), "{}", output.out());
    assert!(!output.out().contains(&outside), "{}", output.out());
    let bare = world.bare("node").args(["-p", "1"]).env("NODE_OPTIONS", "--require /no/such").run();
    assert_ne!(bare.code(), 0, "node starts without what it is to load, so nothing was shown");

    let plan = world.sandbox(["plan", "--full", "--", "true"]).env("TMPDIR", &outside).run();
    assert!(plan.out().contains("TMPDIR: /tmp in the sandbox"), "{}", plan.out());
}

/// Proves: PROC-8 clean
#[test]
fn a_clean_environment_holds_the_necessary_and_what_was_set() {
    let world = World::new();
    let output = world
        .sandbox_run(["--env-mode", "clean", "--env", "WANTED=yes"], ["env"])
        .env("PLAIN", "plain value")
        .run();
    output.assert_code(0);
    let mut names: Vec<_> = output
        .out()
        .lines()
        .filter_map(|line| line.split_once('=').map(|(name, _)| name.to_owned()))
        .collect();
    names.sort();
    let expected = ["HOME", "LANG", "PATH", "SANDBOX", "SANDBOX_SESSION", "TERM", "WANTED"];
    let others: Vec<_> = names.iter().filter(|name| !expected.contains(&name.as_str())).collect();
    assert!(
        others.iter().all(|name| matches!(name.as_str(), "USER" | "LOGNAME" | "PWD")),
        "{names:?}"
    );
    assert!(expected.iter().all(|name| names.contains(&(*name).to_owned())), "{names:?}");
}

/// Proves: PROC-8 explicit
#[test]
fn an_explicit_environment_holds_the_named_ones() {
    let world = World::new();
    let policy = world.write(
        "policy.yaml",
        "process: { envMode: explicit, allowedEnvVars: [PLAIN, PATH], env: { SET: here } }\n",
    );
    let output = world
        .sandbox_run(["--policy", policy.to_str().unwrap()], ["/usr/bin/env"])
        .env("PLAIN", "plain value")
        .env("OTHER", "other value")
        .run();
    output.assert_code(0);
    assert!(output.out().contains("PLAIN=plain value\n") && output.out().contains("SET=here\n"));
    assert!(!output.out().contains("OTHER") && !output.out().contains("LANG="), "{}", output.out());
}

/// Proves: PROC-8 working-directory
#[test]
fn the_working_directory_must_be_in_the_view() {
    let world = World::new();
    world.write_in_project("below/file", "");
    let outside = world.outside().display().to_string();
    let output = inside(&world, &["--cwd", "below"], "pwd; ls");
    assert_eq!(output.out(), format!("{}/below\nfile\n", world.project().display()));
    assert_eq!(inside(&world, &["--cwd", "/usr"], "pwd").out(), "/usr\n");
    let hidden = inside(&world, &["--cwd", &outside], "touch ran");
    hidden.assert_code(126);
    assert!(hidden.err().contains(&outside) && hidden.err().contains("--ro"), "{}", hidden.err());
    let granted = inside(&world, &["--cwd", &outside, "--ro", &outside], "pwd");
    assert_eq!(granted.out(), format!("{outside}\n"));
    inside(&world, &["--cwd", "/no/such/directory"], "true").assert_code(126);
}

/// Proves: PROC-8 working-directory
#[test]
fn a_missing_home_or_a_removed_directory_is_a_clear_error_or_no_matter() {
    let world = World::new();
    let gone = "mkdir gone && cd gone && rmdir ../gone && \"$PALISADE\" run -- touch ran";
    let output = host_script(&world, gone).run();
    output.assert_code(125);
    assert!(output.err().contains("current directory cannot be read"), "{}", output.err());
    assert!(!world.project().join("ran").exists());

    let unset = "unset HOME; \"$PALISADE\" run -- sh -c 'echo ran'";
    let output = host_script(&world, unset).run();
    output.assert_code(0);
    assert_eq!(output.out(), "ran\n");
}

/// Proves: POL-2 not-enforced
#[test]
fn choosing_ids_is_refused_until_it_is_held() {
    let world = World::new();
    let policy = world.write("policy.yaml", "process:\n  uid: 1234\n");
    let output = inside(&world, &["--policy", policy.to_str().unwrap()], "touch ran");
    output.assert_code(126);
    assert!(output.err().contains("process.uid") && output.err().contains("not enforced"));
    assert!(!world.project().join("ran").exists());
}

/// Proves: LIFE-3 losses-told
#[test]
fn variables_kept_back_and_a_network_that_is_off_are_told_at_the_end_and_not_with_quiet() {
    let world = World::new();
    let script = "exec 3<>/dev/tcp/203.0.113.7/80";
    let run = |options: &[&str], script: &str| {
        world
            .sandbox_run(options.iter().copied(), ["bash", "-c", script])
            .env("SOME_TOKEN", "hidden")
            .run()
    };
    let failed = run(&[], script);
    assert_ne!(failed.code(), 0);
    for told in ["SOME_TOKEN; pass one on with --env SOME_TOKEN", "the network is off", "1 attempt"]
    {
        assert!(failed.err().contains(told), "{told}: {}", failed.err());
    }
    // It went well, so nothing was missing.
    assert!(!run(&[], &format!("({script}) 2>/dev/null; true")).err().contains("network is off"));
    assert!(!run(&["--quiet"], script).err().contains("SOME_TOKEN"));
    assert!(!run(&[], "exit 3").err().contains("network is off"), "nothing was tried");
}
