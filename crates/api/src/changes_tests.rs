use super::{Apply, OnConflict};

#[test]
fn a_path_is_never_an_option() {
    let apply = Apply::checkpoint(2).only(["--force"]).on_conflict(OnConflict::Merge);
    let call = apply.skip_refused().call("work", true);
    assert_eq!(
        call.words(),
        [
            "apply",
            "--json",
            "--merge",
            "--skip-refused",
            "--dry-run",
            "--checkpoint=2",
            "work",
            "--",
            "--force"
        ]
    );
}
