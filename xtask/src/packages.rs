//! The one list of Debian packages that the tasks use: who needs each, and how its presence is seen.
//! Nothing else in the project names a package to install.

use std::path::Path;

/// Who needs a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    /// `cargo xtask test`, on the host and in the emulated machine, which runs copies of these.
    Tests,
    /// `cargo xtask test` on the host; the emulated machine has no room for it and does not run those tests.
    HostTests,
    /// `cargo xtask vm-test`, to make and start the emulated machine.
    Machine,
    /// `cargo xtask bench`.
    Benches,
    /// `cargo xtask compat`, in its short form too.
    Compat,
    /// `cargo xtask compat`, unpacked below `target/compat`: installing it would start a service.
    CompatUnpacked,
    /// `cargo xtask compat --long` only.
    CompatLong,
}

/// How the presence of a package is seen.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Seen {
    Program(&'static str),
    File(&'static str),
}

/// One package.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Package {
    pub(crate) name: &'static str,
    seen: Seen,
    user: User,
}

const fn program(user: User, program: &'static str, name: &'static str) -> Package {
    Package { name, seen: Seen::Program(program), user }
}

const fn file(user: User, file: &'static str, name: &'static str) -> Package {
    Package { name, seen: Seen::File(file), user }
}

use User::{Benches, Compat, CompatLong, CompatUnpacked, HostTests, Machine, Tests};

const ALL: &[Package] = &[
    program(Tests, "busybox", "busybox-static"),
    program(Tests, "bwrap", "bubblewrap"),
    program(Tests, "tmux", "tmux"),
    program(Tests, "gdb", "gdb"),
    program(Tests, "vim", "vim"),
    program(Tests, "git", "git"),
    program(Tests, "node", "nodejs"),
    program(Tests, "gcc", "gcc"),
    program(Tests, "make", "make"),
    program(Tests, "patch", "patch"),
    program(Tests, "perl", "perl"),
    program(Tests, "sqlite3", "sqlite3"),
    program(Tests, "zip", "zip"),
    program(Tests, "unzip", "unzip"),
    program(Tests, "python3", "python3"),
    program(Tests, "curl", "curl"),
    program(Tests, "less", "less"),
    program(Tests, "strace", "strace"),
    program(Tests, "time", "time"),
    program(Tests, "ps", "procps"),
    program(Tests, "ip", "iproute2"),
    program(Tests, "nft", "nftables"),
    // Names of protocols, which nft prints.
    file(Tests, "/etc/protocols", "netbase"),
    program(Tests, "su", "util-linux"),
    program(Tests, "umount", "mount"),
    // A transaction works on each of them.
    program(Tests, "mkfs.ext4", "e2fsprogs"),
    program(Tests, "mkfs.xfs", "xfsprogs"),
    program(Tests, "mkfs.btrfs", "btrfs-progs"),
    program(Tests, "ssh", "openssh-client"),
    // The servers without their services: nothing is started on the host.
    program(Tests, "dropbear", "dropbear-bin"),
    program(Tests, "tinyproxy", "tinyproxy-bin"),
    program(Tests, "nghttpd", "nghttp2-server"),
    file(Tests, "/usr/lib/python3/dist-packages/websockets/__init__.py", "python3-websockets"),
    program(Tests, "pip3", "python3-pip"),
    file(Tests, "/usr/lib/python3/dist-packages/pygit2/__init__.py", "python3-pygit2"),
    program(Tests, "pasta", "passt"),
    program(Tests, "slirp4netns", "slirp4netns"),
    file(Tests, "/etc/ssl/certs/ca-certificates.crt", "ca-certificates"),
    program(Tests, "useradd", "passwd"),
    file(Tests, "/usr/include/seccomp.h", "libseccomp-dev"),
    file(Tests, "/usr/include/stdlib.h", "libc6-dev"),
    program(HostTests, "npm", "npm"),
    // A real browser for the page of `sandbox serve`.
    program(HostTests, "chromium", "chromium"),
    // What srt calls.
    program(HostTests, "socat", "socat"),
    program(HostTests, "rg", "ripgrep"),
    program(HostTests, "javac", "default-jdk-headless"),
    program(Machine, "qemu-system-x86_64", "qemu-system-x86"),
    program(Machine, "mke2fs", "e2fsprogs"),
    program(Machine, "setpriv", "util-linux"),
    file(Machine, "/usr/lib/systemd/systemd", "systemd"),
    file(Machine, "/usr/lib/systemd/user/dbus.socket", "dbus-user-session"),
    program(Benches, "rsync", "rsync"),
    program(Benches, "iperf3", "iperf3"),
    file(Compat, "/usr/lib/python3.11/test/test_os.py", "libpython3.11-testsuite"),
    program(Compat, "stress-ng", "stress-ng"),
    // The server's program without its service.
    program(Compat, "redis-cli", "redis-tools"),
    program(Compat, "py.test-3", "python3-pytest"),
    file(Compat, "/usr/lib/python3/dist-packages/xdist", "python3-pytest-xdist"),
    program(Compat, "cmake", "cmake"),
    file(CompatUnpacked, "/usr/lib/postgresql", "postgresql"),
    program(CompatLong, "pipx", "pipx"),
    program(CompatLong, "go", "golang-go"),
    program(CompatLong, "mvn", "maven"),
    program(CompatLong, "git-lfs", "git-lfs"),
];

impl Package {
    /// Looks in the system's directories only: those are the ones the tests see.
    pub(crate) fn is_present(&self) -> bool {
        match self.seen {
            Seen::Program(name) => ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"]
                .iter()
                .any(|directory| Path::new(directory).join(name).exists()),
            Seen::File(path) => Path::new(path).exists(),
        }
    }
}

/// The packages that these need.
pub(crate) fn needed_by(users: &[User]) -> impl Iterator<Item = &'static Package> {
    ALL.iter().filter(|package| users.contains(&package.user))
}

#[cfg(test)]
mod tests {
    use super::{ALL, User, needed_by};

    #[test]
    fn nobody_needs_a_package_twice() {
        for (index, package) in ALL.iter().enumerate() {
            let again =
                |other: &&super::Package| other.name == package.name && other.user == package.user;
            assert!(!ALL[..index].iter().any(|other| again(&other)), "{}", package.name);
        }
    }

    /// `cargo xtask test` failed on a fresh machine: tests run busybox, and only `cargo xtask setup` installed it.
    #[test]
    fn the_tests_install_the_shell_that_they_run() {
        assert!(needed_by(&[User::Tests]).any(|package| package.name == "busybox-static"));
    }
}
