//! Somebody who answers the questions of the one session there is, and keeps what was asked for the judge.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use palisade_testkit::{Running, World, patiently};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(30);
/// Below the world's directory.
const KEPT: &str = "answered.json";

/// The paths that were asked about.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Answered {
    pub(crate) allowed: BTreeSet<String>,
    pub(crate) denied: BTreeSet<String>,
    /// Questions that were open at the same time.
    pub(crate) most_open: usize,
}

impl Answered {
    /// What [`answer`] saw in this world.
    pub(crate) fn of(world: &World) -> Self {
        let text = fs::read(world.path().join(KEPT)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Whether nothing was allowed but this.
    pub(crate) fn allowed_only(&self, path: &Path) -> bool {
        self.allowed.iter().map(Path::new).eq([path])
    }
}

pub(crate) enum Word {
    Yes,
    No,
    /// The question is left to itself.
    Silence,
}

/// Answers for as long as the run asks: what `word` says to a question, for so long.
pub(crate) fn answer(
    world: &World,
    over: &AtomicBool,
    lifetime: &str,
    mut word: impl FnMut(&Value) -> Word,
) {
    let mut answered = Answered::default();
    let mut open = BTreeSet::new();
    let Some(stream) = connect_until(&sockets(world), over) else { return };
    let mut writer = stream.try_clone().unwrap();
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let event: Value = serde_json::from_str(&line).unwrap();
        let Some(id) = event["id"].as_u64() else { continue };
        let (Some(path), "event.fs_request") =
            (event["path"].as_str(), event["type"].as_str().unwrap_or_default())
        else {
            open.remove(&id);
            continue;
        };
        open.insert(id);
        answered.most_open = answered.most_open.max(open.len());
        let (command, kept) = match word(&event) {
            Word::Yes => ("cmd.approve", &mut answered.allowed),
            Word::No => ("cmd.deny", &mut answered.denied),
            Word::Silence => continue,
        };
        kept.insert(path.to_owned());
        let answer = json!({"type": command, "id": event["id"], "lifetime": lifetime});
        // A run that has ended wants no answer.
        let _ = writer.write_all(format!("{answer}\n").as_bytes());
    }
    world.write(KEPT, serde_json::to_vec(&answered).unwrap());
}

pub(crate) fn yes_to(name: &'static str) -> impl FnMut(&Value) -> Word {
    move |asked| {
        let is_meant = asked["path"].as_str().is_some_and(|path| path.ends_with(name));
        if is_meant { Word::Yes } else { Word::No }
    }
}

pub(crate) fn sockets(world: &World) -> PathBuf {
    world.home().join(".local/state/palisade/run")
}

/// To the one session there is; none if no one asked in time.
pub(crate) fn connect(directory: &Path) -> Option<UnixStream> {
    connect_until(directory, &AtomicBool::new(false))
}

pub(crate) fn connect_until(directory: &Path, over: &AtomicBool) -> Option<UnixStream> {
    let end = Instant::now() + patiently(TIMEOUT);
    while Instant::now() < end && !over.load(Ordering::Relaxed) {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        if let Some(name) = names.find(|name| name.ends_with(".sock")) {
            // An address has room for 107 bytes.
            let held = fs::File::open(directory).unwrap();
            let address = format!("/proc/self/fd/{}/{name}", held.as_raw_fd());
            if let Ok(stream) = UnixStream::connect(address) {
                return Some(stream);
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    None
}

pub(crate) const WAIT: [&str; 2] = ["--on-ask", "wait"];

/// The command, with questions that wait for whoever comes.
pub(crate) fn asking<C: AsRef<std::ffi::OsStr>>(world: &World, command: &[C]) -> Running {
    world.sandbox_run(WAIT, command).deadline(Duration::from_secs(150)).spawn()
}
