//! Decides about outgoing connections: every front end calls [`Engine::admit`], and connects only with
//! [`Engine::dial`].
//!
//! A name is looked up after it was allowed, every address it resolves to is checked, and only those addresses
//! are connected to (NET-4). Must never return an address that was not checked.

mod admitted;
pub mod certificates;
pub(crate) mod dial;
pub mod dns;
mod own;
pub mod tunnel;
mod upstream;

use crate::asks::{Answer, Asks};
use crate::config::{Config, OnUnknown};
use crate::error::EgressError;
use crate::events::Events;
use crate::limits::Load;
use crate::lookup::{Lookup, LookupError, Pinned, Resolved};
use crate::refused::{denied, not_allowed, refusal, said_no};
use crate::wire::{EgressEvent, Holds};
use palisade_hosts::{BlockedAddress, Host, Name, Rules, Verdict};
use palisade_record::network::{NameQueried, NetworkAction, NetworkAttempt, Via};
use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::{Rc, Weak};
use std::time::Duration;
use tokio::net::TcpStream;

pub use crate::refused::{Cause, Refused, Wanted};
pub(crate) use admitted::tell_if_spent;
pub use admitted::{Admitted, out_of_bytes};
use dns::{Counted, Counting, Known};
use own::OwnAddresses;

#[derive(Debug)]
pub struct Engine {
    pub config: Config,
    pub events: Events,
    /// Only [`Engine::look_up`] uses it.
    lookup: Lookup,
    pub dns: dns::State,
    pub intercept: certificates::State,
    pub(crate) load: Rc<Load>,
    asks: Asks,
    /// The rules of the plan, and the answers given since.
    rules: RefCell<Rules>,
    /// The addresses of this host.
    own_addresses: OwnAddresses,
    /// Where a standalone proxy listens.
    own: Option<SocketAddr>,
    /// The latest result of [`Engine::renewed`]; the server holds it.
    newest: Rc<RefCell<Weak<Self>>>,
}

impl Engine {
    /// Reads all files that it needs, because none can be opened after confinement.
    pub fn new(config: Config, events: Events) -> Result<Rc<Self>, EgressError> {
        let load = Load::new(&config);
        Self::made(config, events, None, load, Rc::default())
    }

    /// The same for a standalone proxy that listens on `own` in the host's network: it must not be reachable
    /// through itself (N13).
    pub fn alone(config: Config, events: Events, own: SocketAddr) -> Result<Rc<Self>, EgressError> {
        let load = Load::new(&config);
        Self::made(config, events, Some(own), load, Rc::default())
    }

    /// The same with other rules and limits. Open connections and bytes already carried still count.
    pub fn renewed(&self, config: Config) -> Result<Rc<Self>, EgressError> {
        let (load, newest) = (Rc::clone(&self.load), Rc::clone(&self.newest));
        let renewed = Self::made(config, self.events.clone(), self.own, load, newest)?;
        self.load.limit(&renewed.config);
        self.newest.replace(Rc::downgrade(&renewed));
        Ok(renewed)
    }

    /// The engine with the current rules: another one than this, if they were reloaded after the client
    /// connected.
    pub(crate) fn now(self: &Rc<Self>) -> Rc<Self> {
        self.newest.borrow().upgrade().unwrap_or_else(|| Rc::clone(self))
    }

    fn made(
        config: Config,
        events: Events,
        own: Option<SocketAddr>,
        load: Rc<Load>,
        newest: Rc<RefCell<Weak<Self>>>,
    ) -> Result<Rc<Self>, EgressError> {
        Ok(Rc::new(Self {
            own_addresses: OwnAddresses::new(),
            own,
            newest,
            lookup: Lookup::new(&config.lookup),
            dns: dns::State::new(&config),
            intercept: certificates::State::new(&config)?,
            load,
            asks: Asks::new(events.clone()),
            rules: RefCell::new(config.rules.clone()),
            events,
            config,
        }))
    }

    /// The verdict of the rules, including this session's answers.
    pub fn judge(&self, host: &Host, port: u16) -> Verdict {
        if !self.config.checks.rules {
            return unchecked();
        }
        self.rules.borrow().judge(host, port)
    }

    /// The same for a name that is to be looked up.
    pub fn judge_name(&self, name: &Name) -> Verdict {
        if !self.config.checks.rules {
            return unchecked();
        }
        self.rules.borrow().judge_name(name)
    }

