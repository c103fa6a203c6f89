//! One test's own corner of the host: a home with its XDG directories, a project in it, and a
//! directory that no policy grants. Removed when the test ends; never shared between tests.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::invocation::Invocation;
use crate::patience::PATIENCE_VARIABLE;
use crate::{binaries, must};

/// System directories only: what a person's `PATH` adds differs from machine to machine.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A temporary home, project and outside, and ways to run programs there.
#[derive(Debug)]
pub struct World {
    directory: TempDir,
}

/// Chooses what notices the use of paths in every run of the tests.
pub(crate) const GATE_VARIABLE: &str = "PALISADE_TEST_GATE";

impl World {
    /// Makes the directories, below `PALISADE_TEST_DIR` if set and the temporary directory otherwise.
    #[must_use]
    pub fn new() -> Self {
        let parent =
            std::env::var_os("PALISADE_TEST_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let directory = must(
            tempfile::Builder::new().prefix("palisade-world-").tempdir_in(&parent),
            format_args!("cannot make a test directory in {}", parent.display()),
        );
        let world = Self { directory };
        for needed in [world.project(), world.outside()] {
            must(fs::create_dir_all(&needed), needed.display());
        }
        world
    }

    /// The directory that holds all the others.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The home directory programs are given.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.path().join("home")
    }

    /// The project: the working directory of everything run here.
    #[must_use]
    pub fn project(&self) -> PathBuf {
        self.home().join("project")
    }

    /// A directory of the same user that no policy grants.
    #[must_use]
    pub fn outside(&self) -> PathBuf {
        self.path().join("outside")
    }

    /// Writes a file below the world's directory, with the directories it needs.
    pub fn write(&self, relative: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(relative);
        if let Some(parent) = path.parent() {
            must(fs::create_dir_all(parent), parent.display());
        }
        must(fs::write(&path, content), path.display());
        path
    }

    /// Writes a file below the project.
    pub fn write_in_project(
        &self,
        relative: impl AsRef<Path>,
        content: impl AsRef<[u8]>,
    ) -> PathBuf {
        self.write(Path::new("home/project").join(relative), content)
    }

    /// Makes the project a git repository with an author and no commit.
    pub fn git_init(&self) {
        for arguments in [
            &["init", "--quiet", "--initial-branch=main"][..],
            &["config", "user.name", "Test"],
            &["config", "user.email", "test@example.org"],
        ] {
            self.bare("git").args(arguments).run().assert_code(0);
        }
    }

    /// A copy of the probe program inside the project, where the sandbox can execute it.
    ///
    /// A copy and not a link: what runs inside may overwrite what lies in the project.
    #[must_use]
    pub fn probe(&self) -> String {
        let copy = self.project().join("palisade-probe");
        if !copy.exists() {
            let built = binaries::probe();
            // By another process: a program another test starts meanwhile would inherit our
            // descriptor for writing, and what is open for writing cannot be executed.
            let copied = must(Command::new("cp").arg(&built).arg(&copy).status(), "cp");
            assert!(copied.success(), "cannot copy {}", built.display());
        }
        copy.to_string_lossy().into_owned()
    }

    /// A program of the host, without a sandbox, in the project and with the world's environment.
    #[must_use]
    pub fn bare(&self, program: impl AsRef<OsStr>) -> Invocation {
        Invocation::new(self.host_command(program.as_ref()))
    }

    /// The `sandbox` binary with these arguments.
    #[must_use]
    pub fn sandbox<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Invocation {
        Invocation::new(self.host_command(binaries::sandbox().as_os_str())).args(arguments)
    }

    /// `sandbox run FLAGS --report FILE -- COMMAND`; the report ends up in the output.
    #[must_use]
    pub fn sandbox_run<F: AsRef<OsStr>, C: AsRef<OsStr>>(
        &self,
        flags: impl IntoIterator<Item = F>,
        command: impl IntoIterator<Item = C>,
    ) -> Invocation {
        let report = self.path().join("report.json");
        self.sandbox(["run"])
            .args(flags)
            .arg("--report")
            .arg(&report)
            .arg("--")
            .args(command)
            .reading_report(report)
    }

    /// A command with nothing of the real user's environment in it, to be run by other means.
    #[must_use]
    pub fn host_command(&self, program: &OsStr) -> Command {
        let home = self.home();
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", PATH)
            .env("LANG", "C.UTF-8")
            .env("TERM", "dumb")
            .env("HOME", &home)
            .env("XDG_CONFIG_HOME", home.join(".config"))
            .env("XDG_CACHE_HOME", home.join(".cache"))
            .env("XDG_DATA_HOME", home.join(".local/share"))
            .env("XDG_STATE_HOME", home.join(".local/state"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .current_dir(self.project());
        // The probe waits as patiently as its test.
        if let Some(patience) = std::env::var_os(PATIENCE_VARIABLE) {
            command.env(PATIENCE_VARIABLE, patience);
        }
        if let Some(gate) = std::env::var_os(GATE_VARIABLE) {
            command.env("SANDBOX_GATE", gate);
        }
        command
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}
