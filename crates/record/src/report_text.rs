//! The report in a few lines for a person. Must never show anything from inside unescaped.

use crate::escape;
use crate::network_report::{DeniedHost, NetworkReport, OtherHosts, QueriesReport, ReachedHost};
use crate::outcome::Outcome;
use crate::report::{
    BlockedCalls, LimitReport, Planned, PromiseReport, ProtectedWrite, Reached, RefusedExecution,
    ReportedConfinement, ReportedUsage, RunReport,
};
use std::fmt;
use std::time::Duration;

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_ending(f)?;
        line(f, "command", &self.command.join(" "))?;
        line(f, "session", &self.session_id)?;
        if let Some(usage) = &self.usage {
            write_usage(f, usage)?;
        }
        self.limits.iter().try_for_each(|limit| write_limit(f, limit))?;
        if let Some(walls) = &self.walls {
            write_walls(f, walls)?;
        }
        self.write_promises(f)?;
        self.write_self_check(f)?;
        for signal in &self.signals_forwarded {
            line(f, "signal", &format!("{} forwarded", signal.name))?;
        }
        for blocked in &self.blocked_calls {
            let BlockedCalls { name, count, suspicious, executable, .. } = blocked;
            let mark = if *suspicious { ", suspicious" } else { "" };
            let rule = blocked.rule.as_ref().map(|rule| format!(": {rule}")).unwrap_or_default();
            line(f, "blocked", &format!("{name}, {count} times{mark} (by {executable}){rule}"))?;
        }
        for write in &self.protected_writes {
            let ProtectedWrite { path, why, count, executable, .. } = write;
            line(f, "protected", &format!("{path}, {count} times (by {executable}): {why}"))?;
        }
        for refused in &self.refused_executions {
            let RefusedExecution { path, rule, count, executable, .. } = refused;
            line(f, "no exec", &format!("{path}, {count} times (by {executable}): {rule}"))?;
        }
        if let Some(network) = &self.network {
            write_network(f, network)?;
        }
        for socket in &self.sockets_made {
            line(f, "socket", &format!("{socket} was made in a directory of the host"))?;
        }
        for approval in &self.approvals {
            line(f, "approved", &format!("{}: {}", approval.what, approval.reason))?;
        }
        for relaxation in &self.relaxations {
            line(f, "relaxed", relaxation)?;
        }
        for note in &self.notes {
            line(f, "note", note)?;
        }
        Ok(())
    }
}

impl RunReport {
    fn write_ending(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = match self.outcome {
            Outcome::Completed => "completed",
            Outcome::Signalled => "ended by a signal",
            Outcome::Timeout => "timed out",
            Outcome::OutOfMemory => "out of memory",
            Outcome::CpuTime => "out of CPU time",
            Outcome::TooManyProcesses => "too many processes",
            Outcome::DiskFull => "no room left for files",
            Outcome::OutputCapped => "completed, with its output cut",
            Outcome::Killed => "killed",
            Outcome::Refused => "refused",
            Outcome::Failed => "failed",
        };
        write!(f, "sandbox: {outcome}, exit code {}", self.exit_code)?;
        if let Some(signal) = self.signal {
            write!(f, ", signal {signal}")?;
        }
        writeln!(f)?;
        if let Some(failure) = &self.failure {
            line(f, "error", &failure.message)?;
            for cause in &failure.causes {
                line(f, "cause", cause)?;
            }
        }
        Ok(())
    }

    fn write_promises(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.promises.is_empty() {
            return Ok(());
        }
        let count = |word| self.promises.iter().filter(|promise| standing(promise) == word).count();
        let counts = [HELD, ADVISORY, ABSENT].map(|word| format!("{} {word}", count(word)));
        line(f, "promises", &counts.join(", "))?;
        for promise in &self.promises {
            let word = standing(promise);
            if word != HELD {
                line(f, "", &format!("{word} {}: {}", promise.id, promise.what))?;
            }
        }
        Ok(())
    }

    fn write_self_check(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.self_check.is_empty() {
            return Ok(());
        }
        let stopped = self.self_check.iter().filter(|probe| probe.ok).count();
        line(f, "self-check", &format!("{stopped} of {} probes stopped", self.self_check.len()))?;
        for probe in self.self_check.iter().filter(|probe| !probe.ok) {
            let (expected, observed) = (&probe.expected, &probe.observed);
            line(f, "", &format!("{}: expected {expected}, got {observed}", probe.probe))?;
        }
        Ok(())
    }
}

