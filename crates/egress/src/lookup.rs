//! Name lookups outside, for names that were allowed before.
//!
//! The first result is kept for a while, whatever the name servers answer meanwhile (NET-4, N05). Must never be
//! called for a name that no rule allows: the query itself would leak it.

use crate::config;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig,
    ResolverOpts,
};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::rdata::CNAME;
use hickory_resolver::proto::rr::{Name as WireName, RData, Record};
use palisade_hosts::Name;
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::timeout;

/// Minimum time that a result is kept: a rebinding server sends a TTL of 0 and another address right after the
/// check.
const HOLDS_AT_LEAST: Duration = Duration::from_secs(60);
/// Maximum time that a result is kept, because services move.
const HOLDS_AT_MOST: Duration = Duration::from_secs(3600);
/// How long a failure is kept: a missing name may appear soon.
const ABSENCE_HOLDS: Duration = Duration::from_secs(5);
/// For one query to one server. Programs inside give up after 5 seconds (`resolv.conf(5)`).
const SERVER_TIMEOUT: Duration = Duration::from_secs(2);
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(8);
/// Each lookup uses two sockets.
const AT_ONCE: usize = 32;
const MAX_NAMES: usize = 65_536;
/// Further addresses are ignored and never connected to.
const MAX_ADDRESSES: usize = 64;

/// The result for a name, and how long it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    pub resolved: Resolved,
    pub until: Instant,
}

/// The name servers' answer for a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    pub addresses: Vec<IpAddr>,
    /// The CNAME targets of the name.
    pub aliases: Vec<Name>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    #[error("the name does not exist")]
    NotFound,
    #[error("the name has no address")]
    NoAddress,
    #[error("no name server gave an answer: {0}")]
    Failed(String),
    #[error("too many names are cached")]
    TooMany,
    #[error("too many different names in a short time")]
    TooFast,
}

pub struct Lookup {
    resolver: Option<TokioResolver>,
    known: HashMap<String, Vec<IpAddr>>,
    remembered: RefCell<Remembered>,
    slots: Semaphore,
}

/// The result of a lookup, or one in progress: later callers wait for the same answer.
type Entry = Rc<OnceCell<Found>>;

#[derive(Debug)]
struct Found {
    result: Result<Resolved, LookupError>,
    until: Instant,
}

#[derive(Default)]
struct Remembered {
    entries: HashMap<Name, Entry>,
    swept: Option<Instant>,
}

impl Lookup {
    pub fn new(config: &config::Lookup) -> Self {
        let mut known: HashMap<String, Vec<IpAddr>> = HashMap::new();
        for (name, address) in &config.known {
            known.entry(name.clone()).or_default().push(*address);
        }
        Self {
            resolver: resolver(&config.servers),
            known,
            remembered: RefCell::default(),
            slots: Semaphore::new(AT_ONCE),
        }
    }

    /// All addresses of the name, of both families, and how long they are valid.
    pub async fn addresses(&self, name: &Name) -> Result<Pinned, LookupError> {
        let entry = self.remembered.borrow_mut().entry(name, Instant::now())?;
        let found = entry.get_or_init(|| self.find(name)).await;
        let resolved = found.result.clone()?;
        Ok(Pinned { resolved, until: found.until })
    }

    /// Whether the name can be resolved without a query.
    pub fn remembers(&self, name: &Name) -> bool {
        let remembered = self.remembered.borrow();
        let entry = remembered.entries.get(name);
        entry.is_some_and(|entry| entry.initialized() && holds(entry, Instant::now()))
    }

    async fn find(&self, name: &Name) -> Found {
        if let Some(addresses) = self.known.get(name.as_str()) {
            let resolved = Resolved { addresses: addresses.clone(), aliases: Vec::new() };
            return Found { result: Ok(resolved), until: Instant::now() + HOLDS_AT_MOST };
        }
        let asked = async {
            // The semaphore is never closed. If it were, no query would be sent.
            let _slot = self.slots.acquire().await.map_err(|_| LookupError::TooMany)?;
            self.ask(name).await
        };
        let late = || Err(LookupError::Failed("none answered in time".to_owned()));
        let (result, holds) = match timeout(LOOKUP_TIMEOUT, asked).await.unwrap_or_else(|_| late())
        {
            Ok((resolved, ttl)) => (Ok(resolved), ttl.clamp(HOLDS_AT_LEAST, HOLDS_AT_MOST)),
            Err(error) => (Err(error), ABSENCE_HOLDS),
        };
        Found { result, until: Instant::now() + holds }
    }

    async fn ask(&self, name: &Name) -> Result<(Resolved, Duration), LookupError> {
        let resolver = self
            .resolver
            .as_ref()
            .ok_or_else(|| LookupError::Failed("there are none in /etc/resolv.conf".to_owned()))?;
        let mut wire = WireName::from_ascii(name.as_str()).map_err(|_| LookupError::NotFound)?;
        // Otherwise search domains would be tried.
        wire.set_fqdn(true);
        let answer = resolver.lookup_ip(wire).await.map_err(|error| why(&error))?;
        let mut addresses: Vec<IpAddr> = Vec::new();
        for address in answer.iter().map(|address| address.to_canonical()) {
            if !addresses.contains(&address) && addresses.len() < MAX_ADDRESSES {
                addresses.push(address);
            }
        }
        if addresses.is_empty() {
            return Err(LookupError::NoAddress);
        }
        let ttl = answer.valid_until().saturating_duration_since(Instant::now());
        Ok((Resolved { addresses, aliases: aliases(answer.as_lookup().answers()) }, ttl))
    }
}

