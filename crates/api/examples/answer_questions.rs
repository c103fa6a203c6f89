//! Runs a command whose questions this program answers: what is below a directory may be read, and nothing else.
//!
//! ```sh
//! cargo run -p palisade-api --example answer_questions -- /usr/local/data 'cat /usr/local/data/file'
//! ```

use palisade::{Access, Answer, Ask, Question, Questions, Sandbox, Subject};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args_os().skip(1);
    let (Some(readable), Some(line)) = (words.next(), words.next()) else {
        return Err("write a directory and a command".into());
    };
    let sandbox = Sandbox::create().ask(Ask::Always).start()?;
    let questions = sandbox.questions()?;
    // The command waits for the answers, so they are given beside it. The thread ends with the sandbox.
    let answers = std::thread::spawn(move || answer_all(questions, Path::new(&readable)));
    let output = sandbox.command(line).run()?;
    print!("{}", output.stdout_text());
    println!("exit code {}", output.exit_code());
    sandbox.stop()?;
    match answers.join() {
        Ok(answered) => Ok(answered?),
        Err(_) => Err("the thread that answers failed".into()),
    }
}

fn answer_all(mut questions: Questions, readable: &Path) -> palisade::Result<()> {
    while let Some(question) = questions.next_question()? {
        let is_allowed = is_allowed(&question, readable);
        let answer = if is_allowed { Answer::yes() } else { Answer::no() };
        // The subject was chosen by the command: `{:?}` escapes it.
        let verdict = if is_allowed { "allowed" } else { "denied" };
        match questions.answer(&question, answer) {
            Ok(()) => eprintln!("{verdict}: {:?}", question.subject.to_string()),
            // Somebody else was first, or nobody waits any more.
            Err(palisade::Error::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A secret is never allowed by rote, and a yes must not grant anything that was not looked at.
fn is_allowed(question: &Question, readable: &Path) -> bool {
    match &question.subject {
        Subject::Path { path, access: Access::Read, also, .. } => {
            let is_below = |path: &Path| path.starts_with(readable);
            !question.is_secret && is_below(path) && also.iter().all(|path| is_below(path))
        }
        _ => false,
    }
}
