//! Tells people of an incident: on the desktop, and by a POST to an address of the policy.
//!
//! By a process of its own, which is ended when its time is over: a resolver, a server or a notification daemon that does
//! not answer must not keep us. The run is over by then, so nothing waits for it but the report.

use palisade_egress::post::{Destination, post_json};
use palisade_policy::model::Escape;
use palisade_policy::model::escape::WebhookUrl;
use palisade_record::{AlertResult, Digest, EscapeAction, EscapeAttempt, RollBack, escape};
use palisade_sys::clone::{Forked, fork};
use palisade_sys::proc::{self, sig::SIGKILL};
use rustix::event::{PollFd, PollFlags};
use rustix::pipe::PipeFlags;
use rustix::process::Pid;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// For all alerts together.
const PATIENCE: Duration = Duration::from_secs(6);
const DESKTOP_PATIENCE: Duration = Duration::from_secs(1);
const CHECK: Duration = Duration::from_millis(5);
const TRIES: usize = 2;
const MAX_BODY_LEN: usize = 300;
/// Of what the process says.
const MAX_RESULTS: usize = 16 * 1024;

const DESKTOP: &str = "desktop";
const WEBHOOK: &str = "webhook";
const PROGRAM: &str = "notify-send";

/// What is told. It has no argument of the command that looks like a secret.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Alert<'a> {
    pub(super) session: &'a str,
    pub(super) tool: &'a str,
    pub(super) command: &'a str,
    pub(super) command_hash: Option<Digest>,
    pub(super) attempt: &'a EscapeAttempt,
    pub(super) action: EscapeAction,
    pub(super) roll_back: RollBack,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bundle: Option<&'a Path>,
}

/// Tells everybody whom the policy names, and says how that went.
pub(super) fn send(policy: &Escape, alert: &Alert<'_>) -> Vec<AlertResult> {
    let has_desktop = policy.desktop && can_notify();
    let wanted: Vec<&str> = [(DESKTOP, has_desktop), (WEBHOOK, policy.webhook.is_some())]
        .into_iter()
        .filter_map(|(by, is_wanted)| is_wanted.then_some(by))
        .collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut results = in_own_process(|out| {
        let told = |by: &str, result: Result<(), String>| {
            let result = AlertResult { by: by.to_owned(), error: result.err() };
            let line = serde_json::to_string(&result).unwrap_or_default() + "\n";
            // Who does not hear it knows that much.
            let _ = (&*out).write_all(line.as_bytes());
        };
        if has_desktop {
            told(DESKTOP, notify(alert));
        }
        if let Some(url) = &policy.webhook {
            told(WEBHOOK, post(url, alert));
        }
    })
    .unwrap_or_else(|error| {
        let failed = |by: &&str| AlertResult { by: (*by).to_owned(), error: Some(error.clone()) };
        wanted.iter().map(failed).collect()
    });
    for by in wanted {
        if results.iter().all(|result| result.by != by) {
            let error = Some(format!("no answer in {} s", PATIENCE.as_secs()));
            results.push(AlertResult { by: by.to_owned(), error });
        }
    }
    results
}

/// Whether a desktop can be reached at all. Where there is none, that is no failure.
fn can_notify() -> bool {
    let has_bus = ["DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    let path = std::env::var_os("PATH").unwrap_or_default();
    has_bus && std::env::split_paths(&path).any(|directory| directory.join(PROGRAM).is_file())
}

fn in_own_process(work: impl FnOnce(&File)) -> Result<Vec<AlertResult>, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let (results, out) =
        rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|error| text(&error))?;
    match fork().map_err(|error| text(&error))? {
        Forked::Child => {
            drop(results);
            // A group of its own, so that all of it can be ended.
            let _ = proc::setsid();
            work(&File::from(out));
            proc::exit_now(0)
        }
        Forked::Parent { pid, .. } => {
            drop(out);
            let heard = hear(results, Instant::now() + PATIENCE);
            end(pid);
            Ok(heard)
        }
    }
}

/// The process, and what it started.
fn end(pid: Pid) {
    // It may have ended by itself; then there is nobody to kill, and somebody to bury.
    let _ = proc::kill_group(pid, SIGKILL);
    let _ = proc::kill(pid, SIGKILL);
    let _ = proc::wait_pid_rusage(pid);
}

fn hear(results: OwnedFd, deadline: Instant) -> Vec<AlertResult> {
    let mut text = Vec::new();
    let mut results = File::from(results);
    let mut buffer = [0; 1024];
    while text.len() < MAX_RESULTS {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut watched = [PollFd::from_borrowed_fd(results.as_fd(), PollFlags::IN)];
        if left.is_zero() || proc::poll(&mut watched, Some(left)).is_err() {
            break;
        }
        if watched[0].revents().is_empty() {
            continue;
        }
        match results.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => text.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    let text = String::from_utf8_lossy(&text);
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn post(url: &str, alert: &Alert<'_>) -> Result<(), String> {
    let WebhookUrl { is_tls, host, port, path } =
        WebhookUrl::parse(url).ok_or_else(|| "no valid address".to_owned())?;
    let to = Destination { is_tls, host, port, path };
    let body = serde_json::to_vec(alert).map_err(|error| error.to_string())?;
    let mut result = Err(String::new());
    for _ in 0..TRIES {
        result = post_json(&to, &body).map_err(|error| error.to_string());
        if result.is_ok() {
            break;
        }
    }
    result
}

fn notify(alert: &Alert<'_>) -> Result<(), String> {
    let child = Command::new(PROGRAM)
        .args(arguments(alert))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    wait(child.map_err(|error| format!("{PROGRAM}: {error}"))?)
}

fn wait(mut child: Child) -> Result<(), String> {
    let deadline = Instant::now() + DESKTOP_PATIENCE;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("{PROGRAM}: {status}")),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(CHECK),
            Ok(None) => {
                // It is ended with its group in any case.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("{PROGRAM} did not end"));
            }
            Err(error) => return Err(format!("{PROGRAM}: {error}")),
        }
    }
}

/// The text is somebody else's: it is escaped, cut, and can be no option and no markup.
fn arguments(alert: &Alert<'_>) -> Vec<String> {
    let told = format!("{}: {}", alert.tool, alert.attempt.description);
    let told: String = escape::text(&told).chars().take(MAX_BODY_LEN).collect();
    let told = told.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let done = match alert.action {
        EscapeAction::Quarantine => "The sandbox ended and quarantined a tool",
        _ => "The sandbox ended a command",
    };
    ["--app-name=sandbox", "--urgency", "critical", "--", done, &told].map(str::to_owned).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_record::indicators::BLOCKED_CALL;

    #[test]
    fn the_text_is_no_option_no_markup_and_no_control() {
        let attempt = BLOCKED_CALL.attempt(&format!("<b>\u{1b}[2J{}", "x".repeat(10_000)), None);
        let alert = Alert {
            session: "s",
            tool: "--action=x",
            command: "c",
            command_hash: None,
            attempt: &attempt,
            action: EscapeAction::Kill,
            roll_back: RollBack::NotAsked,
            bundle: None,
        };
        let arguments = arguments(&alert);
        assert_eq!(arguments.iter().position(|word| word == "--"), Some(arguments.len() - 3));
        let body = arguments.last().unwrap();
        assert!(body.starts_with("--action=x: Blocked syscall attempted: &lt;b&gt;\\x1b[2J"));
        assert!(body.len() < 400, "{}", body.len());
    }
}
