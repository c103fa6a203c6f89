//! Static mode shows the host read-only, less homes and what is hidden; dynamic mode hides what nobody
//! listed and says so (GATE-7, GATE-1).

use std::fs;
use std::path::Path;

use palisade_testkit::World;

use crate::inside::inside;

/// Proves: GATE-7 read-only-view, GATE-1 default-dynamic
#[test]
fn static_mode_shows_what_dynamic_mode_hides() {
    let world = World::new();
    world.write("home/notes/letter", "text\n");
    let script = "ls -d /srv /var/log; cat ~/notes/letter 2>/dev/null; true";
    let shown = inside(&world, &["--static"], script);
    assert_eq!(shown.out(), "/srv\n/var/log\n", "{}", shown.err());
    let named = inside(&world, &["--static", "--ro", "~/notes"], script);
    assert_eq!(named.out(), "/srv\n/var/log\ntext\n", "{}", named.err());
    let written = "touch ~/notes/new /srv/new 2>/dev/null && echo wrote; touch ~/new in-project";
    let written = inside(&world, &["--static", "--ro", "~/notes"], written);
    written.assert_code(0);
    assert_eq!(written.out(), "");
    assert!(!world.home().join("new").exists(), "the home directory is the run's own");
    assert_eq!(fs::read_dir(world.home().join("notes")).unwrap().count(), 1);
    assert!(world.project().join("in-project").exists());

    let hidden = inside(&world, &[], "cat ~/notes/letter; ls -d /srv /var/log; ls -A ~");
    assert_eq!(hidden.out(), "project\n");
    let report = hidden.report.unwrap();
    assert_eq!(report["walls"]["mode"], "dynamic");
}

/// Proves: GATE-7 read-only-view
#[test]
fn other_peoples_homes_stay_out_of_a_static_view() {
    let world = World::new();
    world.write("outside/file", "");
    let script = format!("ls -A /home; ls -A /root; ls {}", world.outside().display());
    let output = inside(&world, &["--static"], &script);
    // Directories on the way to the caller's own home are there, with nothing else in them.
    let home = world.home();
    for name in output.out().lines() {
        let is_on_the_way =
            ["/home", "/root"].iter().any(|homes| home.starts_with(Path::new(homes).join(name)));
        assert!(is_on_the_way, "{name}");
    }
    assert!(output.out().lines().count() <= 1, "{}", output.out());
}

/// Proves: GATE-7 deny-list, GATE-7 overlays, GATE-7 no-questions
#[test]
fn static_mode_denies_overlays_and_asks_nothing() {
    let world = World::new();
    world.write("home/notes/letter", "text\n");
    world.write("home/diary/today", "secret\n");
    world.write("home/.ssh/id", "key\n");
    let script = "cat ~/diary/today ~/.ssh/id 2>/dev/null; cat ~/notes/letter; \
                  echo changed > ~/notes/letter; cat ~/notes/letter; cat";
    let flags = ["--static", "--ro", "~", "--blacklist", "~/diary", "--overlay", "~/notes"];
    let output = world.sandbox_run(flags, ["sh", "-c", script]).stdin("own input\n").run();
    output.assert_code(0);
    assert_eq!(output.out(), "text\nchanged\nown input\n");
    assert_eq!(output.err(), "");
    assert_eq!(fs::read_to_string(world.home().join("notes/letter")).unwrap(), "text\n");
}

/// Proves: GATE-7 no-questions, POL-2 not-enforced
#[test]
fn answers_that_need_questions_are_refused_and_deny_is_not() {
    let world = World::new();
    inside(&world, &["--static", "--on-ask", "deny"], "true").assert_code(0);
    for answer in ["allow", "wait"] {
        let output = inside(&world, &["--static", "--on-ask", answer], "touch ran");
        output.assert_code(126);
        assert!(output.err().contains("nothing is asked in this run"), "{}", output.err());
    }
    assert!(!world.project().join("ran").exists());
}
