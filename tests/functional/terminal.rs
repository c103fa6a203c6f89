//! Interactive programs: a real terminal, typed into by tmux and looked at as a person would.

use std::fs;

use palisade_testkit::World;

use crate::inside::soon;
use crate::tmux::{PROMPT, Tmux};

/// Proves: PROC-3 pty
#[test]
fn a_program_has_a_terminal_of_its_own() {
    let world = World::new();
    let tmux = Tmux::new(&world);
    tmux.line("tty; sandbox run -- sh -c 'tty; test -t 0 && test -t 1 && test -t 2 && echo three; ls /dev/pts'");
    tmux.wait_for_line("three");
    tmux.wait_for_line("/dev/pts/0");
    tmux.wait_until("only its own terminals", |screen| {
        screen.lines().any(|line| line.split_whitespace().eq(["0", "ptmx"]))
    });
}

/// Proves: PROC-3 pty
#[test]
fn vim_edits_a_file_of_the_project() {
    let world = World::new();
    let tmux = Tmux::new(&world);
    tmux.line("sandbox run -- vim -N -u NONE -i NONE -n notes.txt");
    tmux.wait_until("an empty buffer", |_| {
        tmux.visible().lines().nth(1).is_some_and(|l| l.starts_with('~'))
    });
    tmux.keys(&["i"]);
    tmux.wait_for("-- INSERT --");
    tmux.keys(&["first line", "Enter", "second line", "Escape"]);
    tmux.line(":wq");
    tmux.expect_status(0);
    let written = fs::read_to_string(world.project().join("notes.txt")).unwrap();
    assert_eq!(written, "first line\nsecond line\n");
}

/// Proves: PROC-3 pty
#[test]
fn less_scrolls_and_leaves() {
    let world = World::new();
    let numbers: String = (1..=500).map(|n| format!("line {n}\n")).collect();
    world.write_in_project("long.txt", numbers);
    let tmux = Tmux::new(&world);
    tmux.line("sandbox run -- less long.txt");
    tmux.wait_until("the first page", |_| tmux.visible().starts_with("line 1\n"));
    tmux.keys(&["G"]);
    tmux.wait_until("the last page", |_| tmux.visible().contains("line 500\n"));
    tmux.keys(&["q"]);
    tmux.expect_status(0);
}

/// The pager is outside and reads keys from the same terminal.
///
/// Proves: PROC-3 pty
#[test]
fn a_pager_outside_keeps_the_keys() {
    let world = World::new();
    let tmux = Tmux::new(&world);
    tmux.line("sandbox run -- seq -f 'line %g' 500 | less");
    tmux.wait_until("the first page", |_| tmux.visible().starts_with("line 1\n"));
    tmux.keys(&["G"]);
    tmux.wait_until("the last page", |_| tmux.visible().contains("line 500\n"));
    tmux.keys(&["q"]);
    tmux.expect_status(0);
}

/// Proves: PROC-3 job-control
#[test]
fn a_shell_inside_has_job_control() {
    let world = World::new();
    let tmux = Tmux::new(&world);
    tmux.line("sandbox run -- env PS1='inside>' bash --norc --noprofile -i");
    tmux.wait_until("its prompt", |screen| screen.trim_end().ends_with("inside>"));
    tmux.line("bash -c 'trap \"echo awake\" CONT; echo asleep; while :; do sleep 0.05; done'");
    tmux.wait_for_line("asleep");
    tmux.keys(&["C-z"]);
    tmux.wait_for("Stopped");
    tmux.line("jobs; echo $(jobs | wc -l) job");
    tmux.wait_for_line("1 job");
    tmux.line("fg");
    tmux.wait_for_line("awake");
    tmux.keys(&["C-c"]);
    tmux.wait_until("its prompt", |screen| screen.trim_end().ends_with("inside>"));
    tmux.line("echo status $?");
    tmux.wait_for_line("status 130");
    tmux.line("exit 4");
    tmux.expect_status(4);
}

/// Proves: PROC-3 job-control
#[test]
fn ctrl_c_ends_the_command_and_nothing_more() {
    let world = World::new();
    let tmux = Tmux::new(&world);
    tmux.line("sandbox run -- sh -c 'echo started; exec sleep 1000'");
    tmux.wait_for_line("started");
    tmux.keys(&["C-c"]);
    tmux.expect_status(130);
}

