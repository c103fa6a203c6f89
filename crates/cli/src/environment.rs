//! `SANDBOX_*` variables as options: the same definitions, read a second time.
//!
//! Variables that no option has are left alone; a value that an option would refuse is refused.

use crate::args::PolicyArgs;
use anyhow::bail;
use clap::{ArgAction, Args, FromArgMatches};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

const PREFIX: &str = "SANDBOX_";
/// Read by the policy crate, which also knows the words other products use for them.
const READ_ELSEWHERE: [&str; 2] = ["SANDBOX_MODE", "SANDBOX_NETWORK"];

/// The variable that stands for an option: `--env-mode` is `SANDBOX_ENV_MODE`.
pub(crate) fn variable_of(option: &str) -> String {
    format!("{PREFIX}{}", option.to_uppercase().replace('-', "_"))
}

/// What the environment says, or `None` if it says nothing.
pub(crate) fn options(
    environment: &BTreeMap<OsString, OsString>,
) -> anyhow::Result<Option<PolicyArgs>> {
    if !environment.keys().any(|name| name.to_string_lossy().starts_with(PREFIX)) {
        return Ok(None);
    }
    let mut definitions = PolicyArgs::augment_args(clap::Command::new("environment"));
    definitions.build();
    let mut line: Vec<OsString> = vec!["environment".into()];
    for argument in definitions.get_arguments() {
        let Some(option) = argument.get_long() else { continue };
        let variable = variable_of(option);
        let Some(value) = environment.get(OsStr::new(&variable)) else { continue };
        if READ_ELSEWHERE.contains(&variable.as_str()) || value.is_empty() {
            continue;
        }
        let Some(value) = value.to_str() else { bail!("{variable} is not UTF-8 text") };
        match argument.get_action() {
            ArgAction::SetTrue => match value {
                "1" | "true" | "yes" => line.push(format!("--{option}").into()),
                "0" | "false" | "no" => {}
                other => bail!("{variable}={other}: write 1 or 0"),
            },
            ArgAction::Append => {
                line.extend(value.split(':').map(|item| format!("--{option}={item}").into()));
            }
            _ => line.push(format!("--{option}={value}").into()),
        }
    }
    if line.len() == 1 {
        return Ok(None);
    }
    let matches = definitions.try_get_matches_from(line)?;
    Ok(Some(PolicyArgs::from_arg_matches(&matches)?))
}

#[cfg(test)]
mod tests {
    use super::options;
    use std::collections::BTreeMap;
    use std::ffi::OsString;

    fn environment(pairs: &[(&str, &str)]) -> BTreeMap<OsString, OsString> {
        pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn every_kind_of_option_has_its_twin() {
        let set = [
            ("SANDBOX_LEVEL", "1"),
            ("SANDBOX_ENV_MODE", "clean"),
            ("SANDBOX_RO", "/data:~/notes"),
            ("SANDBOX_NO_DEBUG", "1"),
            ("SANDBOX_STATIC", "0"),
            ("SANDBOX_TIME_OFFSET", "-60"),
        ];
        let read = options(&environment(&set)).unwrap().unwrap();
        assert_eq!(read.level.as_deref(), Some("1"));
        assert_eq!(read.env_mode.as_deref(), Some("clean"));
        assert_eq!(read.ro, ["/data", "~/notes"]);
        assert!(read.no_debug);
        assert!(!read.static_mode);
        assert_eq!(read.time_offset.as_deref(), Some("-60"));
    }

    #[test]
    fn what_a_sandbox_sets_inside_is_not_an_option() {
        let inside = [("SANDBOX", "1"), ("SANDBOX_SESSION", "x"), ("PATH", "/bin")];
        assert!(options(&environment(&inside)).unwrap().is_none());
    }

    #[test]
    fn a_switch_takes_only_yes_or_no() {
        let error = options(&environment(&[("SANDBOX_NO_DEBUG", "perhaps")])).unwrap_err();
        assert_eq!(error.to_string(), "SANDBOX_NO_DEBUG=perhaps: write 1 or 0");
    }
}
