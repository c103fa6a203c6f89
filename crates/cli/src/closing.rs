//! What a person should know at the end of a run about what was refused in it. It reads only the report; the caller escapes what it prints.

use palisade_policy::limit::{LimitKind, Unit};
use palisade_record::network::NetworkAction;
use palisade_record::{
    BlockedCalls, DeniedHost, DiscardedFiles, LimitReport, NetworkReport, OfflineAttempts, Outcome,
    ProtectedWrite, RefusedExecution, RollBack, RunReport, SavedAnswer, TouchedPath,
    UnaskedQuestions, escape,
};
use palisade_session::outcome_of;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The words by which a rule is forgotten, by its `FILE:LINE`.
pub(crate) type SavedRules = BTreeMap<String, String>;

/// What the policy files say that an end of a run has to know.
#[derive(Debug, Default)]
pub(crate) struct SavedPolicy {
    pub(crate) rules: SavedRules,
    /// Whether hosts are listed that a run could reach.
    pub(crate) lists_hosts: bool,
}

/// How the report names a rule as the one that decided.
const BY_RULE: &str = "rule: ";
/// How it names a rename that would need too much.
const RENAME: &str = "directory";
/// How many paths and calls are named; the report has them all.
const MAX_NAMED: usize = 3;
/// Hosts that have a line each; `sandbox net` has them all.
const MAX_HOSTS: usize = 20;
/// What lists everything that is saved.
const RULES: &str = "sandbox policy rules";

/// A line each, none where nothing was refused. Paths below `cwd` are shown from there.
pub(crate) fn words(report: &RunReport, cwd: &Path, saved: &SavedPolicy) -> Vec<String> {
    let denied = of_denied(&report.denied_paths, &saved.rules);
    let writes = of_writes(&report.protected_writes, cwd);
    let discarded = report.discarded_files.as_ref().and_then(of_discarded);
    let unasked = of_unasked(report);
    let waiting = of_waiting(report);
    let escape = of_escape(report);
    [denied, unasked, discarded, writes, of_forks(report), of_calls(report), of_limits(report)]
        .into_iter()
        .flatten()
        .chain(of_read_only(report))
        .chain(of_variables(&report.removed_variables))
        .chain(of_waived(report))
        .chain(of_offline(report, saved.lists_hosts))
        .chain(waiting)
        .chain(escape)
        .chain(of_saved(&report.saved_answers))
        .chain(of_executions(&report.refused_executions))
        .chain(report.network.iter().flat_map(|network| of_network(network, &report.session_id)))
        .collect()
}

/// Why the run was ended, if an attempt to break out was it, and what was done.
fn of_escape(report: &RunReport) -> Vec<String> {
    let Some(escape) = &report.escape else { return Vec::new() };
    let Some(response) = &escape.response else { return Vec::new() };
    let decisive = escape.indicators.iter().find(|seen| seen.action == escape.action);
    let what = decisive.map_or(response.indicator.as_str(), |seen| seen.description.as_str());
    let done = match response.roll_back {
        RollBack::Discarded => "its changes were discarded",
        RollBack::Failed => "its changes could not be discarded and wait",
        RollBack::NotRolledBack => "what it wrote was not rolled back",
        RollBack::NotAsked => "its changes wait",
    };
    let mut lines = vec![format!(
        "ended for an attempt to break out ({}); all processes were killed, {done}: {what}",
        response.indicator
    )];
    if let Some(id) = escape.quarantined.first() {
        let id = palisade_session::sessions::short_id(id);
        lines.push(format!(
            "quarantined; it does not run until `sandbox quarantine release {id}` (`sandbox quarantine show {id}`)"
        ));
    }
    if let (true, Some(bundle)) = (escape.quarantined.is_empty(), &response.bundle) {
        lines.push(format!(
            "what is known of it is kept in the state directory, as incidents/{bundle}"
        ));
    }
    for alert in &response.alerts {
        if let Some(error) = &alert.error {
            lines.push(format!("the {} alert failed: {error}", alert.by));
        }
    }
    lines
}

