//! An event of the log as one line for a person. Everything in it may come from inside and is escaped here.

use crate::output::{Paint, Style};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use palisade_record::{
    Decision, Event, EventKind, Exited, LogLevel, Outcome, SessionExecEnded, escape, network,
};
use serde::Serialize;

/// So much of a session's name tells it from others, as in `sandbox approve`.
const SHORT: usize = 8;

/// The end of a session's name, by which `audit show`, `net` and `top` know it too.
pub(super) fn short(session: &str) -> &str {
    let start = session.len().saturating_sub(SHORT);
    session.get(start..).unwrap_or(session)
}

pub(super) fn line(event: &Event, zone: &TimeZone, paint: Paint) -> String {
    let (word, text) = told(&event.kind);
    let (level, style) = match event.level {
        LogLevel::Info => ("info", Style::Plain),
        LogLevel::Warn => ("warn", Style::Yellow),
        LogLevel::Error => ("error", Style::Red),
        LogLevel::Critical => ("crit", Style::Red),
    };
    format!(
        "{}  {}  {}  {word:<9}  {}",
        local(event.timestamp, zone),
        escape::text(short(&event.sandbox_id)),
        paint.with(style, &format!("{level:<5}")),
        escape::text(&text),
    )
}

fn local(time: Timestamp, zone: &TimeZone) -> String {
    time.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// In a word, and in a sentence.
fn told(kind: &EventKind) -> (&'static str, String) {
    match kind {
        EventKind::SandboxCreated(created) => {
            let run = &created.run;
            let (level, mode) = (&run.sandbox_level, &run.sandbox_mode);
            let text = format!(
                "{}, in {} ({level}, {mode}, network {})",
                run.command.preview(),
                created.working_directory.display(),
                run.network_mode
            );
            ("created", text)
        }
        EventKind::SandboxEntered(entered) => {
            ("entered", format!("pid {}, own {}", entered.pid, entered.namespaces.join(" ")))
        }
        EventKind::SandboxValidated(validated) => {
            let (probes, time) = (validated.probes, millis(validated.duration_us));
            ("checked", format!("{probes} self-checks in {time}"))
        }
        EventKind::SandboxExecuted(executed) => {
            let pid = executed.pid.map_or(String::new(), |pid| format!("pid {pid}, "));
            ("started", format!("{pid}after {}", millis(executed.setup_us)))
        }
        EventKind::SandboxExited(exited) => ("exited", exited_text(exited)),
        EventKind::SandboxDestroyed(destroyed) => {
            ("ended", format!("after {}", seconds(destroyed.duration_ms)))
        }
        EventKind::SandboxFailed(failure) => ("failed", failure.message.clone()),
        EventKind::PolicyViolation(violation) => {
            let path = violation.path.as_deref().unwrap_or("-");
            let decision = decided(violation.decision);
            ("violation", format!("{decision} {} {path}, by {}", violation.op, violation.rule))
        }
        EventKind::EscapeAttempt(attempt) => ("escape", attempt.description.clone()),
        EventKind::EscapeResponse(response) => {
            ("response", format!("{} for {}", response.action.word(), response.indicator))
        }
        EventKind::Quarantined(quarantined) => {
            ("quarantined", format!("{} as {}", quarantined.tool, quarantined.quarantine))
        }
        EventKind::Released(released) => {
            let text =
                format!("{} ({}), by user {}", released.tool, released.quarantine, released.uid);
            ("released", text)
        }
        EventKind::ResourceLimitExceeded(limit) => {
            let observed =
                limit.observed.map_or(String::new(), |observed| format!(", observed {observed}"));
            let text = format!("{}: limit {}{observed}", limit.resource, limit.limit);
            ("limit", format!("{text}, enforced by {}", limit.holder))
        }
        EventKind::SyscallBlocked(blocked) => {
            let by = if blocked.executable.is_empty() { "?" } else { &blocked.executable };
            let errno = if blocked.errno.is_empty() { "denied" } else { &blocked.errno };
            ("syscall", format!("{errno} {}, by {by} (process {})", blocked.name, blocked.pid))
        }
        EventKind::SignalForwarded(signal) => ("signal", format!("{} forwarded", signal.name)),
        EventKind::ApprovalRecorded(approval) => {
            ("approval", format!("{}: {}", approval.what, approval.reason))
        }
        EventKind::AccessDecided(access) => {
            let rule = access.rule.as_deref().map_or(String::new(), |rule| format!(": {rule}"));
            let text = format!(
                "{} {} {}, {} by {}{rule}; {} of {}",
                decided(access.decision),
                access.access,
                access.path,
                access.lifetime,
                access.source,
                access.op,
                access.executable,
            );
            ("access", text)
        }
        EventKind::AccessRevoked(revoked) => {
            let kept = match revoked.still_open.len() {
                0 => String::new(),
                1 => ", still open in 1 process".to_owned(),
                many => format!(", still open in {many} processes"),
            };
            ("revoked", format!("{}, by {}{kept}", revoked.path, revoked.by))
        }
        EventKind::CheckpointMade(made) => {
            let (number, reason, entries) = (made.checkpoint, &made.reason, made.entries);
            ("checkpoint", format!("{number}, {reason}, {entries} entries"))
        }
        EventKind::RolledBack(back) => {
            let (number, kept) = (back.checkpoint, back.kept_as);
            ("rollback", format!("to checkpoint {number}; the state before is {kept}"))
        }
        EventKind::SessionForked(forked) => {
            let at = forked.checkpoint.map_or(String::new(), |at| format!(" at checkpoint {at}"));
            ("forked", format!("from session {}{at}", forked.origin))
        }
        EventKind::CacheWritesLost(lost) => ("caches", format!("not kept: {}", lost.reason)),
        EventKind::NetworkAttempt(attempt) => {
            let place = place(&attempt.host, attempt.port, attempt.count);
            let why = attempt.reason.as_deref().or(attempt.rule.as_deref());
            let why = why.map_or(String::new(), |why| format!(": {why}"));
            let verdict = if attempt.action.is_allowed() { "allowed" } else { "denied" };
            ("network", format!("{verdict} {place} ({}){why}", word(&attempt.via)))
        }
        EventKind::ConnectionClosed(closed) => {
            let place = place(&closed.host, closed.port, closed.count);
            let (sent, received) = (closed.sent, closed.received);
            let time = seconds(closed.duration_ms);
            ("closed", format!("{place}, {sent} bytes sent, {received} received, after {time}"))
        }
        EventKind::NameQueried(queried) => {
            let why = queried.suspicion.as_deref().or(queried.reason.as_deref());
            let why = why.map_or(String::new(), |why| format!(": {why}"));
            ("name", format!("{} {}, {}{why}", queried.name, queried.record, queried.answer))
        }
        EventKind::EventsSummed(sum) => {
            let last =
                sum.last_path.as_deref().map_or(String::new(), |path| format!(", last {path}"));
            let (decision, count, what) = (decided(sum.decision), sum.count, &sum.what);
            ("summed", format!("{decision} {count} more of {what}{last}"))
        }
        EventKind::HostDecided(host) => {
            let place = place(&host.host, host.port, 1);
            let (lifetime, source) = (&host.lifetime, &host.source);
            ("host", format!("{} {place}, {lifetime} by {source}", decided(host.decision)))
        }
        EventKind::SessionExec(exec) => {
            let (number, preview) = (exec.command, exec.digest.preview());
            ("exec", format!("command {number}: {preview}, pid {}", exec.pid))
        }
        EventKind::SessionExecEnded(ended) => ("exec", exec_ended_text(ended)),
        EventKind::SessionExtended(extended) => {
            ("extended", format!("{} from then on", seconds(extended.time_ms)))
        }
        EventKind::SessionClaimed(claimed) => {
            ("claimed", format!("after waiting {}", seconds(claimed.waited_ms)))
        }
        EventKind::SessionEnding(ending) => ("ending", word(&ending.cause)),
        EventKind::ChangesApplied(applied) => {
            let (paths, refused, kept) = (applied.paths, applied.refused, applied.kept);
            ("applied", format!("{paths} changes, {refused} refused, {kept} kept as on the host"))
        }
        EventKind::ChangesHeld(held) => {
            let (refused, conflicts) = (held.refused, held.conflicts);
            ("held", format!("nothing applied: {refused} refused, {conflicts} conflicts"))
        }
        EventKind::ChangesDiscarded(discarded) => {
            let count = discarded.paths.map_or("all".to_owned(), |count| count.to_string());
            ("discarded", format!("{count} changes"))
        }
        EventKind::FileOperation(operation) => {
            let by = operation.executable.as_deref().filter(|by| !by.is_empty());
            let by = by.map_or(String::new(), |by| format!(", by {by}"));
            ("file", format!("{} {}{by}", operation.op, operation.path))
        }
    }
}

fn exec_ended_text(ended: &SessionExecEnded) -> String {
    let time = seconds(ended.duration_ms);
    let how = match (&ended.failure, ended.exit_code, ended.signal) {
        (Some(why), _, _) => format!("not started: {why}"),
        (None, Some(code), _) => format!("exit code {code} after {time}"),
        (None, None, Some(signal)) => format!("signal {signal} after {time}"),
        (None, None, None) => format!("ended after {time}"),
    };
    format!("command {}: {how}", ended.command)
}

/// What happened, without the time and the run.
pub(super) fn text(kind: &EventKind) -> String {
    told(kind).1
}

fn exited_text(exited: &Exited) -> String {
    let end = match (exited.outcome, exited.exit_code, exited.signal) {
        (Outcome::Completed, Some(code), _) => format!("exit code {code}"),
        (outcome, _, Some(signal)) => format!("{}, signal {signal}", word(&outcome)),
        (outcome, Some(code), None) => format!("{}, exit code {code}", word(&outcome)),
        (outcome, None, None) => word(&outcome),
    };
    let time = seconds(exited.duration_ms);
    format!("{}: {end} after {time}", exited.run.command.preview())
}

fn decided(decision: Decision) -> &'static str {
    match decision {
        Decision::Allowed => "allowed",
        Decision::Denied => "denied",
    }
}

