//! Limits on concurrent connections and on the bytes that they carry.
//!
//! A connection either waits (for a head, a response, a lookup, the peer, its first bytes) or is served. At the
//! limit a new one replaces one that waits: thousands of slow connections displace each other, and never one
//! that is served (N14).

use crate::config::Config;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;
use tokio::sync::Notify;

#[derive(Debug)]
pub(crate) struct Load {
    limits: Cell<Limits>,
    bytes: Cell<u64>,
    arrivals: Cell<u64>,
    served: Cell<usize>,
    waiting: RefCell<BTreeMap<Destination, Queue>>,
    /// Slots held by each client, if clients are distinguished.
    held: RefCell<BTreeMap<Client, usize>>,
    /// Connections without a slot that are being answered.
    turned_away: Cell<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Limits {
    /// If false, nothing here refuses a connection.
    bounded: bool,
    most: usize,
    most_bytes: Option<u64>,
}

impl Limits {
    fn of(config: &Config) -> Self {
        let bounded = config.checks.bounded;
        let most_bytes = config.limits.bytes.filter(|_| bounded);
        Self { bounded, most: config.limits.connections, most_bytes }
    }
}

/// The destination of a connection, as text. Connections that wait for the same one share a queue.
pub(crate) type Destination = (String, u16);

/// A smaller number of slots is not divided: half of it would be too few for any client.
const FEWEST_SHARED: usize = 8;

/// A client of a standalone proxy: an address, or the IPv6 /64 network, whose addresses all belong to one
/// client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Client(IpAddr);

impl Client {
    pub(crate) fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
            }
            address => address,
        })
    }
}

/// Oldest first.
type Queue = BTreeMap<u64, Rc<Notify>>;

/// One connection from inside.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    load: Rc<Load>,
    destination: Destination,
    client: Option<Client>,
    /// The number of outgoing connections open for it. Without one, it waits.
    open: Cell<usize>,
    /// The order of arrival: the oldest connection is displaced first.
    number: u64,
    is_waiting: Cell<bool>,
    lost: Rc<Notify>,
}

/// An outgoing connection is open for this task's connection, so it counts as served.
#[derive(Debug)]
pub(crate) struct Permit {
    load: Rc<Load>,
    slot: Option<Rc<ConnectionSlot>>,
    is_waiting: Cell<bool>,
}

/// Each uses a descriptor for a few seconds at most.
const MAX_TURNED_AWAY: usize = 32;

/// A connection without a slot, while it is being answered.
#[derive(Debug)]
pub(crate) struct TurnedAway(Rc<Load>);

impl Drop for TurnedAway {
    fn drop(&mut self) {
        self.0.turned_away.set(self.0.turned_away.get().saturating_sub(1));
    }
}

tokio::task_local! {
    /// The connection from inside that this task serves.
    static SLOT: Rc<ConnectionSlot>;
}

impl Load {
    pub(crate) fn new(config: &Config) -> Rc<Self> {
        Rc::new(Self {
            limits: Cell::new(Limits::of(config)),
            bytes: Cell::new(0),
            arrivals: Cell::new(0),
            served: Cell::new(0),
            waiting: RefCell::default(),
            held: RefCell::default(),
            turned_away: Cell::new(0),
        })
    }

    /// Applies other limits from now on. Open connections and bytes already carried count too.
    pub(crate) fn limit(&self, config: &Config) {
        self.limits.set(Limits::of(config));
    }

    /// Counts bytes. Returns whether they are within the limit.
    pub(crate) fn carry(&self, bytes: u64) -> bool {
        self.bytes.set(self.bytes.get().saturating_add(bytes));
        self.limits.get().most_bytes.is_none_or(|most| self.bytes.get() <= most)
    }

    /// How many bytes may still be carried.
    pub(crate) fn left(&self) -> u64 {
        self.limits.get().most_bytes.map_or(u64::MAX, |most| most.saturating_sub(self.bytes.get()))
    }

    /// A slot for a new connection. `None` if all slots are in use by connections that are served.
    pub(crate) fn slot(self: &Rc<Self>, destination: Destination) -> Option<Rc<ConnectionSlot>> {
        self.slot_of(destination, None)
    }

    /// The same for one of several clients. Also `None` if all slots of this client's share are served.
    pub(crate) fn slot_of(
        self: &Rc<Self>,
        destination: Destination,
        client: Option<Client>,
    ) -> Option<Rc<ConnectionSlot>> {
        let has_share = client.is_some_and(|client| self.has_its_share(client));
        if has_share && !self.push_out_of(&destination) || self.is_full() && !self.push_one_out() {
            return None;
        }
        if let Some(client) = client {
            *self.held.borrow_mut().entry(client).or_default() += 1;
        }
        let slot = Rc::new(ConnectionSlot {
            load: Rc::clone(self),
            destination,
            client,
            open: Cell::new(0),
            number: self.arrivals.replace(self.arrivals.get() + 1),
            is_waiting: Cell::new(false),
            lost: Rc::default(),
        });
        slot.wait();
        Some(slot)
    }

