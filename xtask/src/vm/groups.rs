//! Control groups of the machine: one is handed over to the ordinary user, as a service manager hands over a
//! session's (see cgroup-v2.rst, "Delegation"), and the user's tests run in it; another one to a service manager
//! of the user's own.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::setup::TestUser;

const TOP: &str = "/sys/fs/cgroup";
/// Not named like what the tests make, so that they can be seen to leave nothing in it.
const DELEGATED: &str = "of-the-user";
/// A group with processes in it cannot be divided, so that the tests are in a part of it.
const LEAF: &str = "tests";
/// All that is handed over with the directory.
const FILES: [&str; 3] = ["cgroup.procs", "cgroup.threads", "cgroup.subtree_control"];
const MEMBERS: &str = "cgroup.procs";
/// The service manager, started by the machine's first script, and what it waits for.
const MANAGER: &str = "/run/manager.pid";
const MANAGERS_GO: &str = "/run/manager.go";
/// Under emulation it takes half a minute.
const MANAGER_STARTS: Duration = Duration::from_secs(300);

/// The group that is the user's to divide.
#[derive(Debug)]
pub(crate) struct Delegated {
    leaf: PathBuf,
}

impl Delegated {
    /// Makes it, with every controller there is.
    pub(crate) fn to(user: &TestUser) -> Result<Self> {
        let top = Path::new(TOP);
        let group = top.join(DELEGATED);
        let leaf = group.join(LEAF);
        enable_all(top)?;
        hand_over(&group, user)?;
        enable_all(&group)?;
        hand_over(&leaf, user)?;
        Ok(Self { leaf })
    }

    /// Does it in there: what a process starts is where the process is.
    pub(crate) fn inside<T>(&self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        move_to(&self.leaf)?;
        let outcome = act();
        move_to(Path::new(TOP))?;
        outcome
    }
}

/// Lets the user's service manager start, in the group that find.rs of palisade-cgroup expects it in, and returns
/// a group of its, for what asks it for scopes: only the host's first process could move what is elsewhere.
pub(crate) fn start_manager(user: &TestUser) -> Result<Delegated> {
    let uid = user.uid;
    let mut group = PathBuf::from(TOP);
    let names = ["user.slice".to_owned(), format!("user-{uid}.slice")];
    for name in names {
        enable_all(&group)?;
        group.push(name);
        fs::create_dir(&group).with_context(|| group.display().to_string())?;
    }
    enable_all(&group)?;
    group.push(format!("user@{uid}.service"));
    hand_over(&group, user)?;
    let pid = fs::read_to_string(MANAGER).context(MANAGER)?;
    write(&group.join(MEMBERS), pid.trim())?;
    write(Path::new(MANAGERS_GO), "go\n")?;
    wait_for_bus(user)?;
    let leaf = group.join(LEAF);
    hand_over(&leaf, user)?;
    Ok(Delegated { leaf })
}

/// Until it answers: asking starts the bus.
fn wait_for_bus(user: &TestUser) -> Result<()> {
    let deadline = Instant::now() + MANAGER_STARTS;
    let runtime = format!("/run/user/{}", user.uid);
    loop {
        let mut ask = Command::new("busctl");
        ask.args(["--user", "status", "org.freedesktop.systemd1"])
            .env("XDG_RUNTIME_DIR", &runtime)
            .uid(user.uid)
            .gid(user.gid)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if ask.status().context("busctl")?.success() {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("the user's service manager does not answer on its bus");
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

fn enable_all(group: &Path) -> Result<()> {
    let there = group.join("cgroup.controllers");
    let there = fs::read_to_string(&there).with_context(|| there.display().to_string())?;
    let words: Vec<String> = there.split_whitespace().map(|name| format!("+{name}")).collect();
    write(&group.join("cgroup.subtree_control"), &words.join(" "))
}

fn hand_over(group: &Path, user: &TestUser) -> Result<()> {
    fs::create_dir(group).with_context(|| group.display().to_string())?;
    for path in FILES.iter().map(|file| group.join(file)).chain([group.to_owned()]) {
        chown(&path, Some(user.uid), Some(user.gid)).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn move_to(group: &Path) -> Result<()> {
    write(&group.join(MEMBERS), &std::process::id().to_string())
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("writing {text:?} to {}", file.display()))
}
