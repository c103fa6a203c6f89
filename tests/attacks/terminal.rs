//! The caller's terminal: a command whose standard error is that terminal must not type into it.

use palisade_testkit::{Attack, World};

use crate::host::{allows_tiocsti, probe};

/// As a filter sees the number of the ioctl; the kernel ignores the high bits (CVE-2019-10063).
const FORMS: [&str; 2] = ["plain", "high-bit"];

fn in_terminal(world: &World) -> Vec<String> {
    probe(world, &["in-terminal", "--"])
}

/// CVE-2017-5226. The terminal is looked at from outside: it tells what was typed there.
///
/// Proves: SYS-1 terminal-injection
#[test]
fn p12_nothing_is_typed_into_the_callers_terminal() {
    for form in FORMS {
        Attack::new("P12", format!("type into the caller's terminal by TIOCSTI ({form})"))
            .needs("a kernel that lets programs type into terminals", allows_tiocsti())
            .proves(&["SYS-1 terminal-injection"])
            .held_by(&["seccomp", "own-session"])
            .surroundings(in_terminal)
            .command(move |world| probe(world, &["type", form, "injected"]))
            .succeeded(|_, output| output.out().contains("typed \"injected\""))
            .contained(|_, output| output.out().contains("refused 1 "))
            .check();
    }
}

/// CVE-2023-28100. The terminal of the test is no console, so the driver's "not a console" is what
/// an attacker gets who is let through.
///
/// Proves: SYS-1 terminal-injection
#[test]
fn p12_the_console_driver_is_out_of_reach() {
    for form in FORMS {
        Attack::new("P12", format!("reach the console driver by TIOCLINUX ({form})"))
            .proves(&["SYS-1 terminal-injection"])
            .held_by(&["seccomp"])
            .surroundings(in_terminal)
            .command(move |world| probe(world, &["ask-console", form]))
            .succeeded(|_, output| output.out().contains("answered"))
            .contained(|_, output| output.out().contains("refused 1 "))
            .check();
    }
}

/// Proves: PROC-3 pty
#[test]
fn p15_what_is_typed_at_the_callers_terminal_is_not_read() {
    reading_the_terminal("read what the caller types, at the controlling terminal", "controlling")
        .held_by(&["own-session"])
        .check();
}

/// A terminal is open for reading too, whichever stream it is.
///
/// Proves: PROC-3 pty
#[test]
fn p15_standard_error_is_not_the_callers_terminal() {
    reading_the_terminal("read what the caller types, through standard error", "standard-error")
        .by_design("the caller's terminal never goes in: what is said is passed on to it")
        .check();
}

fn reading_the_terminal(name: &'static str, way: &'static str) -> Attack {
    Attack::new("P15", name)
        .surroundings(|world| probe(world, &["in-terminal-with-typing", "secret-word", "--"]))
        .command(move |world| probe(world, &["read-terminal", way]))
        .succeeded(|_, output| output.out().contains("secret-word"))
}
