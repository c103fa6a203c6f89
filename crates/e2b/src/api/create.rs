//! A new sandbox. It is a session like any other, with a directory of its own as its project and home.

use super::Document;
use super::model::Reachable;
use super::templates::presets_of;
use crate::access::access_token;
use crate::error::ApiError;
use crate::face::{Face, Shared};
use crate::homes::{E2B_HOME, NewHome};
use crate::store::KeptSandbox;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use palisade_service::{CallerSpan, NewSandbox, Problem};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Seconds, as E2B has it.
const DEFAULT_TIMEOUT: u64 = 300;
/// A year. E2B allows a day.
pub(super) const MAX_TIMEOUT: u64 = 365 * 24 * 3600;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Wanted {
    #[serde(rename = "templateID", default)]
    template: String,
    timeout: Option<u64>,
    #[serde(default)]
    metadata: Option<BTreeMap<String, String>>,
    #[serde(default)]
    env_vars: Option<BTreeMap<String, String>>,
    /// Python's client spells it differently.
    #[serde(alias = "allow_internet_access")]
    allow_internet_access: Option<bool>,
    #[serde(default)]
    auto_pause: Option<bool>,
    #[serde(default)]
    network: Value,
    #[serde(default)]
    mcp: Value,
    #[serde(default)]
    iam: Value,
    #[serde(default)]
    volume_mounts: Value,
}

impl Wanted {
    /// What we have not must not look as if it were there.
    fn check(&self) -> Result<(), ApiError> {
        let is_given = |value: &Value| match value {
            Value::Null => false,
            Value::Object(members) => !members.is_empty(),
            Value::Array(items) => !items.is_empty(),
            _ => true,
        };
        let unsupported = [
            (self.auto_pause == Some(true), "autoPause: pausing a sandbox"),
            (is_given(&self.network), "network: rules of a request; write them into a policy"),
            (is_given(&self.mcp), "mcp: MCP servers in a sandbox"),
            (is_given(&self.iam), "iam: identities of workloads"),
            (is_given(&self.volume_mounts), "volumeMounts: volumes"),
        ];
        if let Some((_, what)) = unsupported.iter().find(|(is_wanted, _)| *is_wanted) {
            return Err(ApiError::unsupported(what));
        }
        for (name, value) in self.env_vars.iter().flatten() {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return Err(ApiError::invalid(format!("envVars: `{name}` is no variable")));
            }
        }
        check_timeout(self.timeout.unwrap_or(DEFAULT_TIMEOUT)).map(drop)
    }
}

/// When a sandbox ends that may stay for so many seconds.
pub(super) fn check_timeout(seconds: u64) -> Result<Timestamp, ApiError> {
    let time = i64::try_from(seconds).ok().filter(|_| seconds <= MAX_TIMEOUT);
    let end =
        time.and_then(|time| Timestamp::now().checked_add(SignedDuration::from_secs(time)).ok());
    end.ok_or_else(|| ApiError::invalid(format!("timeout: at most {MAX_TIMEOUT} seconds")))
}

pub(super) async fn create(
    State(face): State<Shared>,
    caller: CallerSpan,
    Document(wanted): Document<Wanted>,
) -> Result<(StatusCode, Document<Reachable>), ApiError> {
    wanted.check()?;
    let presets = presets_of(&wanted.template)?;
    // Goes on if the client is gone, so that nothing half made is left.
    let shared = Arc::clone(&face);
    let task = tokio::spawn(async move { make(&shared, wanted, presets, caller).await });
    let kept = task.await.map_err(|error| Problem::internal(error.to_string()))??;
    let token = access_token(&face.host, &kept.id)?;
    Ok((StatusCode::CREATED, Document(Reachable::new(&kept, token))))
}

async fn make(
    face: &Face,
    wanted: Wanted,
    presets: Vec<String>,
    caller: CallerSpan,
) -> Result<KeptSandbox, ApiError> {
    let seconds = wanted.timeout.unwrap_or(DEFAULT_TIMEOUT);
    let mut settings = BTreeMap::new();
    // Only less than the policy allows: a request is no reason to open the network.
    if wanted.allow_internet_access == Some(false) {
        settings.insert("network.mode".to_owned(), json!("none"));
    }
    let NewHome { home, root } = face.homes.make()?;
    let new = NewSandbox {
        project: Some(home.clone()),
        presets,
        settings,
        time_to_live_seconds: Some(seconds.max(1)),
        ..NewSandbox::default()
    };
    let (id, shown_home) = match create_as_far_as_possible(face, new, root, caller).await {
        Ok((id, true)) => (id, E2B_HOME.into()),
        Ok((id, false)) => (id, home.clone()),
        Err(problem) => {
            face.homes.remove(&home).await?;
            return Err(problem.into());
        }
    };
    let kept = KeptSandbox {
        id,
        template: if wanted.template.is_empty() { "base".to_owned() } else { wanted.template },
        metadata: wanted.metadata.unwrap_or_default(),
        env_vars: wanted.env_vars.unwrap_or_default(),
        allow_internet_access: wanted.allow_internet_access,
        started_at: Timestamp::now(),
        end_at: check_timeout(seconds)?,
        home: home.clone(),
        shown_home,
    };
    if let Err(problem) = face.store.save(&kept) {
        // Nobody would find it again.
        let _ = face.host.remove(&kept.id).await;
        face.homes.remove(&home).await?;
        return Err(problem.into());
    }
    Ok(kept)
}

/// With E2B's home, and with any names in it, where the host and its policy allow it. Says whether there is E2B's home.
async fn create_as_far_as_possible(
    face: &Face,
    mut new: NewSandbox,
    root: Option<PathBuf>,
    caller: CallerSpan,
) -> Result<(String, bool), Problem> {
    const ROOT: &str = "filesystem.rootPath";
    const UNPROTECTED: &str = "filesystem.unprotectedPaths";
    // Nothing on the host works in it, so it has no names that the host would run.
    new.settings.insert(UNPROTECTED.to_owned(), json!([new.project]));
    if let Some(root) = root {
        new.settings.insert(ROOT.to_owned(), json!(root));
    }
    loop {
        let problem = match face.host.create(&new, caller.clone()).await {
            Ok(id) => return Ok((id, new.settings.contains_key(ROOT))),
            Err(problem) => problem,
        };
        let is_meant = |key: &&str| {
            let name = key.rsplit('.').next().unwrap_or(key);
            new.settings.contains_key(*key) && problem.detail().contains(name)
        };
        match [ROOT, UNPROTECTED].into_iter().find(is_meant) {
            Some(key) => new.settings.remove(key),
            None => return Err(problem),
        };
    }
}
