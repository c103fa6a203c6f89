//! The command's environment (PROC-8): what the policy passes on, without variables that look like secrets or
//! refer to something not visible in the sandbox.

mod absent;

use absent::Misleading;
pub(crate) use absent::Sight;

use crate::egress::{AUTHORITY, PROXY_VARIABLES};
use crate::facts::HostFacts;
use crate::lists;
use crate::model::{CredentialPlan, CredentialSource, Egress};
use crate::own;
use palisade_hosts::{INSIDE_V4, PROXY_PORT};
use palisade_policy::model::{EnvMode, Process};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::LazyLock;

/// Tells programs that they run in a sandbox.
const INSIDE: &str = "SANDBOX";
/// For the clean mode: where programs are on all distributions.
const CLEAN_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Destinations that bypass the proxy.
const OWN_LOOPBACK: &str = "localhost,127.0.0.0/8,127.0.0.1,::1";
/// Variables that name a file with all trusted certificates.
const TRUST_ALL: [&str; 7] = [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "AWS_CA_BUNDLE",
];
/// Variables that name a file with additional trusted certificates.
const TRUST_MORE: [&str; 2] = ["NODE_EXTRA_CA_CERTS", "DENO_CERT"];
/// For a longer value only the variable's name is shown.
const MAX_SHOWN_LEN: usize = 24;
/// The login name of a command that was started by root.
pub(crate) const SANDBOX_USER: &str = "sandbox";

pub(crate) struct Inside<'a> {
    pub(crate) session: &'a str,
    /// The home directory in the sandbox, if it differs from the host's.
    pub(crate) home: Option<&'a Path>,
    /// The result of `gethostname(2)`.
    pub(crate) hostname: &'a str,
    pub(crate) cwd: &'a Path,
    pub(crate) sight: &'a dyn Sight,
    pub(crate) egress: Option<&'a Egress>,
    /// Secrets that must not be in the sandbox, whether it has network access or not.
    pub(crate) credentials: &'a [CredentialPlan],
    /// The certificates that programs should trust, if they are not the host's.
    pub(crate) trusted: Option<&'a Path>,
}

#[derive(Debug)]
pub(crate) struct Environment {
    pub(crate) entries: Vec<(OsString, OsString)>,
    /// Only the names: the values are secret.
    pub(crate) removed: Vec<String>,
    pub(crate) misleading: Misleading,
}

impl Environment {
    /// Notes for the user.
    pub(crate) fn notes(&self) -> Vec<String> {
        let names = self.removed.join(", ");
        let secrets = (!names.is_empty()).then(|| {
            format!(
                "not passed on because the names look like secrets: {names}; pass one on with --env NAME"
            )
        });
        secrets.into_iter().chain(self.misleading.notes()).collect()
    }
}

pub(crate) fn build(process: &Process, facts: &HostFacts, inside: &Inside<'_>) -> Environment {
    let mut env: BTreeMap<OsString, OsString> = BTreeMap::new();
    let mut removed = Vec::new();
    match process.env_mode {
        EnvMode::Inherit => {
            for (name, value) in &facts.env {
                if is_secret(name) {
                    removed.push(name.to_string_lossy().into_owned());
                } else {
                    env.insert(name.clone(), value.clone());
                }
            }
        }
        EnvMode::Explicit => {
            let allowed: BTreeSet<&OsStr> =
                process.allowed_env_vars.iter().map(OsStr::new).collect();
            let inherited = facts.env.iter().filter(|(name, _)| allowed.contains(name.as_os_str()));
            env.extend(inherited.map(|(name, value)| (name.clone(), value.clone())));
        }
        EnvMode::Clean => env.extend(clean(facts)),
    }
    let misleading = absent::drop_misleading(&mut env, inside.sight);
    if own::runtime_dir(facts).is_none() {
        env.remove(OsStr::new("XDG_RUNTIME_DIR"));
    }
    if let Some(home) = inside.home {
        env.insert("HOME".into(), home.into());
    }
    // A shell trusts PWD if it names the working directory.
    if inside.cwd != facts.cwd {
        env.insert("PWD".into(), inside.cwd.into());
    }
    if facts.uid == 0 {
        for name in ["USER", "LOGNAME"] {
            env.insert(name.into(), SANDBOX_USER.into());
        }
    }
    let proxy = match inside.egress {
        Some(Egress::Proxy(proxy)) => Some(proxy),
        Some(Egress::Nat(_)) | None => None,
    };
    if let Some(proxy) = proxy {
        env.extend(proxy_variables(inside.hostname));
        if proxy.intercept {
            env.extend(trust_variables(inside));
        }
    }
    env.extend(process.env.iter().map(|(name, value)| (name.into(), value.into())));
    put_placeholders(&mut env, inside.credentials);
    // A policy may override it, for programs that take it for a sandbox of their own.
    if !process.env.contains_key(INSIDE) {
        env.insert(INSIDE.into(), "1".into());
    }
    env.insert("SANDBOX_SESSION".into(), inside.session.into());
    Environment { entries: env.into_iter().collect(), removed, misleading }
}