    /// The connection of this task counts as served while the permit exists. `None` if it has no slot and none
    /// is free.
    pub(crate) fn enter(self: &Rc<Self>) -> Option<Permit> {
        let slot = SLOT.try_with(Rc::clone).ok();
        if slot.is_none() && self.is_full() && !self.push_one_out() {
            return None;
        }
        let permit = Permit { load: Rc::clone(self), slot, is_waiting: Cell::new(false) };
        permit.open();
        Some(permit)
    }

    /// Whether a client holds half of the slots that the others leave free. The rest stays for the next client.
    fn has_its_share(&self, client: Client) -> bool {
        let Limits { bounded, most, .. } = self.limits.get();
        let held = self.held.borrow();
        let own = held.get(&client).copied().unwrap_or(0);
        let others = held.values().sum::<usize>().saturating_sub(own);
        bounded && most >= FEWEST_SHARED && own >= (most.saturating_sub(others) / 2).max(1)
    }

    /// Displaces the oldest waiting connection of this queue. Returns whether there was one.
    fn push_out_of(&self, destination: &Destination) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        let lost = waiting.get_mut(destination).and_then(|queue| queue.pop_first());
        lost.map(|(_, lost)| lost.notify_one()).is_some()
    }

    /// The reason why there is no slot for this client.
    pub(crate) fn full_for(&self, client: Option<Client>) -> String {
        match client.filter(|client| self.has_its_share(*client)) {
            Some(_) => "this client has as many connections open as one may have".to_owned(),
            None => self.full(),
        }
    }

    /// The reason why there is no slot.
    pub(crate) fn full(&self) -> String {
        format!("{} connections are open, which is the limit", self.limits.get().most)
    }

    /// The reason why a connection lost its slot.
    pub(crate) fn pushed_out(&self) -> String {
        let most = self.limits.get().most;
        format!("waited while {most} connections were open, and a new one took its place")
    }

    /// Allows a connection without a slot to be answered. `None` if enough others are being answered.
    pub(crate) fn turn_away(self: &Rc<Self>) -> Option<TurnedAway> {
        let count = self.turned_away.get();
        (count < MAX_TURNED_AWAY).then(|| {
            self.turned_away.set(count + 1);
            TurnedAway(Rc::clone(self))
        })
    }

    fn is_full(&self) -> bool {
        let waiting: usize = self.waiting.borrow().values().map(Queue::len).sum();
        let Limits { bounded, most, .. } = self.limits.get();
        bounded && self.served.get() + waiting >= most
    }

    /// Displaces the oldest waiting connection of the longest queue. Returns whether there was one.
    fn push_one_out(&self) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        let longest = waiting.iter_mut().max_by_key(|(_, queue)| queue.len());
        let Some((_, lost)) = longest.and_then(|(_, queue)| queue.pop_first()) else {
            return false;
        };
        lost.notify_one();
        true
    }

    fn count_served(&self, change: isize) {
        self.served.set(self.served.get().saturating_add_signed(change));
    }
}

impl ConnectionSlot {
    /// Runs the future that serves the connection. `None` if it was displaced while it waited.
    pub(crate) async fn hold<T>(self: Rc<Self>, serving: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = SLOT.scope(Rc::clone(&self), serving) => Some(done),
            () = self.lost.notified() => None,
        }
    }

    fn wait(&self) {
        let mut waiting = self.load.waiting.borrow_mut();
        let queue = waiting.entry(self.destination.clone()).or_default();
        queue.insert(self.number, Rc::clone(&self.lost));
        self.is_waiting.set(true);
    }

    fn leave_queue(&self) {
        if !self.is_waiting.replace(false) {
            return;
        }
        let mut waiting = self.load.waiting.borrow_mut();
        let Some(queue) = waiting.get_mut(&self.destination) else { return };
        queue.remove(&self.number);
        if queue.is_empty() {
            waiting.remove(&self.destination);
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.leave_queue();
        let Some(client) = self.client else { return };
        let mut held = self.load.held.borrow_mut();
        let Some(count) = held.get_mut(&client) else { return };
        *count = count.saturating_sub(1);
        if *count == 0 {
            held.remove(&client);
        }
    }
}

impl Permit {
    /// The outgoing connection cannot carry anything yet: the connection counts as waiting until
    /// [`Permit::resume`].
    pub(crate) fn wait(&self) {
        if self.slot.is_some() && !self.is_waiting.replace(true) {
            self.close();
        }
    }

    pub(crate) fn resume(&self) {
        if self.is_waiting.replace(false) {
            self.open();
        }
    }

    fn open(&self) {
        let Some(slot) = &self.slot else { return self.load.count_served(1) };
        if slot.open.replace(slot.open.get() + 1) == 0 {
            slot.leave_queue();
            self.load.count_served(1);
        }
    }

    fn close(&self) {
        let Some(slot) = &self.slot else { return self.load.count_served(-1) };
        if slot.open.replace(slot.open.get().saturating_sub(1)) == 1 {
            self.load.count_served(-1);
            slot.wait();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if !self.is_waiting.get() {
            self.close();
        }
    }
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
