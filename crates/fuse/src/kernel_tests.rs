//! The kernel as the other end: a small file system, mounted in a namespace of its own, served by a thread, and used.
//! With the child that a test runs in, mount and namespace go.

use crate::*;
use palisade_sys::clone::{CloneFlags, unshare};
use palisade_sys::mounts::{FsOption, MountAttrs, move_mount, new_fs};
use palisade_sys::test_child::{become_namespace_root, in_child};
use palisade_sys::{CWD, Errno};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, FileType, StatxFlags, getxattr, getxattr_query, statx};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(20);
const LONG: Duration = Duration::from_secs(3600);
const TERMS: Terms = Terms {
    flags: InitFlags::USUAL.union(InitFlags::DO_READDIRPLUS),
    max_write: 256 * 1024,
    max_readahead: 128 * 1024,
    max_background: 12,
};
const BORN: Timestamp = Timestamp { seconds: 1_000_000_000, nanoseconds: 5 };
const PLENTY: u64 = 1000;

/// Nodes of the file system.
const FILE: NodeId = NodeId(2);
const LINK: NodeId = NodeId(3);
/// Whoever opens it waits until it is interrupted.
const HELD: NodeId = NodeId(4);
/// A name whose look-up waits until it is interrupted.
const UNDECIDED: &[u8] = b"undecided";
/// A directory with [`PLENTY`] of entries, none of which can be looked up.
const CROWD: NodeId = NodeId(5);
const NAMES: [(&str, NodeId, FileType); 4] = [
    ("file", FILE, FileType::RegularFile),
    ("link", LINK, FileType::Symlink),
    ("held", HELD, FileType::RegularFile),
    ("crowd", CROWD, FileType::Directory),
];

/// What the file system has to say about itself: each operation it was asked for.
struct Server {
    connection: Arc<Connection>,
    content: Vec<u8>,
    parked: Option<Unique>,
    asked: Arc<Mutex<Vec<String>>>,
    parked_events: Sender<()>,
}

/// The file system, mounted.
struct Mounted<'a> {
    path: &'a Path,
    connection: Arc<Connection>,
    asked: Arc<Mutex<Vec<String>>>,
    parked_events: Receiver<()>,
    thread: JoinHandle<Agreement>,
}

/// Runs `body` in a child, with the file system mounted below a directory that only the child sees it in.
fn with_mounted(body: impl FnOnce(&Mounted<'_>)) {
    with_mounted_after(|| unshare(CloneFlags::NEWNS).unwrap(), body);
}

fn with_mounted_after(enter: impl FnOnce(), body: impl FnOnce(&Mounted<'_>)) {
    if device().is_none() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    in_child(|| {
        enter();
        let mounted = Mounted::new(device().unwrap(), directory.path());
        body(&mounted);
        let Mounted { connection, thread, .. } = mounted;
        unmount(directory.path(), UnmountFlags::empty()).unwrap();
        let agreement = thread.join().unwrap();
        assert!(agreement.flags.contains(TERMS.flags), "{agreement:?}");
        assert_eq!(agreement.max_write, TERMS.max_write);
        assert_eq!(connection.reply(Unique(2), &Reply::done()).unwrap(), Delivery::Gone);
    });
}

fn device() -> Option<OwnedFd> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can mount on the host");
        return None;
    }
    match File::options().read(true).write(true).open("/dev/fuse") {
        Ok(device) => Some(device.into()),
        Err(error) => {
            eprintln!("skipped: /dev/fuse cannot be opened: {error}");
            None
        }
    }
}

/// The mount of a device, attached nowhere yet.
fn mount(device: &OwnedFd) -> palisade_sys::Result<OwnedFd> {
    let number = device.as_raw_fd().to_string();
    let options = [
        FsOption::Text("fd", &number),
        FsOption::Text("rootmode", "40000"),
        FsOption::Text("user_id", "0"),
        FsOption::Text("group_id", "0"),
        FsOption::Flag("allow_other"),
    ];
    new_fs("fuse", &options, MountAttrs::NOSUID | MountAttrs::NODEV)
}

impl<'a> Mounted<'a> {
    fn new(device: OwnedFd, path: &'a Path) -> Self {
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).unwrap();
        let tree = mount(&device).unwrap();
        move_mount(tree, CWD, path).unwrap();
        let connection = Arc::new(Connection::new(device).unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (sender, parked_events) = channel();
        let server = Server {
            connection: connection.clone(),
            content: b"served\n".to_vec(),
            parked: None,
            asked: asked.clone(),
            parked_events: sender,
        };
        let thread = std::thread::spawn(move || server.serve());
        Self { path, connection, asked, parked_events, thread }
    }

