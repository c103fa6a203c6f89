use super::*;
use palisade_sys::test_child::in_child;

#[test]
fn an_answer_survives_the_socket() {
    let long = "x".repeat(1 << 20);
    let cut = |most| "x".repeat(most);
    for (outcome, told) in [
        (Ok("fi\0ne".to_owned()), Ok("fi\0ne".to_owned())),
        (Err(TrialError::new("why: no (EPERM)")), Err(TrialError::new("why: no (EPERM)"))),
        (
            Err(TrialError::new(&long).fixed_by(&long)),
            Err(TrialError::new(cut(MAX_DETAIL)).fixed_by(cut(MAX_FIX_BYTES))),
        ),
    ] {
        let packet = palisade_wire::encode(&Answer::from(outcome)).unwrap();
        let answer: Answer = palisade_wire::decode(&packet).unwrap();
        assert_eq!(Outcome::from(answer), told);
    }
}

/// Proves: PROC-7 doctor
#[test]
fn a_trial_that_hangs_is_ended_with_its_children() {
    in_child(|| {
        let outcome = trial(CloneFlags::NEWUSER | CloneFlags::NEWPID, || {
            clone3(CloneFlags::NONE)?;
            loop {
                proc::poll(&mut [], None)?;
            }
        });
        assert_eq!(outcome, Err(TrialError::new("no answer within 2s")));
        let own = std::process::id();
        let children = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children"));
        assert_eq!(children.unwrap(), "");
    });
}

#[test]
fn a_trial_that_dies_says_how() {
    in_child(|| {
        let outcome = trial(CloneFlags::NONE, || {
            proc::kill(rustix::process::getpid(), sig::SIGSYS)?;
            Ok("not reached".to_owned())
        });
        assert!(outcome.unwrap_err().detail.contains("SIGSYS"));
        let outcome = trial(CloneFlags::NONE, || proc::exit_now(3));
        assert!(outcome.unwrap_err().detail.contains("Exited(3)"));
    });
}
