//! Waits for the questions that runs ask, as `sandbox approve` lists them.

use std::time::{Duration, Instant};

use palisade_testkit::{Output, patiently};
use serde_json::Value;

const TIMEOUT: Duration = Duration::from_secs(30);

/// The open questions, as soon as there are so many. `list` is `sandbox approve --json`, wherever it has to run.
#[track_caller]
pub(crate) fn questions(count: usize, list: impl Fn() -> Output) -> Vec<Value> {
    let end = Instant::now() + patiently(TIMEOUT);
    loop {
        let output = list();
        output.assert_code(0);
        let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
        let questions = listed["questions"].as_array().unwrap();
        if questions.len() == count {
            return questions.clone();
        }
        assert!(Instant::now() < end, "{count} questions were expected: {listed}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
