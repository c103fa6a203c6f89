use std::fs::File;
use std::io::{Read, Write};

use rustix::io::Errno;

use super::*;
use crate::proc::{block_signals, foreground_group, setsid, sig};
use crate::test_child::in_child;

fn pair() -> (File, File) {
    let master = open_ptmx_in(crate::CWD, Path::new("/dev/ptmx")).unwrap();
    let slave = open_slave(&master).unwrap();
    (File::from(master), File::from(slave))
}

#[test]
fn what_is_typed_arrives_edited_and_raw_mode_passes_every_byte() {
    let (mut master, mut slave) = pair();
    assert!(isatty(&slave));
    let mut buffer = [0; 32];
    master.write_all(b"ab\x7fc\r").unwrap();
    let length = slave.read(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"ac\n");

    let saved = make_raw(&slave).unwrap();
    master.write_all(b"ab\x7fc\r").unwrap();
    let length = slave.read(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"ab\x7fc\r");

    rustix::termios::tcflush(&master, rustix::termios::QueueSelector::IOFlush).unwrap();
    restore(&slave, &saved).unwrap();
    master.write_all(b"x\r").unwrap();
    let length = slave.read(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"x\n");
}

#[test]
fn both_sides_share_a_window_size() {
    let (master, slave) = pair();
    let size = Winsize { ws_row: 33, ws_col: 99, ws_xpixel: 0, ws_ypixel: 0 };
    set_window_size(&master, size).unwrap();
    assert_eq!(window_size(&slave).unwrap(), size);
}

#[test]
fn what_is_unsent_is_told_of_a_terminal_and_of_nothing_else() {
    let (_master, mut slave) = pair();
    slave.write_all(b"never read").unwrap();
    assert_eq!(unsent(&slave).unwrap(), 0, "a pseudo-terminal has no line to wait for");
    let file = File::open("/dev/null").unwrap();
    assert_eq!(unsent(&file).unwrap_err().errno, Errno::NOTTY);
}

#[test]
fn a_session_leader_can_take_a_controlling_terminal() {
    in_child(|| {
        // Closing the master at the end hangs up on the leader of the session, us.
        block_signals(&[sig::SIGHUP]).unwrap();
        let (_master, slave) = pair();
        let us = setsid().unwrap();
        assert_eq!(foreground_group(&slave).unwrap_err().errno, Errno::NOTTY);
        set_controlling_tty(&slave).unwrap();
        assert!(foreground_group(&slave).unwrap().is(us));
        tcsetpgrp(&slave, us).unwrap();
        File::open("/dev/tty").unwrap();
    });
}

#[test]
fn an_interrupt_is_there_at_once() {
    in_child(|| {
        block_signals(&[sig::SIGHUP, sig::SIGINT]).unwrap();
        let (master, slave) = pair();
        setsid().unwrap();
        set_controlling_tty(&slave).unwrap();
        interrupt(&master).unwrap();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:")).unwrap();
        let pending = u64::from_str_radix(pending.trim(), 16).unwrap();
        assert_ne!(pending & 1 << (sig::SIGINT - 1), 0, "{pending:x}");
        assert!(interrupt(&slave).is_err(), "only the master can");
    });
}
