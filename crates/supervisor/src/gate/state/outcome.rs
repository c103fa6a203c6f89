//! Carrying out what was decided: grants, refusals, and what is recorded of them.

use super::{Fresh, GateState};
use crate::gate::action::Action;
use crate::gate::grants::{Lasting, Part, refusal, takes_descriptor};
use crate::gate::inquiry::{Found, Inquiry};
use crate::gate::made_files::opens_file;
use crate::gate::verdict::{Reason, Verdict, asked_access, granted_access, rule_of};
use crate::process::{Held, Known, program_of, ticks_since_boot};
use palisade_ask::{Act, Decided, Lifetime, Now, Scope, Source, Subject};
use palisade_gate::Access;
use palisade_gate::{AccessReply, PathAccess, Wants};
use palisade_keeper::{FileKind, KeeperRequest, What};
use palisade_plan::model::Nature;
use palisade_record::EventKind;
use palisade_record::indicators::{SECRET, TRAVERSAL};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long what was allowed once is not asked about again. The time that a program waits for other answers does not count.
const STILL_FRESH: Duration = Duration::from_secs(5);
/// With that time.
const MAX_PENDING_USE: Duration = Duration::from_mins(1);
/// Each holds a descriptor; whoever finds no room is asked about again.
const MAX_FRESH: usize = 128;

/// Whether a no is about this one change of a name. A rule would deny more: all writing to the file, or to the directory.
fn is_about_name(act: Act) -> bool {
    matches!(act, Act::Create | Act::Rename | Act::Remove | Act::Change)
}

