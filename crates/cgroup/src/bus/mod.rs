//! Talks to the user's service manager over D-Bus, for one purpose: a scope that contains us and is delegated to us.
//! Blocking and without threads, because the supervisor forks later. Must never wait for long.

mod address;
mod connection;
mod wire;

use crate::error::{CgroupError, Result};
use connection::{Call, Connection};
use std::time::{Duration, Instant};
use wire::{Message, MessageKind, Reader, Writer};

pub(crate) use address::address;

/// From connecting until the scope exists.
const BUS_TIMEOUT: Duration = Duration::from_secs(5);

const BUS: &str = "org.freedesktop.DBus";
const BUS_PATH: &str = "/org/freedesktop/DBus";
const SYSTEMD: &str = "org.freedesktop.systemd1";
const SYSTEMD_PATH: &str = "/org/freedesktop/systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";

/// Has systemd move us into a new scope, and returns the name of its unit. See org.freedesktop.systemd1(5).
pub(crate) fn start_scope(session: &str) -> Result<String> {
    let failed = |why: &str| CgroupError::Systemd { step: "finding the bus", why: why.to_owned() };
    let socket = address().ok_or_else(|| failed("there is no DBUS_SESSION_BUS_ADDRESS"))?;
    let mut connection = Connection::open(&socket, Instant::now() + BUS_TIMEOUT)?;
    let unit = format!("palisade-{session}.scope");
    ask(&mut connection, &unit, std::process::id())?;
    Ok(unit)
}

fn ask(connection: &mut Connection, unit: &str, pid: u32) -> Result<()> {
    connection.call(Call {
        destination: BUS,
        path: BUS_PATH,
        interface: BUS,
        member: "Hello",
        signature: "",
        body: Writer::default(),
    })?;
    // Before the job is started: it could end before we listen.
    let mut rule = Writer::default();
    rule.string(&format!(
        "type='signal',sender='{SYSTEMD}',path='{SYSTEMD_PATH}',interface='{MANAGER}',\
         member='JobRemoved'"
    ));
    connection.call(Call {
        destination: BUS,
        path: BUS_PATH,
        interface: BUS,
        member: "AddMatch",
        signature: "s",
        body: rule,
    })?;
    let started = connection.call(Call {
        destination: SYSTEMD,
        path: SYSTEMD_PATH,
        interface: MANAGER,
        member: "StartTransientUnit",
        signature: "ssa(sv)a(sa(sv))",
        body: scope(unit, pid),
    })?;
    let job = Reader::new(&started.body).string().map_err(|why| confused("its answer", &why))?;
    let removed = connection.wait_for(|message| removal_of(message, &job))?;
    match removed.as_str() {
        "done" => Ok(()),
        other => Err(CgroupError::Systemd {
            step: "starting the scope",
            why: format!("the job ended as {other}"),
        }),
    }
}

/// The arguments: name, mode, properties, and auxiliary units, of which there are none.
fn scope(unit: &str, pid: u32) -> Writer {
    let mut body = Writer::default();
    body.string(unit);
    body.string("fail");
    body.array(8, |properties| {
        property(properties, "Description", "s", |value| value.string("Palisade sandbox"));
        property(properties, "PIDs", "au", |value| value.array(4, |pids| pids.u32(pid)));
        property(properties, "Delegate", "b", |value| value.u32(1));
        property(properties, "CollectMode", "s", |value| value.string("inactive-or-failed"));
    });
    body.array(8, |_| {});
    body
}

fn property(properties: &mut Writer, name: &str, kind: &str, value: impl FnOnce(&mut Writer)) {
    properties.align(8);
    properties.string(name);
    properties.signature(kind);
    value(properties);
}

/// The result of `job`, if the message reports it: id, job, unit, result.
fn removal_of(message: &Message, job: &str) -> Option<String> {
    let is_removal = message.kind == MessageKind::Signal
        && message.member.as_deref() == Some("JobRemoved")
        && message.interface.as_deref() == Some(MANAGER)
        && message.signature == "uoss";
    is_removal.then_some(())?;
    let mut body = Reader::new(&message.body);
    body.u32().ok()?;
    let is_ours = body.string().ok()? == job;
    body.string().ok()?;
    let result = body.string().ok()?;
    is_ours.then_some(result)
}

fn confused(what: &'static str, why: &str) -> CgroupError {
    CgroupError::Systemd { step: "reading from the bus", why: format!("{what}: {why}") }
}

#[cfg(test)]
#[path = "scope_tests.rs"]
mod tests;
