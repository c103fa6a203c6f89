//! The full-screen list: one loop over keys, sessions and the clock.
//!
//! The terminal is put back on every way out.

use super::board::{Action, Board};
use super::draw::{self, Moment, Theme};
use super::notice::Notices;
use super::pace::Arrival;
use super::row::Row;
use super::{CONNECT_TIMEOUT, Until, address, once};
use crate::output;
use anyhow::Context;
use crossterm::event::{
    self, DisableBracketedPaste, DisableFocusChange, EnableBracketedPaste, EnableFocusChange,
    Event, KeyEvent, KeyEventKind,
};
use crossterm::execute;
use jiff::Timestamp;
use palisade_ask::message::Audit;
use palisade_ask::sessions::{SessionChange, Sessions};
use palisade_ask::{QuestionId, Store};
use palisade_session::EndSignals;
use ratatui::DefaultTerminal;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// New sessions, a resized window and the seconds that are left are seen after this at the latest.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// How long nothing is open before the list ends: the next question often follows at once.
const NOTHING_OPEN: Duration = Duration::from_secs(1);

pub(crate) fn show(
    sessions: &mut Sessions,
    notices: Option<Notices>,
    until: Until,
) -> anyhow::Result<ExitCode> {
    // Before the screen is taken: what is wrong from the start is said where it stays.
    let known = sessions.refresh_fully(CONNECT_TIMEOUT)?;
    let ending = EndSignals::take()?;
    let mut terminal = ratatui::try_init().context("cannot use the terminal")?;
    // A pasted text is not an answer, and who comes back to the window has not read it yet. A terminal without either goes without.
    let _ = execute!(io::stdout(), EnableBracketedPaste, EnableFocusChange);
    let shown = Screen::new(sessions, notices, ending, until).run(&mut terminal, &known);
    let _ = execute!(io::stdout(), DisableFocusChange, DisableBracketedPaste);
    let restored = ratatui::try_restore().context("cannot restore the terminal");
    let code = shown?;
    // Who was told to end may have lost its terminal as well.
    if code == ExitCode::SUCCESS {
        restored?;
    }
    Ok(code)
}

struct Screen<'a> {
    sessions: &'a mut Sessions,
    board: Board,
    notices: Option<Notices>,
    ending: EndSignals,
    theme: Theme,
    until: Until,
    /// Since when no question is open.
    nothing_since: Option<Instant>,
    together: Option<Together>,
}

/// Questions that were answered with one key, as the session tells of each.
struct Together {
    waiting: Vec<(String, QuestionId)>,
    told: usize,
}

impl<'a> Screen<'a> {
    fn new(
        sessions: &'a mut Sessions,
        notices: Option<Notices>,
        ending: EndSignals,
        until: Until,
    ) -> Self {
        Self {
            sessions,
            board: Board::new(),
            notices,
            ending,
            theme: Theme { coloured: output::colour_wanted() },
            until,
            nothing_since: None,
            together: None,
        }
    }

