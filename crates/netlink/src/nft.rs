//! Encodes tables, chains, rules and expressions for nf_tables. The numbers and their names are those of
//! `linux/netfilter/nf_tables.h`.

use crate::message::{Message, flags};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const SUBSYSTEM: u16 = 10 << 8;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const NEWTABLE: u16 = SUBSYSTEM;
const NEWCHAIN: u16 = SUBSYSTEM | 3;
const NEWRULE: u16 = SUBSYSTEM | 6;
const NEWSET: u16 = SUBSYSTEM | 9;
const GETSETELEM: u16 = SUBSYSTEM | 13;
const NEWOBJ: u16 = SUBSYSTEM | 18;
const GETOBJ: u16 = SUBSYSTEM | 19;

const NFPROTO_INET: u8 = 1;
const NFPROTO_IPV4: u8 = 2;
const NFPROTO_IPV6: u8 = 10;

/// Attribute type of a list element.
pub(crate) const LIST_ELEM: u16 = 1;
/// Attribute type of a data value.
pub(crate) const DATA_VALUE: u16 = 1;
const OBJECT_COUNTER: u32 = 1;
const EQUAL: u32 = 0;
const NOT_EQUAL: u32 = 1;

/// Which packets a table sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Inet,
    /// For a kernel without IPv6, which has no `inet` tables either.
    Ip,
}

impl Family {
    /// `struct nfgenmsg`
    fn header(self) -> [u8; 4] {
        match self {
            Self::Inet => [NFPROTO_INET, 0, 0, 0],
            Self::Ip => [NFPROTO_IPV4, 0, 0, 0],
        }
    }

    /// Whether its tables see only packets of this version.
    fn is_only(self, version: Version) -> bool {
        matches!((self, version), (Self::Ip, Version::V4))
    }
}

/// IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V4,
    V6,
}

impl Version {
    pub(crate) fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    fn protocol(self) -> u8 {
        match self {
            Self::V4 => NFPROTO_IPV4,
            Self::V6 => NFPROTO_IPV6,
        }
    }
}

/// One table and the messages that create it.
#[derive(Debug)]
pub(crate) struct Table {
    family: Family,
    name: String,
    messages: Vec<Message>,
}

/// Type, hook and priority of a base chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChainPosition {
    pub(crate) kind: &'static str,
    pub(crate) hook: u32,
    pub(crate) priority: i32,
}

impl ChainPosition {
    /// Before the second routing decision.
    pub(crate) const REWRITE_OUTPUT: Self = Self { kind: "nat", hook: 3, priority: -100 };
    pub(crate) const FILTER_OUTPUT: Self = Self { kind: "filter", hook: 3, priority: 0 };
    pub(crate) const FILTER_INPUT: Self = Self { kind: "filter", hook: 1, priority: 0 };
    pub(crate) const REWRITE_LEAVING: Self = Self { kind: "nat", hook: 4, priority: 100 };
}

/// What a table's lifetime is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifetime {
    Namespace,
    /// The socket that created it (`NFT_TABLE_F_OWNER`, 5.12). No other process can change it.
    Socket,
}

impl Table {
    pub(crate) fn new(family: Family, name: &str, lifetime: Lifetime) -> Self {
        const OWNER: u32 = 0x2;
        let begin = Message::new("begin packet rules", BATCH_BEGIN, 0, &[0, 0, 0, 10]);
        let created = flags::CREATE | flags::EXCL;
        let table = Message::new("add a table", NEWTABLE, created, &family.header())
            .text(1, name)
            .number(2, if lifetime == Lifetime::Socket { OWNER } else { 0 });
        Self { family, name: name.to_owned(), messages: vec![begin, table] }
    }

    pub(crate) fn family(&self) -> Family {
        self.family
    }

    pub(crate) fn chain(&mut self, name: &str, place: ChainPosition) {
        let chain = self.new_chain(name);
        self.messages.push(
            chain
                .nested(4, |hook| {
                    hook.number(1, place.hook).number(2, place.priority.cast_unsigned())
                })
                .text(7, place.kind),
        );
    }

    /// A chain that packets reach only by [`Rule::jump`].
    pub(crate) fn side_chain(&mut self, name: &str) {
        let chain = self.new_chain(name);
        self.messages.push(chain);
    }

