//! The README's examples and the tour, run as typed: a promise to a newcomer is a promise like any other.
//! `…` stands for any text within a line; everything else has to be what is shown.

use std::os::unix::fs::symlink;

use palisade_testkit::{World, sandbox_program};

const README: &str = include_str!("../../README.md");
const TOUR: &str = include_str!("../../docs/tour.md");
const POLICIES: &str = include_str!("../../docs/policy.md");

struct Step<'a> {
    command: &'a str,
    shown: Vec<&'a str>,
}

/// The `$ ` lines of the `console` blocks, each with the lines shown below it.
fn tour() -> Vec<Step<'static>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    let mut inside = false;
    for line in README.lines().chain(TOUR.lines()) {
        match (inside, line) {
            (false, "```console") => inside = true,
            (true, "```") => inside = false,
            (true, line) => match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => steps.push(Step { command, shown: Vec::new() }),
                (None, Some(step)) => step.shown.push(line),
                (None, None) => panic!("output before any command: {line}"),
            },
            (false, _) => {}
        }
    }
    steps
}

pub(crate) fn fits(shown: &str, said: &str) -> bool {
    let mut parts = shown.split('…');
    let Some(mut rest) = parts.next().and_then(|first| said.strip_prefix(first)) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Proves: LIFE-3 run, LIFE-3 audit, LIFE-3 policy
#[test]
fn the_tour_works_as_typed() {
    let world = World::new();
    world.write("home/.ssh/id_ed25519", "a key\n");
    std::fs::create_dir(world.path().join("bin")).unwrap();
    symlink(sandbox_program(), world.path().join("bin/sandbox")).unwrap();
    let path = format!("{}:/usr/bin:/bin", world.path().join("bin").display());

    let steps = tour();
    assert!(steps.len() > 15, "the tour was not found: {} steps", steps.len());
    for step in steps {
        let output = world
            .bare("bash")
            .args(["-c", &format!("exec 2>&1\n{}", step.command)])
            .env("PATH", &path)
            .run();
        let said = output.out();
        let said: Vec<&str> = said.lines().collect();
        let all_fit = said.len() == step.shown.len()
            && step.shown.iter().zip(&said).all(|(shown, said)| fits(shown, said));
        assert!(all_fit, "$ {}\nshown: {:#?}\nsaid: {said:#?}", step.command, step.shown);
    }
}

/// Proves: POL-5 check, POL-2 yaml
#[test]
fn the_documented_policies_are_valid() {
    let world = World::new();
    let blocks: Vec<&str> =
        POLICIES.split("```yaml\n").skip(1).filter_map(|block| block.split("```").next()).collect();
    assert_eq!(blocks.len(), 3);
    for block in blocks {
        let file = world.write("documented.yaml", block);
        world.sandbox(["policy", "check"]).arg(file).run().assert_code(0);
    }
}

#[test]
fn an_ellipsis_stands_for_any_text_and_nothing_else_does() {
    assert!(fits("cat: …/key: No such file", "cat: /home/x/key: No such file"));
    assert!(fits("plain", "plain"));
    assert!(!fits("plain", "plainer"));
    assert!(!fits("a … c", "a b d"));
    assert!(fits("sound …: … records, head …", "sound /log: 5 records, head ab"));
}