fn place(host: &str, port: u16, count: u64) -> String {
    let port = network::one_port(port).map_or(String::new(), |port| format!(":{port}"));
    let times = if count == 1 { String::new() } else { format!(", {count} times") };
    format!("{host}{port}{times}")
}

/// As it is written in the log.
pub(super) fn word(value: &impl Serialize) -> String {
    let written = serde_json::to_value(value).unwrap_or_default();
    written.as_str().unwrap_or("?").to_owned()
}

fn millis(micros: u64) -> String {
    format!("{}.{} ms", micros / 1000, micros % 1000 / 100)
}

fn seconds(millis: u64) -> String {
    format!("{}.{:02} s", millis / 1000, millis % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::{line, short};
    use crate::output::Paint;
    use jiff::tz::{Offset, TimeZone};
    use palisade_record::{Approval, Event, EventKind, State};

    fn event(reason: &str) -> Event {
        let approval = Approval { what: "network:host".to_owned(), reason: reason.to_owned() };
        let session = "01934f2a-7c11-7e02-8f6a-2b7d1c9e0a55";
        let kind = EventKind::ApprovalRecorded(approval);
        let mut event = Event::new(session, State::Created, kind);
        event.timestamp = "2026-11-15T23:30:05Z".parse().unwrap();
        event
    }

    /// Proves: LIFE-3 audit
    #[test]
    fn an_event_is_one_line_in_local_time() {
        let zone = TimeZone::fixed(Offset::constant(1));
        assert_eq!(
            line(&event("a test"), &zone, Paint::none()),
            "2026-11-16 00:30:05  1c9e0a55  warn   approval   network:host: a test"
        );
        assert_eq!(short("x"), "x");
    }

    /// Proves: AUD-2 escaped-text
    #[test]
    fn a_line_stays_one_line_whatever_is_in_it() {
        let told = line(&event("a\nb\u{1b}[2K\u{202e}"), &TimeZone::UTC, Paint::none());
        assert!(!told.contains(['\n', '\u{1b}', '\u{202e}']), "{told}");
    }
}