/// A loop ends at Ctrl-C, typed at a prompt and in a script, as it does without a sandbox.
///
/// Proves: PROC-3 job-control, LIFE-3 exit-code
#[test]
fn ctrl_c_ends_a_loop_around_the_run() {
    let body = "for i in 1 2 3; do echo round $i; sandbox run -- sh -c 'echo started; exec sleep 1000'; done";
    let world = World::new();
    world.write_in_project("loop.sh", format!("{body}\necho after\n"));
    for line in [body, "bash loop.sh"] {
        let tmux = Tmux::new(&world);
        tmux.line(line);
        tmux.wait_for_line("started");
        tmux.keys(&["C-c"]);
        tmux.expect_status(130);
        let screen = tmux.screen();
        let is_there = |wanted: &str| screen.lines().any(|line| line.trim() == wanted);
        assert!(is_there("round 1") && !is_there("round 2") && !is_there("after"), "{screen}");
        assert!(screen.lines().any(|line| line.starts_with(PROMPT)), "{screen}");
        let behind = format!("^C{PROMPT}");
        assert!(!screen.contains(&behind), "the prompt is on the line of the key:\n{screen}");
    }
}

/// Proves: PROC-3 job-control
#[test]
fn ctrl_z_stops_the_whole_run_and_fg_goes_on() {
    let world = World::new();
    let tmux = Tmux::new(&world);
    let script = "trap \"echo going on\" CONT; echo started; read answer; echo answered $answer";
    tmux.line(&format!("sandbox run -- bash -c '{script}'"));
    tmux.wait_for_line("started");
    tmux.keys(&["C-z"]);
    tmux.wait_for("Stopped");
    tmux.line("jobs | wc -l | sed 's/$/ stopped/'");
    tmux.wait_for_line("1 stopped");
    tmux.line("fg");
    tmux.wait_for_line("going on");
    tmux.line("yes");
    tmux.wait_for_line("answered yes");
    tmux.expect_status(0);
}

/// Proves: PROC-3 job-control
#[test]
fn a_run_stopped_can_go_on_in_the_background_and_come_back() {
    let world = World::new();
    let tmux = Tmux::new(&world);
    let script = "echo started; while ! test -e go; do sleep 0.1; done; echo finished";
    tmux.line(&format!("sandbox run -- bash -c '{script}'"));
    tmux.wait_for_line("started");
    tmux.keys(&["C-z"]);
    tmux.wait_for("Stopped");
    tmux.line("bg; touch go; wait; echo waited $?");
    tmux.wait_for_line("finished");
    tmux.wait_for_line("waited 0");
}

/// Proves: PROC-3 job-control
#[test]
fn the_window_size_goes_in_at_the_start_and_when_it_changes() {
    let world = World::new();
    let tmux = Tmux::new(&world);
    let script = "trap \"stty size\" WINCH; stty size; echo started; while :; do sleep 0.05; done";
    tmux.line(&format!("sandbox run -- bash -c '{script}'"));
    tmux.wait_for_line("started");
    tmux.wait_for_line("30 100");
    tmux.resize(70, 20);
    tmux.wait_for_line("20 70");
    tmux.keys(&["C-c"]);
    tmux.expect_status(130);
}

/// Proves: PROC-3 pty
#[test]
fn the_terminal_is_given_back_as_it_was() {
    let limit =
        format!("sandbox run --timeout {} -- sh -c 'stty raw -echo; exec sleep 1000'", soon());
    for (name, command) in [
        ("end", "sandbox run -- sh -c 'stty raw -echo; exit 0'"),
        ("death", "sandbox run -- sh -c 'stty raw -echo; kill -9 $$'"),
        ("limit", limit.as_str()),
        ("refusal", "sandbox run -- /no/such/command"),
    ] {
        let world = World::new();
        let tmux = Tmux::new(&world);
        tmux.line(&format!("stty -a >before; {command}; stty -a >after; echo compared"));
        tmux.wait_for_line("compared");
        let read = |file: &str| fs::read_to_string(world.project().join(file)).unwrap();
        assert_eq!(read("before"), read("after"), "{name}");
    }
}

