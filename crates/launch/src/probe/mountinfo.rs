//! Parses `/proc/self/mountinfo`, see proc_pid_mountinfo(5).

use palisade_plan::facts::HostMount;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// Lines that do not parse are left out: the kernel writes none.
pub(crate) fn parse(text: &[u8]) -> impl Iterator<Item = HostMount> {
    text.split(|byte| *byte == b'\n').filter_map(line)
}

fn line(text: &[u8]) -> Option<HostMount> {
    let mut fields: Vec<&[u8]> = Vec::with_capacity(16);
    fields.extend(text.split(|byte| *byte == b' '));
    // Optional fields end at a lone hyphen; the file system's type follows it.
    let hyphen = fields.iter().skip(6).position(|field| *field == b"-")? + 6;
    let options = fields.get(hyphen + 3)?;
    Some(HostMount {
        device: String::from_utf8_lossy(fields.get(2)?).into_owned(),
        root: path(fields.get(3)?),
        mount_point: path(fields.get(4)?),
        fs_type: String::from_utf8_lossy(fields.get(hyphen + 1)?).into_owned(),
        read_only: is_read_only(fields.get(5)?) || is_read_only(options),
    })
}

/// Whether a procfs is mounted with `hidepid`, see proc(5). With `off` the kernel shows no option.
pub(crate) fn hides_processes(text: &[u8]) -> bool {
    let option = b" - proc ";
    text.split(|byte| *byte == b'\n')
        .filter(|line| line.windows(option.len()).any(|part| part == option))
        .filter_map(|line| line.rsplit(|byte| *byte == b' ').next())
        .any(|options| {
            options.split(|byte| *byte == b',').any(|option| option.starts_with(b"hidepid="))
        })
}

/// By the options of the mount, or of the file system.
fn is_read_only(options: &[u8]) -> bool {
    options.split(|byte| *byte == b',').any(|option| option == b"ro")
}

/// Space, tab, newline and backslash stand as `\` and three octal digits.
fn path(field: &[u8]) -> PathBuf {
    if !field.contains(&b'\\') {
        return PathBuf::from(OsString::from_vec(field.to_vec()));
    }
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, tail)) = rest.split_first() {
        let octal = (*first == b'\\').then(|| tail.get(..3)).flatten().and_then(|digits| {
            digits.iter().try_fold(0_u8, |value, digit| {
                let digit = digit.checked_sub(b'0').filter(|digit| *digit < 8)?;
                value.checked_mul(8)?.checked_add(digit)
            })
        });
        match octal {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_procfs_that_hides_processes_is_known_by_its_option() {
        let usual = b"22 27 0:21 / /proc rw,relatime - proc proc rw,gid=5\n";
        assert!(!hides_processes(usual));
        let hiding = b"22 27 0:21 / /proc rw - proc proc rw,gid=5,hidepid=invisible\n9 1 0:3 / / rw - ext4 a rw\n";
        assert!(hides_processes(hiding));
    }

    #[test]
    fn reads_optional_fields_and_escapes() {
        let text =
            b"36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 shared:2 - ext3 /dev/root rw\n\
                     22 27 0:21 / /proc ro,relatime - proc proc rw\n";
        let mounts: Vec<HostMount> = parse(text).collect();
        assert_eq!(mounts.len(), 2);
        assert_eq!(mounts[0].mount_point, PathBuf::from("/mnt 2"));
        assert_eq!(mounts[0].root, PathBuf::from("/mnt1"));
        assert_eq!(mounts[0].device, "98:0");
        assert_eq!(mounts[0].fs_type, "ext3");
        assert_eq!(mounts[1].fs_type, "proc");
        assert!(!mounts[0].read_only && mounts[1].read_only);
    }
}
