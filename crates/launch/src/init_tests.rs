use super::*;
use palisade_sys::clone::{Forked, fork};
use palisade_sys::fdpass::socketpair;
use palisade_sys::test_child::in_child;

/// Pid 1 beside a process that checked its walls and then, before its exec, does this to its end of the socket.
fn told_after(last_act: impl FnOnce(OwnedFd)) -> (FromInit, Pid) {
    let Forked::Parent { pid, .. } = fork().unwrap() else {
        creds::set_pdeathsig(sig::SIGKILL).unwrap();
        let _ = proc::poll(&mut [], None);
        proc::exit_now(0)
    };
    // Ours alone: what the process does to its end is done here.
    let (init_socket, supervisor) = socketpair().unwrap();
    let (report, command_report) = socketpair().unwrap();
    let signals = proc::signalfd(&[sig::SIGCHLD]).unwrap();
    let mut init = Init {
        command: pid,
        report: Some(report),
        checked: true,
        terminal: None,
        signals,
        household: Household::Descendants,
    };
    last_act(command_report);
    init.hear_command(&init_socket);
    assert!(init.report.is_none());
    let received = palisade_wire::receive(&supervisor, &mut [0; FromInit::MAX_BYTES]).unwrap();
    (received.message, pid)
}

#[test]
fn a_connection_that_closes_after_the_check_means_that_exec_succeeded() {
    in_child(|| {
        let (told, pid) = told_after(drop);
        assert_eq!(told, FromInit::Started);
        proc::kill(pid, sig::SIGKILL).unwrap();
    });
}

/// Taken for the end of the connection, it would make a failed launch a completed command.
#[test]
fn a_message_that_cannot_be_decoded_fails_the_launch_and_ends_the_process() {
    in_child(|| {
        let (told, pid) = told_after(|report| {
            rustix::io::write(&report, &[u8::MAX]).unwrap();
        });
        let FromInit::Failed(error) = told else { panic!("{told:?}") };
        assert!(error.detail.contains("cannot be decoded"), "{error}");
        let status = proc::wait_pid_rusage(pid).unwrap().status;
        assert!(matches!(status, Status::Signaled { signal: sig::SIGKILL, .. }), "{status:?}");
    });
}
