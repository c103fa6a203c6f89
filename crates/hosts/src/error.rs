//! Parse errors of hosts, patterns and ports. The text may come from inside the sandbox, so messages show it
//! quoted.

use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HostError {
    #[error("a host is missing")]
    Empty,
    #[error("the name {0:?} is longer than 253 characters")]
    NameTooLong(String),
    #[error("a part of the name {0:?} is empty or longer than 63 characters")]
    Label(String),
    #[error("{character:?} cannot be in a host name: {name:?}")]
    Character { name: String, character: char },
    #[error("{0:?} is not a valid internationalised name")]
    International(String),
    #[error("{0:?} ends in a number but is not an IPv4 address")]
    Number(String),
    #[error("{0:?} is not an IPv6 address")]
    NotV6(String),
    #[error("{0:?} names a network interface; addresses are given without one")]
    Zone(String),
    #[error("{0:?} is a URL; write only its host and, if needed, a port: HOST[:PORT]")]
    Url(String),
    #[error("{0:?} has a user in it; write only the host")]
    User(String),
    #[error(
        "the wildcard in {0:?} is not possible there; possible are *.HOST (everything below), \
         **.HOST (the host as well) and * (everything)"
    )]
    Wildcard(String),
    #[error("{0:?} is not an address range; write it like 192.0.2.0/24 or 2001:db8::/32")]
    Range(String),
    #[error("{written:?} has address bits beyond its prefix; write {meant}")]
    RangeBits { written: String, meant: String },
    #[error(
        "{port:?} in {entry:?} is no port; ports are numbers from 1 to 65535, with commas between"
    )]
    Port { entry: String, port: String },
}
