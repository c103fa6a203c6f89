//! Maven: mirrors and repositories of `settings.xml`. Gradle: URLs in the user's init scripts.

use super::{Look, Setup, Tool, defaults, url};
use std::path::PathBuf;

pub(super) fn maven(look: &Look<'_>) -> Setup {
    let mut files = vec![PathBuf::from("/etc/maven/settings.xml")];
    let homes = ["MAVEN_HOME", "M2_HOME"].into_iter().filter_map(|name| look.var_path(name));
    files.extend(homes.map(|home| home.join("conf/settings.xml")));
    let of_user = look.in_home(".m2/settings.xml");
    files.extend(of_user.clone());
    let mut found = MavenSettings::default();
    for text in look.texts(files) {
        found.add(&text, look);
    }
    let mut hosts: Vec<_> =
        found.urls.iter().filter_map(|place| url::entry(place, Tool::Maven)).collect();
    if !found.replaces_central {
        hosts.extend(defaults::of(Tool::Maven));
    }
    let mut notes = Vec::new();
    let has_file = of_user.as_deref().is_some_and(|file| look.text(file).is_some());
    if has_file && !found.urls.is_empty() {
        notes.push(
            "maven reads its mirrors from ~/.m2/settings.xml only, which is hidden because passwords may be in it; \
             --ro ~/.m2/settings.xml shows it"
                .to_owned(),
        );
    }
    Setup { hosts, notes, ..Setup::default() }
}

#[derive(Default)]
struct MavenSettings {
    urls: Vec<String>,
    /// A mirror replaces Maven Central.
    replaces_central: bool,
}

impl MavenSettings {
    fn add(&mut self, text: &str, look: &Look<'_>) {
        let text = without_comments(text);
        for mirror in elements(&text, "mirror") {
            let of = elements(mirror, "mirrorOf").next().unwrap_or_default();
            let patterns: Vec<&str> = of.split(',').map(str::trim).collect();
            let all = ["*", "external:*", "central"];
            let is_left_out = patterns.contains(&"!central");
            self.replaces_central |=
                !is_left_out && all.iter().any(|pattern| patterns.contains(pattern));
        }
        for element in ["mirror", "repository", "pluginRepository"] {
            let urls = elements(&text, element).filter_map(|inner| elements(inner, "url").next());
            self.urls.extend(urls.map(|place| with_variables(place.trim(), look)));
        }
    }
}

/// `${env.NAME}`
fn with_variables(text: &str, look: &Look<'_>) -> String {
    let Some((before, open)) = text.split_once("${env.") else { return text.to_owned() };
    let Some((name, after)) = open.split_once('}') else { return text.to_owned() };
    format!("{before}{}{}", look.var(name).unwrap_or_default(), with_variables(after, look))
}

fn without_comments(text: &str) -> String {
    let mut whole = String::new();
    let mut rest = text;
    while let Some((before, open)) = rest.split_once("<!--") {
        whole.push_str(before);
        rest = open.split_once("-->").map_or("", |(_, after)| after);
    }
    whole + rest
}

/// The text between the tags of elements without attributes, as settings files have them.
fn elements<'t>(text: &'t str, name: &str) -> impl Iterator<Item = &'t str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = text;
    std::iter::from_fn(move || {
        let (_, after) = rest.split_once(open.as_str())?;
        let (inner, beyond) = after.split_once(close.as_str())?;
        rest = beyond;
        Some(inner)
    })
}

/// Init scripts are programs, so only their quoted URLs are read. These hosts are allowed in addition to the
/// default.
pub(super) fn gradle(look: &Look<'_>) -> Setup {
    let home = look.var_path("GRADLE_USER_HOME").or_else(|| look.in_home(".gradle"));
    let scripts = home.into_iter().flat_map(|home| {
        ["init.gradle", "init.gradle.kts", "init.d/*.gradle", "init.d/*.gradle.kts"]
            .map(|script| home.join(script))
    });
    let scripts: Vec<PathBuf> = scripts.flat_map(|pattern| look.expand(&pattern)).collect();
    let mut hosts = defaults::of(Tool::Gradle);
    for text in look.texts(scripts) {
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let quoted = lines.flat_map(|line| line.split(['"', '\'']).skip(1).step_by(2));
        hosts.extend(quoted.filter_map(|text| url::entry(text, Tool::Gradle)));
    }
    Setup { hosts, ..Setup::default() }
}
