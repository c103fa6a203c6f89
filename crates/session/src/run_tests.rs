use super::describe;
use crate::reporting::tests::plan_without_namespaces;

/// Proves: AUD-2 command-entry
#[test]
fn a_declared_tool_is_recorded_by_its_own_name() {
    let plan = plan_without_namespaces();
    assert_eq!(describe(&plan, Some("bash"), "/project".into()).tool, "bash");
    assert_eq!(describe(&plan, None, "/project".into()).tool, "program");
}
