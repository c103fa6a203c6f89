//! Grants under way and grants that end again: what the keeper was asked to do, and for which calls.
//!
//! It decides nothing. A call goes on only when everything it needs is in its place; if one part of it can
//! not be done, the call is refused.

use super::action::Action;
use super::inquiry::Found;
use palisade_gate::Access;
use palisade_gate::{AccessReply, PathAccess, Wants};
use palisade_keeper::{FileKind, KeeperRequest, What};
use palisade_sys::Errno;
use std::collections::{HashMap, HashSet, VecDeque};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A short-lived grant goes when its call has returned, and then at the latest.
const SHORT_LIVED: Duration = Duration::from_secs(1);

/// How long a grant lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lasting {
    /// For the calls that wait now.
    Once,
    /// Until the run ends.
    Session,
}

/// One part of a grant: a token of the keeper's and what to do with it.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) token: u64,
    pub(super) what: What,
    pub(super) found: Found,
    pub(super) access: Access,
    /// What was granted there before.
    pub(super) kept: Vec<Access>,
}

impl Part {
    fn ask(&self, executes_written: bool) -> KeeperRequest {
        let is_content = matches!(self.what, What::Found | What::Directory(_));
        let has = |access| self.access == access || self.kept.contains(&access);
        let write = is_content && has(Access::Write);
        let is_code = has(Access::Execute) || is_library(&self.found.path);
        let exec = is_content && is_code && (executes_written || !write);
        KeeperRequest::Graft { token: self.token, what: self.what.clone(), exec, write }
    }

    /// What can be shown of it if the whole cannot.
    fn less(&self) -> Option<What> {
        // A part of it would not be what is to be written.
        if self.access == Access::Write {
            return None;
        }
        match (&self.what, self.found.kind) {
            (What::Directory(_), FileKind::Directory) | (What::Found, FileKind::Directory) => {
                Some(What::Name)
            }
            (What::Directory(_), FileKind::File | FileKind::Link) => Some(What::Found),
            _ => None,
        }
    }

    /// Where it is shown.
    fn place(&self) -> &Path {
        match &self.what {
            What::Directory(directory) => directory,
            _ => &self.found.path,
        }
    }

    /// Where it shows everything that was asked for.
    fn standing(&self, graft: u64) -> Option<Standing> {
        let path = match &self.what {
            What::Directory(directory) => directory.clone(),
            What::Found => self.found.path.clone(),
            What::Name | What::Links | What::Copy | What::BelowCover(_) => return None,
        };
        Some(Standing { path, access: self.access, graft })
    }
}

/// What the keeper has put in its place.
#[derive(Debug)]
pub(super) struct Standing {
    pub(super) path: PathBuf,
    pub(super) access: Access,
    /// The keeper's number of it.
    pub(super) graft: u64,
}

/// A grant under way, part by part: the first is what was asked about, and without it nothing else shows.
#[derive(Debug)]
struct Job {
    part: Part,
    todo: VecDeque<Part>,
    requests: Vec<PathAccess>,
    grafts: Vec<u64>,
    shown: Vec<Standing>,
    lasting: Lasting,
    /// Whether of what was asked about only the name is shown.
    is_name: bool,
}

/// A short-lived grant whose calls go on.
#[derive(Debug)]
struct Fleeting {
    grafts: Vec<u64>,
    requests: Vec<u64>,
    going_on: HashSet<u64>,
    until: Instant,
}

/// Where a graft is.
#[derive(Debug)]
struct Place {
    path: PathBuf,
    /// A private version is the command's own, and is not taken back.
    is_copy: bool,
}

#[derive(Debug, Default)]
pub(super) struct Grants {
    /// Of what is granted, something may be both.
    executes_written: bool,
    /// By the token that the keeper is busy with.
    jobs: HashMap<u64, Job>,
    /// Calls that get a descriptor of their own, in the order they asked; none for one that is gone.
    openings: HashMap<u64, VecDeque<Option<u64>>>,
    /// Those of them that are lent for writing: the real path of what is changed.
    lent: HashMap<u64, PathBuf>,
    fleeting: Vec<Fleeting>,
    /// Where each graft of the keeper's is.
    places: HashMap<u64, Place>,
    /// Where those of a keeper are that is gone: nobody can take them away.
    lost: Vec<PathBuf>,
    /// Those that the keeper takes away now: what is left of each, and whom it was for.
    ending: Vec<(Vec<u64>, Vec<u64>)>,
    /// Grants that copy what is visible. What is shown for one call only would stay in the copy: they begin when nothing is.
    after_fleeting: VecDeque<Job>,
}

impl Grants {
    /// Without `executes_written`, what is granted for writing cannot be executed from then on.
    pub(super) fn new(executes_written: bool) -> Self {
        Self { executes_written, ..Self::default() }
    }