    /// Whether a name may resolve to this address. A connection to one of this host's own addresses would
    /// bypass its firewall, so a rule must allow exactly that address.
    pub fn check_address(&self, address: IpAddr) -> Result<(), BlockedAddress> {
        if !self.config.checks.addresses {
            return Ok(());
        }
        let rules = self.rules.borrow();
        rules.check_address(address)?;
        if rules.names_alone(address) { Ok(()) } else { self.own_addresses.check(address) }
    }

    /// Fails with the reason if a rule denies one of the CNAME targets of an allowed name.
    pub(crate) fn check_aliases(&self, aliases: &[Name], port: Option<u16>) -> Result<(), String> {
        if !self.config.checks.rules {
            return Ok(());
        }
        let rules = self.rules.borrow();
        let denied = |alias: &Name| {
            let rule = rules.denies_alias(alias, port)?;
            Some(format!("the name is an alias of {alias}, which is denied by `{rule}`"))
        };
        aliases.iter().find_map(denied).map_or(Ok(()), Err)
    }

    /// Whether connecting would ask a person.
    fn would_ask(&self, host: &Host, port: u16) -> bool {
        self.config.on_unknown == OnUnknown::Ask && self.judge(host, port).is_open()
    }

    /// Handles an answer from the supervisor.
    pub(crate) fn answered(&self, ask: u64, answer: Answer, holds: Holds) {
        let Some(standing) = self.asks.answer(ask, answer, holds) else { return };
        let written = format!("answered by {}", standing.source);
        let mut rules = self.rules.borrow_mut();
        if standing.allowed {
            rules.allow(standing.host, standing.port, &written);
        } else {
            rules.deny(standing.host, standing.port, &written);
        }
    }

    /// Judges the destination, asks if necessary, counts the connection, resolves the name and checks every
    /// address. The decision is reported.
    pub async fn admit(self: &Rc<Self>, wanted: Wanted) -> Result<Admitted, Refused> {
        self.events.room().await;
        let decided = self.decide(&wanted).await.map_err(|refused| self.hinted(refused));
        self.tell_decided(wanted.via, &decided);
        decided
    }

    /// The same for a client that may leave while a person is asked; `gone` returns when it does. `None` if it
    /// left, which is also reported.
    pub(crate) async fn admit_while_there(
        self: &Rc<Self>,
        wanted: Wanted,
        gone: impl Future<Output = ()>,
    ) -> Option<Result<Admitted, Refused>> {
        if !self.would_ask(&wanted.host, wanted.port) {
            return Some(self.admit(wanted).await);
        }
        let via = wanted.via;
        let reason = "the program went away before anybody answered".to_owned();
        let left = self.hinted(self.not_allowed(&wanted, reason));
        tokio::select! {
            // A client that hangs up immediately is still decided and reported.
            biased;
            admitted = self.admit(wanted) => Some(admitted),
            () = gone => {
                self.events.tell(EgressEvent::Attempt(left.attempt(via)));
                None
            }
        }
    }

    /// Whether an open connection may carry another request. It may if it was admitted by the current rules, or
    /// if they would admit it again. Not reported.
    pub(crate) fn readmit(&self, admitted: &Admitted) -> Result<(), Refused> {
        let before = admitted.engine();
        if std::ptr::eq(self, before) {
            return Ok(());
        }
        let wanted = admitted.wanted();
        let addresses: Vec<IpAddr> = admitted.addresses.iter().map(SocketAddr::ip).collect();
        let ruled = self.ruled(&wanted, self.judge(&wanted.host, wanted.port));
        let resolved = Resolved { addresses, aliases: admitted.aliases.clone() };
        let checked = ruled.and_then(|_rule| self.check(&wanted, &resolved));
        checked.map_err(|refused| self.hinted(refused))?;
        // Credentials for one proxy must not be sent to another.
        if self.config.upstream != before.config.upstream {
            let reason = "there is another way there now: connect anew".to_owned();
            return Err(refusal(&wanted, Cause::Unreachable, reason));
        }
        Ok(())
    }

    /// An option is a hint for the user who started a run. The clients of a standalone proxy did not start it.
    fn hinted(&self, refused: Refused) -> Refused {
        if self.own.is_some() { Refused { flag: None, ..refused } } else { refused }
    }

