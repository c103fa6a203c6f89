//! Makes a fresh Debian or Ubuntu machine fit for the tests: packages and an ordinary user.
//! Installs only what is missing, so that a second run costs nothing and needs no network.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::tree;

/// The ordinary user whose tests prove that nothing needs root.
const TEST_USER: &str = "palisade-test";

/// What the tests use: a file whose presence shows it, and the package it comes from.
const NEEDED: &[(Needed, &str)] = &[
    (Needed::Program("bwrap"), "bubblewrap"),
    (Needed::Program("tmux"), "tmux"),
    (Needed::Program("gdb"), "gdb"),
    (Needed::Program("vim"), "vim"),
    (Needed::Program("git"), "git"),
    (Needed::Program("node"), "nodejs"),
    (Needed::Program("gcc"), "gcc"),
    (Needed::Program("make"), "make"),
    (Needed::Program("patch"), "patch"),
    (Needed::Program("perl"), "perl"),
    (Needed::Program("sqlite3"), "sqlite3"),
    (Needed::Program("zip"), "zip"),
    (Needed::Program("unzip"), "unzip"),
    (Needed::Program("python3"), "python3"),
    (Needed::Program("curl"), "curl"),
    (Needed::Program("less"), "less"),
    (Needed::Program("strace"), "strace"),
    (Needed::Program("time"), "time"),
    (Needed::Program("ps"), "procps"),
    (Needed::Program("ip"), "iproute2"),
    (Needed::Program("nft"), "nftables"),
    (Needed::Program("su"), "util-linux"),
    (Needed::Program("umount"), "mount"),
    (Needed::Program("ssh"), "openssh-client"),
    // The servers without their services: nothing is started on the host.
    (Needed::Program("dropbear"), "dropbear-bin"),
    (Needed::Program("tinyproxy"), "tinyproxy-bin"),
    (Needed::Program("pip3"), "python3-pip"),
    (Needed::Program("pasta"), "passt"),
    (Needed::Program("slirp4netns"), "slirp4netns"),
    (Needed::File("/etc/ssl/certs/ca-certificates.crt"), "ca-certificates"),
    (Needed::Program("useradd"), "passwd"),
    (Needed::File("/usr/include/seccomp.h"), "libseccomp-dev"),
    (Needed::File("/usr/include/stdlib.h"), "libc6-dev"),
];

/// What some tests use and the emulated machine has no room for: their tests are not run there.
const NEEDED_ON_THE_HOST: &[(Needed, &str)] =
    &[(Needed::Program("npm"), "npm"), (Needed::Program("javac"), "default-jdk-headless")];

/// What the emulated machine of `cargo xtask vm-test` is made with.
const NEEDED_BY_THE_MACHINE: &[(Needed, &str)] = &[
    (Needed::Program("qemu-system-x86_64"), "qemu-system-x86"),
    (Needed::Program("busybox"), "busybox-static"),
    (Needed::Program("mke2fs"), "e2fsprogs"),
    (Needed::Program("setpriv"), "util-linux"),
    (Needed::File("/usr/lib/systemd/systemd"), "systemd"),
    (Needed::File("/usr/lib/systemd/user/dbus.socket"), "dbus-user-session"),
];

/// What only `cargo xtask bench` runs.
const NEEDED_BY_THE_BENCHES: &[(Needed, &str)] =
    &[(Needed::Program("rg"), "ripgrep"), (Needed::Program("iperf3"), "iperf3")];

enum Needed {
    Program(&'static str),
    File(&'static str),
}

impl Needed {
    /// Looks in the system's directories only: those are the ones the tests see.
    fn is_present(&self) -> bool {
        match self {
            Self::Program(name) => ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"]
                .iter()
                .any(|directory| Path::new(directory).join(name).exists()),
            Self::File(path) => Path::new(path).exists(),
        }
    }
}

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
    install_packages_of_the_machine()?;
    install_packages_of_the_benches()?;
    if am_root() {
        test_user()?;
    }
    println!("this machine has what the tests need");
    Ok(())
}

/// Installs the missing packages of the tests, with root's rights or `sudo` where that asks nothing.
pub(crate) fn install_packages() -> Result<()> {
    install(NEEDED)?;
    install(NEEDED_ON_THE_HOST)?;
    open_link_device()
}

/// As udev has it: whoever may make a network namespace may open a link in it. Machines without udev keep it for
/// root, and then no NAT helper of an ordinary user works.
fn open_link_device() -> Result<()> {
    let device = Path::new("/dev/net/tun");
    match device.metadata() {
        Ok(found) if am_root() && found.permissions().mode() & 0o666 != 0o666 => {
            std::fs::set_permissions(device, Permissions::from_mode(0o666))
                .with_context(|| device.display().to_string())
        }
        _ => Ok(()),
    }
}

/// The same for the emulated machine, which also needs what the tests need: it runs copies of it.
pub(crate) fn install_packages_of_the_machine() -> Result<()> {
    install(NEEDED)?;
    install(NEEDED_BY_THE_MACHINE)
}

/// The same for the benches.
pub(crate) fn install_packages_of_the_benches() -> Result<()> {
    install_packages()?;
    install(NEEDED_BY_THE_BENCHES)
}

/// The packages that the machine has too.
pub(crate) fn packages_of_the_tests() -> Vec<&'static str> {
    NEEDED.iter().map(|(_, package)| *package).chain(["busybox-static"]).collect()
}

fn install(needed: &[(Needed, &'static str)]) -> Result<()> {
    let missing: Vec<&str> = needed
        .iter()
        .filter(|(needed, _)| !needed.is_present())
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
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
    tree::succeed(apt_get().args(["install", "-y", "-q", "--no-install-recommends"]).args(&missing))
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
