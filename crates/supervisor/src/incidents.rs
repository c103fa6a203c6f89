//! What the broker tells of a run: refused calls, protected writes, sockets left on the host (SYS-2).
//!
//! Counts everything and keeps a bounded part of it, so that a flood of attempts can fill neither the log
//! nor the memory; says when there were too many suspicious ones. Each kind has a budget of its own in the audit log, and
//! the first of each path or call is recorded whatever came before it (AUD-2).

use crate::file_operations::FileOperations;
use crate::log_budget::{Excess, LogBudget, Omitted, SumKey};
use palisade_bpf::{Arch, Profile, SeccompData, table};
use palisade_broker::{BlockedCall, BrokerMessage, NotExecuted, Protected};
use palisade_plan::model::Seccomp;
use palisade_record::indicators::{
    self, KnownIndicator, MEMORY_EXEC, PROTECTED_WRITE, TOO_MANY_CALLS, UNAUTHORIZED_EXEC,
};
use palisade_record::{
    BlockedCalls, Decision, EventKind, PolicyViolation, ProtectedWrite, RefusedExecution,
    RunReport, SyscallBlocked,
};
use palisade_sys::{Errno, errno_name};
use std::time::{Duration, Instant};

/// The details of this many of each kind are logged, at first or after a quiet time, and of one more after each `REFILL`.
const MAX_LOGGED: u64 = 200;
const REFILL: Duration = Duration::from_millis(500);
/// How many different paths are counted separately.
const MAX_PATHS: usize = 200;
/// The key under which files in memory are refused: they could be executed, and are on no list.
const LISTED_PROGRAMS: &str = "process.allowedExecutables";
const PROGRAM_IN_MEMORY: &str = "a file in memory";

#[derive(Debug)]
pub struct Incidents {
    /// This many suspicious attempts stop the run.
    limit: Option<u64>,
    /// They know which policy key refuses a call.
    rules: Option<Profile>,
    suspicious: u64,
    excess: Excess,
    blocked_budget: LogBudget,
    protected_budget: LogBudget,
    execution_budget: LogBudget,
    /// For what the broker had no room to tell.
    lost_budget: LogBudget,
    file_operations: FileOperations,
    blocked: Vec<BlockedCalls>,
    protected: Vec<ProtectedWrite>,
    /// Protected writes beyond those in the list.
    protected_beyond: u64,
    executions: Vec<RefusedExecution>,
    /// Refused executions beyond those in the list.
    executions_beyond: u64,
    sockets: Vec<String>,
    read_only: Vec<String>,
    busy: Vec<String>,
    lost: u64,
}

/// What follows from a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    GoOn,
    /// The broker cannot go on, for this reason.
    Failed(String),
}

impl Incidents {
    /// Of a run under this filter; of one without there are none.
    pub(crate) fn new(seccomp: Option<&Seccomp>, excess: Excess) -> Self {
        let budget = |burst| LogBudget::new(burst, REFILL, excess);
        Self {
            limit: seccomp.and_then(|seccomp| seccomp.max_blocked),
            rules: seccomp.map(|seccomp| seccomp.rules.clone()),
            suspicious: 0,
            excess,
            blocked_budget: budget(MAX_LOGGED),
            protected_budget: budget(MAX_LOGGED),
            execution_budget: budget(MAX_LOGGED),
            lost_budget: budget(0),
            file_operations: FileOperations::new(excess),
            blocked: Vec::new(),
            protected: Vec::new(),
            protected_beyond: 0,
            executions: Vec::new(),
            executions_beyond: 0,
            sockets: Vec::new(),
            read_only: Vec::new(),
            busy: Vec::new(),
            lost: 0,
        }
    }

