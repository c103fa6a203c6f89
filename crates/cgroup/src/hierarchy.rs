//! The mounted hierarchies and our own group in each; see cgroups(7). Must never follow a path that leads out of the
//! mount: in a cgroup namespace it can begin with `/..`.

use crate::controllers;
use palisade_plan::limit::Controller;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

/// A group that we are in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// The mount point of the hierarchy: the highest visible group.
    pub(crate) top: PathBuf,
    pub(crate) own: PathBuf,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hierarchies {
    pub(crate) v2: Option<Spot>,
    pub(crate) v1: BTreeMap<Controller, Spot>,
}

impl Hierarchies {
    /// From the texts of `/proc/self/mountinfo` and `/proc/self/cgroup`.
    pub(crate) fn parse(mounts: &[u8], membership: &str) -> Self {
        let mut found = Self::default();
        for line in mounts.split(|byte| *byte == b'\n') {
            let Some(mount) = Mount::parse(line) else { continue };
            match mount.fs_type {
                b"cgroup2" => found.v2 = found.v2.or_else(|| mount.spot(membership, "")),
                _ => {
                    for (controller, name) in controllers::V1 {
                        if mount.has_option(name)
                            && let Some(spot) = mount.spot(membership, name)
                        {
                            found.v1.entry(controller).or_insert(spot);
                        }
                    }
                }
            }
        }
        found
    }
}

struct Mount<'a> {
    root: PathBuf,
    point: PathBuf,
    fs_type: &'a [u8],
    options: &'a [u8],
}

impl<'a> Mount<'a> {
    /// A line of mountinfo, if it is a cgroup mount. See proc_pid_mountinfo(5).
    fn parse(line: &'a [u8]) -> Option<Self> {
        let separator = line.windows(3).position(|window| window == b" - ")?;
        let (before, after) = (&line[..separator], &line[separator + 3..]);
        let mut after = after.split(|byte| *byte == b' ');
        let fs_type = after.next().filter(|fs_type| matches!(*fs_type, b"cgroup" | b"cgroup2"))?;
        let options = after.nth(1)?;
        let mut fields = before.split(|byte| *byte == b' ').skip(3);
        let (root, point) = (unescaped(fields.next()?), unescaped(fields.next()?));
        Some(Self { root, point, fs_type, options })
    }

    fn has_option(&self, name: &str) -> bool {
        self.options.split(|byte| *byte == b',').any(|option| option == name.as_bytes())
    }

    /// Our own group, if this mount shows it. The v2 line has no controller name.
    fn spot(&self, membership: &str, controller: &str) -> Option<Spot> {
        let path = membership.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            controllers.split(',').any(|name| name == controller).then_some(path)
        })?;
        let below = Path::new(path).strip_prefix(&self.root).ok()?;
        let leads_down = below.components().all(|part| matches!(part, Component::Normal(_)));
        leads_down.then(|| Spot { top: self.point.clone(), own: join(&self.point, below) })
    }
}

/// Without a trailing slash if `below` is empty.
fn join(point: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { point.to_owned() } else { point.join(below) }
}

/// Space, tab, newline and backslash are written as `\` and three octal digits.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, tail)) = rest.split_first() {
        let octal = (*first == b'\\')
            .then(|| std::str::from_utf8(tail.get(..3)?).ok())
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(octal.unwrap_or(*first));
        rest = if octal.is_some() { &tail[3..] } else { tail };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &[u8] = b"23 1 0:20 / /sys rw - sysfs sysfs rw\n\
        31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
        32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:4 - cgroup cgroup rw,cpu,cpuacct\n\
        35 31 0:32 /docker/a /mnt/with\\040space rw - cgroup cgroup rw,memory\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn mounts_and_memberships_meet() {
        let found = Hierarchies::parse(
            HYBRID,
            "4:memory:/docker/a/b\n2:cpu,cpuacct:/x\n1:name=systemd:/\n0::/y/z\n",
        );
        let spot = |top: &str, own: &str| Spot { top: top.into(), own: own.into() };
        assert_eq!(found.v2, Some(spot("/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified/y/z")));
        let cpu = spot("/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct/x");
        assert_eq!(
            found.v1,
            BTreeMap::from([
                (Controller::Memory, spot("/mnt/with space", "/mnt/with space/b")),
                (Controller::Cpu, cpu.clone()),
                (Controller::CpuAccount, cpu),
            ])
        );
    }

    #[test]
    fn a_group_outside_of_what_is_mounted_is_none_of_ours() {
        let found = Hierarchies::parse(HYBRID, "4:memory:/docker/other\n0::/../above\n");
        assert_eq!(found, Hierarchies::default());
    }

    #[test]
    fn our_own_place_at_the_top_has_no_slash_at_its_end() {
        let found = Hierarchies::parse(HYBRID, "0::/\n");
        assert_eq!(found.v2.unwrap().own.as_os_str(), "/sys/fs/cgroup/unified");
    }
}
