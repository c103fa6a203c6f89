use super::*;
use crate::control::connection::Connection;
use crate::control::endpoint::Endpoint;
use crate::control::interface::{FromSupervisor, OutputStart};
use palisade_sys::fdpass::socketpair;
use palisade_wire::{Received, WireMessage as _};
use rustix::pipe::{PipeFlags, pipe_with};

/// A command that has just been asked for, and where it writes.
fn new_command(attached: Option<ClientId>) -> (NewHeld, OwnedFd) {
    let (output, written) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC).unwrap();
    let new = NewHeld {
        outputs: HeldOutputs::new(output, None),
        input: None,
        recording: None,
        has_terminal: true,
        title: "true".to_owned(),
        attached,
    };
    (new, written)
}

/// The spawner's word and the output come by two ways, and either can be first.
#[test]
fn what_a_command_writes_is_told_after_its_start() {
    let (ours, theirs) = socketpair().unwrap();
    let mut endpoint = Endpoint::of_owner(Connection::new(ours));
    let owner = endpoint.owner().unwrap();
    let mut outbox = Outbox::new(Some(&mut endpoint));
    let mut held = HeldCommands::new(None, None);
    let command = CommandId(1);
    let (new, written) = new_command(Some(owner));
    held.add(command, new);
    rustix::io::write(&written, b"first").unwrap();
    let mut set = PollSet::new();
    held.register(&mut set);
    let ready = set.wait(Some(Duration::ZERO)).unwrap().of_source(0);
    held.handle(&ready, &mut outbox);
    assert_eq!(held.status(command).unwrap().output_bytes, 5, "it was read");
    let started = Event::CommandStarted { command, pid: None };
    outbox.emit(started.clone());
    held.started(command, &mut outbox);
    let mut buffer = [0; FromSupervisor::MAX_BYTES];
    let mut next = || -> FromSupervisor {
        let Received { message, .. } = palisade_wire::receive(&theirs, &mut buffer).unwrap();
        message
    };
    assert_eq!(next(), FromSupervisor::Event(started));
    let (stream, bytes) = (OutputStream::Stdout, b"first".to_vec());
    assert_eq!(next(), FromSupervisor::Event(Event::Output { command, cursor: 0, stream, bytes }));
}

/// Between the end of a command and its record a client would otherwise be told that there is no such command.
#[test]
fn a_command_that_has_just_ended_can_be_attached_to_until_its_end_is_on_record() {
    let mut held = HeldCommands::new(None, None);
    let command = CommandId(1);
    let (new, written) = new_command(None);
    held.add(command, new);
    rustix::io::write(&written, b"done").unwrap();
    held.ended(command, Event::CommandExited { command, cause: ExitCause::Code(0) });
    let how = (OutputStart::Kept, AttachRole::Type);
    let attached = held.attach(command, ClientId::FIRST, how).unwrap();
    assert_eq!(attached.cursor, 0, "its output is there");
    assert!(!attached.is_typist, "nobody types into what has ended");
    drop(written);
    held.conclude(&mut Outbox::new(None));
    assert_eq!(held.attach(command, ClientId::SECOND, how).map(|attached| attached.command), None);
}