    /// A process that reads that file, when its request was left unanswered.
    fn caller_of(&self, name: &str) -> Child {
        let mut command = Command::new("cat");
        command.arg(self.path.join(name)).stdout(Stdio::null()).stderr(Stdio::null());
        let caller = command.spawn().unwrap();
        self.parked_events.recv_timeout(TIMEOUT).unwrap();
        caller
    }

    /// How often an operation was asked for whose text begins so.
    fn asked(&self, operation: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|text| text.starts_with(operation)).count()
    }
}

impl Server {
    /// Serves until it is unmounted.
    fn serve(mut self) -> Agreement {
        let mut agreement = None;
        let mut buffer = Buffer::new(TERMS.max_write);
        let connection = self.connection.clone();
        loop {
            match connection.receive(&mut buffer).unwrap() {
                Received::Request(request) => {
                    let text = format!("{:?}", request.operation);
                    self.asked.lock().unwrap().push(text);
                    if let Operation::Init(offer) = request.operation {
                        let Handshake::Agreed(agreed) = offer.agree(&TERMS).unwrap() else {
                            panic!("{offer:?}")
                        };
                        agreement = Some(agreed);
                        self.answer(request.unique, &Reply::init(&agreed));
                    } else {
                        self.handle(&request);
                    }
                }
                Received::Nothing => {
                    let mut events = [PollFd::new(&connection, PollFlags::IN)];
                    let timeout = Timespec::try_from(TIMEOUT).unwrap();
                    assert_eq!(poll(&mut events, Some(&timeout)), Ok(1), "nothing came");
                }
                Received::Withdrawn => {}
                Received::Closed | Received::Aborted => return agreement.unwrap(),
                Received::Malformed(error) => panic!("{error}"),
            }
        }
    }

    fn answer(&self, request: Unique, reply: &Reply<'_>) {
        assert_eq!(self.connection.reply(request, reply).unwrap(), Delivery::Delivered);
    }

    /// Leaves a request unanswered until it is interrupted.
    fn park(&mut self, request: Unique) {
        self.parked = Some(request);
        self.parked_events.send(()).unwrap();
    }

    fn handle(&mut self, request: &Request<'_>) {
        let unique = request.unique;
        match &request.operation {
            Operation::Lookup { name: UNDECIDED } => self.park(unique),
            Operation::Lookup { name } => match self.look_up(request.node, name) {
                Some(entry) => self.answer(unique, &Reply::entry(&entry)),
                None => self.answer(unique, &Reply::no_entry(LONG)),
            },
            Operation::GetAttr { .. } => {
                self.answer(unique, &Reply::attributes(&self.attributes(request.node), LONG));
            }
            Operation::SetAttr(changes) => {
                if let Some(size) = changes.size {
                    self.content.resize(size.try_into().unwrap(), 0);
                }
                self.answer(unique, &Reply::attributes(&self.attributes(request.node), LONG));
            }
            Operation::Statx { .. } => {
                let reply = Reply::statx(&self.attributes(request.node), Some(BORN), LONG);
                self.answer(unique, &reply);
            }
            Operation::ReadLink => self.answer(unique, &Reply::data(b"file")),
            Operation::Open { .. } if request.node == HELD => self.park(unique),
            Operation::Open { .. } | Operation::OpenDir { .. } => {
                let handle = FileHandle(request.node.0);
                self.answer(unique, &Reply::opened(Opened { handle, flags: OpenFlags::empty() }));
            }
            Operation::Read { offset, size, .. } => {
                let rest = self.content.get(usize::try_from(*offset).unwrap()..).unwrap_or(&[]);
                let end = rest.len().min(usize::try_from(*size).unwrap());
                self.answer(unique, &Reply::data(&rest[..end]));
            }
            Operation::Write { offset, data, .. } => {
                let start = usize::try_from(*offset).unwrap();
                self.content.resize(self.content.len().max(start + data.len()), 0);
                self.content[start..start + data.len()].copy_from_slice(data);
                self.answer(unique, &Reply::written(data.len().try_into().unwrap()));
            }
            Operation::ReadDir { offset, size, .. } => {
                let mut listing = Listing::new(*size);
                self.list(request.node, *offset, |entry, _| listing.add(entry));
                self.answer(unique, &Reply::listing(&listing));
            }
            Operation::ReadDirPlus { offset, size, .. } => {
                let mut listing = ListingPlus::new(*size);
                self.list(request.node, *offset, |entry, found| listing.add(entry, found));
                self.answer(unique, &Reply::listing_plus(&listing));
            }
            Operation::StatFs => {
                let stats = FileSystemStats {
                    blocks: 77,
                    block_size: 512,
                    max_name: 255,
                    ..Default::default()
                };
                self.answer(unique, &Reply::statfs(&stats));
            }
            Operation::GetXattr { name: b"user.colour", size: 0 } => {
                self.answer(unique, &Reply::xattr_size(5));
            }
            Operation::GetXattr { name: b"user.colour", .. } => {
                self.answer(unique, &Reply::data(b"green"));
            }
            Operation::GetXattr { .. } => self.answer(unique, &Reply::error(Errno::NODATA)),
            Operation::Flush { .. } => self.answer(unique, &Reply::done()),
            Operation::Release { .. } | Operation::ReleaseDir { .. } => {
                // Nobody waits for it; the file system may be unmounted by now.
                let _ = self.connection.reply(unique, &Reply::done()).unwrap();
            }
            Operation::Interrupt { request } => {
                assert_eq!(self.parked.take(), Some(*request));
                self.answer(*request, &Reply::error(Errno::INTR));
            }
            Operation::Symlink { .. } => self.answer(unique, &Reply::error(Errno::ROFS)),
            operation if operation.expects_reply() => {
                self.answer(unique, &Reply::error(Errno::NOSYS));
            }
            _ => {}
        }
    }

