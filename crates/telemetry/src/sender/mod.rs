//! The process that sends: a program of its own beside the run, so that a collector can neither slow a run down nor do it harm.
//!
//! It has the settings in its environment and gets spans through its standard input. Names are resolved and certificates read first; from
//! then on it can open no file, start nothing and see no other process. It gives up after a time, whatever the collector does.

mod batch;
mod confinement;
mod http;
mod process;

use palisade_sys::proc;
use std::ffi::OsString;

/// Our own program, started as the sender. `main` recognises it before anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderStage;

impl SenderStage {
    /// The first argument. No command of `sandbox` has this name.
    pub(crate) const WORD: &'static str = "palisade-otlp-sender";

    /// Whether these arguments start a sender.
    pub fn of_words(words: &[OsString]) -> Option<Self> {
        matches!(words, [_, word] if word == Self::WORD).then_some(Self)
    }

    /// Sends until there is nothing more to send.
    pub fn run(self) -> ! {
        // Nobody reads standard error: what could not be sent has been said to the run.
        let code = i32::from(process::serve().is_err());
        proc::exit_now(code)
    }
}

#[cfg(test)]
mod tests {
    use super::SenderStage;
    use std::ffi::OsString;

    #[test]
    fn a_sender_is_recognised_by_its_word_alone() {
        let of = |words: &[&str]| {
            SenderStage::of_words(&words.iter().map(OsString::from).collect::<Vec<_>>())
        };
        assert_eq!(of(&["sandbox", SenderStage::WORD]), Some(SenderStage));
        for other in [&["sandbox"][..], &["sandbox", "run"], &["sandbox", SenderStage::WORD, "x"]] {
            assert_eq!(of(other), None, "{other:?}");
        }
    }
}
