//! What the broker tells of a run: refused calls, protected writes, sockets left on the host (SYS-2).
//!
//! Counts everything and keeps a bounded part of it, so that a flood of attempts can fill neither the log
//! nor the memory; says when there were too many suspicious ones.

use palisade_bpf::{Arch, Profile, SeccompData, table};
use palisade_broker::{Blocked, Message, NotExecuted, Protected};
use palisade_plan::model::Seccomp;
use palisade_record::{
    BlockedCalls, Decision, EscapeAttempt, Indicator, Kind, PolicyViolation, ProtectedWrite,
    RefusedExecution, RunReport, Severity, SyscallBlocked,
};
use palisade_sys::{Errno, errno_name};

/// The details of so many of each kind are logged; of the rest the report has the number.
const MOST_LOGGED: u64 = 200;
/// So many different paths are told apart.
const MOST_PATHS: usize = 200;
/// The key under which files in memory are refused: they could be executed, and are on no list.
const LISTED_PROGRAMS: &str = "process.allowedExecutables";
const PROGRAM_IN_MEMORY: &str = "a file in memory";

#[derive(Debug, Default)]
pub(crate) struct Incidents {
    /// So many suspicious attempts end the run.
    limit: Option<u64>,
    /// They know which policy key refuses a call.
    rules: Option<Profile>,
    suspicious: u64,
    blocked_logged: u64,
    protected_logged: u64,
    blocked: Vec<BlockedCalls>,
    protected: Vec<ProtectedWrite>,
    /// Protected writes beyond those in the list.
    protected_beyond: u64,
    executions_logged: u64,
    executions: Vec<RefusedExecution>,
    /// Refused executions beyond those in the list.
    executions_beyond: u64,
    sockets: Vec<String>,
    busy: Vec<String>,
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
    /// Of a run under this filter; of one without there are none.
    pub(crate) fn new(seccomp: Option<&Seccomp>) -> Self {
        let limit = seccomp.and_then(|seccomp| seccomp.max_blocked);
        Self { limit, rules: seccomp.map(|seccomp| seccomp.rules.clone()), ..Self::default() }
    }

    /// Counts a message, and tells `log` what of it belongs in the audit log.
    pub(crate) fn hear(&mut self, message: Message, log: &mut dyn FnMut(Kind)) -> Verdict {
        match message {
            // The gate's; without one nothing is notified that would be told so. The launcher's.
            Message::Touch(_)
            | Message::Returned { .. }
            | Message::Withdrawn { .. }
            | Message::Staging { .. } => {}
            Message::Blocked(blocked) => return self.blocked(blocked, log),
            Message::Protected(protected) => self.protected(protected, log),
            Message::NotExecuted(refused) => self.not_executed(refused, log),
            Message::Socket { path, .. } => {
                if self.sockets.len() < MOST_PATHS {
                    self.sockets.push(text(&path));
                }
            }
            Message::Busy { tree } => {
                let tree = text(&tree);
                if self.busy.len() < MOST_PATHS && !self.busy.contains(&tree) {
                    self.busy.push(tree);
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
        if self.executions_beyond > 0 {
            let more = self.executions_beyond;
            report.notes.push(format!("{more} more programs were refused"));
        }
        for tree in self.busy {
            report.notes.push(format!(
                "calls in {tree} failed with EBUSY: another sandbox that shares it is stopped in the middle of a call; \
                 continue or end it (sandbox top)"
            ));
        }
        if self.lost > 0 {
            let lost = self.lost;
            report.notes.push(format!("{lost} refused calls came too fast to be told apart"));
        }
        report.blocked_calls = self.blocked;
        report.protected_writes = self.protected;
        report.refused_executions = self.executions;
        report.sockets_made = self.sockets;
    }

    pub(crate) fn is_too_many(&self) -> bool {
        self.limit.is_some_and(|limit| self.suspicious >= limit)
    }

    fn blocked(&mut self, blocked: Blocked, log: &mut dyn FnMut(Kind)) -> Verdict {
        let Blocked { number, arguments, pid, executable, errno, suspicious } = blocked;
        let name = table::name(Arch::native(), number).unwrap_or("unknown");
        let executable = text(&executable);
        let rule = self.key_behind(number, arguments);
        let is_first = if rule == Some(LISTED_PROGRAMS) {
            let (path, call) = (PROGRAM_IN_MEMORY.to_owned(), name.to_owned());
            let executable = executable.clone();
            self.count_execution(RefusedExecution {
                path,
                rule: LISTED_PROGRAMS.to_owned(),
                call,
                executable,
                count: 1,
            })
        } else {
            let executable = executable.clone();
            let rule = rule.map(str::to_owned);
            let name = name.to_owned();
            self.count_call(BlockedCalls { name, number, count: 1, suspicious, rule, executable })
        };
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

    /// The policy key that refuses this very call, where it is one and not the filter in any case.
    fn key_behind(&self, number: u32, arguments: [u64; 6]) -> Option<&'static str> {
        let arch = Arch::native().audit_value();
        let call = SeccompData { nr: number, arch, instruction_pointer: 0, args: arguments };
        palisade_plan::key_of(self.rules.as_ref()?.switch_behind(&call)?)
    }

    /// Whether it is the first of its name.
    fn count_call(&mut self, call: BlockedCalls) -> bool {
        let is_like = |known: &&mut BlockedCalls| {
            known.number == call.number
                && known.suspicious == call.suspicious
                && known.rule == call.rule
        };
        match self.blocked.iter_mut().find(is_like) {
            Some(known) => {
                known.count += 1;
                known.executable = call.executable;
                false
            }
            None => {
                self.blocked.push(call);
                true
            }
        }
    }

    fn not_executed(&mut self, refused: NotExecuted, log: &mut dyn FnMut(Kind)) {
        let NotExecuted { call, path, rule, pid, executable } = refused;
        let (path, executable) = (text(&path), text(&executable));
        if self.executions_logged < MOST_LOGGED {
            self.executions_logged += 1;
            log(violation(pid, &call, &path, &rule));
        }
        self.count_execution(RefusedExecution { path, rule, call, executable, count: 1 });
    }

    /// Whether it is the first of its path.
    fn count_execution(&mut self, refused: RefusedExecution) -> bool {
        let is_full = self.executions.len() >= MOST_PATHS;
        let is_like = |known: &&mut RefusedExecution| {
            known.path == refused.path && known.rule == refused.rule
        };
        match self.executions.iter_mut().find(is_like) {
            Some(known) => {
                known.count += 1;
                return false;
            }
            None if is_full => self.executions_beyond += 1,
            None => self.executions.push(refused),
        }
        true
    }

    fn protected(&mut self, protected: Protected, log: &mut dyn FnMut(Kind)) {
        let Protected { call, path, rule, why, pid, executable } = protected;
        let (path, executable) = (text(&path), text(&executable));
        if self.protected_logged < MOST_LOGGED {
            self.protected_logged += 1;
            log(violation(pid, &call, &path, &rule));
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

fn violation(pid: u32, call: &str, path: &str, rule: &str) -> Kind {
    Kind::PolicyViolation(PolicyViolation {
        pid: Some(pid),
        op: call.to_owned(),
        path: Some(path.to_owned()),
        decision: Decision::Denied,
        rule: rule.to_owned(),
        latency_us: None,
    })
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
