use super::{BYTES_TO_FINISH, CAPACITY, End, Ends, HELD, Relay, Settled, TIME_TO_FINISH, Typed};
use crate::poll_set::PollSet;
use crate::screen::WHOLE_SEQUENCES;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::time::{Duration, Instant};

const SIZE: (u16, u16) = (24, 80);

/// Two ends of a stream; both directions of the second one stand in for a terminal or a pty.
fn pair() -> (OwnedFd, OwnedFd) {
    socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )
    .unwrap()
}

fn turn(relay: &mut Relay, ends: &Ends<'_>) -> usize {
    let mut set = PollSet::new();
    relay.register(ends, &mut set);
    let ready = set.wait(Some(Duration::ZERO)).unwrap().of_source(0);
    relay.handle(&ready, ends);
    ready.iter().count()
}

#[test]
fn bytes_pass_unchanged_both_ways() {
    let (keyboard, input) = pair();
    let (screen, output) = pair();
    let (inside, pty) = pair();
    let mut relay = Relay::new(Typed::Keys, None, SIZE);
    let ends = Ends { input: Some(input.as_fd()), output: output.as_fd(), pty: pty.as_fd() };
    let every_byte: Vec<u8> = (0..=255).collect();

    rustix::io::write(&keyboard, &every_byte).unwrap();
    rustix::io::write(&inside, &every_byte).unwrap();
    while turn(&mut relay, &ends) > 0 {}

    let mut got = [0; 1024];
    let count = rustix::io::read(&inside, &mut got).unwrap();
    assert_eq!(&got[..count], every_byte);
    let count = rustix::io::read(&screen, &mut got).unwrap();
    assert_eq!(&got[..count], every_byte);
}

#[test]
fn a_screen_that_does_not_read_slows_the_inside_down_and_nothing_is_lost() {
    let (screen, output) = pair();
    let (inside, pty) = pair();
    let mut relay = Relay::new(Typed::Keys, None, SIZE);
    let ends = Ends { input: None, output: output.as_fd(), pty: pty.as_fd() };
    let mut sent = 0_usize;
    let mut received = 0_usize;
    let mut chunk = vec![0; CAPACITY];

    // Until every queue on the way is full, and so is the buffer.
    loop {
        let mut moved = 0;
        for (index, byte) in chunk.iter_mut().enumerate() {
            *byte = u8::try_from((sent + index) % 251).unwrap();
        }
        if let Ok(count) = rustix::io::write(&inside, &chunk) {
            sent += count;
            moved += count;
        }
        let ready = turn(&mut relay, &ends);
        if moved == 0 && ready == 0 {
            break;
        }
    }
    drop(inside);
    let mut got = vec![0; CAPACITY];
    while !relay.is_finished() || received < sent {
        turn(&mut relay, &ends);
        if let Ok(count) = rustix::io::read(&screen, &mut got) {
            for byte in &got[..count] {
                assert_eq!(*byte, u8::try_from(received % 251).unwrap());
                received += 1;
            }
        }
    }
    assert_eq!(received, sent);
}

#[test]
fn a_closed_input_is_not_polled_again() {
    let (keyboard, input) = pair();
    let (_screen, output) = pair();
    let (_inside, pty) = pair();
    let mut relay = Relay::new(Typed::Keys, None, SIZE);
    let ends = Ends { input: Some(input.as_fd()), output: output.as_fd(), pty: pty.as_fd() };
    drop(keyboard);
    assert_eq!(turn(&mut relay, &ends), 1);
    assert_eq!(turn(&mut relay, &ends), 0, "a hung-up input would keep the loop spinning");
}

#[test]
fn input_waits_while_the_inside_does_not_read() {
    let (keyboard, input) = pair();
    let (_screen, output) = pair();
    let (_inside, pty) = pair();
    let mut relay = Relay::new(Typed::Keys, None, SIZE);
    let ends = Ends { input: Some(input.as_fd()), output: output.as_fd(), pty: pty.as_fd() };
    let flags = rustix::fs::fcntl_getfl(&keyboard).unwrap();
    assert!(flags.contains(OFlags::NONBLOCK));
    while rustix::io::write(&keyboard, &[b'x'; 4096]).is_ok() || turn(&mut relay, &ends) > 0 {}
    rustix::io::write(&keyboard, b"x").unwrap_err();
    let mut set = PollSet::new();
    relay.register(&ends, &mut set);
    let ready = set.wait(Some(Duration::ZERO)).unwrap().of_source(0);
    assert!(ready.at(End::Input as usize).is_empty(), "the buffer is full");
}

