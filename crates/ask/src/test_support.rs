//! Questions to test with.

use crate::{Access, Act, Ancestor, FileSubject, HostSubject, NewQuestion, Process, Subject};
use std::path::PathBuf;
use std::time::Duration;

/// Questions that are open at once.
pub(crate) const MAX_OPEN: usize = 256;

pub(crate) fn process(pid: u32) -> Process {
    Process {
        pid,
        executable: "/usr/bin/cc".to_owned(),
        arguments: vec!["cc".to_owned(), "-c".to_owned(), "main.c".to_owned()],
        cwd: "/home/eve/project".to_owned(),
        ancestors: vec![Ancestor { pid: 7, name: "make".to_owned() }],
    }
}

pub(crate) fn file(path: &str, directory: Option<&str>) -> FileSubject {
    FileSubject {
        path: PathBuf::from(path),
        access: Access::Read,
        operation: "openat".to_owned(),
        is_directory: false,
        act: Act::Read,
        entry: None,
        new_path: None,
        may_be_copied: false,
        is_name_only: false,
        also: Vec::new(),
        directory: directory.map(PathBuf::from),
    }
}

/// A call that wants to read a file below `/opt/sdk`, and would wait a minute for that.
pub(crate) fn call(request: u64, path: &str) -> NewQuestion {
    NewQuestion {
        request,
        subject: Subject::File(file(path, Some("/opt/sdk"))),
        reason: "no rule speaks of it".to_owned(),
        process: Some(process(100)),
        is_secret: false,
        patience: Some(Duration::from_secs(60)),
    }
}

/// A connection to port 443 of a host that no rule names.
pub(crate) fn connection(request: u64, host: &str) -> NewQuestion {
    NewQuestion {
        request,
        subject: Subject::Host(HostSubject { host: host.to_owned(), port: 443 }),
        reason: "no rule names it".to_owned(),
        process: None,
        is_secret: false,
        patience: Some(Duration::from_secs(60)),
    }
}
