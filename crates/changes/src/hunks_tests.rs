use super::{FileHunks, HunkLine, between};
use std::collections::BTreeSet;
use std::path::PathBuf;

fn numbered(changed: &[usize]) -> Vec<u8> {
    let line = |number: usize| {
        let mark = if changed.contains(&number) { "new" } else { "old" };
        format!("{mark} {number}\n")
    };
    (0..40).map(line).collect::<String>().into_bytes()
}

#[test]
fn any_choice_of_hunks_can_be_taken() {
    let (old, new) = (numbered(&[]), numbered(&[2, 20, 38]));
    let hunks = between(&old, &new);
    let file = FileHunks { path: PathBuf::from("f"), old: old.clone(), new: new.clone(), hunks };
    assert_eq!(file.hunks().len(), 3);
    assert_eq!(file.hunks()[0].header(), "@@ -1,6 +1,6 @@");
    let choose = |chosen: &[usize]| file.choose(&chosen.iter().copied().collect()).contents;
    assert_eq!(choose(&[]), old);
    assert_eq!(choose(&[0, 1, 2]), new);
    assert_eq!(choose(&[1]), numbered(&[20]));
    assert_eq!(choose(&[0, 2]), numbered(&[2, 38]));
}

#[test]
fn empty_files_and_missing_line_ends_are_counted_as_diff_does() {
    let hunks = between(b"", b"one\ntwo");
    assert_eq!(hunks[0].header(), "@@ -0,0 +1,2 @@");
    assert_eq!(hunks[0].lines[1], HunkLine::Added(b"two".to_vec()));
    assert_eq!(between(b"one\n", b"")[0].header(), "@@ -1 +0,0 @@");
    assert!(between(b"same\n", b"same\n").is_empty());
    let file = FileHunks {
        path: PathBuf::new(),
        old: b"a\nb".to_vec(),
        new: b"a\nb\n".to_vec(),
        hunks: between(b"a\nb", b"a\nb\n"),
    };
    assert_eq!(file.choose(&BTreeSet::from([0])).contents, b"a\nb\n");
}
