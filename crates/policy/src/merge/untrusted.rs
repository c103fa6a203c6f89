//! Values that an untrusted file cannot set although they tighten: they would stall or break every run.
//!
//! Such a file may restrict access, but must not prevent the user from working.

use crate::settings::Value;

/// A tool of one project may be a tool of all of them.
const OUTLASTS: &str = "a quarantine outlasts the run, and keeps the command from other projects";

/// Keys that delay the user, or that can only be set with knowledge of the machine.
const IGNORED: [(&str, &str); 5] = [
    ("escape.strict", OUTLASTS),
    ("resources.normalizeTime", "it makes every run wait"),
    ("resources.grace", "it decides how long an interrupted command keeps running"),
    ("resources.cpuSet", "CPU numbers differ between machines"),
    ("filesystem.project", "without the project no command starts in it"),
];

/// The minimum that ordinary commands need.
const MIN_VALUES: [(&str, u64); 24] = [
    ("askTimeout", 5_000),
    ("filesystem.maxFileSize", 1 << 20),
    ("filesystem.maxTotalSize", 16 << 20),
    ("filesystem.maxInodes", 1_000),
    ("filesystem.tmpSize", 1 << 20),
    ("filesystem.varTmpSize", 1 << 20),
    ("process.maxProcesses", 16),
    ("network.maxConnections", 8),
    ("network.maxBytes", 1 << 20),
    ("network.maxQueries", 10),
    ("resources.maxCPU", 1_000),
    ("resources.maxMemory", 64 << 20),
    ("resources.memoryHigh", 64 << 20),
    ("resources.maxFileDescriptors", 64),
    ("resources.maxThreads", 16),
    ("resources.maxIOBandwidth", 1 << 20),
    ("resources.maxIOPS", 50),
    // In thousandths.
    ("resources.cpus", 100),
    ("resources.timeout", 1_000),
    ("resources.timeToLive", 60_000),
    ("resources.idleTimeToLive", 60_000),
    ("resources.maxOutputSize", 64 << 10),
    ("syscalls.maxBlocked", 1),
    ("resources.maxSwap", 0),
];

/// Why an untrusted file cannot set the key to this value, if so.
pub(crate) fn refusal(path: &str, value: &Value) -> Option<String> {
    // Words other than `none`, such as `read-only`, are ordinary restrictions.
    let is_harmless = matches!(value, Value::Word(word) if *word != "none");
    if let Some((_, why)) = IGNORED.iter().find(|(key, _)| *key == path && !is_harmless) {
        return Some((*why).to_owned());
    }
    if path.starts_with("escape.") && matches!(value, Value::Word(word) if *word == "quarantine") {
        return Some(OUTLASTS.to_owned());
    }
    let Value::Number(number) = value else { return None };
    let (_, least) = MIN_VALUES.iter().find(|(key, _)| *key == path)?;
    (number < least).then(|| "a value this small would break every run".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{IGNORED, MIN_VALUES, Value, refusal};
    use crate::keys::{self, KEYS, Order, ValueKind};

    #[test]
    fn every_limit_has_a_least_value_and_every_name_is_a_key() {
        for (path, _) in MIN_VALUES {
            assert!(keys::find(path).is_some(), "{path}");
        }
        for (path, _) in IGNORED {
            assert!(keys::find(path).is_some(), "{path}");
        }
        let is_covered = |path: &str| {
            MIN_VALUES.iter().any(|(key, _)| *key == path)
                || IGNORED.iter().any(|(key, _)| *key == path)
        };
        for key in KEYS {
            let is_number = !matches!(key.kind, ValueKind::Word(_) | ValueKind::Bool);
            if is_number && matches!(key.order, Order::Limit | Order::Allowance | Order::Step) {
                assert!(is_covered(key.path), "{}", key.path);
            }
        }
    }

    /// Proves: POL-4 order
    #[test]
    fn an_untrusted_file_may_end_its_runs_and_quarantines_nothing() {
        assert_eq!(refusal("escape.onLow", &Value::Word("kill")), None);
        assert!(refusal("escape.onLow", &Value::Word("quarantine")).is_some());
        assert!(refusal("escape.strict", &Value::Bool(true)).is_some());
    }
}
