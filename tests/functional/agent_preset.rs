//! The preset `agent`: a coding agent finds its settings, its login and its key, keeps what it writes there, and draws
//! its prompt without a question before it (AGENT-1). A stand-in has the name of one and behaves like it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use palisade_testkit::World;

use crate::tmux::Tmux;

/// Draws a box around its prompt, three times over itself, as such programs do while they start.
const STAND_IN: &str = r#"#!/bin/bash
test -e /.dockerenv
login=$(cat ~/.claude/login)
for step in 1 2 3; do
    printf '\r\033[K+--------------------+\n\033[K| prompt %s %-10s |\n\033[K+--------------------+\n' "$step" "$login"
    test "$step" = 3 || printf '\033[3A'
done
echo "key $ANTHROPIC_API_KEY, other key ${OPENAI_API_KEY-none}, sandbox $IS_SANDBOX"
read -r line
echo "$line" >> ~/.claude/history
echo "{\"last\": \"$line\"}" > ~/.claude.json
echo "answered $line"
"#;

fn stand_in(world: &World, name: &str) {
    let program = world.write_in_project(name, STAND_IN);
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Proves: AGENT-1 by-name, AGENT-1 no-question
#[test]
fn an_agent_draws_its_prompt_without_a_question_and_keeps_its_state() {
    for (columns, lines) in [(80, 24), (120, 40)] {
        let world = World::new();
        stand_in(&world, "claude");
        world.write("home/.claude/login", "known\n");
        let tmux = Tmux::new(&world);
        tmux.resize(columns, lines);
        tmux.line("export ANTHROPIC_API_KEY=a-key OPENAI_API_KEY=of-another");
        tmux.line("clear; sandbox run --preset agent -- ./claude");
        tmux.wait_for("key a-key, other key none, sandbox 1");
        let screen = tmux.screen();
        assert!(screen.contains("| prompt 3 known"), "{screen}");
        assert!(!screen.contains("prompt 2") && !screen.contains("wants to"), "{screen}");
        tmux.line("hello");
        tmux.wait_for_line("answered hello");
        tmux.expect_status(0);
        let kept = |path: &str| fs::read_to_string(world.home().join(path)).unwrap();
        assert_eq!(kept(".claude/history"), "hello\n");
        assert_eq!(kept(".claude.json"), "{\"last\": \"hello\"}\n", "made for it, and kept");
    }
}

/// Proves: AGENT-1 inner-sandbox, AGENT-1 by-name
#[test]
fn a_plan_says_what_is_set_for_an_agent_and_makes_nothing() {
    let world = World::new();
    let plan = |program: &str| {
        let output = world.sandbox(["plan", "--preset", "agent", "--", program, "exec"]).run();
        output.assert_code(0);
        format!("{}{}", output.out(), output.err())
    };
    for (program, parts) in [
        ("claude", &["IS_SANDBOX=1", "~/.claude", "api.anthropic.com"][..]),
        (
            "codex",
            &[
                "codex --sandbox=danger-full-access ",
                "--config=features.plugins=false",
                "~/.codex",
                "api.openai.com",
            ],
        ),
        (
            "gemini",
            &["GEMINI_SANDBOX=false", "SANDBOX=", "~/.gemini", "generativelanguage.googleapis.com"],
        ),
        ("opencode", &["OPENCODE_DISABLE_AUTOUPDATE=1", "~/.local/share/opencode", "models.dev"]),
        ("aider", &["AIDER_CHECK_UPDATE=false", "~/.aider", "api.deepseek.com"]),
        ("unheard-of", &["does not support `unheard-of`", "others are asked about"]),
    ] {
        let told = plan(program);
        for part in parts {
            assert!(told.contains(part), "{program}: no {part} in\n{told}");
        }
    }
    assert!(!world.home().join(".claude.json").exists() && !world.home().join(".claude").exists());
}

/// Proves: AGENT-1 by-name
#[test]
fn a_setting_that_was_typed_replaces_its_own_and_no_other() {
    let world = World::new();
    let words = ["plan", "--preset", "agent", "--", "codex", "--config=features.plugins=true"];
    let output = world.sandbox(words).run();
    output.assert_code(0);
    let told = format!("{}{}", output.out(), output.err());
    assert!(!told.contains("features.plugins=false"), "{told}");
    assert!(told.contains("check_for_update_on_startup=false"), "{told}");
}

/// Proves: AGENT-1 by-name
#[test]
fn a_secret_that_the_preset_names_is_not_told_as_an_option_that_was_typed() {
    let world = World::new();
    world.write("home/.claude.json", "{}\n");
    let notes = |words: &[&str]| {
        let output = world.sandbox(["plan", "--full"]).args(words).args(["--", "claude"]).run();
        output.assert_code(0);
        format!("{}{}", output.out(), output.err())
    };
    let told = notes(&["--preset", "agent"]);
    assert!(told.contains("shown because the preset names it"), "{told}");
    assert!(!told.contains("because --rw names it"), "{told}");
    let typed = notes(&["--rw", "~/.claude.json"]);
    assert!(typed.contains("shown because --rw names it"), "{typed}");
}

/// Proves: AGENT-1 by-name
#[test]
fn without_the_preset_an_agents_login_stays_a_secret() {
    let world = World::new();
    stand_in(&world, "claude");
    world.write("home/.claude/login", "known\n");
    let command = ["run", "--on-ask", "deny", "--", "./claude"];
    let output = world.sandbox(command).env("ANTHROPIC_API_KEY", "a-key").stdin("x\n").run();
    assert!(!output.out().contains("known") && !output.out().contains("a-key"), "{}", output.out());
}