    fn new_chain(&self, name: &str) -> Message {
        self.message("add a chain", NEWCHAIN, flags::CREATE).text(1, &self.name).text(3, name)
    }

    /// A set that rules add to. Its key is protocol, address and port, and each element has its own counter.
    pub(crate) fn counting_set(&mut self, name: &str, version: Version, most: u32) {
        const EVAL: u32 = 0x20;
        // nft's type numbers (its datatype.h), six bits each. The kernel ignores them, but `nft list` needs
        // them.
        const PROTOCOL: u32 = 12;
        const PORT: u32 = 13;
        let (address, address_length) = match version {
            Version::V4 => (7, 4),
            Version::V6 => (8, 16),
        };
        let key_type = (PROTOCOL << 12) | (address << 6) | PORT;
        let key_length = 4 + address_length + 4;
        let message = self.message("add a set", NEWSET, flags::CREATE);
        let id = u32::try_from(self.messages.len()).unwrap_or(u32::MAX);
        self.messages.push(
            message
                .text(1, &self.name)
                .text(2, name)
                .number(3, EVAL)
                .number(4, key_type)
                .number(5, key_length)
                .nested(9, |size| size.number(1, most))
                .number(10, id),
        );
    }

    pub(crate) fn counter(&mut self, name: &str) {
        let message = self.message("add a counter", NEWOBJ, flags::CREATE);
        self.messages.push(
            message.text(1, &self.name).text(2, name).number(3, OBJECT_COUNTER).nested(4, |d| d),
        );
    }

    pub(crate) fn rule(&mut self, chain: &str, rule: Rule) {
        let message = self.message("add a rule", NEWRULE, flags::CREATE | flags::APPEND);
        let expressions = rule.expressions(self.family);
        self.messages.push(message.text(1, &self.name).text(2, chain).nested(4, |list| {
            expressions.into_iter().fold(list, |list, expression| {
                list.nested(LIST_ELEM, |item| expression.write(item))
            })
        }));
    }

    /// All messages as one transaction: the kernel applies all of them or none.
    pub(crate) fn finish(mut self) -> Vec<Message> {
        // Older kernels do not acknowledge the end of a batch.
        let end = Message::new("end packet rules", BATCH_END, 0, &[0, 0, 0, 10]).without_answer();
        self.messages.push(end);
        self.messages
    }

    fn message(&self, what: &'static str, kind: u16, flags: u16) -> Message {
        Message::new(what, kind, flags, &self.family.header())
    }
}

/// Requests the elements of a set.
pub(crate) fn list_set(family: Family, table: &str, set: &str) -> Message {
    Message::new("list a set", GETSETELEM, flags::DUMP, &family.header())
        .text(1, table)
        .text(2, set)
}

/// Requests a counter.
pub(crate) fn get_counter(family: Family, table: &str, name: &str) -> Message {
    Message::new("read a counter", GETOBJ, flags::ACK, &family.header())
        .text(1, table)
        .text(2, name)
        .number(3, OBJECT_COUNTER)
}

/// The conditions and actions of a rule, evaluated in order.
#[derive(Debug, Default)]
pub(crate) struct Rule {
    /// Checked first in a table that sees both versions.
    version: Option<Version>,
    expressions: Vec<Expression>,
}

/// The loopback interface's index in every namespace (`LOOPBACK_IFINDEX`).
const LOOPBACK_INDEX: u32 = 1;
/// The first 32-bit register. A value occupies as many consecutive registers as it needs.
pub(crate) const FIRST: u32 = 8;

impl Rule {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn version(self, version: Version) -> Self {
        Self { version: Some(version), ..self }
    }

    /// In a table that sees only one version, a check for it is not just redundant: nft 1.0.6 takes it for
    /// another layer and aborts while listing the host's whole ruleset.
    fn expressions(self, family: Family) -> Vec<Expression> {
        let asked = self.version.filter(|version| !family.is_only(*version));
        let mut all = asked.map_or_else(Vec::new, |version| {
            Self::new().meta(15, FIRST).equals(FIRST, &[version.protocol()]).expressions
        });
        all.extend(self.expressions);
        all
    }

    pub(crate) fn protocol(self, protocol: u8) -> Self {
        self.meta(16, FIRST).equals(FIRST, &[protocol])
    }

