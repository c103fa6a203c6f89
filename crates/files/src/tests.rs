//! The client and the server at the two ends of a socket, on real files. What a sandbox adds is tested with a sandbox.

use crate::{
    ChangeKind, Client, ClientError, FileType, IfExists, Request, Response, WriteOptions, serve,
};
use palisade_sys::Errno;
use palisade_sys::fdpass::socketpair;
use proptest::prelude::*;
use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

const PLENTY: u64 = 1 << 30;

struct Served {
    client: Option<Client>,
    server: Option<JoinHandle<()>>,
    directory: tempfile::TempDir,
}

impl Served {
    fn new() -> Self {
        let (ours, theirs) = socketpair().unwrap();
        let server = std::thread::spawn(move || serve(theirs.as_fd()).unwrap());
        let client = Some(Client::new(ours).unwrap());
        Self { client, server: Some(server), directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn client(&mut self) -> &mut Client {
        self.client.as_mut().unwrap()
    }

    fn write(&mut self, name: &str, content: &str, if_exists: IfExists) -> Result<(), ClientError> {
        let path = self.path(name);
        let mut content = content.as_bytes();
        self.client().write(&path, &mut content, options(if_exists)).map(drop)
    }

    fn read(&mut self, name: &str) -> Result<String, ClientError> {
        let path = self.path(name);
        let (content, _) = self.client().read(&path, PLENTY)?;
        Ok(String::from_utf8(content).unwrap())
    }

    /// The names in the directory, also those that nobody should leave.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.client.take());
        let ended = self.server.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking(), "the server ends with its client");
    }
}

fn options(if_exists: IfExists) -> WriteOptions {
    WriteOptions { if_exists, make_parents: false, mode: 0o644 }
}

fn errno<T: std::fmt::Debug>(result: Result<T, ClientError>) -> Errno {
    match result {
        Err(ClientError::Refused(error)) => error.errno,
        other => panic!("{other:?}"),
    }
}

/// Proves: TOOL-3 operations
#[test]
fn what_is_written_is_there_and_reads_the_same() {
    let mut served = Served::new();
    served.write("file", "content", IfExists::Refuse).unwrap();
    assert_eq!(fs::read_to_string(served.path("file")).unwrap(), "content");
    assert_eq!(served.read("file").unwrap(), "content");
    served.write("file", "more", IfExists::Append).unwrap();
    assert_eq!(served.read("file").unwrap(), "contentmore");
    served.write("file", "new", IfExists::Replace).unwrap();
    assert_eq!(served.read("file").unwrap(), "new");
    assert_eq!(errno(served.write("file", "no", IfExists::Refuse)), Errno::EXIST);
    assert_eq!(served.names(), ["file"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_content_comes_back(content in proptest::collection::vec(any::<u8>(), 0..200_000)) {
        let mut served = Served::new();
        let path = served.path("file");
        served.client().write(&path, &mut &content[..], options(IfExists::Replace)).unwrap();
        prop_assert_eq!(&fs::read(&path).unwrap(), &content);
        let (read, info) = served.client().read(&path, PLENTY).unwrap();
        prop_assert_eq!(info.size, u64::try_from(content.len()).unwrap());
        prop_assert_eq!(read, content);
    }
}

#[test]
fn a_file_that_is_replaced_keeps_its_permissions_and_a_second_name_its_content() {
    let mut served = Served::new();
    let (script, second) = (served.path("script"), served.path("second"));
    fs::write(&script, "old").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o751)).unwrap();
    let before = fs::metadata(&script).unwrap().ino();
    served.write("script", "new", IfExists::Replace).unwrap();
    let after = fs::metadata(&script).unwrap();
    assert_eq!(after.mode() & 0o7777, 0o751);
    assert_ne!(after.ino(), before, "readers of the old one still have it");
    fs::hard_link(&script, &second).unwrap();
    served.write("script", "newest", IfExists::Replace).unwrap();
    assert_eq!(fs::read_to_string(&second).unwrap(), "newest", "both names lead to one file");
    assert_eq!(served.names(), ["script", "second"]);
}

