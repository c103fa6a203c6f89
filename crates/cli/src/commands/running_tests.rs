use super::{NamedRun, find, start};

fn run(session: &str, command: &str) -> NamedRun {
    NamedRun { session: session.to_owned(), command: command.to_owned() }
}

#[test]
fn a_run_is_named_by_either_end_of_its_session() {
    let runs = [run("0199-aaaa-1111", "make"), run("0199-bbbb-2222", "npm test")];
    for named in ["0199-b", "2222", "0199-bbbb-2222", " 2 "] {
        assert_eq!(find(named, &runs).unwrap(), "0199-bbbb-2222", "{named}");
    }
    let error = find("0199", &runs).unwrap_err().to_string();
    assert!(error.starts_with("`0199` is ambiguous: 0199-aaaa-1111 (make), 0199-bbbb"), "{error}");
    for unknown in ["", "bbbb", "x"] {
        let error = find(unknown, &runs).unwrap_err().to_string();
        assert!(error.contains("these run: 0199-aaaa-1111 (make)"), "{error}");
    }
    let error = find("x", &[]).unwrap_err().to_string();
    assert_eq!(error, "no run `x`: no sandbox of yours is running");
}

#[test]
fn a_long_command_is_cut_with_a_mark() {
    assert_eq!(start("make", 4), "make");
    assert_eq!(start("make all", 5), "make…");
}
