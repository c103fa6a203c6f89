use super::{CAPACITY, Lost, Outputs, Pipe, Sink, Stream};
use crate::poll_set::PollSet;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::time::Duration;

/// A command's output and its reader, with us between them; nobody of them ever waits.
struct TestPipe {
    outputs: Outputs,
    command: Option<OwnedFd>,
    reader: Option<OwnedFd>,
}

fn pipe() -> (OwnedFd, OwnedFd) {
    rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap()
}

fn test_pipe(limit: u64, reader: OwnedFd, ours: &OwnedFd) -> TestPipe {
    let (source, command) = pipe();
    let sink = Sink::of(ours.as_fd()).unwrap();
    let pipes = vec![Pipe::new(Stream::Stdout, source, sink, Some(limit))];
    TestPipe {
        outputs: Outputs { pipes, limit: Some(limit), passed: None },
        command: Some(command),
        reader: Some(reader),
    }
}

fn piped(limit: u64) -> TestPipe {
    let (reader, ours) = pipe();
    test_pipe(limit, reader, &ours)
}

impl TestPipe {
    /// How many ends were ready.
    fn turn(&mut self) -> usize {
        let mut set = PollSet::new();
        self.outputs.register(&mut set);
        let ready = set.wait(Some(Duration::ZERO)).unwrap().of_source(0);
        self.outputs.handle(&ready);
        ready.iter().count()
    }

    fn command(&self) -> &OwnedFd {
        self.command.as_ref().unwrap()
    }

    /// Writes so much as somebody takes, and says how much that was.
    fn flood(&mut self, most: usize) -> usize {
        let mut written = 0;
        while written < most {
            match rustix::io::write(self.command(), &[b'x'; 4096]) {
                Ok(count) => written += count,
                Err(Errno::AGAIN) if self.turn() > 0 => {}
                Err(_) => break,
            }
        }
        written
    }

    /// What the reader gets until nothing moves any more.
    fn read(&mut self) -> Vec<u8> {
        let mut got = Vec::new();
        let mut chunk = [0; 8192];
        loop {
            let moved = self.turn();
            match rustix::io::read(self.reader.as_ref().unwrap(), &mut chunk) {
                Ok(0) => return got,
                Ok(count) => got.extend_from_slice(&chunk[..count]),
                Err(_) if moved == 0 => return got,
                Err(_) => {}
            }
        }
    }
}

/// Proves: RES-2 output
#[test]
fn what_fits_passes_and_its_reader_sees_the_end() {
    let mut pipe = piped(64);
    let every: Vec<u8> = (0..64).map(|byte| byte * 4).collect();
    rustix::io::write(pipe.command(), &every).unwrap();
    pipe.command = None;
    assert_eq!(pipe.read(), every);
    assert!(pipe.outputs.is_finished());
    let delivered = pipe.outputs.end();
    assert!(delivered.capped.is_empty() && delivered.notes.is_empty(), "{delivered:?}");
}

/// Proves: RES-2 output
#[test]
fn one_byte_too_many_is_said_where_it_is_missing() {
    let mut pipe = piped(8);
    rustix::io::write(pipe.command(), b"abc\nefghi").unwrap();
    pipe.command = None;
    let got = String::from_utf8(pipe.read()).unwrap();
    let says = "[palisade: 1 byte of output cut here; the first 4 bytes and the last 4 bytes are kept \
                (--max-output)]";
    assert_eq!(got, format!("abc\n{says}\nfghi"));
    let capped = pipe.outputs.end().capped;
    assert_eq!(capped.len(), 1);
    assert_eq!((capped[0].limit, capped[0].seen_bytes, capped[0].cut_bytes), (8, 9, 1));
}

