//! The gate's state: what was touched, what the host has there, what the rules or a person say about it.
//!
//! It moves no byte itself. Messages come in, [`Action`]s go out, and whoever holds the sockets carries them
//! out; so every order of events can be tested. It never grants without a rule or an answer that says so, and
//! what it cannot make sense of is denied.

mod deciding;
mod outcome;
mod revoking;
mod showing;
mod waiting_line;

pub(super) use revoking::Revocation;

use super::action::Action;
use super::grants::{Grants, Standing};
use super::inquiry::{Found, Inquiry, InquiryStage, Need};
use super::made_files::MadeFiles;
use super::private_directories::PrivateDirectories;
use super::records::AccessRecords;
use super::refused_callers::RefusedCallers;
use super::tally::Tally;
use super::verdict::{Reason, Verdict};
use crate::asking::Moment;
use crate::log_budget::Excess;
use crate::process::{Held, Known};
use palisade_ask::{Act, Answer, Lifetime, Now, QuestionId, Queue, Source};
use palisade_gate::{Access, Decider, Rule};
use palisade_gate::{AccessReply, PathAccess, Wants};
use palisade_keeper::{Change, FileKind, KeeperEvent, KeeperRequest};
use palisade_plan::model::{Answers, Gate, Guard};
use palisade_policy::model::OnAsk;
use palisade_sys::{Errno, FileIdentity};
use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// So many decisions are remembered by path.
const MAX_REMEMBERED: usize = 4096;

/// What was allowed once, and to which process. People answer for one use of a file, and a program makes many calls for it:
/// it looks, follows links, opens, looks again, and starts helpers that do the same. So it holds for that process while it
/// runs the same program, and for those it starts from then on, for a short time.
#[derive(Debug)]
struct Fresh {
    to: Held,
    /// What the process ran when it was answered.
    program: Option<(u64, u64)>,
    path: PathBuf,
    access: Access,
    /// Whether only that a directory is there was shown, and nothing of what is in it.
    is_name_only: bool,
    granted_at: Instant,
    /// The same by the clock of [`crate::process::ticks_since_boot`].
    granted_ticks: u64,
    until: Instant,
    /// Until when waiting for other answers was taken into account.
    counted_until: Instant,
}

#[derive(Debug)]
pub(super) struct GateState<'p> {
    gate: &'p Gate,
    home: Option<PathBuf>,
    /// Names that the host would run later (FS-9): never written, so never asked about.
    guard: Option<&'p Guard>,
    /// Pid 1 of the sandbox, on the host.
    roots: Vec<u32>,
    decider: Decider,
    inquiries: HashMap<u64, Inquiry>,
    /// Who waits for an answer, by touch, and with which program.
    callers: HashMap<u64, Known>,
    /// The directory that is offered instead of something in this one, if any.
    offers: HashMap<PathBuf, Option<PathBuf>>,
    /// Whether these directories could be shown as a whole when that was last asked.
    surveyed: HashMap<PathBuf, bool>,
    /// Tokens of what an inquiry needs besides, and whose they are.
    need_of: HashMap<u64, u64>,
    grants: Grants,
    /// What stays granted, with everything below.
    granted: HashMap<PathBuf, Vec<Access>>,
    /// The keeper's numbers of what stands at these very paths.
    standing: HashMap<PathBuf, Vec<u64>>,
    /// What is being taken back.
    leaving: Vec<revoking::Leaving>,
    /// Where the command has files of its own in its private home.
    private_directories: PrivateDirectories,
    /// What is removed for the run alone.
    gone: HashSet<PathBuf>,
    /// Names that people did not want created, renamed, removed or changed in this session. No rules: those would keep the
    /// directories that the names are in from being granted.
    refused_acts: HashSet<(PathBuf, Act)>,
    /// Who was refused such a change.
    refused_callers: RefusedCallers,
    /// Calls whose questions find no room yet, and those that the keeper has no room for.
    in_line: VecDeque<PathAccess>,
    unlooked: VecDeque<PathAccess>,
    /// Where something was put into the view: directories on the way were made for it.
    pub(super) shown: HashSet<PathBuf>,
    /// Where a link of a secret name led, which the plan did not know: a secret under its own name from then on.
    behind_secrets: HashSet<PathBuf>,
    /// What was allowed once, to whom, a moment ago.
    fresh: Vec<Fresh>,
    made: MadeFiles,
    /// What people answered for the session.
    pub(super) answered: Vec<Rule>,
    next_token: u64,
    pub(super) actions: VecDeque<Action>,
    pub(super) tally: Tally,
    pub(super) records: AccessRecords,
}