    pub(crate) fn not_protocol(self, protocol: u8) -> Self {
        self.meta(16, FIRST).compares(FIRST, NOT_EQUAL, &[protocol])
    }

    /// The destination port. Its offset is the same for TCP and UDP.
    pub(crate) fn port(self, port: u16) -> Self {
        self.load_port(FIRST).equals(FIRST, &port.to_be_bytes())
    }

    pub(crate) fn icmp_type(self, kind: u8) -> Self {
        self.payload(2, 0, 1, FIRST).equals(FIRST, &[kind])
    }

    /// The packet leaves by the loopback interface, so it returns to this namespace.
    pub(crate) fn leaves_by_loopback(self) -> Self {
        self.meta(5, FIRST).equals(FIRST, &LOOPBACK_INDEX.to_ne_bytes())
    }

    pub(crate) fn comes_by_loopback(self) -> Self {
        self.meta(4, FIRST).equals(FIRST, &LOOPBACK_INDEX.to_ne_bytes())
    }

    /// The packet has intermediate destinations, so the address in its header is not the final one.
    pub(crate) fn has_stops(self, version: Version) -> Self {
        const PLAIN_HEADER: u8 = 0x45;
        const ROUTING: u8 = 43;
        match version {
            // Source routes are IP options, and no packet that is sent without privileges needs options.
            Version::V4 => self.version(version).payload(1, 0, 1, FIRST).compares(
                FIRST,
                NOT_EQUAL,
                &[PLAIN_HEADER],
            ),
            // Putting another extension header before it requires privileges (ipv6(7), IPV6_RTHDR).
            Version::V6 => self.version(version).payload(1, 6, 1, FIRST).equals(FIRST, &[ROUTING]),
        }
    }

    /// The destination is in this range.
    pub(crate) fn to(self, address: IpAddr, prefix: u8) -> Self {
        let version = Version::of(address);
        self.version(version).load_destination(version, FIRST).within(address, prefix)
    }

    pub(crate) fn from(self, address: Ipv4Addr, prefix: u8) -> Self {
        self.version(Version::V4).payload(1, 12, 4, FIRST).within(address.into(), prefix)
    }

    /// The packet's connection has at least one of these bits set.
    pub(crate) fn connection(self, key: ConnectionKey, bits: u32) -> Self {
        let key = match key {
            ConnectionKey::State => 0,
            ConnectionKey::Status => 2,
        };
        let mut rule = self.push("ct", move |data| data.number(1, FIRST).number(2, key));
        rule = rule.masked(FIRST, &bits.to_ne_bytes());
        rule.compares(FIRST, NOT_EQUAL, &[0; 4])
    }

    pub(crate) fn load_protocol(self, register: u32) -> Self {
        self.meta(16, register)
    }

    pub(crate) fn load_port(self, register: u32) -> Self {
        self.payload(2, 2, 2, register)
    }

    pub(crate) fn load_destination(self, version: Version, register: u32) -> Self {
        match version {
            Version::V4 => self.payload(1, 16, 4, register),
            Version::V6 => self.payload(1, 24, 16, register),
        }
    }

    pub(crate) fn load(self, register: u32, value: &[u8]) -> Self {
        let value = value.to_vec();
        self.push("immediate", move |data| {
            data.number(1, register).nested(2, |inner| inner.attribute(DATA_VALUE, &value))
        })
    }

    /// Counts under the key that starts in this register.
    pub(crate) fn count_in(self, set: &'static str, register: u32) -> Self {
        self.push("dynset", move |data| {
            data.text(1, set)
                .number(3, 0)
                .number(4, register)
                .nested(7, |inner| inner.text(1, "counter").nested(2, |counter| counter))
        })
    }

    pub(crate) fn count(self, counter: &'static str) -> Self {
        self.push("objref", move |data| data.number(1, OBJECT_COUNTER).text(2, counter))
    }

    pub(crate) fn accept(self) -> Self {
        const NF_ACCEPT: u32 = 1;
        self.verdict(|verdict| verdict.number(1, NF_ACCEPT))
    }

    pub(crate) fn drop_it(self) -> Self {
        const NF_DROP: u32 = 0;
        self.verdict(|verdict| verdict.number(1, NF_DROP))
    }