/// Changes of a transaction that somebody has to look at.
fn of_waiting(report: &RunReport) -> Option<String> {
    if let Some(applied) = report.applied_changes {
        let count = u64::try_from(applied).unwrap_or(u64::MAX);
        return Some(format!("applied {}", counted(count, "change")));
    }
    let count = u64::try_from(report.waiting_changes?).ok().filter(|count| *count > 0)?;
    let session = palisade_session::sessions::short_id(&report.session_id);
    let wait = if count == 1 { "waits" } else { "wait" };
    Some(format!(
        "{} {wait}: look with `sandbox diff {session}`, then `sandbox apply {session}` or `sandbox discard {session}`",
        counted(count, "change")
    ))
}

/// Whether a rule about a path decided in this run; its place would be of use then.
pub(crate) fn names_rules(report: &RunReport) -> bool {
    report.denied_paths.iter().any(|touched| touched.by.starts_with(BY_RULE))
}

/// What would have been asked about, or was: with the flag that grants it, but for secrets, which are granted one by one.
fn of_denied(denied: &[TouchedPath], rules: &SavedRules) -> Option<String> {
    // Who wanted to write wanted to read as well.
    let is_told_as_written = |touched: &TouchedPath| {
        touched.access != "write"
            && denied.iter().any(|other| other.path == touched.path && other.access == "write")
    };
    let denied: Vec<&TouchedPath> =
        denied.iter().filter(|touched| !is_told_as_written(touched)).collect();
    denied.first()?;
    let named = denied.iter().map(|touched| {
        let TouchedPath { path, by, .. } = touched;
        let way = match by.strip_prefix(BY_RULE).filter(|place| place.contains('/')) {
            Some(place) => by_rule(place, rules),
            None => way_to_allow(touched),
        };
        let late = if by == "timeout" { "nobody answered in time; " } else { "" };
        format!("{path} ({late}{way})")
    });
    let count = u64::try_from(denied.len()).unwrap_or(u64::MAX);
    let were = if count == 1 { "was" } else { "were" };
    Some(format!("{} {were} denied: {}", counted(count, "path"), listed(named)))
}

fn way_to_allow(touched: &TouchedPath) -> String {
    match touched {
        TouchedPath { is_secret: true, .. } => "a secret".to_owned(),
        TouchedPath { by, .. } if by == RENAME => {
            "a rename needs the whole directory writable, which is not possible here".to_owned()
        }
        TouchedPath { path, directory, access, .. } if access == "write" => {
            format!("allow writing with --rw {}", directory.as_ref().unwrap_or(path))
        }
        TouchedPath { path, .. } => format!("allow with --ro {path}"),
    }
}

/// A rule goes before every option that would allow it, so it is what has to go.
fn by_rule(place: &str, rules: &SavedRules) -> String {
    match rules.get(place) {
        Some(words) => format!("the rule at {place}; undo with {}", forget(words)),
        None => format!("the rule at {place}"),
    }
}

/// Where the command tried to write, and could have on the host. Programs try that all the time and go on; only a command that
/// failed may have failed for it.
fn of_read_only(report: &RunReport) -> Option<String> {
    let directories = &report.read_only_directories;
    if report.exit_code == 0 || directories.is_empty() {
        return None;
    }
    let count = u64::try_from(directories.len()).unwrap_or(u64::MAX);
    let are = if count == 1 { "directory is" } else { "directories are" };
    let named = directories.iter().map(|path| format!("{path} (allow writing with --rw {path})"));
    Some(format!(
        "{count} {are} read-only in the sandbox, and the command tried to write: {}",
        listed(named)
    ))
}

/// What the command may have looked for in its environment.
fn of_variables(names: &[String]) -> Option<String> {
    let first = names.first()?;
    let count = u64::try_from(names.len()).unwrap_or(u64::MAX);
    let were = if count == 1 { "was" } else { "were" };
    Some(format!(
        "{} with a secret-like name {were} not passed on: {}; pass one on with --env {first}",
        counted(count, "variable"),
        listed(names.iter().cloned())
    ))
}

/// Limits that nothing on this host holds, and that somebody was ready to go without.
fn of_waived(report: &RunReport) -> Option<String> {
    const BY: &str = "waived with --waive-limit ";
    let names: Vec<String> = report
        .relaxations
        .iter()
        .filter_map(|text| text.split_once(BY)?.1.split_whitespace().next())
        .map(|name| format!("--{}", name.trim_end_matches(')')))
        .collect();
    names.first()?;
    Some(format!(
        "not enforced on this host: {} (waived with --waive-limit)",
        listed(names.into_iter())
    ))
}

