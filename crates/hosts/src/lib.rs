//! Places on the network, and rules about them: pure, no I/O.
#![forbid(unsafe_code)]

#[derive(Clone, Debug)]
pub struct HostPattern;
#[derive(Clone, Debug)]
pub struct Rules;