impl<'p> GateState<'p> {
    pub(super) fn new(
        gate: &'p Gate,
        home: Option<PathBuf>,
        rules: Vec<Rule>,
        excess: Excess,
        guard: Option<&'p Guard>,
    ) -> Self {
        Self {
            gate,
            home,
            guard,
            roots: Vec::new(),
            decider: Decider::new(rules, MAX_REMEMBERED),
            inquiries: HashMap::new(),
            callers: HashMap::new(),
            offers: HashMap::new(),
            surveyed: HashMap::new(),
            need_of: HashMap::new(),
            grants: Grants::new(gate.executes_written),
            granted: HashMap::new(),
            standing: HashMap::new(),
            leaving: Vec::new(),
            private_directories: PrivateDirectories::default(),
            gone: HashSet::new(),
            refused_acts: HashSet::new(),
            refused_callers: RefusedCallers::default(),
            in_line: VecDeque::new(),
            unlooked: VecDeque::new(),
            shown: HashSet::new(),
            behind_secrets: HashSet::new(),
            fresh: Vec::new(),
            made: MadeFiles::default(),
            answered: Vec::new(),
            next_token: 1,
            actions: VecDeque::new(),
            tally: Tally::default(),
            records: AccessRecords::new(excess),
        }
    }

    pub(super) fn set_roots(&mut self, roots: Vec<u32>) {
        self.roots = roots;
    }

    /// What the policy says of questions; static mode has none.
    pub(super) fn on_ask(&self) -> OnAsk {
        match self.gate.answers {
            Answers::OnAsk(on_ask) => on_ask,
            Answers::Readable(_) => OnAsk::Deny,
        }
    }

    /// A call waits for something that is missing inside.
    pub(super) fn touched(&mut self, request: PathAccess, at: &mut Moment<'_>) {
        if let Some(missing) = request.missing_name() {
            self.private_directories.remove_below(&missing);
        }
        if !self.takes_old_place(&request) {
            self.admit(request, false, at);
        }
    }

    /// The same for a call that may have waited for its turn: what was missing when it was made may be there by now.
    fn admit(&mut self, request: PathAccess, has_waited: bool, at: &mut Moment<'_>) {
        let is_gone = self.gone.contains(Path::new(OsStr::from_bytes(&request.path)));
        if is_gone || self.is_in_commands_own(&request) || self.lists_private(&request) {
            let request = request.id;
            return self.actions.push_back(Action::Reply(AccessReply::Absent { request }, None));
        }
        if let Some(inquiry) = self.inquiries.values_mut().find(|known| known.serves(&request)) {
            inquiry.requests.push(request.clone());
            inquiry.has_waited |= has_waited;
            if inquiry.stage == InquiryStage::Asked {
                let token = inquiry.token;
                self.ask(token, vec![request], at);
            }
            return;
        }
        if !self.has_free_token() {
            return self.look_later(request, at);
        }
        let token = self.new_token();
        let (path, follow) = (request.path.clone(), request.follow);
        let change = match request.wants {
            Wants::Rename | Wants::Remove => Change::Name,
            Wants::Change => Change::Attributes,
            wants if wants.is_change() => Change::Content,
            _ => Change::Nothing,
        };
        let mut inquiry = Inquiry::new(token, request, at.now.monotonic);
        inquiry.has_waited = has_waited;
        let execute = inquiry.access() == Access::Execute;
        self.inquiries.insert(token, inquiry);
        self.actions.push_back(Action::Keeper(KeeperRequest::Look {
            token,
            path,
            follow,
            execute,
            change,
        }));
    }

