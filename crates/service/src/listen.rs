//! Where the service listens: a UNIX socket that only its owner can open, or TCP, off loopback with TLS only.

use crate::auth::Peer;
use crate::error::ServiceError;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::fs::DirBuilder;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _};
use std::os::unix::net as unix;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_rustls::TlsAcceptor;

/// Connections that were not accepted yet.
const BACKLOG: i32 = 128;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

impl FromStr for ListenAddress {
    type Err = ServiceError;

    fn from_str(text: &str) -> Result<Self, ServiceError> {
        let wrong = || ServiceError::Address { text: text.to_owned() };
        match text.split_once(':') {
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(path.into())),
            Some(("tcp", address)) => address.parse().map(Self::Tcp).map_err(|_| wrong()),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

/// What TLS needs.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    pub certificates: PathBuf,
    pub key: PathBuf,
}

impl TlsFiles {
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor, ServiceError> {
        let Self { certificates: path, key: key_path } = self;
        let wrong = |path: &Path, why: &dyn fmt::Display| ServiceError::Tls {
            path: path.to_owned(),
            why: why.to_string(),
        };
        let certificates = CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| wrong(path, &error))?;
        let key =
            PrivateKeyDer::from_pem_file(key_path).map_err(|error| wrong(key_path, &error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(path, &error))?
            .with_no_client_auth()
            .with_single_cert(certificates, key)
            .map_err(|error| wrong(path, &error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// An open socket.
#[derive(Debug)]
pub(crate) enum Listener {
    Unix {
        listener: UnixListener,
        /// To remove it at the end.
        path: PathBuf,
        /// Held for as long as we listen: shows that the socket is not a leftover.
        _lock: OwnedFd,
    },
    Tcp(TcpListener),
}

pub(crate) enum Accepted {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Listener {
    pub(crate) fn open(address: &ListenAddress) -> Result<Self, ServiceError> {
        match address {
            ListenAddress::Unix(path) => open_unix(path),
            ListenAddress::Tcp(wanted) => {
                let failed = |source| ServiceError::Listen { address: address.to_string(), source };
                let listener = std::net::TcpListener::bind(wanted).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                Ok(Self::Tcp(TcpListener::from_std(listener).map_err(failed)?))
            }
        }
    }

    /// With the port that was chosen, if any would do.
    pub(crate) fn address(&self) -> Result<ListenAddress, ServiceError> {
        Ok(match self {
            Self::Unix { path, .. } => ListenAddress::Unix(path.clone()),
            Self::Tcp(listener) => {
                let failed = |source| ServiceError::Listen { address: "tcp".to_owned(), source };
                ListenAddress::Tcp(listener.local_addr().map_err(failed)?)
            }
        })
    }

    pub(crate) async fn accept(&self) -> io::Result<(Accepted, Peer)> {
        match self {
            Self::Unix { listener, .. } => {
                let (stream, _) = listener.accept().await?;
                let peer = rustix::net::sockopt::socket_peercred(&stream)?;
                let uid = peer.uid.as_raw();
                let is_outside = palisade_session::shares_user_namespace(peer.pid);
                Ok((Accepted::Unix(stream), Peer::Process { uid, is_outside }))
            }
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // Answers are small, and somebody waits for each.
                stream.set_nodelay(true)?;
                Ok((Accepted::Tcp(stream), Peer::Network))
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix { path, .. } = self {
            // One that stays is known as a leftover by its lock.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn open_unix(path: &Path) -> Result<Listener, ServiceError> {
    let failed = |action, errno: Errno| ServiceError::io(action, path, errno);
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(parent)
        .map_err(|error| ServiceError::io("make", parent, error))?;
    let name = path.file_name().ok_or_else(|| failed("listen at", Errno::INVAL))?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(parent, flags, Mode::empty())
        .map_err(|errno| ServiceError::io("open", parent, errno))?;
    let lock = lock_beside(path)?;
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            return Err(ServiceError::NotASocket { path: path.to_owned() });
        }
        Ok(_) if is_answered(&directory, name) => {
            return Err(ServiceError::AlreadyListening { path: path.to_owned() });
        }
        Ok(_) => {
            let removed = std::fs::remove_file(path);
            removed.map_err(|error| ServiceError::io("remove", path, error))?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(ServiceError::io("look at", path, error)),
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .map_err(|errno| failed("listen at", errno))?;
    let address = address_in(&directory, name).map_err(|errno| failed("listen at", errno))?;
    // Before it exists: nobody else must be able to connect for a moment. No other thread makes files yet.
    let umask = rustix::process::umask(Mode::from_raw_mode(0o177));
    let bound = rustix::net::bind(&socket, &address);
    rustix::process::umask(umask);
    bound
        .and_then(|()| rustix::net::listen(&socket, BACKLOG))
        .map_err(|errno| failed("listen at", errno))?;
    let listener = UnixListener::from_std(unix::UnixListener::from(socket))
        .map_err(|error| ServiceError::io("listen at", path, error))?;
    Ok(Listener::Unix { listener, path: path.to_owned(), _lock: lock })
}

/// Two servers that start at once must not take each other's socket for a leftover.
fn lock_beside(path: &Path) -> Result<OwnedFd, ServiceError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let name = PathBuf::from(name);
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(&name, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|errno| ServiceError::io("open", &name, errno))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(ServiceError::AlreadyListening { path: path.to_owned() }),
        Err(errno) => Err(ServiceError::io("lock", &name, errno)),
    }
}

/// Through the directory: the whole path may exceed the 108 bytes of unix(7).
fn address_in(directory: &OwnedFd, name: &std::ffi::OsStr) -> Result<SocketAddrUnix, Errno> {
    let below = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string());
    SocketAddrUnix::new(below.join(name))
}

fn is_answered(directory: &OwnedFd, name: &std::ffi::OsStr) -> bool {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let connected = address_in(directory, name).and_then(|address| {
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::net::connect(&socket, &address)
    });
    // One whose queue is full is there, too.
    matches!(connected, Ok(()) | Err(Errno::AGAIN))
}

#[cfg(test)]
mod tests {
    use super::{ListenAddress, Listener};
    use crate::error::ServiceError;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn an_address_says_what_it_is() {
        let parsed = |text: &str| text.parse::<ListenAddress>();
        assert_eq!(parsed("unix:/run/x").unwrap(), ListenAddress::Unix("/run/x".into()));
        let tcp = parsed("tcp:[::1]:80").unwrap();
        assert_eq!(tcp, ListenAddress::Tcp("[::1]:80".parse().unwrap()));
        assert_eq!(tcp.to_string(), "tcp:[::1]:80");
        for wrong in ["", "unix:", "/run/x", "tcp:80", "tcp:localhost:80", "http:127.0.0.1:80"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[tokio::test]
    async fn a_leftover_is_replaced_and_a_living_server_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep").join("s.sock");
        let open = || Listener::open(&ListenAddress::Unix(path.clone()));
        let first = open().unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(matches!(open(), Err(ServiceError::AlreadyListening { .. })));
        drop(first);
        assert!(!path.exists());
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "what a killed server leaves");
        let again = open().unwrap();
        drop(again);
        std::fs::write(&path, "").unwrap();
        assert!(matches!(open(), Err(ServiceError::NotASocket { .. })));
    }
}
