//! What a tool is answered with: one type on the command line, over HTTP and for models (TOOL-1).

use super::violation::Violation;
use palisade_record::{Approval, Failure, Outcome, ReportedUsage, RunReport};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Of standard output. What a tool may write at all is a limit of its policy.
const MAX_STDOUT: usize = 1 << 20;
/// Of standard error.
const MAX_STDERR: usize = 256 << 10;

/// The result of one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    pub tool: String,
    /// The sandbox in which it ran, for the audit log and for `sandbox diff`.
    pub session_id: String,
    pub outcome: Outcome,
    pub exit_code: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// What is no UTF-8 is replaced.
    pub stdout: String,
    pub stderr: String,
    /// Whether there was more than is here.
    pub truncated: bool,
    /// What a built-in tool returns, as data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<ReportedUsage>,
    pub violations: Vec<Violation>,
    /// None: the tool worked in the project itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction: Option<ToolTransaction>,
    /// The level at which it ran; none if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// What a person agreed to beforehand.
    pub approvals: Vec<Approval>,
    /// Why it did not run, or was stopped, with its class (ERR-1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// What became of a tool's changes to the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolTransaction {
    /// Paths that wait to be applied or discarded, in the session of the result.
    pub waiting_changes: usize,
    pub applied_changes: usize,
}

/// The two outputs of a tool, as bytes.
#[derive(Clone, Debug, Default)]
pub struct ToolOutput {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl ToolResult {
    /// From the report of the run.
    pub fn new(tool: &str, report: &RunReport, output: &ToolOutput) -> Self {
        let (stdout, stdout_is_cut) = text(&output.stdout, MAX_STDOUT);
        let (stderr, stderr_is_cut) = text(&output.stderr, MAX_STDERR);
        let transaction = (report.waiting_changes.is_some() || report.applied_changes.is_some())
            .then(|| ToolTransaction {
                waiting_changes: report.waiting_changes.unwrap_or_default(),
                applied_changes: report.applied_changes.unwrap_or_default(),
            });
        let walls = report.walls.as_ref();
        Self {
            tool: tool.to_owned(),
            session_id: report.session_id.clone(),
            outcome: report.outcome,
            exit_code: report.exit_code,
            signal: report.signal,
            stdout,
            stderr,
            truncated: stdout_is_cut || stderr_is_cut || report.outcome == Outcome::OutputCapped,
            data: None,
            usage: report.usage.clone(),
            violations: Violation::of_report(report),
            transaction,
            level: walls.map(|walls| walls.level.clone()),
            network: walls.map(|walls| walls.network.clone()),
            approvals: report.approvals.clone(),
            failure: report.failure.clone(),
        }
    }

    /// Keeps at most so many bytes of standard output. The data beside a text that was cut would be of another one.
    pub fn cut_stdout(&mut self, most: usize) {
        let (stdout, is_cut) = text(self.stdout.as_bytes(), most);
        if is_cut {
            self.stdout = stdout;
            self.truncated = true;
            self.data = None;
        }
    }
}

/// At most `most` bytes of it, up to a whole character.
fn text(bytes: &[u8], most: usize) -> (String, bool) {
    let is_cut = bytes.len() > most;
    let mut end = bytes.len().min(most);
    // The first byte of a character is none of 10xxxxxx.
    while is_cut && end > 0 && bytes.get(end).is_some_and(|byte| byte & 0xC0 == 0x80) {
        end -= 1;
    }
    (String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned(), is_cut)
}

#[cfg(test)]
mod tests {
    use super::{ToolOutput, ToolResult, text};
    use palisade_record::{Outcome, RunReport, Versions};

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(text("aé".as_bytes(), 2), ("a".to_owned(), true));
        assert_eq!(text("aé".as_bytes(), 3), ("aé".to_owned(), false));
        assert_eq!(text(b"\xff", 3), ("\u{fffd}".to_owned(), false));
    }

    #[test]
    fn a_result_says_what_the_report_says() {
        let versions = Versions { palisade: String::new(), kernel: String::new() };
        let mut report = RunReport::begin("s1", &["x"], versions);
        report.outcome = Outcome::Completed;
        report.exit_code = 3;
        report.waiting_changes = Some(2);
        let output = ToolOutput { stdout: b"out".to_vec(), stderr: b"err".to_vec() };
        let result = ToolResult::new("t", &report, &output);
        assert_eq!(
            (result.exit_code, result.stdout.as_str(), result.stderr.as_str()),
            (3, "out", "err")
        );
        assert_eq!(result.transaction.unwrap().waiting_changes, 2);
        let json = serde_json::to_value(&result).unwrap();
        assert_eq!(json["sessionId"], "s1");
        assert_eq!(serde_json::from_value::<ToolResult>(json).unwrap(), result);
    }
}