/// Before the cap a slow reader slows the command down, beyond it nothing waits.
///
/// Proves: RES-2 output, RES-4 output
#[test]
fn a_reader_that_reads_nothing_holds_the_command_up_until_the_cap_is_reached() {
    // The buffers on the way are far smaller than half of this.
    let mut pipe = piped(8 << 20);
    let held = pipe.flood(4 << 20);
    assert!(held < 4 * CAPACITY, "{held} bytes went nowhere");
    let mut pipe = piped(32 * 1024);
    assert_eq!(pipe.flood(4 << 20), 4 << 20, "the flood was held up");
    pipe.command = None;
    let got = pipe.read();
    assert!(got.len() < 33 * 1024, "{} bytes", got.len());
}

/// Proves: RES-2 output
#[test]
fn the_command_hears_of_a_reader_that_is_gone_at_its_next_write() {
    let mut pipe = piped(1 << 20);
    rustix::io::write(pipe.command(), b"first").unwrap();
    assert_eq!(pipe.read(), b"first");
    pipe.reader = None;
    while pipe.turn() > 0 {}
    assert_eq!(rustix::io::write(pipe.command(), b"second"), Err(Errno::PIPE));
    assert!(pipe.outputs.is_finished());
    let delivered = pipe.outputs.end();
    assert!(delivered.capped.is_empty() && delivered.notes.is_empty(), "{delivered:?}");
}

/// Proves: RES-2 output
#[test]
fn a_reader_behind_a_socket_is_one_too() {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (reader, ours) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
    // As a caller's is: writing to it would wait.
    rustix::fs::fcntl_setfl(&ours, OFlags::empty()).unwrap();
    let mut pipe = test_pipe(64 * 1024, reader, &ours);
    drop(ours);
    assert_eq!(pipe.flood(4 << 20), 4 << 20);
    pipe.command = None;
    assert!(pipe.read().ends_with(b"xx"));
    assert!(pipe.outputs.is_finished());
}

/// Proves: RES-2 output
#[test]
fn a_full_disk_ends_the_output_and_is_told() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (reader, _) = pipe();
    let mut pipe = test_pipe(64, reader, &full.into());
    rustix::io::write(pipe.command(), b"lost").unwrap();
    while pipe.turn() > 0 {}
    assert_eq!(rustix::io::write(pipe.command(), b"more"), Err(Errno::PIPE));
    let delivered = pipe.outputs.end();
    assert_eq!(delivered.lost, [Lost { stream: Stream::Stdout, errno: Errno::NOSPC }]);
    let told: Vec<String> = delivered.losses().collect();
    assert!(told[0].contains("standard output could not be written (ENOSPC)"), "{told:?}");
}

/// The bytes were taken from the command, and nobody got them.
///
/// Proves: RES-2 output
#[test]
fn bytes_for_a_reader_that_is_gone_are_lost_and_nothing_is_said() {
    let mut pipe = piped(64);
    rustix::io::write(pipe.command(), b"lost").unwrap();
    pipe.reader = None;
    while pipe.turn() > 0 {}
    let delivered = pipe.outputs.end();
    assert_eq!(delivered.lost, [Lost { stream: Stream::Stdout, errno: Errno::PIPE }]);
    assert_eq!(delivered.losses().count(), 0);
}

/// Somebody outside may have got the command's end from it.
///
/// Proves: RES-4 output
#[test]
fn a_pipe_that_somebody_holds_open_ends_with_the_last_words() {
    let mut pipe = piped(64);
    rustix::io::write(pipe.command(), b"last words").unwrap();
    pipe.outputs.nobody_writes();
    assert_eq!(pipe.read(), b"last words");
    assert!(pipe.outputs.is_finished());
}

/// Proves: RES-2 output
#[test]
fn what_its_reader_did_not_take_is_told() {
    let mut pipe = piped(1 << 20);
    pipe.flood(1 << 20);
    pipe.command = None;
    while pipe.turn() > 0 {}
    assert!(pipe.outputs.owes_output() && !pipe.outputs.is_finished());
    let notes = pipe.outputs.end().notes;
    assert!(notes[0].contains("the reader did not take"), "{notes:?}");
}
