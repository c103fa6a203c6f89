//! `sandbox bwrap`, or this program under the name `bwrap`: a command line of bubblewrap, carried out with our walls. What is shown is what the
//! line lists; what has no meaning here is an error, and nothing runs.

mod line;
mod translate;

use super::run::{self, Wanted};
use crate::args::{PolicyArgs, ReportArgs};
use anyhow::Context as _;
use clap::Args;
use palisade_session::{Caller, die_like};
use std::ffi::OsString;
use std::process::ExitCode;
use translate::{Environment, Translated};

const DETAILS: &str = "\
For programs that call bubblewrap, such as srt and codex: `ln -s $(command -v sandbox) ~/bin/bwrap` puts it in their way. The view
is what the line lists. On top of it there are the walls of every sandbox: system call filter, Landlock, no capabilities, protected
names in writable directories, secrets hidden, a private /tmp, and what your policy files say.

Options of bubblewrap:
  --bind --ro-bind --dev-bind [-try] SRC DEST   show a file, directory or socket of the host
  --tmpfs DEST [--size BYTES] [--perms OCTAL]   an empty directory, private to the run
  --dir DEST, --symlink SRC DEST                a directory, a link
  --file --bind-data --ro-bind-data FD DEST     a file with this content, read-only
  --remount-ro DEST                             make what was listed there read-only
  --overlay-src DIR --tmp-overlay DIR           looks writable; changes are discarded
  --proc DEST, --dev DEST, --mqueue DEST        are there in any case, at their usual places
  --unshare-net, --unshare-all, --share-net     without the first two, the network is the host's
  --unshare-user|ipc|pid|uts|cgroup [-try]      are done in any case
  --setenv VAR VALUE, --unsetenv VAR, --clearenv, --chdir DIR, --hostname NAME
  --die-with-parent, --args FD, --cap-drop CAP
  --new-session, --as-pid-1, --disable-userns   have no further effect

Example:
  sandbox bwrap --ro-bind / / --bind . . --unshare-all make";

#[derive(Args, Debug)]
#[command(after_help = DETAILS, disable_help_flag = true)]
pub(crate) struct Bwrap {
    /// Options and command as bubblewrap takes them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS… COMMAND…")]
    pub(crate) words: Vec<OsString>,
}

impl Bwrap {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        match self.words.first().and_then(|word| word.to_str()) {
            Some("--help") => {
                // Programs look for the options that they need in it.
                println!("usage: bwrap [OPTIONS...] [--] COMMAND [ARGS...]\n\n{DETAILS}");
                return Ok(ExitCode::SUCCESS);
            }
            Some("--version") => {
                println!("bubblewrap {} (palisade {})", line::VERSION, env!("CARGO_PKG_VERSION"));
                return Ok(ExitCode::SUCCESS);
            }
            _ => {}
        }
        let mut caller = Caller::here()?;
        let parsed = line::parse(self.words)?;
        let ids = (caller.facts.uid, caller.facts.gid);
        let translated = translate::translate(parsed.options, &caller.facts.cwd, ids)?;
        let Translated { listed, environment, network, ends_with_parent, cwd, hostname } =
            translated;
        if ends_with_parent {
            palisade_session::end_with_parent().context("cannot end with the parent process")?;
        }
        let Environment { set, unset, is_cleared } = environment;
        for name in &unset {
            caller.facts.env.remove(name);
        }
        let policy = PolicyArgs {
            static_mode: true,
            network: Some(network.word().to_owned()),
            approve_network_host: network.approval(),
            env: set,
            env_mode: is_cleared.then(|| "explicit".to_owned()),
            cwd,
            hostname,
            ..PolicyArgs::default()
        };
        let report = ReportArgs { quiet: true, ..ReportArgs::default() };
        let wanted = Wanted { command: parsed.command, listed: Some(listed) };
        let done = run::perform(caller, &policy, report, wanted)?;
        die_like(&done.report);
        Ok(done.exit_code)
    }
}
