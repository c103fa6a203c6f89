//! The gate's hub: what was touched, what the host has there, what the rules or a person say about it.
//!
//! It moves no byte itself. Messages come in, [`Action`]s go out, and whoever holds the sockets carries them
//! out; so every order of events can be tested. It never grants without a rule or an answer that says so, and
//! what it can not make sense of is denied.

use super::grants::{Grants, Lasting, Part, refusal, takes_descriptor};
use super::inquiry::{Found, Inquiry, Need, Stage};
use super::process::{describe, process_of};
use super::tally::Tally;
use super::verdict::{Reason, Verdict, asked_access, rule_of};
use palisade_ask::{
    Answer, AnswerError, Asked, Decided, FileSubject, Lifetime, NewQuestion, Now, QuestionId,
    Queue, Scope, Source, Subject,
};
use palisade_broker::{Reply, Touch};
use palisade_gate::{Access, Decider, Decision, Pattern, Rule, Surroundings, offer};
use palisade_keeper::{Ask, Kind, Told, What};
use palisade_plan::model::{Gate, Nature};
use palisade_policy::model::OnAsk;
use palisade_sys::Errno;
use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What was allowed once is not asked again for the next call of the same process.
const STILL_FRESH: Duration = Duration::from_secs(1);
/// So many decisions are remembered by path.
const MOST_REMEMBERED: usize = 4096;

/// What is to be done, in this order.
#[derive(Debug)]
pub(super) enum Action {
    Keeper(Ask),
    Broker(Reply, Option<OwnedFd>),
    /// For the audit log.
    Record(Box<palisade_record::AccessDecided>),
    /// People should see this question.
    Opened(QuestionId),
    /// Nobody needs to answer it any more.
    Closed(Box<Decided>),
    /// Somebody answered for good.
    Save(Box<Rule>, palisade_ask::Store),
    /// What was promised can not be kept.
    EndRun(String),
}

/// Whether somebody could answer a question now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum People {
    Present,
    Nobody,
}

#[derive(Debug)]
struct Fresh {
    pid: u32,
    path: PathBuf,
    access: Access,
    until: Instant,
}

#[derive(Debug)]
pub(super) struct Hub<'p> {
    gate: &'p Gate,
    home: Option<PathBuf>,
    /// Pid 1 of the sandbox, on the host.
    top: u32,
    decider: Decider,
    queue: Queue,
    inquiries: HashMap<u64, Inquiry>,
    /// Tokens of what an inquiry needs besides, and whose they are.
    need_of: HashMap<u64, u64>,
    grants: Grants,
    /// What stays granted, with everything below.
    granted: Vec<(PathBuf, Access)>,
    /// What was allowed once, to whom, a moment ago: a program looks at a file before it opens it.
    fresh: Vec<Fresh>,
    /// What people answered for the session.
    pub(super) answered: Vec<Rule>,
    next_token: u64,
    pub(super) actions: VecDeque<Action>,
    pub(super) tally: Tally,
}

impl<'p> Hub<'p> {
    pub(super) fn new(gate: &'p Gate, session: &str, home: Option<PathBuf>, rules: Vec<Rule>) -> Self {
        Self {
            gate,
            home,
            top: 0,
            decider: Decider::new(rules, MOST_REMEMBERED),
            queue: Queue::new(session),
            inquiries: HashMap::new(),
            need_of: HashMap::new(),
            grants: Grants::default(),
            granted: Vec::new(),
            fresh: Vec::new(),
            answered: Vec::new(),
            next_token: 1,
            actions: VecDeque::new(),
            tally: Tally::default(),
        }
    }

    pub(super) fn set_top(&mut self, top: u32) {
        self.top = top;
    }

    pub(super) fn queue(&self) -> &Queue {
        &self.queue
    }

    /// A call waits for something that is missing inside.
    pub(super) fn touched(&mut self, touch: Touch, people: People, now: Now) {
        if let Some(inquiry) = self.inquiries.values_mut().find(|known| known.serves(&touch)) {
            inquiry.touches.push(touch.clone());
            if inquiry.stage == Stage::Asked {
                let token = inquiry.token;
                self.ask(token, vec![touch], people, now);
            }
            return;
        }
        let token = self.new_token();
        let (path, follow) = (touch.path.clone(), touch.follow);
        let inquiry = Inquiry::new(token, touch, now.monotonic);
        let execute = inquiry.access() == Access::Execute;
        self.inquiries.insert(token, inquiry);
        self.actions.push_back(Action::Keeper(Ask::Look { token, path, follow, execute }));
    }

