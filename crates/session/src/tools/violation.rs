//! What a sandbox tried and was not allowed, as one type for every kind of it: for the results of tools, and for those who read
//! events as they come.
//!
//! Names in it come from inside a sandbox. Who shows them escapes them.

use palisade_record::{Decision, EventKind, RunReport};
use serde::{Deserialize, Serialize};

/// More than anybody reads; a sum of the rest is in the report and in the audit log.
const MAX_LISTED: usize = 200;

/// One thing that was not allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Violation {
    pub kind: ViolationKind,
    /// The path, host, system call, limit or indicator.
    pub subject: String,
    /// What was tried: `read`, `write`, `execute`, a system call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<String>,
    /// The rule or the key of the policy that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why, or what is known beside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The program that tried it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executable: Option<String>,
    pub count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ViolationKind {
    /// A path that is not granted.
    Access,
    /// A file that the host would run later.
    ProtectedWrite,
    /// A program that the policy does not allow.
    Execution,
    SystemCall,
    /// A host, or a name that was looked up.
    Network,
    /// A limit that was reached.
    Limit,
    /// An attempt to break out.
    Escape,
}

impl Violation {
    fn new(kind: ViolationKind, subject: impl Into<String>) -> Self {
        let subject = subject.into();
        Self { kind, subject, access: None, rule: None, detail: None, executable: None, count: 1 }
    }

    fn access(mut self, access: impl Into<String>) -> Self {
        self.access = Some(access.into()).filter(|text| !text.is_empty());
        self
    }

    fn rule(mut self, rule: Option<String>) -> Self {
        self.rule = rule.filter(|text| !text.is_empty());
        self
    }

    fn detail(mut self, detail: Option<String>) -> Self {
        self.detail = detail.filter(|text| !text.is_empty());
        self
    }

    fn by(mut self, executable: &str) -> Self {
        self.executable = Some(executable.to_owned()).filter(|text| !text.is_empty());
        self
    }

    fn times(mut self, count: u64) -> Self {
        self.count = count;
        self
    }

    /// What an event of the audit log says was not allowed, if it says that.
    pub fn of_event(event: &EventKind) -> Option<Self> {
        use ViolationKind as Kind;
        match event {
            EventKind::AccessDecided(it) if it.decision == Decision::Denied => Some(
                Self::new(Kind::Access, &it.path)
                    .access(&it.access)
                    .rule(it.rule.clone())
                    .detail(Some(it.source.clone()))
                    .by(&it.executable),
            ),
            EventKind::PolicyViolation(it) if it.decision == Decision::Denied => {
                let kind = match it.op.as_str() {
                    "execve" | "execveat" => Kind::Execution,
                    _ => Kind::ProtectedWrite,
                };
                let subject = it.path.clone().unwrap_or_else(|| it.op.clone());
                Some(Self::new(kind, subject).access(&it.op).rule(Some(it.rule.clone())))
            }
            EventKind::SyscallBlocked(it) => {
                Some(Self::new(Kind::SystemCall, &it.name).by(&it.executable))
            }
            EventKind::ResourceLimitExceeded(it) => {
                let detail = format!("limit {}, enforced by {}", it.limit, it.holder);
                Some(Self::new(Kind::Limit, &it.resource).detail(Some(detail)))
            }
            EventKind::NetworkAttempt(it) if !it.action.is_allowed() => {
                let place = match palisade_record::network::one_port(it.port) {
                    Some(port) => format!("{}:{port}", it.host),
                    None => it.host.clone(),
                };
                Some(
                    Self::new(Kind::Network, place)
                        .rule(it.rule.clone())
                        .detail(it.reason.clone())
                        .times(it.count),
                )
            }
            EventKind::EscapeAttempt(it) => {
                Some(Self::new(Kind::Escape, &it.id).detail(Some(it.description.clone())))
            }
            _ => None,
        }
    }

    /// Everything that a report says was not allowed; the gravest first.
    pub fn of_report(report: &RunReport) -> Vec<Self> {
        use ViolationKind as Kind;
        let mut found = Vec::new();
        for seen in report.escape.iter().flat_map(|escape| &escape.indicators) {
            let detail = Some(seen.description.clone());
            found.push(Self::new(Kind::Escape, &seen.id).detail(detail));
        }
        for limit in &report.limits {
            if let Some(reached) = &limit.reached {
                let detail = format!("limit {}, enforced by {}", limit.value, limit.holder);
                let count = reached.times.unwrap_or(1);
                found.push(Self::new(Kind::Limit, &limit.key).detail(Some(detail)).times(count));
            }
        }
        for it in &report.protected_writes {
            found.push(
                Self::new(Kind::ProtectedWrite, &it.path)
                    .access(&it.call)
                    .rule(Some(it.rule.clone()))
                    .detail(Some(it.why.clone()))
                    .by(&it.executable)
                    .times(it.count),
            );
        }
        for it in &report.refused_executions {
            found.push(
                Self::new(Kind::Execution, &it.path)
                    .access(&it.call)
                    .rule(Some(it.rule.clone()))
                    .by(&it.executable)
                    .times(it.count),
            );
        }
        for it in &report.denied_paths {
            found.push(
                Self::new(Kind::Access, &it.path)
                    .access(&it.access)
                    .detail(Some(it.by.clone()))
                    .by(&it.executable)
                    .times(it.count),
            );
        }
        for path in &report.read_only_directories {
            let rule = Some("filesystem.readWritePaths".to_owned());
            found.push(Self::new(Kind::Access, path).access("write").rule(rule));
        }
        for it in report.network.iter().flat_map(|network| &network.denied) {
            found.push(
                Self::new(Kind::Network, it.place())
                    .rule(it.rule.clone())
                    .detail(it.reason.clone())
                    .times(it.count),
            );
        }
        if let Some(tried) = &report.offline_attempts {
            let rule = Some("network.mode".to_owned());
            let detail = Some("there is no network".to_owned());
            let count = tried.unreachable + tried.unanswered;
            found.push(Self::new(Kind::Network, "(any)").rule(rule).detail(detail).times(count));
        }
        for it in &report.blocked_calls {
            found.push(
                Self::new(Kind::SystemCall, &it.name)
                    .rule(it.rule.clone())
                    .detail(it.detail.clone())
                    .by(&it.executable)
                    .times(it.count),
            );
        }
        found.truncate(MAX_LISTED);
        found
    }
}

#[cfg(test)]
#[path = "violation_tests.rs"]
mod tests;
