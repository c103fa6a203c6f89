//! The spawner as a program: how it is executed, and how it finds its configuration. `main` recognises it by
//! its arguments before anything else, so that no command line or environment is read in it.

use super::config::{Given, STEP, SpawnerConfig};
use super::process;
use crate::error::{During, Result};
use palisade_sys::At as _;
use palisade_sys::proc::{self, take_inherited};
use palisade_wire::WireMessage as _;
use std::ffi::{CString, OsString};
use std::os::fd::RawFd;

/// The first argument. No command of `sandbox` has this name.
const WORD: &str = "palisade-spawner";

/// The descriptor numbers the spawner starts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnerStage {
    pub(super) config: RawFd,
    pub(super) socket: RawFd,
    pub(super) setup: RawFd,
    pub(super) broker: Option<RawFd>,
    /// To enter each control group by.
    pub(super) groups: Vec<RawFd>,
}

impl SpawnerStage {
    /// Whether these arguments start a spawner.
    pub fn of_words(words: &[OsString]) -> Option<Self> {
        let (first, numbers) = words.get(1..)?.split_first()?;
        if first != WORD {
            return None;
        }
        let numbers = numbers.iter().map(|word| word.to_str()?.parse::<RawFd>().ok());
        let numbers = numbers.collect::<Option<Vec<_>>>()?;
        let [config, socket, setup, broker, groups @ ..] = numbers.as_slice() else { return None };
        let broker = (*broker >= 0).then_some(*broker);
        Some(Self {
            config: *config,
            socket: *socket,
            setup: *setup,
            broker,
            groups: groups.to_vec(),
        })
    }

    fn words(&self) -> Vec<CString> {
        let numbers = self.descriptors_or_none().into_iter().map(|number| number.to_string());
        let words = ["sandbox".to_owned(), WORD.to_owned()].into_iter().chain(numbers);
        words.filter_map(|word| CString::new(word).ok()).collect()
    }

    fn descriptors_or_none(&self) -> Vec<RawFd> {
        let first = [self.config, self.socket, self.setup, self.broker.unwrap_or(-1)];
        first.into_iter().chain(self.groups.iter().copied()).collect()
    }

    pub(super) fn descriptors(&self) -> Vec<RawFd> {
        self.descriptors_or_none().into_iter().filter(|number| *number >= 0).collect()
    }

    /// In the forked helper, where nothing else is open. The environment is not passed on.
    pub(super) fn execute(&self) {
        for number in self.descriptors() {
            if proc::keep_over_exec(number).is_err() {
                return;
            }
        }
        proc::exec(c"/proc/self/exe", &self.words(), &[]);
    }

    /// Runs as the spawner until the supervisor is gone.
    pub fn run(self) -> ! {
        match self.take() {
            Ok(given) => process::run(given),
            // Typed by a person: there is no supervisor to report to.
            Err(_) => proc::exit_now(1),
        }
    }

    fn take(&self) -> Result<Given> {
        let take = |number: RawFd| take_inherited(number).during(STEP);
        let file = take(self.config)?;
        let mut message = vec![0; SpawnerConfig::MAX_BYTES];
        let mut length = 0;
        loop {
            let read = rustix::io::read(&file, &mut message[length..]).call("read").during(STEP)?;
            if read == 0 {
                break;
            }
            length += read;
        }
        Ok(Given {
            config: palisade_wire::decode(&message[..length]).during(STEP)?,
            socket: take(self.socket)?,
            setup: take(self.setup)?,
            broker: self.broker.map(take).transpose()?,
            groups: self.groups.iter().map(|number| take(*number)).collect::<Result<_, _>>()?,
        })
    }
}

#[cfg(test)]
#[path = "stage_tests.rs"]
mod tests;
