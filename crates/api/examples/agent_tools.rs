//! The tools of an agent: each line of standard input is a call, as a model would make it, and each line of standard output is
//! what the model gets. Everything happens in one sandbox on the project in the current directory; nothing comes to the project
//! before somebody applies it.
//!
//! ```sh
//! echo '{"tool":"bash","command":"make test"}' | cargo run -p palisade-api --example agent_tools
//! ```

use palisade::{Ask, Error, Output, Sandbox, Transaction};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{BufRead as _, Write as _};
use std::time::Duration;

/// What a model may call.
#[derive(Deserialize)]
#[serde(tag = "tool", rename_all = "lowercase", deny_unknown_fields)]
enum Call {
    Bash { command: String },
    Read { path: String },
    Write { path: String, content: String },
    List { path: String },
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sandbox = Sandbox::create().transaction(Transaction::Overlay).ask(Ask::Never).start()?;
    for line in std::io::stdin().lock().lines() {
        let answer = match serde_json::from_str(&line?) {
            Ok(call) => carry_out(&sandbox, call).unwrap_or_else(|error| explain(&error)),
            Err(error) => json!({ "error": error.to_string(), "kind": "validation" }),
        };
        println!("{answer}");
        std::io::stdout().flush()?;
    }
    let changes = sandbox.diff()?.changes.len();
    eprintln!("{changes} changes wait in sandbox {}", sandbox.id());
    sandbox.stop()?;
    Ok(())
}

fn carry_out(sandbox: &Sandbox, call: Call) -> palisade::Result<Value> {
    let files = sandbox.files();
    Ok(match call {
        Call::Bash { command } => {
            let command = sandbox.command(command).timeout(Duration::from_secs(120));
            told(&command.max_output(32 << 10).run()?)
        }
        Call::Read { path } => json!({ "content": files.read_text(path)? }),
        Call::Write { path, content } => json!({ "written": files.write(path, content)?.size }),
        Call::List { path } => {
            let entries = files.list(path)?;
            let names = entries.iter().map(|entry| entry.path.to_string_lossy());
            json!({ "entries": names.collect::<Vec<_>>() })
        }
    })
}

/// A model acts better on a denial that it is told about.
fn told(output: &Output) -> Value {
    json!({
        "exitCode": output.exit_code(),
        "timedOut": output.timed_out,
        "stdout": output.stdout_text(),
        "stderr": output.stderr_text(),
        "denied": output.violations,
    })
}

fn explain(error: &Error) -> Value {
    json!({ "error": error.to_string(), "kind": error.kind().to_string() })
}
