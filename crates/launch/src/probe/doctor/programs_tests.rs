use super::*;

/// Proves: PROC-7 doctor-more
#[test]
fn yama_is_judged_by_what_a_debugger_could_do() {
    for scope in [None, Some("0"), Some("1")] {
        assert!(judge_yama(scope).is_ok(), "{scope:?}");
    }
    let administrators = judge_yama(Some("2")).unwrap_err();
    let command = "sudo sysctl -w kernel.yama.ptrace_scope=1";
    assert_eq!(administrators.fix.as_deref(), Some(command));
    assert!(judge_yama(Some("3")).unwrap_err().fix.unwrap().contains("reboot"));
}

/// Proves: PROC-7 doctor-more
#[test]
fn subordinate_ids_are_found_by_name_or_number() {
    let text = "ann:100000:65536\n1234:165536:65536\nbob:231072:0\n";
    assert!(has_range(text, "ann", 1000));
    assert!(has_range(text, "somebody", 1234));
    assert!(!has_range(text, "bob", 1001));
    assert!(!has_range(text, "an", 7));
}

#[test]
fn a_package_has_the_name_the_distribution_gives_it() {
    let package = Package {
        debian: "uidmap",
        fedora: "shadow-utils",
        alpine: "shadow-uidmap",
        other: "shadow",
    };
    for (os_release, command) in [
        ("ID=debian\n", "sudo apt install uidmap"),
        ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", "sudo apt install uidmap"),
        ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "sudo dnf install shadow-utils"),
        ("ID=alpine\n", "sudo apk add shadow-uidmap"),
        ("ID=arch\n", "sudo pacman -S shadow"),
        ("ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n", "sudo zypper install shadow"),
        ("", "install the package shadow"),
    ] {
        assert_eq!(package.install_on(os_release), command, "{os_release}");
    }
}
