//! Files, links and mounts.

use std::fs;

use palisade_testkit::Attack;

/// Proves: FS-3 own-root
#[test]
fn f01_a_link_does_not_lead_out_of_the_project() {
    Attack::new("F01", "write through a link that leads out of the project")
        .proves(&["FS-3 own-root"])
        .held_by(&["mount-view", "landlock"])
        .prepare(|world| {
            world.write("outside/canary", "untouched");
            let link = world.project().join("link");
            std::os::unix::fs::symlink(world.outside().join("canary"), link).unwrap();
        })
        .command(|world| vec![world.probe(), "write".to_owned(), "link".to_owned()])
        .succeeded(|world, _| {
            fs::read(world.outside().join("canary")).is_ok_and(|text| text != b"untouched")
        })
        .check();
}
