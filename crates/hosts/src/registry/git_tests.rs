use super::{Invented, found, setup};
use crate::registry::Tool;

/// Proves: NET-3 default-hosts
#[test]
fn git_knows_forges_and_what_replaces_them() {
    let forges = found(Tool::Git, &Invented::default(), &[]);
    assert!(forges.contains(&"github.com:22,443".to_owned()), "{forges:?}");
    let files = Invented::default().with(
        "/home/u/.gitconfig",
        "[user]\n name = x\n[url \"https://git.corp.example:8443/\"]\n\tinsteadOf = https://github.com/\n\
         [url \"git@ssh.corp.example:\"]\n\tpushInsteadOf=x\n[url \"https://unused.example/\"]\n\
         [core]\n insteadOf = y\n",
    );
    let more = found(Tool::Git, &files, &[]);
    assert_eq!(more[..forges.len()], forges);
    assert_eq!(more[forges.len()..], ["git.corp.example:8443", "ssh.corp.example:22"]);
}

/// What git is told besides the forges.
fn replaced(files: &Invented, env: &[(&str, &str)]) -> Vec<String> {
    let forges = found(Tool::Git, &Invented::default(), &[]).len();
    found(Tool::Git, files, env).split_off(forges)
}

/// Proves: NET-3 default-hosts
#[test]
fn git_settings_are_read_as_git_writes_them() {
    for (text, expected) in [
        ("[url \"https://a.example/\"] insteadOf=x", &["a.example:443"][..]),
        ("[URL \"https://a.example/\"]\r\n  InsteadOf = x\r\n", &["a.example:443"]),
        ("[url \"https://a.example/\\\"b\"]insteadof=\"x # y\" ; z\n", &["a.example:443"]),
        (
            "[alias] x = \"!f \\\n  [url]\"\n[url \"git://a.example/\"]\npushInsteadOf=y",
            &["a.example:9418"],
        ),
        ("# [url \"https://no.example/\"]\n;insteadOf=x\n", &[]),
        ("[url \"https://no.example/\"]\n[user]\n insteadOf = x\n", &[]),
        ("[url \"https://no.example/\"\ninsteadOf = x\n", &[]),
        ("insteadOf = x\n", &[]),
        // Where git gives up, reading ends; what stood before counts.
        (
            "[url \"https://a.example/\"] insteadOf=x\n[a]b=\\x\n[url \"https://no.example/\"]insteadOf=x",
            &["a.example:443"],
        ),
        ("[a] b c\n[url \"https://no.example/\"] insteadOf=x", &[]),
        // Git wants a value.
        ("[url \"https://no.example/\"] insteadOf\n", &[]),
        ("[include \"x\"] path = more\n", &[]),
        ("[include] path\n[url \"https://a.example/\"] insteadOf =\n", &["a.example:443"]),
    ] {
        let files = Invented::default()
            .with("/home/u/.gitconfig", text)
            .with("/home/u/more", "[url \"https://no.example/\"] insteadOf = x\n");
        assert_eq!(replaced(&files, &[]), expected, "{text}");
    }
    let env = [
        ("GIT_CONFIG_COUNT", "2"),
        ("GIT_CONFIG_KEY_0", "url.https://env.example/x.y/.InsteadOf"),
        ("GIT_CONFIG_VALUE_0", "https://github.com/"),
        ("GIT_CONFIG_KEY_1", "include.path"),
        ("GIT_CONFIG_VALUE_1", "~/more"),
        ("GIT_CONFIG_KEY_2", "url.https://beyond.example/.insteadOf"),
        ("GIT_CONFIG_VALUE_2", "x"),
    ];
    let files = Invented::default().with("/home/u/more", "[url \"ssh://m.example\"] insteadOf=x");
    assert_eq!(replaced(&files, &env), ["env.example:443", "m.example:22"]);
}

/// Proves: NET-3 default-hosts
#[test]
fn bytes_that_are_no_text_hide_no_other_setting_of_git() {
    let mut files = Invented::default();
    let content = b"# \0\n[user]\n name = Ren\xe9\n[url \"https://\xff.example/\"] insteadOf = x\n\
        [url \"https://a.example/\"] insteadOf = x\n";
    files.0.insert("/home/u/.gitconfig".into(), content.to_vec());
    assert_eq!(replaced(&files, &[]), ["a.example:443"]);
}

/// Proves: NET-3 default-hosts
#[test]
fn git_includes_are_followed_as_far_as_their_files_are_the_users_own() {
    let rewrites = |host: &str| format!("[url \"https://{host}.example/\"] insteadOf = x\n");
    let files = Invented::default()
        .with(
            "/home/u/.gitconfig",
            "[include]\n path = git/work\n path = ~/tilde\n path = /etc/absolute\n\
             path = work/project/evil\n path = /x/../y\n path = ~root/z\n",
        )
        .with("/home/u/git/work", &format!("{}[include] path=beside", rewrites("work")))
        .with("/home/u/git/beside", &rewrites("beside"))
        .with("/home/u/tilde", &rewrites("tilde"))
        .with("/etc/absolute", &rewrites("absolute"))
        .with("/home/u/work/project/evil", &rewrites("evil"))
        .with("/x/../y", &rewrites("up"));
    let expected =
        ["work", "beside", "tilde", "absolute"].map(|host| format!("{host}.example:443"));
    assert_eq!(replaced(&files, &[]), expected);
    let endless = Invented::default().with(
        "/home/u/.gitconfig",
        &format!("{}[include]\n path = .gitconfig\n", rewrites("again")),
    );
    assert_eq!(replaced(&endless, &[]), ["again.example:443"]);
}

/// Proves: NET-3 default-hosts
#[test]
fn git_includes_under_a_condition_are_told_and_not_followed() {
    let files = Invented::default()
        .with(
            "/home/u/.gitconfig",
            "[includeIf \"gitdir:~/work/\"]\n path = work\n[includeIf \"onbranch:x\"]\n path = me\n",
        )
        .with("/home/u/work", "[url \"https://corp.example:8443/\"]\n insteadOf = x\n")
        .with("/home/u/me", "[user]\n name = x\n");
    assert_eq!(replaced(&files, &[]), [""; 0]);
    let notes = setup(Tool::Git, &files, &[]).notes;
    assert_eq!(
        notes,
        [
            "git includes /home/u/work under a condition only, so the hosts it names are not allowed; \
          allow them with --allow-host corp.example:8443"
        ]
    );
}

/// Every line is understood, and none is there twice.
#[test]
fn the_list_of_forges_is_well_formed() {
    let text = include_str!("../../../../resources/egress/forges.txt");
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let places: Vec<&str> =
        lines.clone().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(lines.clone().all(|line| line.contains(" # ")));
    assert_eq!(found(Tool::Git, &Invented::default(), &[]), places);
}