/// Proves: PROC-3 pty, PROC-3 fatal
#[test]
fn the_terminal_is_given_back_when_the_supervisor_is_told_to_end() {
    let world = World::new();
    let tmux = Tmux::new(&world);
    world.write_in_project("start.sh", "echo $$ >pid; exec sandbox run -- sh inside.sh\n");
    world.write_in_project("inside.sh", "stty raw -echo; echo started; exec sleep 1000\n");
    tmux.line("stty -a >before; sh start.sh; stty -a >after; echo compared");
    tmux.wait_for_line("started");
    let supervisor = fs::read_to_string(world.project().join("pid")).unwrap();
    world.bare("kill").args(["-TERM", supervisor.trim()]).run().assert_code(0);
    tmux.wait_for_line("compared");
    let read = |file: &str| fs::read_to_string(world.project().join(file)).unwrap();
    assert_eq!(read("before"), read("after"));
}

/// Proves: PROC-3 pty
#[test]
fn script_records_a_run() {
    let world = World::new();
    let tmux = Tmux::new(&world);
    tmux.line("script -qec 'sandbox run -- sh -c \"tty; exit 6\"' typescript; echo ended $?");
    tmux.wait_for_line("ended 6");
    let recorded = fs::read_to_string(world.project().join("typescript")).unwrap();
    assert!(recorded.contains("/dev/pts/0\r\n"), "{recorded}");
}

/// Proves: PROC-3 pipes-exact
#[test]
fn an_output_that_is_a_file_stays_exact_though_the_input_is_a_terminal() {
    let world = World::new();
    let tmux = Tmux::new(&world);
    tmux.line("sandbox run -- printf 'a\\nb\\n' >out; echo ended $?");
    tmux.wait_for_line("ended 0");
    assert_eq!(fs::read(world.project().join("out")).unwrap(), b"a\nb\n");
}

/// A run in the background leaves the terminal to the shell.
///
/// Proves: PROC-3 job-control
#[test]
fn a_run_in_the_background_takes_no_keys() {
    let world = World::new();
    let tmux = Tmux::new(&world);
    tmux.line("sandbox run -- sh -c 'echo started; while ! test -e go; do sleep 0.05; done; echo finished' &");
    tmux.wait_for(&format!("{PROMPT}started"));
    tmux.line("echo typed $((1 + 1))");
    tmux.wait_for_line("typed 2");
    tmux.line("touch go; wait");
    tmux.wait_for_line("finished");
    tmux.expect_status(0);
}

/// Keys go to the whole pipeline there, and lines to whoever reads them.
///
/// Proves: PROC-3 job-control, PROC-3 pty
#[test]
fn a_run_that_writes_into_a_pipe_still_reads_the_terminal() {
    let world = World::new();
    let tmux = Tmux::new(&world);
    tmux.line("sandbox run -- sh -c 'echo started; exec sed s/^/got:/' | cat; echo ${PIPESTATUS[0]} first");
    tmux.wait_for_line("started");
    tmux.line("a line");
    tmux.keys(&["C-d"]);
    tmux.wait_for_line("got:a line");
    tmux.wait_for_line("0 first");
    tmux.line("sandbox run -- sh -c 'echo again; exec sleep 1000' | cat");
    tmux.wait_for_line("again");
    tmux.keys(&["C-c"]);
    tmux.wait_for_prompt();
    tmux.line("echo ${PIPESTATUS[0]} second");
    tmux.wait_for_line("130 second");
}

/// Without a pty the keys that mean signals reach the supervisor, which passes them on.
///
/// Proves: PROC-3 job-control, PROC-3 forwarded
#[test]
fn a_run_that_reads_a_pipe_obeys_the_keys_all_the_same() {
    let world = World::new();
    let tmux = Tmux::new(&world);
    let script = "trap \"echo awake\" CONT; echo started; while :; do sleep 0.05; done";
    tmux.line(&format!("true | sandbox run -- bash -c '{script}'"));
    tmux.wait_for_line("started");
    tmux.keys(&["C-z"]);
    tmux.wait_for("Stopped");
    tmux.line("fg");
    tmux.wait_for_line("awake");
    tmux.keys(&["C-c"]);
    tmux.expect_status(130);
}

