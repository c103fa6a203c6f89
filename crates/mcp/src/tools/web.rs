//! `web_fetch`: a page as a command of the sandbox gets it, under its network policy.

use super::answer::{ToolAnswer, ToolError};
use super::program::{Finished, run};
use crate::context::CallContext;
use crate::text::{lossy, whole};
use palisade_service::random;
use palisade_service::{NewCommand, ProblemKind};
use serde::{Deserialize, Serialize};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(90);
const DEFAULT_BYTES: usize = 64 << 10;
const MAX_BYTES: usize = 512 << 10;
/// Of what curl takes from the network.
const MAX_TRANSFER: usize = 2 << 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct WebFetch {
    url: String,
    #[serde(default)]
    max_bytes: Option<usize>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FetchReport {
    status: u16,
    content_type: String,
    /// Where redirects led.
    url: String,
    content: String,
    truncated: bool,
}

pub(crate) async fn web_fetch(
    call: &CallContext,
    wanted: WebFetch,
) -> Result<ToolAnswer, ToolError> {
    let is_url = ["http://", "https://"].iter().any(|scheme| wanted.url.starts_with(scheme));
    if !is_url || wanted.url.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(ToolError::wrong("url: write a whole one, such as https://example.com/page"));
    }
    // What a page says must not pass for what curl says.
    let mark = random::hex(16).map_err(|error| ToolError::ours(error.to_string()))?;
    let told = format!("\n{mark} %{{http_code}} %{{content_type}} \n%{{url_effective}}");
    let transfer = MAX_TRANSFER.to_string();
    let argv = [
        "curl",
        "-q",
        "-sS",
        "-L",
        "--max-redirs",
        "5",
        "--max-time",
        "60",
        "--max-filesize",
        &transfer,
        "--proto",
        "=http,https",
        "--proto-redir",
        "=http,https",
        "--globoff",
        "-w",
        &told,
        "--",
        &wanted.url,
    ];
    let command = NewCommand { argv: argv.map(str::to_owned).to_vec(), ..NewCommand::default() };
    let Finished { exit_code, output, is_cut } =
        run(call, &command, PATIENCE, MAX_TRANSFER + (64 << 10)).await.map_err(|mut error| {
            error.text.push_str("; web_fetch needs the program `curl` in the sandbox");
            error
        })?;
    let Some(Fetched { body, status, content_type, url, complaint }) = parse(&output, &mark) else {
        return Err(ToolError::new(
            ProblemKind::Timeout,
            "the page was not fetched in time, or is too large",
        ));
    };
    if exit_code != Some(0) {
        let text = format!(
            "{}\nThe sandbox may not be allowed to reach this host. A person allows it with `--allow-host HOST` where the \
             server is started (policy key network.allowedHosts).",
            complaint.trim()
        );
        return Err(ToolError::new(ProblemKind::Resource, text).perhaps_denied());
    }
    let most = wanted.max_bytes.unwrap_or(DEFAULT_BYTES).clamp(1, MAX_BYTES);
    let truncated = is_cut || body.len() > most;
    let content = lossy(&body[..whole(body, most)]);
    let mut text = format!("{status} {url}\n\n{content}");
    if truncated {
        text.push_str("\n[the rest was left out]");
    }
    ToolAnswer::new(text, &FetchReport { status, content_type, url, content, truncated })
}

#[derive(Debug, PartialEq, Eq)]
struct Fetched<'a> {
    body: &'a [u8],
    status: u16,
    content_type: String,
    url: String,
    /// What curl said about an error, which comes last.
    complaint: String,
}

/// The body, and what curl said about it after the mark.
fn parse<'a>(output: &'a [u8], mark: &str) -> Option<Fetched<'a>> {
    let needle = format!("\n{mark} ");
    let at = output.windows(needle.len()).rposition(|window| window == needle.as_bytes())?;
    let told = String::from_utf8_lossy(&output[at + needle.len()..]);
    let (head, rest) = told.split_once('\n')?;
    let (status, content_type) = head.split_once(' ')?;
    // Both streams are one: a complaint may come before the mark or after it.
    let (url, after) = rest.split_once("curl: ").map_or((rest, ""), |(url, after)| (url, after));
    let body = &output[..at];
    let complaint = match after {
        "" => String::from_utf8_lossy(body)
            .lines()
            .rfind(|line| line.starts_with("curl: "))
            .unwrap_or_default()
            .to_owned(),
        after => format!("curl: {after}"),
    };
    Some(Fetched {
        body,
        status: status.parse().ok()?,
        content_type: lossy(content_type.trim().as_bytes()),
        url: lossy(url.trim().as_bytes()),
        complaint: lossy(complaint.as_bytes()),
    })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_page_cannot_pretend_to_be_curl() {
        let output = b"body\n0 200 x\n\nMARK 404 text/html; charset=utf-8 \nhttp://a/b";
        let fetched = parse(output, "MARK").unwrap();
        assert_eq!((fetched.body, fetched.status), (&b"body\n0 200 x\n"[..], 404));
        assert_eq!(
            (fetched.content_type.as_str(), fetched.url.as_str()),
            ("text/html; charset=utf-8", "http://a/b")
        );
        assert_eq!(parse(b"body", "MARK"), None);
        let failed =
            parse(b"\nMARK 000  \nhttp://a/curl: (6) Could not resolve host: a\n", "MARK").unwrap();
        assert_eq!(
            (failed.status, failed.complaint.trim()),
            (0, "curl: (6) Could not resolve host: a")
        );
    }
}
