//! Against the audit log: a flood of events that should leave no room for the one that matters.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use palisade_testkit::{Attack, World};

use crate::host::strings;

/// More than any kind of event is recorded one by one.
const FLOOD: usize = 1500;
const BARE: &str = "a bare host keeps no log";

/// Opens what `flood` names by number, over and over, and at last what matters.
const SCRIPT: &str = r#"
import sys
flood, count, mode, wanted = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
refused = 0
for number in range(count):
    try: open(flood.replace("%", str(number)), mode).close()
    except OSError: refused += 1
try:
    open(wanted, mode).close()
    last = "opened"
except OSError: last = "refused"
print(refused, last)
"#;

fn records_of(world: &World, path: &str) -> Vec<String> {
    let log = world.home().join(".local/state/palisade/audit.jsonl");
    let log = fs::read_to_string(log).unwrap();
    let needle = format!("\"path\":\"{path}\"");
    log.lines().filter(|line| line.contains(&needle)).map(str::to_owned).collect()
}

fn sums(world: &World) -> usize {
    let log = world.home().join(".local/state/palisade/audit.jsonl");
    fs::read_to_string(log).unwrap().matches("EVENTS_SUMMED").count()
}

/// What is to be seen in the log afterwards.
fn wanted(world: &World) -> PathBuf {
    world.outside().join("wanted/file")
}

fn text(path: impl AsRef<Path>) -> String {
    path.as_ref().to_str().unwrap().to_owned()
}

fn attack(name: &'static str) -> Attack {
    Attack::new("R10", name)
        .proves(&["AUD-2 separate-budgets", "AUD-2 first-grants"])
        .no_bare_run(BARE)
        .held_by(&["audit-budgets"])
        .deadline(Duration::from_secs(120))
}

/// Proves: AUD-2 first-grants, AUD-2 separate-budgets, AUD-2 sums
#[test]
fn r10_a_flood_of_denials_does_not_hide_a_grant() {
    attack("hide a grant in the log behind a flood of denials")
        .flags(|_| strings(&["--on-ask", "allow"]))
        .prepare(|world| {
            world.write("home/.ssh/id_ed25519", "the key\n");
            world.write("outside/wanted/file", "");
            world.write_in_project("flood.py", SCRIPT);
        })
        .command(|world| {
            let secret = text(world.home().join(".ssh/id_ed25519"));
            let (count, wanted) = (FLOOD.to_string(), text(wanted(world)));
            strings(&["python3", "flood.py", &secret, &count, "r", &wanted])
        })
        .succeeded(|world, output| {
            output.out() == format!("{FLOOD} opened\n")
                && records_of(world, &text(wanted(world))).is_empty()
        })
        .contained(|world, output| {
            output.out() == format!("{FLOOD} opened\n")
                && records_of(world, &text(wanted(world))).len() == 1
                && sums(world) > 0
        })
        .check();
}

/// Proves: AUD-2 first-grants
#[test]
fn r10_a_flood_of_grants_does_not_hide_another() {
    attack("hide a grant in the log behind a flood of other grants")
        .flags(|_| strings(&["--on-ask", "allow"]))
        .prepare(|world| {
            for number in 0..FLOOD {
                world.write(format!("outside/many/{number}"), "");
            }
            world.write("outside/wanted/file", "");
            world.write_in_project("flood.py", SCRIPT);
        })
        .command(|world| {
            let many = text(world.outside().join("many/%"));
            let (count, wanted) = (FLOOD.to_string(), text(wanted(world)));
            strings(&["python3", "flood.py", &many, &count, "r", &wanted])
        })
        .succeeded(|world, output| {
            output.out() == "0 opened\n" && records_of(world, &text(wanted(world))).is_empty()
        })
        .contained(|world, output| {
            output.out() == "0 opened\n" && records_of(world, &text(wanted(world))).len() == 1
        })
        .check();
}

/// Proves: AUD-2 separate-budgets, AUD-2 sums
#[test]
fn r10_a_flood_of_refused_writes_does_not_hide_another() {
    let wanted = |world: &World| text(world.project().join("sub/.envrc"));
    attack("hide a refused write in the log behind a flood of the same on another name")
        .prepare(|world| {
            world.write_in_project("sub/file", "");
            world.write_in_project("flood.py", SCRIPT);
        })
        .command(move |world| {
            let flood = text(world.project().join(".envrc"));
            let count = FLOOD.to_string();
            strings(&["python3", "flood.py", &flood, &count, "w", &wanted(world)])
        })
        .succeeded(move |world, output| {
            output.out() == format!("{FLOOD} refused\n")
                && records_of(world, &wanted(world)).is_empty()
        })
        .contained(move |world, output| {
            output.out() == format!("{FLOOD} refused\n")
                && records_of(world, &wanted(world)).len() == 1
                && sums(world) > 0
        })
        .check();
}