    /// The keeper said something; `file` came with it.
    pub(super) fn told(&mut self, told: Told, file: Option<OwnedFd>, people: People, now: Now) {
        match told {
            Told::Found(palisade_keeper::Found { token, path, kind, links: _, needs }) => {
                match self.need_of.get(&token) {
                    Some(owner) => {
                        self.need_settled(*owner, Some(Need { token, path }), people, now);
                    }
                    None => self.found(token, Found { path, kind }, needs, people, now),
                }
            }
            Told::Absent { token } => match self.need_of.remove(&token) {
                Some(owner) => self.need_settled(owner, None, people, now),
                None => self.let_go(token),
            },
            Told::Grafted { token, graft } => {
                self.grants.grafted(token, graft, now.monotonic, &mut self.actions);
                self.forget_unused(token);
            }
            Told::Opened { token } => {
                self.grants.opened(token, file, &mut self.actions);
                self.forget_unused(token);
            }
            Told::Failed { token, step, errno } => {
                let errno = Errno::from_raw_os_error(errno.into());
                let name = palisade_sys::errno_name(errno);
                if self.grants.failed(token, now.monotonic, &mut self.actions) {
                    self.tally.note(format!("a granted path could not be shown: {step}: {name}"));
                    // It is not there after all: the next touch is decided, and tried, anew.
                    self.forget_unused(token);
                    return;
                }
                match self.need_of.remove(&token) {
                    Some(owner) => self.need_settled(owner, None, people, now),
                    None => self.refuse(token),
                }
            }
            Told::Ungrafted { .. } => {}
            // What was granted for a moment must not stay.
            Told::NotUngrafted { step, errno, .. } => {
                let errno = palisade_sys::errno_name(Errno::from_raw_os_error(errno.into()));
                let why = format!("a grant for one call could not be ended: {step}: {errno}");
                self.actions.push_back(Action::EndRun(why));
            }
            // The launcher makes it an error.
            Told::Unable { .. } => {}
        }
    }

    /// A call that went on with a short-lived grant is back.
    pub(super) fn returned(&mut self, touch: u64) {
        self.grants.returned(touch, &mut self.actions);
    }

    /// Nobody waits for it any more: its thread died, or was told to try again.
    pub(super) fn withdrawn(&mut self, touch: u64, now: Now) {
        if let Some(decided) = self.queue.withdraw(touch, now) {
            self.actions.push_back(Action::Closed(Box::new(decided)));
        }
        self.grants.returned(touch, &mut self.actions);
        let mut idle = Vec::new();
        for inquiry in self.inquiries.values_mut() {
            inquiry.touches.retain(|waiting| waiting.touch != touch);
            if inquiry.touches.is_empty() {
                idle.push(inquiry.token);
            }
        }
        idle.into_iter().for_each(|token| self.forget(token));
    }

    pub(super) fn answer(
        &mut self,
        id: QuestionId,
        answer: Answer,
        source: &Source,
        now: Now,
    ) -> Result<(), AnswerError> {
        let decided = self.queue.answer(id, answer, source, now)?;
        decided.into_iter().for_each(|decided| self.carry_out(decided, now));
        Ok(())
    }

    /// What time alone changes.
    pub(super) fn pass(&mut self, now: Now) {
        for decided in self.queue.expire(now) {
            self.carry_out(decided, now);
        }
        self.grants.pass(now.monotonic, &mut self.actions);
    }

