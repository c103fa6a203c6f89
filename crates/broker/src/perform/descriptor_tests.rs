use super::*;
use crate::numbered::own_descriptor;

#[test]
fn descriptors_are_known_by_every_usual_name() {
    for (path, number) in [
        ("/proc/self/fd/7", 7),
        ("/proc/thread-self/fd/12", 12),
        ("/dev/fd/3", 3),
        ("/dev/stdin", 0),
        ("/dev/stdout", 1),
        ("/dev/stderr", 2),
    ] {
        assert_eq!(own_descriptor(path.as_bytes()), Some(number), "{path}");
    }
    for path in [
        "/proc/self/fd/",
        "/proc/self/fd/-1",
        "/proc/self/fd/+1",
        "/dev/fd/3/x",
        "/dev/stdoutx",
        "7",
    ] {
        assert_eq!(own_descriptor(path.as_bytes()), None, "{path}");
    }
}

#[test]
fn only_what_the_descriptor_can_do_itself_is_held() {
    let (read, write, both) = (OFlags::RDONLY, OFlags::WRONLY, OFlags::RDWR);
    for (held, wanted, expected) in [
        (read, read, true),
        (read, write, false),
        (read, read | OFlags::TRUNC, false),
        (write, write | OFlags::TRUNC, true),
        (write, both, false),
        (both, write | OFlags::APPEND, true),
        (OFlags::PATH, read, false),
        (OFlags::PATH, write, false),
    ] {
        assert_eq!(is_held(held, wanted), expected, "{held:?} {wanted:?}");
    }
}
