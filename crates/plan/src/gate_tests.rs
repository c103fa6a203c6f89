use crate::facts::HostFacts;
use crate::fake::{FakeTree, plan, policy, user};
use crate::model::{Answers, Gate, Nature};
use palisade_policy::model::{GateChoice, Mode, Policy, View};
use std::path::{Path, PathBuf};

fn developer() -> FakeTree {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/.ssh").dir("/home/u/.cargo/bin").dir("/home/u/.cargo/registry");
    tree.file("/home/u/.cargo/credentials.toml", "").file("/srv/keys/id", "");
    tree.link("/home/u/.gnupg", "/srv/keys").dir("/home/u/private");
    tree
}

fn gate_of(policy: &Policy) -> Option<Gate> {
    let facts = HostFacts { homes: vec!["/home/u".into(), "/home/other".into()], ..user() };
    plan(policy, &facts, &developer()).unwrap().sandbox.gate
}

fn gate() -> Gate {
    gate_of(&policy()).unwrap()
}

/// Proves: GATE-1 default-dynamic, GATE-7 no-questions
#[test]
fn questions_belong_to_dynamic_mode_and_the_hosts_view() {
    assert!(gate_of(&policy()).is_some());
    assert_eq!(gate_of(&Policy { mode: Mode::Static, ..policy() }), None);
    assert_eq!(gate_of(&Policy { view: View::Minimal, ..policy() }), None);
}

fn served() -> HostFacts {
    HostFacts {
        homes: vec!["/home/u".into(), "/home/other".into(), "/home/u/service".into()],
        serves_gate: true,
        ..user()
    }
}

/// Proves: GATE-7 readable-home, GATE-7 left-out
#[test]
fn static_mode_shows_the_own_home_by_rule_where_a_file_system_can_be_served() {
    let fixed = Policy { mode: Mode::Static, ..policy() };
    let mut tree = developer();
    tree.dir("/var/log/apt").dir("/var/spool");
    let plan = plan(&fixed, &served(), &tree).unwrap();
    let gate = plan.sandbox.gate.unwrap();
    assert!(gate.is_fuse() && !gate.uses_on_ask() && !gate.asks_people());
    let shown = ["/home/u", "/var/log", "/srv"].map(PathBuf::from);
    assert_eq!(gate.answers, Answers::Readable(shown.into()));
    assert!(!gate.mounted.iter().any(|mounted| mounted.starts_with("/srv")), "{:?}", gate.mounted);
    for told in ["/home/u", "/home/u/other/src", "/home/u/.config", "/srv", "/var", "/var/log/apt"]
    {
        assert!(gate.is_told_by_rule(Path::new(told)), "{told}");
    }
    // Of directories on the way, only the names are shown.
    assert!(gate.shows_within(Path::new("/var/log")) && !gate.shows_within(Path::new("/var")));
    let unmapped: Vec<&Path> = gate.shown_unmapped().collect();
    assert_eq!(unmapped, [Path::new("/var/log"), Path::new("/srv")]);
    for hidden in [
        "/home/other/x",
        "/home/u/service/x",
        "/var/spool",
        "/srv/keys/id",
        "/home/u/.ssh",
        "/home/u/other/.env",
        "/home/u/.npm",
    ] {
        assert!(!gate.is_told_by_rule(Path::new(hidden)), "{hidden}");
    }
    let says = |text: &str| plan.explanation.notes.iter().any(|note| note.text.contains(text));
    assert!(says("is shown when it is used, except secrets"), "{:?}", plan.explanation.notes);
}

