use super::{Filtered, filter};
use proptest::prelude::*;

const SECRET: &str = "s3cr3t-Value/of+the=day";

/// What is left of a text, which has to hold a credential.
fn left(format: &str, text: &str) -> String {
    match filter(format, text) {
        Filtered::Without { text, .. } => text,
        other => panic!("{other:?} for {text}"),
    }
}

fn is_clean(format: &str, text: &str) {
    assert_eq!(filter(format, text), Filtered::Clean, "{text}");
}

fn is_unclear(format: &str, text: &str) {
    assert_eq!(filter(format, text), Filtered::Unclear, "{text}");
}

/// Proves: FS-2 settings-carried
#[test]
fn npm_keeps_its_registries_and_loses_how_to_log_in() {
    let text = "registry=https://npm.corp.example/\n\
                //npm.corp.example/:_authToken=abc\n\
                ; //npm.corp.example/:_password=old\n\
                @team:registry=https://me:pw@team.example:8443/npm/\n\
                _auth = YWJjOmRlZg==\nalways-auth=true\nproxy=http://proxy.example:3128\n\
                https-proxy=me:pw@proxy.example:3128\n";
    let left = left("npm", text);
    assert_eq!(
        left,
        "registry=https://npm.corp.example/\n\
         @team:registry=https://team.example:8443/npm/\n\
         always-auth=true\nproxy=http://proxy.example:3128\n"
    );
    is_clean("npm", "registry=https://npm.corp.example/\nsave-exact=true\n# a comment: x\n");
    is_clean("npm", "init-author-name=Me\ncafile=/etc/ssl/corp.pem\n");
}

#[test]
fn what_was_left_out_is_named_and_not_told() {
    let Filtered::Without { left_out, .. } =
        filter("npm", "//npm.example/:_authToken=abc\nproxy=http://u:p@proxy/\n")
    else {
        panic!("nothing left out");
    };
    assert_eq!(left_out, ["//npm.example/:_authToken", "the login in an address (proxy)"]);
}

#[test]
fn yarn_is_read_in_both_of_its_forms() {
    let classic = "# yarn lockfile v1\n\n\"//npm.example/:_authToken\" \"abc\"\nregistry \"https://u:p@npm.example\"\n\
                   lastUpdateCheck 1700000000000\n";
    assert_eq!(
        left("yarn", classic),
        "# yarn lockfile v1\n\nregistry \"https://npm.example\"\nlastUpdateCheck 1700000000000\n"
    );
    let berry = "npmRegistryServer: \"https://npm.example\"\nnpmRegistries:\n  \"https://npm.example\":\n    \
                 npmAuthToken: \"abc\"\n    npmAlwaysAuth: true\nnpmAuthIdent: |\n  me:pw\n  more\nnodeLinker: pnp\n";
    assert_eq!(
        left("yaml", berry),
        "npmRegistryServer: \"https://npm.example\"\nnpmRegistries:\n  \"https://npm.example\":\n    \
         npmAlwaysAuth: true\nnodeLinker: pnp\n"
    );
    assert_eq!(left("yaml", "a: 1\nscopes: {x: {npmAuthToken: abc}}\n"), "a: 1\n");
    is_unclear("yaml", "scopes: {x: {npmAuthToken: abc,\n  other: 1}}\n");
}

#[test]
fn pip_keeps_its_indexes_without_the_login_in_them() {
    let text = "[global]\nindex-url = https://me:pw@pypi.example/simple\nextra-index-url =\n    https://a.example/simple\n    \
                https://tok@b.example/simple\ntrusted-host: b.example\ntimeout = 60\n";
    assert_eq!(
        left("ini", text),
        "[global]\nindex-url = https://pypi.example/simple\nextra-index-url =\n    https://a.example/simple\n    \
         https://b.example/simple\ntrusted-host: b.example\ntimeout = 60\n"
    );
    assert_eq!(
        left("ini", "extra-index-url =\n  https://u:p@a.example/x\n"),
        "extra-index-url =\n  https://a.example/x\n"
    );
    is_unclear("ini", "index-url = https://me:p/w@pypi.example/simple\n");
}

