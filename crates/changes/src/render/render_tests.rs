use super::{RenderOptions, write_names, write_stat, write_unified};
use crate::scan;
use crate::test_overlay::TestOverlay;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

fn numbered(changed: &[usize]) -> String {
    let line = |number: usize| {
        let mark = if changed.contains(&number) { "new" } else { "old" };
        format!("{mark} {number}\n")
    };
    (0..20).map(line).collect()
}

fn overlay() -> TestOverlay {
    let overlay = TestOverlay::new(|project| {
        fs::write(project.join("modified"), numbered(&[])).unwrap();
        fs::write(project.join("gone"), "last words").unwrap();
        fs::write(project.join("moved from"), "the same\ncontent\n").unwrap();
        fs::write(project.join("edited"), numbered(&[]).replace("old", "line")).unwrap();
        fs::write(project.join("binary"), b"\0\x01").unwrap();
        fs::write(project.join("script"), "#!/bin/sh\n").unwrap();
        symlink("here", project.join("link")).unwrap();
        fs::write(project.join("becomes-link"), "text\n").unwrap();
    });
    overlay.session(|root| {
        fs::write(root.join("modified"), numbered(&[10])).unwrap();
        fs::remove_file(root.join("gone")).unwrap();
        fs::rename(root.join("moved from"), root.join("moved to")).unwrap();
        fs::create_dir(root.join("dir")).unwrap();
        fs::rename(root.join("edited"), root.join("dir/edited")).unwrap();
        let edited = numbered(&[]).replace("old", "line").replace("line 3\n", "");
        fs::write(root.join("dir/edited"), edited).unwrap();
        fs::write(root.join("binary"), b"\0\x02\x03").unwrap();
        fs::set_permissions(root.join("script"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::remove_file(root.join("link")).unwrap();
        symlink("there", root.join("link")).unwrap();
        fs::remove_file(root.join("becomes-link")).unwrap();
        symlink("modified", root.join("becomes-link")).unwrap();
        fs::write(root.join(OsStr::from_bytes(b"n\xffw \"name\"")), "one\n").unwrap();
        fs::write(root.join("with blank"), "").unwrap();
        fs::create_dir(root.join("empty")).unwrap();
    });
    overlay
}

#[test]
fn a_patch_is_what_git_prints() {
    let overlay = overlay();
    let layers = overlay.layers();
    let mut out = Vec::new();
    write_unified(&layers, &scan(&layers).unwrap(), RenderOptions::default(), &mut out).unwrap();
    let expected = r#"diff --git a/becomes-link b/becomes-link
deleted file mode 100644
--- a/becomes-link
+++ /dev/null
@@ -1 +0,0 @@
-text
diff --git a/becomes-link b/becomes-link
new file mode 120000
--- /dev/null
+++ b/becomes-link
@@ -0,0 +1 @@
+modified
\ No newline at end of file
diff --git a/binary b/binary
Binary files a/binary and b/binary differ
diff --git a/edited b/dir/edited
similarity index 95%
rename from edited
rename to dir/edited
--- a/edited
+++ b/dir/edited
@@ -1,7 +1,6 @@
 line 0
 line 1
 line 2
-line 3
 line 4
 line 5
 line 6
# new directory: empty/
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-last words
\ No newline at end of file
diff --git a/link b/link
--- a/link
+++ b/link
@@ -1 +1 @@
-here
\ No newline at end of file
+there
\ No newline at end of file
diff --git a/modified b/modified
--- a/modified
+++ b/modified
@@ -8,7 +8,7 @@
 old 7
 old 8
 old 9
-old 10
+new 10
 old 11
 old 12
 old 13
diff --git a/moved from b/moved to
similarity index 100%
rename from moved from
rename to moved to
diff --git "a/n\377w \"name\"" "b/n\377w \"name\""
new file mode 100644
--- /dev/null
+++ "b/n\377w \"name\""
@@ -0,0 +1 @@
+one
diff --git a/script b/script
old mode 100644
new mode 100755
diff --git a/with blank b/with blank
new file mode 100644
"#;
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn a_summary_is_what_git_prints() {
    let overlay = overlay();
    let layers = overlay.layers();
    let set = scan(&layers).unwrap();
    let mut out = Vec::new();
    write_stat(&layers, &set, false, &mut out).unwrap();
    let expected = " becomes-link           |   2 +-
 binary                 | Bin 2 -> 3 bytes
 edited => dir/edited   |   1 -
 empty/                 |   0
 gone                   |   1 -
 link                   |   2 +-
 modified               |   2 +-
 moved from => moved to |   0
 \"n\\377w \\\"name\\\"\"      |   1 +
 script                 |   0
 with blank             |   0
 11 files changed, 4 insertions(+), 5 deletions(-)
";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
    let mut out = Vec::new();
    write_names(&set, &mut out).unwrap();
    let names = String::from_utf8(out).unwrap();
    assert!(names.starts_with("becomes-link\nbinary\ndir/edited\nempty/\ngone\n"), "{names}");
}

#[test]
fn nothing_of_a_session_controls_the_terminal() {
    let overlay = TestOverlay::new(|_| {});
    overlay.session(|root| {
        fs::write(root.join("\x1b]0;name\x07"), "\x1b[31mred\r\nplain \u{202e}\n\u{9b}").unwrap();
    });
    let layers = overlay.layers();
    let set = scan(&layers).unwrap();
    let mut out = Vec::new();
    let options = RenderOptions { colour: true, to_terminal: true };
    write_unified(&layers, &set, options, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    for part in text.split("\x1b[").skip(1) {
        let end = part.find('m').unwrap();
        assert!(part[..end].bytes().all(|byte| byte.is_ascii_digit()), "{text:?}");
    }
    let ours = ["\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[m"];
    let rest = ours.iter().fold(text.clone(), |text, code| text.replace(code, ""));
    assert!(rest.contains("+^[[31mred^M\n+plain <U+202E>\n"), "{rest:?}");
    assert!(!rest.contains(|character: char| character.is_control() && character != '\n'));
}

#[test]
fn what_is_too_large_is_named_and_not_shown() {
    let overlay = TestOverlay::new(|_| {});
    overlay.session(|root| fs::write(root.join("big"), vec![b'x'; 5 << 20]).unwrap());
    let layers = overlay.layers();
    let mut out = Vec::new();
    write_unified(&layers, &scan(&layers).unwrap(), RenderOptions::default(), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(
        text.ends_with("Files /dev/null and b/big differ (too large to be shown: 5242880 bytes)\n"),
        "{text}"
    );
}