    /// Puts the parts in their places and lets the calls go on.
    pub(super) fn graft(
        &mut self,
        first: Part,
        todo: VecDeque<Part>,
        requests: Vec<PathAccess>,
        lasting: Lasting,
        out: &mut VecDeque<Action>,
    ) {
        let (grafts, shown) = (Vec::new(), Vec::new());
        let is_name = first.what == What::Name;
        let job = Job { part: first, todo, requests, grafts, shown, lasting, is_name };
        match job.part.what {
            What::BelowCover(_) if self.shows_for_one_call() => self.after_fleeting.push_back(job),
            _ => self.begin(job, out),
        }
    }

    fn begin(&mut self, job: Job, out: &mut VecDeque<Action>) {
        out.push_back(Action::Keeper(job.part.ask(self.executes_written)));
        self.jobs.insert(job.part.token, job);
    }

    /// Begins what had to wait, if nothing is shown for one call only any more.
    fn begin_deferred(&mut self, out: &mut VecDeque<Action>) {
        if !self.shows_for_one_call() {
            for job in std::mem::take(&mut self.after_fleeting) {
                self.begin(job, out);
            }
        }
    }

    /// Whether something is shown for one call only, or about to be.
    fn shows_for_one_call(&self) -> bool {
        let is_short = |job: &Job| job.lasting == Lasting::Once;
        !self.fleeting.is_empty() || !self.ending.is_empty() || self.jobs.values().any(is_short)
    }

    /// Opens the file for each of the calls; nothing becomes visible.
    pub(super) fn open(&mut self, token: u64, requests: &[PathAccess], out: &mut VecDeque<Action>) {
        for request in requests {
            self.openings.entry(token).or_default().push_back(Some(request.id));
            out.push_back(Action::Keeper(KeeperRequest::Open { token, flags: 0 }));
        }
    }

    /// Lends each of the calls a descriptor to write by, of what was found or of the directory it is in; nothing becomes
    /// visible.
    pub(super) fn lend(
        &mut self,
        token: u64,
        parent: bool,
        path: &Path,
        requests: &[PathAccess],
        out: &mut VecDeque<Action>,
    ) {
        self.lent.insert(token, path.to_owned());
        for request in requests {
            self.openings.entry(token).or_default().push_back(Some(request.id));
            out.push_back(Action::Keeper(KeeperRequest::Lend { token, parent }));
        }
    }

    /// A part is in its place. Gives what stays shown, once all of it is.
    pub(super) fn grafted(
        &mut self,
        token: u64,
        graft: u64,
        now: Instant,
        out: &mut VecDeque<Action>,
    ) -> Vec<Standing> {
        let Some(mut job) = self.jobs.remove(&token) else {
            // Nobody waits for it: it must not stay.
            out.push_back(Action::Keeper(KeeperRequest::Ungraft { graft }));
            return Vec::new();
        };
        let (path, is_copy) = (job.part.place().to_owned(), job.part.what == What::Copy);
        self.places.insert(graft, Place { path, is_copy });
        job.grafts.push(graft);
        let standing = job.part.standing(graft).filter(|_| job.lasting == Lasting::Session);
        out.extend(standing.iter().map(|standing| Action::Shown(standing.path.clone())));
        job.shown.extend(standing);
        match job.todo.pop_front() {
            Some(next) => {
                out.push_back(Action::Keeper(next.ask(self.executes_written)));
                job.part = next;
                self.jobs.insert(job.part.token, job);
                Vec::new()
            }
            None => self.finish(job, now, out),
        }
    }

    /// A directory holds what is asked about on its own: less of it is shown. Gives the directory.
    pub(super) fn not_whole(&mut self, token: u64, out: &mut VecDeque<Action>) -> Option<PathBuf> {
        let job = self.jobs.get_mut(&token)?;
        let directory = job.part.place().to_owned();
        match job.part.less() {
            Some(less) => {
                job.is_name |= job.grafts.is_empty() && less == What::Name;
                job.part.what = less;
                out.push_back(Action::Keeper(job.part.ask(self.executes_written)));
            }
            None => {
                self.failed(token, out);
            }
        }
        Some(directory)
    }

    pub(super) fn opened(&mut self, token: u64, file: Option<OwnedFd>, out: &mut VecDeque<Action>) {
        let waiting = self.openings.get_mut(&token).and_then(VecDeque::pop_front);
        let is_last = self.openings.get(&token).is_none_or(VecDeque::is_empty);
        let lent = match is_last {
            true => {
                self.openings.remove(&token);
                self.lent.remove(&token)
            }
            false => self.lent.get(&token).cloned(),
        };
        // Otherwise the call that it was for is gone.
        let Some(Some(request)) = waiting else { return };
        let reply = match (file.is_some(), lent) {
            (true, Some(path)) => {
                let path = path.into_os_string().into_encoded_bytes();
                AccessReply::WriteOnce { request, path }
            }
            (true, None) => AccessReply::File { request },
            (false, _) => refusal(request),
        };
        out.push_back(Action::Reply(reply, file));
    }

