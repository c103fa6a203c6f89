//! The `sandbox` command: reads the command line and hands over to one file a command.
//!
//! No thread is started here: the launcher forks, and needs to be alone in its process. Only `serve`, `mcp`, `checkpoint` and
//! `rollback` have threads, and they launch nothing.

mod agent;
mod args;
mod closing;
mod commands;
mod early;
mod environment;
mod flags;
mod line;
mod output;
mod patience;
mod request;
mod starting;
mod usage;

use clap::CommandFactory as _;
use clap::error::ErrorKind;
use commands::hook::DENIED;
use commands::sessions::exec::Exec;
use line::{Cli, Command, Rejected};
use palisade_launch::SpawnerStage;
use palisade_session::SessionError;
use palisade_telemetry::SenderStage;
use std::ffi::OsString;
use std::process::ExitCode;

// Otherwise the crate keeps /dev/urandom open, and reads its random numbers, in a forked process that
// closed everything, from whatever has that number there.
#[cfg(all(
    target_env = "gnu",
    target_feature = "crt-static",
    not(getrandom_backend = "linux_getrandom")
))]
compile_error!(
    "a static binary needs RUSTFLAGS='--cfg getrandom_backend=\"linux_getrandom\"'; `cargo xtask dist` builds one"
);

/// Our own failure, as `env(1)` and `timeout(1)` have it: never a code a command is likely to use.
const OWN_FAILURE: u8 = 125;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(spawner) = SpawnerStage::of_words(&words) {
        spawner.run();
    }
    if let Some(sender) = SenderStage::of_words(&words) {
        sender.run();
    }
    match Exec::of_usual_line(&words) {
        Some(exec) => exit_code_of(exec.execute()),
        None => carry_out(&words),
    }
}

/// Apart from `main`, whose frame is as large as its largest command's.
#[inline(never)]
fn carry_out(words: &[OsString]) -> ExitCode {
    let command = match line::parse(words) {
        Ok(command) => command,
        Err(Rejected::Usage { error, line }) => {
            let code = usage(&error, &line);
            // An agent takes any other code of a hook for a yes.
            let is_hook = words.get(1).is_some_and(|word| word == "hook");
            return if is_hook && error.use_stderr() { ExitCode::from(DENIED) } else { code };
        }
        Err(Rejected::ProgramForCommand { word, meant }) => {
            output::complain(&anyhow::anyhow!(
                "`{word}` is not a command of sandbox; did you mean `{meant}`?"
            ));
            return ExitCode::from(OWN_FAILURE);
        }
    };
    let done = match command {
        Command::Run(run) => run.execute(),
        Command::Learn(learn) => learn.execute(),
        Command::Create(create) => create.execute(),
        Command::Exec(exec) => exec.execute(),
        Command::Attach(attach) => attach.execute(),
        Command::Ps(ps) => ps.execute(),
        Command::Logs(logs) => logs.execute(),
        Command::Inspect(inspect) => inspect.execute(),
        Command::Replay(replay) => replay.execute(),
        Command::Stop(stop) => stop.execute(),
        Command::Kill(kill) => kill.execute(),
        Command::Rm(remove) => remove.execute(),
        Command::Prune(prune) => prune.execute(),
        Command::Extend(extend) => extend.execute(),
        Command::Cp(copy) => copy.execute(),
        Command::Diff(diff) => diff.execute(),
        Command::Apply(apply) => apply.execute(),
        Command::Discard(discard) => discard.execute(),
        Command::Checkpoint(checkpoint) => checkpoint.execute(),
        Command::Checkpoints(checkpoints) => checkpoints.execute(),
        Command::Rollback(rollback) => rollback.execute(),
        Command::Fork(fork) => fork.execute(),
        Command::Cache(cache) => cache.execute(),
        Command::Plan(plan) => plan.execute(),
        Command::Doctor(doctor) => doctor.execute(),
        Command::ExplainSyscall(explain) => explain.execute(),
        Command::Why(why) => why.execute(),
        Command::Policy(policy) => policy.execute(),
        Command::Proxy(proxy) => proxy.execute(),
        Command::Hook(hook) => hook.execute(),
        Command::Bwrap(bwrap) => bwrap.execute(),
        Command::Serve(serve) => serve.execute(),
        Command::Mcp(mcp) => mcp.execute(),
        Command::Approve(approve) => approve.execute(),
        Command::Revoke(revoke) => revoke.execute(),
        Command::Top(top) => top.execute(),
        Command::Net(net) => net.execute(),
        Command::Audit(audit) => audit.execute(),
        Command::Tool(tool) => tool.execute(),
        Command::Quarantine(quarantine) => quarantine.execute(),
        Command::CheckPath(check_path) => check_path.execute(),
        Command::Supervise(supervise) => supervise.execute(),
        Command::Completions(completions) => completions.execute(),
        Command::Man(manual) => manual.execute(Cli::command()),
        Command::Complete(complete) => complete.execute(Cli::command()),
        Command::Generate(generate) => generate.execute(Cli::command()),
    };
    exit_code_of(done)
}

fn exit_code_of(done: anyhow::Result<ExitCode>) -> ExitCode {
    done.unwrap_or_else(|error| {
        output::complain(&error);
        exit_code(&error)
    })
}

/// Clap's own code for a wrong option is 2, which could be the command's.
fn usage(error: &clap::Error, line: &[OsString]) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // Nothing can be said if the terminal is gone.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    match error.kind() {
        // The help itself, as there was nothing to be wrong.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => drop(error.print()),
        _ => {
            let [wrong, usage] = usage::told(error, line);
            output::complain(&anyhow::anyhow!(wrong));
            output::note(&usage);
        }
    }
    ExitCode::from(OWN_FAILURE)
}

fn exit_code(error: &anyhow::Error) -> ExitCode {
    let code = error.downcast_ref().map_or(OWN_FAILURE, SessionError::exit_code);
    ExitCode::from(code)
}
