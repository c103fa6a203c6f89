//! Reads facts about the host: what a plan needs, and what `doctor` checks. Must never change anything: what
//! has to be tried is tried in a child process.

mod doctor;
mod limits;
mod mountinfo;
mod nat;
mod registries;
mod tree;

pub use doctor::{Finding, Health, Report, doctor};
pub use limits::limit_facts;
pub use nat::nat_facts;
pub use registries::{Registries, registries};
pub use tree::RealTree;

use palisade_plan::facts::{HostFacts, HostMount, NatFacts};
use palisade_sys::landlock::landlock_abi;
use palisade_sys::proc::read_kernel_file;
use palisade_sys::stream::only_reads_file;
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

/// A fact that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    #[error("the current directory cannot be read: {0}; change to one that exists")]
    WorkingDirectory(std::io::Error),
    #[error("{path} cannot be read: {error}; mount /proc (mount -t proc proc /proc) and try again")]
    Proc { path: &'static str, error: std::io::Error },
}

/// Reads the facts. Cheap: a few small files and no process. The session fills in the product's own paths and
/// the canary.
pub fn facts() -> Result<HostFacts, FactsError> {
    let env: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    let uid = rustix::process::geteuid().as_raw();
    let accounts = accounts();
    let account = accounts.iter().find(|account| account.uid == uid);
    let home = env.get(std::ffi::OsStr::new("HOME")).map(PathBuf::from);
    let home = home
        .filter(|home| home.is_absolute())
        .or_else(|| account.map(|account| account.home.clone()));
    let uid_ranges = id_ranges("/proc/self/uid_map")?;
    let gid_ranges = id_ranges("/proc/self/gid_map")?;
    let mountinfo = read_proc("/proc/self/mountinfo")?;
    Ok(HostFacts {
        uid,
        gid: rustix::process::getegid().as_raw(),
        hostname: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        user_name: account.map(|account| account.name.clone()),
        homes: homes(&accounts, uid),
        home,
        cwd: std::env::current_dir().map_err(FactsError::WorkingDirectory)?,
        env,
        landlock_abi: landlock_abi().unwrap_or(0),
        serves_gate: serves_gate(&mountinfo),
        uid_ranges,
        gid_ranges,
        mounts: mountinfo::parse(&mountinfo).collect(),
        stream_reads_file: does_stream_read_file(),
        own_paths: Vec::new(),
        canary: None,
        registries: BTreeMap::new(),
        registry_notes: Vec::new(),
        nat: NatFacts::default(),
        authority: None,
    })
}

/// Whether the gate can be a file system: its server asks `/proc` who makes a call, also of processes that nobody may
/// inspect.
fn serves_gate(mountinfo: &[u8]) -> bool {
    let device = rustix::fs::open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    device.is_ok() && !mountinfo::hides_processes(mountinfo)
}

fn does_stream_read_file() -> bool {
    let streams = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    streams.into_iter().any(only_reads_file)
}

/// The mount table, in the kernel's order.
pub fn mounts() -> Result<Vec<HostMount>, FactsError> {
    let table = read_proc("/proc/self/mountinfo")?;
    Ok(mountinfo::parse(&table).collect())
}

fn read_proc(path: &'static str) -> Result<Vec<u8>, FactsError> {
    let read = File::open(path).and_then(read_kernel_file);
    read.map_err(|error| FactsError::Proc { path, error })
}

/// The ids that exist in this user namespace: the first column and the count of an id map.
fn id_ranges(path: &'static str) -> Result<Vec<(u32, u32)>, FactsError> {
    let text = read_proc(path)?;
    let numbers = |line: &str| {
        let mut fields = line.split_whitespace().map(str::parse::<u32>);
        let (first, _, count) = (fields.next()?.ok()?, fields.next()?, fields.next()?.ok()?);
        Some((first, count))
    };
    Ok(String::from_utf8_lossy(&text).lines().filter_map(numbers).collect())
}

struct Account {
    name: String,
    uid: u32,
    home: PathBuf,
}

/// From /etc/passwd itself: a static binary has no name service switch.
fn accounts() -> Vec<Account> {
    let text = std::fs::read_to_string(Path::new("/etc/passwd")).unwrap_or_default();
    let account = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        let uid = fields.nth(1)?.parse().ok()?;
        Some(Account { name, uid, home: PathBuf::from(fields.nth(2)?) })
    };
    text.lines().filter_map(account).collect()
}

fn account_of(uid: u32) -> Option<Account> {
    accounts().into_iter().find(|account| account.uid == uid)
}

/// Home directories of people; services have directories of another kind.
fn homes(accounts: &[Account], caller: u32) -> Vec<PathBuf> {
    const PEOPLE: std::ops::Range<u32> = 1000..60_000;
    accounts
        .iter()
        .filter(|account| {
            account.uid == 0 || account.uid == caller || PEOPLE.contains(&account.uid)
        })
        .map(|account| account.home.clone())
        .filter(|home| home.is_absolute() && home != Path::new("/"))
        .collect()
}
