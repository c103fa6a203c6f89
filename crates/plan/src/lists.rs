//! The shipped lists of `resources/view` and `resources/programs`, compiled in because every start needs them.
//! Nothing is decided here: the code that uses a list defines its meaning.

use palisade_guard::list;
pub(crate) use palisade_guard::lists::Listed;

pub(crate) static SYSTEM: &[Listed] = list!("../../../resources/view/system.txt");
pub(crate) static TOOLCHAINS: &[Listed] = list!("../../../resources/view/toolchains.txt");
pub(crate) static CACHES: &[Listed] = list!("../../../resources/view/caches.txt");
pub(crate) static SECRETS: &[Listed] = list!("../../../resources/view/secrets.txt");
/// Names in directories of secrets that are not secret.
pub(crate) static NOT_SECRET: &[Listed] = list!("../../../resources/view/not-secret.txt");
/// Settings that are copied into the sandbox without credentials.
pub(crate) static SETTINGS: &[Listed] = list!("../../../resources/view/settings.txt");
/// Files that tools leave in every home directory.
pub(crate) static LEFTOVERS: &[Listed] = list!("../../../resources/view/leftovers.txt");
/// Files that tools look for in the directories above the project.
pub(crate) static PROBES: &[Listed] = list!("../../../resources/view/probes.txt");
/// Names that mark a directory as the root of a project.
pub(crate) static MARKERS: &[Listed] = list!("../../../resources/view/markers.txt");
pub(crate) static SECRET_ENV: &[Listed] = list!("../../../resources/view/secret-env.txt");
/// Programs that execute what they read.
pub(crate) static INTERPRETERS: &[Listed] = list!("../../../resources/programs/interpreters.txt");

#[cfg(test)]
#[path = "lists_tests.rs"]
mod tests;
