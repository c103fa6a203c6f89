use super::{argv, hash, preview};
use proptest::prelude::*;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// Proves: AUD-2 redaction
#[test]
fn secrets_are_masked_and_the_rest_stays() {
    let table: &[(&[&str], &str)] = &[
        // Nothing to hide.
        (&["npm", "test"], "npm test"),
        (&["cargo", "build", "--release"], "cargo build --release"),
        (
            &["git", "show", "da39a3ee5e6b4b0d3255bfef95601890afd80709"],
            "git show da39a3ee5e6b4b0d3255bfef95601890afd80709",
        ),
        (&["llm", "--max-tokens", "100"], "llm --max-tokens 100"),
        (&["docker", "run", "-u", "1000:1000"], "docker run -u 1000:1000"),
        (&["docker", "login", "--password-stdin", "host"], "docker login --password-stdin host"),
        (&["cc", "src/MyParser2ForTheDocument.c"], "cc src/MyParser2ForTheDocument.c"),
        (&["curl", "https://example.org:8080/a"], "curl https://example.org:8080/a"),
        (&["git", "clone", "ssh://git@example.org/a.git"], "git clone ssh://git@example.org/a.git"),
        // Flags.
        (&["x", "--password=hunter2"], "x --password=[redacted]"),
        (&["x", "--password=two words"], "x --password=[redacted]"),
        (&["x", "--token", "abc", "y"], "x --token [redacted] y"),
        (&["x", "--db-password", "a 'b c", "y"], "x --db-password [redacted] y"),
        (&["x", "--apiKey", "abc"], "x --apiKey [redacted]"),
        (&["x", "--token", "--password", "abc"], "x --token [redacted] [redacted]"),
        (&["sshpass", "-p", "hunter2", "ssh", "h"], "sshpass -p [redacted] ssh h"),
        (&["mysql", "-phunter2!x", "db"], "mysql -p[redacted] db"),
        (&["curl", "-u", "me:hunter2", "h"], "curl -u me:[redacted] h"),
        (&["x", "-u", "--password=hunter2"], "x -u --password=[redacted]"),
        (&["x", "-u", "--token", "abc", "y"], "x -u --token [redacted] y"),
        (&["sh", "-c", "x -u --password=hunter2 y"], "sh -c x -u --password=[redacted] y"),
        // Variables.
        (&["env", "PGPASSWORD=hunter2", "psql"], "env PGPASSWORD=[redacted] psql"),
        (&["env", "AWS_SECRET_ACCESS_KEY=a/b+c", "x"], "env AWS_SECRET_ACCESS_KEY=[redacted] x"),
        (&["env", "STRIPE_KEY=abc", "LANG=C"], "env STRIPE_KEY=[redacted] LANG=C"),
        // Headers and URLs.
        (&["curl", "-H", "Authorization: Bearer abc def"], "curl -H Authorization: [redacted]"),
        (&["curl", "-H", "X-Api-Key: abc"], "curl -H X-Api-Key: [redacted]"),
        (&["curl", "https://me:hunter2@example.org/"], "curl https://me:[redacted]@example.org/"),
        (
            &["curl", "https://h/?access_token=abc&b=c"],
            "curl https://h/?access_token=[redacted]&b=c",
        ),
        // Tokens by their own look.
        (&["x", "ghp_0123456789abcdefghijABCDEFGHIJ012345"], "x [redacted]"),
        (&["x", "AKIAIOSFODNN7EXAMPLE"], "x [redacted]"),
        (&["x", "sk-proj-0123456789abcdefghij"], "x [redacted]"),
        (&["x", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln"], "x [redacted]"),
        (&["x", "q8Zt3Lw9RkX2vB7nYc4Mp1Sd"], "x [redacted]"),
        (
            &["x", "https://ghp_0123456789abcdefghij@example.org/a"],
            "x https://[redacted]@example.org/a",
        ),
        (
            &["x", "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----\n"],
            "x [redacted]\n",
        ),
        // Shell text.
        (
            &["sh", "-c", "curl -H 'Authorization: Bearer abc' http://h"],
            "sh -c curl -H 'Authorization: [redacted]' http://h",
        ),
        (&["sh", "-c", "X=1 TOKEN=abc run; echo ok"], "sh -c X=1 TOKEN=[redacted] run; echo ok"),
        (&["sh", "-c", "x --password \"a \\\"b c\" d"], "sh -c x --password \"[redacted]\" d"),
        (
            &["sh", "-c", "curl -d '{\"password\": \"hun ter2\", \"user\": \"me\"}'"],
            "sh -c curl -d '{\"password\": \"[redacted]\", \"user\": \"me\"}'",
        ),
        (
            &["sh", "-c", "curl -d \"{\\\"token\\\":\\\"abc\\\"}\""],
            "sh -c curl -d \"{\\\"token\\\":\\\"[redacted]\\\"}\"",
        ),
        (
            &["sh", "-c", "echo x | sshpass -phunter2 ssh h"],
            "sh -c echo x | sshpass -p[redacted] ssh h",
        ),
    ];
    for (arguments, expected) in table {
        assert_eq!(argv(arguments).join(" "), *expected, "{arguments:?}");
    }
}

/// Proves: AUD-2 command-entry
#[test]
fn the_preview_is_cut_after_masking() {
    let long = "x".repeat(90);
    let shown = preview(&[&long, "--password=hunter2"]);
    assert_eq!(shown.chars().count(), 100);
    assert!(shown.ends_with("x --passwor"), "{shown}");
    // Cut first, these would be nine characters of a token that no longer look like one.
    let shown = preview(&[&long, "ghp_0123456789abcdefghij"]);
    assert!(shown.ends_with("x [redacted"), "{shown}");
    assert_eq!(preview(&["ü".repeat(300)]), "ü".repeat(100));
}

/// Proves: AUD-2 command-entry
#[test]
fn the_hash_is_of_the_arguments_joined_by_nul() {
    assert_eq!(
        hash(&["echo", "hi"]).to_string(),
        // printf 'echo\0hi' | sha256sum
        "f956585a54743d20dfbb7cbe8c88fe61e5e28380566d0af3cfb52775ef7df045"
    );
    assert_ne!(hash(&["echo", "a b"]), hash(&["echo", "a", "b"]));
    let raw = OsString::from_vec(b"\xff".to_vec());
    assert_ne!(hash(&[raw]), hash(&["\u{fffd}"]));
}

#[test]
fn odd_input_does_not_break_it() {
    for odd in
        ["", "://", "--token", "--token=", "password:", "\\", "\"", "--token \"", "ü=ü", "-p"]
    {
        argv(&["mysql", odd]);
        argv(&[odd, odd]);
    }
    assert_eq!(argv(&["x", "--token="]), ["x", "--token="]);
}

proptest! {
    /// Proves: AUD-2 redaction
    #[test]
    fn a_value_after_a_secret_name_never_shows(
        before in "[ -~]{0,20}",
        value in "[A-Z]{6,12}",
        after in any::<String>(),
    ) {
        prop_assume!(!before.contains(&value) && !after.contains(&value));
        for arguments in [
            vec![before.clone(), format!("--password={value}"), after.clone()],
            vec![before.clone(), "--token".to_owned(), value.clone(), after.clone()],
            vec!["sh".to_owned(), "-c".to_owned(), format!("{after}; TOKEN={value} run")],
            vec![format!("API_KEY={value} {after}")],
        ] {
            let shown = argv(&arguments).join(" ");
            prop_assert!(!shown.contains(&value), "{arguments:?} -> {shown}");
            prop_assert!(shown.starts_with(&preview(&arguments)));
        }
    }
}
