//! Named moments at which a test can have this process killed, as by SIGKILL or a loss of power. They do nothing unless the
//! crate is built with `fault-points`, which no shipped binary is.
//!
//! A test asks once for the names of all moments that a process passes ([`LIST`]), and then for its death at each of them
//! ([`KILL_AT`]): a moment that is added later is tried, too.

/// A file that gets a line for every moment that is passed.
pub const LIST: &str = "PALISADE_FAULT_LIST";
/// `NAME#N`: this process dies when it comes to the moment of this name for the Nth time.
pub const KILL_AT: &str = "PALISADE_FAULT_KILL";
/// The step of this name fails, where a test could not make it fail otherwise.
pub const FAIL: &str = "PALISADE_FAULT_FAIL";

/// Whether this step is to fail.
#[cfg(not(feature = "fault-points"))]
#[inline]
pub fn fails(_step: &str) -> bool {
    false
}

/// Whether this step is to fail.
#[cfg(feature = "fault-points")]
pub fn fails(step: &str) -> bool {
    std::env::var_os(FAIL).is_some_and(|wanted| wanted == step)
}

/// A moment: `what` is about to happen or has happened, to `whom`.
#[cfg(not(feature = "fault-points"))]
#[inline]
pub fn point(_what: &str, _whom: &str) {}

/// A moment: `what` is about to happen or has happened, to `whom`.
#[cfg(feature = "fault-points")]
pub fn point(what: &str, whom: &str) {
    use std::io::Write as _;
    use std::sync::{Mutex, PoisonError};
    static PASSED: Mutex<Vec<String>> = Mutex::new(Vec::new());

    let name = if whom.is_empty() { what.to_owned() } else { format!("{what} {whom}") };
    if let Some(list) = std::env::var_os(LIST) {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(list);
        // The test misses what is not listed.
        let _ = file.and_then(|mut file| file.write_all(format!("{name}\n").as_bytes()));
    }
    let Ok(wanted) = std::env::var(KILL_AT) else { return };
    let mut passed = PASSED.lock().unwrap_or_else(PoisonError::into_inner);
    passed.push(name.clone());
    let times = passed.iter().filter(|earlier| **earlier == name).count();
    if wanted == format!("{name}#{times}") {
        // It does not return.
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}
