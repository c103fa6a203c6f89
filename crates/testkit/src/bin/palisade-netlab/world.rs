//! The world around the host of a test: a process in a network namespace of its own, which ends with the host's.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::journal::Journal;
use crate::{Result, certificates, http2, names, plain, resolver, setting, ssh, web, websocket};

/// It has a namespace, and an authority that bundles can name.
const MADE: &str = "made\n";
const READY: &str = "ready\n";

/// Seen from the host.
#[derive(Debug)]
pub(crate) struct World {
    process: Child,
    says: BufReader<ChildStdout>,
}

impl World {
    pub(crate) fn start(directory: &Path, parts: &[&str]) -> Result<Self> {
        let mut process = Command::new("unshare")
            .arg("--net")
            .arg(std::env::current_exe()?)
            .arg("world")
            .arg(directory)
            .args(parts)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let says = process.stdout.take().map(BufReader::new).ok_or("the world has no output")?;
        let mut world = Self { process, says };
        world.hear(MADE)?;
        Ok(world)
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// The link to it is there: it serves from now on.
    pub(crate) fn open(&mut self) -> Result<()> {
        if let Some(input) = &mut self.process.stdin {
            input.write_all(b"\n")?;
        }
        self.hear(READY)
    }

    fn hear(&mut self, word: &str) -> Result<()> {
        let mut said = String::new();
        self.says.read_line(&mut said)?;
        if said == word { Ok(()) } else { Err(format!("the world says {said:?}").into()) }
    }

    pub(crate) fn end(mut self) -> Result<()> {
        drop(self.process.stdin.take());
        self.process.wait()?;
        Ok(())
    }
}

/// Serves until its input ends.
pub(crate) fn serve(directory: &Path, parts: &[&str]) -> Result<()> {
    let journal = Journal::new(directory)?;
    let certificates = certificates::Certificates::new(directory)?;
    say(MADE)?;
    if io::stdin().read(&mut [0; 1])? == 0 {
        return Ok(());
    }
    setting::prepare_world()?;
    resolver::serve(&journal)?;
    plain::serve(&journal, &names::WORLD_DATAGRAMS)?;
    let mut servers: Vec<Child> = Vec::new();
    if parts.contains(&"ssh") {
        servers.push(ssh::serve(directory)?);
    }
    if parts.contains(&"http2") {
        servers.extend(http2::serve(directory, &certificates)?);
    }
    if parts.contains(&"websocket") {
        servers.push(websocket::serve(directory, &certificates)?);
    }
    web::serve(directory, &journal, certificates)?;
    say(READY)?;
    io::stdin().read_to_end(&mut Vec::new())?;
    for mut server in servers {
        server.kill()?;
        server.wait()?;
    }
    Ok(())
}

fn say(word: &str) -> io::Result<()> {
    print!("{word}");
    io::stdout().flush()
}