impl GateState<'_> {
    /// A question was answered, by whomever.
    pub(in crate::gate) fn carry_out(&mut self, decided: Decided, now: Now) {
        let Subject::File(file) = &decided.question.subject else { return };
        let lasting = match decided.answer.lifetime() {
            Lifetime::Once => Lasting::Once,
            Lifetime::Session | Lifetime::Always(_) => Lasting::Session,
        };
        let scope = decided.answer.scope();
        let is_for_directory = scope.is_some_and(Scope::is_directory);
        let directory = file.directory.clone().filter(|_| is_for_directory);
        // Something in it may have been denied since it was offered.
        let directory = directory.filter(|directory| self.may_show_whole(directory, now));
        let may_last = file.may_last() || directory.is_some();
        let is_denied = !decided.answer.is_allowed();
        if is_denied && decided.answer.lifetime() == Lifetime::Session && is_about_name(file.act) {
            self.refused_acts.insert((file.named().to_owned(), file.act));
        } else if lasting == Lasting::Session
            && scope != Some(Scope::PrivateCopy)
            && (may_last || is_denied)
        {
            let kind = if file.is_directory { FileKind::Directory } else { FileKind::File };
            let is_wide =
                file.is_name_only || self.is_wide(&Found { path: file.path.clone(), kind });
            let rules = rule_of(&decided, directory.as_deref(), is_wide);
            for rule in rules {
                match decided.answer.lifetime() {
                    Lifetime::Always(store) => {
                        self.actions.push_back(Action::Save(Box::new(rule.clone()), store));
                    }
                    Lifetime::Once | Lifetime::Session => self.answered.push(rule.clone()),
                }
                self.decider.add(rule);
            }
        }
        let waiting = decided.question.requests.iter();
        let callers: Vec<Known> =
            waiting.filter_map(|request| self.callers.remove(request)).collect();
        let access = asked_access(file.access);
        let waited = decided.at.duration_since(decided.question.asked_at).unsigned_abs();
        self.keep_fresh(&callers, waited, now);
        let is_name_only = matches!(file.act, Act::See | Act::Enter) && file.is_directory;
        // Writing once is for one call.
        if lasting == Lasting::Once && decided.answer.is_allowed() && access != Access::Write {
            let granted_ticks = ticks_since_boot();
            let fresh = |known: Known| {
                let to = Held::of(&known)?;
                Some(Fresh {
                    program: program_of(to.pid),
                    to,
                    path: file.path.clone(),
                    access,
                    is_name_only,
                    granted_at: now.monotonic,
                    granted_ticks,
                    until: now.monotonic + STILL_FRESH,
                    counted_until: now.monotonic,
                })
            };
            // Who has ended makes no more calls, and is not to be held.
            self.fresh.retain(|fresh| fresh.until > now.monotonic && fresh.to.lives());
            let room = MAX_FRESH.saturating_sub(self.fresh.len());
            self.fresh.extend(callers.into_iter().filter_map(fresh).take(room));
        }
        let verdict = Verdict::answered(&decided);
        let mut tokens: Vec<u64> = self
            .inquiries
            .values()
            .filter(|inquiry| {
                let mut waiting = inquiry.requests.iter();
                waiting.any(|request| decided.question.requests.contains(&request.id))
            })
            .map(|inquiry| inquiry.token)
            .collect();
        tokens.sort_unstable();
        for token in tokens {
            let lasts = lasting == Lasting::Session && scope != Some(Scope::PrivateCopy);
            if decided.answer.is_allowed() {
                if lasts && directory.is_none() && self.would_miss_host(token) {
                    self.deny(token, &Verdict::denied(Reason::NotWhole), now);
                    continue;
                }
                self.record(token, &verdict, now);
                if scope == Some(Scope::PrivateCopy) {
                    self.keep_copy(token);
                    continue;
                }
                let what = directory.clone().map_or(What::Found, What::Directory);
                self.grant(token, what, granted_access(&decided), lasting);
            } else if decided.source == Source::NobodyToAsk {
                self.record(token, &verdict, now);
                self.refuse_unattended(token);
            } else {
                self.deny(token, &verdict, now);
            }
        }
        self.actions.push_back(Action::Closed(Box::new(decided)));
    }

    /// The process that waited for an answer could not use what it was allowed before. What it waited before that was
    /// allowed does not count, nor does any time twice, and nothing that is over begins anew.
    fn keep_fresh(&mut self, waiting: &[Known], waited: Duration, now: Now) {
        let now = now.monotonic;
        let asked_at = now.checked_sub(waited).unwrap_or(now);
        for fresh in &mut self.fresh {
            let from = asked_at.max(fresh.counted_until);
            let has_waited = waiting.iter().any(|known| known.pid == fresh.to.pid);
            if has_waited && fresh.until > from {
                let latest = (now + STILL_FRESH).min(fresh.granted_at + MAX_PENDING_USE);
                fresh.until = (fresh.until + now.saturating_duration_since(from)).min(latest);
                fresh.counted_until = now;
            }
        }
        self.fresh.retain(|fresh| fresh.until > now);
    }

    /// Carries out a yes: for this access, whatever was asked for.
    pub(super) fn grant(&mut self, token: u64, what: What, access: Access, lasting: Lasting) {
        let Some(inquiry) = self.inquiries.remove(&token) else { return };
        let Some(found) = &inquiry.found else { return };
        // To see that a directory is there, or to stand in it, takes nothing of what is in it.
        let needs_no_content =
            |request: &PathAccess| matches!(request.wants, Wants::Look | Wants::Enter);
        let is_name_enough = lasting == Lasting::Once
            && found.kind == FileKind::Directory
            && inquiry.requests.iter().all(needs_no_content);
        let is_partly_hidden = self.is_partly_hidden(found, access);
        let is_less = what == What::Found && (is_name_enough || is_partly_hidden);
        // A process stays in the directory that it enters. What is in it is asked about.
        let is_entered = inquiry.requests.iter().any(|request| request.wants == Wants::Enter);
        let lasting = match is_name_enough && is_entered {
            true => Lasting::Session,
            false => lasting,
        };
        let is_there_already = what == What::Found
            && inquiry.needs.is_empty()
            && !inquiry.links.is_empty()
            && self.is_visible(&found.path, access);
        if inquiry.needs_parent() && what == What::Found {
            let path = found.path.clone();
            self.take_away(&path);
            return self.grants.lend(token, true, &path, &inquiry.requests, &mut self.actions);
        }
        let what = if is_there_already {
            // Mounted once more, it would be read-only where it was writable.
            What::Links
        } else if is_less {
            What::Name
        } else {
            what
        };
        if lasting == Lasting::Once && access == Access::Write {
            let Some(path) = inquiry.lent_path() else {
                let refused = inquiry.requests.iter().map(|request| refusal(request.id));
                self.actions.extend(refused.map(|reply| Action::Reply(reply, None)));
                return self.actions.push_back(Action::Keeper(KeeperRequest::Forget { token }));
            };
            self.made.expect(&inquiry, &path);
            return self.grants.lend(token, false, &path, &inquiry.requests, &mut self.actions);
        }
        let is_plain_file = found.kind == FileKind::File && what == What::Found;
        let takes_descriptors = inquiry.requests.iter().all(takes_descriptor);
        if lasting == Lasting::Once && is_plain_file && takes_descriptors {
            return self.grants.open(token, &inquiry.requests, &mut self.actions);
        }
        if access != Access::Write {
            self.note_reading_only(&inquiry);
        }
        let shown_at = match &what {
            What::Directory(directory) => directory.clone(),
            _ => found.path.clone(),
        };
        let kept = self.granted_at(&shown_at);
        self.shown.insert(shown_at);
        let asked_as = inquiry.requests.iter().map(|request| request.path.clone());
        self.shown.extend(asked_as.map(|path| PathBuf::from(OsString::from_vec(path))));
        if lasting == Lasting::Once && found.kind == FileKind::Directory {
            self.tell_of_shown_once(&inquiry, found);
        }
        let first = Part { token, what, found: found.clone(), access, kept };
        let needs = inquiry.needs.iter().map(|need| Part {
            token: need.token,
            what: What::Found,
            found: Found { path: need.path.clone(), kind: FileKind::File },
            access: Access::Execute,
            kept: Vec::new(),
        });
        let needs = needs.collect();
        for need in &inquiry.needs {
            self.need_of.remove(&need.token);
        }
        self.grants.graft(first, needs, inquiry.requests, lasting, &mut self.actions);
    }

    /// The broker judges what is changed in a directory that was opened once; it has to know which one that is.
    fn tell_of_shown_once(&mut self, inquiry: &Inquiry, found: &Found) {
        let is_noticed_elsewhere = inquiry.requests.iter().any(|request| request.may_be_served);
        let Some(identity) = inquiry.identity.filter(|_| is_noticed_elsewhere) else { return };
        let path = found.path.as_os_str().as_encoded_bytes().to_vec();
        let told = AccessReply::ShownOnce { path, directory: (identity.0, identity.1) };
        self.actions.push_back(Action::Reply(told, None));
    }

    /// Carries out "keep a private copy": what the host has stays as it is.
    fn keep_copy(&mut self, token: u64) {
        let Some(inquiry) = self.inquiries.get(&token) else { return };
        let Some(found) = inquiry.found.clone() else { return };
        let act = inquiry.act();
        self.take_away(&found.path);
        match act {
            Act::Remove => {
                self.gone.insert(found.path);
                self.end(token, |request| AccessReply::Pretend { request });
            }
            // It is made in the private home directory.
            Act::Replace => {
                self.keep_directory_private(&found.path, found.kind == FileKind::Directory);
                self.end(token, |request| AccessReply::Continue { request });
            }
            _ => {
                let path = found.path.display();
                self.tally.note(format!(
                    "what was changed in {path} went to a private copy and is gone; \
                     --rw {path} keeps it"
                ));
                self.shown.insert(found.path.clone());
                if found.kind == FileKind::Directory && self.is_in_private_home(&found.path) {
                    self.keep_private(&found.path);
                }
                let Some(inquiry) = self.inquiries.remove(&token) else { return };
                let (what, access, kept) = (What::Copy, Access::Write, Vec::new());
                let part = Part { token, what, found, access, kept };
                let lasting = Lasting::Session;
                let rest = VecDeque::new();
                self.grants.graft(part, rest, inquiry.requests, lasting, &mut self.actions);
            }
        }
    }

    /// The command has, or is about to have, something of its own by this name.
    fn keep_directory_private(&mut self, name: &Path, may_be_directory: bool) {
        let Some(directory) = name.parent().filter(|above| self.is_in_private_home(above)) else {
            return;
        };
        let found = Found { path: directory.to_owned(), kind: FileKind::Directory };
        // Of a directory such as `~/.config` only parts are granted: each that is a directory is the command's by itself.
        let is_by_itself = may_be_directory && self.is_wide(&found);
        self.keep_private(if is_by_itself { name } else { directory });
    }

    fn keep_private(&mut self, directory: &Path) {
        if let Some(beyond) = self.private_directories.insert(directory) {
            let beyond = beyond.display();
            self.tally.note(format!(
                "the command created files in very many directories of its private home; \
                 no directory in {beyond} was granted as a whole after that"
            ));
        }
    }

    /// Takes away what was granted at this very path: it is not what the host has there any more.
    fn take_away(&mut self, path: &Path) {
        self.granted.remove(path);
        let grafts = self.standing.remove(path).unwrap_or_default();
        // The last one stands on the others.
        let ungraft = |graft| Action::Keeper(KeeperRequest::Ungraft { graft });
        self.actions.extend(grafts.into_iter().rev().map(ungraft));
    }

    /// What is granted there already: a new mount on top of it takes nothing away.
    fn granted_at(&self, path: &Path) -> Vec<Access> {
        path.ancestors().filter_map(|above| self.granted.get(above)).flatten().copied().collect()
    }

    /// A grant is for reading: who wanted to write should know how that is granted. Not who finds a name taken, and would
    /// have written nothing.
    fn note_reading_only(&mut self, inquiry: &Inquiry) {
        let Some(found) = &inquiry.found else { return };
        if inquiry.settled_for_reading {
            let verdict = Verdict::denied(Reason::ReadingOnly);
            let touched = verdict.touched(found, inquiry, inquiry.nature == Nature::Secret);
            self.tally.count(false, touched);
        }
    }

    /// Carries out a no.
    pub(super) fn deny(&mut self, token: u64, verdict: &Verdict, now: Now) {
        self.record(token, verdict, now);
        if let Some(inquiry) = self.inquiries.get(&token).filter(|_| verdict.is_meant()) {
            self.refused_callers.refuse(inquiry, now.monotonic);
        }
        self.refuse(token);
    }

    /// Refuses those of the calls that only look at what their process was refused to change, and gives the others: people
    /// are asked about them. That no is in the log already.
    pub(super) fn refuse_again(
        &mut self,
        token: u64,
        requests: Vec<PathAccess>,
        now: Now,
    ) -> Vec<PathAccess> {
        let Some(inquiry) = self.inquiries.get_mut(&token) else { return requests };
        let Some(Found { path, .. }) = &inquiry.found else { return requests };
        let is_refused =
            |request: &PathAccess| self.refused_callers.has(request, path, now.monotonic);
        let (refused, asked): (Vec<_>, Vec<_>) = requests.into_iter().partition(is_refused);
        inquiry.requests.retain(|waiting| refused.iter().all(|request| request.id != waiting.id));
        let replies = refused.iter().map(|request| Action::Reply(refusal(request.id), None));
        self.actions.extend(replies);
        if inquiry.requests.is_empty() {
            self.forget(token);
        }
        asked
    }

    /// Nobody can be asked: what is not granted does not exist, but a secret that was named is refused.
    pub(super) fn decline(&mut self, token: u64, reason: Reason, now: Now) {
        self.record(token, &Verdict::denied(reason), now);
        self.refuse_unattended(token);
    }

    fn refuse_unattended(&mut self, token: u64) {
        if self.is_secret(token) { self.refuse(token) } else { self.let_go(token) }
    }

    /// Whether something is to be created in a directory that nobody is asked about: `~/.local`, say. In the private home it is
    /// created, and reported as discarded.
    pub(super) fn is_made_beside(&self, token: u64) -> bool {
        let Some(inquiry) = self.inquiries.get(&token) else { return false };
        let is_written = inquiry.requests.iter().all(|request| request.wants.is_change())
            && !inquiry.needs_parent();
        is_written && inquiry.found.as_ref().is_some_and(|found| self.is_never_lent(found))
    }

    /// Nothing is there: the kernel says so, or creates it.
    pub(super) fn let_go(&mut self, token: u64) {
        if let Some(request) =
            self.inquiries.get(&token).and_then(|inquiry| inquiry.requests.first())
        {
            let created = request.missing_name().filter(|_| request.wants.creates());
            let is_last = |name: &PathBuf| name.as_os_str().as_encoded_bytes() == request.path;
            if let Some(created) = created.filter(is_last) {
                let is_file = opens_file(request);
                self.keep_directory_private(&created, !is_file);
            }
        }
        self.end(token, |request| AccessReply::Absent { request });
    }

    pub(super) fn refuse(&mut self, token: u64) {
        self.end(token, refusal);
    }

    pub(super) fn end(&mut self, token: u64, reply: impl Fn(u64) -> AccessReply) {
        let Some(inquiry) = self.inquiries.get(&token) else { return };
        let replies = inquiry.requests.iter().map(|request| Action::Reply(reply(request.id), None));
        self.actions.extend(replies);
        self.forget(token);
    }

    /// The keeper need not hold it any longer.
    pub(super) fn forget(&mut self, token: u64) {
        let needs = self.inquiries.remove(&token).map(|inquiry| inquiry.needs).unwrap_or_default();
        self.need_of.retain(|_, owner| *owner != token);
        for token in std::iter::once(token).chain(needs.into_iter().map(|need| need.token)) {
            self.actions.push_back(Action::Keeper(KeeperRequest::Forget { token }));
        }
    }

    pub(super) fn forget_unused(&mut self, token: u64) {
        if !self.grants.uses(token) {
            self.actions.push_back(Action::Keeper(KeeperRequest::Forget { token }));
        }
    }

    /// Somebody looks for what is ours.
    pub(super) fn alert_if_ours(&mut self, token: u64) {
        let Some(inquiry) = self.inquiries.get(&token) else { return };
        let is_ours = |path: &Path| self.gate.own.iter().any(|own| path.starts_with(own));
        let Some(path) = inquiry.paths().find(|path| is_ours(path)).map(Path::to_owned) else {
            return;
        };
        let Some(caller) = inquiry.requests.first() else { return };
        let (executable, pid) = (caller.executable.clone(), caller.pid);
        self.looked_at_own(&path, &executable, pid);
    }

    pub(crate) fn looked_at_own(&mut self, path: &Path, executable: &[u8], pid: u32) {
        let by = String::from_utf8_lossy(executable);
        let attempt = TRAVERSAL.attempt(&format!("{} by {by}", path.display()), Some(pid));
        self.actions.push_back(Action::Record(EventKind::EscapeAttempt(attempt)));
    }

    pub(super) fn record(&mut self, token: u64, verdict: &Verdict, now: Now) {
        let is_secret = self.is_secret(token);
        let Some(inquiry) = self.inquiries.get(&token) else { return };
        let Some(found) = &inquiry.found else { return };
        let touched = verdict.touched(found, inquiry, is_secret);
        self.tally.count(verdict.is_allowed, touched);
        let event = verdict.event(found, inquiry, now.monotonic);
        if is_secret && !verdict.is_allowed {
            let attempt = SECRET.attempt(
                &format!("{} by {}", event.path, event.executable),
                event.pids.first().copied(),
            );
            self.actions.push_back(Action::Record(EventKind::EscapeAttempt(attempt)));
        }
        let recorded = self.records.admit(event, verdict.by_person(), now.monotonic);
        self.actions.extend(recorded.map(Action::Record));
    }
}
