//! What people type, and what they mean by it: a forgotten word, completion, a project found from below, a policy to
//! start from (LIFE-3).

use std::fs;

use palisade_testkit::{Output, World, sandbox_program};

use crate::inside::eventually;

/// Proves: LIFE-3 did-you-mean
#[test]
fn a_program_in_place_of_a_command_is_not_run_and_the_line_is_told() {
    let world = World::new();
    let output = world.sandbox(["touch", "made here"]).run();
    output.assert_code(125);
    let told = "sandbox: `touch` is not a command of sandbox; did you mean `sandbox run -- touch 'made here'`?\n";
    assert_eq!((&*output.out(), &*output.err()), ("", told));
    assert!(!world.project().join("made here").exists());
}

/// Proves: LIFE-3 did-you-mean
#[test]
fn a_misspelt_option_is_told_with_the_one_that_was_meant() {
    let world = World::new();
    let output = world.sandbox(["run", "--tiemout", "5", "--", "touch", "made"]).run();
    output.assert_code(125);
    let err = output.err();
    let mut lines = err.lines();
    let wrong = "sandbox: unknown option --tiemout; did you mean --timeout?";
    assert_eq!((lines.next(), &*output.out()), (Some(wrong), ""));
    let usage = lines.next().unwrap();
    assert!(usage.starts_with("sandbox: usage: sandbox run "), "{usage}");
    assert!(usage.ends_with("see `sandbox run --help`") && lines.next().is_none(), "{err}");
    assert!(!world.project().join("made").exists());
    for (words, told) in [
        (&["run", "--timeout", "abc", "--", "true"][..], "must be a time such as"),
        (&["run", "--cwd", "~/missing", "--", "true"], "does not exist"),
        (&["why", "--read", "/x"], "unknown option --read\n"),
        (&["policy", "forget", "all"], "no saved rule matches `all`, so nothing was removed"),
        (&["doctor", "extra"], "unexpected argument `extra`"),
    ] {
        let output = world.sandbox(words).run();
        assert!(output.err().contains(told), "{words:?}: {}", output.err());
    }
}

/// Proves: LIFE-3 run
#[test]
fn two_hyphens_run_a_command() {
    let world = World::new();
    let output = world.sandbox(["--", "sh", "-c", "echo inside; exit 3"]).run();
    output.assert_code(3);
    assert_eq!(output.out(), "inside\n");
}

/// What bash would offer for these words, the last of which is being typed.
fn completed(world: &World, words: &[&str]) -> Vec<String> {
    let script = "source <(sandbox completions bash); COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
                  _sandbox; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let beside = sandbox_program().parent().unwrap().display().to_string();
    let bash = world.bare("bash").args(["--norc", "--noprofile", "-c", script, "bash", "sandbox"]);
    let output = bash.args(words).env("PATH", format!("{beside}:/usr/bin:/bin")).run();
    output.assert_code(0);
    output.out().lines().map(str::to_owned).collect()
}

/// Proves: LIFE-3 completions
#[test]
fn bash_completes_options_presets_sessions_and_the_command() {
    let world = World::new();
    assert_eq!(completed(&world, &["pla"]), ["plan"]);
    assert_eq!(completed(&world, &["run", "--pres"]), ["--preset"]);
    assert_eq!(completed(&world, &["run", "--preset", "stri"]), ["strict"]);
    let commands = completed(&world, &["run", "--", "mkdi"]);
    assert!(commands.contains(&"mkdir".to_owned()), "{commands:?}");
    let run = world.sandbox(["run", "--quiet", "--", "cat"]).keep_stdin_open().spawn();
    let running = || completed(&world, &["top", ""]);
    eventually("the run is announced", || running().first().is_some_and(|it| it.len() == 36));
    let sessions = running();
    assert_eq!(completed(&world, &["net", &sessions[0][..20]]), sessions);
    run.wait().assert_code(0);
}

/// Proves: LIFE-3 completions, LIFE-3 manual
#[test]
fn scripts_and_pages_come_from_the_program() {
    let world = World::new();
    for (shell, part) in
        [("bash", "complete -F"), ("zsh", "#compdef sandbox"), ("fish", "complete -c")]
    {
        let output = world.sandbox(["completions", shell]).run();
        output.assert_code(0);
        assert!(output.out().contains(part), "{shell}: {}", output.out());
    }
    let page = world.sandbox(["man", "run"]).run();
    page.assert_code(0);
    assert!(
        page.out().contains(".TH sandbox-run 1") && page.out().contains("best\\-effort\\-limits")
    );
    world.sandbox(["man", "ls"]).run().assert_code(125);
}

fn plan_of(world: &World, directory: &str) -> Output {
    let output = world.sandbox(["plan", "--", "true"]).cwd(world.project().join(directory)).run();
    output.assert_code(0);
    output
}

/// Proves: FS-1 project-markers, LIFE-3 plan-summary
#[test]
fn a_project_is_found_from_below_by_what_lies_in_it_and_named_once() {
    let world = World::new();
    world.write_in_project("package.json", "{}\n");
    world.write_in_project("src/deep/x", "");
    let plan = plan_of(&world, "src/deep");
    assert_eq!(plan.out().lines().count(), 10, "{}", plan.out());
    let root = world.project().display().to_string();
    let told = format!("project    {root} (found by package.json), writable\n");
    assert!(plan.out().contains(&told), "{}", plan.out());
    let run = || {
        let script = "echo new > ../../made; echo ok";
        let directory = world.project().join("src/deep");
        world.sandbox(["run", "--", "sh", "-c", script]).cwd(directory).run()
    };
    let first = run();
    assert_eq!((first.code(), &*first.out()), (0, "ok\n"), "{}", first.err());
    assert_eq!(first.err(), format!("sandbox: the project is {root}, found by package.json\n"));
    assert_eq!(fs::read_to_string(world.project().join("made")).unwrap(), "new\n");
    assert_eq!(run().err(), "", "it is known now");
}

/// Proves: POL-5 init
#[test]
fn a_policy_to_start_from_is_sound_and_written_once() {
    let world = World::new();
    for (flags, directory) in [
        (&[][..], world.home().join(".config/palisade")),
        (&["--project"], world.project().join(".palisade")),
    ] {
        let init = || world.sandbox(["policy", "init"]).args(flags).run();
        init().assert_code(0);
        let policy = directory.join("policy.yaml");
        let text = fs::read_to_string(&policy).unwrap();
        assert!(
            text.starts_with("# yaml-language-server: $schema=./policy.schema.json\n"),
            "{text}"
        );
        let schema = fs::read_to_string(directory.join("policy.schema.json")).unwrap();
        let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
        assert!(schema["properties"]["network"].is_object());
        world.sandbox(["policy", "check"]).arg(&policy).run().assert_code(0);
        fs::write(&policy, "version: 1\n").unwrap();
        init().assert_code(125);
        assert_eq!(fs::read_to_string(&policy).unwrap(), "version: 1\n", "nothing is overwritten");
    }
    world.sandbox(["run", "--", "true"]).run().assert_code(0);
}

/// Proves: LIFE-3 did-you-mean
#[test]
fn a_quoted_line_in_place_of_a_program_is_told_as_one() {
    let world = World::new();
    let output = world.sandbox(["run", "--", "ls -la"]).run();
    output.assert_code(127);
    assert!(output.err().contains("the quotes make it one word"), "{}", output.err());
    let plain = world.sandbox(["run", "--", "no-such-program"]).run();
    plain.assert_code(127);
    assert!(!plain.err().contains("quotes"), "{}", plain.err());
}