    /// Whether somebody was waiting for the token.
    pub(super) fn failed(&mut self, token: u64, out: &mut VecDeque<Action>) -> bool {
        if self.openings.get(&token).is_some_and(|waiting| !waiting.is_empty()) {
            self.opened(token, None, out);
            return true;
        }
        let Some(job) = self.jobs.remove(&token) else { return false };
        // The gate's file system holds the name, and lists it, since the keeper looked it up.
        self.hide(job.part.place().to_owned(), out);
        out.extend(job.requests.iter().map(|request| Action::Reply(refusal(request.id), None)));
        out.extend(
            job.grafts.into_iter().map(|graft| Action::Keeper(KeeperRequest::Ungraft { graft })),
        );
        let unused = job.todo.iter().map(|part| KeeperRequest::Forget { token: part.token });
        out.extend(unused.map(Action::Keeper));
        self.begin_deferred(out);
        true
    }

    /// Refuses the calls whose grants are under way, and would show something within this path. Whether there are any.
    pub(super) fn end_within(&mut self, path: &Path, out: &mut VecDeque<Action>) -> bool {
        let is_within = |job: &Job| {
            let mut parts = std::iter::once(&job.part).chain(&job.todo);
            parts.any(|part| part.place().starts_with(path))
        };
        let begun = self.jobs.iter().filter(|(_, job)| is_within(job));
        let begun: Vec<u64> = begun.map(|(token, _)| *token).collect();
        let (waiting, others): (VecDeque<Job>, _) =
            std::mem::take(&mut self.after_fleeting).into_iter().partition(is_within);
        self.after_fleeting = others;
        let is_any = !begun.is_empty() || !waiting.is_empty();
        // What the keeper shows of them meanwhile finds nobody who waits for it.
        for token in begun {
            self.failed(token, out);
        }
        for job in waiting {
            out.extend(job.requests.iter().map(|request| Action::Reply(refusal(request.id), None)));
            out.push_back(Action::Keeper(KeeperRequest::Forget { token: job.part.token }));
        }
        is_any
    }

    /// How many tokens the keeper still has something to do with.
    pub(super) fn count_tokens(&self) -> usize {
        let jobs = self.jobs.values().chain(&self.after_fleeting);
        jobs.map(|job| 1 + job.todo.len()).sum::<usize>() + self.openings.len()
    }

    /// Whether the keeper still has something to do with the token.
    pub(super) fn uses(&self, token: u64) -> bool {
        self.jobs.contains_key(&token)
            || self.after_fleeting.iter().any(|job| job.part.token == token)
            || self.openings.get(&token).is_some_and(|waiting| !waiting.is_empty())
    }

    /// A call is back, or gone.
    pub(super) fn returned(&mut self, request: u64, out: &mut VecDeque<Action>) {
        for job in self.jobs.values_mut().chain(&mut self.after_fleeting) {
            job.requests.retain(|waiting| waiting.id != request);
        }
        // The keeper answers all the same: its place in the row stays.
        for waiting in self.openings.values_mut().flatten() {
            if *waiting == Some(request) {
                *waiting = None;
            }
        }
        for fleeting in &mut self.fleeting {
            fleeting.going_on.remove(&request);
        }
        self.end_fleeting(|fleeting| fleeting.going_on.is_empty(), out);
    }

    /// Ends what has lasted too long.
    pub(super) fn pass(&mut self, now: Instant, out: &mut VecDeque<Action>) {
        self.end_fleeting(|fleeting| fleeting.until <= now, out);
    }

    /// Whether something is shown that has to be taken away again.
    pub(super) fn has_fleeting(&self) -> bool {
        let is_short = |job: &Job| job.lasting == Lasting::Once && !job.grafts.is_empty();
        !self.fleeting.is_empty() || !self.ending.is_empty() || self.jobs.values().any(is_short)
    }

    pub(super) fn next_end(&self) -> Option<Instant> {
        self.fleeting.iter().map(|fleeting| fleeting.until).min()
    }

