use super::*;
use crate::layout::{u16_at, u32_at, u64_at};

pub(crate) const SAMPLE: Attributes = Attributes {
    ino: 11,
    size: 12,
    blocks: 13,
    accessed: Timestamp { seconds: 14, nanoseconds: 15 },
    modified: Timestamp { seconds: -16, nanoseconds: 17 },
    changed: Timestamp { seconds: 18, nanoseconds: 19 },
    mode: 0o100_640,
    links: 20,
    uid: 21,
    gid: 22,
    device: 0x1234_5678,
    block_size: 4096,
};

#[test]
fn attributes_have_every_field_in_its_place() {
    let bytes = SAMPLE.write(Writer::default()).finish();
    assert_eq!(bytes.len(), Attributes::SIZE);
    let wide = [0, 8, 16, 24, 32, 40].map(|offset| u64_at(&bytes, offset));
    assert_eq!(wide, [11, 12, 13, 14, (-16_i64).cast_unsigned(), 18]);
    let narrow = [48, 52, 56, 60, 64, 68, 72, 76, 80, 84].map(|offset| u32_at(&bytes, offset));
    assert_eq!(narrow, [15, 17, 19, 0o100_640, 20, 21, 22, 0x1234_5678, 4096, 0]);
}

#[test]
fn statx_has_every_field_in_its_place() {
    let born = Timestamp { seconds: 23, nanoseconds: 24 };
    let bytes = SAMPLE.write_statx(Some(born), Writer::default()).finish();
    assert_eq!(bytes.len(), Attributes::STATX_SIZE);
    let narrow = [0, 4, 16, 20, 24].map(|offset| u32_at(&bytes, offset));
    assert_eq!(narrow, [0xfff, 4096, 20, 21, 22]);
    assert_eq!(u16_at(&bytes, 28), 0o100_640);
    let wide = [8, 32, 40, 48, 56].map(|offset| u64_at(&bytes, offset));
    assert_eq!(wide, [0, 11, 12, 13, 0]);
    let seconds = [64, 80, 96, 112].map(|offset| u64_at(&bytes, offset).cast_signed());
    assert_eq!(seconds, [14, 23, 18, -16]);
    let nanoseconds = [72, 88, 104, 120].map(|offset| u32_at(&bytes, offset));
    assert_eq!(nanoseconds, [15, 24, 19, 17]);
    let device = [128, 132].map(|offset| u32_at(&bytes, offset));
    assert_eq!(device, [0x456, 0x1_2378]);
    assert_eq!(bytes[136..], [0; 120]);
}

#[test]
fn without_a_time_of_birth_statx_claims_none() {
    let bytes = SAMPLE.write_statx(None, Writer::default()).finish();
    assert_eq!(u32_at(&bytes, 0), 0x7ff);
}

#[test]
fn attributes_are_those_of_a_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), [1; 5000]).unwrap();
    let stat = rustix::fs::stat(file.path()).unwrap();
    let attributes = Attributes::from(&stat);
    assert_eq!((attributes.ino, attributes.size, attributes.links), (stat.st_ino, 5000, 1));
    assert_eq!((attributes.mode, attributes.uid), (stat.st_mode, stat.st_uid));
    assert_eq!(attributes.modified.seconds, stat.st_mtime);
    assert_eq!(u64::from(attributes.modified.nanoseconds), stat.st_mtime_nsec);
}

#[test]
fn a_device_is_encoded_as_the_kernel_does() {
    let null = Attributes::from(&rustix::fs::stat("/dev/null").unwrap());
    assert_eq!(null.device, 0x103);
    for (major, minor) in [(0, 0), (1, 3), (0xfff, 0xf_ffff), (8, 256), (259, 70_000)] {
        assert_eq!(decode_device(encode_device(major, minor)), (major, minor));
    }
    assert_eq!(encode_device(8, 256), 0x0010_0800);
}