/// A terminal that edits lines never hands Ctrl-D over; the pty inside has to be told.
#[test]
fn an_end_of_input_typed_outside_ends_the_input_inside() {
    // A new pty is cooked: what is written to the master is typed.
    let flags = rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY;
    let keyboard = rustix::pty::openpt(flags).unwrap();
    rustix::pty::grantpt(&keyboard).unwrap();
    rustix::pty::unlockpt(&keyboard).unwrap();
    let path = rustix::pty::ptsname(&keyboard, Vec::new()).unwrap();
    let open = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK;
    let input = rustix::fs::open(path, open, rustix::fs::Mode::empty()).unwrap();
    let (_screen, output) = pair();
    let (inside, pty) = pair();
    let mut relay = Relay::new(Typed::Lines, None, SIZE);
    let ends = Ends { input: Some(input.as_fd()), output: output.as_fd(), pty: pty.as_fd() };

    rustix::io::write(&keyboard, b"line\n\x04half\x04").unwrap();
    while turn(&mut relay, &ends) > 0 {}
    let mut got = [0; 64];
    let count = rustix::io::read(&inside, &mut got).unwrap();
    assert_eq!(&got[..count], b"line\n\x04half\x04");
}

/// The caller's terminal may be stopped (Ctrl-S): past the cap nothing waits for it.
///
/// Proves: RES-2 output, RES-4 output
#[test]
fn past_its_cap_the_inside_does_not_wait_for_the_screen() {
    let (screen, output) = pair();
    let (inside, pty) = pair();
    let mut relay = Relay::new(Typed::Keys, Some(1024), SIZE);
    let ends = Ends { input: None, output: output.as_fd(), pty: pty.as_fd() };
    // Nothing more fits on the screen.
    while rustix::io::write(&output, &[b'.'; 4096]).is_ok() {}
    while rustix::io::write(&output, b".").is_ok() {}
    let mut sent = 0;
    while sent < 4 << 20 {
        match rustix::io::write(&inside, &[b'x'; 4096]) {
            Ok(count) => sent += count,
            Err(_) => assert!(turn(&mut relay, &ends) > 0, "held up after {sent} bytes"),
        }
    }
    drop(inside);
    let (mut shown, mut chunk) = (Vec::new(), vec![0; CAPACITY]);
    while !relay.is_finished() {
        turn(&mut relay, &ends);
        if let Ok(count) = rustix::io::read(&screen, &mut chunk) {
            shown.extend_from_slice(&chunk[..count]);
        }
    }
    while let Ok(count) = rustix::io::read(&screen, &mut chunk) {
        shown.extend_from_slice(&chunk[..count]);
    }
    let shown = String::from_utf8(shown).unwrap();
    let shown = shown.trim_start_matches('.');
    assert!(shown.starts_with(&"x".repeat(512)) && shown.ends_with(&"x".repeat(512)));
    assert!(shown.contains("x\x18\x1b[0m\r\n[palisade: 3.9 MB of output cut here"), "{shown}");
    let capped = relay.capped().unwrap();
    assert_eq!((capped.seen_bytes, capped.cut_bytes), (4 << 20, (4 << 20) - 1024));
}

/// Proves: RES-2 output
#[test]
fn a_terminal_that_shows_less_than_its_cap_shows_all_of_it() {
    let (screen, output) = pair();
    let (inside, pty) = pair();
    let mut relay = Relay::new(Typed::Keys, Some(8), SIZE);
    let ends = Ends { input: None, output: output.as_fd(), pty: pty.as_fd() };
    rustix::io::write(&inside, b"12345678").unwrap();
    drop(inside);
    while !relay.is_finished() {
        turn(&mut relay, &ends);
    }
    let mut shown = [0; 64];
    let count = rustix::io::read(&screen, &mut shown).unwrap();
    assert_eq!(&shown[..count], b"12345678");
    assert_eq!(relay.capped(), None);
}