    fn attributes(&self, node: NodeId) -> Attributes {
        let (mode, size) = match node {
            FILE => (0o100_644, self.content.len()),
            LINK => (0o120_777, 4),
            HELD => (0o100_600, 0),
            _ => (0o040_755, 0),
        };
        let size = u64::try_from(size).unwrap();
        let modified = Timestamp { seconds: 1_234_567_890, nanoseconds: 123_456_789 };
        Attributes {
            ino: 100 + node.0,
            mode,
            size,
            modified,
            links: 1,
            block_size: 512,
            ..Default::default()
        }
    }

    fn look_up(&self, parent: NodeId, name: &[u8]) -> Option<Entry> {
        let (_, node, _) = NAMES
            .into_iter()
            .find(|(known, ..)| parent == NodeId::ROOT && known.as_bytes() == name)?;
        let attributes = self.attributes(node);
        Some(Entry { node, generation: 0, attributes, entry_valid: LONG, attributes_valid: LONG })
    }

    fn list(
        &self,
        node: NodeId,
        offset: u64,
        mut add: impl FnMut(&DirectoryEntry<'_>, Option<&Entry>) -> Room,
    ) {
        let entries: Vec<(String, FileType)> = match node {
            CROWD => {
                (0..PLENTY).map(|i| (format!("one-of-many-{i}"), FileType::RegularFile)).collect()
            }
            _ => NAMES.iter().map(|(name, _, kind)| ((*name).to_owned(), *kind)).collect(),
        };
        for (index, (name, file_type)) in (1..).zip(entries).skip(usize::try_from(offset).unwrap())
        {
            let name = name.as_bytes();
            let found = self.look_up(node, name);
            let entry = DirectoryEntry { ino: 100 + index, next_offset: index, file_type, name };
            if add(&entry, found.as_ref()) == Room::Full {
                return;
            }
        }
    }
}

/// Kills a caller, which is gone only when its request was answered.
fn end(mut caller: Child) {
    caller.kill().unwrap();
    assert_eq!(caller.wait().unwrap().signal(), Some(9));
}

fn names_in(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_file_is_shown_and_read() {
    with_mounted(|mounted| {
        let file = mounted.path.join("file");
        assert_eq!(fs::read_to_string(&file).unwrap(), "served\n");
        let shown = fs::metadata(&file).unwrap();
        assert_eq!((shown.ino(), shown.len(), shown.mode()), (102, 7, 0o100_644));
        assert_eq!((shown.mtime(), shown.mtime_nsec()), (1_234_567_890, 123_456_789));
        assert_eq!(fs::read_link(mounted.path.join("link")).unwrap(), Path::new("file"));
        assert_eq!(fs::read_to_string(mounted.path.join("link")).unwrap(), "served\n");
        let missing = fs::metadata(mounted.path.join("missing")).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        assert_eq!(mounted.asked("Init"), 1);
    });
}

#[test]
fn a_user_namespace_can_be_served() {
    let enter = || become_namespace_root(CloneFlags::NEWNS);
    with_mounted_after(enter, |mounted| {
        assert_eq!(fs::read_to_string(mounted.path.join("file")).unwrap(), "served\n");
    });
}

#[test]
fn a_device_from_another_user_namespace_is_not_mounted() {
    let Some(device) = device() else { return };
    in_child(|| {
        become_namespace_root(CloneFlags::NEWNS);
        assert_eq!(mount(&device).unwrap_err().errno, Errno::INVAL);
    });
}

#[test]
fn what_was_said_to_be_valid_is_not_asked_for_again() {
    with_mounted(|mounted| {
        for _ in 0..3 {
            fs::metadata(mounted.path.join("file")).unwrap();
            fs::metadata(mounted.path.join("missing")).unwrap_err();
        }
        assert_eq!(mounted.asked("Lookup"), 2);
    });
}

#[test]
fn directories_are_listed_whole() {
    with_mounted(|mounted| {
        let expected = NAMES.iter().map(|(name, ..)| (*name).to_owned()).collect();
        assert_eq!(names_in(mounted.path), expected);
        assert!(mounted.asked("ReadDirPlus") > 0);
        // The listing was a look-up of each.
        assert_eq!(fs::metadata(mounted.path.join("file")).unwrap().len(), 7);
        assert_eq!(mounted.asked("Lookup"), 0);
        let crowd = (0..PLENTY).map(|i| format!("one-of-many-{i}")).collect();
        assert_eq!(names_in(&mounted.path.join("crowd")), crowd);
    });
}

#[test]
fn a_file_is_written_in_large_pieces() {
    with_mounted(|mounted| {
        let path = mounted.path.join("file");
        let content = vec![b'x'; 200_000];
        let mut file = File::options().write(true).truncate(true).open(&path).unwrap();
        file.write_all(&content).unwrap();
        drop(file);
        assert_eq!(mounted.asked("Write"), 1, "at most 256 KiB are one request");
        let mut read = Vec::new();
        File::open(&path).unwrap().read_to_end(&mut read).unwrap();
        assert!(read == content);
    });
}

#[test]
fn other_questions_are_answered() {
    with_mounted(|mounted| {
        let file = mounted.path.join("file");
        let stats = rustix::fs::statvfs(mounted.path).unwrap();
        assert_eq!((stats.f_blocks, stats.f_bsize, stats.f_namemax), (77, 512, 255));
        let mut value = [0; 16];
        assert_eq!(getxattr_query(&file, "user.colour"), Ok(5));
        assert_eq!(getxattr(&file, "user.colour", &mut value[..]), Ok(5));
        assert_eq!(&value[..5], b"green");
        assert_eq!(getxattr(&file, "user.taste", &mut value[..]), Err(Errno::NODATA));
        let refused = symlink("a", mounted.path.join("b")).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ReadOnlyFilesystem);
        let unknown = fs::create_dir(mounted.path.join("d")).unwrap_err();
        assert_eq!(unknown.raw_os_error(), Some(Errno::NOSYS.raw_os_error()));
        let mask = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        let shown = statx(CWD, &file, AtFlags::STATX_FORCE_SYNC, mask).unwrap();
        assert_eq!((shown.stx_ino, shown.stx_size), (102, 7));
        // Since 6.6.
        if mounted.asked("Statx") > 0 {
            assert!(StatxFlags::from_bits_retain(shown.stx_mask).contains(StatxFlags::BTIME));
            assert_eq!((shown.stx_btime.tv_sec, shown.stx_btime.tv_nsec), (1_000_000_000, 5));
        }
    });
}

#[test]
fn a_killed_caller_is_gone_when_its_request_is_answered() {
    with_mounted(|mounted| {
        let mut caller = mounted.caller_of("held");
        // Others are served meanwhile, in the same directory too.
        assert_eq!(fs::read_to_string(mounted.path.join("file")).unwrap(), "served\n");
        assert_eq!(caller.try_wait().unwrap(), None);
        end(caller);
        assert_eq!(mounted.asked("Interrupt"), 1);
    });
}

#[test]
fn an_unanswered_look_up_does_not_delay_others_in_its_directory() {
    with_mounted(|mounted| {
        let caller = mounted.caller_of("undecided");
        assert!(fs::metadata(mounted.path.join("missing")).is_err());
        fs::metadata(mounted.path.join("file")).unwrap();
        end(caller);
    });
}
