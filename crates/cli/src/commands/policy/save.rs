//! `sandbox policy save`: what was answered in a session becomes rules and hosts in a policy file.

use super::changes;
use crate::args::StoreWord;
use crate::output::{self, Paint};
use clap::Args;
use palisade_record::escape;
use palisade_session::Caller;
use palisade_session::answers;
use palisade_session::stores::{FileChange, StoreStatus, Stores};

const DETAILS: &str = "\
Rules are added after the existing ones; comments, order and everything else in the file stay \
unchanged. A file that cannot be changed safely is left alone, and what to add by hand is printed.

Examples:
  sandbox policy save                        answers of the last session, for this user
  sandbox policy save --to project --dry-run
  sudo sandbox policy save --to organisation --session ID";

/// How many lines around a change are shown.
const AROUND: usize = 2;

#[derive(Args, Debug)]
#[command(after_help = DETAILS)]
pub(crate) struct Save {
    /// The session whose answers are saved
    #[arg(long, value_name = "ID", conflicts_with = "last")]
    session: Option<String>,
    /// Use the last session that has answers (default)
    #[arg(long)]
    last: bool,
    /// Whose policy to save them to
    #[arg(long, value_enum, default_value_t = StoreWord::User)]
    to: StoreWord,
    /// Show what would be added; write nothing
    #[arg(long)]
    dry_run: bool,
}

impl Save {
    pub(crate) fn execute(self) -> anyhow::Result<()> {
        let caller = Caller::here()?;
        let session = match self.session {
            Some(session) => session,
            None => answers::last_session(&caller.places)?,
        };
        let answers = answers::read(&caller.places, &session)?;
        let stores = Stores::new(&caller);
        let store = self.to.into();
        let change = if self.dry_run {
            stores.change(&answers, store)?
        } else {
            stores.save(&answers, store)?
        };
        tell(&change, self.dry_run)
    }
}

fn tell(change: &FileChange, is_dry: bool) -> anyhow::Result<()> {
    let shown = escape::text(&change.path.to_string_lossy()).into_owned();
    if change.added.is_empty() {
        return output::print(&format!("{shown} already contains all of it"));
    }
    let lines = changes::in_text(&change.before, &change.after, Some(AROUND));
    output::print(&changes::painted(&lines, Paint::for_stdout()))?;
    if is_dry {
        return output::print(&format!("nothing was written to {shown}"));
    }
    let trust = match change.standing {
        StoreStatus::Counts => "",
        StoreStatus::TrustRenewed => "; it stays trusted",
        StoreStatus::NotTrusted => {
            "; it is not trusted, so only its denials apply: read it, then run `sandbox policy trust`"
        }
    };
    output::print(&format!("written to {shown}{trust}"))
}