const HELD: &str = "held";
const ADVISORY: &str = "advisory";
const ABSENT: &str = "absent";

fn standing(promise: &PromiseReport) -> &'static str {
    match promise.planned {
        Planned::Held => HELD,
        Planned::Advisory => ADVISORY,
        Planned::Absent => ABSENT,
    }
}

fn write_usage(f: &mut fmt::Formatter<'_>, usage: &ReportedUsage) -> fmt::Result {
    let seconds = |micros| Duration::from_micros(micros).as_secs_f64();
    let mut text = format!(
        "{:.3} s after {:.1} ms of set-up, cpu {:.3} s user {:.3} s system",
        seconds(usage.wall_us),
        seconds(usage.setup_us) * 1000.0,
        seconds(usage.cpu_user_us),
        seconds(usage.cpu_system_us),
    );
    if let Some(bytes) = usage.peak_memory_bytes {
        text += &format!(", peak memory {}", mebibytes(bytes));
    }
    line(f, "used", &text)?;
    let counts = [
        (usage.peak_processes.map(|most| most.to_string()), "processes at most"),
        (usage.read_bytes.map(mebibytes), "read"),
        (usage.written_bytes.map(mebibytes), "written"),
    ];
    let told: Vec<String> = counts
        .into_iter()
        .filter_map(|(count, what)| count.map(|count| format!("{count} {what}")))
        .collect();
    if told.is_empty() { Ok(()) } else { line(f, "", &told.join(", ")) }
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// One line per limit: name, value, what enforces it, and whether it was reached.
fn write_limit(f: &mut fmt::Formatter<'_>, limit: &LimitReport) -> fmt::Result {
    let LimitReport { name, value, holder, grip, .. } = limit;
    let mut text = format!("{name} {value}, by {holder} ({grip})");
    if let Some(Reached { usage, times, ended_the_run }) = &limit.reached {
        text += ", reached";
        text += &usage.map(|usage| format!(" at {usage}")).unwrap_or_default();
        text += &times.map(|times| format!(", {times} times")).unwrap_or_default();
        if *ended_the_run {
            text += ", which ended the run";
        }
    }
    line(f, "limit", &text)
}

fn write_walls(f: &mut fmt::Formatter<'_>, walls: &ReportedConfinement) -> fmt::Result {
    let ReportedConfinement { level, view, mode, network, identity } = walls;
    let (inside, outside) = (identity.inside_uid, identity.outside_uid);
    line(
        f,
        "walls",
        &format!(
            "{level}, {view} view, {mode} mode, network {network}, uid {inside} inside is {outside} \
             outside"
        ),
    )
}

fn write_network(f: &mut fmt::Formatter<'_>, network: &NetworkReport) -> fmt::Result {
    let NetworkReport { mode, front, hosts, denied, beyond, others, queries, datagrams_rejected } =
        network;
    let QueriesReport { answered, refused, suspicious, .. } = queries;
    let mut text = format!("{mode} ({front}), {answered} names answered, {refused} not");
    if *suspicious > 0 {
        text += &format!(", {suspicious} that look like tunnelling");
    }
    if *datagrams_rejected > 0 {
        text += &format!(", {datagrams_rejected} datagrams rejected");
    }
    line(f, "network", &text)?;
    for ReachedHost { host, port, connections, sent, received, .. } in hosts {
        let told = format!(
            "{host}:{port}, {connections} times, {} sent, {} received",
            mebibytes(*sent),
            mebibytes(*received)
        );
        line(f, "reached", &told)?;
    }
    if let Some(OtherHosts { connections, sent, received }) = others {
        let told = format!(
            "other hosts, {connections} times, {} sent, {} received",
            mebibytes(*sent),
            mebibytes(*received)
        );
        line(f, "reached", &told)?;
    }
    for host in denied {
        let DeniedHost { reason, count, allow, .. } = host;
        let why = reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let allow = allow.as_ref().map(|flag| format!("; allow with {flag}")).unwrap_or_default();
        line(f, "denied", &format!("{}, {count} times{why}{allow}", host.place()))?;
    }
    if *beyond > 0 {
        line(f, "", &format!("{beyond} more attempts at other hosts"))
    } else {
        Ok(())
    }
}

fn line(f: &mut fmt::Formatter<'_>, label: &str, value: &str) -> fmt::Result {
    writeln!(f, "  {label:<11}{}", escape::text(value))
}
