use super::{Input, Pipe, Stream, Wanted};
use crate::questions::Questions;
use crate::running::Running;
use crate::sandbox::Sandbox;
use std::fs::File;
use std::io::{Read as _, Write as _};

fn wanted(stdin: Option<&[u8]>, keeps_stdin_open: bool) -> Wanted {
    Wanted {
        argv: Vec::new(),
        environment: Vec::new(),
        cwd: None,
        stdin: stdin.map(<[u8]>::to_vec),
        keeps_stdin_open,
        timeout: None,
        max_output: 4,
        reports_changes: false,
    }
}

#[test]
fn a_sandbox_is_used_by_several_threads() {
    fn shared<T: Send + Sync>() {}
    fn sent<T: Send>() {}
    shared::<Sandbox>();
    sent::<Running>();
    sent::<Questions>();
}

#[test]
fn what_is_not_kept_is_counted() {
    let (theirs, mut pipe) = Pipe::open(Stream::Stderr, &wanted(None, false)).unwrap();
    assert_eq!(pipe.read(), None, "nothing is there, and nobody waits for it");
    let mut theirs = File::from(theirs);
    theirs.write_all(b"abc").unwrap();
    assert_eq!(pipe.read().unwrap().bytes, b"abc");
    theirs.write_all(b"defg").unwrap();
    // The other end is still open, and is not waited for.
    let left = pipe.finish();
    assert_eq!((left.len(), left[0].stream), (1, Stream::Stderr));
    assert_eq!((&*pipe.kept, pipe.count, pipe.pipe.is_none()), (&b"abcd"[..], 7, true));
}

#[test]
fn an_input_ends_when_all_of_it_was_sent() {
    let long = vec![b'x'; 1 << 20];
    let (theirs, mut input) = Input::open(&wanted(Some(&long), false)).unwrap();
    input.send();
    assert!(input.pipe.is_some() && !input.unsent.is_empty(), "a pipe has no room for all of it");
    let reader = std::thread::spawn(move || {
        let mut read = Vec::new();
        File::from(theirs).read_to_end(&mut read).map(|_| read)
    });
    while input.pipe.is_some() {
        input.send();
    }
    assert_eq!(reader.join().unwrap().unwrap(), long);
}

#[test]
fn an_input_that_stays_open_ends_when_told_or_when_nobody_reads() {
    let (theirs, mut input) = Input::open(&wanted(Some(b"a"), true)).unwrap();
    input.send();
    assert!(input.pipe.is_some() && input.unsent.is_empty());
    drop(theirs);
    input.unsent.extend(b"b");
    input.send();
    assert!(input.pipe.is_none() && input.unsent.is_empty());
    let (_, nothing) = Input::open(&wanted(None, false)).unwrap();
    assert!(nothing.pipe.is_none());
}