    /// Refuses whatever waits for the keeper, which is gone.
    pub(super) fn give_up(&mut self, out: &mut VecDeque<Action>) {
        let jobs = self.jobs.drain().map(|(_, job)| job).chain(self.after_fleeting.drain(..));
        let granting = jobs.flat_map(|job| job.requests).map(|request| request.id);
        let opening = self.openings.drain().flat_map(|(_, waiting)| waiting).flatten();
        out.extend(granting.chain(opening).map(|request| Action::Reply(refusal(request), None)));
        self.lent.clear();
        self.fleeting.clear();
        self.ending.clear();
        // The next keeper counts from the beginning.
        self.lost.extend(self.places.drain().map(|(_, place)| place.path));
    }

    /// Something was taken away; the broker lets others look once it is all of a grant.
    pub(super) fn ungrafted(&mut self, graft: u64, out: &mut VecDeque<Action>) {
        if let Some(place) = self.places.remove(&graft) {
            self.hide(place.path, out);
        }
        self.ending.retain_mut(|(grafts, requests)| {
            grafts.retain(|known| *known != graft);
            if grafts.is_empty() {
                let ended = requests.iter().map(|request| AccessReply::Ended { request: *request });
                out.extend(ended.map(|reply| Action::Reply(reply, None)));
            }
            !grafts.is_empty()
        });
        self.begin_deferred(out);
    }

    /// Everything of the host's at this path and below it was taken away.
    pub(super) fn revoked(&mut self, path: &Path, out: &mut VecDeque<Action>) {
        let is_meant = |place: &Place| !place.is_copy && place.path.starts_with(path);
        let gone: Vec<Place> =
            self.places.extract_if(|_, place| is_meant(place)).map(|(_, place)| place).collect();
        for place in gone {
            self.hide(place.path, out);
        }
    }

    /// Whether something is shown at this path, below or above it, that nobody can take away any more.
    pub(super) fn is_lost(&self, path: &Path) -> bool {
        self.lost.iter().any(|lost| lost.starts_with(path) || path.starts_with(lost))
    }

    /// Nothing is shown at this path any more, unless by another graft. Its name stays while something below it is.
    fn hide(&self, path: PathBuf, out: &mut VecDeque<Action>) {
        let left = || self.places.values().map(|place| &place.path).chain(&self.lost);
        if !left().any(|other| *other == path) {
            let is_name_kept = left().any(|other| other.starts_with(&path));
            out.push_back(Action::Hidden { path, is_name_kept });
        }
    }

    fn finish(&mut self, job: Job, now: Instant, out: &mut VecDeque<Action>) -> Vec<Standing> {
        let Job { requests, grafts, shown, lasting, is_name, .. } = job;
        let granted = |request: &PathAccess| match is_name {
            true => AccessReply::Named { request: request.id, for_one_call: false },
            false => AccessReply::Continue { request: request.id },
        };
        match lasting {
            Lasting::Session => {
                let replies = requests.iter().map(granted);
                out.extend(replies.map(|reply| Action::Reply(reply, None)));
                shown
            }
            Lasting::Once => {
                // Of a name there is nothing to find: whoever can answer by itself does.
                let is_answered = |request: &&PathAccess| is_name && request.may_be_served;
                let watched = requests.iter().filter(|request| !is_answered(request));
                let going_on: HashSet<u64> = watched.map(|request| request.id).collect();
                let replies = requests.iter().map(|request| match is_answered(&request) {
                    true => AccessReply::Named { request: request.id, for_one_call: true },
                    false => AccessReply::ContinueAndWatch { request: request.id },
                });
                out.extend(replies.map(|reply| Action::Reply(reply, None)));
                let requests = requests.iter().map(|request| request.id).collect();
                let until = now + SHORT_LIVED;
                self.fleeting.push(Fleeting { grafts, requests, going_on, until });
                self.end_fleeting(|fleeting| fleeting.going_on.is_empty(), out);
                Vec::new()
            }
        }
    }

    fn end_fleeting(&mut self, is_over: impl Fn(&Fleeting) -> bool, out: &mut VecDeque<Action>) {
        for Fleeting { grafts, requests, .. } in self.fleeting.extract_if(.., |one| is_over(one)) {
            let ungraft = |graft: &u64| Action::Keeper(KeeperRequest::Ungraft { graft: *graft });
            out.extend(grafts.iter().map(ungraft));
            self.ending.push((grafts, requests));
        }
    }
}

/// Whether a call can be given an open file instead of something to see.
pub(super) fn takes_descriptor(request: &PathAccess) -> bool {
    let is_opened = matches!(request.wants, Wants::Open { directory: false, path_only: false });
    is_opened || (request.may_be_served && request.wants == Wants::Look)
}

/// A library is mapped to be executed by a program that only reads it.
pub fn is_library(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.ends_with(b".so") || name.windows(4).any(|part| part == b".so.")
}

/// `EACCES`: what a denied call gets.
pub(super) fn refusal(request: u64) -> AccessReply {
    AccessReply::fail(request, Errno::ACCESS)
}
