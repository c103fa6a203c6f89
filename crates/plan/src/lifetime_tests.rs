use crate::error::PlanError;
use crate::fake::{FakeTree, plan, policy, user};
use crate::model::{Plan, SandboxLifetime};
use palisade_policy::model::Policy;

fn planned(policy: &Policy) -> Plan {
    plan(policy, &user(), &FakeTree::new()).unwrap()
}

#[test]
fn a_usual_plan_can_have_further_commands_and_has_none_by_itself() {
    let plan = planned(&policy());
    assert_eq!(plan.sandbox.lifetime, SandboxLifetime::OneCommand);
    assert_eq!(plan.until_ended().unwrap().sandbox.lifetime, SandboxLifetime::UntilEnded);
}

#[test]
fn what_would_not_hold_for_every_command_is_refused() {
    let mut without_pids = planned(&policy());
    if let crate::model::Confinement::Namespaces(inside) = &mut without_pids.sandbox.confinement {
        inside.namespaces.pid = false;
    }
    let mut capped = planned(&policy());
    capped.supervision.max_output = Some(1);
    let mut polled = planned(&policy());
    polled.supervision.watch.memory = Some(1);
    let mut measured = planned(&policy());
    measured.supervision.watch.disk = Some(1);
    for plan in [&capped, &polled] {
        assert!(plan.clone().for_files().until_ended().is_ok());
    }
    assert!(measured.clone().for_files().until_ended().is_err());
    for plan in [without_pids, capped, polled, measured] {
        let refused = plan.until_ended();
        assert!(matches!(refused, Err(PlanError::NoFurtherCommands { .. })), "{refused:?}");
    }
}
