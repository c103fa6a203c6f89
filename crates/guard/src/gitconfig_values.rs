//! Objections to a single git setting, by its value and its subsection.
//!
//! Git uses names and values as arguments, addresses and paths. None of them may be read as an option, name a
//! program, or lead out of the repository.

use crate::config_location::ConfigLocation;
use crate::fold::comparable;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

pub(crate) type Objection = Option<&'static str>;

const OPTION: &str = "it would be read as an option";
const CONTROL: &str = "it has control characters in it";
const HELPER: &str = "`::` names a program that git runs";
const NO_NAME: &str = "git would not make such a name";

/// The commands that `git lfs install` writes, with and without `--skip-smudge`.
const GIT_LFS_FILTERS: [&[u8]; 5] = [
    b"git-lfs clean -- %f",
    b"git-lfs smudge -- %f",
    b"git-lfs smudge --skip -- %f",
    b"git-lfs filter-process",
    b"git-lfs filter-process --skip",
];

/// `kind` is the tag of the harmless key in the list.
pub(crate) fn objection_to_value(kind: &str, value: Option<&[u8]>) -> Objection {
    match (kind, value) {
        ("any", _) => None,
        // Git ignores or rejects these without a value.
        ("url" | "remotes" | "ref" | "text" | "format" | "sort" | "relative", None) => None,
        ("url", Some(url)) => objection_to_url(url),
        ("remotes", Some(names)) => names
            .split(u8::is_ascii_whitespace)
            .filter(|name| !name.is_empty())
            .find_map(objection_to_url),
        ("ref", Some(value)) => objection_to_argument(value),
        ("text", Some(value)) => objection_to_text(value),
        ("format", Some(value)) => objection_to_text(value).or_else(|| objection_to_format(value)),
        ("sort", Some(value)) => objection_to_sort(value),
        ("relative", Some(value)) => objection_to_path(value),
        ("git-lfs", Some(value)) => {
            let is_its_own = GIT_LFS_FILTERS.contains(&value);
            (!is_its_own).then_some("is a command that git runs, and not one of git-lfs' own")
        }
        (words, Some(value)) => {
            let is_listed = words.split('|').any(|word| word.as_bytes() == value);
            (!is_listed).then_some("only the plain words that git knows for it are harmless")
        }
        (_, None) => Some("a value is missing"),
    }
}

/// A subsection is the name of a remote, a branch or a submodule, or a URL. Git passes it to other programs:
/// `git fetch --all` starts `git fetch NAME`.
pub(crate) fn objection_to_subsection(section: &[u8], name: &[u8]) -> Objection {
    if let Some(why) = objection_to_argument(name) {
        return Some(why);
    }
    if has_helper(name) {
        return Some(HELPER);
    }
    let is_one = match section {
        b"remote" => is_remote(name),
        b"branch" => is_branch(name),
        // CVE-2018-11235: the name becomes a path below `.git/modules`.
        b"submodule" => !name.is_empty() && !parts(name).any(|part| part == b".."),
        _ => true,
    };
    (!is_one).then_some(NO_NAME)
}

fn objection_to_argument(text: &[u8]) -> Objection {
    if text.starts_with(b"-") {
        return Some(OPTION);
    }
    objection_to_text(text)
}

fn objection_to_text(text: &[u8]) -> Objection {
    text.iter().any(u8::is_ascii_control).then_some(CONTROL)
}

/// PRETTY FORMATS in git-log(1): `%G…` makes git run gpg; `%x…` produces any byte, including terminal escape
/// sequences. A sign between the `%` and the letter does not change that.
fn objection_to_format(format: &[u8]) -> Objection {
    const HARMLESS_BYTES: [&[u8]; 3] = [b"00", b"09", b"0a"];
    let is_printable = |digits: &[u8]| {
        let digits = std::str::from_utf8(digits).unwrap_or_default();
        u8::from_str_radix(digits, 16).is_ok_and(|byte| matches!(byte, 0x20..=0x7e))
    };
    for rest in format.split(|byte| *byte == b'%').skip(1) {
        let rest = if let [b'+' | b'-' | b' ', rest @ ..] = rest { rest } else { rest };
        match rest {
            [b'G', ..] => return Some("git would run gpg for it"),
            [b'x', digits @ ..] => {
                let digits = digits.get(..2).unwrap_or_default().to_ascii_lowercase();
                if !HARMLESS_BYTES.contains(&digits.as_slice()) && !is_printable(&digits) {
                    return Some(CONTROL);
                }
            }
            _ => {}
        }
    }
    None
}

/// FIELD NAMES in git-for-each-ref(1); for `signature` git would run gpg.
fn objection_to_sort(field: &[u8]) -> Objection {
    let name = field.strip_prefix(b"-").unwrap_or(field);
    let is_field = name.iter().all(|byte| byte.is_ascii_alphanumeric() || b":*=,-".contains(byte));
    if !is_field {
        return Some("it is not the name of a field");
    }
    let has_signature = name.windows(9).any(|part| part.eq_ignore_ascii_case(b"signature"));
    has_signature.then_some("git would run gpg for it")
}

fn objection_to_path(path: &[u8]) -> Objection {
    if let Some(why) = objection_to_argument(path) {
        return Some(why);
    }
    // git_config_pathname() expands `~`, `%(prefix)` and `:(optional)` at the beginning of a path.
    let leads_out = matches!(path.first(), Some(b'/' | b'~' | b'%' | b':'))
        || parts(path).any(|part| part == b"..");
    leads_out.then_some("it leads out of the repository")
}

