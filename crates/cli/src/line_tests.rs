use super::{Cli, Command, Rejected, parse};
use crate::commands::sessions::exec::Exec;
use clap::CommandFactory;
use std::ffi::OsString;

fn line(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn command_of(words: &[&str]) -> Vec<OsString> {
    match parse(&line(words)) {
        Ok(Command::Run(run)) => run.command.command,
        _ => panic!("{words:?} is no run"),
    }
}

fn meant_by(words: &[&str]) -> Option<String> {
    match parse(&line(words)) {
        Err(Rejected::ProgramForCommand { meant, .. }) => Some(meant),
        _ => None,
    }
}

#[test]
fn the_definitions_are_consistent() {
    Cli::command().debug_assert();
}

/// Proves: LIFE-3 run
#[test]
fn a_command_that_looks_like_an_option_is_taken_literally() {
    assert_eq!(command_of(&["sandbox", "run", "--", "--bind", "/"]), ["--bind", "/"]);
    assert_eq!(command_of(&["sandbox", "run", "--", "x", "--", "--rw"]), ["x", "--", "--rw"]);
    assert_eq!(command_of(&["sandbox", "run", "ls", "-l", "--rw"]), ["ls", "-l", "--rw"]);
    assert_eq!(command_of(&["sandbox", "run", "--level", "1", "ls", "--level"]), ["ls", "--level"]);
}

#[test]
fn the_usual_line_of_exec_is_read_as_by_its_definitions() {
    let usual = [
        &["exec", "work", "--", "true"][..],
        &["exec", "-i", "work", "--", "tar", "-x"],
        &["exec", "--interactive", "work", "--", "x", "--", "-i", "--tty", ""],
        &["exec", " w ", "--", "-c"],
    ];
    for words in usual {
        let line = line(&[&["sandbox"], words].concat());
        let Ok(Command::Exec(by_definitions)) = parse(&line) else { panic!("{words:?}") };
        assert_eq!(Exec::of_usual_line(&line), Some(by_definitions), "{words:?}");
    }
    let others = [
        &["exec", "work", "true"][..],
        &["exec", "work", "--"],
        &["exec", "--", "work", "true"],
        &["exec", "-it", "work", "--", "true"],
        &["exec", "-i", "-i", "work", "--", "true"],
        &["exec", "--help", "--", "true"],
        &["exec", "", "--", "true"],
        &["exec", "work", "-t", "--", "true"],
        &["attach", "work", "--", "true"],
        &["run", "exec", "--", "true"],
        &["exec"],
    ];
    for words in others {
        assert_eq!(Exec::of_usual_line(&line(&[&["sandbox"], words].concat())), None, "{words:?}");
    }
    let by_other_name = ["/usr/bin/bwrap", "exec", "work", "--", "true"];
    assert_eq!(Exec::of_usual_line(&line(&by_other_name)), None);
}

/// Proves: LIFE-3 run
#[test]
fn two_hyphens_alone_run_a_command() {
    assert_eq!(command_of(&["sandbox", "--", "ls", "-l"]), ["ls", "-l"]);
    assert_eq!(command_of(&["sandbox", "--", "run", "--", "x"]), ["run", "--", "x"]);
    assert!(parse(&line(&["sandbox", "--"])).is_err());
}

#[test]
fn a_mistyped_option_is_no_command() {
    assert!(parse(&line(&["sandbox", "run", "--levle", "1", "ls"])).is_err());
    assert!(parse(&line(&["sandbox", "run"])).is_err());
}

/// Proves: LIFE-3 did-you-mean
#[test]
fn a_program_in_place_of_a_command_is_understood_and_not_run() {
    assert_eq!(meant_by(&["sandbox", "sh", "-c", "a b"]).unwrap(), "sandbox run -- sh -c 'a b'");
    assert_eq!(meant_by(&["sandbox", "/bin/sh"]).unwrap(), "sandbox run -- /bin/sh");
    let options = ["sandbox", "--ro", "/data", "--", "ls"];
    assert_eq!(meant_by(&options).unwrap(), "sandbox run --ro /data -- ls");
    // What is near a command of ours, and no program, is a slip in that command.
    assert_eq!(meant_by(&["sandbox", "aprove"]), None);
    assert_eq!(meant_by(&["sandbox", "--no-such-option"]), None);
}

/// What is said of a line that is no command.
fn told(words: &[&str]) -> [String; 2] {
    match parse(&line(words)) {
        Err(Rejected::Usage { error, line }) => crate::usage::told(&error, &line),
        _ => panic!("{words:?} is read"),
    }
}

/// Proves: LIFE-3 did-you-mean
#[test]
fn a_misspelt_word_is_named_with_what_was_meant_and_the_usage_of_its_command() {
    for (words, wrong, usage) in [
        (
            &["sandbox", "run", "--tiemout", "5", "--", "true"][..],
            "unknown option --tiemout; did you mean --timeout?",
            "sandbox run --help",
        ),
        (
            &["sandbox", "--tiemout", "5", "--", "true"],
            "unknown option --tiemout; did you mean --timeout?",
            "sandbox run --help",
        ),
        (
            &["sandbox", "plan", "--jsno", "--", "true"],
            "unknown option --jsno; did you mean --json?",
            "sandbox plan --help",
        ),
        (
            &["sandbox", "run", "--ro-bind", "/a", "/a", "true"],
            "unknown option --ro-bind; did you mean --ro?",
            "sandbox run --help",
        ),
        (
            &["sandbox", "policy", "check", "--quite"],
            "unknown option --quite",
            "sandbox policy check --help",
        ),
        (&["sandbox", "doctor", "extra"], "unexpected argument `extra`", "sandbox doctor --help"),
        (
            &["sandbox", "rnu", "--", "true"],
            "`rnu` is not a command of sandbox; did you mean `run`?",
            "sandbox --help",
        ),
        (
            &["sandbox", "rn", "--", "true"],
            "`rn` is not a command of sandbox; did you mean `run`?",
            "sandbox --help",
        ),
        (
            &["sandbox", "why", "--writ", "/x"],
            "unknown option --writ; did you mean --write?",
            "sandbox why --help",
        ),
        (
            &["sandbox", "run", "--mem", "1g", "--", "true"],
            "unknown option --mem",
            "sandbox run --help",
        ),
        (
            &["sandbox", "policy", "chekc"],
            "`chekc` is not a command of sandbox policy; did you mean `check`?",
            "sandbox policy --help",
        ),
        (
            &["sandbox", "run", "--ask-in", "tmxu", "--", "true"],
            "--ask-in: `tmxu` is not one of: terminal, approve, tmux, none; did you mean `tmux`?",
            "sandbox run --help",
        ),
        (&["sandbox", "run", "--timeout"], "--timeout <", "sandbox run --help"),
        (&["sandbox", "run"], "missing: ", "sandbox run --help"),
        (
            &["sandbox", "approve", "--yes", "1", "--no", "2"],
            "--yes <ID> cannot be used with --no <ID>",
            "sandbox approve --help",
        ),
    ] {
        let [told, hint] = told(words);
        assert!(told.starts_with(wrong), "{words:?}: {told}");
        assert!(hint.starts_with("usage: sandbox "), "{words:?}: {hint}");
        assert!(hint.ends_with(&format!("see `{usage}`")), "{words:?}: {hint}");
        assert!(meant_by(words).is_none(), "{words:?}");
    }
}

/// Every command is read by its own definitions, and as the whole set reads it.
#[test]
fn one_command_alone_is_read_as_by_all() {
    for words in [
        &["sandbox", "plan", "--json", "--", "true"][..],
        &["sandbox", "audit", "show", "--json"],
        &["sandbox", "policy", "check", "x.yaml"],
        &["sandbox", "approve", "--yes", "3"],
        &["sandbox", "doctor"],
    ] {
        let alone = super::alone(words[1], &line(&words[1..])).expect("known by its name");
        let Ok(all) = <Cli as clap::Parser>::try_parse_from(words) else { panic!("{words:?}") };
        assert_eq!(format!("{alone:?}"), format!("{:?}", all.command));
    }
    let names: Vec<String> = Cli::command()
        .get_subcommands()
        .filter(|command| {
            !["completions", "man", "complete", "generate"].contains(&command.get_name())
        })
        .map(|command| command.get_name().to_owned())
        .collect();
    let source = include_str!("line.rs");
    for name in names {
        assert!(
            source.contains(&format!("\"{name}\" => Command::")),
            "{name} is built with all others"
        );
    }
}

/// The options in this help text of a command.
fn listed(command: &str, option: &str) -> Vec<String> {
    let words = format!("sandbox {command} {option}");
    let words: Vec<&str> = words.split(' ').collect();
    let Err(Rejected::Usage { error, .. }) = parse(&line(&words)) else {
        panic!("{words:?} is no help");
    };
    assert_eq!(error.kind(), clap::error::ErrorKind::DisplayHelp, "{words:?}");
    let text = error.to_string();
    let last = text.trim_end().lines().last().unwrap();
    assert!(option == "--help-all" || last.contains("--help-all"), "{words:?}: {last}");
    // A wrapped line that begins with an option is further in.
    let options = text.lines().filter_map(|line| {
        let (before, name) = line.split_at_checked(6)?;
        let is_option = before.trim().is_empty() || before.ends_with(", ");
        name.strip_prefix("--").filter(|_| is_option)?.split([' ', '=', '[']).next()
    });
    options.filter(|name| !name.starts_with("help")).map(str::to_owned).collect()
}

/// Proves: LIFE-3 run
#[test]
#[rustfmt::skip] // Lists of words.
fn help_shows_the_options_most_people_need_and_help_all_every_one() {
    let most_used = [
        "ro", "rw", "overlay", "transaction", "blacklist", "on-ask", "allow-host", "allow-for", "network",
        "timeout", "memory", "env", "static", "preset", "policy", "report",
    ];
    assert_eq!(listed("run", "--help"), most_used);
    assert_eq!(listed("run", "-h"), most_used);
    let definitions = Cli::command();
    for words in [
        "run", "create", "learn", "plan", "why", "explain-syscall", "policy show", "policy export", "policy diff",
    ] {
        let mut command = &definitions;
        for word in words.split(' ') {
            command = command.find_subcommand(word).unwrap();
        }
        // One that only other parts of this program use is in no help.
        let defined = command.get_arguments().filter(|it| !it.is_hide_set());
        let defined = defined.filter_map(|it| it.get_long());
        let mut defined: Vec<&str> = defined.filter(|name| !name.starts_with("help")).collect();
        defined.sort_unstable();
        let mut all = listed(words, "--help-all");
        all.sort_unstable();
        assert_eq!(all, defined, "{words}");
        let short = listed(words, "--help");
        assert!(short.len() < 25 && short.len() < all.len(), "{words}: {short:?}");
    }
}