/// Proves: TOOL-3 whole
#[test]
fn nothing_changes_before_the_end_and_nothing_is_left_of_what_was_given_up() {
    let mut served = Served::new();
    let path = served.path("file");
    fs::write(&path, "old").unwrap();
    let handle = served.client().open_for_writing(&path, options(IfExists::Replace)).unwrap();
    served.client().write_part(handle, b"half of the ").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    served.client().close(handle).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(served.names(), ["file"]);
    // A client that is gone has given everything up.
    served.client().open_for_writing(&path, options(IfExists::Replace)).unwrap();
    let directory = served.directory.path().to_owned();
    drop(served.client.take());
    served.server.take().unwrap().join().unwrap();
    assert_eq!(fs::read_dir(directory).unwrap().count(), 1);
    served.server = Some(std::thread::spawn(|| ()));
}

#[test]
fn a_version_is_replaced_only_while_it_is_the_latest() {
    let mut served = Served::new();
    let path = served.path("file");
    fs::write(&path, "old").unwrap();
    let (_, info) = served.client().read(&path, PLENTY).unwrap();
    let version = IfExists::ReplaceVersion(info.version);
    served.write("file", "mine", version).unwrap();
    assert_eq!(errno(served.write("file", "mine again", version)), Errno::AGAIN);
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    fs::remove_file(&path).unwrap();
    assert_eq!(errno(served.write("file", "mine", version)), Errno::AGAIN);
    assert!(served.names().is_empty());
}

#[test]
fn a_link_is_written_through_and_stays() {
    let mut served = Served::new();
    fs::create_dir(served.path("real")).unwrap();
    fs::write(served.path("real/file"), "old").unwrap();
    symlink("real/file", served.path("link")).unwrap();
    served.write("link", "new", IfExists::Replace).unwrap();
    assert_eq!(fs::read_to_string(served.path("real/file")).unwrap(), "new");
    let link = served.path("link");
    let info = served.client().info(&link, false).unwrap();
    assert_eq!((info.file_type, info.target), (FileType::Link, Some("real/file".into())));
    assert_eq!(served.client().info(&link, true).unwrap().file_type, FileType::File);
    symlink("real/made", served.path("dangling")).unwrap();
    served.write("dangling", "made", IfExists::Refuse).unwrap();
    assert_eq!(fs::read_to_string(served.path("real/made")).unwrap(), "made");
    symlink("circle", served.path("circle")).unwrap();
    assert_eq!(errno(served.write("circle", "x", IfExists::Replace)), Errno::LOOP);
}

#[test]
fn what_has_no_end_is_neither_read_nor_written() {
    let mut served = Served::new();
    let fifo = served.path("fifo");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert_eq!(errno(served.read("fifo")), Errno::OPNOTSUPP);
    assert_eq!(errno(served.write("fifo", "x", IfExists::Replace)), Errno::OPNOTSUPP);
    assert_eq!(errno(served.read("")), Errno::ISDIR);
    assert_eq!(errno(served.write("", "x", IfExists::Replace)), Errno::ISDIR);
    assert_eq!(errno(served.read("missing")), Errno::NOENT);
}

#[test]
fn more_than_was_allowed_is_not_read() {
    let mut served = Served::new();
    let path = served.path("file");
    fs::write(&path, vec![b'x'; 100_000]).unwrap();
    let read = served.client().read(&path, 99_999);
    assert!(matches!(read, Err(ClientError::TooLarge { limit: 99_999, .. })), "{read:?}");
    let (handle, info) = served.client().open_for_reading(&path).unwrap();
    assert_eq!(info.size, 100_000);
    assert_eq!(served.client().read_part(handle, 99_990, 100).unwrap().len(), 10);
    assert_eq!(served.client().read_part(handle, u64::MAX, 100).map_err(drop), Err(()));
}

/// Proves: TOOL-3 operations
#[test]
fn thousands_of_entries_are_listed_and_a_link_is_not_followed() {
    let mut served = Served::new();
    for number in 0..3000 {
        fs::write(served.path(&format!("file-with-a-name-of-some-length-{number}")), "").unwrap();
    }
    fs::create_dir_all(served.path("above/below")).unwrap();
    symlink("/", served.path("above/root")).unwrap();
    let root = served.directory.path().to_owned();
    let names = |listed: Vec<crate::Listing>| {
        let mut paths: Vec<PathBuf> = listed.into_iter().map(|entry| entry.path).collect();
        paths.sort();
        paths
    };
    let flat = served.client().list(&root, 1, 10_000).unwrap();
    assert_eq!(flat.len(), 3001);
    let deep = names(served.client().list(&root, 9, 10_000).unwrap());
    assert_eq!(deep.len(), 3003);
    assert_eq!(deep[..3], ["above", "above/below", "above/root"].map(PathBuf::from));
    let few = served.client().list(&root, 1, 100);
    assert!(matches!(few, Err(ClientError::TooLarge { limit: 100, .. })), "{few:?}");
}

