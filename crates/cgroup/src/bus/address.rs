//! Finds the address of the user's message bus in the environment.

use std::ffi::OsString;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The socket, if the environment names one; a path must exist.
pub(crate) fn address() -> Option<SocketAddr> {
    from_environment(&|name| std::env::var_os(name), rustix::process::getuid().as_raw())
}

fn from_environment(variable: &dyn Fn(&str) -> Option<OsString>, uid: u32) -> Option<SocketAddr> {
    let filled = |name| variable(name).filter(|value| !value.is_empty());
    if let Some(addresses) = filled("DBUS_SESSION_BUS_ADDRESS") {
        return addresses.into_string().ok()?.split(';').find_map(parse);
    }
    let runtime = filled("XDG_RUNTIME_DIR")
        .map_or_else(|| PathBuf::from(format!("/run/user/{uid}")), PathBuf::from);
    at_path(&runtime.join("bus"))
}

/// An address in one of the forms of the D-Bus specification, "Unix Domain Sockets".
fn parse(address: &str) -> Option<SocketAddr> {
    let values = address.strip_prefix("unix:")?;
    values.split(',').find_map(|pair| match pair.split_once('=')? {
        ("path", path) => at_path(Path::new(&OsString::from_vec(unescaped(path)?))),
        ("abstract", name) => SocketAddr::from_abstract_name(unescaped(name)?).ok(),
        _ => None,
    })
}

fn at_path(path: &Path) -> Option<SocketAddr> {
    path.exists().then(|| SocketAddr::from_pathname(path).ok()).flatten()
}

/// Bytes other than letters and a few symbols are written as `%` and two hexadecimal digits.
fn unescaped(value: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        if *first == b'%' {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Option<SocketAddr> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        from_environment(&variable, 4_000_000_000)
    }

    #[test]
    fn the_first_socket_that_is_there_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("a bus");
        std::fs::write(&socket, "").unwrap();
        let escaped = socket.to_str().unwrap().replace(' ', "%20");
        let addresses = format!("tcp:host=x;unix:path=/not/there;unix:path={escaped},guid=00ff");
        let found_one = found(&[("DBUS_SESSION_BUS_ADDRESS", &addresses)]).unwrap();
        assert_eq!(found_one.as_pathname(), Some(socket.as_path()));
    }

    #[test]
    fn abstract_names_and_the_runtime_directory() {
        let named = found(&[("DBUS_SESSION_BUS_ADDRESS", "unix:abstract=/tmp/x%2dy,guid=1")]);
        assert_eq!(named.unwrap().as_abstract_name(), Some(&b"/tmp/x-y"[..]));
        let directory = tempfile::tempdir().unwrap();
        let runtime = directory.path().to_str().unwrap();
        assert!(found(&[("XDG_RUNTIME_DIR", runtime)]).is_none());
        std::fs::write(directory.path().join("bus"), "").unwrap();
        assert!(found(&[("XDG_RUNTIME_DIR", runtime)]).is_some());
    }

    #[test]
    fn no_bus_is_none() {
        assert!(found(&[]).is_none());
        for address in ["", "unix:", "unix:path", "unix:path=%4", "autolaunch:", "unix:path=/none"]
        {
            assert!(found(&[("DBUS_SESSION_BUS_ADDRESS", address)]).is_none(), "{address}");
        }
    }
}