/// A failed command that tried to use a network it did not have.
fn of_offline(report: &RunReport, lists_hosts: bool) -> Option<String> {
    let OfflineAttempts { unreachable, unanswered } = report.offline_attempts?;
    if report.exit_code == 0 {
        return None;
    }
    let mut tried = Vec::new();
    if unreachable > 0 {
        tried.push(format!("{} to reach an outside address", counted(unreachable, "attempt")));
    }
    if unanswered > 0 {
        tried.push(format!(
            "{} to look up a name or to send a datagram",
            counted(unanswered, "attempt")
        ));
    }
    let way = match lists_hosts {
        true => {
            "reach the hosts that the policy lists with --network proxy, others with --allow-host HOST"
        }
        false => "allow hosts with --allow-host HOST",
    };
    Some(format!("the network is off; the command made {}; {way}", tried.join(" and ")))
}

/// Permanent answers, with where each is saved and how to undo it; of many, only their number.
fn of_saved(answers: &[SavedAnswer]) -> Vec<String> {
    let (saved, failed): (Vec<&SavedAnswer>, Vec<&SavedAnswer>) =
        answers.iter().partition(|answer| answer.error.is_none());
    let mut told: Vec<String> = match saved.len() {
        0..=MAX_NAMED => saved.iter().map(|answer| of_answer(answer)).collect(),
        count => {
            let named = listed(saved.iter().map(|answer| answer.what.clone()));
            let undo = saved[0].words.as_deref().map_or(RULES.to_owned(), forget);
            let counts = saved.iter().find_map(|answer| answer.counts_with.as_ref());
            let counts = counts
                .map(|option| format!("; hosts apply to runs with {option}"))
                .unwrap_or_default();
            vec![format!(
                "{count} answers saved permanently: {named}; `{RULES}` lists them{counts}; undo one with {undo}"
            )]
        }
    };
    let errors: Vec<&str> = failed.iter().filter_map(|answer| answer.error.as_deref()).collect();
    match errors.len() {
        0..=MAX_NAMED => {
            told.extend(errors.iter().map(|error| format!("an answer was not saved: {error}")));
        }
        count => told.push(format!("{count} answers were not saved: {}", errors[0])),
    }
    told
}

fn of_answer(answer: &SavedAnswer) -> String {
    let SavedAnswer { what, file, line, words, counts_with, .. } = answer;
    let line = line.map(|line| format!(":{line}")).unwrap_or_default();
    let counts = counts_with.as_ref().map(|option| format!(", applies to runs with {option}"));
    let counts = counts.unwrap_or_default();
    let undo = words.as_deref().map_or(RULES.to_owned(), forget);
    format!("saved permanently: {what} ({file}{line}){counts}; undo with {undo}")
}

/// The command that removes a rule, to be copied.
fn forget(words: &str) -> String {
    format!("sandbox policy forget {}", escape::shell_word(words))
}

/// These were never asked, so this line is the only place that mentions them.
fn of_unasked(report: &RunReport) -> Option<String> {
    let UnaskedQuestions { count, limit } = report.unasked_questions?;
    let were = if count == 1 { "was" } else { "were" };
    Some(format!(
        "{} {were} denied without asking: {limit} were already waiting for an answer; answer them (sandbox approve), or allow what the \
         command needs beforehand (--ro, --allow-host)",
        counted(count, "question")
    ))
}

/// Below these every program has a directory of its own.
const SHARED: [&str; 6] =
    [".config", ".local/share", ".local/state", ".local/lib", ".local", ".var/app"];

/// What an option would keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    /// The file that exists outside.
    Copy,
    NewFile,
    Directory,
}

