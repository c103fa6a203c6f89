//! What a request says about a new sandbox, and the words by which our own program makes it.

use crate::own_program::Invocation;
use crate::problem::Problem;
use crate::service::Shared;
use crate::warm::Kind;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use utoipa::ToSchema;

/// A project that is copied may be large.
pub(crate) const CREATE_PATIENCE: Duration = Duration::from_secs(600);
/// One argument of a program has at most 128 KiB.
const MAX_SETTING: usize = 100 << 10;

#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct NewSandbox {
    /// Another word for it, unique among those that run.
    pub name: Option<String>,
    /// The directory to work in, as an absolute path. The one in which the server was started if nothing is said.
    #[schema(value_type = Option<String>)]
    pub project: Option<PathBuf>,
    /// Built-in policies to start from, as `sandbox create --preset`.
    pub presets: Vec<String>,
    /// Keys and values of the policy, such as `network.mode` and `"proxy"`. They count as options on a command line do: what the
    /// organisation has locked stays locked.
    #[schema(value_type = Object)]
    pub settings: BTreeMap<String, Value>,
    /// Keep the project as it is, and changes to be looked at.
    pub transaction: Option<Transaction>,
    pub time_to_live_seconds: Option<u64>,
    pub idle_time_to_live_seconds: Option<u64>,
    /// Whether questions wait for an answer. While a client reads `/v1/approvals/stream` if nothing is said.
    pub ask: Option<AskPeople>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transaction {
    /// An overlay, or a copy where none can be mounted.
    Overlay,
    Copy,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum AskPeople {
    /// Until somebody answers, or the time for that is over.
    Always,
    /// Everything that would be asked is denied.
    Never,
}

impl NewSandbox {
    pub(crate) fn invocation(&self, service: &Shared) -> Result<Invocation, Problem> {
        let mut create = Invocation::new(["create", "--json", "--quiet"])
            .option("metrics-file", service.metrics_file())
            .option_if("name", self.name.as_ref())
            .option_if("ttl", self.time_to_live_seconds.map(|time| format!("{time}s")))
            .option_if("idle-ttl", self.idle_time_to_live_seconds.map(|time| format!("{time}s")))
            .within(CREATE_PATIENCE);
        for preset in &self.presets {
            create = create.option("preset", preset);
        }
        create = match self.transaction {
            None => create,
            Some(Transaction::Overlay) => create.word("--transaction"),
            Some(Transaction::Copy) => create.option("transaction", "copy"),
        };
        create = match self.ask {
            None => create,
            Some(AskPeople::Always) => create.option("ask-in", "approve"),
            Some(AskPeople::Never) => create.option("ask-in", "none"),
        };
        for (key, value) in &self.settings {
            if key.is_empty() || key.contains('=') {
                return Err(Problem::invalid(format!("settings: `{key}` is no key of a policy")));
            }
            let setting = format!("{key}={value}");
            if setting.len() > MAX_SETTING {
                return Err(Problem::too_large(format!("settings: `{key}` is too long")));
            }
            create = create.option("set", setting);
        }
        match &self.project {
            None => Ok(create),
            Some(project) if !project.is_absolute() => {
                Err(Problem::invalid("project: write an absolute path"))
            }
            Some(project) => match project.metadata() {
                Ok(found) if found.is_dir() => Ok(create.in_directory(project)),
                Ok(_) => {
                    Err(Problem::invalid(format!("project: {} is no directory", project.display())))
                }
                Err(error) => {
                    Err(Problem::invalid(format!("project: {}: {error}", project.display())))
                }
            },
        }
    }

    /// What it is like, but for its name. None: sandboxes like this are never prepared, since each is to begin with the project as it is
    /// then.
    pub(super) fn kind(&self) -> Option<Kind> {
        if self.transaction.is_some() {
            return None;
        }
        serde_json::to_string(&self.unnamed()).ok().map(Kind)
    }

    pub(crate) fn unnamed(&self) -> Self {
        Self { name: None, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::{AskPeople, NewSandbox, Transaction};

    #[test]
    fn the_name_makes_no_other_kind_and_everything_else_does() {
        let plain = NewSandbox::default().kind();
        let named = NewSandbox { name: Some("n".to_owned()), ..NewSandbox::default() };
        assert_eq!(named.kind(), plain);
        for other in [
            NewSandbox { project: Some("/p".into()), ..NewSandbox::default() },
            NewSandbox { presets: vec!["node".to_owned()], ..NewSandbox::default() },
            NewSandbox { settings: [("a".to_owned(), 1.into())].into(), ..NewSandbox::default() },
            NewSandbox { time_to_live_seconds: Some(1), ..NewSandbox::default() },
            NewSandbox { idle_time_to_live_seconds: Some(1), ..NewSandbox::default() },
            NewSandbox { ask: Some(AskPeople::Never), ..NewSandbox::default() },
        ] {
            assert_ne!(other.kind(), plain, "{other:?}");
        }
        let transaction = Some(Transaction::Overlay);
        assert_eq!(NewSandbox { transaction, ..NewSandbox::default() }.kind(), None);
    }
}
