use super::*;

const LISTS: [(&str, &[&str]); 5] = [
    (SYSTEM, &["exec", "noexec", "static"]),
    (TOOLCHAINS, &["exec", "noexec"]),
    (CACHES, &["exec", "noexec"]),
    (SECRETS, &["secret", "root-only"]),
    (SECRET_ENV, &["keep", "drop"]),
];

/// Proves: FS-1 lists-are-well-formed
#[test]
fn every_line_is_an_entry_with_known_flags_and_a_reason() {
    for (list, known) in LISTS {
        for line in list.lines().filter(|line| !line.starts_with('#')) {
            let (entry, reason) = line.split_once('#').expect(line);
            assert!(!reason.trim().is_empty(), "no reason: {line}");
            let words: Vec<&str> = entry.split_whitespace().collect();
            assert_eq!(words.len(), 2, "{line}");
            assert!(words[1].split(',').all(|flag| known.contains(&flag)), "{line}");
        }
        let lines = list.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(entries(list).count(), lines);
    }
}

/// Proves: FS-1 caches-hold-no-programs-or-credentials
#[test]
fn no_writable_cache_is_a_bin_or_holds_a_secret() {
    for cache in entries(CACHES) {
        assert!(!cache.name.ends_with("/bin"), "{}", cache.name);
        for secret in entries(SECRETS) {
            assert!(
                !secret.name.starts_with(&format!("{}/", cache.name)) && secret.name != cache.name,
                "{} holds {}",
                cache.name,
                secret.name
            );
        }
    }
}
