//! The processes of a sandbox, as the kernel tells them from outside.
//!
//! They may be hostile and alive. So nothing is read that lies in their memory, as a command line does: whoever maps that from
//! a file system of its own could keep us waiting.

use palisade_record::SeenProcess;
use std::collections::VecDeque;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, Instant};

const MAX_PROCESSES: usize = 256;
const MAX_THREADS: usize = 64;
const MAX_FILE: u64 = 64 * 1024;
const MAX_NAME: usize = 512;
/// The end of the run must not wait for long.
const PATIENCE: Duration = Duration::from_millis(200);

/// A process and its descendants, as far as they can be told in a moment.
pub(crate) fn descendants(root: u32) -> Vec<SeenProcess> {
    let deadline = Instant::now() + PATIENCE;
    let mut found = Vec::new();
    let mut left = VecDeque::from([root]);
    while let Some(pid) = left.pop_front() {
        if found.len() >= MAX_PROCESSES || Instant::now() > deadline {
            break;
        }
        let Some(process) = look(pid) else { continue };
        found.push(process);
        left.extend(children(pid));
    }
    found
}

fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.take(MAX_THREADS).filter_map(|thread| {
        read(&format!("/proc/{pid}/task/{}/children", thread.file_name().to_str()?))
    });
    lists.flat_map(|list| numbers(&list)).take(MAX_PROCESSES).collect()
}

fn numbers(text: &str) -> Vec<u32> {
    text.split_ascii_whitespace().filter_map(|number| number.parse().ok()).collect()
}

fn look(pid: u32) -> Option<SeenProcess> {
    let stat = read(&format!("/proc/{pid}/stat"))?;
    let (name, state, parent) = parse_stat(&stat)?;
    let executable = fs::read_link(format!("/proc/{pid}/exe")).ok().map(|path| {
        let bytes = path.as_os_str().as_bytes();
        String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_NAME)]).into_owned()
    });
    let call = read(&format!("/proc/{pid}/syscall")).map(|call| call.trim().to_owned());
    let call = call.filter(|call| !call.is_empty());
    Some(SeenProcess { pid, parent, name, state, executable, call })
}

/// The name is chosen by the process and may hold anything, a closing parenthesis as well.
fn parse_stat(stat: &str) -> Option<(String, String, u32)> {
    let (_, rest) = stat.split_once('(')?;
    let (name, rest) = rest.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.to_owned();
    Some((name.to_owned(), state, fields.next()?.parse().ok()?))
}

fn read(path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{descendants, parse_stat};

    #[test]
    fn a_name_cannot_forge_the_fields_after_it() {
        let expected = Some(("x) R 1 (y".to_owned(), "S".to_owned(), 42));
        assert_eq!(parse_stat("7 (x) R 1 (y) S 42 7 7 0"), expected);
        assert_eq!(parse_stat("7 x S 42"), None);
    }

    #[test]
    fn a_process_has_its_children_below_it() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let found = descendants(std::process::id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found[0].pid, std::process::id());
        let below = found.iter().find(|process| process.pid == child.id()).unwrap();
        assert_eq!(below.parent, std::process::id());
    }
}
