//! Races: two threads, each on a processor of its own, one that changes and one that uses.
//! The winner's prize is a canary outside; nothing else counts.

use std::fs::{self, File};
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use palisade_testkit::raw::{NamedCall, SharedName};
use palisade_testkit::{patiently, pin};
use rustix::io::Errno;

use crate::{Failure, Probe, argument, number};

pub(crate) const PROBES: &[Probe] = &[
    ("race-dots", "TRIES CANARY", race_dots),
    ("race-link", "TRIES CANARY", race_link),
    ("race-hook", "TRIES DIRECTORY NAME", race_hook),
    ("race-read", "TRIES HARMLESS WANTED", race_read),
    ("race-name", "open|mkdir|rename|link|symlink TRIES HARMLESS WANTED", race_name),
];

/// How long a race goes on at most: on a busy machine each try can take a thousand times as long.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Lets `change` go on in another thread while `attempt` is tried this often, and on until there were
/// enough tries with a change in them for it to be a race at all: the other thread may have no CPU for as long as
/// thousands of tries take.
pub(crate) fn race(
    tries: u32,
    change: impl Fn() -> io::Result<()> + Sync,
    mut attempt: impl FnMut() -> Option<String>,
) -> Result<String, Failure> {
    let over = AtomicBool::new(false);
    let changes = AtomicU32::new(0);
    let enough = tries / 100;
    let until = Instant::now() + patiently(TIMEOUT);
    let won = std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = pin(1);
            while !over.load(Ordering::Relaxed) {
                let _ = change();
                changes.fetch_add(1, Ordering::Relaxed);
            }
        });
        let _ = pin(0);
        let (mut done, mut races) = (0, 0);
        let won = loop {
            if done >= tries && races >= enough || Instant::now() > until {
                break None;
            }
            let before = changes.load(Ordering::Relaxed);
            if let Some(won) = attempt() {
                break Some(won);
            }
            done += 1;
            races += u32::from(changes.load(Ordering::Relaxed) != before);
        };
        over.store(true, Ordering::Relaxed);
        won
    });
    won.ok_or_else(|| io::Error::from(Errno::ACCESS).into())
}

fn content(path: &str) -> Option<String> {
    let mut content = String::new();
    File::open(path).ok()?.read_to_string(&mut content).ok()?;
    Some(content)
}

/// A directory is renamed back and forth while a walk with `..` passes through it: the kernel must
/// notice that it left the tree, or `..` goes on above the root.
fn race_dots(arguments: &[String]) -> Result<String, Failure> {
    let tries = number(arguments, 0, "TRIES")?;
    let canary = argument(arguments, 1, "CANARY")?.trim_start_matches('/');
    fs::create_dir_all("deep/er/inner")?;
    let up = "../".repeat(40);
    let walk = format!("deep/er/inner/../../../deep/er/inner/{up}{canary}");
    race(
        tries,
        || fs::rename("deep/er", "elsewhere").and_then(|()| fs::rename("elsewhere", "deep/er")),
        || content(&walk),
    )
}

/// A name is a directory and a link to outside in turns.
fn race_link(arguments: &[String]) -> Result<String, Failure> {
    let tries = number(arguments, 0, "TRIES")?;
    let canary = std::path::Path::new(argument(arguments, 1, "CANARY")?);
    let (Some(outside), Some(name)) = (canary.parent(), canary.file_name()) else {
        return Err(Failure::Usage("CANARY is not a file's path".to_owned()));
    };
    fs::create_dir_all("swapped")?;
    std::os::unix::fs::symlink(outside, "link")?;
    let walk = format!("swapped/{}", name.to_string_lossy());
    race(
        tries,
        || {
            let both = rustix::fs::RenameFlags::EXCHANGE;
            Ok(rustix::fs::renameat_with(
                rustix::fs::CWD,
                "swapped",
                rustix::fs::CWD,
                "link",
                both,
            )?)
        },
        || content(&walk),
    )
}

/// A file is opened over and over by a name that another thread keeps rewriting; any text but the harmless file's wins.
fn race_read(arguments: &[String]) -> Result<String, Failure> {
    let tries: u32 = number(arguments, 0, "TRIES")?;
    let harmless = argument(arguments, 1, "HARMLESS")?;
    let name = SharedName::new(harmless, argument(arguments, 2, "WANTED")?)
        .ok_or_else(|| Failure::Usage("the two names are not equally long".to_owned()))?;
    let known = fs::read_to_string(harmless)?;
    let change = || {
        name.flip();
        Ok(())
    };
    race(tries, change, || {
        let mut text = String::new();
        File::from(name.open().ok()?).read_to_string(&mut text).ok()?;
        (text != known).then_some(text)
    })
}

/// One call is made over and over with a name that another thread keeps rewriting.
fn race_name(arguments: &[String]) -> Result<String, Failure> {
    let way = argument(arguments, 0, "WAY")?;
    let tries: u32 = number(arguments, 1, "TRIES")?;
    let harmless = argument(arguments, 2, "HARMLESS")?;
    let wanted = argument(arguments, 3, "WANTED")?;
    let name = SharedName::new(harmless, wanted)
        .ok_or_else(|| Failure::Usage("the two names are not equally long".to_owned()))?;
    let way = match way {
        "open" => NamedCall::Open,
        "mkdir" => NamedCall::Mkdir,
        "rename" => NamedCall::Rename,
        "link" => NamedCall::Link,
        "symlink" => NamedCall::Symlink,
        other => return Err(Failure::Usage(format!("no such way: {other}"))),
    };
    fs::write("source", "evil")?;
    let change = || {
        name.flip();
        Ok(())
    };
    race(tries, change, || {
        let _ = name.call(way);
        let won = fs::symlink_metadata(wanted).is_ok();
        // The harmless name has to be free again, and the source back, for the next try.
        let _ = fs::remove_file(harmless).or_else(|_| fs::remove_dir(harmless));
        if fs::symlink_metadata("source").is_err() {
            let _ = fs::write("source", "evil");
        }
        won.then(|| wanted.to_owned())
    })
}

/// A directory and a link to the wanted one in turns, while a file is made in it.
fn race_hook(arguments: &[String]) -> Result<String, Failure> {
    let tries = number(arguments, 0, "TRIES")?;
    let directory = argument(arguments, 1, "DIRECTORY")?;
    let name = argument(arguments, 2, "NAME")?;
    fs::create_dir_all("swapped")?;
    std::os::unix::fs::symlink(directory, "link")?;
    let (swapped, wanted) = (format!("swapped/{name}"), format!("{directory}/{name}"));
    let both = rustix::fs::RenameFlags::EXCHANGE;
    race(
        tries,
        || {
            Ok(rustix::fs::renameat_with(
                rustix::fs::CWD,
                "swapped",
                rustix::fs::CWD,
                "link",
                both,
            )?)
        },
        || {
            let _ = File::create(&swapped);
            let won = fs::symlink_metadata(&wanted).is_ok();
            won.then(|| wanted.clone())
        },
    )
}