/// Proves: GATE-11 output-held
#[test]
fn what_is_written_behind_a_question_is_shown_after_it() {
    let letters: Vec<u8> =
        (0..200_000_u32).map(|at| b'a' + u8::try_from(at % 26).unwrap()).collect();
    show_behind_question(&letters);
}

/// Sequences that change the whole screen make the panel be drawn again no more than text does: not at all while it is
/// shown, and afterwards the terminal gets them byte by byte.
///
/// Proves: GATE-11 output-held
#[test]
fn a_few_bytes_behind_a_question_do_not_become_many() {
    for sequence in ["\x1b[2J", "\x1b#8", "\x1bc", "\x1b[?1049h", "\x1b[999S", "x\x1b[65535b"] {
        show_behind_question(sequence.repeat(20_000).as_bytes());
    }
}

fn show_behind_question(written: &[u8]) {
    let (screen, output) = pair();
    let (inside, pty) = pair();
    let mut relay = Relay::new(Typed::Keys, None, SIZE);
    let ends = Ends { input: None, output: output.as_fd(), pty: pty.as_fd() };
    relay.hold();
    let (mut sent, mut chunk) = (0, vec![0; CAPACITY]);
    while sent < written.len() {
        sent += rustix::io::write(&inside, &written[sent..]).unwrap_or(0);
        turn(&mut relay, &ends);
    }
    while turn(&mut relay, &ends) > 0 {}
    assert!(rustix::io::read(&screen, &mut chunk).is_err(), "nothing is shown");
    relay.release(output.as_fd());
    rustix::io::write(&inside, b"later").unwrap();
    drop(inside);
    let mut shown = Vec::new();
    while !relay.is_finished() {
        turn(&mut relay, &ends);
        while let Ok(count @ 1..) = rustix::io::read(&screen, &mut chunk) {
            shown.extend_from_slice(&chunk[..count]);
        }
    }
    while let Ok(count @ 1..) = rustix::io::read(&screen, &mut chunk) {
        shown.extend_from_slice(&chunk[..count]);
    }
    assert!(shown == [written, b"later"].concat(), "{} bytes", shown.len());
}

const QUESTION: &[u8] = b"\x1b[H\x1b[2J\x1b[48;2;9;9;9mquestion\x1b[8;1Hkeys";

fn terminal() -> vt100::Parser {
    let size = |number| std::num::NonZeroU16::new(number).unwrap();
    vt100::Parser::new(size(SIZE.0), size(SIZE.1), 0)
}

/// A terminal that takes everything, and a relay that writes to it.
struct Bench {
    relay: Relay,
    inside: OwnedFd,
    pty: OwnedFd,
    screen: OwnedFd,
    output: OwnedFd,
    terminal: vt100::Parser,
}

impl Bench {
    fn new() -> Self {
        let (screen, output) = pair();
        let (inside, pty) = pair();
        let relay = Relay::new(Typed::Keys, None, SIZE);
        Self { relay, inside, pty, screen, output, terminal: terminal() }
    }

    fn write(&mut self, written: &[u8]) {
        assert_eq!(rustix::io::write(&self.inside, written), Ok(written.len()));
        let ends = Ends { input: None, output: self.output.as_fd(), pty: self.pty.as_fd() };
        while turn(&mut self.relay, &ends) > 0 {}
        self.read();
    }

    fn settle(&mut self, now: Instant) -> Settled {
        let settled = self.relay.settle(self.output.as_fd(), now);
        self.read();
        settled
    }

    fn read(&mut self) {
        let mut chunk = vec![0; CAPACITY];
        while let Ok(count @ 1..) = rustix::io::read(&self.screen, &mut chunk) {
            self.terminal.process(&chunk[..count]);
        }
    }

    fn ask(&mut self) {
        let around = self.relay.hold();
        for written in [&around.before[..], QUESTION, &around.after] {
            self.terminal.process(written);
        }
        self.relay.release(self.output.as_fd());
        self.read();
    }
}

