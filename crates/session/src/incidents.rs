//! What the broker tells of a run: refused calls, protected writes, sockets left on the host (SYS-2).
//!
//! Counts everything and keeps a bounded part of it, so that a flood of attempts can fill neither the log
//! nor the memory; says when there were too many suspicious ones.

use palisade_bpf::{Arch, table};
use palisade_broker::{Blocked, Message, Protected};
use palisade_record::{
    BlockedCalls, Decision, EscapeAttempt, Indicator, Kind, PolicyViolation, ProtectedWrite,
    RunReport, Severity, SyscallBlocked,
};
use palisade_sys::{Errno, errno_name};

/// The details of so many of each kind are logged; of the rest the report has the number.
const MOST_LOGGED: u64 = 200;
/// So many different paths are told apart.
const MOST_PATHS: usize = 200;

#[derive(Debug, Default)]
pub(crate) struct Incidents {
    limit: Option<u64>,
    suspicious: u64,
    blocked_logged: u64,
    protected_logged: u64,
    blocked: Vec<BlockedCalls>,
    protected: Vec<ProtectedWrite>,
    /// Protected writes beyond those in the list.
    protected_beyond: u64,
    sockets: Vec<String>,
    lost: u64,
}

/// What follows from a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    GoOn,
    /// More suspicious attempts than the policy bears.
    TooMany,
    /// The broker can not go on, for this reason.
    Failed(String),
}

impl Incidents {
    /// `limit`: so many suspicious attempts end the run.
    pub(crate) fn new(limit: Option<u64>) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Counts a message, and tells `log` what of it belongs in the audit log.
    pub(crate) fn hear(&mut self, message: Message, log: &mut dyn FnMut(Kind)) -> Verdict {
        match message {
            Message::Blocked(blocked) => return self.blocked(blocked, log),
            Message::Protected(protected) => self.protected(protected, log),
            Message::Socket { path, .. } => {
                if self.sockets.len() < MOST_PATHS {
                    self.sockets.push(text(&path));
                }
            }
            Message::Lost { count, suspicious } => {
                self.lost += count;
                self.suspicious += suspicious;
                if self.is_too_many() {
                    return Verdict::TooMany;
                }
            }
            Message::Failed(why) => return Verdict::Failed(why),
        }
        Verdict::GoOn
    }

    /// What the report says of it.
    pub(crate) fn report(self, report: &mut RunReport) {
        report.ended_by_blocked_calls = self.limit.filter(|_| self.is_too_many());
        if self.protected_beyond > 0 {
            let more = self.protected_beyond;
            report.notes.push(format!("{more} more protected writes were refused"));
        }
        if self.lost > 0 {
            let lost = self.lost;
            report.notes.push(format!("{lost} refused calls came too fast to be told apart"));
        }
        report.blocked_calls = self.blocked;
        report.protected_writes = self.protected;
        report.sockets_made = self.sockets;
    }

    pub(crate) fn is_too_many(&self) -> bool {
        self.limit.is_some_and(|limit| self.suspicious >= limit)
    }

    fn blocked(&mut self, blocked: Blocked, log: &mut dyn FnMut(Kind)) -> Verdict {
        let Blocked { number, arguments, pid, executable, errno, suspicious } = blocked;
        let name = table::name(Arch::native(), number).unwrap_or("unknown");
        let executable = text(&executable);
        let is_first = self.count_call(name, number, suspicious, &executable);
        if self.blocked_logged < MOST_LOGGED {
            self.blocked_logged += 1;
            let errno = errno_name(Errno::from_raw_os_error(errno.into())).to_owned();
            log(Kind::SyscallBlocked(SyscallBlocked {
                name: name.to_owned(),
                number: number.into(),
                arguments,
                pid,
                executable: executable.clone(),
                errno,
                suspicious,
            }));
        }
        if !suspicious {
            return Verdict::GoOn;
        }
        self.suspicious += 1;
        if is_first {
            let description = format!("{executable} tried {name}, which ordinary programs do not");
            log(alert(Severity::Medium, description, pid));
        }
        if self.limit == Some(self.suspicious) {
            let count = self.suspicious;
            log(alert(Severity::High, format!("{count} suspicious system calls"), pid));
        }
        if self.is_too_many() { Verdict::TooMany } else { Verdict::GoOn }
    }

    /// Whether it is the first of its name.
    fn count_call(&mut self, name: &str, number: u32, suspicious: bool, executable: &str) -> bool {
        let known = self
            .blocked
            .iter_mut()
            .find(|known| known.number == number && known.suspicious == suspicious);
        match known {
            Some(known) => {
                known.count += 1;
                executable.clone_into(&mut known.executable);
                false
            }
            None => {
                let (name, executable) = (name.to_owned(), executable.to_owned());
                self.blocked.push(BlockedCalls { name, number, count: 1, suspicious, executable });
                true
            }
        }
    }

    fn protected(&mut self, protected: Protected, log: &mut dyn FnMut(Kind)) {
        let Protected { call, path, rule, why, pid, executable } = protected;
        let (path, executable) = (text(&path), text(&executable));
        if self.protected_logged < MOST_LOGGED {
            self.protected_logged += 1;
            log(Kind::PolicyViolation(PolicyViolation {
                pid: Some(pid),
                op: call.clone(),
                path: Some(path.clone()),
                decision: Decision::Denied,
                rule: rule.clone(),
                latency_us: None,
            }));
        }
        let is_full = self.protected.len() >= MOST_PATHS;
        let mut known = self.protected.iter_mut();
        match known.find(|known| known.path == path && known.rule == rule) {
            Some(known) => known.count += 1,
            None if is_full => self.protected_beyond += 1,
            None => {
                self.protected.push(ProtectedWrite { path, rule, why, call, executable, count: 1 });
            }
        }
    }
}

fn alert(severity: Severity, description: String, pid: u32) -> Kind {
    let indicator = Indicator::Syscall;
    Kind::EscapeAttempt(EscapeAttempt { indicator, severity, description, pid: Some(pid) })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
#[path = "incidents_tests.rs"]
mod tests;
