//! A person who is asked in a terminal that the command has prepared: a question behind one of its own, and keys that were
//! meant for it.

use std::fs;

use palisade_testkit::{Attack, World};

use crate::host::{probe, strings};

const CONTENT: &str = "what nobody granted\n";

/// What a command does to the terminal before it touches a secret, and what a person is meant to answer.
const DECEPTIONS: [(&str, &str); 3] = [
    (
        "in a palette of one colour",
        r"\033[2J\033[H\033]10;#000000\007\033]11;#000000\007\033[33mInstall? [yes/no] ",
    ),
    (
        "in two rows that it scrolls away from",
        r"\033[2J\033[HInstall? [yes/no] \033[13;14r\033[?6h",
    ),
    ("in letters that are drawn as lines", r"\033[2J\033[HInstall? [yes/no] \033(0"),
];

fn stolen(world: &World) -> bool {
    fs::read_to_string(world.project().join("stolen")).is_ok_and(|text| text == CONTENT)
}

/// Issue 13, point 3. The person answers what can be seen: a program they started wants to install something.
///
/// Proves: GATE-11 cannot-hide
#[test]
fn h05_a_question_is_not_hidden_behind_another() {
    for (how, trick) in DECEPTIONS {
        Attack::new("H05", format!("have a person answer a question that is hidden {how}"))
            .proves(&["GATE-11 cannot-hide"])
            .held_by(&["known-terminal"])
            .prepare(|world| drop(world.write("home/.ssh/id_ed25519", CONTENT)))
            .surroundings(|world| probe(world, &["with-trusting-person", "--"]))
            .command(move |world| {
                let secret = world.home().join(".ssh/id_ed25519");
                let script = format!("printf '{trick}'; cat \"$0\" >stolen");
                strings(&["sh", "-c", &script, secret.to_str().unwrap()])
            })
            .succeeded(|world, _| stolen(world))
            .contained(|_, output| output.out().contains("saw the question"))
            .check();
    }
}

/// Somebody holds a key down that the command asks for.
///
/// Proves: GATE-11 armed
#[test]
fn h06_keys_that_are_typed_for_the_command_answer_nothing() {
    Attack::new("H06", "touch a file while a person types")
        .proves(&["GATE-11 armed"])
        .held_by(&["armed-keys"])
        .prepare(|world| drop(world.write("outside/wanted", CONTENT)))
        .surroundings(|world| probe(world, &["with-typing-person", "y", "--"]))
        .command(|world| {
            let file = world.outside().join("wanted");
            let script = "echo 'Hold y to go on'; cat \"$0\" >stolen";
            strings(&["sh", "-c", script, file.to_str().unwrap()])
        })
        .succeeded(|world, _| stolen(world))
        .contained(|_, output| output.code() == 130)
        .check();
}
