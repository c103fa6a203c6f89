//! `grep`: a search by a command of the sandbox, bounded in time and output.

use super::answer::{ToolAnswer, ToolError};
use super::program::{Finished, run};
use crate::context::CallContext;
use crate::text::lossy;
use palisade_service::NewCommand;
use serde::{Deserialize, Serialize};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
const DEFAULT_MATCHES: usize = 200;
const MAX_MATCHES: usize = 2000;
/// Of what grep may write before it is ended.
const MAX_OUTPUT: usize = 1 << 20;
const MAX_LINE: usize = 500;
/// What grep ends with if nothing matched, and if something is wrong.
const NOTHING: i32 = 1;
const WRONG: i32 = 2;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Grep {
    pattern: String,
    #[serde(default)]
    path: Option<String>,
    /// Only files whose names match.
    #[serde(default)]
    glob: Option<String>,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    literal: bool,
    #[serde(default)]
    max_matches: Option<usize>,
}

#[derive(Debug, Serialize)]
struct GrepReport {
    matches: Vec<Match>,
    truncated: bool,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Match {
    path: String,
    line: u64,
    text: String,
}

impl Grep {
    fn command(&self, most: usize) -> NewCommand {
        let mut argv: Vec<String> =
            ["grep", "-rnIsH", "--null", "--exclude-dir=.git", "--color=never"]
                .map(str::to_owned)
                .to_vec();
        argv.push(if self.literal { "-F" } else { "-E" }.to_owned());
        if self.ignore_case {
            argv.push("-i".to_owned());
        }
        argv.push(format!("--max-count={most}"));
        if let Some(glob) = &self.glob {
            argv.push(format!("--include={glob}"));
        }
        argv.extend(["-e".to_owned(), self.pattern.clone(), "--".to_owned()]);
        argv.push(self.path.clone().unwrap_or_else(|| ".".to_owned()));
        NewCommand { argv, ..NewCommand::default() }
    }
}

pub(crate) async fn grep(call: &CallContext, wanted: Grep) -> Result<ToolAnswer, ToolError> {
    let most = wanted.max_matches.unwrap_or(DEFAULT_MATCHES).clamp(1, MAX_MATCHES);
    let Finished { exit_code, output, is_cut } =
        run(call, &wanted.command(most), PATIENCE, MAX_OUTPUT).await?;
    if exit_code == Some(WRONG) && !output.contains(&0) {
        return Err(ToolError::wrong(format!("grep: {}", lossy(&output).trim())));
    }
    let mut matches = parse(&output);
    let truncated = is_cut || matches.len() > most;
    matches.truncate(most);
    let mut text: String =
        matches.iter().map(|it| format!("{}:{}:{}\n", it.path, it.line, it.text)).collect();
    if matches.is_empty() {
        text = "no matches\n".to_owned();
    }
    if truncated {
        text.push_str("[there are more; search for less, or in fewer files]\n");
    }
    let mut answer = ToolAnswer::new(text, &GrepReport { matches, truncated })?;
    answer.may_be_denied = exit_code == Some(NOTHING) || exit_code == Some(WRONG);
    Ok(answer)
}

/// Lines of `path NUL number : text`. A name may hold anything but a NUL, also line ends.
fn parse(output: &[u8]) -> Vec<Match> {
    let text = String::from_utf8_lossy(output);
    let mut matches = Vec::new();
    let mut rest = &*text;
    while let Some((path, after)) = rest.split_once('\0') {
        let (line, after) = after.split_once('\n').unwrap_or((after, ""));
        rest = after;
        let Some((number, found)) = line.split_once(':') else { continue };
        let Ok(number) = number.parse() else { continue };
        let mut shown: String = lossy(found.as_bytes()).chars().take(MAX_LINE).collect();
        if shown.len() < found.len() {
            shown.push('…');
        }
        let path = path.strip_prefix("./").unwrap_or(path);
        let path = lossy(path.replace('\n', "\u{fffd}").as_bytes());
        matches.push(Match { path, line: number, text: shown });
    }
    matches
}

#[cfg(test)]
mod tests {
    use super::{Match, parse};

    #[test]
    fn names_with_colons_and_line_ends_are_names() {
        let of = |path: &str, line, text: &str| Match {
            path: path.to_owned(),
            line,
            text: text.to_owned(),
        };
        let found = parse(b"./a:1\x003:x:y\nb\nc\x001:z\nno match\n");
        assert_eq!(found, [of("a:1", 3, "x:y"), of("b\u{fffd}c", 1, "z")]);
        assert_eq!(parse(b""), []);
    }
}