    /// To make something, a directory has to be there: of what a call that writes names, the deepest that the host has
    /// is asked about. Whether there is more to look for.
    fn looks_further_up(&mut self, token: u64) -> bool {
        let Some(inquiry) = self.inquiries.get_mut(&token) else { return false };
        let Some(path) = inquiry.next_above(self.gate.private_home.as_deref()) else {
            return false;
        };
        let change = Change::Content;
        let look = KeeperRequest::Look { token, path, follow: true, execute: false, change };
        self.actions.push_back(Action::Keeper(look));
        true
    }

    /// Whether it is missing in a directory that the command made in its private home.
    fn is_in_commands_own(&self, request: &PathAccess) -> bool {
        let shown = self.shown.iter().map(PathBuf::as_path);
        request
            .existing_directory()
            .is_some_and(|directory| self.gate.is_made_by_command(directory, shown))
    }

    /// Whether a directory is listed that holds private files: the list is its own.
    fn lists_private(&self, request: &PathAccess) -> bool {
        let listed =
            request.existing_directory().filter(|_| request.existing == request.path.len());
        listed.is_some_and(|directory| self.private_directories.are_within(directory))
    }

    /// The keeper said something; `file` came with it.
    pub(super) fn told(&mut self, told: KeeperEvent, file: Option<OwnedFd>, at: &mut Moment<'_>) {
        match told {
            KeeperEvent::Found(palisade_keeper::Found {
                token,
                path,
                kind,
                links,
                needs,
                unwritable,
                identity,
            }) => {
                let owner = self.need_of.get(&token).copied().unwrap_or(token);
                if let Some(inquiry) = self.inquiries.get_mut(&owner) {
                    inquiry.links.extend(links.into_iter().map(|(place, _)| place));
                }
                match self.need_of.get(&token) {
                    Some(owner) => {
                        // Nothing but a file can be what runs another.
                        let need = (kind == FileKind::File).then_some(Need { token, path });
                        self.need_settled(*owner, need, at);
                    }
                    None => {
                        let Some(inquiry) = self.inquiries.get_mut(&token) else {
                            return self
                                .actions
                                .push_back(Action::Keeper(KeeperRequest::Forget { token }));
                        };
                        inquiry.identity = identity;
                        if inquiry.is_renamed() {
                            inquiry.found = Some(Found { path: path.clone(), kind });
                            inquiry.nature = self.gate.nature(&path);
                            let parent = path.parent().unwrap_or(&path).to_owned();
                            let directory = Found { path: parent, kind: FileKind::Directory };
                            let hides = self.private_directories.are_within(&directory.path);
                            if !self.is_wide(&directory) && !hides && self.looks_further_up(token) {
                                return;
                            }
                            // The directory cannot be granted as a whole, and less would not do.
                            let verdict = Verdict::denied(Reason::NotWhole);
                            return self.deny(token, &verdict, at.now);
                        }
                        if let Some(inquiry) = self.inquiries.get_mut(&token) {
                            inquiry.unwritable = unwritable;
                        }
                        self.found(token, Found { path, kind }, needs, at);
                    }
                }
            }
            KeeperEvent::Absent { token } => match self.need_of.remove(&token) {
                Some(owner) => self.need_settled(owner, None, at),
                None if self.looks_further_up(token) => {}
                None => self.let_go(token),
            },
            KeeperEvent::Grafted { token, graft } => {
                let shown = self.grants.grafted(token, graft, at.now.monotonic, &mut self.actions);
                for Standing { path, access, graft } in shown {
                    // What was granted below it with other rights is covered, and asked about again.
                    self.granted.retain(|below, _| *below == path || !below.starts_with(&path));
                    self.standing.entry(path.clone()).or_default().push(graft);
                    let given = self.granted.entry(path).or_default();
                    if !given.contains(&access) {
                        given.push(access);
                    }
                }
                self.forget_unused(token);
            }
            KeeperEvent::Surveyed { token, is_whole } => self.has_surveyed(token, is_whole, at),
            KeeperEvent::NotWhole { token } => {
                let directory = self.grants.not_whole(token, &mut self.actions);
                directory.into_iter().for_each(|directory| self.know_survey(directory, false));
                self.forget_unused(token);
            }
            KeeperEvent::Opened { token } => {
                self.grants.opened(token, file, &mut self.actions);
                self.forget_unused(token);
            }
            KeeperEvent::Failed { token, step, errno } => {
                let errno = Errno::from_raw_os_error(errno.into());
                let name = palisade_sys::errno_name(errno);
                if self.grants.failed(token, &mut self.actions) {
                    self.tally.note(format!("a granted path could not be shown: {step}: {name}"));
                    // It is not there after all: the next touch is decided, and tried, anew.
                    self.forget_unused(token);
                    return;
                }
                match self.need_of.remove(&token) {
                    Some(owner) => self.need_settled(owner, None, at),
                    None => self.refuse(token),
                }
            }
            KeeperEvent::Ungrafted { graft } => self.grants.ungrafted(graft, &mut self.actions),
            KeeperEvent::Revoked { token } => self.has_revoked(token),
            // What was granted for a moment, or taken back, must not stay.
            KeeperEvent::NotUngrafted { step, errno, .. } => {
                let errno = palisade_sys::errno_name(Errno::from_raw_os_error(errno.into()));
                let why = format!("a grant could not be ended: {step}: {errno}");
                self.actions.push_back(Action::EndRun(why));
            }
            // The launcher makes it an error.
            KeeperEvent::Unable { .. } => {}
        }
    }

