//! Options of `sandbox create` that another command takes and hands on, as words of a command line.

use crate::args::PolicyArgs;
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Args, Command, FromArgMatches};
use std::ffi::OsString;

/// The policy options that were given, each as `--name` or `--name=value`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ForwardedOptions(pub(crate) Vec<OsString>);

impl ForwardedOptions {
    /// As the command that gets them reads them.
    pub(crate) fn policy_args(&self) -> Result<PolicyArgs, clap::Error> {
        let definitions = PolicyArgs::augment_args(Command::new("").no_binary_name(true));
        PolicyArgs::from_arg_matches(&definitions.try_get_matches_from(&self.0)?)
    }
}

impl Args for ForwardedOptions {
    fn augment_args(command: Command) -> Command {
        PolicyArgs::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        PolicyArgs::augment_args_for_update(command)
    }
}

impl FromArgMatches for ForwardedOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let definitions = PolicyArgs::augment_args(Command::new(""));
        let mut words = Vec::new();
        for argument in definitions.get_arguments() {
            let id = argument.get_id().as_str();
            let Some(name) = argument.get_long() else { continue };
            if matches.value_source(id) != Some(ValueSource::CommandLine) {
                continue;
            }
            if matches!(argument.get_action(), ArgAction::SetTrue) {
                words.push(OsString::from(format!("--{name}")));
                continue;
            }
            for value in matches.get_raw(id).into_iter().flatten() {
                let mut word = OsString::from(format!("--{name}="));
                word.push(value);
                words.push(word);
            }
        }
        Ok(Self(words))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::ForwardedOptions;
    use clap::{Args as _, FromArgMatches as _};

    #[test]
    fn options_come_out_as_they_were_meant() {
        let definitions = ForwardedOptions::augment_args(clap::Command::new("x"));
        let line = [
            "x",
            "--preset",
            "node",
            "--transaction",
            "--ro",
            "/a",
            "--ro=/b c",
            "--static",
            "--time-offset",
            "-5",
        ];
        let matches = definitions.try_get_matches_from(line).unwrap();
        let mut words = ForwardedOptions::from_arg_matches(&matches).unwrap().0;
        words.sort();
        assert_eq!(
            words,
            [
                "--preset=node",
                "--ro=/a",
                "--ro=/b c",
                "--static",
                "--time-offset=-5",
                "--transaction=keep"
            ]
        );
    }
}