    /// When [`Self::pass`] has something to do next.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        [self.queue.next_deadline(), self.grants.next_end()].into_iter().flatten().min()
    }

    /// The keeper died or is stuck: what waited for it is denied. What was granted stays.
    pub(super) fn keeper_is_gone(&mut self, why: &str, now: Now) {
        self.tally.note(format!("what the command touched could not be looked at: {why}"));
        if self.grants.has_fleeting() {
            // Nobody else can take away what was shown for a moment.
            let why = "the keeper is gone, and with it the way to end a grant for one call";
            self.actions.push_back(Action::EndRun(why.to_owned()));
        }
        // The files that questions are about went with it; nothing else may be granted in their place.
        let open: Vec<QuestionId> = self.queue.open().map(|question| question.id).collect();
        for id in open {
            let _ = self.answer(id, Answer::Deny { lifetime: Lifetime::Once }, &Source::Withdrawn, now);
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

    fn found(&mut self, token: u64, found: Found, needs: Vec<PathBuf>, people: People, now: Now) {
        let hidden: Vec<PathBuf> =
            needs.into_iter().filter(|path| !self.is_visible(path, Access::Execute)).collect();
        let looks: Vec<(u64, PathBuf)> =
            hidden.into_iter().map(|path| (self.new_token(), path)).collect();
        let Some(inquiry) = self.inquiries.get_mut(&token) else {
            return self.actions.push_back(Action::Keeper(Ask::Forget { token }));
        };
        inquiry.found = Some(found);
        inquiry.stage = Stage::Looking { awaited: looks.len() };
        if looks.is_empty() {
            return self.decide(token, people, now);
        }
        for (need, path) in looks {
            self.need_of.insert(need, token);
            let path = path.into_os_string().into_encoded_bytes();
            let look = Ask::Look { token: need, path, follow: true, execute: false };
            self.actions.push_back(Action::Keeper(look));
        }
    }

    fn need_settled(&mut self, owner: u64, need: Option<Need>, people: People, now: Now) {
        let Some(inquiry) = self.inquiries.get_mut(&owner) else { return };
        inquiry.needs.extend(need);
        if let Stage::Looking { awaited } = &mut inquiry.stage {
            *awaited = awaited.saturating_sub(1);
            if *awaited == 0 {
                self.decide(owner, people, now);
            }
        }
    }

    /// Everything that the host can tell is known.
    fn decide(&mut self, token: u64, people: People, now: Now) {
        let Some(inquiry) = self.inquiries.get(&token) else { return };
        let Some(Found { path, kind }) = inquiry.found.clone() else { return self.refuse(token) };
        let access = inquiry.access();
        if self.gate.nature(&path) == Nature::Never {
            return self.let_go(token);
        }
        if self.is_visible(&path, access) && inquiry.needs.is_empty() {
            // Only the links that lead there are missing inside.
            return self.grant(token, What::Links, Lasting::Session);
        }
        if kind == Kind::Special {
            return self.deny(token, &Verdict::denied(Reason::NotAFile), now);
        }
        let wanted: Vec<PathBuf> = inquiry.paths().map(Path::to_owned).collect();
        self.fresh.retain(|fresh| fresh.until > now.monotonic);
        let is_fresh = |touch: &Touch| {
            let pid = process_of(touch.pid);
            self.fresh.iter().any(|fresh| fresh.pid == pid && fresh.path == path && fresh.access >= access)
        };
        if inquiry.touches.iter().all(is_fresh) {
            return self.grant(token, What::Found, Lasting::Once);
        }
        let mut allowed = None;
        for path in &wanted {
            let is_secret = self.gate.nature(path) == Nature::Secret;
            match self.decider.decide(path, access, now.wall) {
                Decision::Denied(rule) => {
                    let verdict = Verdict::denied(Reason::Rule(rule.origin.place.clone()));
                    return self.deny(token, &verdict, now);
                }
                // What is said of a directory was not said of the key that lies in it.
                Decision::Allowed(rule) if !is_secret || matches!(rule.pattern, Pattern::Exact(_)) => {
                    let tree = match &rule.pattern {
                        Pattern::Tree(tree) => Some(tree.clone()),
                        Pattern::Exact(_) | Pattern::Glob(_) => None,
                    };
                    allowed.get_or_insert((rule.origin.place.clone(), tree));
                }
                Decision::Allowed(_) | Decision::Ask => {
                    let touches = inquiry_touches(&self.inquiries, token);
                    return self.ask(token, touches, people, now);
                }
            }
        }
        let Some((place, tree)) = allowed else { return self.refuse(token) };
        self.record(token, &Verdict::allowed(Reason::Rule(place)), now);
        let tree = tree.filter(|tree| !self.gate.holds_hidden(tree));
        self.grant(token, tree.map_or(What::Found, What::Directory), Lasting::Session);
    }

    /// No rule speaks: the policy's `onAsk`, or a person.
    fn ask(&mut self, token: u64, touches: Vec<Touch>, people: People, now: Now) {
        let Some(inquiry) = self.inquiries.get_mut(&token) else { return };
        inquiry.stage = Stage::Asked;
        let Some(found) = inquiry.found.clone() else { return self.refuse(token) };
        let access = inquiry.access();
        let also: Vec<PathBuf> = inquiry.needs.iter().map(|need| need.path.clone()).collect();
        let is_secret = self.is_secret(token);
        match self.gate.on_ask {
            // Even who allows everything did not mean the keys.
            OnAsk::Allow if !is_secret => {
                self.record(token, &Verdict::allowed(Reason::OnAsk), now);
                return self.grant(token, What::Found, Lasting::Session);
            }
            OnAsk::Allow | OnAsk::Deny => {
                return self.deny(token, &Verdict::denied(Reason::OnAsk), now);
            }
            OnAsk::Ask if people == People::Nobody => {
                return self.deny(token, &Verdict::denied(Reason::NobodyToAsk), now);
            }
            OnAsk::Ask | OnAsk::Wait => {}
        }
        let directory = if is_secret { None } else { self.offer(&found) };
        for touch in touches {
            let new = NewQuestion {
                request: touch.touch,
                subject: Subject::File(FileSubject {
                    path: found.path.clone(),
                    access: match access {
                        Access::Read => palisade_ask::Access::Read,
                        Access::Execute => palisade_ask::Access::Execute,
                    },
                    operation: touch.call.clone(),
                    is_directory: found.kind == Kind::Directory,
                    also: also.clone(),
                    directory: directory.clone(),
                }),
                reason: self.why(is_secret, &touch, &found),
                process: describe(touch.pid, self.top, &touch.executable, &touch.cwd),
                is_secret,
                patience: Some(Duration::from_millis(self.gate.ask_timeout_ms)),
            };
            match self.queue.ask(new, now) {
                Asked::New(id) => self.actions.push_back(Action::Opened(id)),
                Asked::Joined(_) => {}
                Asked::Full => {
                    return self.deny(token, &Verdict::denied(Reason::TooManyQuestions), now);
                }
            }
        }
    }

    fn why(&self, is_secret: bool, touch: &Touch, found: &Found) -> String {
        if is_secret {
            return "it is on the list of secrets".to_owned();
        }
        let mut why = "nothing grants it".to_owned();
        if found.path.as_os_str().as_encoded_bytes() != touch.path {
            why.push_str("; it was reached as ");
            why.push_str(&String::from_utf8_lossy(&touch.path));
        }
        if self.is_wide(found) {
            why.push_str("; only that it is there would show, not what is in it");
        }
        why
    }

    /// A directory that holds, or may come to hold, what nobody would give away with it.
    fn is_wide(&self, found: &Found) -> bool {
        let is_top_level = found.path.components().count() <= 2;
        found.kind == Kind::Directory && (is_top_level || self.gate.holds_hidden(&found.path))
    }

    fn offer(&self, found: &Found) -> Option<PathBuf> {
        let kind = match found.kind {
            Kind::Directory => palisade_gate::Kind::Directory,
            Kind::File | Kind::Link | Kind::Special => palisade_gate::Kind::File,
        };
        let around = Surroundings {
            home: self.home.as_deref(),
            mounted: &self.gate.mounted,
            never: &self.gate.never,
            secrets: &self.gate.secrets,
        };
        offer(&found.path, kind, &around).filter(|directory| !self.gate.holds_hidden(directory))
    }

    /// A question was answered, by whomever.
    fn carry_out(&mut self, decided: Decided, now: Now) {
        let Subject::File(file) = &decided.question.subject;
        let scope = match decided.answer {
            Answer::Allow { scope, .. } => scope,
            Answer::Deny { .. } => Scope::File,
        };
        let lasting = match decided.answer.lifetime() {
            Lifetime::Once => Lasting::Once,
            Lifetime::Session | Lifetime::Always(_) => Lasting::Session,
        };
        let directory = file.directory.clone().filter(|_| scope == Scope::Directory);
        if lasting == Lasting::Session {
            let kind = if file.is_directory { Kind::Directory } else { Kind::File };
            let is_wide = self.is_wide(&Found { path: file.path.clone(), kind });
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
        if lasting == Lasting::Once && decided.answer.is_allowed() {
            let access = asked_access(file.access);
            let until = now.monotonic + STILL_FRESH;
            self.fresh.extend(decided.question.processes.iter().map(|process| Fresh {
                pid: process.pid,
                path: file.path.clone(),
                access,
                until,
            }));
        }
        let verdict = Verdict::answered(&decided);
        let mut tokens: Vec<u64> = self
            .inquiries
            .values()
            .filter(|inquiry| {
                let mut waiting = inquiry.touches.iter();
                waiting.any(|touch| decided.question.requests.contains(&touch.touch))
            })
            .map(|inquiry| inquiry.token)
            .collect();
        tokens.sort_unstable();
        for token in tokens {
            if decided.answer.is_allowed() {
                self.record(token, &verdict, now);
                let what = directory.clone().map_or(What::Found, What::Directory);
                self.grant(token, what, lasting);
            } else {
                self.deny(token, &verdict, now);
            }
        }
        self.actions.push_back(Action::Closed(Box::new(decided)));
    }

    /// Carries out a yes.
    fn grant(&mut self, token: u64, what: What, lasting: Lasting) {
        let Some(inquiry) = self.inquiries.remove(&token) else { return };
        let access = inquiry.access();
        let Some(found) = &inquiry.found else { return };
        let what = if what == What::Found && self.is_wide(found) { What::Name } else { what };
        let is_plain_file = found.kind == Kind::File && what == What::Found;
        let takes_descriptors = inquiry.touches.iter().all(takes_descriptor);
        if lasting == Lasting::Once && is_plain_file && takes_descriptors {
            return self.grants.open(token, &inquiry.touches, &mut self.actions);
        }
        if lasting == Lasting::Session && !matches!(what, What::Links | What::Name) {
            let place = match &what {
                What::Directory(directory) => (directory.clone(), Access::Execute),
                What::Found | What::Links | What::Name => (found.path.clone(), access),
            };
            self.granted.push(place);
            let needs = inquiry.needs.iter().map(|need| (need.path.clone(), Access::Execute));
            self.granted.extend(needs);
        }
        let is_executable = match &what {
            What::Directory(_) => true,
            What::Found | What::Links | What::Name => {
                access == Access::Execute
                    || found.kind == Kind::Directory
                    || is_library(&found.path)
            }
        };
        let mut parts = vec![Part { token, what, is_executable }];
        parts.extend(inquiry.needs.iter().map(|need| {
            self.need_of.remove(&need.token);
            Part { token: need.token, what: What::Found, is_executable: true }
        }));
        self.grants.graft(parts, inquiry.touches, lasting, &mut self.actions);
    }

    /// Carries out a no.
    fn deny(&mut self, token: u64, verdict: &Verdict, now: Now) {
        self.record(token, verdict, now);
        self.refuse(token);
    }

    /// Nothing is there: the kernel says so.
    fn let_go(&mut self, token: u64) {
        self.end(token, |touch| Reply::Absent { touch });
    }

    fn refuse(&mut self, token: u64) {
        self.end(token, refusal);
    }

    fn end(&mut self, token: u64, reply: impl Fn(u64) -> Reply) {
        let Some(inquiry) = self.inquiries.get(&token) else { return };
        let replies = inquiry.touches.iter().map(|touch| Action::Broker(reply(touch.touch), None));
        self.actions.extend(replies);
        self.forget(token);
    }

    /// The keeper need not hold it any longer.
    fn forget(&mut self, token: u64) {
        let needs = self.inquiries.remove(&token).map(|inquiry| inquiry.needs).unwrap_or_default();
        self.need_of.retain(|_, owner| *owner != token);
        for token in std::iter::once(token).chain(needs.into_iter().map(|need| need.token)) {
            self.actions.push_back(Action::Keeper(Ask::Forget { token }));
        }
    }

    fn forget_unused(&mut self, token: u64) {
        if !self.grants.uses(token) {
            self.actions.push_back(Action::Keeper(Ask::Forget { token }));
        }
    }

    /// Whether a path of the host can be seen inside by now.
    fn is_visible(&self, path: &Path, access: Access) -> bool {
        let is_granted = |(granted, allowed): &(PathBuf, Access)| {
            path.starts_with(granted) && *allowed >= access
        };
        if self.granted.iter().any(is_granted) {
            return true;
        }
        let longest = |places: &[PathBuf]| {
            let above = places.iter().filter(|place| path.starts_with(place));
            above.map(|place| place.components().count()).max().unwrap_or(0)
        };
        longest(&self.gate.mounted) > longest(&self.gate.grounds)
    }

    fn is_secret(&self, token: u64) -> bool {
        self.inquiries.get(&token).is_some_and(|inquiry| {
            inquiry.paths().any(|path| self.gate.nature(path) == Nature::Secret)
        })
    }

    fn record(&mut self, token: u64, verdict: &Verdict, now: Now) {
        let is_secret = self.is_secret(token);
        let Some(inquiry) = self.inquiries.get(&token) else { return };
        let Some(found) = &inquiry.found else { return };
        let touched = verdict.touched(found, inquiry, is_secret);
        self.tally.count(verdict.is_allowed, touched);
        if verdict.by_person() || self.tally.may_log() {
            let event = verdict.event(found, inquiry, now.monotonic);
            self.actions.push_back(Action::Record(Box::new(event)));
        }
    }
}

fn inquiry_touches(inquiries: &HashMap<u64, Inquiry>, token: u64) -> Vec<Touch> {
    inquiries.get(&token).map(|inquiry| inquiry.touches.clone()).unwrap_or_default()
}

/// A library is mapped to be executed by a program that only reads it.
fn is_library(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.ends_with(b".so") || name.windows(4).any(|part| part == b".so.")
}

#[cfg(test)]
#[path = "hub_tests.rs"]
mod tests;
