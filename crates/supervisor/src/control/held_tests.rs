use super::*;
use crate::control::interface::OutputStart;
use rustix::pipe::{PipeFlags, pipe_with};

/// Between the end of a command and its record a client would otherwise be told that there is no such command.
#[test]
fn a_command_that_has_just_ended_can_be_attached_to_until_its_end_is_on_record() {
    let (output, written) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC).unwrap();
    let mut held = HeldCommands::new(None, None);
    let command = CommandId(1);
    let new = NewHeld {
        outputs: HeldOutputs::new(output, None),
        input: None,
        recording: None,
        has_terminal: true,
        title: "true".to_owned(),
        attached: None,
    };
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
