//! Measures several commands against each other. They take turns, so that whatever else the
//! machine does falls on all of them; only ratios between them mean anything elsewhere.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::setup::TestUser;

/// Who runs the commands, and where.
#[derive(Debug)]
pub(crate) struct BenchContext<'a> {
    pub(crate) user: Option<&'a TestUser>,
    /// The project.
    pub(crate) directory: &'a Path,
    pub(crate) home: &'a Path,
}

impl BenchContext<'_> {
    /// A command as this user with an environment that is the same on every machine.
    pub(crate) fn command(&self, words: &[OsString]) -> Result<Command> {
        let (program, arguments) = words.split_first().context("an empty command")?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env("HOME", self.home)
            .current_dir(self.directory);
        if let Some(user) = self.user {
            command.uid(user.uid).gid(user.gid);
        }
        Ok(command)
    }
}

/// One of the commands that are compared.
#[derive(Debug)]
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    pub(crate) words: Vec<OsString>,
}

impl Contender {
    pub(crate) fn new<W: Into<OsString>>(
        name: &'static str,
        words: impl IntoIterator<Item = W>,
    ) -> Self {
        Self { name, words: words.into_iter().map(Into::into).collect() }
    }
}

/// The times of one contender, in order of size.
#[derive(Debug)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn new(mut times: Vec<Duration>) -> Result<Self> {
        if times.is_empty() {
            bail!("nothing was measured");
        }
        times.sort();
        Ok(Self(times))
    }

    /// The time that this share of the runs did not exceed, in per cent.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0[rank.min(self.0.len()) - 1]
    }

    pub(crate) fn median(&self) -> Duration {
        self.percentile(50)
    }
}

/// How often one duration holds another.
pub(crate) fn ratio(of: Duration, to: Duration) -> f64 {
    of.as_secs_f64() / to.as_secs_f64().max(f64::MIN_POSITIVE)
}

/// Times every contender once a round, after a warm-up.
pub(crate) fn take_turns(
    contenders: &[Contender],
    surroundings: &BenchContext<'_>,
    rounds: usize,
) -> Result<Vec<Times>> {
    let mut times = vec![Vec::with_capacity(rounds); contenders.len()];
    let warm_up = rounds.div_ceil(20);
    for round in 0..warm_up + rounds {
        for (contender, times) in contenders.iter().zip(&mut times) {
            let time = time_one(contender, surroundings)?;
            if round >= warm_up {
                times.push(time);
            }
        }
    }
    times.into_iter().map(Times::new).collect()
}

/// From before the fork to after the wait.
pub(crate) fn time_one(contender: &Contender, surroundings: &BenchContext<'_>) -> Result<Duration> {
    let mut command = surroundings.command(&contender.words)?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let status = command.status().with_context(|| format!("cannot start {}", contender.name))?;
    let time = start.elapsed();
    if !status.success() {
        bail!("{} ended with {status}", contender.name);
    }
    Ok(time)
}

/// A program in the system's directories or `PATH`.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Times, ratio};

    #[test]
    fn percentiles_are_values_that_were_seen() {
        let times = Times::new((1..=20).rev().map(Duration::from_millis).collect()).unwrap();
        assert_eq!(times.median(), Duration::from_millis(10));
        assert_eq!(times.percentile(95), Duration::from_millis(19));
        assert_eq!(times.percentile(100), Duration::from_millis(20));
        assert!(Times::new(Vec::new()).is_err());
    }

    #[test]
    fn a_ratio_says_how_often() {
        let times = ratio(Duration::from_millis(6), Duration::from_millis(4));
        assert!((times - 1.5).abs() < 1e-9);
    }
}
