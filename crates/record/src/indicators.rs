//! What looks like an attempt to break out (ESC-1): the one table of indicators, with the severity of each and why it is that.
//!
//! `docs/escape-response.md` shows the same table; a test compares the two. What follows from a severity is the policy's
//! business (`escape.onLow` … `escape.onCritical`).

use crate::event::EscapeAttempt;
use crate::network::{NameQueried, NetworkAction, NetworkAttempt, Via};
use crate::severity::{Indicator, Severity};

/// One kind of attempt.
#[derive(Debug)]
pub struct KnownIndicator {
    /// As in the audit log and the report.
    pub id: &'static str,
    pub kind: Indicator,
    pub severity: Severity,
    pub description: &'static str,
    /// Why it is no more and no less severe: who else does this.
    pub why: &'static str,
}

impl KnownIndicator {
    /// An attempt of this kind. `details` may hold text from inside.
    pub fn attempt(&self, details: &str, pid: Option<u32>) -> EscapeAttempt {
        EscapeAttempt {
            id: self.id.to_owned(),
            indicator: self.kind,
            severity: self.severity,
            description: format!("{}: {details}", self.description),
            pid,
        }
    }
}

macro_rules! indicators {
    ($($name:ident = $id:literal, $kind:ident, $severity:ident, $description:literal, $why:literal;)*) => {
        $(pub const $name: &KnownIndicator = &KnownIndicator {
            id: $id,
            kind: Indicator::$kind,
            severity: Severity::$severity,
            description: $description,
            why: $why,
        };)*
        /// All of them, by layer.
        pub const INDICATORS: &[&KnownIndicator] = &[$($name),*];
    };
}

indicators! {
    TRAVERSAL = "filesystem.traversal", Filesystem, Critical, "Path traversal attempt detected",
        "The path leads into a directory of Palisade itself, which no sandbox shows or lists. A search does not find it: it has to be named.";
    SECRET = "filesystem.secret", Filesystem, Medium, "Denied access to a secret",
        "Programs such as git and ssh read keys and logins as part of their work.";
    PROTECTED_WRITE = "filesystem.protected-write", Filesystem, Medium, "Denied write to a file that the host would run later",
        "Installers and hook managers write git hooks and shell start-up files on purpose.";
    UNAUTHORIZED_EXEC = "process.exec", Process, Critical, "Unauthorized exec attempt",
        "Only where the policy names the programs that may run. A tool that tries an optional program does it as well.";
    MEMORY_EXEC = "process.memory-exec", Process, High, "Denied a program in memory",
        "A way around the list of programs; run-time compilers use it too.";
    PROCESS_LIMIT = "process.limit", Process, Low, "The limit of processes was reached",
        "A fork bomb, or a build with too many jobs.";
    CONNECTION = "network.connection", Network, High, "Unauthorized network connection",
        "Programs look for updates and send statistics without being asked.";
    METADATA = "network.metadata", Network, High, "Denied connection to the metadata of a cloud",
        "It hands out the machine's own credentials. Libraries of clouds look there when they find no login.";
    REBIND = "network.rebind", Network, High, "An allowed name led to a forbidden address",
        "DNS rebinding. A name in a split network can look the same.";
    TUNNEL = "network.tunnel", Network, High, "Looked-up names look like encoded data",
        "A way to send data out by DNS. Content networks have long random names as well.";
    BYPASS = "network.bypass", Network, Medium, "Denied packets that go around the proxy",
        "QUIC, time synchronisation and peer-to-peer programs send them by themselves.";
    BLOCKED_CALL = "syscall.blocked", Syscall, Critical, "Blocked syscall attempted",
        "The call loads or replaces the kernel, enters a foreign namespace, opens files around the mount view or drives hardware. Ordinary programs do none of it.";
    SUSPICIOUS_CALL = "syscall.suspicious", Syscall, Medium, "Suspicious system call attempted",
        "Browsers try a namespace, event loops a ring, service managers BPF, keyrings and mounts, and all go on without.";
    TOO_MANY_CALLS = "syscall.too-many", Syscall, High, "Too many suspicious system calls",
        "More than syscalls.maxBlocked. Who tries so often does not go on without. It ends the run at any setting.";
}

/// The refused calls that ordinary programs never make.
const ONLY_FOR_ESCAPES: [&str; 10] = [
    "kexec_load",
    "kexec_file_load",
    "init_module",
    "finit_module",
    "delete_module",
    "open_by_handle_at",
    "setns",
    "pivot_root",
    "iopl",
    "ioperm",
];

/// The indicator of a refused call that the filter marks as suspicious.
pub fn of_call(name: &str) -> &'static KnownIndicator {
    if ONLY_FOR_ESCAPES.contains(&name) { BLOCKED_CALL } else { SUSPICIOUS_CALL }
}

/// The part of a reason by which the ranges of `palisade-hosts` call a cloud's metadata.
const METADATA_WORDS: &str = "metadata of a cloud";

/// The attempt that a connection was, if it was one.
pub fn of_connection(attempt: &NetworkAttempt) -> Option<EscapeAttempt> {
    let reason = attempt.reason.as_deref().unwrap_or_default();
    let known = match attempt.action {
        NetworkAction::ProxyAllowed => return None,
        _ if attempt.via == Via::Published => return None,
        _ if reason.contains(METADATA_WORDS) => METADATA,
        NetworkAction::DnsRebindBlocked | NetworkAction::RedirectBlocked => REBIND,
        _ if attempt.via == Via::Datagram => BYPASS,
        // A name that does not exist is a mistake, and leads nowhere.
        NetworkAction::ProxyBlockedDns => return None,
        NetworkAction::ProxyDenied
        | NetworkAction::ProxyDeniedPort
        | NetworkAction::RedirectDenied => CONNECTION,
    };
    Some(known.attempt(&format!("{} port {}", attempt.host, attempt.port), None))
}

/// The attempt that a look-up was, if it was one.
pub fn of_query(queried: &NameQueried) -> Option<EscapeAttempt> {
    let suspicion = queried.suspicion.as_deref()?;
    Some(TUNNEL.attempt(&format!("{} ({suspicion})", queried.name), None))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: ESC-1 indicators
    #[test]
    fn the_four_known_indicators_keep_their_severities_and_ids_are_unique() {
        let severity = |known: &KnownIndicator| (known.description, known.severity);
        assert_eq!(severity(TRAVERSAL), ("Path traversal attempt detected", Severity::Critical));
        assert_eq!(severity(UNAUTHORIZED_EXEC), ("Unauthorized exec attempt", Severity::Critical));
        assert_eq!(severity(CONNECTION), ("Unauthorized network connection", Severity::High));
        assert_eq!(severity(BLOCKED_CALL), ("Blocked syscall attempted", Severity::Critical));
        let mut ids: Vec<&str> = INDICATORS.iter().map(|known| known.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), INDICATORS.len());
    }

    /// Proves: ESC-1 indicators
    #[test]
    fn the_page_has_the_same_table() {
        let page = include_str!("../../../docs/escape-response.md");
        let word = |severity: Severity| format!("{severity:?}").to_lowercase();
        for known in INDICATORS {
            let row = format!(
                "| `{}` | {} | {}. | {} |",
                known.id,
                word(known.severity),
                known.description,
                known.why
            );
            assert!(page.contains(&row), "docs/escape-response.md lacks the row\n{row}");
        }
        let rows = page.lines().filter(|line| {
            ["filesystem.", "process.", "network.", "syscall."]
                .iter()
                .any(|layer| line.starts_with(&format!("| `{layer}")))
        });
        assert_eq!(rows.count(), INDICATORS.len());
    }
}
