use super::*;

/// Proves: FS-1 toolchains, PROC-2 honest-backing
#[test]
fn every_line_is_an_entry_with_known_tags_and_a_reason() {
    let lists: [(&[Listed], &[&str]); 10] = [
        (SYSTEM, &["exec", "noexec", "static"]),
        (TOOLCHAINS, &["exec", "noexec", "scanned", "certificates", "overlay"]),
        (CACHES, &["exec", "noexec"]),
        (SECRETS, &["secret", "root-only", "unasked"]),
        (SETTINGS, &["npm", "yarn", "yaml", "ini", "toml", "properties", "xml"]),
        (PROBES, &["anywhere", "below-home"]),
        (MARKERS, &["policy", "history", "manifest"]),
        (LEFTOVERS, &["cache", "state", "logs", "history"]),
        (SECRET_ENV, &["keep", "drop"]),
        (INTERPRETERS, &["shell", "language", "runtime", "toolbox", "debugger"]),
    ];
    for (list, known) in lists {
        assert!(list.len() > 5);
        for line in list {
            assert!(!line.name.is_empty() && !line.why.trim().is_empty(), "{line:?}");
            assert!(line.tags.split(',').all(|tag| known.contains(&tag)), "{line:?}");
        }
    }
}

/// Proves: FS-1 cache-parts
#[test]
fn no_writable_cache_is_a_bin_or_holds_a_secret() {
    for cache in CACHES {
        assert!(!cache.name.ends_with("/bin"), "{}", cache.name);
        for secret in SECRETS {
            assert!(
                !secret.name.starts_with(&format!("{}/", cache.name)) && secret.name != cache.name,
                "{} holds {}",
                cache.name,
                secret.name
            );
        }
    }
}
