use super::*;

fn own_pid() -> Pid {
    rustix::process::getpid()
}

#[test]
fn a_string_is_read_up_to_its_end() {
    let text = b"some/where\0behind";
    let mut buffer = [0; 64];
    let length = read_string(own_pid(), text.as_ptr() as u64, &mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"some/where");
}

#[test]
fn a_string_over_a_page_boundary_is_whole() {
    let mut text = vec![b'x'; 3 * PAGE];
    text.push(0);
    let mut buffer = vec![0; 4 * PAGE];
    let length = read_string(own_pid(), text.as_ptr() as u64, &mut buffer).unwrap();
    assert_eq!(length, 3 * PAGE);
}

#[test]
fn a_string_without_an_end_is_too_long() {
    let text = [b'x'; 200];
    let mut buffer = [0; 100];
    let read = read_string(own_pid(), text.as_ptr() as u64, &mut buffer);
    assert_eq!(read, Err(Errno::NAMETOOLONG));
}

#[test]
fn memory_that_is_not_there_is_a_fault() {
    let mut buffer = [0; 8];
    assert_eq!(read_memory(own_pid(), 8, &mut buffer), Err(Errno::FAULT));
    assert_eq!(read_string(own_pid(), u64::MAX - 2, &mut buffer), Err(Errno::FAULT));
}

#[test]
fn a_descriptor_is_copied() {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let pidfd = pidfd_of(own_pid()).unwrap();
    let copy = take_descriptor(&pidfd, writer.as_raw_fd()).unwrap();
    rustix::io::write(&copy, b"!").unwrap();
    assert_eq!(rustix::io::read(&reader, &mut [0; 4]).unwrap(), 1);
    assert_eq!(take_descriptor(&pidfd, 1 << 20).unwrap_err().errno, Errno::BADF);
}