    /// When [`Self::take_due`] has something to record.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let due = self.budgets().into_iter().filter_map(LogBudget::due);
        due.chain(self.file_operations.next_due()).min()
    }

    /// The sums whose time has come, for the audit log.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<EventKind> {
        let mut due = self.file_operations.take_due(now);
        due.extend(self.budgets_mut().into_iter().flat_map(|budget| budget.take_due(now)));
        due
    }

    /// All that was only counted so far.
    pub(crate) fn take_sums(&mut self) -> Vec<EventKind> {
        let mut sums = self.file_operations.take_sums();
        sums.extend(self.budgets_mut().into_iter().flat_map(LogBudget::take_all));
        sums
    }

    fn budgets(&self) -> [&LogBudget; 4] {
        let Self { blocked_budget, protected_budget, execution_budget, lost_budget, .. } = self;
        [blocked_budget, protected_budget, execution_budget, lost_budget]
    }

    fn budgets_mut(&mut self) -> [&mut LogBudget; 4] {
        let Self { blocked_budget, protected_budget, execution_budget, lost_budget, .. } = self;
        [blocked_budget, protected_budget, execution_budget, lost_budget]
    }

    /// Counts a message, and tells `log` what of it belongs in the audit log.
    pub(crate) fn hear(
        &mut self,
        message: BrokerMessage,
        log: &mut dyn FnMut(EventKind),
    ) -> Verdict {
        match message {
            // The gate's; without one nothing is notified that would be told so. The launcher's.
            BrokerMessage::PathAccess(_)
            | BrokerMessage::Returned { .. }
            | BrokerMessage::Made { .. }
            | BrokerMessage::Withdrawn { .. }
            | BrokerMessage::Unasked { .. }
            | BrokerMessage::Staging { .. } => {}
            BrokerMessage::Blocked(blocked) => self.blocked(blocked, log),
            BrokerMessage::Protected(protected) => self.protected(protected, log),
            BrokerMessage::NotExecuted(refused) => self.not_executed(refused, log),
            BrokerMessage::Socket { path, .. } => {
                if self.sockets.len() < MAX_PATHS {
                    self.sockets.push(text(&path));
                }
            }
            BrokerMessage::ReadOnly { directory } => {
                let directory = text(&directory);
                if self.read_only.len() < MAX_PATHS && !self.read_only.contains(&directory) {
                    self.read_only.push(directory);
                }
            }
            BrokerMessage::Busy { tree } => {
                let tree = text(&tree);
                if self.busy.len() < MAX_PATHS && !self.busy.contains(&tree) {
                    self.busy.push(tree);
                }
            }
            BrokerMessage::Lost { count, suspicious } => {
                self.lost += count;
                let omitted = Omitted { count, ..omitted("unreported", None, None) };
                self.lost_budget.add_up(omitted, Instant::now());
                self.count_suspicious(suspicious, None, log);
            }
            BrokerMessage::FileOperation(told) => self.file_operations.hear(told, log),
            BrokerMessage::Failed(why) => return Verdict::Failed(why),
        }
        Verdict::GoOn
    }

    /// What the report says of it.
    pub fn report(self, report: &mut RunReport) {
        report.ended_by_blocked_calls = self.limit.filter(|_| self.is_too_many());
        if self.protected_beyond > 0 {
            let more = self.protected_beyond;
            report.notes.push(format!("{more} more protected writes were denied"));
        }
        if self.executions_beyond > 0 {
            let more = self.executions_beyond;
            report.notes.push(format!("{more} more programs were denied"));
        }
        for tree in self.busy {
            report.notes.push(format!(
                "calls in {tree} failed with EBUSY: another sandbox that shares it is stopped in the middle of a call; \
                 continue or end it (sandbox top)"
            ));
        }
        if self.lost > 0 {
            let lost = self.lost;
            report
                .notes
                .push(format!("{lost} denied calls came too fast to be reported one by one"));
        }
        report.blocked_calls = self.blocked;
        report.protected_writes = self.protected;
        report.refused_executions = self.executions;
        report.sockets_made = self.sockets;
        report.read_only_directories = self.read_only;
    }

    pub(crate) fn is_too_many(&self) -> bool {
        self.limit.is_some_and(|limit| self.suspicious >= limit)
    }

    fn blocked(&mut self, blocked: BlockedCall, log: &mut dyn FnMut(EventKind)) {
        let BlockedCall { number, arguments, pid, executable, errno, suspicious } = blocked;
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
            let detail = detail(name, arguments).map(str::to_owned);
            let (name, count) = (name.to_owned(), 1);
            self.count_call(BlockedCalls {
                name,
                number,
                count,
                suspicious,
                detail,
                rule,
                executable,
            })
        };
        let now = Instant::now();
        let is_recorded = self.is_always_recorded(is_first) || self.blocked_budget.take(now);
        if !is_recorded {
            let source = rule.map_or_else(|| name.to_owned(), str::to_owned);
            self.blocked_budget.add_up(omitted("blocked-call", Some(source), None), now);
        } else {
            let errno = errno_name(Errno::from_raw_os_error(errno.into())).to_owned();
            log(EventKind::SyscallBlocked(SyscallBlocked {
                name: name.to_owned(),
                number: number.into(),
                arguments,
                pid,
                executable: executable.clone(),
                errno,
                suspicious,
            }));
        }
        if rule == Some(LISTED_PROGRAMS) && is_first {
            log(alert(MEMORY_EXEC, &format!("{name} by {executable}"), Some(pid)));
        }
        if !suspicious {
            return;
        }
        if is_first {
            let what = detail(name, arguments).map(|what| format!(" ({what})")).unwrap_or_default();
            let tried = format!("{name}{what} by {executable}");
            log(alert(indicators::of_call(name), &tried, Some(pid)));
        }
        self.count_suspicious(1, Some(pid), log);
    }

    /// Counts suspicious calls, and says when there were too many.
    fn count_suspicious(&mut self, more: u64, pid: Option<u32>, log: &mut dyn FnMut(EventKind)) {
        let was_too_many = self.is_too_many();
        self.suspicious += more;
        if self.is_too_many() && !was_too_many {
            log(alert(TOO_MANY_CALLS, &self.suspicious.to_string(), pid));
        }
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
                && known.detail == call.detail
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

    fn not_executed(&mut self, refused: NotExecuted, log: &mut dyn FnMut(EventKind)) {
        let NotExecuted { call, path, rule, pid, executable } = refused;
        let (path, executable) = (text(&path), text(&executable));
        let event = violation(pid, &call, &path, &rule);
        let source = rule.clone();
        let refused = RefusedExecution { path: path.clone(), rule, call, executable, count: 1 };
        let tried = format!("{path} by {}", refused.executable);
        let is_first = self.count_execution(refused);
        if is_first {
            log(alert(UNAUTHORIZED_EXEC, &tried, Some(pid)));
        }
        let now = Instant::now();
        if self.is_always_recorded(is_first) || self.execution_budget.take(now) {
            log(event);
        } else {
            self.execution_budget.add_up(omitted("execution", Some(source), Some(path)), now);
        }
    }

    /// Whether it is the first of its path, of those that are told apart.
    fn count_execution(&mut self, refused: RefusedExecution) -> bool {
        let is_full = self.executions.len() >= MAX_PATHS;
        let is_like = |known: &&mut RefusedExecution| {
            known.path == refused.path && known.rule == refused.rule
        };
        match self.executions.iter_mut().find(is_like) {
            Some(known) => {
                known.count += 1;
                return false;
            }
            None if is_full => {
                self.executions_beyond += 1;
                return false;
            }
            None => self.executions.push(refused),
        }
        true
    }

    fn protected(&mut self, protected: Protected, log: &mut dyn FnMut(EventKind)) {
        let Protected { call, path, rule, why, pid, executable } = protected;
        let (path, executable) = (text(&path), text(&executable));
        let event = violation(pid, &call, &path, &rule);
        let omitted = omitted("protected-write", Some(rule.clone()), Some(path.clone()));
        let tried = format!("{path} by {executable}");
        let is_full = self.protected.len() >= MAX_PATHS;
        let mut known = self.protected.iter_mut();
        let is_first = match known.find(|known| known.path == path && known.rule == rule) {
            Some(known) => {
                known.count += 1;
                false
            }
            None if is_full => {
                self.protected_beyond += 1;
                false
            }
            None => {
                self.protected.push(ProtectedWrite { path, rule, why, call, executable, count: 1 });
                true
            }
        };
        let now = Instant::now();
        if self.is_always_recorded(is_first) || self.protected_budget.take(now) {
            log(event);
        } else {
            self.protected_budget.add_up(omitted, now);
        }
        if is_first {
            log(alert(PROTECTED_WRITE, &tried, Some(pid)));
        }
    }

    /// Whether it is recorded whatever its budget says.
    fn is_always_recorded(&self, is_first: bool) -> bool {
        is_first && self.excess == Excess::Summed
    }
}

