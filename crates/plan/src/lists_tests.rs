use super::*;

const LISTS: [(&[Listed], &str, &[&str]); 5] = [
    (
        list!("system.txt"),
        include_str!("../../../resources/view/system.txt"),
        &["exec", "noexec", "static"],
    ),
    (
        list!("toolchains.txt"),
        include_str!("../../../resources/view/toolchains.txt"),
        &["exec", "noexec", "scanned"],
    ),
    (list!("caches.txt"), include_str!("../../../resources/view/caches.txt"), &["exec", "noexec"]),
    (
        list!("secrets.txt"),
        include_str!("../../../resources/view/secrets.txt"),
        &["secret", "root-only"],
    ),
    (
        list!("secret-env.txt"),
        include_str!("../../../resources/view/secret-env.txt"),
        &["keep", "drop"],
    ),
];

/// Proves: FS-1 toolchains
#[test]
fn every_line_is_an_entry_with_known_flags_and_a_reason() {
    for (list, text, known) in LISTS {
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(list.len(), lines.len());
        for (entry, line) in list.iter().zip(lines) {
            let (columns, reason) = line.split_once(" # ").expect(line);
            assert!(!reason.trim().is_empty(), "no reason: {line}");
            let words: Vec<&str> = columns.split_whitespace().collect();
            assert_eq!(words, [entry.name, entry.flags], "{line}");
            assert!(entry.flags.split(',').all(|flag| known.contains(&flag)), "{line}");
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
