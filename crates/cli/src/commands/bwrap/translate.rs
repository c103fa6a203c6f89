//! What options of bubblewrap mean here. Pure, but for descriptors whose content is a file of the view.

use super::line::{BwrapError, BwrapOption, content, number};
use palisade_session::listed_view::{
    IfSourceMissing, ListedAccess, ListedEntry, ListedView, Shown,
};
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

/// A command line of bubblewrap, as we have it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Translated {
    pub(super) listed: ListedView,
    pub(super) environment: Environment,
    pub(super) network: Network,
    pub(super) ends_with_parent: bool,
    pub(super) cwd: Option<String>,
    pub(super) hostname: Option<String>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Environment {
    /// `NAME=VALUE`.
    pub(super) set: Vec<String>,
    pub(super) unset: Vec<OsString>,
    pub(super) is_cleared: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Network {
    /// As bubblewrap has it if nothing is said.
    #[default]
    Host,
    None,
}

impl Network {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::None => "none",
        }
    }

    /// Why the host's network is used, for the record.
    pub(super) fn approval(self) -> Option<String> {
        (self == Self::Host).then(|| "bwrap without --unshare-net".to_owned())
    }
}

/// Said before the option that they count for.
#[derive(Debug, Default)]
struct Modifiers {
    permissions: Option<u32>,
    size: Option<u64>,
    overlaid: Vec<PathBuf>,
}

pub(super) fn translate(
    options: Vec<BwrapOption>,
    cwd: &Path,
    (uid, gid): (u32, u32),
) -> Result<Translated, BwrapError> {
    let mut done = Translated::default();
    let mut before = Modifiers::default();
    for BwrapOption { name, values } in options {
        let path = |index: usize| absolute(name, &values[index], cwd);
        let access = match name {
            "--ro-bind" | "--ro-bind-try" => ListedAccess::ReadOnly,
            _ => ListedAccess::ReadWrite,
        };
        match name {
            "--bind" | "--bind-try" | "--ro-bind" | "--ro-bind-try" | "--dev-bind"
            | "--dev-bind-try" => {
                let (source, place) = (path(0)?, path(1)?);
                // The devices that a sandbox has are there; no others are shown.
                if name.starts_with("--dev-bind") && source == Path::new("/dev") {
                    continue;
                }
                let if_missing = match name.ends_with("-try") {
                    true => IfSourceMissing::IsLeftOut,
                    false => IfSourceMissing::IsAnError,
                };
                done.show(place, Shown::Host { source, access, if_missing });
            }
            "--tmpfs" => {
                let mode = before.permissions.take().unwrap_or(0o755);
                let size = before.size.take();
                done.show(path(0)?, Shown::Private { mode, size, is_read_only: false });
            }
            "--dir" => {
                let mode = before.permissions.take().unwrap_or(0o755);
                done.show(path(0)?, Shown::Directory { mode });
            }
            "--symlink" => {
                let points_to = PathBuf::from(&values[0]);
                done.show(path(1)?, Shown::Link { points_to });
            }
            "--file" | "--bind-data" | "--ro-bind-data" => {
                let (descriptor, bytes) = content(name, &values[0])?;
                let text = String::from_utf8(bytes)
                    .map_err(|_| BwrapError::NotText { option: name, descriptor })?;
                let mode = before.permissions.take().unwrap_or(0o600) & 0o555;
                done.show(path(1)?, Shown::File { content: text, mode: mode | 0o444 });
            }
            "--remount-ro" => done.make_read_only(&path(0)?)?,
            "--overlay-src" => before.overlaid.push(path(0)?),
            "--tmp-overlay" => {
                let place = path(0)?;
                let [source] = std::mem::take(&mut before.overlaid).try_into().map_err(|_| {
                    no_meaning(name, "it takes exactly one --overlay-src before it")
                })?;
                let (access, if_missing) = (ListedAccess::Overlay, IfSourceMissing::IsAnError);
                done.show(place, Shown::Host { source, access, if_missing });
            }
            "--perms" => before.permissions = Some(octal(&values[0])?),
            "--size" => before.size = Some(number(name, &values[0])?),
            "--chmod" => {
                return Err(no_meaning(name, "give --perms before the option that makes it"));
            }
            // There in any case, where programs expect them.
            "--proc" if path(0)? == Path::new("/proc") => {}
            "--dev" if path(0)? == Path::new("/dev") => {}
            "--mqueue" if path(0)? == Path::new("/dev/mqueue") => {}
            "--proc" | "--dev" | "--mqueue" => {
                return Err(no_meaning(name, "it is at its usual place only"));
            }
            "--unshare-net" | "--unshare-all" => done.network = Network::None,
            "--share-net" => done.network = Network::Host,
            // Done in any case, or stricter than was asked for.
            "--unshare-user"
            | "--unshare-user-try"
            | "--unshare-ipc"
            | "--unshare-pid"
            | "--unshare-uts"
            | "--unshare-cgroup"
            | "--unshare-cgroup-try"
            | "--disable-userns"
            | "--assert-userns-disabled"
            | "--new-session"
            | "--as-pid-1"
            | "--cap-drop"
            | "--level-prefix" => {}
            "--die-with-parent" => done.ends_with_parent = true,
            "--setenv" => done.environment.set(&text(name, &values[0])?, &text(name, &values[1])?),
            "--unsetenv" => done.environment.unset(&values[0]),
            "--clearenv" => {
                done.environment = Environment { is_cleared: true, ..Environment::default() }
            }
            "--chdir" => done.cwd = Some(text(name, path(0)?.as_os_str())?),
            "--hostname" => done.hostname = Some(text(name, &values[0])?),
            "--uid" if number::<u32>(name, &values[0])? == uid => {}
            "--gid" if number::<u32>(name, &values[0])? == gid => {}
            "--uid" | "--gid" => return Err(no_meaning(name, "the command has your own ids")),
            "--cap-add" => return Err(no_meaning(name, "a command has no capabilities")),
            "--seccomp" | "--add-seccomp-fd" => {
                return Err(no_meaning(
                    name,
                    "let the command load its filter; there is one of ours in any case",
                ));
            }
            "--argv0" => return Err(no_meaning(name, "a program is started by its own name")),
            "--overlay" | "--ro-overlay" => {
                return Err(no_meaning(
                    name,
                    "use `sandbox run --transaction` to keep changes apart",
                ));
            }
            "--exec-label" | "--file-label" => {
                return Err(no_meaning(name, "labels of SELinux are not set"));
            }
            _ => {
                return Err(no_meaning(
                    name,
                    "no descriptor is passed on, waited for or written to",
                ));
            }
        }
    }
    Ok(done)
}

