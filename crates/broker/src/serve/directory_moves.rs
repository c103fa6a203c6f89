//! Moves of directories that are under way, each in a thread of its own: a large tree takes seconds, and nobody else has to
//! wait for it.

use super::workers::settle_in;
use crate::overlay_move::DirectoryMove;
use crate::unpoisoned::Unpoisoned as _;
use palisade_sys::Errno;
use palisade_sys::notify::{Listener, Response};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// No legitimate command moves more at once.
const MAX_THREADS: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct DirectoryMoves(Arc<UnderWay>);

#[derive(Debug, Default)]
struct UnderWay {
    have_begun: AtomicBool,
    count: Mutex<usize>,
    one_ended: Condvar,
}

impl DirectoryMoves {
    /// Answers `id` when the directory is moved.
    pub(crate) fn start(&self, listener: &'static Listener, id: u64, movement: Box<DirectoryMove>) {
        // A caller that is gone needs no answer.
        let respond = move |response| {
            let _ = listener.respond(id, response);
        };
        let under_way = Arc::clone(&self.0);
        let run = move || {
            let moved = settle_in().map_err(|error| error.errno).and_then(|()| movement.perform());
            respond(moved.map_or_else(Response::Fail, |()| Response::Value(0)));
            under_way.remove();
        };
        let is_started = self.0.add() && {
            let started = std::thread::Builder::new().spawn(run).is_ok();
            if !started {
                self.0.remove();
            }
            started
        };
        if !is_started {
            // As the kernel says: programs can copy it themselves.
            respond(Response::Fail(Errno::XDEV));
        }
    }

    /// Whether one was ever started.
    pub(crate) fn have_begun(&self) -> bool {
        self.0.have_begun.load(Ordering::Relaxed)
    }

    /// Until none is under way: what was begun is done as a whole.
    pub(crate) fn wait(&self) {
        let mut count = self.0.count.lock().held();
        while *count > 0 {
            count = self.0.one_ended.wait(count).held();
        }
    }
}

impl UnderWay {
    fn add(&self) -> bool {
        self.have_begun.store(true, Ordering::Relaxed);
        let mut count = self.count.lock().held();
        let has_room = *count < MAX_THREADS;
        *count += usize::from(has_room);
        has_room
    }

    fn remove(&self) {
        *self.count.lock().held() -= 1;
        self.one_ended.notify_all();
    }
}
