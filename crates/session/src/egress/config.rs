//! Builds the configuration of the egress process from the plan: reads secrets and looks up the host's resolvers.
//!
//! Fails closed: a credential that cannot be read stops the run before the command starts. A secret must never be part
//! of an error.

use crate::error::{Result, SessionError};
use palisade_egress::config::{
    Authority, Checks, Config, Credential, Limits, Lookup, OnUnknown, Secret, Upstream,
};
use palisade_hosts::Rules;
use palisade_plan::facts::HostFacts;
use palisade_plan::model::{self, CredentialPlan, CredentialSource, Egress, Plan, ProxyPlan};
use palisade_sys::proc::{Resource, get_rlimit};
use rustix::fs::{Mode, OFlags};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Descriptors of the egress process that belong to no connection: listeners, the runtime, look-ups.
const OWN_FILES: u64 = 32;

/// No token is longer, and no server accepts such a header.
const MAX_SECRET_BYTES: u64 = 16 * 1024;

/// `None` if no egress process is needed.
pub(crate) fn config(
    plan: &Plan,
    facts: &HostFacts,
    authority: Option<Authority>,
) -> Result<Option<Config>> {
    match &plan.sandbox.egress {
        Some(Egress::Proxy(proxy)) => of_proxy(proxy, facts, authority).map(Some),
        // No connection leaves through this process: it reports what packet rules refused, and serves published ports.
        Some(Egress::Nat(_)) => Ok(Some(closed())),
        None if !plan.sandbox.publish.is_empty() => Ok(Some(closed())),
        None => Ok(None),
    }
}

/// Every connection needs descriptors of the egress process, and a connection without one would only wait. So the limit
/// is lowered to what fits. Returns a note that says how to raise it.
pub(crate) fn bound_by_descriptors(config: &mut Config) -> Option<String> {
    bound(config, most_files())
}

/// How many files this process may open.
pub(crate) fn most_files() -> u64 {
    get_rlimit(Resource::Nofile).soft.unwrap_or(u64::MAX)
}

pub(crate) fn bound(config: &mut Config, files: u64) -> Option<String> {
    let asked = config.limits.connections;
    let fits = fitting(files);
    if !config.checks.bounded || asked <= fits {
        return None;
    }
    config.limits.connections = fits;
    Some(format!(
        "at most {fits} connections instead of {asked} (--max-connections): this process can open only {files} files; \
         raise that where you start from (ulimit -Hn), or ask for fewer"
    ))
}

fn fitting(files: u64) -> usize {
    let fits = files.saturating_sub(OWN_FILES) / palisade_egress::FILES_A_CONNECTION;
    usize::try_from(fits).unwrap_or(usize::MAX).max(1)
}

fn closed() -> Config {
    Config {
        checks: Checks::default(),
        rules: Rules::new(Vec::new(), Vec::new(), Vec::new(), Vec::new()),
        on_unknown: OnUnknown::Deny,
        limits: Limits::default(),
        follow_redirects: false,
        upstream: None,
        credentials: Vec::new(),
        authority: None,
        lookup: Lookup::default(),
    }
}

pub(crate) fn of_proxy(
    plan: &ProxyPlan,
    facts: &HostFacts,
    authority: Option<Authority>,
) -> Result<Config> {
    let upstream =
        plan.upstream.as_deref().map(|url| Upstream::parse(url).ok_or(SessionError::Upstream));
    let credentials = plan.credentials.iter().map(|planned| credential(planned, facts));
    let model::Checks { rules, addresses, agreement, strict_http, bounded } = plan.checks;
    Ok(Config {
        checks: Checks { rules, addresses, agreement, strict_http, bounded },
        rules: plan.rules.clone(),
        on_unknown: match plan.on_unknown {
            model::OnUnknown::Deny => OnUnknown::Deny,
            model::OnUnknown::Ask => OnUnknown::Ask,
        },
        limits: Limits {
            connections: plan.connections,
            bytes: plan.bytes,
            queries_a_second: plan.queries_a_second,
            ..Limits::default()
        },
        follow_redirects: plan.follow_redirects,
        upstream: upstream.transpose()?,
        credentials: credentials.collect::<Result<_, _>>()?,
        authority,
        lookup: palisade_egress::lookup::system(),
    })
}

fn credential(plan: &CredentialPlan, facts: &HostFacts) -> Result<Credential> {
    let failed = |why: String| SessionError::Credential { name: plan.name.clone(), why };
    let secret = match &plan.source {
        CredentialSource::Env(variable) => of_variable(variable, facts),
        CredentialSource::File(path) => of_file(path),
    };
    let secret = secret.map_err(failed)?;
    let is_header = |c: char| c.is_ascii_graphic() || c == ' ';
    if secret.is_empty() || !secret.chars().all(is_header) {
        let why = "it is empty, or not valid in a header; it must contain the token only";
        return Err(failed(why.to_owned()));
    }
    Ok(Credential {
        name: plan.name.clone(),
        hosts: plan.hosts.clone(),
        header: plan.header.clone(),
        value: Secret::new(plan.format.replace("{}", &secret)),
    })
}

fn of_variable(variable: &str, facts: &HostFacts) -> Result<String, String> {
    match facts.env.get(OsStr::new(variable)) {
        Some(value) => value.clone().into_string().map_err(|_| format!("{variable} is not UTF-8")),
        None => Err(format!("{variable} is not set; set it, or remove the credential")),
    }
}

/// Without the newline that editors append.
fn of_file(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let wrong = |why: &dyn std::fmt::Display| format!("{shown}: {why}");
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::empty())
        .map_err(|errno| wrong(&std::io::Error::from(errno)))?;
    let file = File::from(file);
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err(wrong(&"not a regular file"));
    }
    let mut text = String::new();
    file.take(MAX_SECRET_BYTES + 1).read_to_string(&mut text).map_err(|error| wrong(&error))?;
    if text.len() as u64 > MAX_SECRET_BYTES {
        return Err(wrong(&format!("longer than {MAX_SECRET_BYTES} bytes, so it is not a token")));
    }
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
