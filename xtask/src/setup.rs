//! Makes a fresh Debian or Ubuntu machine fit for the tests: packages and an ordinary user.
//! Installs only what is missing, so that a second run costs nothing and needs no network.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::packages::{self, User};
use crate::tree;

/// The ordinary user whose tests prove that nothing needs root.
const TEST_USER: &str = "palisade-test";

/// An ordinary user of this machine.
#[derive(Debug, Clone)]
pub(crate) struct TestUser {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) home: PathBuf,
    pub(crate) name: String,
}

/// Runs the task.
pub(crate) fn setup() -> Result<()> {
    install_for(&[User::Tests, User::HostTests, User::Machine, User::Benches, User::Compat])?;
    if am_root() {
        test_user()?;
    }
    println!("this machine has what the tests need");
    Ok(())
}

/// Installs what is missing of the packages that these need, with root's rights or `sudo` where that asks nothing.
pub(crate) fn install_for(users: &[User]) -> Result<()> {
    let missing: Vec<&str> = packages::needed_by(users)
        .filter(|package| !package.is_present())
        .map(|package| package.name)
        .collect();
    if !missing.is_empty() {
        install(&missing)?;
    }
    DEVICES.iter().try_for_each(|device| open_device(Path::new(device)))
}

/// As udev has them: a user who may create a network namespace may open a link in it, and one who may create a mount
/// namespace may serve a file system in it. Machines without udev keep them for root, and then no NAT helper of an
/// ordinary user works, nor the gate as a file system.
const DEVICES: [&str; 2] = ["/dev/net/tun", "/dev/fuse"];

fn open_device(device: &Path) -> Result<()> {
    match device.metadata() {
        Ok(found) if am_root() && found.permissions().mode() & 0o666 != 0o666 => {
            std::fs::set_permissions(device, Permissions::from_mode(0o666))
                .with_context(|| device.display().to_string())
        }
        _ => Ok(()),
    }
}

/// Installs these packages.
pub(crate) fn install(missing: &[&str]) -> Result<()> {
    let by_hand = format!("apt-get install -y --no-install-recommends {}", missing.join(" "));
    if !Path::new("/usr/bin/apt-get").exists() {
        bail!(
            "the tests need {}: install them with this system's package manager",
            missing.join(", ")
        );
    }
    if !am_root() && !sudo_asks_nothing() {
        bail!("the tests need {}; run: sudo {by_hand}", missing.join(", "));
    }
    eprintln!("installing {}", missing.join(", "));
    tree::succeed(apt_get().args(["update", "-q"]))?;
    tree::succeed(apt_get().args(["install", "-y", "-q", "--no-install-recommends"]).args(missing))
        .with_context(|| format!("the tests need {}; by hand: {by_hand}", missing.join(", ")))
}

fn apt_get() -> Command {
    let mut command = if am_root() {
        Command::new("apt-get")
    } else {
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", "--preserve-env=DEBIAN_FRONTEND", "apt-get"]);
        sudo
    };
    command.env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
    command
}

/// The test user, made if missing. Only root can.
pub(crate) fn test_user() -> Result<TestUser> {
    if let Some(user) = find_user(TEST_USER)? {
        return Ok(user);
    }
    eprintln!("creating the user {TEST_USER}");
    tree::succeed(Command::new("useradd").args([
        "--create-home",
        "--shell",
        "/bin/bash",
        "--comment",
        "runs the tests of Palisade",
        TEST_USER,
    ]))?;
    find_user(TEST_USER)?.with_context(|| format!("useradd made no user {TEST_USER}"))
}

/// The test user if it exists.
pub(crate) fn find_test_user() -> Result<Option<TestUser>> {
    find_user(TEST_USER)
}

fn find_user(name: &str) -> Result<Option<TestUser>> {
    let passwd = std::fs::read_to_string("/etc/passwd").context("/etc/passwd")?;
    Ok(passwd.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        match fields.as_slice() {
            [found, _, uid, gid, _, home, ..] if *found == name => Some(TestUser {
                uid: uid.parse().ok()?,
                gid: gid.parse().ok()?,
                home: PathBuf::from(home),
                name: name.to_owned(),
            }),
            _ => None,
        }
    }))
}

pub(crate) fn am_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn sudo_asks_nothing() -> bool {
    Command::new("sudo")
        .args(["-n", "true"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