/// What went with the private home, by the directory that would have kept it.
fn of_discarded(discarded: &DiscardedFiles) -> Option<String> {
    let DiscardedFiles { home, count, leftovers, paths, copies, .. } = discarded;
    let mut kept: Vec<(String, Kept)> = Vec::new();
    for path in paths {
        let below = Path::new(path).strip_prefix(home).unwrap_or(Path::new(path));
        let is_copy = copies.contains(path);
        let top = if is_copy { below } else { kept_by(below) };
        let kind = match is_copy {
            true => Kept::Copy,
            false if top == below => Kept::NewFile,
            false => Kept::Directory,
        };
        let named = (format!("~/{}", top.display()), kind);
        if !kept.contains(&named) {
            kept.push(named);
        }
    }
    kept.first()?;
    let named = kept.iter().map(|(path, kind)| match kind {
        Kept::Copy => format!("{path} (keep with --rw {path})"),
        Kept::NewFile => format!("{path} (keep with --rw {path} once it exists outside)"),
        Kept::Directory => format!("{path}/… (keep with --rw {path})"),
    });
    let count = count.saturating_sub(*leftovers);
    let were = if count == 1 { "was" } else { "were" };
    Some(format!(
        "{} written to the private home {were} discarded: {}",
        counted(count, "file"),
        listed(named)
    ))
}

/// The directory that holds what belongs to the same program as this file.
fn kept_by(below_home: &Path) -> &Path {
    let shared = SHARED.iter().find(|shared| below_home.starts_with(shared));
    let depth = shared.map_or(0, |shared| Path::new(shared).components().count()) + 1;
    let above = below_home.components().count().saturating_sub(depth);
    below_home.ancestors().nth(above).unwrap_or(below_home)
}

fn of_writes(writes: &[ProtectedWrite], cwd: &Path) -> Option<String> {
    let first = shown(&writes.first()?.path, cwd);
    let named = writes.iter().map(|write| format!("{} ({})", shown(&write.path, cwd), write.why));
    let total = writes.iter().map(|write| write.count).sum();
    Some(format!(
        "{} denied: {}; allow with --allow-write {first}",
        counted(total, "protected write"),
        listed(named)
    ))
}

fn of_executions(executions: &[RefusedExecution]) -> Vec<String> {
    let rules: BTreeSet<&str> = executions.iter().map(|refused| refused.rule.as_str()).collect();
    let told = rules.into_iter().map(|rule| {
        let by_it: Vec<_> = executions.iter().filter(|refused| refused.rule == rule).collect();
        let total = by_it.iter().map(|refused| refused.count).sum();
        let named = listed(by_it.iter().map(|refused| refused.path.clone()));
        format!("{} denied by `{rule}`: {named}", counted(total, "execution"))
    });
    told.collect()
}

/// What was not reached, with the option that would allow each.
fn of_network(network: &NetworkReport, session: &str) -> Vec<String> {
    let hosts = network.denied.iter().filter(|denied| {
        // What was tried says more than that it was looked up before.
        let is_tried = |other: &DeniedHost| other.host == denied.host && other.port.is_some();
        denied.port.is_some() || !network.denied.iter().any(is_tried)
    });
    // An allowed name that nobody knows was not denied.
    let is_unknown =
        |host: &&DeniedHost| host.action == NetworkAction::ProxyBlockedDns && host.allow.is_none();
    let (unknown, hosts): (Vec<&DeniedHost>, Vec<&DeniedHost>) = hosts.partition(is_unknown);
    let mut told = Vec::new();
    for (hosts, what) in [(hosts, "denied"), (unknown, "not found")] {
        if hosts.is_empty() {
            continue;
        }
        let named: Vec<String> = hosts.iter().map(|host| of_host(host)).collect();
        let count = u64::try_from(named.len()).unwrap_or(u64::MAX);
        let were = if count == 1 { "was" } else { "were" };
        let summary = format!("{} {were} {what}:", counted(count, "host"));
        if named.len() <= MAX_NAMED {
            told.push(format!("{summary} {}", named.join(", ")));
            continue;
        }
        told.push(summary);
        told.extend(named.iter().take(MAX_HOSTS).map(|host| format!("  {host}")));
        let more = named.len().saturating_sub(MAX_HOSTS);
        if more > 0 {
            told.push(format!("  {more} more: sandbox net {session}"));
        }
    }
    if network.datagrams_rejected > 0 {
        told.push(format!(
            "{} rejected: only TCP and DNS queries are forwarded",
            counted(network.datagrams_rejected, "datagram")
        ));
    }
    if let Some(first) = network.queries.suspected.first() {
        told.push(format!(
            "{} like tunnelling, such as {} ({})",
            match network.queries.suspicious {
                1 => "1 look-up looks".to_owned(),
                many => format!("{many} look-ups look"),
            },
            first.name,
            first.suspicion
        ));
    }
    told
}