impl Translated {
    fn show(&mut self, place: PathBuf, shown: Shown) {
        self.listed.entries.push(ListedEntry { place, shown });
    }

    fn make_read_only(&mut self, wanted: &Path) -> Result<(), BwrapError> {
        let entry = self.listed.entries.iter_mut().rev().find(|entry| entry.place == wanted);
        match entry.map(|entry| &mut entry.shown) {
            Some(Shown::Host { access, .. }) => *access = ListedAccess::ReadOnly,
            Some(Shown::Private { is_read_only, .. }) => *is_read_only = true,
            Some(_) => {}
            None if wanted == Path::new("/") => {}
            None => {
                return Err(BwrapError::Path {
                    option: "--remount-ro".to_owned(),
                    path: wanted.to_owned(),
                    why: "nothing was listed there before",
                });
            }
        }
        Ok(())
    }
}

impl Environment {
    fn set(&mut self, name: &str, value: &str) {
        self.unset.retain(|unset| unset != name);
        self.set.retain(|set| set.split_once('=').is_none_or(|(before, _)| before != name));
        self.set.push(format!("{name}={value}"));
    }

    fn unset(&mut self, name: &OsStr) {
        self.set.retain(|set| set.split_once('=').is_none_or(|(before, _)| before != name));
        self.unset.push(name.to_owned());
    }
}

fn no_meaning(option: &str, why: &'static str) -> BwrapError {
    BwrapError::NoMeaning { option: option.to_owned(), why }
}

fn text(option: &'static str, value: &OsStr) -> Result<String, BwrapError> {
    value.to_str().map(str::to_owned).ok_or_else(|| BwrapError::Path {
        option: option.to_owned(),
        path: value.into(),
        why: "it is not UTF-8",
    })
}

fn octal(value: &OsStr) -> Result<u32, BwrapError> {
    let parsed = value.to_str().and_then(|text| u32::from_str_radix(text, 8).ok());
    parsed.filter(|mode| *mode <= 0o7777).ok_or_else(|| BwrapError::NotANumber {
        option: "--perms",
        value: value.to_string_lossy().into_owned(),
    })
}