/// Proves: GATE-7 said
#[test]
fn static_mode_says_why_the_rest_of_the_home_is_hidden() {
    let fixed = Policy { mode: Mode::Static, ..policy() };
    let notify = Policy { gate: GateChoice::Notify, ..fixed.clone() };
    for (policy, facts, why) in
        [(&fixed, user(), "/dev/fuse cannot be opened"), (&notify, served(), "the policy says so")]
    {
        let plan = plan(policy, &facts, &developer()).unwrap();
        assert_eq!(plan.sandbox.gate, None, "{why}");
        let mut notes = plan.explanation.notes.iter().map(|note| &note.text);
        assert!(notes.any(|note| note.starts_with("mode static") && note.contains(why)), "{why}");
        let promise = plan.explanation.promises.iter().find(|it| it.id == "GATE-7").unwrap();
        assert!(promise.remark.is_some(), "{why}");
    }
    // A home that is named is in the view already.
    let mut named = fixed.clone();
    named.filesystem.read_only_paths = vec!["/home/u".into()];
    let gate = plan(&named, &served(), &developer()).unwrap().sandbox.gate.unwrap();
    assert_eq!(gate.answers, Answers::Readable(vec!["/var/log".into(), "/srv".into()]));
    // Landlock has to know where the listed programs are, and the command where it starts.
    let mut listing = fixed.clone();
    listing.process.allowed_executables = vec!["/usr/bin/true".into()];
    let standing = HostFacts { cwd: "/srv/work".into(), ..served() };
    for (policy, facts) in [(&listing, served()), (&fixed, standing)] {
        let mut tree = developer();
        tree.file("/usr/bin/true", "").dir("/srv/work");
        let gate = plan(policy, &facts, &tree).unwrap().sandbox.gate.unwrap();
        assert!(gate.shows_within(Path::new("/home/u/other")));
        assert!(!gate.shows_within(Path::new("/srv/x")));
        assert!(
            gate.mounted.iter().any(|mounted| mounted.starts_with("/srv")),
            "{:?}",
            gate.mounted
        );
    }
}

/// Proves: GATE-1 grounds
#[test]
fn only_our_own_scaffolding_is_ground_for_a_question() {
    let mut policy = policy();
    policy.filesystem.read_only_paths = vec!["/home/u/.cargo".into()];
    let gate = gate_of(&policy).unwrap();
    assert_eq!(gate.grounds[..2], [PathBuf::from("/"), "/home/u".into()]);
    assert!(gate.grounds.contains(&"/home/u/.cargo".into()), "{:?}", gate.grounds);
    for mounted in ["/usr", "/tmp", "/proc", "/home/u/project", "/home/u"] {
        assert!(gate.mounted.contains(&mounted.into()), "{mounted}");
        assert!(mounted == "/home/u" || !gate.grounds.contains(&mounted.into()), "{mounted}");
    }
}

/// Proves: GATE-1 never-asked
#[test]
fn the_runs_own_and_what_the_policy_denies_are_never_asked_about() {
    let mut policy = policy();
    policy.filesystem.denied_paths = vec!["/home/u/private".into(), "/opt/secret".into()];
    let facts = HostFacts { own_paths: vec!["/home/u/.state".into()], ..user() };
    let gate = plan(&policy, &facts, &developer()).unwrap().sandbox.gate.unwrap();
    for never in [
        "/proc/1/environ",
        "/sys/kernel",
        "/dev/sda",
        "/run/x",
        "/tmp/x",
        "/var/tmp/x",
        "/home/u/private/x",
        "/opt/secret",
        "/home/u/.state/log",
    ] {
        assert_eq!(gate.nature(Path::new(never)), Nature::Never, "{never}");
    }
    assert_eq!(gate.nature(Path::new("/opt/secretary")), Nature::Ordinary);
}