#[test]
fn cargo_keeps_its_registries() {
    let text = "[registries.corp]\nindex = \"sparse+https://u:p@crates.example/\"\ntoken = \"abc\"\n\
                other = { index = \"https://x.example\", token = \"abc\" }\n[net]\ngit-fetch-with-cli = true\n\
                [http]\nproxy = \"http://proxy.example:3128\"\n";
    assert_eq!(
        left("toml", text),
        "[registries.corp]\nindex = \"sparse+https://crates.example/\"\n[net]\ngit-fetch-with-cli = true\n\
         [http]\nproxy = \"http://proxy.example:3128\"\n"
    );
    is_clean("toml", "[source.x]\nregistry = \"ssh://git@host.example/index\"\n");
    is_unclear("toml", "token = \"\"\"\nabc\n\"\"\"\n");
    is_unclear("toml", "tokens = [\n  \"abc\",\n]\n");
}

#[test]
fn gradle_and_go_lose_the_lines_that_hold_one() {
    let gradle = "org.gradle.jvmargs=-Xmx2g\nsystemProp.https.proxyHost=proxy.example\n\
                  systemProp.https.proxyPassword=pw \\\n  more\nkotlin.code.style=official\nmavenPassword: pw\nx=y\n";
    assert_eq!(
        left("properties", gradle),
        "org.gradle.jvmargs=-Xmx2g\nsystemProp.https.proxyHost=proxy.example\nkotlin.code.style=official\nx=y\n"
    );
    assert_eq!(
        left("properties", "# old: aPassword=pw\n# the password is pw\na: b=c\n"),
        "a: b=c\n"
    );
    is_clean("properties", "a.url=https://auth.example:8443/x\n");
    let go = "GOPROXY=https://u:p@goproxy.example,direct\nGOPRIVATE=corp.example/*\nGOAUTH=netrc\n";
    assert_eq!(
        left("properties", go),
        "GOPROXY=https://goproxy.example,direct\nGOPRIVATE=corp.example/*\n"
    );
}

#[test]
fn maven_keeps_mirrors_and_proxies_and_loses_servers() {
    let text = "<settings xmlns=\"http://maven.apache.org/SETTINGS/1.0.0\">\n<servers><server><id>x</id>\
                <password>pw</password></server></servers>\n<mirrors><mirror><url>https://u:p@m.example/</url></mirror></mirrors>\n\
                <proxy><host>proxy.example</host><password>pw</password></proxy>\n<!-- <password>old</password> --></settings>";
    let left = left("xml", text);
    assert_eq!(
        left,
        "<settings xmlns=\"http://maven.apache.org/SETTINGS/1.0.0\">\n\n<mirrors><mirror><url>https://m.example/</url>\
         </mirror></mirrors>\n<proxy><host>proxy.example</host></proxy>\n<!--  --></settings>"
    );
    is_unclear("xml", "<settings><password>pw</settings>");
    is_unclear("xml", "<settings><proxy password=\"pw\"/></settings>");
    is_unclear("xml", "no markup at all: password");
}

#[test]
fn what_is_no_settings_file_is_not_carried() {
    is_unclear("unknown", "a=b\n");
    for format in ["npm", "ini", "yaml", "toml", "properties", "xml"] {
        is_unclear(format, "my secret\n");
    }
    let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\n";
    for format in ["npm", "ini", "yarn", "yaml", "toml", "properties"] {
        let Filtered::Without { text, .. } = filter(format, key) else { continue };
        assert!(!text.contains("b3BlbnNz"), "{format}: {text}");
    }
}

