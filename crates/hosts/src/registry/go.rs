//! Go: `GOPROXY` and `GOSUMDB`, from the environment or from the file that `go env -w` writes.

use super::{Look, Setup, Tool, defaults, url};
use crate::HostEntry;
use std::path::PathBuf;

pub(super) fn setup(look: &Look<'_>) -> Setup {
    let files = look.texts(settings_files(look));
    let value = |name: &str| {
        let in_files = || files.iter().rev().find_map(|text| value_in(text, name));
        look.var(name).map(str::to_owned).or_else(in_files)
    };
    let (mut hosts, mut notes) = (Vec::new(), Vec::new());
    let usual = defaults::of(Tool::Go);
    let [proxy, sums] = usual.as_slice() else { return Setup::default() };
    match value("GOPROXY") {
        None => hosts.push(proxy.clone()),
        Some(list) => {
            let places: Vec<&str> = list.split([',', '|']).map(str::trim).collect();
            hosts.extend(places.iter().filter_map(|place| url::entry(place, Tool::Go)));
            if hosts.is_empty() && places.contains(&"direct") {
                notes.push(
                    "go is set up to fetch modules from their repositories (GOPROXY=direct); --allow-for go,git \
                     allows those of the public forges"
                        .to_owned(),
                );
            }
        }
    }
    hosts.extend(checksums(value("GOSUMDB").as_deref(), sums));
    // The file is in the home directory, which the sandbox replaces, so its values are passed as variables.
    let told =
        ["GOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GONOPROXY"].iter().filter_map(|name| {
            let value = files.iter().rev().find_map(|text| value_in(text, name))?;
            let is_open = value.split([',', '|', ' ']).all(is_without_secrets);
            (look.var(name).is_none() && is_open).then(|| ((*name).to_owned(), value))
        });
    Setup { hosts, variables: told.collect(), notes }
}

fn is_without_secrets(place: &str) -> bool {
    url::without_secrets(place).is_some_and(|open| open == place)
}

/// `off`, a name, or a name followed by its URL.
fn checksums(setting: Option<&str>, usual: &HostEntry) -> Option<HostEntry> {
    let Some(setting) = setting else { return Some(usual.clone()) };
    let mut words = setting.split_whitespace();
    let name = words.next()?;
    match words.next() {
        Some(place) => url::entry(place, Tool::Go),
        None if name == "off" => None,
        // A key may follow the name.
        None => url::at(name.split('+').next()?, 443, Tool::Go),
    }
}

/// In ascending precedence: the toolchain's files, then the user's.
fn settings_files(look: &Look<'_>) -> Vec<PathBuf> {
    let root = look.var_path("GOROOT");
    let installed = look.prefixes().into_iter().rev();
    let roots = installed.flat_map(|prefix| [prefix.join("lib/go"), prefix.clone()]).chain(root);
    let mut files: Vec<PathBuf> = roots.map(|root| root.join("go.env")).collect();
    match look.var("GOENV") {
        Some("off") => {}
        Some(file) => files.push(PathBuf::from(file)),
        None => files.extend(look.user_config().map(|config| config.join("go/env"))),
    }
    files
}

fn value_in(text: &str, name: &str) -> Option<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let mut values = lines.filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == name).then(|| value.trim().trim_matches(['"', '\'']).to_owned())
    });
    values.next_back().filter(|value| !value.is_empty())
}
