//! What the sandbox denied, in words that a model can act on: what it was, which rule decided, and how a person allows it.

use crate::text::lossy;
use palisade_service::{AuditQuery, Operations};
use serde_json::Value;
use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use tokio::sync::Mutex;

const EVENTS: &str = "ACCESS_DECIDED,HOST_DECIDED,NETWORK_ATTEMPT,POLICY_VIOLATION";
const MAX_READ: usize = 1000;
const MAX_TOLD: usize = 8;

/// What of the log was told already.
#[derive(Debug, Default)]
pub(crate) struct Denials(Mutex<Option<u64>>);

/// Different ones, of which the last are kept: a command can be denied as often as it likes.
#[derive(Debug, Default)]
struct LastDenials {
    hasher: RandomState,
    seen: HashSet<u64>,
    last: VecDeque<String>,
}

impl LastDenials {
    fn add(&mut self, line: String) {
        if self.seen.insert(self.hasher.hash_one(&line)) {
            self.last.push_back(line);
            if self.last.len() > MAX_TOLD {
                self.last.pop_front();
            }
        }
    }

    fn told(self) -> Vec<String> {
        let left_out = self.seen.len() - self.last.len();
        let first = (left_out > 0).then(|| format!("[{left_out} earlier denials left out]"));
        first.into_iter().chain(self.last).collect()
    }
}

impl Denials {
    /// Those since the last time.
    pub(crate) async fn new_ones(&self, operations: &Operations, sandbox: &str) -> Vec<String> {
        let mut last = self.0.lock().await;
        let mut found = LastDenials::default();
        // Without an answer nothing is told; the failure itself is.
        loop {
            let query = AuditQuery {
                sandbox: Some(sandbox.to_owned()),
                since: last.map(|number| number.to_string()),
                event: Some(EVENTS.to_owned()),
                level: None,
                limit: Some(MAX_READ),
            };
            let Ok(page) = operations.audit(&query).await else { break };
            if let Some(number) = page.records.last().and_then(|record| record["seq"].as_u64()) {
                *last = Some(number);
            }
            page.records.iter().filter_map(told_of).for_each(|line| found.add(line));
            if page.next.is_none() {
                break;
            }
        }
        found.told()
    }
}

/// Where nobody can be asked, what is not granted looks as if it did not exist, and no denial is recorded.
pub(crate) fn hint(text: &str) -> Option<&'static str> {
    const HIDDEN: &str = "If the path exists on the host, the sandbox hides it: what is not granted looks as if it did not exist. A person can \
        explain it with `sandbox why PATH`, allow it while `sandbox approve` runs, or grant it with `--ro PATH` (policy key \
        filesystem.readOnlyPaths) where the server is started.";
    const PROTECTED: &str = "The sandbox may not allow this. A person can explain it with `sandbox why PATH`, and grant it with `--rw PATH` (policy \
        key filesystem.readWritePaths) or, for a protected name such as .git/hooks, `--allow-write PATH` where the server is started.";
    if text.contains("No such file or directory") {
        return Some(HIDDEN);
    }
    let is_refused = ["Permission denied", "Operation not permitted", "Read-only file system"];
    is_refused.iter().any(|words| text.contains(words)).then_some(PROTECTED)
}

fn word<'a>(record: &'a Value, name: &str) -> Option<&'a str> {
    details(record).get(name).and_then(Value::as_str)
}

/// Where an event has its members.
fn details(record: &Value) -> &Value {
    record.get("details").unwrap_or(record)
}

fn told_of(record: &Value) -> Option<String> {
    let one_line = |text: &str| lossy(text.replace('\n', " ").as_bytes());
    match record["event"].as_str()? {
        "ACCESS_DECIDED" if word(record, "decision") == Some("denied") => {
            let path = one_line(word(record, "path")?);
            let access = word(record, "access").unwrap_or("read");
            let by = word(record, "rule").or(word(record, "source")).unwrap_or("the policy");
            let (option, key) = match access {
                "write" => ("--rw", "filesystem.readWritePaths"),
                _ => ("--ro", "filesystem.readOnlyPaths"),
            };
            Some(format!(
                "Denied by the sandbox: {access} {path} ({}). A person can allow it with `sandbox approve` while the command asks again, or \
                 with `{option} {path}` (policy key {key}) where the server is started. Do not try to get around it.",
                one_line(by)
            ))
        }
        "HOST_DECIDED" if word(record, "decision") == Some("denied") => {
            let host = one_line(word(record, "host")?);
            let port = &details(record)["port"];
            let by = word(record, "source").unwrap_or("the policy");
            Some(format!(
                "Denied by the sandbox: connecting to {host} port {port} ({}). A person can allow it with `sandbox approve`, or with \
                 `--allow-host {host}:{port}` (policy key network.allowedHosts) where the server is started.",
                one_line(by)
            ))
        }
        "NETWORK_ATTEMPT"
            if word(record, "action")
                .is_some_and(|it| !it.to_ascii_lowercase().contains("allow")) =>
        {
            let host = one_line(word(record, "host")?);
            let port = &details(record)["port"];
            let why = word(record, "reason").or(word(record, "rule")).unwrap_or("the policy");
            let allow = word(record, "allow").map_or(String::new(), |option| {
                format!(
                    " A person can allow it with `{}` where the server is started.",
                    one_line(option)
                )
            });
            Some(format!(
                "Denied by the sandbox: connecting to {host} port {port} ({}; policy key network.allowedHosts).{allow}",
                one_line(why)
            ))
        }
        "POLICY_VIOLATION" if word(record, "decision") == Some("denied") => Some(format!(
            "Denied by the sandbox: {} {} (policy key {}). A person can change the policy of the sandbox.",
            one_line(word(record, "op")?),
            one_line(word(record, "path").unwrap_or_default()),
            one_line(word(record, "rule")?)
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{LastDenials, MAX_TOLD, told_of};
    use serde_json::json;

    #[test]
    fn a_denial_says_what_by_what_and_what_to_do() {
        let denied = json!({ "event": "ACCESS_DECIDED", "details": { "path": "/a\nb", "access": "write",
            "decision": "denied", "source": "nobody-to-ask" } });
        let told = told_of(&denied).unwrap();
        for part in
            ["write /a b", "nobody-to-ask", "sandbox approve", "--rw", "filesystem.readWritePaths"]
        {
            assert!(told.contains(part), "{part}: {told}");
        }
        let allowed = json!({ "event": "ACCESS_DECIDED", "details": { "path": "/a", "decision": "allowed" } });
        assert_eq!(told_of(&allowed), None);
    }

    #[test]
    fn the_last_ones_are_told_once() {
        let mut found = LastDenials::default();
        for number in [0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 0] {
            found.add(number.to_string());
        }
        let told = found.told();
        assert_eq!(told.len(), MAX_TOLD + 1);
        assert_eq!((&*told[0], &*told[1], &*told[8]), ("[2 earlier denials left out]", "2", "9"));
    }
}
