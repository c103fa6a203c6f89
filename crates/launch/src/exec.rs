//! The exec of the command: which file its name means inside, and why it could not be started.
//! Must never look outside of the sandbox's own view.

use crate::error::{LaunchError, Mistake};
use palisade_plan::model::Command;
use palisade_sys::{Errno, SysError, proc};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

const STEP: &str = "starting the command";

type CStrings = Vec<CString>;

/// The words and the environment as exec takes them.
pub(crate) fn c_strings(command: &Command) -> Result<(CStrings, CStrings), LaunchError> {
    let refused = |_| LaunchError::new(STEP, "an argument holds a NUL byte");
    let argv =
        command.argv.iter().map(|arg| CString::new(arg.as_bytes())).collect::<Result<_, _>>();
    let env = command
        .env
        .iter()
        .map(|(name, value)| CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()))
        .collect::<Result<_, _>>();
    Ok((argv.map_err(refused)?, env.map_err(refused)?))
}

/// Looks the command up as execvp(3) does, in the sandbox's own `PATH` and view. Returns only
/// to say why it could not.
pub(crate) fn exec(command: &Command, argv: &[CString], env: &[CString]) -> LaunchError {
    let Some(name) = command.argv.first() else {
        return LaunchError::new(STEP, "there is no command");
    };
    // An empty name is no directory of `PATH`, though joined to one it would be.
    if name.is_empty() {
        return refusal(name, Path::new(name), Errno::NOENT);
    }
    if name.as_bytes().contains(&b'/') {
        let errno = exec_file(Path::new(name), argv, env);
        return refusal(name, Path::new(name), errno);
    }
    let path =
        command.env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    let mut found = None;
    for directory in std::env::split_paths(path.unwrap_or(OsStr::new("/usr/bin:/bin"))) {
        let candidate = directory.join(name);
        match exec_file(&candidate, argv, env) {
            Errno::NOENT | Errno::NOTDIR if !candidate.exists() => {}
            // Like execvp: a later directory may hold one that may be executed.
            errno => {
                found.get_or_insert((candidate, errno));
            }
        }
    }
    match found {
        Some((candidate, errno)) => refusal(name, &candidate, errno),
        None => refusal(name, Path::new(name), Errno::NOENT),
    }
}

fn exec_file(path: &Path, argv: &[CString], env: &[CString]) -> Errno {
    let Ok(file) = CString::new(path.as_os_str().as_bytes()) else { return Errno::INVAL };
    match proc::exec(&file, argv, env) {
        // A script without a first line that names its interpreter is the shell's.
        Errno::NOEXEC => {
            let mut shell_argv = vec![c"sh".to_owned(), file];
            shell_argv.extend(argv.iter().skip(1).cloned());
            proc::exec(c"/bin/sh", &shell_argv, env)
        }
        errno => errno,
    }
}

fn refusal(name: &OsStr, path: &Path, errno: Errno) -> LaunchError {
    let error = SysError::new("exec", PathBuf::from(name).display().to_string(), errno);
    if errno == Errno::NOENT && path.exists() {
        return LaunchError::new(STEP, error.to_string())
            .with_mend(format!(
                "{} is there, but the interpreter or loader it names is not in the sandbox's view",
                path.display()
            ))
            .with_mistake(Mistake::NotFound);
    }
    match errno {
        Errno::NOENT | Errno::NOTDIR => LaunchError::new(STEP, error.to_string())
            .with_mend(
                "is it installed, and in the sandbox's view? `sandbox plan -- CMD` lists the view, \
                 --ro adds to it",
            )
            .with_mistake(Mistake::NotFound),
        Errno::ACCESS | Errno::PERM | Errno::NOEXEC | Errno::ISDIR => {
            LaunchError::new(STEP, error.to_string())
                .with_mend("is it executable, and on a mount that allows it?")
                .with_mistake(Mistake::NotExecutable)
        }
        _ => LaunchError::new(STEP, error.to_string()),
    }
}