    /// A call that went on with a short-lived grant is back.
    pub(super) fn returned(&mut self, request: u64) {
        self.grants.returned(request, &mut self.actions);
    }

    /// A call that was allowed once has made a file.
    pub(super) fn made(&mut self, request: u64, file: FileIdentity) {
        self.made.made(request, file);
    }

    /// Nobody waits for it any more: its thread died, or was told to try again.
    pub(super) fn withdrawn(&mut self, request: u64, queue: &mut Queue, now: Now) {
        self.callers.remove(&request);
        self.leave_line(request);
        if let Some(decided) = queue.withdraw(request, now) {
            self.actions.push_back(Action::Closed(Box::new(decided)));
        }
        self.grants.returned(request, &mut self.actions);
        let mut idle = Vec::new();
        for inquiry in self.inquiries.values_mut() {
            inquiry.requests.retain(|waiting| waiting.id != request);
            if inquiry.requests.is_empty() {
                idle.push(inquiry.token);
            }
        }
        idle.into_iter().for_each(|token| self.forget(token));
    }

    /// What time alone changes.
    pub(super) fn pass(&mut self, now: Now) {
        self.grants.pass(now.monotonic, &mut self.actions);
        self.actions.extend(self.records.take_due(now.monotonic).into_iter().map(Action::Record));
    }

    /// When [`Self::pass`] has something to do next.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.grants.next_end().into_iter().chain(self.records.next_due()).min()
    }

    /// The keeper died or is stuck: what waited for it is denied. What was granted stays.
    pub(super) fn keeper_is_gone(&mut self, why: &str, queue: &mut Queue, now: Now) {
        self.tally.note(format!("what the command touched could not be looked at: {why}"));
        // Their numbers were known to that keeper only.
        self.standing.clear();
        if self.grants.has_fleeting() || !self.leaving.is_empty() {
            // Nobody else can take away what was shown for a moment.
            let why = "the keeper is gone, and with it the way to end a grant";
            self.actions.push_back(Action::EndRun(why.to_owned()));
        }
        // The files that questions are about went with it; nothing else may be granted in their place.
        let about_files = queue.open().filter(|question| question.subject.file().is_some());
        let open: Vec<QuestionId> = about_files.map(|question| question.id).collect();
        let no = Answer::Deny { lifetime: Lifetime::Once };
        for id in open {
            let decided = queue.answer(id, no, &Source::Withdrawn, now).unwrap_or_default();
            decided.into_iter().for_each(|decided| self.carry_out(decided, now));
        }
        let tokens: Vec<u64> = self.inquiries.keys().copied().collect();
        tokens.into_iter().for_each(|token| self.refuse(token));
        self.grants.give_up(&mut self.actions);
        self.need_of.clear();
    }

    fn new_token(&mut self) -> u64 {
        let token = self.next_token;
        self.next_token += 1;
        token
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