    pub(crate) fn jump(self, chain: &'static str) -> Self {
        const NFT_JUMP: i32 = -3;
        self.verdict(move |verdict| verdict.number(1, NFT_JUMP.cast_unsigned()).text(2, chain))
    }

    fn verdict(self, verdict: impl FnOnce(Message) -> Message + 'static) -> Self {
        const REGISTER: u32 = 0;
        self.push("immediate", |data| {
            data.number(1, REGISTER).nested(2, |inner| inner.nested(2, verdict))
        })
    }

    /// Rewrites the destination (DNAT).
    pub(crate) fn redirect(self, address: IpAddr, port: u16) -> Self {
        const DNAT: u32 = 1;
        let family = u32::from(Version::of(address).protocol());
        let bytes = octets(address);
        let port_register = FIRST + 4;
        self.load(FIRST, &bytes).load(port_register, &port.to_be_bytes()).push("nat", move |data| {
            data.number(1, DNAT)
                .number(2, family)
                .number(3, FIRST)
                .number(4, FIRST)
                .number(5, port_register)
                .number(6, port_register)
        })
    }

    pub(crate) fn masquerade(self) -> Self {
        self.push("masq", |data| data)
    }

    /// The sender gets an error immediately.
    pub(crate) fn reject(self) -> Self {
        const ICMPX_UNREACH: u32 = 2;
        const PORT_UNREACH: u8 = 1;
        self.push("reject", |data| data.number(1, ICMPX_UNREACH).attribute(2, &[PORT_UNREACH]))
    }

    /// The same for TCP, which would treat an ICMP error as transient and retry.
    pub(crate) fn reset(self) -> Self {
        const TCP_RESET: u32 = 1;
        self.push("reject", |data| data.number(1, TCP_RESET))
    }

    fn within(self, address: IpAddr, prefix: u8) -> Self {
        let bytes = octets(address);
        let mask = mask(bytes.len(), prefix);
        let network: Vec<u8> = bytes.iter().zip(&mask).map(|(byte, mask)| byte & mask).collect();
        self.masked(FIRST, &mask).equals(FIRST, &network)
    }

    fn meta(self, key: u32, register: u32) -> Self {
        self.push("meta", move |data| data.number(1, register).number(2, key))
    }

    fn payload(self, base: u32, offset: u32, length: u32, register: u32) -> Self {
        self.push("payload", move |data| {
            data.number(1, register).number(2, base).number(3, offset).number(4, length)
        })
    }

    fn masked(self, register: u32, mask: &[u8]) -> Self {
        let (mask, nothing) = (mask.to_vec(), vec![0; mask.len()]);
        let length = u32::try_from(mask.len()).unwrap_or(u32::MAX);
        self.push("bitwise", move |data| {
            data.number(1, register)
                .number(2, register)
                .number(3, length)
                .nested(4, |inner| inner.attribute(DATA_VALUE, &mask))
                .nested(5, |inner| inner.attribute(DATA_VALUE, &nothing))
        })
    }

    fn equals(self, register: u32, value: &[u8]) -> Self {
        self.compares(register, EQUAL, value)
    }

    fn compares(self, register: u32, operator: u32, value: &[u8]) -> Self {
        let value = value.to_vec();
        self.push("cmp", move |data| {
            data.number(1, register)
                .number(2, operator)
                .nested(3, |inner| inner.attribute(DATA_VALUE, &value))
        })
    }

    fn push(mut self, name: &'static str, data: impl FnOnce(Message) -> Message + 'static) -> Self {
        self.expressions.push(Expression { name, data: Box::new(data) });
        self
    }
}

/// Which conntrack field a rule compares.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ConnectionKey {
    State,
    Status,
}

struct Expression {
    name: &'static str,
    data: Box<dyn FnOnce(Message) -> Message>,
}

impl Expression {
    fn write(self, item: Message) -> Message {
        item.text(1, self.name).nested(2, self.data)
    }
}

impl std::fmt::Debug for Expression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn mask(length: usize, prefix: u8) -> Vec<u8> {
    let bits = Ipv6Addr::from(u128::MAX.checked_shl(128 - u32::from(prefix.min(128))).unwrap_or(0));
    bits.octets()[..length].to_vec()
}

#[cfg(test)]
#[path = "nft_tests.rs"]
mod tests;
