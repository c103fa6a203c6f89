//! Files that the plan adds to the view for the network, and the trusted roots where TLS is intercepted.

use crate::facts::{EntryKind, HostFacts};
use crate::host::Host;
use crate::model::{Egress, MountOp, READ_ONLY};
use crate::view::Composition;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The certificate of the run's own authority alone, for programs that add it to what they trust.
pub(crate) const AUTHORITY: &str = "/run/palisade/authority.pem";

/// Where distributions keep the certificates that programs trust.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// A bundle of all authorities there are has a few hundred KiB.
const MAX_BUNDLE_BYTES: usize = 4 << 20;

/// Adds the run's own authority to what programs trust; returns the bundle that they are to be pointed at, if there
/// is one.
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

/// The caller's own choice, if the command sees it: what is hidden from it is not copied for it.
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

/// Where a name leads to, whether something is there or not. None if nothing can ever be there.
pub(super) fn place_of(name: impl AsRef<Path>, host: &Host<'_>) -> Option<PathBuf> {
    match host.resolve(name.as_ref()) {
        Ok(found) => Some(found.path),
        Err(missing) => missing.place(),
    }
}

/// A file of ours where the name leads to: over the host's, or on a directory of our own. False if nothing can
/// stand there.
pub(super) fn put(
    view: &mut Composition,
    host: &Host<'_>,
    name: impl AsRef<Path>,
    content: String,
) -> bool {
    let Some(target) = place_of(name, host) else { return false };
    let is_there = host.kind(&target) == Some(EntryKind::File);
    let is_ours = match view.standing_above(&target) {
        // Our own root, and what we made on it.
        None | Some(MountOp::Dir { .. } | MountOp::Tmpfs { .. } | MountOp::Frame { .. }) => true,
        Some(MountOp::Bind { .. } | MountOp::Overlay { .. }) => is_there,
        Some(_) => false,
    };
    if is_ours {
        view.ops.insert(target.clone(), MountOp::File { target, content, mode: READ_ONLY });
    }
    is_ours
}