/// Proves: TOOL-3 operations
#[test]
fn directories_are_made_renamed_and_removed() {
    let mut served = Served::new();
    let deep = served.path("a/b/c");
    assert_eq!(errno(served.client().make_directory(&deep, false)), Errno::NOENT);
    served.client().make_directory(&deep, true).unwrap();
    served.client().make_directory(&deep, true).unwrap();
    assert_eq!(errno(served.client().make_directory(&deep, false)), Errno::EXIST);
    let file = served.path("new/place/file");
    let making = WriteOptions { make_parents: true, ..options(IfExists::Refuse) };
    served.client().write(&file, &mut &b"x"[..], making).unwrap();
    assert_eq!(errno(served.client().make_directory(&file, true)), Errno::EXIST);
    let (from, to) = (served.path("a"), served.path("moved"));
    served.client().rename(&from, &to, false).unwrap();
    let taken = served.path("new");
    assert_eq!(errno(served.client().rename(&to, &taken, false)), Errno::EXIST);
    assert_eq!(errno(served.client().remove(&to, false)), Errno::NOTEMPTY);
    symlink(served.path("new"), served.path("moved/link")).unwrap();
    served.client().remove(&to, true).unwrap();
    assert!(file.exists(), "what a link leads to stays");
    assert_eq!(served.names(), ["new"]);
}

/// Proves: TOOL-3 operations
#[test]
fn changes_are_told_also_below_what_is_made_later() {
    let mut served = Served::new();
    let root = served.directory.path().to_owned();
    let watch = served.client().watch(&root, true).unwrap();
    fs::create_dir_all(root.join("new/er")).unwrap();
    fs::write(root.join("new/er/file"), "x").unwrap();
    let mut told = Vec::new();
    while !told.contains(&(ChangeKind::Created, "new/er/file".into())) {
        let (handle, change) = served.client().next_change().unwrap();
        assert_eq!(handle, watch);
        told.push((change.kind, change.path));
    }
    // Requests are answered in between.
    assert_eq!(served.read("new/er/file").unwrap(), "x");
    fs::rename(root.join("new/er/file"), root.join("file")).unwrap();
    fs::remove_file(root.join("file")).unwrap();
    while told.last() != Some(&(ChangeKind::Removed, "file".into())) {
        let (_, change) = served.client().next_change().unwrap();
        told.push((change.kind, change.path));
    }
    assert!(told.contains(&(ChangeKind::RenamedFrom, "new/er/file".into())), "{told:?}");
    assert!(told.contains(&(ChangeKind::RenamedTo, "file".into())), "{told:?}");
    served.client().close(watch).unwrap();
}

#[test]
fn a_client_that_closes_nothing_is_refused_in_the_end_and_a_handle_is_of_one_kind() {
    let mut served = Served::new();
    let path = served.path("file");
    fs::write(&path, "x").unwrap();
    let mut last = None;
    let refused = loop {
        match served.client().open_for_reading(&path) {
            Ok((handle, _)) => last = Some(handle),
            Err(error) => break error,
        }
    };
    assert_eq!(errno::<()>(Err(refused)), Errno::MFILE);
    let handle = last.unwrap();
    assert_eq!(errno(served.client().write_part(handle, b"x")), Errno::BADF);
    served.client().close(handle).unwrap();
    assert_eq!(errno(served.client().close(handle)), Errno::BADF);
    served.client().open_for_reading(&path).unwrap();
}

#[test]
fn what_is_no_request_ends_the_server_and_nothing_else() {
    let (ours, theirs) = socketpair().unwrap();
    rustix::io::write(&ours, &[0xff; 40]).unwrap();
    assert!(serve(theirs.as_fd()).is_err());
    let long = Request::Stat { path: Path::new("/").join("x".repeat(9000)), follow_links: true };
    palisade_wire::send(&ours, &long, &[]).unwrap();
    let reader = std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 18];
        palisade_wire::receive::<crate::Reply>(&ours, &mut buffer).unwrap().message
    });
    serve(theirs.as_fd()).unwrap();
    let crate::Reply::Response(Response::Failed(error)) = reader.join().unwrap() else { panic!() };
    assert_eq!(error.errno, Errno::NAMETOOLONG);
}
