//! What a person should know at the end of a run about what was refused in it. From the report alone; whoever prints it
//! escapes it.

use palisade_record::{ProtectedWrite, RunReport};
use std::path::Path;

/// So many paths and calls are named; the report has them all.
const MOST_NAMED: usize = 3;

/// A line each, none where nothing was refused. Paths below `cwd` are shown from there.
pub(crate) fn words(report: &RunReport, cwd: &Path) -> Vec<String> {
    let (executions, writes): (Vec<_>, Vec<_>) =
        report.protected_writes.iter().partition(|refused| refused.rule == "process.allowExec");
    [of_writes(&writes, cwd), of_executions(&executions), of_calls(report)]
        .into_iter()
        .flatten()
        .collect()
}

fn of_writes(writes: &[&ProtectedWrite], cwd: &Path) -> Option<String> {
    let first = shown(&writes.first()?.path, cwd);
    let named = writes.iter().map(|write| format!("{} ({})", shown(&write.path, cwd), write.why));
    Some(format!(
        "{} refused: {}; allow with --allow-write {first}",
        counted(count(writes), "protected write"),
        listed(named)
    ))
}

fn of_executions(executions: &[&ProtectedWrite]) -> Option<String> {
    executions.first()?;
    let named = executions.iter().map(|refused| refused.path.clone());
    Some(format!(
        "{} refused by `process.allowExec`: {}",
        counted(count(executions), "execution"),
        listed(named)
    ))
}

fn of_calls(report: &RunReport) -> Option<String> {
    let calls: Vec<_> = report.blocked_calls.iter().filter(|call| call.suspicious).collect();
    calls.first()?;
    let names = listed(calls.iter().map(|call| call.name.clone()));
    let total = calls.iter().map(|call| call.count).sum();
    Some(match report.ended_by_blocked_calls {
        Some(limit) => format!(
            "ended after {} ({names}); `syscalls.maxBlocked` is {limit}",
            counted(total, "suspicious system call")
        ),
        None => format!("{} refused: {names}", counted(total, "suspicious system call")),
    })
}

fn count(refused: &[&ProtectedWrite]) -> u64 {
    refused.iter().map(|refused| refused.count).sum()
}

fn counted(count: u64, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

fn listed(things: impl ExactSizeIterator<Item = String>) -> String {
    let more = things.len().saturating_sub(MOST_NAMED);
    let named = things.take(MOST_NAMED).collect::<Vec<_>>().join(", ");
    if more == 0 { named } else { format!("{named} and {more} more") }
}

fn shown<'p>(path: &'p str, cwd: &Path) -> &'p str {
    Path::new(path).strip_prefix(cwd).ok().and_then(Path::to_str).unwrap_or(path)
}

#[cfg(test)]
#[path = "closing_tests.rs"]
mod tests;
