//! `sandbox doctor` here, and on a host that forbids user namespaces; what `run` does there.

use palisade_testkit::{Output, World, am_root, sandbox_program};
use serde_json::Value;

fn findings(output: &Output) -> Vec<Value> {
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    report["findings"].as_array().unwrap().clone()
}

fn finding(output: &Output, id: &str) -> Value {
    let found = findings(output).into_iter().find(|finding| finding["id"] == id);
    found.unwrap_or_else(|| panic!("doctor says nothing of {id}: {}", output.out()))
}

/// Runs `sandbox` in a user namespace that allows no further one: what a hardened host does to
/// everybody. Root keeps the whole range of ids there, so that nothing else is missing.
fn without_user_namespaces(world: &World, arguments: &[&str]) -> Output {
    let forbid = "echo 0 >/proc/sys/user/max_user_namespaces";
    let sandbox = sandbox_program();
    let script = if am_root() {
        format!(
            "rm -f gate; mkfifo gate
            unshare -U --keep-caps sh -c 'read -r _ <gate; {forbid}; exec \"$@\"' sh \"$@\" &
            until ! [ /proc/$!/ns/user -ef /proc/$$/ns/user ]; do :; done
            echo 0 0 4294967295 >/proc/$!/uid_map; echo 0 0 4294967295 >/proc/$!/gid_map
            echo >gate; wait $!"
        )
    } else {
        format!(
            "exec unshare -U --map-current-user --keep-caps sh -c \
             '{forbid}; exec setpriv --ambient-caps=-all --inh-caps=-all \"$@\"' sh \"$@\""
        )
    };
    world.bare("bash").args(["-c", &script, "bash"]).arg(sandbox).args(arguments).run()
}

/// Proves: PROC-7 doctor, PROC-7 works
#[test]
fn everything_a_run_needs_works_here() {
    let world = World::new();
    let output = world.sandbox(["doctor", "--json"]).run();
    output.assert_code(0);
    for id in [
        "user-namespaces",
        "mount-namespaces",
        "pid-namespaces",
        "pivot-root",
        "network-namespaces",
        "seccomp",
    ] {
        let found = finding(&output, id);
        assert_eq!(found["health"], "works", "{found}");
    }
}

/// Proves: PROC-7 doctor-more, PROC-7 oldest-kernel
#[test]
fn doctor_looks_at_everything_it_should() {
    let world = World::new();
    let output = world.sandbox(["doctor", "--json"]).run();
    for id in [
        "apparmor",
        "seccomp-notify",
        "fuse",
        "cgroups",
        "openat2",
        "subordinate-ids",
        "yama",
        "nf-tables",
        "nat-helper",
    ] {
        let found = finding(&output, id);
        let works = found["health"] == "works";
        assert!(
            works || found["neededFor"].as_str().is_some_and(|text| !text.is_empty()),
            "{found}"
        );
    }
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["oldestKernel"], "5.12");
}

/// Proves: PROC-7 doctor, PROC-7 oldest-kernel
#[test]
fn the_text_says_what_the_json_says() {
    let world = World::new();
    let json = world.sandbox(["doctor", "--json"]).run();
    let text = world.sandbox(["doctor"]).run();
    text.assert_code(0);
    assert!(text.out().contains("oldest supported 5.12"), "{}", text.out());
    for found in findings(&json) {
        let what = found["what"].as_str().unwrap();
        let word = match found["health"].as_str().unwrap() {
            "works" => "works",
            "missing" => "missing",
            _ => "without",
        };
        let line = text.out().lines().find(|line| line.contains(what)).map(str::to_owned);
        assert!(line.is_some_and(|line| line.starts_with(word)), "{found}\n{}", text.out());
    }
}

/// Proves: PROC-7 doctor
#[test]
fn a_host_without_user_namespaces_is_told_how_to_mend_it() {
    let world = World::new();
    let output = without_user_namespaces(&world, &["doctor", "--json"]);
    output.assert_code(1);
    let found = finding(&output, "user-namespaces");
    assert_eq!(found["health"], "missing");
    assert!(found["detail"].as_str().unwrap().contains("ENOSPC"), "{found}");
    let fix = found["mend"].as_str().unwrap();
    assert!(fix.contains("sysctl -w user.max_user_namespaces="), "{fix}");
    assert!(fix.contains("--level 1 --no-userns"), "{fix}");
}

/// Proves: PROC-7 says-why, PROC-7 never-less
#[test]
fn a_run_there_fails_with_the_same_words_and_runs_nothing() {
    let world = World::new();
    let doctor = without_user_namespaces(&world, &["doctor", "--json"]);
    let fix = finding(&doctor, "user-namespaces")["mend"].as_str().unwrap().to_owned();
    for level in ["1", "2"] {
        let output =
            without_user_namespaces(&world, &["run", "--level", level, "--", "touch", "ran"]);
        output.assert_code(125);
        assert!(output.err().contains(&fix), "{}\ninstead of: {fix}", output.err());
        assert!(!world.project().join("ran").exists());
    }
}

/// Proves: PROC-7 no-userns
#[test]
fn landlock_and_seccomp_alone_work_there() {
    let world = World::new();
    let secret = world.write("outside/secret", "hidden");
    let script = format!("echo written >made; cat {} || echo kept out", secret.display());
    let flags = ["run", "--level", "1", "--no-userns", "--", "sh", "-c", &script];
    let output = without_user_namespaces(&world, &flags);
    if am_root() {
        assert_ne!(output.code(), 0, "without namespaces root's command would be root");
        assert!(output.err().contains("ordinary user"), "{}", output.err());
        assert!(!world.project().join("made").exists());
        return;
    }
    output.assert_code(0);
    assert_eq!(output.out(), "kept out\n", "{}", output.err());
    assert!(world.project().join("made").exists());
}