/// An absolute path without `.` and `..`, which would be looked up twice: here and in the sandbox.
fn absolute(option: &str, value: &OsStr, cwd: &Path) -> Result<PathBuf, BwrapError> {
    let joined = cwd.join(value);
    let mut path = PathBuf::new();
    for component in joined.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                return Err(BwrapError::Path {
                    option: option.to_owned(),
                    path: value.into(),
                    why: "write it without `..`",
                });
            }
            component => path.push(component),
        }
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::super::line::{BwrapError, parse};
    use super::{Environment, Network, Translated, translate};
    use palisade_session::listed_view::{IfSourceMissing, ListedAccess, ListedEntry, Shown};
    use std::ffi::OsString;
    use std::path::Path;

    fn translated(line: &str) -> Result<Translated, BwrapError> {
        let words = line.split(' ').map(OsString::from).chain(["true".into()]).collect();
        translate(parse(words).unwrap().options, Path::new("/work"), (1000, 100))
    }

    fn host(source: &str, place: &str, access: ListedAccess) -> ListedEntry {
        let if_missing = IfSourceMissing::IsAnError;
        ListedEntry {
            place: place.into(),
            shown: Shown::Host { source: source.into(), access, if_missing },
        }
    }

    #[test]
    fn binds_are_listed_in_their_order() {
        let line = "--ro-bind / / --bind . . --tmpfs /home --dev /dev --proc /proc --unshare-all";
        let Translated { listed, network, .. } = translated(line).unwrap();
        let private = Shown::Private { mode: 0o755, size: None, is_read_only: false };
        let expected = [
            host("/", "/", ListedAccess::ReadOnly),
            host("/work", "/work", ListedAccess::ReadWrite),
            ListedEntry { place: "/home".into(), shown: private },
        ];
        assert_eq!(listed.entries, expected);
        assert_eq!(network, Network::None);
    }

    #[test]
    fn what_was_listed_can_become_read_only_and_modifiers_count_once() {
        let line = "--perms 000 --tmpfs /a --remount-ro /a --tmpfs /b --bind /c /c --remount-ro /c";
        let shown: Vec<_> =
            translated(line).unwrap().listed.entries.into_iter().map(|entry| entry.shown).collect();
        let private = |mode, is_read_only| Shown::Private { mode, size: None, is_read_only };
        assert_eq!(shown[..2], [private(0, true), private(0o755, false)]);
        assert_eq!(shown[2], host("/c", "/c", ListedAccess::ReadOnly).shown);
        assert!(matches!(translated("--remount-ro /d"), Err(BwrapError::Path { .. })));
    }

    #[test]
    fn the_network_is_the_hosts_unless_it_is_unshared() {
        assert_eq!(translated("--new-session").unwrap().network, Network::Host);
        assert_eq!(translated("--unshare-net").unwrap().network, Network::None);
        assert_eq!(translated("--unshare-all --share-net").unwrap().network, Network::Host);
    }

    #[test]
    fn variables_are_set_and_unset_in_their_order() {
        let of = |line| translated(line).unwrap().environment;
        let environment = of("--setenv A 1 --setenv A 2 --unsetenv B --setenv C 3 --unsetenv C");
        let unset = ["B".into(), "C".into()].to_vec();
        assert_eq!(environment, Environment { set: vec!["A=2".into()], unset, is_cleared: false });
        let cleared = of("--setenv A 1 --clearenv --setenv B 2");
        assert_eq!((cleared.set, cleared.is_cleared), (vec!["B=2".to_owned()], true));
    }

    #[test]
    fn what_has_no_meaning_here_is_an_error() {
        for line in [
            "--cap-add CAP_NET_ADMIN",
            "--seccomp 3",
            "--uid 0",
            "--proc /other",
            "--info-fd 3",
            "--chmod 700 /a",
            "--tmp-overlay /a",
        ] {
            assert!(matches!(translated(line), Err(BwrapError::NoMeaning { .. })), "{line}");
        }
        assert!(matches!(translated("--bind ../a /a"), Err(BwrapError::Path { .. })));
        assert!(translated("--uid 1000 --gid 100").is_ok());
        assert!(translated("--gid 1000").is_err());
    }
}