    /// [`Engine::admit`] for the target of a redirect that the proxy follows.
    pub async fn admit_redirect(self: &Rc<Self>, wanted: Wanted) -> Result<Admitted, Refused> {
        self.events.room().await;
        let decided = self.decide(&wanted).await.map_err(|refused| {
            let action = match refused.cause {
                Cause::Address | Cause::Lookup => NetworkAction::RedirectBlocked,
                _ => NetworkAction::RedirectDenied,
            };
            self.hinted(Refused { action, ..refused })
        });
        self.tell_decided(wanted.via, &decided);
        decided
    }

    fn tell_decided(&self, via: Via, decided: &Result<Admitted, Refused>) {
        self.events.tell(EgressEvent::Attempt(match decided {
            Ok(admitted) => NetworkAttempt {
                action: NetworkAction::ProxyAllowed,
                via,
                host: admitted.host.to_string(),
                address: admitted.addresses.first().map(SocketAddr::ip),
                port: admitted.port,
                rule: Some(admitted.rule.clone()),
                reason: None,
                allow: None,
                count: 1,
            },
            Err(refused) => refused.attempt(via),
        }));
    }

    /// Connects to an admitted destination, within the configured time.
    pub async fn dial(self: &Rc<Self>, admitted: &Admitted) -> Result<TcpStream, Refused> {
        admitted.wait();
        let dialled = dial::dial(self, admitted).await;
        admitted.resume();
        dialled
    }

    /// An admitted connection names another host than the one it was admitted for. Reported.
    pub fn disagrees(&self, admitted: &Admitted, reason: String) -> Refused {
        self.end(admitted, Cause::Disagrees, reason)
    }

    /// An admitted connection requests something that is not allowed for any host. Reported.
    pub fn forbids(&self, admitted: &Admitted, reason: String) -> Refused {
        self.end(admitted, Cause::Denied, reason)
    }

    /// An admitted connection would exceed the total byte limit. Reported.
    pub fn spent(&self, admitted: &Admitted) -> Refused {
        self.end(admitted, Cause::Limit, out_of_bytes().to_string())
    }

    /// How long a client may take to send its head.
    pub fn head_limit(&self) -> Option<Duration> {
        self.config.checks.bounded.then_some(self.config.limits.head)
    }

    fn end(&self, admitted: &Admitted, cause: Cause, reason: String) -> Refused {
        let refused = Refused {
            cause,
            action: NetworkAction::ProxyDenied,
            host: admitted.host.to_string(),
            port: admitted.port,
            reason,
            rule: Some(admitted.rule.clone()),
            flag: None,
        };
        self.events.tell(EgressEvent::Attempt(refused.attempt(admitted.via)));
        refused
    }

    async fn decide(self: &Rc<Self>, wanted: &Wanted) -> Result<Admitted, Refused> {
        let rule = self.permission(wanted).await?;
        let full = || refusal(wanted, Cause::Limit, self.load.full());
        let permit = self.load.enter().ok_or_else(full)?;
        if self.load.left() == 0 {
            return Err(refusal(wanted, Cause::Limit, "the limit of bytes is reached".to_owned()));
        }
        permit.wait();
        let resolved = self.resolve(wanted).await?;
        permit.resume();
        Ok(Admitted::new(self, wanted, resolved, rule, permit))
    }

    /// The rule that allows it.
    async fn permission(&self, wanted: &Wanted) -> Result<String, Refused> {
        let verdict = self.judge(&wanted.host, wanted.port);
        let mut unanswered = String::new();
        if verdict.is_open() && self.config.on_unknown == OnUnknown::Ask {
            match self.asks.ask(&wanted.host, wanted.port).await {
                Ok(Answer { allowed: true, source }) => return Ok(format!("answered by {source}")),
                Ok(Answer { allowed: false, source }) => {
                    unanswered = format!(", and {}", said_no(&source));
                }
                Err(too_many) => unanswered = format!(", and {too_many}"),
            }
        }
        self.ruled(wanted, verdict)
            .map_err(|refused| Refused { reason: refused.reason + &unanswered, ..refused })
    }

    /// The rule that allows it, without asking.
    fn ruled(&self, wanted: &Wanted, verdict: Verdict) -> Result<String, Refused> {
        match verdict {
            Verdict::Allowed { rule } => Ok(rule),
            Verdict::Denied { rule, reason } => {
                Err(denied(wanted, rule, &reason, &self.rules.borrow()))
            }
            Verdict::Unknown => Err(self.not_allowed(wanted, "no rule allows it".to_owned())),
        }
    }