fn is_remote(name: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._/+@-".contains(byte);
    name.iter().all(is_plain) && is_branch(name)
}

/// The rules of `git check-ref-format --branch`.
fn is_branch(name: &[u8]) -> bool {
    let holds = |wanted: &[u8]| name.windows(wanted.len()).any(|window| window == wanted);
    let is_part =
        |part: &[u8]| !part.is_empty() && !part.starts_with(b".") && !part.ends_with(b".lock");
    name.split(|byte| *byte == b'/').all(is_part)
        && !name.iter().any(|byte| b" ~^:?*[\\".contains(byte))
        && !holds(b"..")
        && !holds(b"@{")
        && !name.ends_with(b".")
        && name != b"@"
}

/// Splits at both separators: a submodule may be checked out on another system.
fn parts(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| matches!(byte, b'/' | b'\\'))
}

/// Schemes that git handles itself or with its own helpers. For any other scheme, and any other case of these,
/// git runs `git-remote-…`.
const SCHEMES: [&[u8]; 7] = [b"https", b"http", b"ssh", b"git", b"file", b"git+ssh", b"ssh+git"];

/// For a URL to fetch from, or the name of a remote. It must not be an option, nor name a helper that runs a
/// program (`ext::sh -c …`).
fn objection_to_url(url: &[u8]) -> Objection {
    if let Some(why) = objection_to_argument(url) {
        return Some(why);
    }
    if has_helper(url) {
        return Some(HELPER);
    }
    let (scheme, rest) = match url.windows(3).position(|three| three == b"://") {
        Some(end) if url[..end].iter().all(is_of_scheme) => (&url[..end], &url[end + 3..]),
        _ => (&b"ssh"[..], url),
    };
    if !SCHEMES.contains(&scheme) {
        return Some("its scheme names a program that git runs");
    }
    // CVE-2017-1000117; git refuses it too since 2.14.1.
    let host = rest.strip_prefix(b"[").unwrap_or(rest);
    if host.starts_with(b"-") {
        return Some("its host would be read as an option");
    }
    // CVE-2020-5260, CVE-2024-52006: a line break would add a line to the input of the credential helper.
    let is_encoded_control = |three: &[u8]| {
        matches!(three, [b'%', b'0' | b'1', digit] if digit.is_ascii_hexdigit())
            || three.eq_ignore_ascii_case(b"%7f")
    };
    rest.windows(3).any(is_encoded_control).then_some("it has encoded control characters in it")
}

/// As git's `transport_get()` detects a helper: scheme characters, or none, followed by `::`. An IPv6 address
/// has a bracket or a slash before its colons.
fn has_helper(url: &[u8]) -> bool {
    let end = url.iter().position(|byte| !is_of_scheme(byte)).unwrap_or(url.len());
    url[end..].starts_with(b"::")
}

/// The characters of git's `is_urlschemechar()`, and the underscore, which names of helpers may contain.
fn is_of_scheme(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+-._".contains(byte)
}

/// `core.worktree` sets where git puts files. `git submodule` writes it into `.git/modules/NAME/config`. The
/// path must stay in the directory of that `.git`, and must not lead into any git directory.
pub(crate) fn objection_to_worktree(value: Option<&[u8]>, place: &ConfigLocation<'_>) -> Objection {
    let Some(value) = value.filter(|value| !value.is_empty()) else {
        return Some("a value is missing");
    };
    if let Some(why) = objection_to_argument(value) {
        return Some(why);
    }
    let Some(beside) = superproject(place) else {
        return Some("only the directory of a submodule, below `.git/modules`, may have one");
    };
    let files = normal(place.git_dir, Path::new(OsStr::from_bytes(value)));
    let below = files.as_deref().and_then(|files| files.strip_prefix(&beside).ok());
    match below {
        Some(below) if below.as_os_str().is_empty() => Some("it is not the submodule's own"),
        Some(below) if below.iter().any(is_git) => Some("it leads into a git directory"),
        Some(_) => None,
        None => Some("it leads out of the repository"),
    }
}

/// The directory of the superproject's files: the one whose `.git/modules` contains this submodule, or the
/// linked worktree whose git directory does.
fn superproject(place: &ConfigLocation<'_>) -> Option<PathBuf> {
    let below: Vec<&OsStr> = place.git_dir.strip_prefix(place.tree).ok()?.iter().collect();
    if let Some(worktree) = &place.worktree {
        let is_in_it = below.len() > 1 && below[0] == "modules";
        return is_in_it.then(|| worktree.clone());
    }
    let git = below.iter().position(|name| is_git(name))?;
    let modules = below.iter().skip(git).position(|name| *name == "modules")?;
    let is_in_it = below.len() > git + modules + 1;
    is_in_it.then(|| place.tree.join(below[..git].iter().collect::<PathBuf>()))
}

fn is_git(name: &OsStr) -> bool {
    comparable(name.as_bytes()).eq_ignore_ascii_case(b".git")
}

/// Resolves `relative` from `base`, without `..` in the result; `None` for an absolute path.
fn normal(base: &Path, relative: &Path) -> Option<PathBuf> {
    let mut path = base.to_owned();
    for part in relative.components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}
