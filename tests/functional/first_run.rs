//! The shortest way through the whole house: a command runs inside and its end comes back out.

use palisade_testkit::World;

/// Proves: LIFE-3 exit-code
#[test]
fn output_and_exit_code_pass_through() {
    let world = World::new();
    let output = world.sandbox_run([""; 0], ["sh", "-c", "echo inside; exit 7"]).run();
    output.assert_code(7);
    assert_eq!(output.out(), "inside\n");
}
