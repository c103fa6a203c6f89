//! A real server of HTTP/2 (nghttpd), with TLS and without, that answers every authority. What it was asked for stands in
//! its log.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::Result;
use crate::certificates::Certificates;
use crate::started::started;

const ADDRESS: &str = "203.0.113.26";
const NAMES: [&str; 2] = ["h2.example", "h2-other.example"];
const PLAIN: u16 = 8000;
const SECURE: u16 = 9443;
const LOG: &str = "http2.log";

/// The servers, once they answer.
pub(crate) fn serve(directory: &Path, certificates: &Certificates) -> Result<[Child; 2]> {
    let files = certificates.write(directory, &NAMES)?;
    let pages = directory.join("www").join("http2");
    fs::create_dir_all(&pages)?;
    fs::write(pages.join("index.html"), "hello over HTTP/2\n")?;
    let server = || -> Result<Command> {
        // It ends with this process, whatever ends that.
        let mut server = Command::new("setpriv");
        server.args(["--pdeathsig", "KILL", "nghttpd", "--verbose", "--address", ADDRESS]);
        server.arg("--htdocs").arg(&pages).stdin(Stdio::null());
        let log = OpenOptions::new().create(true).append(true).open(directory.join(LOG))?;
        server.stdout(log.try_clone()?).stderr(log);
        Ok(server)
    };
    let mut plain = server()?;
    plain.arg("--no-tls").arg(PLAIN.to_string());
    let mut secure = server()?;
    secure.arg(SECURE.to_string()).args([&files.key, &files.certificate]);
    Ok([
        started(&mut plain, &format!("{ADDRESS}:{PLAIN}"))?,
        started(&mut secure, &format!("{ADDRESS}:{SECURE}"))?,
    ])
}