    fn run(
        &mut self,
        terminal: &mut DefaultTerminal,
        known: &[SessionChange],
    ) -> anyhow::Result<ExitCode> {
        self.hear(known);
        while !self.is_over(Instant::now()) {
            let now = Moment { monotonic: Instant::now(), wall: Timestamp::now() };
            terminal.draw(|frame| draw::draw(frame, &mut self.board, self.theme, now))?;
            self.board.drawn(Instant::now());
            let is_terminal_gone = self.wait()?;
            if let Some(code) = self.ending.wanted()? {
                return Ok(ExitCode::from(code));
            }
            if is_terminal_gone {
                return Ok(ExitCode::SUCCESS);
            }
            let mut events = Vec::new();
            while event::poll(Duration::ZERO)? {
                events.push(event::read()?);
            }
            if self.take(&events) == Action::Quit {
                return Ok(ExitCode::SUCCESS);
            }
            let changes = self.sessions.refresh()?;
            self.notify(&changes);
            self.hear(&changes);
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Whether there is nothing left to show.
    fn is_over(&mut self, now: Instant) -> bool {
        let has_questions =
            self.sessions.iter().any(|(_, session)| session.open().next().is_some());
        let since = match has_questions {
            true => None,
            false => Some(self.nothing_since.unwrap_or(now)),
        };
        self.nothing_since = since;
        match self.until {
            Until::Told => false,
            Until::SessionEnds => self.sessions.is_empty(),
            Until::Answered => {
                self.sessions.is_empty() || since.is_some_and(|since| now >= since + NOTHING_OPEN)
            }
        }
    }

    /// Until something happens. True if the terminal is gone.
    fn wait(&self) -> Result<bool, rustix::io::Errno> {
        let stdin = io::stdin();
        let keys = PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN);
        let ending = PollFd::new(&self.ending, PollFlags::IN);
        let mut polled: Vec<PollFd<'_>> = [keys, ending]
            .into_iter()
            .chain(
                self.sessions
                    .descriptors()
                    .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN)),
            )
            .collect();
        match rustix::event::poll(&mut polled, Timespec::try_from(LOOK_AGAIN).ok().as_ref()) {
            Ok(_) => Ok(polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// Whatever was read at once was typed at once.
    fn take(&mut self, events: &[Event]) -> Action {
        let is_key =
            |event: &&Event| matches!(event, Event::Key(key) if key.kind != KeyEventKind::Release);
        let arrival = match events.iter().filter(is_key).count() {
            0 | 1 => Arrival::Alone,
            _ => Arrival::WithOthers,
        };
        for event in events {
            match event {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    if self.press(*key, arrival) == Action::Quit {
                        return Action::Quit;
                    }
                }
                Event::Paste(_) => self.board.pasted(Instant::now()),
                Event::FocusGained | Event::Resize(..) => self.board.shown_anew(),
                Event::Key(_) | Event::FocusLost | Event::Mouse(_) => {}
            }
        }
        Action::Nothing
    }

    fn press(&mut self, key: KeyEvent, arrival: Arrival) -> Action {
        let now = Instant::now();
        let action = self.board.press(key, arrival, now);
        if let Action::Answer { session, id, answer } = &action
            && let Err(error) = self.sessions.answer(session, *id, *answer)
        {
            self.board.say(error.to_string(), now);
            self.board.take_back(session);
        }
        if let Action::AnswerAll { questions, answer } = &action {
            self.together = Some(Together { waiting: questions.clone(), told: 0 });
            for (session, id) in questions {
                if let Err(error) = self.sessions.answer(session, *id, *answer) {
                    self.board.say(error.to_string(), now);
                    self.board.take_back(session);
                }
            }
        }
        if let Action::Save { session, store } = &action {
            self.save(session.as_deref(), *store, now);
        }
        action
    }

    fn save(&mut self, session: Option<&str>, store: Store, now: Instant) {
        let only = {
            let mut names = self.sessions.iter().map(|(name, _)| name);
            names.next().filter(|_| names.next().is_none())
        };
        let Some(session) = session.or(only).map(str::to_owned) else {
            let several =
                "several sessions are open: wait for a question of the one that you want to save";
            return self.board.say(several.to_owned(), now);
        };
        if let Err(error) = self.sessions.save(&session, store) {
            self.board.say(error.to_string(), now);
        }
    }

    fn hear(&mut self, changes: &[SessionChange]) {
        let now = Instant::now();
        for change in changes {
            match change {
                SessionChange::Answered { session, audit } => {
                    let told = self.told(session, audit);
                    self.board.say_of(session, told, now);
                }
                SessionChange::Refused { session, refused } => {
                    self.board.say_of(session, refused.message.clone(), now);
                    self.board.take_back(session);
                }
                SessionChange::Trouble { session, error } => {
                    self.board.say(format!("session {session}: {error}"), now);
                }
                SessionChange::Withdrawn { session, id } => {
                    let told = format!("question {id}: no call waits for it any more");
                    self.board.say_of(session, told, now);
                }
                SessionChange::Done { session, command } if command == "cmd.policy.save" => {
                    let told = "the session's answers are saved".to_owned();
                    self.board.say_of(session, told, now);
                }
                SessionChange::Appeared { .. }
                | SessionChange::Vanished { .. }
                | SessionChange::Asked { .. }
                | SessionChange::Done { .. } => {}
            }
        }
        let names: Vec<&str> = self.sessions.iter().map(|(name, _)| name).collect();
        self.board.update(rows(self.sessions), &names);
    }

    /// One answer to many questions is told as one.
    fn told(&mut self, session: &str, audit: &Audit) -> String {
        let Some(together) = &mut self.together else { return once::told(audit) };
        let is_it = |(name, id): &(String, QuestionId)| name == session && *id == audit.id;
        let Some(at) = together.waiting.iter().position(is_it) else { return once::told(audit) };
        together.waiting.swap_remove(at);
        together.told += 1;
        match together.told {
            1 => once::told(audit),
            count => format!("{count} questions: {}", once::decision(audit)),
        }
    }

    fn notify(&mut self, changes: &[SessionChange]) {
        let Some(notices) = &mut self.notices else { return };
        for change in changes {
            if matches!(change, SessionChange::Asked { is_new: true, .. }) {
                notices.arrived();
            }
        }
        let open = self.sessions.iter().flat_map(|(_, session)| session.open());
        notices.tell(open.max_by_key(|question| question.asked_at), Instant::now());
    }
}

fn rows(sessions: &Sessions) -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, session) in sessions.iter() {
        for question in session.open() {
            let names = sessions.iter().map(|(name, _)| name);
            rows.push(Row {
                address: address::shown(names, name, question.id),
                command: session.command().to_owned(),
                project: session.project().to_owned(),
                question: question.clone(),
            });
        }
    }
    rows
}