/// Wherever a question comes in the middle of a sequence or character, what the terminal shows is what it would have shown.
///
/// Proves: GATE-11 screen-restored, GATE-11 between-sequences
#[test]
fn a_question_waits_for_the_end_of_a_sequence() {
    for whole in WHOLE_SEQUENCES {
        for screen in ["", "\x1b[?1049h\x1b[H"] {
            let text = format!("{screen}before {whole}after");
            let mut without = terminal();
            without.process(text.as_bytes());
            for cut in 1..whole.len() {
                let mut bench = Bench::new();
                let (first, then) = text.as_bytes().split_at(screen.len() + 7 + cut);
                let now = Instant::now();
                bench.write(first);
                assert_eq!(bench.settle(now), Settled::NotYet, "{whole:?} at {cut}");
                assert!(bench.relay.next_deadline().is_some());
                bench.write(then);
                assert_eq!(bench.settle(now), Settled::Yes, "{whole:?} at {cut}");
                assert!(!bench.relay.held.is_empty(), "what follows waits");
                bench.ask();
                let shown = bench.terminal.screen().state_formatted();
                assert_eq!(shown, without.screen().state_formatted(), "{whole:?} at {cut}");
            }
        }
    }
}

/// Proves: GATE-11 cannot-hide, GATE-11 screen-restored, GATE-11 between-sequences
#[test]
fn a_sequence_that_does_not_end_delays_a_question_for_a_bounded_time() {
    for whole in WHOLE_SEQUENCES.iter().filter(|whole| whole.starts_with('\x1b')) {
        let mut without = terminal();
        without.process(format!("before {whole}after").as_bytes());
        for cut in 1..whole.len() {
            let mut bench = Bench::new();
            let now = Instant::now();
            bench.write(format!("before {}", &whole[..cut]).as_bytes());
            assert_eq!(bench.settle(now), Settled::NotYet);
            assert_eq!(bench.settle(now + TIME_TO_FINISH), Settled::Yes);
            bench.ask();
            bench.write(format!("{}after", &whole[cut..]).as_bytes());
            let shown = bench.terminal.screen().state_formatted();
            assert_eq!(shown, without.screen().state_formatted(), "{whole:?} at {cut}");
        }
    }
    // Nor does one that goes on and on.
    let mut bench = Bench::new();
    let now = Instant::now();
    bench.write(b"\x1b]52;c;");
    let mut written = 0;
    while bench.settle(now) == Settled::NotYet {
        bench.write(&[b'A'; 4096]);
        written += 4096;
        assert!(written <= BYTES_TO_FINISH, "{written}");
    }
    bench.ask();
    bench.write(b"AAAA\x07text");
    assert_eq!(bench.terminal.screen().contents().trim(), "text");
}

/// A terminal that is slow, and a program that never stops writing.
///
/// Proves: GATE-11 panel, GATE-11 between-sequences
#[test]
fn a_flood_delays_a_question_only_by_what_the_terminal_was_given() {
    let (screen, output) = pair();
    let (inside, pty) = pair();
    let mut relay = Relay::new(Typed::Keys, None, SIZE);
    let ends = Ends { input: None, output: output.as_fd(), pty: pty.as_fd() };
    let flood = || while rustix::io::write(&inside, &[b'y'; 4096]).is_ok() {};
    flood();
    while turn(&mut relay, &ends) > 0 {
        flood();
    }
    assert!(relay.owes_output(), "the terminal takes nothing more");
    let mut chunk = [0; 512];
    let mut owed = relay.outward.owed();
    while relay.settle(output.as_fd(), Instant::now()) == Settled::NotYet {
        rustix::io::read(&screen, &mut chunk).unwrap();
        flood();
        turn(&mut relay, &ends);
        assert!(relay.outward.owed() <= owed, "nothing is added to what waits");
        owed = relay.outward.owed();
    }
    assert_eq!(relay.outward.owed(), 0);
    while rustix::io::read(&screen, &mut chunk).is_ok() {}
    relay.hold();
    flood();
    while turn(&mut relay, &ends) > 0 {
        flood();
    }
    assert!(rustix::io::read(&screen, &mut chunk).is_err(), "nothing passes a question");
    assert!((HELD..HELD + CAPACITY).contains(&relay.held.len()), "the inside waits");
}