    fn not_allowed(&self, wanted: &Wanted, reason: String) -> Refused {
        not_allowed(wanted, reason, &self.rules.borrow())
    }

    fn is_own(&self, address: SocketAddr) -> bool {
        let Some(own) = self.own.filter(|own| own.port() == address.port()) else { return false };
        self.config.checks.addresses
            && (own.ip() == address.ip() || self.own_addresses.holds(address.ip()))
    }

    /// The addresses of a name that came with a connection.
    pub(crate) async fn find(&self, name: &Name, via: Via) -> Result<Resolved, LookupError> {
        let counted = self.count_new(name, via)?;
        self.look_up(name, counted).await.map(|pinned| pinned.resolved)
    }

    /// Counts and inspects a name that came with a connection, like one from a query. An upstream proxy learns
    /// the name too.
    fn count_new(&self, name: &Name, via: Via) -> Result<Counted, LookupError> {
        let was_told = self.config.upstream.is_some() && self.dns.was_counted(name);
        if was_told || self.remembers(name) { Ok(Counted::again()) } else { self.count(name, via) }
    }

    /// Whether the name can be resolved without a query.
    pub(crate) fn remembers(&self, name: &Name) -> bool {
        self.lookup.remembers(name)
    }

    /// The only way to query the resolvers outside.
    pub(crate) async fn look_up(&self, name: &Name, _: Counted) -> Result<Pinned, LookupError> {
        self.lookup.addresses(name).await
    }

    fn count(&self, name: &Name, via: Via) -> Result<Counted, LookupError> {
        let Counting { suspicion, counted } = self.dns.count(name.as_str(), Known::No);
        if suspicion.is_some() || counted.is_none() {
            let reason = counted.is_none().then(|| LookupError::TooFast.to_string());
            self.events.tell(EgressEvent::Queried(NameQueried {
                name: name.to_string(),
                record: way_of(via).to_owned(),
                answer: if counted.is_some() { "NOERROR" } else { "REFUSED" }.to_owned(),
                // An allowed name: only the rate refuses it.
                rule: reason.is_some().then(|| "limit of lookups".to_owned()),
                reason,
                suspicion,
                count: 1,
            }));
        }
        counted.ok_or(LookupError::TooFast)
    }

    /// All addresses of the destination, each of them checked.
    async fn resolve(&self, wanted: &Wanted) -> Result<Resolved, Refused> {
        let found = match &wanted.host {
            Host::Address(address) => Resolved { addresses: vec![*address], ..Resolved::default() },
            // The proxy resolves names itself, and we do not see its results.
            Host::Name(name) if self.config.upstream.is_some() => {
                self.count_new(name, wanted.via).map_err(|error| not_found(wanted, &error))?;
                Resolved::default()
            }
            Host::Name(name) => {
                let found = self.find(name, wanted.via).await;
                found.map_err(|error| not_found(wanted, &error))?
            }
        };
        self.check(wanted, &found)?;
        Ok(found)
    }

    /// One blocked address refuses the name (N04, N05), and so does one denied CNAME target.
    fn check(&self, wanted: &Wanted, found: &Resolved) -> Result<(), Refused> {
        self.check_aliases(&found.aliases, Some(wanted.port))
            .map_err(|reason| refusal(wanted, Cause::Denied, reason))?;
        for address in &found.addresses {
            self.check_address(*address).map_err(|blocked| {
                let reason = format!("{address} is {} ({})", blocked.what, blocked.range);
                refusal(wanted, Cause::Address, reason)
            })?;
            if self.is_own(SocketAddr::new(*address, wanted.port)) {
                let reason = format!("{address} is this proxy itself");
                return Err(refusal(wanted, Cause::Address, reason));
            }
        }
        Ok(())
    }
}

fn not_found(wanted: &Wanted, error: &LookupError) -> Refused {
    let cause = if *error == LookupError::TooFast { Cause::Limit } else { Cause::Lookup };
    refusal(wanted, cause, error.to_string())
}

/// Replaces the record type for a name that did not come from a query.
fn way_of(via: Via) -> &'static str {
    match via {
        Via::Connect => "CONNECT",
        Via::Http => "URL",
        Via::Socks => "SOCKS",
        Via::Transparent | Via::Datagram | Via::Published => "TLS",
    }
}

fn unchecked() -> Verdict {
    Verdict::Allowed { rule: "(rules are switched off)".to_owned() }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
