//! Files that the plan adds to the view for the network, and the trusted certificates if TLS is intercepted.

use crate::facts::{EntryKind, HostFacts};
use crate::host::Host;
use crate::model::{Egress, MountOp, READ_ONLY};
use crate::view::Composition;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Only the certificate of the run's own authority, for programs that add it to those they trust.
pub(crate) const AUTHORITY: &str = "/run/palisade/authority.pem";

/// Where distributions keep the trusted certificates.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// A bundle of all public authorities has a few hundred KiB.
const MAX_BUNDLE_BYTES: usize = 4 << 20;

/// Adds the run's own authority to the trusted certificates. Returns the bundle that programs should use, if
/// there is one.
pub(crate) fn add_authority(
    egress: &Egress,
    facts: &HostFacts,
    host: &Host<'_>,
    view: &mut Composition,
) -> Option<PathBuf> {
    let Egress::Proxy(proxy) = egress else { return None };
    let authority = facts.authority.as_deref().filter(|_| proxy.intercept)?;
    let file =
        MountOp::File { target: AUTHORITY.into(), content: authority.to_owned(), mode: READ_ONLY };
    view.ops.insert(AUTHORITY.into(), file);
    let mut trusted = None;
    let own = own_bundle(facts, host, view);
    for bundle in own.as_deref().into_iter().chain(BUNDLES.map(Path::new)) {
        let Some((path, mut content)) = read(bundle, host) else { continue };
        if !content.ends_with('\n') {
            content.push('\n');
        }
        content.push_str(authority);
        if put(view, host, bundle, content) {
            trusted.get_or_insert(path);
        }
    }
    trusted
}

/// The bundle that the caller chose, if the command can see it. A hidden file must not be copied.
fn own_bundle(facts: &HostFacts, host: &Host<'_>, view: &Composition) -> Option<PathBuf> {
    let named = PathBuf::from(facts.env.get(OsStr::new("SSL_CERT_FILE"))?);
    let path = host.resolve(&named).ok().filter(|_| named.is_absolute())?.path;
    matches!(view.standing_above(&path), Some(MountOp::Bind { .. })).then_some(path)
}

fn read(path: &Path, host: &Host<'_>) -> Option<(PathBuf, String)> {
    let path = host.resolve(path).ok().filter(|found| found.kind == EntryKind::File)?.path;
    let bytes = host.read_part(&path, 0, MAX_BUNDLE_BYTES)?;
    Some((path, String::from_utf8(bytes).ok()?))
}

/// The target of a path, whether it exists or not; `None` if it can never exist.
pub(super) fn place_of(name: impl AsRef<Path>, host: &Host<'_>) -> Option<PathBuf> {
    match host.resolve(name.as_ref()) {
        Ok(found) => Some(found.path),
        Err(missing) => missing.place(),
    }
}

/// Puts a file of ours at the target of a name: over the host's file, or in a directory of our own. Returns
/// false if that is not possible.
pub(super) fn put(
    view: &mut Composition,
    host: &Host<'_>,
    name: impl AsRef<Path>,
    content: String,
) -> bool {
    let Some(target) = place_of(name, host) else { return false };
    let is_there = host.kind(&target) == Some(EntryKind::File);
    let is_ours = match view.standing_above(&target) {
        // Our own root, and what we created on it.
        None | Some(MountOp::Dir { .. } | MountOp::Tmpfs { .. } | MountOp::Frame { .. }) => true,
        Some(MountOp::Bind { .. } | MountOp::Overlay { .. }) => is_there,
        Some(_) => false,
    };
    if is_ours {
        view.ops.insert(target.clone(), MountOp::File { target, content, mode: READ_ONLY });
    }
    is_ours
}