/// Targets that are not host names are ignored: no rule can name them.
fn aliases(records: &[Record]) -> Vec<Name> {
    let mut aliases: Vec<Name> = Vec::new();
    for record in records {
        if let RData::CNAME(CNAME(target)) = &record.data
            && let Ok(alias) = Name::parse(target.to_ascii().trim_end_matches('.'))
            && !aliases.contains(&alias)
        {
            aliases.push(alias);
        }
    }
    aliases
}

impl std::fmt::Debug for Lookup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let remembered = self.remembered.borrow().entries.len();
        f.debug_struct("Lookup").field("remembered", &remembered).finish_non_exhaustive()
    }
}

impl Remembered {
    fn entry(&mut self, name: &Name, now: Instant) -> Result<Entry, LookupError> {
        if let Some(entry) = self.entries.get(name).filter(|entry| holds(entry, now)) {
            return Ok(Rc::clone(entry));
        }
        if self.entries.len() >= MAX_NAMES && !self.entries.contains_key(name) {
            self.sweep(now)?;
        }
        let entry = Entry::default();
        self.entries.insert(name.clone(), Rc::clone(&entry));
        Ok(entry)
    }

    /// Removes expired entries. Valid entries are never removed to make room, because a flood of names could
    /// otherwise undo a pin.
    fn sweep(&mut self, now: Instant) -> Result<(), LookupError> {
        let lately = |swept: Instant| now.saturating_duration_since(swept) < ABSENCE_HOLDS;
        if !self.swept.is_some_and(lately) {
            self.swept = Some(now);
            self.entries.retain(|_, entry| {
                if entry.initialized() { holds(entry, now) } else { Rc::strong_count(entry) > 1 }
            });
        }
        if self.entries.len() < MAX_NAMES { Ok(()) } else { Err(LookupError::TooMany) }
    }
}

fn holds(entry: &Entry, now: Instant) -> bool {
    entry.get().is_none_or(|found| now < found.until)
}

fn resolver(servers: &[SocketAddr]) -> Option<TokioResolver> {
    let servers: Vec<NameServerConfig> = servers
        .iter()
        .map(|server| {
            let at_port = |mut connection: ConnectionConfig| {
                connection.port = server.port();
                connection
            };
            let connections =
                vec![at_port(ConnectionConfig::udp()), at_port(ConnectionConfig::tcp())];
            NameServerConfig::new(server.ip(), true, connections)
        })
        .collect();
    if servers.is_empty() {
        return None;
    }
    let mut options = ResolverOpts::default();
    options.timeout = SERVER_TIMEOUT;
    options.attempts = 1;
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.use_hosts_file = ResolveHosts::Never;
    // CNAME targets are checked too.
    options.preserve_intermediates = true;
    // The pinned results serve as the cache.
    options.cache_size = 0;
    options.num_concurrent_reqs = 1;
    let config = ResolverConfig::from_name_servers(servers);
    let provider = TokioRuntimeProvider::default();
    TokioResolver::builder_with_config(config, provider).with_options(options).build().ok()
}

fn why(error: &NetError) -> LookupError {
    if error.is_nx_domain() {
        LookupError::NotFound
    } else if error.is_no_records_found() {
        LookupError::NoAddress
    } else {
        LookupError::Failed(error.to_string())
    }
}

/// The servers and names that programs of this host use. Called before the process is confined.
pub fn system() -> config::Lookup {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    config::Lookup {
        servers: servers_in(&read("/etc/resolv.conf")),
        known: known_in(&read("/etc/hosts")),
    }
}

/// `resolv.conf(5)`: without a `nameserver`, the local machine is used. Servers with a zone (`fe80::1%eth0`)
/// are skipped.
fn servers_in(text: &str) -> Vec<SocketAddr> {
    let servers: Vec<SocketAddr> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let address = words.next().filter(|word| *word == "nameserver").and(words.next())?;
            Some(SocketAddr::new(address.parse().ok()?, 53))
        })
        .collect();
    if servers.is_empty() { vec![(Ipv4Addr::LOCALHOST, 53).into()] } else { servers }
}

/// `hosts(5)`. Names that are not valid host names are skipped.
fn known_in(text: &str) -> Vec<(String, IpAddr)> {
    text.lines()
        .map(|line| line.split_once('#').map_or(line, |(before, _)| before))
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let address: IpAddr = words.next()?.parse().ok()?;
            Some(words.filter_map(move |word| Some((Name::parse(word).ok()?.to_string(), address))))
        })
        .flatten()
        .collect()
}

#[cfg(test)]
#[path = "lookup_tests.rs"]
mod tests;
