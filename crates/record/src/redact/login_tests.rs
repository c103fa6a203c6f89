use super::super::{argv, preview};
use proptest::prelude::*;

/// The words of a line as arguments, each shown as `argv` shows it.
fn shown(line: &str) -> String {
    argv(&line.split(' ').collect::<Vec<_>>()).join(" ")
}

/// Proves: AUD-2 redaction
#[test]
fn a_login_is_masked_however_it_is_written() {
    let table = [
        // Behind a flag.
        ("curl -u me:hunter2 h", "curl -u me:[redacted] h"),
        ("curl -u -me:hunter2 h", "curl -u -me:[redacted] h"),
        ("curl -u --me:hunter2=x h", "curl -u --me:[redacted] h"),
        ("curl -U me:hunter2 h", "curl -U me:[redacted] h"),
        ("curl --user me:hunter2 h", "curl --user me:[redacted] h"),
        ("curl --proxy-user -me:hunter2 h", "curl --proxy-user -me:[redacted] h"),
        ("curl -u me:1234 h", "curl -u me:[redacted] h"),
        ("curl -u me:a:b h", "curl -u me:[redacted] h"),
        ("curl -u me@x.org:hunter2 h", "curl -u me@x.org:[redacted] h"),
        ("curl -u me://hunter2 h", "curl -u me:[redacted] h"),
        ("curl -u a=b:hunter2 h", "curl -u [redacted] h"),
        ("curl --cert me.pem:hunter2 h", "curl --cert me.pem:[redacted] h"),
        ("curl --oauth2-bearer abc h", "curl --oauth2-bearer [redacted] h"),
        ("rsync -u a:b c", "rsync -u a:[redacted] c"),
        // Behind several in one.
        ("curl -su me:hunter2 h", "curl -su me:[redacted] h"),
        ("curl -fsSLU -me:hunter2 h", "curl -fsSLU -me:[redacted] h"),
        // Joined to it.
        ("curl --user=me:hunter2 h", "curl --user=me:[redacted] h"),
        ("curl --proxy-user=me:hunter2 h", "curl --proxy-user=me:[redacted] h"),
        ("x -user=me:hunter2 h", "x -user=me:[redacted] h"),
        ("x -u=me:hunter2 h", "x -u=me:[redacted] h"),
        ("curl -ume:hunter2 h", "curl -ume:[redacted] h"),
        ("curl -Ume@x.org:hunter2 h", "curl -Ume@x.org:[redacted] h"),
        ("curl -sSume:hunter2 h", "curl -sSume:[redacted] h"),
        ("curl -u:hunter2 h", "curl -u:[redacted] h"),
        // Of a proxy.
        ("curl -x me:hunter2@proxy:3128 h", "curl -x me:[redacted]@proxy:3128 h"),
        ("curl -x me:hun@ter2@proxy h", "curl -x me:[redacted]@proxy h"),
        ("curl -x 12:34@proxy h", "curl -x 12:[redacted]@proxy h"),
        ("curl -x http://me:hunter2@proxy h", "curl -x http://me:[redacted]@proxy h"),
        ("curl -x http://12:34@proxy h", "curl -x http://12:[redacted]@proxy h"),
        ("curl -xme:hunter2@proxy h", "curl -xme:[redacted]@proxy h"),
        ("curl -sxme:hunter2@proxy h", "curl -sxme:[redacted]@proxy h"),
        ("curl -sx me:hunter2@proxy h", "curl -sx me:[redacted]@proxy h"),
        ("curl --proxy me:hunter2@proxy h", "curl --proxy me:[redacted]@proxy h"),
        ("curl --proxy=me:hunter2@proxy h", "curl --proxy=me:[redacted]@proxy h"),
        ("curl --proxy=http://me:hunter2@proxy h", "curl --proxy=http://me:[redacted]@proxy h"),
        ("curl --socks5-hostname me:hunter2@s h", "curl --socks5-hostname me:[redacted]@s h"),
        ("env https_proxy=me:hunter2@proxy x", "env https_proxy=me:[redacted]@proxy x"),
        ("git config http.proxy me:hunter2@proxy", "git config http.proxy me:[redacted]@proxy"),
        // The user is the secret.
        ("curl -u ghp_0123456789abcdefghij:x h", "curl -u [redacted]:[redacted] h"),
        ("curl -u sk_test_0123456789: h", "curl -u [redacted]: h"),
        ("curl -u ghp_0123456789abcdefghij h", "curl -u [redacted] h"),
        // What stands in its place is a secret of another sort.
        ("x -u --password=a:b y", "x -u --password=[redacted] y"),
        ("x -u TOKEN=a:b y", "x -u TOKEN=[redacted] y"),
        ("x -u TOKEN=abc y", "x -u TOKEN=[redacted] y"),
        ("x -x --token abc y", "x -x --token [redacted] y"),
        ("x -u --user=me:hunter2 y", "x -u --user=me:[redacted] y"),
        ("mysql -u root -pume:hunter2 db", "mysql -u root -p[redacted] db"),
    ];
    for (line, expected) in table {
        assert_eq!(shown(line), expected, "{line}");
    }
}