fn of_host(host: &DeniedHost) -> String {
    match (&host.allow, &host.reason) {
        (Some(flag), _) => format!("{} (allow with {flag})", host.place()),
        (None, Some(why)) => format!("{} ({why})", host.place()),
        (None, None) => host.place(),
    }
}

fn of_forks(report: &RunReport) -> Option<String> {
    const RULE: &str = "process.allowFork";
    let is_fork = |call: &&BlockedCalls| call.rule.as_deref() == Some(RULE);
    let forks: Vec<_> = report.blocked_calls.iter().filter(is_fork).collect();
    forks.first()?;
    let total = forks.iter().map(|call| call.count).sum();
    let programs: BTreeSet<String> = forks.iter().map(|call| call.executable.clone()).collect();
    let programs = listed(programs.into_iter());
    Some(format!("{} denied by `{RULE}`: {programs}", counted(total, "fork")))
}

fn of_calls(report: &RunReport) -> Option<String> {
    let calls: Vec<_> = report.blocked_calls.iter().filter(|call| call.suspicious).collect();
    let first = calls.first()?;
    let names = listed(calls.iter().map(|call| {
        let what = call.detail.as_ref().map(|what| format!(" {what},")).unwrap_or_default();
        format!("{}{what} by {}", call.name, call.executable)
    }));
    let total = calls.iter().map(|call| call.count).sum();
    Some(match report.ended_by_blocked_calls {
        Some(limit) => format!(
            "stopped after {} ({names}); `syscalls.maxBlocked` is {limit}",
            counted(total, "suspicious system call")
        ),
        None => format!(
            "{} denied: {names}; ordinary programs do not need it (sandbox explain-syscall {})",
            counted(total, "suspicious system call"),
            first.name
        ),
    })
}

/// The limit that explains how the run ended, with the option that raises it.
fn of_limits(report: &RunReport) -> Option<String> {
    if let Outcome::Completed | Outcome::Signalled = report.outcome {
        return of_passed_limits(report);
    }
    report.limits.iter().find_map(|limit| {
        let what =
            LimitKind::named(&limit.name).filter(|what| outcome_of(*what) == report.outcome)?;
        of_exhausted(limit, what.unit(), what.exhausted()?)
    })
}

/// Nothing of a limit that was not reached.
fn of_exhausted(limit: &LimitReport, unit: Unit, exhausted: &str) -> Option<String> {
    let LimitReport { name, value, holder, .. } = limit;
    let reached = limit.reached.as_ref()?;
    let is_counted = reached.usage.is_some() || reached.times.is_some();
    let what = match is_counted {
        true => exhausted,
        false => "resource use could no longer be measured (see the report)",
    };
    let ended = if reached.ended_the_run { "; all processes were killed" } else { "" };
    Some(format!(
        "{what}: the limit is {}, enforced by {holder}{ended}; raise it with --{name}",
        unit.show(*value)
    ))
}

/// A limit that is looked at now and then may be found passed when all is over.
fn of_passed_limits(report: &RunReport) -> Option<String> {
    report.limits.iter().find_map(|limit| {
        let used = limit.reached.as_ref()?.usage.filter(|used| *used > limit.value)?;
        let LimitReport { name, value, holder, .. } = limit;
        let unit = LimitKind::named(name)?.unit();
        let [used, value] = [used, *value].map(|value| unit.show(value));
        Some(format!(
            "the run exceeded the limit --{name} of {value} ({used}); {holder} noticed it too late"
        ))
    })
}

pub(crate) fn counted(count: u64, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

fn listed(things: impl ExactSizeIterator<Item = String>) -> String {
    let more = things.len().saturating_sub(MAX_NAMED);
    let named = things.take(MAX_NAMED).collect::<Vec<_>>().join(", ");
    if more == 0 { named } else { format!("{named} and {more} more") }
}

fn shown<'p>(path: &'p str, cwd: &Path) -> &'p str {
    Path::new(path).strip_prefix(cwd).ok().and_then(Path::to_str).unwrap_or(path)
}

#[cfg(test)]
#[path = "closing_tests.rs"]
mod tests;
