//! Which layers stand: some only where root starts the sandbox, some only on newer kernels.
//! The names are those of `palisade_plan`; a test of the corpus holds them together.

use crate::{am_root, landlock_abi};

/// Landlock, where an attack is held by its keeping signals and abstract sockets in, which came
/// with Linux 6.12.
pub const LANDLOCK_SCOPES: &str = "landlock-scopes";
const LANDLOCK: &str = "landlock";
const SCOPES_SINCE: u32 = 6;
/// Only root's own id has to be given up: an ordinary user keeps his.
const IDENTITY: &str = "identity";

/// Those of these layers that stand on this host and for this caller.
pub(crate) fn standing(layers: &[&'static str]) -> Vec<&'static str> {
    let abi = landlock_abi();
    let stands = |layer: &&str| match *layer {
        LANDLOCK => abi > 0,
        LANDLOCK_SCOPES => abi >= SCOPES_SINCE,
        _ => true,
    };
    let here: Vec<&'static str> = layers.iter().copied().filter(stands).collect();
    if am_root() { as_root(&here) } else { as_user(&here) }
}

/// Those that stand where root starts the sandbox on a kernel that has them all.
pub(crate) fn as_root(layers: &[&'static str]) -> Vec<&'static str> {
    let plain = |layer: &&'static str| if *layer == LANDLOCK_SCOPES { LANDLOCK } else { *layer };
    layers.iter().map(plain).collect()
}

/// Those that stand where an ordinary user does.
pub(crate) fn as_user(layers: &[&'static str]) -> Vec<&'static str> {
    as_root(layers).into_iter().filter(|layer| *layer != IDENTITY).collect()
}

#[cfg(test)]
mod tests {
    use super::{LANDLOCK_SCOPES, as_root, as_user};

    #[test]
    fn an_ordinary_user_has_no_other_identity() {
        assert_eq!(as_user(&["mount-view", "identity"]), ["mount-view"]);
        assert_eq!(as_root(&["mount-view", "identity"]), ["mount-view", "identity"]);
    }

    #[test]
    fn scopes_are_landlock() {
        assert_eq!(as_user(&[LANDLOCK_SCOPES]), ["landlock"]);
    }
}
