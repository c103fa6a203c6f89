//! Runs a command in a transaction, shows what it changed, and applies exactly that if the answer is `y`: the state that was
//! shown is a checkpoint, whatever is changed while somebody reads.
//!
//! ```sh
//! cargo run -p palisade-api --example review_and_apply -- cargo fmt
//! ```

use palisade::{Apply, Error, Sandbox, Transaction};
use std::io::Write as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let sandbox = Sandbox::create().transaction(Transaction::Overlay).start()?;
    let mut command = sandbox.exec(words).spawn()?;
    for chunk in &mut command {
        // What a command writes may be anything: a terminal would act on it.
        print!("{}", chunk?.text().escape_default().to_string().replace("\\n", "\n"));
    }
    let output = command.wait()?;
    eprintln!("ended with {} after {:?}", output.exit_code(), output.duration);

    let shown = sandbox.checkpoint_for_review()?;
    for change in &sandbox.diff_between(0, shown.number)?.changes {
        println!("{:?} {:?}", change.kind, change.path);
    }
    print!("apply? ");
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    if answer.trim() != "y" {
        println!("nothing was applied");
        sandbox.remove()?;
        return Ok(());
    }
    apply_shown(&sandbox, shown.number)?;
    sandbox.remove()?;
    Ok(())
}

fn apply_shown(sandbox: &Sandbox, shown: u32) -> palisade::Result<()> {
    match sandbox.apply(&Apply::checkpoint(shown)) {
        Ok(applied) => println!("{} paths applied", applied.applied.len()),
        Err(Error::Held(held)) => {
            for refused in &held.refused {
                println!("refused: {:?} ({:?})", refused.path, refused.reason);
            }
            for conflict in &held.conflicts {
                println!("conflict: {:?} ({:?})", conflict.path, conflict.reason);
            }
        }
        Err(error) => return Err(error),
    }
    Ok(())
}