/// What the requests of ioctl(2) do that the filter refuses (`resources/seccomp/baseline.txt`).
const REQUESTS: [(u64, &str); 4] = [
    (0x5412, "TIOCSTI, which types into a terminal"),
    (0x541c, "TIOCLINUX, which pastes on a console"),
    (0x541d, "TIOCCONS, which redirects the console"),
    (0x5423, "TIOCSETD, which changes the line discipline of a terminal"),
];

/// What the arguments ask for, of a call that does many things.
fn detail(name: &str, arguments: [u64; 6]) -> Option<&'static str> {
    // The kernel reads 32 bits of it.
    let request = arguments[1] & u64::from(u32::MAX);
    let known = REQUESTS.iter().find(|(number, _)| name == "ioctl" && *number == request);
    known.map(|(_, told)| *told)
}

fn omitted(what: &'static str, source: Option<String>, path: Option<String>) -> Omitted {
    let key = SumKey { what, is_allowed: false, source };
    Omitted { key, path, count: 1, was_asked: false }
}

fn violation(pid: u32, call: &str, path: &str, rule: &str) -> EventKind {
    EventKind::PolicyViolation(PolicyViolation {
        pid: Some(pid),
        op: call.to_owned(),
        path: Some(path.to_owned()),
        decision: Decision::Denied,
        rule: rule.to_owned(),
        latency_us: None,
    })
}

fn alert(known: &KnownIndicator, details: &str, pid: Option<u32>) -> EventKind {
    EventKind::EscapeAttempt(known.attempt(details, pid))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
#[path = "incidents_tests.rs"]
mod tests;
