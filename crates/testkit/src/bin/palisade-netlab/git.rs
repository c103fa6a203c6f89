//! Repositories over HTTP, by git's own program for that (git-http-backend(1)), which speaks CGI.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::request::Request;

pub(crate) fn answer(
    directory: &Path,
    request: &Request,
    path: &str,
    query: &str,
    to: &mut impl Write,
) -> io::Result<()> {
    let mut backend = Command::new("git")
        .arg("http-backend")
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_PROJECT_ROOT", directory)
        .env("HOME", directory)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("REQUEST_METHOD", request.method())
        .env("REMOTE_ADDR", "203.0.113.1")
        .env("CONTENT_TYPE", request.header("content-type").unwrap_or_default())
        .env("HTTP_CONTENT_ENCODING", request.header("content-encoding").unwrap_or_default())
        .env("GIT_PROTOCOL", request.header("git-protocol").unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    if let Some(mut input) = backend.stdin.take() {
        input.write_all(&request.body)?;
    }
    let output = backend.wait_with_output()?.stdout;
    let end = output.windows(4).position(|part| part == b"\r\n\r\n").ok_or(io::ErrorKind::Other)?;
    let (head, body) = (String::from_utf8_lossy(&output[..end]), &output[end + 4..]);
    let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    write!(to, "HTTP/1.1 {status}\r\ncontent-length: {}\r\n{head}\r\n\r\n", body.len())?;
    to.write_all(body)
}