/// The variables that the policy sets, for display. A value that may be secret is omitted.
pub(crate) fn set(process: &Process) -> Vec<String> {
    let shown = |(name, value): (&String, &String)| {
        let is_told = !is_secret(OsStr::new(name)) && value.len() <= MAX_SHOWN_LEN;
        if is_told { format!("{name}={value}") } else { name.clone() }
    };
    process.env.iter().map(shown).collect()
}

/// For programs that support proxies: the same egress, but a denied request gets a response with the reason.
fn proxy_variables(hostname: &str) -> Vec<(OsString, OsString)> {
    let proxy = format!("http://{INSIDE_V4}:{PROXY_PORT}");
    let to_proxy = PROXY_VARIABLES.map(|name| (name.into(), (&proxy).into()));
    let own = format!("{OWN_LOOPBACK},{hostname}");
    let past_it = ["NO_PROXY", "no_proxy"].map(|name| (name.into(), (&own).into()));
    to_proxy.into_iter().chain(past_it).collect()
}

/// Must come last: a secret that the egress process adds must not be in the sandbox, even if another setting
/// names its variable.
fn put_placeholders(env: &mut BTreeMap<OsString, OsString>, credentials: &[CredentialPlan]) {
    for credential in credentials {
        if let CredentialSource::Env(name) = &credential.source {
            env.remove(OsStr::new(name));
        }
    }
    let held =
        |credential: &CredentialPlan| ((&credential.name).into(), (&credential.placeholder).into());
    env.extend(credentials.iter().map(held));
}

/// The variables that set trusted certificates in various libraries and tools.
fn trust_variables(inside: &Inside<'_>) -> Vec<(OsString, OsString)> {
    let all = inside.trusted.unwrap_or(Path::new(AUTHORITY));
    let all = TRUST_ALL.map(|name| (name.into(), all.into()));
    let more = TRUST_MORE.map(|name| (name.into(), AUTHORITY.into()));
    all.into_iter().chain(more).collect()
}

fn clean(facts: &HostFacts) -> Vec<(OsString, OsString)> {
    let inherited = |name: &str, default: &str| {
        let value = facts.env.get(OsStr::new(name)).cloned().unwrap_or_else(|| default.into());
        (OsString::from(name), value)
    };
    let mut env = vec![
        ("PATH".into(), CLEAN_PATH.into()),
        inherited("TERM", "dumb"),
        inherited("LANG", "C.UTF-8"),
    ];
    env.extend(facts.home.as_ref().map(|home| ("HOME".into(), home.into())));
    env.extend(facts.user_name.as_ref().map(|name| ("USER".into(), name.into())));
    env
}

/// `*` at either end of a name matches any text. In upper case, like the names that it is compared with.
#[derive(Clone, Copy)]
struct Pattern {
    text: &'static [u8],
    open_start: bool,
    open_end: bool,
    drops: bool,
}

impl From<&lists::Listed> for Pattern {
    fn from(listed: &lists::Listed) -> Self {
        let text = listed.name.trim_matches('*').as_bytes();
        let open_start = listed.name.starts_with('*');
        Self { text, open_start, open_end: listed.name.ends_with('*'), drops: listed.has("drop") }
    }
}

impl Pattern {
    fn matches(&self, name: &[u8]) -> bool {
        match (self.open_start, self.open_end) {
            (false, false) => name == self.text,
            (false, true) => name.starts_with(self.text),
            (true, false) => name.ends_with(self.text),
            // The first byte separately: at most positions this comparison is enough.
            (true, true) => name
                .windows(self.text.len())
                .any(|window| window.first() == self.text.first() && window == self.text),
        }
    }
}

static PATTERNS: LazyLock<Vec<Pattern>> =
    LazyLock::new(|| lists::SECRET_ENV.iter().map(Pattern::from).collect());

/// Whether a variable of this name is removed. The first matching pattern decides; without a match it is kept.
pub fn is_secret(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes().to_ascii_uppercase();
    PATTERNS.iter().find(|pattern| pattern.matches(&name)).is_some_and(|found| found.drops)
}

#[cfg(test)]
#[path = "environment_tests.rs"]
mod tests;
