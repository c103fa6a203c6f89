//! Which tests run in the machine: `tests/vm/tests.yaml`, every entry with its reason.
//! A name that no test has is an error, or a renamed test would silently run no more.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::tree;

const FILE: &str = "tests/vm/tests.yaml";

/// The lists.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lists {
    /// What the kernels are expected to have, by the start of their release.
    pub(crate) kernels: BTreeMap<String, Expected>,
    /// All that the short form runs.
    pub(crate) short: Vec<Group>,
    /// What cannot run in the machine.
    pub(crate) absent: Vec<Group>,
    /// Tests that run once more, as the ordinary user, with a setting of the host changed.
    pub(crate) settings: Vec<Setting>,
    /// Tests that run once more, as the ordinary user, where that one has a service manager.
    pub(crate) managed: Group,
    /// Tests that run once more where notified calls notice the use of paths.
    pub(crate) notified: Group,
}

/// Facts of a kernel, so that a run proves what it says.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expected {
    pub(crate) landlock: u32,
}

/// Tests that share a reason.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Group {
    pub(crate) why: String,
    /// `root` or `user`; both if not said.
    #[serde(default)]
    pub(crate) by: Option<String>,
    /// By `target::path::name`.
    pub(crate) tests: Vec<String>,
}

/// A file of the kernel's settings and what is written to it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Setting {
    pub(crate) why: String,
    pub(crate) file: String,
    pub(crate) value: String,
    pub(crate) tests: Vec<String>,
}

impl Group {
    pub(crate) fn holds(&self, by: &str, name: &str) -> bool {
        self.by.as_deref().is_none_or(|only| only == by)
            && self.tests.iter().any(|test| test == name)
    }
}

impl Lists {
    pub(crate) fn load() -> Result<Self> {
        let path = tree::root().join(FILE);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        serde_saphyr::from_str(&text).context(FILE)
    }

    pub(crate) fn is_short(&self, by: &str, name: &str) -> bool {
        self.short.iter().any(|group| group.holds(by, name))
    }

    pub(crate) fn is_absent(&self, by: &str, name: &str) -> bool {
        self.absent.iter().any(|group| group.holds(by, name))
    }

    /// What a kernel of this release must have: the longest start that fits.
    pub(crate) fn expected(&self, release: &str) -> Option<Expected> {
        let fits = |start: &str| {
            release.strip_prefix(start).is_some_and(|rest| rest.starts_with(['.', '-']))
        };
        self.kernels.iter().filter(|(start, _)| fits(start)).map(|(_, expected)| *expected).next()
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let groups = self.short.iter().chain(&self.absent).flat_map(|group| &group.tests);
        let settings = self.settings.iter().flat_map(|setting| &setting.tests);
        let others = self.managed.tests.iter().chain(&self.notified.tests);
        groups.chain(settings).chain(others).map(String::as_str)
    }

    /// Fails for a name that is in a list and is no test.
    pub(crate) fn check_names(&self, tests: &BTreeSet<String>) -> Result<()> {
        let unknown: Vec<&str> = self.names().filter(|name| !tests.contains(*name)).collect();
        if !unknown.is_empty() {
            bail!("{FILE} names tests that are not there: {}", unknown.join(", "));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Lists;
    use crate::tree;

    fn lists() -> Lists {
        serde_saphyr::from_str(
            "kernels: {'6.1': {landlock: 2}, '6.12': {landlock: 6}}\n\
             short: [{why: w, by: root, tests: [a::b]}]\n\
             absent: []\nsettings: []\nmanaged: {why: w, tests: []}\n\
             notified: {why: w, tests: []}\n",
        )
        .unwrap()
    }

    #[test]
    fn a_kernel_is_known_by_whole_numbers_only() {
        let landlock = |release| lists().expected(release).map(|expected| expected.landlock);
        assert_eq!(landlock("6.1.0-54-cloud-amd64"), Some(2));
        assert_eq!(landlock("6.12.115+deb12-cloud-amd64"), Some(6));
        assert_eq!(landlock("6.18.1"), None);
    }

    #[test]
    fn a_group_may_be_of_one_user() {
        assert!(lists().is_short("root", "a::b"));
        assert!(!lists().is_short("user", "a::b"));
    }

    #[test]
    fn a_name_that_is_no_test_is_an_error() {
        let tests = ["a::c".to_owned()].into();
        let error = lists().check_names(&tests).unwrap_err().to_string();
        assert!(error.contains("a::b"), "{error}");
    }

    /// Found here in a second, and not when the machine has booted.
    #[test]
    fn the_committed_lists_name_tests_that_are_there() {
        let lists = Lists::load().unwrap();
        for name in lists.names() {
            let file = match name.split("::").collect::<Vec<_>>()[..] {
                [target, module, _] => format!("tests/{target}/{module}.rs"),
                // Of a crate's own.
                [target, module, "tests", _] => {
                    let package = target.trim_start_matches("palisade_");
                    format!("crates/{package}/src/{module}_tests.rs")
                }
                _ => {
                    panic!("{name} is neither target::module::name nor crate::module::tests::name")
                }
            };
            let source = std::fs::read_to_string(tree::root().join(file)).unwrap_or_default();
            let test = name.rsplit("::").next().unwrap();
            assert!(source.contains(&format!("fn {test}()")), "{name}");
        }
    }
}
