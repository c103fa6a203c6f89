//! What the web servers answer: files below `www/HOST` of the lab, repositories below `git`, and pages
//! that behave in some way a client has to cope with.

use std::fs;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use serde_json::json;

use crate::git;
use crate::request::Request;

const MIB: usize = 1024 * 1024;

pub(crate) fn answer(
    directory: &Path,
    request: &Request,
    local: &str,
    to: &mut impl Write,
) -> io::Result<()> {
    let target = request.target();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if let Some((content_type, bytes)) = file(directory, request.host(), path) {
        return whole(to, request, "200 OK", &[("content-type", content_type)], &bytes);
    }
    match path.trim_start_matches('/').split('/').collect::<Vec<_>>().as_slice() {
        [""] => {
            let text = format!("hello from {}\n", request.host());
            whole(to, request, "200 OK", &[("content-type", "text/plain")], text.as_bytes())
        }
        ["request"] => {
            let seen = json!({
                "line": request.line,
                "headers": request.headers,
                "local": local,
                "length": request.body.len(),
            });
            let kind = [("content-type", "application/json")];
            whole(to, request, "200 OK", &kind, seen.to_string().as_bytes())
        }
        ["echo"] => {
            let kind = [("content-type", "application/octet-stream")];
            whole(to, request, "200 OK", &kind, &request.body)
        }
        // The page to go to is the query, as it is.
        ["redirect"] => whole(to, request, "302 Found", &[("location", query)], b"elsewhere\n"),
        ["status", code] => whole(to, request, &format!("{code} As Asked"), &[], b""),
        ["big", mebibytes] => big(to, mebibytes.parse().unwrap_or(1)),
        ["chunked"] => {
            to.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")?;
            to.write_all(b"5\r\nhello\r\n7\r\n there\n\r\n0\r\n\r\n")
        }
        ["endless"] => endless(to),
        ["git", ..] => git::answer(directory, request, path, query, to),
        _ => whole(to, request, "404 Not Found", &[], b"nothing is here\n"),
    }
}

fn whole(
    to: &mut impl Write,
    request: &Request,
    status: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    to.write_all(head.as_bytes())?;
    if request.method() == "HEAD" { Ok(()) } else { to.write_all(body) }
}

fn big(to: &mut impl Write, mebibytes: usize) -> io::Result<()> {
    let length = mebibytes * MIB;
    to.write_all(format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n").as_bytes())?;
    let block = vec![b'x'; MIB];
    (0..mebibytes).try_for_each(|_| to.write_all(&block))
}

/// Ends only when the client does.
fn endless(to: &mut impl Write) -> io::Result<()> {
    to.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")?;
    loop {
        to.write_all(&[b'x'; 4096])?;
        to.flush()?;
    }
}

/// A file of this host's, and its type.
fn file(directory: &Path, host: &str, path: &str) -> Option<(&'static str, Vec<u8>)> {
    let relative = PathBuf::from(path.trim_start_matches('/'));
    if !relative.components().all(|part| matches!(part, Component::Normal(_))) {
        return None;
    }
    let mut found = directory.join("www").join(host).join(relative);
    if found.is_dir() {
        found.push("index.html");
    }
    let content_type = match found.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html",
        Some("json") | None => "application/json",
        Some(_) => "application/octet-stream",
    };
    Some((content_type, fs::read(found).ok()?))
}
