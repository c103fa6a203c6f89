//! The few netlink messages that set up a network namespace.
#![forbid(unsafe_code)]