/// Proves: FS-2 asked-in-red
#[test]
fn secrets_are_known_by_place_by_name_and_by_what_they_link_to() {
    let gate = gate();
    for secret in [
        "/home/u/.ssh/id_ed25519",
        "/home/u/.ssh",
        "/srv/keys/id",
        "/home/u/.cargo/credentials.toml",
        // What is not there yet, also of others.
        "/home/u/.aws/credentials",
        "/home/other/.ssh/id",
        "/home/u/.config/google-chrome-beta/x",
        "/home/u/.env.production",
        "/srv/app/.env",
        "/var/lib/docker/x",
        "/etc/ssh/ssh_host_rsa_key",
    ] {
        assert_eq!(gate.nature(Path::new(secret)), Nature::Secret, "{secret}");
    }
    for ordinary in [
        "/home/u/notes",
        "/home/u/.config/nvim",
        "/srv/data",
        "/home/u/.sshfs",
        "/srv/.env.example",
    ] {
        assert_eq!(gate.nature(Path::new(ordinary)), Nature::Ordinary, "{ordinary}");
    }
}

#[test]
fn without_hidden_secrets_they_are_files_like_others() {
    let mut policy = policy();
    policy.filesystem.hide_secrets = false;
    let gate = gate_of(&policy).unwrap();
    assert_eq!(gate.nature(Path::new("/home/u/.ssh/id")), Nature::Ordinary);
    assert!(!gate.holds_hidden(Path::new("/home/u/.local/share")));
    assert!(self::gate().holds_hidden(Path::new("/home/u/.local/share")));
}

/// Proves: GATE-4 tree
#[test]
fn a_directory_that_holds_what_a_tree_must_not_show_is_known() {
    let gate = gate();
    for holds in
        ["/", "/home", "/home/u", "/srv", "/srv/keys", "/home/u/.config", "/var/lib", "/run"]
    {
        assert!(gate.holds_hidden(Path::new(holds)), "{holds}");
    }
    for free in ["/opt/sdk", "/srv/data", "/home/u/.config/nvim", "/home/u/notes"] {
        assert!(!gate.holds_hidden(Path::new(free)), "{free}");
    }
}

#[test]
fn where_the_policy_says_which_programs_start_none_is_asked_about() {
    assert!(gate().executes);
    let mut policy = policy();
    policy.process.allow_exec = false;
    assert!(!gate_of(&policy).unwrap().executes);
}

/// Proves: GATE-1 above-project, GATE-1 container-probes
#[test]
fn the_directories_above_the_project_are_known_with_what_tools_look_for_there() {
    let gate = gate();
    assert_eq!(gate.above_project, ["/home/u", "/home", "/"].map(PathBuf::from));
    assert_eq!(gate.private_home, Some("/home/u".into()));
    for probe in
        ["/home/u/pyproject.toml", "/home/u/.git/config", "/tox.ini", "/home/.eslintrc.json"]
    {
        assert!(gate.is_probe(Path::new(probe)), "{probe}");
    }
    // Where programs look for a container.
    for probe in ["/.dockerenv", "/.singularity.d/env"] {
        assert!(gate.is_probe(Path::new(probe)), "{probe}");
    }
    // What tools keep for themselves in every home.
    for own in ["/home/u/.cargo/.package-cache", "/home/u/.npm/_npx/8f49"] {
        assert!(gate.is_probe(Path::new(own)), "{own}");
    }
    for other in [
        "/home/u/notes",
        "/home/u/.config/tool",
        "/home/u/other/pyproject.toml",
        "/usr/pyproject.toml",
    ] {
        assert!(!gate.is_probe(Path::new(other)), "{other}");
    }
}

/// Proves: GATE-1 own-directories
#[test]
fn only_directories_that_nobody_planned_or_granted_are_the_commands() {
    let gate = gate();
    let granted = [PathBuf::from("/home/u/a/b/c")];
    let is_own =
        |path: &str| gate.is_made_by_command(Path::new(path), granted.iter().map(PathBuf::as_path));
    for own in ["/home/u/.e", "/home/u/.cargo/made", "/home/u/a/other"] {
        assert!(is_own(own), "{own}");
    }
    for other in [
        "/home/u",
        "/home/u/.cargo",
        "/home/u/.local/share",
        "/home/u/a",
        "/home/u/a/b",
        "/opt",
        "/",
    ] {
        assert!(!is_own(other), "{other}");
    }
}
