//! From what the host has to a yes, a no or a question: rules first, then the policy's `onAsk`, then people.

use super::{Fresh, GateState};
use crate::asking::{Moment, People};
use crate::gate::action::Action;
use crate::gate::grants::Lasting;
use crate::gate::inquiry::{Found, Inquiry, InquiryStage, Need};
use crate::gate::verdict::{ANSWERED_HERE, Reason, Verdict};
use crate::process::{Known, describe, is_within, process_of, program_of, was_started_since};
use palisade_ask::{Act, Asked, FileSubject, NewQuestion, Now, Subject};
use palisade_gate::{Access, Decision, PathContext, Pattern, offer};
use palisade_gate::{AccessReply, PathAccess, Wants};
use palisade_keeper::{Change, FileKind, KeeperRequest, What};
use palisade_plan::model::{Answers, Nature};
use palisade_policy::model::OnAsk;
use palisade_sys::Errno;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Directories that files were asked about in lately.
const MAX_OFFERS: usize = 256;
/// Where links of secret names led.
const MAX_BEHIND_SECRETS: usize = 4096;

impl GateState<'_> {
    pub(super) fn found(
        &mut self,
        token: u64,
        found: Found,
        needs: Vec<PathBuf>,
        at: &mut Moment<'_>,
    ) {
        let hidden: Vec<PathBuf> =
            needs.into_iter().filter(|path| !self.is_visible(path, Access::Execute)).collect();
        if !hidden.is_empty() && !self.has_room_for_needs(hidden.len()) {
            return self.look_again_later(token, at);
        }
        let looks: Vec<(u64, PathBuf)> =
            hidden.into_iter().map(|path| (self.new_token(), path)).collect();
        let Some(inquiry) = self.inquiries.get_mut(&token) else {
            return self.actions.push_back(Action::Keeper(KeeperRequest::Forget { token }));
        };
        inquiry.found = Some(found);
        inquiry.stage = InquiryStage::Looking { awaited: looks.len() };
        if looks.is_empty() {
            return self.decide(token, at);
        }
        for (need, path) in looks {
            self.need_of.insert(need, token);
            let path = path.into_os_string().into_encoded_bytes();
            let look = KeeperRequest::Look {
                token: need,
                path,
                follow: true,
                execute: false,
                change: Change::Nothing,
            };
            self.actions.push_back(Action::Keeper(look));
        }
    }

    pub(super) fn need_settled(&mut self, owner: u64, need: Option<Need>, at: &mut Moment<'_>) {
        let Some(inquiry) = self.inquiries.get_mut(&owner) else { return };
        inquiry.needs.extend(need);
        if let InquiryStage::Looking { awaited } = &mut inquiry.stage {
            *awaited = awaited.saturating_sub(1);
            if *awaited == 0 {
                self.decide(owner, at);
            }
        }
    }

    /// Everything that the host can tell is known.
    pub(super) fn decide(&mut self, token: u64, at: &mut Moment<'_>) {
        let now = at.now;
        let Some(inquiry) = self.inquiries.get_mut(&token) else { return };
        let Some(Found { path, kind }) = inquiry.found.clone() else { return self.refuse(token) };
        let access = inquiry.access();
        // Every name on the way counts: a key is one by the name that leads to it, wherever it lies.
        let worst_link = inquiry.links.iter().map(|link| self.gate.nature(link)).max();
        let worst_link = worst_link.unwrap_or(Nature::Ordinary);
        if worst_link == Nature::Secret && self.behind_secrets.len() < MAX_BEHIND_SECRETS {
            self.behind_secrets.insert(path.clone());
        }
        let nature_of = |path: &Path| {
            let is_behind = self.behind_secrets.contains(path);
            let known = if is_behind { Nature::Secret } else { Nature::Ordinary };
            self.gate.nature(path).max(known).max(worst_link)
        };
        let natures: Vec<Nature> = inquiry.paths().map(nature_of).collect();
        if natures.contains(&Nature::Never) {
            self.alert_if_ours(token);
            return self.let_go(token);
        }
        if !natures.contains(&Nature::Secret) {
            inquiry.nature = Nature::Ordinary;
        }
        let Some(inquiry) = self.inquiries.get(&token) else { return };
        let is_left_out =
            |path: &Path| self.gate.leaves_out(path) && !self.is_visible(path, access);
        if inquiry.paths().any(is_left_out) {
            return self.let_go(token);
        }
        // So does the name that would be made or renamed: it may have been denied by itself.
        let names: Vec<PathBuf> = inquiry.links.iter().cloned().chain(inquiry.entry()).collect();
        for name in &names {
            if let Decision::Denied(rule) = self.decider.decide(name, access, now.wall) {
                let verdict = Verdict::denied(Reason::Rule(rule.origin.place.clone()));
                return self.deny(token, &verdict, now);
            }
        }
        let act = self
            .inquiries
            .get(&token)
            .map(|inquiry| (inquiry.entry().unwrap_or_else(|| path.clone()), inquiry.act()));
        if act.is_some_and(|act| self.refused_acts.contains(&act)) {
            let reason = Reason::Rule(ANSWERED_HERE.to_owned());
            return self.deny(token, &Verdict::denied(reason), now);
        }
        if self.inquiries.get(&token).is_some_and(Inquiry::is_followed) {
            return self.end(token, |request| AccessReply::Named { request, for_one_call: false });
        }
        let Some(inquiry) = self.inquiries.get(&token) else { return };
        let is_secret_link = worst_link == Nature::Secret;
        let is_shown = self.is_visible(&path, access) && !inquiry.needs_parent();
        if is_shown && inquiry.needs.is_empty() && !is_secret_link {
            // Only the links that lead there are missing inside, or the caller is in a directory below the grant.
            let below = inquiry.covered_directory().filter(|directory| **directory != *path);
            let what =
                below.map_or(What::Links, |directory| What::BelowCover(directory.to_owned()));
            return self.grant(token, what, access, Lasting::Session);
        }
        if kind == FileKind::Special && !inquiry.needs_parent() {
            return self.decline(token, Reason::NotAFile, now);
        }
        let never_written = if access == Access::Write { self.never_written(token) } else { None };
        let is_there = self.inquiries.get(&token).is_some_and(Inquiry::is_there_already);
        if access == Access::Write && is_there {
            let is_never_lent = self.is_never_lent(&Found { path: path.clone(), kind });
            // Of a directory that is ours the kernel says that it cannot be written.
            if is_never_lent || never_written.is_some() {
                return self.let_go(token);
            }
        }
        if let Some((errno, reason)) = never_written {
            self.record(token, &Verdict::denied(reason), now);
            return self.end(token, |request| AccessReply::Fail { request, errno });
        }
        let Some(inquiry) = self.inquiries.get(&token) else { return };
        let wanted: Vec<PathBuf> = inquiry.paths().map(Path::to_owned).collect();
        let is_fresh = |request: &PathAccess| {
            let mut given = self
                .fresh
                .iter()
                .filter(|fresh| fresh.until > now.monotonic)
                .filter(|fresh| fresh.path == path && fresh.access.includes(access));
            // Asks the kernel, and mostly nothing was given.
            given.any(|fresh| self.is_same_use(fresh, request))
        };
        let is_fresh = inquiry.requests.iter().all(is_fresh);
        let is_makers_own = self.made.is_makers_own(inquiry, self.gate.known_callers);
        let mut is_denied =
            |path| matches!(self.decider.decide(path, access, now.wall), Decision::Denied(_));
        // What was denied since is denied.
        if (is_fresh || is_makers_own) && !wanted.iter().any(|path| is_denied(path)) {
            if is_makers_own {
                self.record(token, &Verdict::allowed(Reason::MadeByCaller), now);
            }
            return self.grant(token, What::Found, access, Lasting::Once);
        }
        let mut allowed = None;
        // Static mode shows for reading alone.
        let may_be_allowed = access != Access::Write || self.gate.uses_on_ask();
        for (path, nature) in wanted.iter().zip(natures) {
            let is_secret = nature == Nature::Secret;
            match self.decider.decide(path, access, now.wall) {
                Decision::Denied(rule) => {
                    let verdict = Verdict::denied(Reason::Rule(rule.origin.place.clone()));
                    return self.deny(token, &verdict, now);
                }
                // What is said of a directory was not said of the key that lies in it.
                Decision::Allowed(rule)
                    if may_be_allowed
                        && (!is_secret || matches!(rule.pattern, Pattern::Exact(_))) =>
                {
                    let tree = match &rule.pattern {
                        Pattern::Tree(tree) => Some(tree.clone()),
                        Pattern::Exact(_) | Pattern::Glob(_) => None,
                    };
                    // Who only reads is given no more, whatever else a rule would allow.
                    let is_more = rule.access == Access::Write && access != Access::Write;
                    let given = if is_more { access } else { rule.access };
                    allowed.get_or_insert((rule.origin.place.clone(), tree, given));
                }
                Decision::Allowed(_) | Decision::Ask => {
                    let requests = inquiry_touches(&self.inquiries, token);
                    return self.ask(token, requests, at);
                }
            }
        }
        let Some((place, tree, given)) = allowed else { return self.refuse(token) };
        let tree = tree.filter(|tree| self.may_show_whole(tree, now));
        if tree.is_none() && self.would_miss_host(token) {
            return self.deny(token, &Verdict::denied(Reason::NotWhole), now);
        }
        self.record(token, &Verdict::allowed(Reason::Rule(place)), now);
        self.grant(token, tree.map_or(What::Found, What::Directory), given, Lasting::Session);
    }

    /// No rule speaks: the policy's `onAsk`, or a person.
    pub(super) fn ask(&mut self, token: u64, requests: Vec<PathAccess>, at: &mut Moment<'_>) {
        let now = at.now;
        if self.settles_for_reading(token, at) {
            return self.decide(token, at);
        }
        let Some(inquiry) = self.inquiries.get_mut(&token) else { return };
        inquiry.stage = InquiryStage::Asked;
        let Some(found) = inquiry.found.clone() else { return self.refuse(token) };
        let access = inquiry.access();
        let (act, entry) = (inquiry.act(), inquiry.entry());
        let also: Vec<PathBuf> = inquiry.needs.iter().map(|need| need.path.clone()).collect();
        let is_revoked = inquiry.paths().any(|path| self.decider.is_revoked(path));
        let is_secret = self.is_secret(token);
        let on_ask = match self.gate.answers {
            Answers::OnAsk(on_ask) => on_ask,
            Answers::Readable(_) => return self.show_by_rule(token, now),
        };
        match on_ask {
            // Even who allows everything did not mean the keys.
            OnAsk::Allow if !is_secret && access != Access::Write && !is_revoked => {
                self.record(token, &Verdict::allowed(Reason::OnAsk), now);
                return self.grant(token, What::Found, access, Lasting::Session);
            }
            // Every tool looks there by itself; a person would only learn to say no. A program is run because somebody
            // named it.
            _ if !is_secret && access != Access::Execute && self.is_probe(token) => {
                return self.let_go(token);
            }
            _ if !is_secret && self.is_made_beside(token) => return self.let_go(token),
            OnAsk::Allow | OnAsk::Deny => return self.decline(token, Reason::OnAsk, now),
            OnAsk::Ask if at.people == People::Nobody => {
                return self.decline(token, Reason::NobodyToAsk, now);
            }
            OnAsk::Ask | OnAsk::Wait => {}
        }
        let requests = self.refuse_again(token, requests, now);
        if requests.is_empty() {
            return;
        }
        let directory = match act {
            _ if is_secret => None,
            Act::Remove | Act::Change => self.writable_parent(&found),
            _ if access == Access::Write => None,
            _ => self.offer(&found, now),
        };
        // What the question says of a directory has to be true.
        let is_listed = found.kind == FileKind::Directory && access != Access::Write;
        let is_shown = is_listed && !self.is_wide(&found);
        let is_whole = |directory: &PathBuf| {
            !self.surveyed.iter().any(|(below, whole)| !whole && below.starts_with(directory))
        };
        let mut said = is_shown.then_some(&found.path).into_iter().chain(directory.as_ref());
        let unknown = said.find(|said| !self.surveyed.contains_key(*said) && is_whole(said));
        if let Some(directory) = unknown.filter(|_| access != Access::Write).cloned() {
            return self.survey(token, directory);
        }
        let is_partly_hidden =
            self.is_partly_hidden(&found, access) || (is_listed && !is_whole(&found.path));
        let directory = directory.filter(is_whole);
        let may_be_copied = self.may_be_copied(token);
        let is_name_only = found.kind == FileKind::Directory && is_partly_hidden;
        let is_behind = self.is_behind_line(token);
        let token = self.merge(token);
        for (place, request) in requests.iter().enumerate() {
            let process = describe(request.pid, &self.roots, &request.executable, &request.cwd);
            let caller = Known::of_process(process.pid);
            let new = NewQuestion {
                request: request.id,
                subject: Subject::File(FileSubject {
                    path: found.path.clone(),
                    access: match access {
                        Access::Read => palisade_ask::Access::Read,
                        Access::Execute => palisade_ask::Access::Execute,
                        Access::Write => palisade_ask::Access::Write,
                    },
                    operation: request.call.clone(),
                    act,
                    is_directory: found.kind == FileKind::Directory,
                    entry: entry.clone(),
                    new_path: (act == Act::Rename && !request.new_path.is_empty())
                        .then(|| PathBuf::from(OsStr::from_bytes(&request.new_path))),
                    may_be_copied,
                    is_name_only,
                    also: also.clone(),
                    directory: directory.clone(),
                }),
                reason: self.why(is_secret, request, &found),
                process: Some(process),
                is_secret,
                patience: Some(Duration::from_millis(self.gate.ask_timeout_ms)),
            };
            let asked = match is_behind && !at.queue.is_open(&new) {
                true => Asked::Full,
                false => at.queue.ask(new, now),
            };
            match asked {
                Asked::New(id) => self.actions.push_back(Action::Opened(id)),
                Asked::Joined(id) => self.actions.push_back(Action::Joined(id)),
                Asked::Full => return self.put_in_line(token, &requests[place..], at),
            }
            self.callers.insert(request.id, caller);
        }
    }

    fn survey(&mut self, token: u64, directory: PathBuf) {
        if let Some(inquiry) = self.inquiries.get_mut(&token) {
            inquiry.stage = InquiryStage::Surveying;
            inquiry.surveyed = Some(directory.clone());
            self.actions.push_back(Action::Keeper(KeeperRequest::Survey { token, directory }));
        }
    }

    /// The keeper has surveyed the directory that a question is about.
    pub(super) fn has_surveyed(&mut self, token: u64, is_whole: bool, at: &mut Moment<'_>) {
        let Some(inquiry) = self.inquiries.get_mut(&token) else { return };
        let Some(directory) = inquiry.surveyed.take() else { return };
        let requests = inquiry_touches(&self.inquiries, token);
        self.know_survey(directory, is_whole);
        self.ask(token, requests, at);
    }

    /// Whether a directory could be shown as a whole when that was last tried.
    pub(super) fn know_survey(&mut self, directory: PathBuf, is_whole: bool) {
        if self.surveyed.len() >= MAX_OFFERS {
            self.surveyed.clear();
        }
        self.surveyed.insert(directory, is_whole);
    }

    /// Why it cannot be written, whatever people answer: the errno, and the reason. What a yes cannot help is not asked.
    fn never_written(&self, token: u64) -> Option<(u16, Reason)> {
        let inquiry = self.inquiries.get(&token)?;
        let refused = u16::try_from(Errno::ACCESS.raw_os_error()).unwrap_or(13);
        let path = inquiry.lent_path()?;
        if inquiry.nature == Nature::Secret || self.gate.nature(&path) != Nature::Ordinary {
            return Some((refused, Reason::SecretUnwritten));
        }
        let name = self.guard.and_then(|guard| guard.keeps_from_grant(self.gate, &path));
        if let Some(name) = name {
            return Some((refused, Reason::Protected(name)));
        }
        inquiry.unwritable.map(|errno| (errno, Reason::HostRefuses))
    }

    /// Whether a call that writes is granted reading because nobody can be asked about more: what a rule or `onAsk` lets it
    /// read does not look absent to it.
    fn settles_for_reading(&mut self, token: u64, at: &Moment<'_>) -> bool {
        let Some(inquiry) = self.inquiries.get(&token) else { return false };
        let Some(found) = inquiry.found.clone() else { return false };
        if inquiry.access() != Access::Write || inquiry.needs_parent() {
            return false;
        }
        let settles = match self.gate.answers {
            Answers::Readable(_) | Answers::OnAsk(OnAsk::Allow) => true,
            Answers::OnAsk(OnAsk::Wait) => false,
            Answers::OnAsk(OnAsk::Ask) if at.people == People::Present => false,
            Answers::OnAsk(OnAsk::Ask | OnAsk::Deny) => {
                let read = self.decider.decide(&found.path, Access::Read, at.now.wall);
                matches!(read, Decision::Allowed(_))
            }
        };
        if let Some(inquiry) = self.inquiries.get_mut(&token).filter(|_| settles) {
            inquiry.settled_for_reading = true;
        }
        settles
    }

    /// Whether something of the run's own can stand for what would be changed. A directory that shows already would lose what is
    /// in it, and so would what was granted below one.
    fn may_be_copied(&self, token: u64) -> bool {
        let Some(inquiry) = self.inquiries.get(&token) else { return false };
        let Some(found) = &inquiry.found else { return false };
        let is_on_way = || self.shown.iter().any(|shown| shown.starts_with(&found.path));
        match inquiry.act() {
            Act::Write | Act::Remove => true,
            Act::Change => found.kind == FileKind::File,
            Act::Create => {
                !self.is_visible(&found.path, Access::Read)
                    && (self.is_in_private_home(&found.path) || !is_on_way())
            }
            Act::Replace => self.is_in_private_home(&found.path),
            Act::Rename | Act::See | Act::Read | Act::Enter | Act::Execute => false,
        }
    }

    pub(super) fn is_in_private_home(&self, path: &Path) -> bool {
        self.gate.private_home.as_ref().is_some_and(|home| path.starts_with(home))
    }

    /// Whether tools look for it above every project, by the name the command used.
    fn is_probe(&self, token: u64) -> bool {
        let first = self.inquiries.get(&token).and_then(|inquiry| inquiry.requests.first());
        first.is_some_and(|request| self.gate.is_probe(Path::new(OsStr::from_bytes(&request.path))))
    }

    /// Whether a call belongs to the use that was allowed once: by the same process with the same program, or by one that it
    /// started since.
    fn is_same_use(&self, allowed: &Fresh, request: &PathAccess) -> bool {
        let pid = process_of(request.pid);
        if allowed.is_name_only && !matches!(request.wants, Wants::Look | Wants::Enter) {
            return false;
        }
        let runs_the_same =
            allowed.program.is_some() && allowed.program == program_of(allowed.to.pid);
        let is_same = match allowed.to.pid == pid {
            // Who was allowed to run something becomes another program by that, and reads it as a script.
            true => allowed.access == Access::Execute || runs_the_same,
            false => {
                runs_the_same
                    && is_within(allowed.to.pid, pid)
                    && was_started_since(pid, allowed.granted_ticks)
            }
        };
        // Asked last: while it lives, its number is nobody else's.
        is_same && (allowed.to.lives() || !self.gate.known_callers)
    }

    pub(super) fn why(&self, is_secret: bool, request: &PathAccess, found: &Found) -> String {
        if is_secret {
            return "it is on the list of secrets".to_owned();
        }
        let mut why = "nothing grants it".to_owned();
        if found.path.as_os_str().as_encoded_bytes() != request.path {
            why.push_str("; it was reached as ");
            why.push_str(&String::from_utf8_lossy(&request.path));
        }
        let is_changed = request.wants.is_change();
        if !is_changed && self.is_wide(found) {
            why.push_str("; something in it is hidden, so only that it exists can be shown");
        } else if !is_changed && found.kind == FileKind::Directory {
            why.push_str("; everything below it would show, to whoever keeps it open for longer");
        }
        why
    }

    /// A directory that holds, or may come to hold, what nobody would give away with it.
    pub(super) fn is_wide(&self, found: &Found) -> bool {
        let is_top_level = is_top_level(&found.path);
        let is_denied_in_part = || self.decider.denies_within(&found.path, Now::read().wall);
        found.kind == FileKind::Directory
            && (is_top_level || self.gate.holds_hidden(&found.path) || is_denied_in_part())
    }

    /// Whether nobody is asked about creating a single name in it: it is at the top of the host, or the private home has room
    /// for what is created beside the hidden files.
    pub(super) fn is_never_lent(&self, found: &Found) -> bool {
        self.is_wide(found) && (is_top_level(&found.path) || self.is_in_private_home(&found.path))
    }

    /// Whether nothing in a directory is hidden by anybody.
    pub(super) fn may_show_whole(&self, directory: &Path, now: Now) -> bool {
        !self.gate.holds_hidden(directory)
            && !self.is_removed_in_part(directory)
            && !self.private_directories.are_within(directory)
            && !self.decider.denies_within(directory, now.wall)
    }

    /// Whether of a directory only the name can be granted for this.
    pub(super) fn is_partly_hidden(&self, found: &Found, access: Access) -> bool {
        self.is_wide(found)
            || (access != Access::Write && self.is_removed_in_part(&found.path))
            || (found.kind == FileKind::Directory
                && self.private_directories.are_within(&found.path))
    }

    /// Whether the call would write to a directory that cannot be shown because the command has files of its own in it: what
    /// it writes would be beside those, and be discarded with them.
    pub(super) fn would_miss_host(&self, token: u64) -> bool {
        let Some(inquiry) = self.inquiries.get(&token) else { return false };
        let is_written = inquiry.access() == Access::Write && !inquiry.needs_parent();
        inquiry.found.as_ref().is_some_and(|found| {
            is_written
                && found.kind == FileKind::Directory
                && !self.is_wide(found)
                && self.private_directories.are_within(&found.path)
        })
    }

    /// Whether something below it was removed for this run alone: shown whole, it would be there again.
    pub(super) fn is_removed_in_part(&self, directory: &Path) -> bool {
        self.gone.iter().any(|path| path.starts_with(directory))
    }

    /// The directory that something is removed from, if all of it may be made writable: who removes a tree is not to be asked
    /// about each file in it.
    fn writable_parent(&self, found: &Found) -> Option<PathBuf> {
        let path = found.path.parent()?.to_owned();
        let is_kept = |path: &Path| {
            self.guard.is_some_and(|guard| guard.keeps_from_grant(self.gate, path).is_some())
        };
        let directory = Found { path: path.clone(), kind: FileKind::Directory };
        let hides = self.private_directories.are_within(&path);
        (!self.is_wide(&directory) && !hides && !is_kept(&path)).then_some(path)
    }

    /// For something that is asked about and no secret. What the plan says to that does not change.
    pub(super) fn offer(&mut self, found: &Found, now: Now) -> Option<PathBuf> {
        let nearest = match found.kind {
            FileKind::Directory => &found.path,
            FileKind::File | FileKind::Link | FileKind::Special => found.path.parent()?,
        };
        let known = self.offers.get(nearest).cloned();
        let offered = known.unwrap_or_else(|| {
            let offered = self.offered_by_plan(nearest);
            if self.offers.len() >= MAX_OFFERS {
                self.offers.clear();
            }
            self.offers.insert(nearest.to_owned(), offered.clone());
            offered
        });
        offered.filter(|directory| {
            !self.decider.denies_within(directory, now.wall)
                && !self.is_removed_in_part(directory)
                && !self.private_directories.are_within(directory)
        })
    }

    fn offered_by_plan(&self, directory: &Path) -> Option<PathBuf> {
        let around = PathContext {
            home: self.home.as_deref(),
            mounted: &self.gate.mounted,
            never: &self.gate.never,
            secrets: &self.gate.secrets,
        };
        let offered = offer(directory, palisade_gate::FileKind::Directory, &around);
        offered.filter(|directory| !self.gate.holds_hidden(directory))
    }

    /// Whether a path of the host can be seen inside by now.
    pub(super) fn is_visible(&self, path: &Path, access: Access) -> bool {
        let is_granted = |above: &Path| {
            self.granted
                .get(above)
                .is_some_and(|given| given.iter().any(|given| given.includes(access)))
        };
        if path.ancestors().any(is_granted) {
            return true;
        }
        let longest = |places: &[PathBuf]| {
            let above = places.iter().filter(|place| path.starts_with(place));
            above.map(|place| place.components().count()).max().unwrap_or(0)
        };
        longest(&self.gate.mounted) > longest(&self.gate.grounds)
    }

    pub(super) fn is_secret(&self, token: u64) -> bool {
        self.inquiries.get(&token).is_some_and(|inquiry| inquiry.nature == Nature::Secret)
    }
}

/// `/` and the directories in it.
fn is_top_level(path: &Path) -> bool {
    path.components().count() <= 2
}

fn inquiry_touches(inquiries: &HashMap<u64, Inquiry>, token: u64) -> Vec<PathAccess> {
    inquiries.get(&token).map(|inquiry| inquiry.requests.clone()).unwrap_or_default()
}
