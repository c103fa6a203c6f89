//! The device is one end of a pair of sockets that keep the bounds of messages, as the device does.

use super::*;
use crate::layout::{Layout, request, u32_at, u64_at};
use crate::operation::Operation;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

fn pair() -> (Connection, OwnedFd) {
    let (ours, kernels) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    (Connection::new(ours).unwrap(), kernels)
}

#[test]
fn a_buffer_has_room_for_the_largest_write_and_what_the_kernel_requires() {
    assert_eq!(Buffer::new(0).0.len(), 8192);
    assert_eq!(Buffer::new(8192 - 80).0.len(), 8192);
    assert_eq!(Buffer::new(131_072).0.len(), 131_072 + 80);
}

#[test]
fn reading_does_not_wait() {
    let (connection, _kernel) = pair();
    assert_eq!(connection.receive(&mut Buffer::new(0)).unwrap(), Received::Nothing);
}

#[test]
fn requests_come_one_at_a_time() {
    let (connection, kernel) = pair();
    for opcode in [17, 5] {
        rustix::io::write(&kernel, &request(opcode, &Layout::sized(0))).unwrap();
    }
    let mut buffer = Buffer::new(0);
    for expected in [Operation::StatFs, Operation::ReadLink] {
        let Received::Request(request) = connection.receive(&mut buffer).unwrap() else { panic!() };
        assert_eq!(request.operation, expected);
    }
    assert_eq!(connection.receive(&mut buffer).unwrap(), Received::Nothing);
}

#[test]
fn what_is_no_request_is_told_apart() {
    let (connection, kernel) = pair();
    rustix::io::write(&kernel, &request(1, &Layout::sized(0).then(b"a/b\0"))).unwrap();
    let mut buffer = Buffer::new(0);
    let Received::Malformed(error) = connection.receive(&mut buffer).unwrap() else { panic!() };
    assert_eq!(error.unique, Some(Unique(0x1122_3344_5566)));
}

#[test]
fn a_device_that_ends_is_closed() {
    let (connection, kernel) = pair();
    drop(kernel);
    assert_eq!(connection.receive(&mut Buffer::new(0)).unwrap(), Received::Closed);
}

#[test]
fn a_reply_is_one_message_with_its_header() {
    let (connection, kernel) = pair();
    let cases = [(Reply::data(b"abc"), 0, &b"abc"[..]), (Reply::error(Errno::ACCESS), -13, b"")];
    for (reply, error, payload) in cases {
        assert_eq!(connection.reply(Unique(7), &reply).unwrap(), Delivery::Delivered);
        let mut bytes = [0; 64];
        let length = rustix::io::read(&kernel, &mut bytes).unwrap();
        assert_eq!(length, 16 + payload.len());
        assert_eq!(u32_at(&bytes, 0), u32::try_from(length).unwrap());
        assert_eq!((u32_at(&bytes, 4).cast_signed(), u64_at(&bytes, 8)), (error, 7));
        assert_eq!(&bytes[16..length], payload);
    }
}

#[test]
fn a_descriptor_that_fails_is_an_error_with_its_errno() {
    let write_only = std::fs::OpenOptions::new().write(true).open("/dev/null").unwrap();
    let connection = Connection::new(write_only.into()).unwrap();
    let error = connection.receive(&mut Buffer::new(0)).unwrap_err();
    assert_eq!(error.to_string(), "read /dev/fuse: Bad file descriptor (EBADF)");
    let read_only = std::fs::File::open("/dev/null").unwrap();
    let connection = Connection::new(read_only.into()).unwrap();
    let error = connection.reply(Unique(1), &Reply::done()).unwrap_err();
    assert_eq!((error.call, error.errno), ("writev", Errno::BADF));
}

#[test]
fn a_message_that_is_written_in_part_is_an_error() {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let connection = Connection::new(writer).unwrap();
    // More than a pipe takes.
    let bytes = vec![0; 1 << 20];
    let error = connection.reply(Unique(1), &Reply::data(&bytes)).unwrap_err();
    assert_eq!(error.errno, Errno::IO);
    drop(reader);
}
