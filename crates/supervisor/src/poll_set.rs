//! What one turn of the event loop waits for: descriptors, each under the source that registered it and a key of that
//! source's own. Nobody has to know where in the set a descriptor stands.

use palisade_sys::proc;
use rustix::event::{PollFd, PollFlags};
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Whose a descriptor is, and which of theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Token {
    source: usize,
    key: usize,
}

/// Descriptors to wait for, with the events each is watched for.
#[derive(Debug, Default)]
pub(crate) struct PollSet<'fd> {
    descriptors: Vec<PollFd<'fd>>,
    tokens: Vec<Token>,
    /// What is added from now on is this one's.
    source: usize,
}

impl<'fd> PollSet<'fd> {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// What is added from now on belongs to this source.
    pub(crate) fn begin_source(&mut self, source: usize) {
        self.source = source;
    }

    /// That the other end is gone is reported whether `events` has it or not.
    pub(crate) fn add(&mut self, key: usize, descriptor: BorrowedFd<'fd>, events: PollFlags) {
        self.descriptors.push(PollFd::from_borrowed_fd(descriptor, events));
        self.tokens.push(Token { source: self.source, key });
    }

    /// Waits until something happened at one of them, or `timeout` is over.
    pub(crate) fn wait(mut self, timeout: Option<Duration>) -> palisade_sys::Result<Events> {
        proc::poll_for_work(&mut self.descriptors, timeout)?;
        let happened = self.tokens.iter().zip(&self.descriptors);
        let happened = happened.map(|(token, descriptor)| (*token, descriptor.revents()));
        Ok(Events(happened.filter(|(_, events)| !events.is_empty()).collect()))
    }
}

/// What happened at all of them.
#[derive(Debug, Default)]
pub(crate) struct Events(Vec<(Token, PollFlags)>);

impl Events {
    pub(crate) fn of_source(&self, source: usize) -> Ready {
        let own = self.0.iter().filter(|(token, _)| token.source == source);
        Ready(own.map(|(token, events)| (token.key, *events)).collect())
    }

    /// Whether the time was over first.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What happened at the descriptors of one source, by their keys.
#[derive(Debug, Default)]
pub(crate) struct Ready(Vec<(usize, PollFlags)>);

impl Ready {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, PollFlags)> + '_ {
        self.0.iter().copied()
    }

    /// Nothing, if it was not added.
    pub(crate) fn at(&self, key: usize) -> PollFlags {
        self.iter().filter(|(known, _)| *known == key).map(|(_, events)| events).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd as _;

    #[test]
    fn each_source_gets_its_own_events_by_its_own_keys() {
        let (quiet, _other) = rustix::pipe::pipe().unwrap();
        let (readable, writer) = rustix::pipe::pipe().unwrap();
        rustix::io::write(&writer, b"x").unwrap();
        let mut set = PollSet::new();
        set.begin_source(3);
        set.add(7, quiet.as_fd(), PollFlags::IN);
        set.add(8, readable.as_fd(), PollFlags::IN);
        set.begin_source(4);
        set.add(7, writer.as_fd(), PollFlags::OUT);
        let events = set.wait(Some(Duration::ZERO)).unwrap();
        let ready: Vec<_> = events.of_source(3).iter().collect();
        assert_eq!(ready, [(8, PollFlags::IN)]);
        assert_eq!(events.of_source(4).at(7), PollFlags::OUT);
        assert_eq!(events.of_source(4).at(8), PollFlags::empty());
        assert!(events.of_source(5).is_empty() && !events.is_empty());
    }
}