/// Lines of a settings file with the secret in a place where one can be, in each format's own way.
fn with_secret(format: &str) -> Vec<String> {
    let lines: &[&str] = match format {
        "npm" => &[
            "//h.example/:_authToken=@",
            "_auth=@",
            "# _password = @",
            "registry=https://u:@@h.example/",
        ],
        "ini" => &[
            "password = @",
            "index-url = https://u:@@h.example/",
            "index-url =\n  https://@@h.example",
        ],
        "yarn" => &[
            "\"//h.example/:_authToken\" \"@\"",
            "_password @",
            "registry \"https://u:@@h.example\"",
        ],
        "yaml" => &[
            "npmAuthToken: @",
            "a:\n  npmAuthIdent: \"@\"",
            "npmAuthToken: |\n  @",
            "x: {npmAuthToken: @}",
        ],
        "toml" => &["token = \"@\"", "x = { token = \"@\" }", "index = \"https://u:@@h.example\""],
        "properties" => &[
            "aPassword=@",
            "aPassword: a\\\n @",
            "# old: aPassword=@",
            "# password @",
            "p=http://u:@@h.example",
        ],
        _ => &[
            "<a><password>@</password></a>",
            "<servers><x>@</x></servers>",
            "<url>https://u:@@h.example/</url>",
        ],
    };
    lines.iter().map(|line| (*line).to_owned()).collect()
}

fn harmless() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("save-exact=true\n".to_owned()),
        Just("# a comment\n".to_owned()),
        Just("\n".to_owned()),
        Just("  indented: value\n".to_owned()),
        Just("[section]\n".to_owned()),
        "[a-z]{1,8} ?[=:] ?[a-z0-9./]{0,12}\n",
        "[ -~]{0,30}\n",
    ]
}

proptest! {
    /// Whatever stands around it: the secret is gone, or the file is hidden whole.
    ///
    /// Proves: FS-2 settings-carried
    #[test]
    fn no_secret_survives(
        format in prop::sample::select(vec!["npm", "ini", "yarn", "yaml", "toml", "properties", "xml"]),
        which in 0usize..4,
        secret in "[A-Za-z0-9+=_.~-]{6,40}",
        before in prop::collection::vec(harmless(), 0..4),
        after in prop::collection::vec(harmless(), 0..4),
    ) {
        prop_assume!(!matches!(secret.to_ascii_lowercase().as_str(), "true" | "false"));
        let lines = with_secret(format);
        let line = lines[which % lines.len()].replacen('@', &secret, 1);
        let text = format!("{}{line}\n{}", before.concat(), after.concat());
        let around = format!("{}{}", before.concat(), after.concat());
        prop_assume!(!around.contains(&secret));
        match filter(format, &text) {
            Filtered::Clean => prop_assert!(false, "taken for clean: {text}"),
            Filtered::Without { text: left, left_out } => {
                prop_assert!(!left.contains(&secret), "{left}");
                prop_assert!(!left_out.concat().contains(&secret), "{left_out:?}");
            }
            Filtered::Unclear => {}
        }
    }

    /// What is left holds nothing more, and every line that stays is a line as it was, but for logins.
    #[test]
    fn what_is_left_is_clean(
        format in prop::sample::select(vec!["npm", "ini", "yarn", "yaml", "toml", "properties"]),
        lines in prop::collection::vec(harmless(), 0..8),
    ) {
        let text = lines.concat();
        if let Filtered::Without { text: left, .. } = filter(format, &text) {
            let again = filter(format, &left);
            prop_assert!(!matches!(again, Filtered::Without { .. }), "{left:?} -> {again:?}");
        }
    }
}

#[test]
fn the_secret_of_the_tests_is_one() {
    assert!(matches!(filter("npm", &format!("_password={SECRET}\n")), Filtered::Without { .. }));
}

/// What a reviewer got through: logins with `,` and `'`, and values that go on below an empty one.
///
/// Proves: FS-2 settings-carried
#[test]
fn a_value_below_its_key_and_a_login_with_marks_are_left_out() {
    let pip = "[global]\nindex-url = https://me:hun,ter2@pypi.example/simple\nextra-index-url =\n    \
               https://bob:it's4@b.example/simple\nproxy =\n    user:hunter3@proxy.corp:3128\npassword =\n    hunter5\ntimeout = 5\n";
    let left_of_pip = left("ini", pip);
    for secret in ["hun,ter2", "it's4", "hunter3", "hunter5"] {
        assert!(!left_of_pip.contains(secret), "{left_of_pip}");
    }
    assert!(left_of_pip.contains("pypi.example/simple") && left_of_pip.contains("timeout = 5"));
    let yarn = left("yaml", "npmAuthTokens:\n- hunter6\nnpmRegistryServer: https://npm.example\n");
    assert_eq!(yarn, "npmRegistryServer: https://npm.example\n");
}