/// Where nobody could continue it, Ctrl-Z is ignored, as the kernel does for any orphaned group.
///
/// Proves: PROC-3 job-control
#[test]
fn ctrl_z_does_not_strand_a_run_without_a_shell() {
    let world = World::new();
    let tmux = Tmux::new(&world);
    let script =
        "trap \"echo awake\" CONT; echo started; read answer; echo answered $answer; read end";
    tmux.line(&format!("exec sandbox run -- bash -c '{script}'"));
    tmux.wait_for_line("started");
    tmux.keys(&["C-z"]);
    tmux.wait_for_line("^Zawake");
    tmux.line("yes");
    tmux.wait_for_line("answered yes");
    // It ends here, and its window with it.
    tmux.keys(&["Enter"]);
}

/// With another standard input the caller's terminal only shows: through the descriptor that shows it
/// nothing that is typed can be read.
///
/// Proves: PROC-3 pty
#[test]
fn what_is_typed_at_a_terminal_that_only_shows_is_not_the_commands() {
    let world = World::new();
    let tmux = Tmux::new(&world);
    let steal = "echo ready; read -r -t 2 line </proc/$$/fd/1; echo \"$line\" >got; echo over";
    world.write_in_project("steal", steal);
    tmux.line("bash ./steal </dev/null");
    tmux.wait_for_line("ready");
    tmux.line("typed bare");
    tmux.wait_for_line("over");
    let got = || fs::read_to_string(world.project().join("got")).unwrap();
    assert_eq!(got(), "typed bare\n", "without a sandbox it can be read");

    tmux.line("clear; sandbox run -- bash ./steal </dev/null; echo ended $?");
    tmux.wait_for_line("ready");
    tmux.line("typed secretly");
    tmux.wait_for_line("ended 0");
    assert_eq!(got(), "\n");
}

/// Ctrl-C until it is heeded. On a busy machine two may arrive at once and count as one.
#[track_caller]
fn insist_on_the_end(tmux: &Tmux<'_>) {
    tmux.insist(|tmux| tmux.keys(&["C-c"]), "ended 137");
}

/// Proves: PROC-3 fatal, PROC-3 job-control
#[test]
fn a_second_ctrl_c_ends_a_command_that_ignores_the_first() {
    let world = World::new();
    let tmux = Tmux::new(&world);
    let script = "trap \"echo heard $((40 + 2))\" INT; echo begun; while :; do sleep 0.05; done";
    tmux.line(&format!("sandbox run -- bash -c '{script}' </dev/null; echo ended $?"));
    tmux.wait_for_line("begun");
    tmux.keys(&["C-c"]);
    tmux.wait_for("heard 42");
    insist_on_the_end(&tmux);
}

/// In a terminal of its own too, where Ctrl-C is the command's key.
///
/// Proves: PROC-3 fatal
#[test]
fn two_ctrl_c_in_a_row_end_a_command_that_ignores_them() {
    let world = World::new();
    let tmux = Tmux::new(&world);
    tmux.line(
        "sandbox run -- sh -c 'trap \"\" INT; echo started; sleep 1000; sleep 1000'; echo ended $?",
    );
    tmux.wait_for_line("started");
    insist_on_the_end(&tmux);
}

/// A shell inside keeps its keys: its jobs are ended by Ctrl-C one by one, and it goes on.
///
/// Proves: PROC-3 job-control
#[test]
fn two_ctrl_c_in_a_row_leave_a_shell_alone() {
    let world = World::new();
    let tmux = Tmux::new(&world);
    tmux.line("sandbox run -- env PS1='inside>' bash --norc --noprofile -i");
    tmux.wait_until("its prompt", |screen| screen.trim_end().ends_with("inside>"));
    // A key that comes before the job is in the foreground is bash's, which ignores it, with and without a sandbox.
    tmux.line("sh -c 'echo begun; exec sleep 1000' || sleep 1000; echo over");
    tmux.wait_for_line("begun");
    tmux.keys(&["C-c"]);
    tmux.keys(&["C-c"]);
    // What is typed while bash comes back to its prompt is lost, with and without a sandbox.
    tmux.insist(|tmux| tmux.line("echo still $((40 + 2))"), "still 42");
    tmux.line("exit 4");
    tmux.expect_status(4);
}
