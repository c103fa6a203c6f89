//! A lab and a world together, and the few lines most tests of the way out begin with.

use palisade_testkit::{Lab, Output, Part, Running, World};
use serde_json::Value;

/// One test's own internet, and its own corner of the host.
pub(crate) struct Net {
    pub(crate) lab: Lab,
    pub(crate) world: World,
}

impl Net {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(parts: &[Part]) -> Self {
        Self { lab: Lab::with(parts), world: World::new() }
    }

    /// `sandbox run FLAGS -- COMMAND`, to its end.
    pub(crate) fn run(&self, flags: &[&str], command: &[&str]) -> Output {
        self.lab.sandbox_run(&self.world, flags, command).run()
    }

    pub(crate) fn spawn(&self, flags: &[&str], command: &[&str]) -> Running {
        self.lab.sandbox_run(&self.world, flags, command).spawn()
    }

    /// The same with a script of the shell.
    pub(crate) fn script(&self, flags: &[&str], script: &str) -> Output {
        self.run(flags, &["sh", "-c", script])
    }

    /// The same with a script of Python's.
    pub(crate) fn python(&self, flags: &[&str], script: &str) -> Output {
        self.run(flags, &["/usr/bin/python3", "-c", script])
    }

    /// Any other command of `sandbox` in the lab.
    pub(crate) fn sandbox(&self, arguments: &[&str]) -> Output {
        self.world.sandbox(arguments).started_by(&self.lab.enter()).run()
    }

    /// What the audit log tells of events of this kind, oldest first.
    pub(crate) fn events(&self, kind: &str) -> Vec<Value> {
        let output = self.world.sandbox(["audit", "show", "--json"]).run();
        output.assert_code(0);
        output
            .out()
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter(|event| event["event"] == kind)
            .map(|event| event["details"].clone())
            .collect()
    }
}