/// Proves: AUD-2 redaction
#[test]
fn what_is_plainly_no_login_stays() {
    for line in [
        "docker run -u 1000:1000 -p 80:80 image",
        "docker run -u1000:1000 image",
        "docker run --user=1000:1000 image",
        "docker run -u root -v /usr:/usr image",
        "git push -u origin main:main",
        "git push -u https://example.org/a.git main:main",
        "pip install -U git+https://example.org/a.git",
        "git diff -U3 HEAD:a HEAD:b",
        "sort -u -t: -k2 file",
        "python3 -u -m http.server",
        "python3 -u -W ignore::DeprecationWarning x",
        "curl -x proxy:3128 h",
        "curl --proxy=socks5h://proxy:1080 h",
        "bash -x git@example.org:a/b",
        "docker pull alpine:3.19@sha256:abc",
        "npm install a@npm:b@1.2.3",
        "java -XX:+UseSerialGC -Xlog:gc -jar a.jar",
        "csc -out:a.exe a.cs",
        "env no_proxy=localhost,10.0.0.1 x",
        "x -u --proxy -x -U",
    ] {
        assert_eq!(shown(line), line);
    }
}

/// Proves: AUD-2 redaction
#[test]
fn an_argument_may_hold_blanks_and_a_script_quotes() {
    let table: &[(&[&str], &str)] = &[
        (&["curl", "-u", "me:two words"], "curl -u me:[redacted]"),
        (&["curl", "--user=me:two words"], "curl --user=me:[redacted]"),
        (&["curl", "-ume:two words"], "curl -ume:[redacted]"),
        (&["curl", "-x", "me:two words@h"], "curl -x me:[redacted]@h"),
        (&["curl", "-u", "John Doe:hunter2"], "curl -u [redacted]"),
        (&["sh", "-u", "X=1 TOKEN=abc run a:b"], "sh -u [redacted]"),
        (&["sh", "-c", "curl -u -me:hunter2 h"], "sh -c curl -u -me:[redacted] h"),
        (&["sh", "-c", "curl -su 'me:two words' h"], "sh -c curl -su 'me:[redacted]' h"),
        (&["sh", "-c", "curl -u me:'two words' h"], "sh -c curl -u me:[redacted] h"),
        (&["sh", "-c", "curl --user=\"me:two words\" h"], "sh -c curl --user=\"me:[redacted]\" h"),
        (&["sh", "-c", "curl -u'me:two words' h"], "sh -c curl -u'me:[redacted]' h"),
        (&["sh", "-c", "curl -sume:hunter2; ls"], "sh -c curl -sume:[redacted]; ls"),
        (&["sh", "-c", "curl -x me:'a b'@h x"], "sh -c curl -x me:[redacted]@h x"),
        (
            &["sh", "-c", "http_proxy=me:hunter2@h curl me@x --token=abc"],
            "sh -c http_proxy=me:[redacted]@h curl me@x --token=[redacted]",
        ),
        (
            &["https_proxy=me:hunter2@h curl me@x --token=abc"],
            "https_proxy=me:[redacted]@h curl me@x --token=[redacted]",
        ),
        (
            &["sh", "-c", "echo '{\"proxy\": \"me:hunter2@h\"}'"],
            "sh -c echo '{\"proxy\": \"me:[redacted]@h\"}'",
        ),
        (
            &["sh", "-c", "docker run -u $(id -u):$(id -g) x"],
            "sh -c docker run -u $(id -u):$(id -g) x",
        ),
    ];
    for (arguments, expected) in table {
        assert_eq!(argv(arguments).join(" "), *expected, "{arguments:?}");
    }
}

proptest! {
    /// Proves: AUD-2 redaction
    #[test]
    fn a_password_of_a_login_never_shows(
        flag in "-[a-zA-Z]{0,3}[uU] |-[sSLkf]{0,3}[uU]=?|--(proxy-)?user[ =]",
        user in "-{0,2}[a-z@.]{1,8}",
        value in "[A-Z]{6,12}",
        after in any::<String>(),
    ) {
        prop_assume!(!flag.contains(&value) && !after.contains(&value));
        let login = format!("{flag}{user}:{value}");
        let mut arguments: Vec<String> = login.split(' ').map(str::to_owned).collect();
        arguments.push(after.clone());
        let script = vec!["sh".to_owned(), "-c".to_owned(), format!("curl {login} {after}")];
        let proxy = vec!["-x".to_owned(), format!("{user}:{value}@h"), after];
        for arguments in [arguments, script, proxy] {
            let shown = argv(&arguments).join(" ");
            prop_assert!(!shown.contains(&value), "{arguments:?} -> {shown}");
            prop_assert!(shown.starts_with(&preview(&arguments)));
        }
    }
}
