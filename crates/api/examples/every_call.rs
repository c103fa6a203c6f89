//! Every call once, and what it gives. The tests run it; as an example it shows how little each takes.

use palisade::{
    Apply, Ask, ChangeKind, CheckpointReason, Error, ErrorKind, Exit, FileType, IfExists, Sandbox,
    State, Stream, Transaction, Write,
};
use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, Instant};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let sandbox = Sandbox::create()
        .project(std::env::current_dir()?)
        .name("every-call")
        .transaction(Transaction::Overlay)
        .env("GREETING", "hello")
        // An option of the program itself, if it were in its own environment.
        .env("SANDBOX_LEVEL", "none of ours")
        .time_to_live(Duration::from_secs(600))
        .ask(Ask::Never)
        .start()?;
    about(&sandbox)?;
    commands(&sandbox)?;
    streams(&sandbox)?;
    files(&sandbox)?;
    changes(&sandbox)?;
    errors(&sandbox)?;
    forks(&sandbox)?;
    ends(sandbox)
}

/// Says what is wrong.
fn expect(what: &str, is_so: bool) -> Outcome {
    if is_so { Ok(()) } else { Err(format!("not so: {what}").into()) }
}

fn about(sandbox: &Sandbox) -> Outcome {
    let info = sandbox.info()?;
    expect("it runs", info.is_running && info.state == State::Running)?;
    expect("its name is known", info.name.as_deref() == Some("every-call"))?;
    expect("changes wait", info.has_transaction)?;
    let listed = Sandbox::list()?;
    expect("it is listed", listed.iter().any(|one| one.id == sandbox.id()))?;
    let attached = Sandbox::attach("every-call")?;
    expect("it is found", attached.id() == sandbox.id())?;
    drop(attached);
    expect("it outlives who attached to it", sandbox.info()?.is_running)?;
    sandbox.extend(Duration::from_secs(1200))?;
    let expires = sandbox.info()?.status.and_then(|status| status.expires_in);
    expect("it has more time", expires.is_some_and(|time| time > Duration::from_secs(601)))
}

fn commands(sandbox: &Sandbox) -> Outcome {
    let line = "echo \"$GREETING $MORE\"; pwd >&2; cat; exit 3";
    let output = sandbox.command(line).env("MORE", "there").cwd("/").stdin("typed").run()?;
    expect("both outputs are apart", output.stdout == b"hello there\ntyped")?;
    expect("it ran where it was told to", output.stderr == b"/\n")?;
    expect("its exit code is its own", output.exit == Exit::Code(3) && !output.success())?;
    let told = sandbox.command("echo \"$SANDBOX_LEVEL\"").run()?;
    expect("a variable is no setting", told.stdout == b"none of ours\n")?;
    let failed = output.check();
    expect("a failed command can be an error", matches!(failed, Err(Error::CommandFailed(_))))?;

    let output = sandbox.exec(["printf", "%s|", "a b", "$HOME"]).run()?.check()?;
    expect("no shell reads the words of a program", output.stdout == b"a b|$HOME|")?;
    expect("it is part of a transaction", output.transaction.is_some())?;

    let output = sandbox.command("head -c 3000000 /dev/zero").max_output(10).run()?;
    let (kept, all) = (output.stdout.len(), output.stdout_bytes);
    expect("what is not kept is counted", (kept, all) == (10, 3_000_000))?;

    let output = sandbox.command("kill -9 $$").run()?;
    expect("a signal is told", output.exit == Exit::Signal(9) && output.exit_code() == 137)?;

    let output = sandbox.command("exec sleep 1000").timeout(Duration::from_millis(200)).run()?;
    expect("its time is over", output.timed_out && output.exit == Exit::Signal(15))?;

    // The sandbox can be measured a moment after its start.
    let deadline = Instant::now() + Duration::from_secs(60);
    let work = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    loop {
        let usage = sandbox.command(work).run()?.usage;
        if usage.is_some_and(|usage| usage.cpu > Duration::ZERO && usage.peak_memory_bytes > 0) {
            break;
        }
        expect("usage is measured", Instant::now() < deadline)?;
    }
    expect("the sandbox itself is measured", sandbox.usage().is_some())
}

fn streams(sandbox: &Sandbox) -> Outcome {
    let line = "echo ready; while read word; do echo \"got $word\"; echo warned >&2; done";
    let mut running = sandbox.command(line).keep_stdin_open().spawn()?;
    expect("it has a number", running.number() > 0)?;
    let first = running.next_chunk()?.ok_or("it wrote nothing")?;
    expect(
        "it is heard while it runs",
        first.stream == Stream::Stdout && first.bytes == b"ready\n",
    )?;
    running.write_stdin(b"one\n")?;
    let mut heard = String::new();
    while !(heard.contains("got one") && heard.contains("warned")) {
        heard.push_str(&running.next_chunk()?.ok_or("it ended")?.text());
    }
    running.write_stdin(b"two\n")?;
    running.close_stdin();
    let mut rest = String::new();
    running.reader(Stream::Stdout).read_to_string(&mut rest)?;
    expect("one output can be read by itself", rest == "got two\n")?;
    let output = running.wait()?;
    expect("the result has all of it", output.stdout == b"ready\ngot one\ngot two\n")?;
    expect("the other output is kept, too", output.stderr == b"warned\nwarned\n")?;

    let mut running = sandbox.exec(["sleep", "1000"]).spawn()?;
    running.signal(2)?;
    expect("a signal reaches it", running.wait()?.exit == Exit::Signal(2))?;
    let mut running = sandbox.exec(["sleep", "1000"]).spawn()?;
    running.kill()?;
    expect("it can be killed", running.wait()?.exit == Exit::Signal(9))?;
    // One that nobody waits for any more is hung up.
    drop(sandbox.exec(["sleep", "1000"]).spawn()?);
    let deadline = Instant::now() + Duration::from_secs(60);
    while sandbox.info()?.status.is_none_or(|status| status.commands > 0) {
        expect("a command ends with its value", Instant::now() < deadline)?;
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn files(sandbox: &Sandbox) -> Outcome {
    let files = sandbox.files();
    files.write("notes/one", "first\n")?;
    expect("commands see it", sandbox.exec(["cat", "notes/one"]).run()?.stdout == b"first\n")?;
    let append = Write { if_exists: IfExists::Append, ..Write::default() };
    files.write_as("notes/one", "second\n", &append)?;
    expect("it is read", files.read_text("notes/one")? == "first\nsecond\n")?;
    let refuse = Write { if_exists: IfExists::Refuse, ..Write::default() };
    let refused = files.write_as("notes/one", "", &refuse);
    expect("it is not replaced by mistake", matches!(refused, Err(Error::File { .. })))?;
    let version = files.stat("notes/one")?;
    expect("it is a file", version.file_type == FileType::File && version.size == 13)?;
    sandbox.command("echo third >> notes/one").run()?.check()?;
    let old = Write { if_exists: IfExists::ReplaceVersion(version), ..Write::default() };
    expect("a changed file is not replaced", files.write_as("notes/one", "", &old).is_err())?;
    let too_large = files.read_up_to("notes/one", 5).map_err(|error| error.kind());
    expect("a limit holds", too_large == Err(ErrorKind::Resource))?;
    files.make_dir("notes/more/deep")?;
    files.rename("notes/one", "notes/more/two")?;
    let names: Vec<_> = files.list_to_depth("notes", 2)?.into_iter().map(|it| it.path).collect();
    expect("it is listed", names.iter().any(|name| name.ends_with("two")))?;
    expect("a directory alone has less", files.list("notes")?.len() == 1)?;
    files.write("notes/three", "3")?;
    expect(
        "nothing is replaced by a rename",
        files.rename("notes/three", "notes/more/two").is_err(),
    )?;
    files.replace("notes/three", "notes/more/two")?;
    files.remove("notes/more/deep")?;
    files.remove_all("notes")?;
    expect("it is gone", !files.exists("notes")?)
}

fn changes(sandbox: &Sandbox) -> Outcome {
    sandbox.files().write("kept", "1\n")?;
    let diff = sandbox.diff()?;
    let kinds: Vec<_> = diff.changes.iter().map(|it| (it.path.as_path(), it.kind)).collect();
    expect("a change is shown", kinds == [("kept".as_ref(), ChangeKind::Added)])?;
    let patch = String::from_utf8(sandbox.patch()?)?;
    expect("and its text", patch.contains("+1\n"))?;
    let first = sandbox.checkpoint(Some("first"))?;
    let output = sandbox.command("echo 2 > kept; echo 2 > more").report_changes().run()?;
    let reported = output.transaction.and_then(|transaction| transaction.changes);
    expect("a result has the changes", reported.is_some_and(|it| it.changes.len() == 2))?;
    let second = sandbox.checkpoint(None)?;
    expect("both are listed", sandbox.checkpoints()?.len() == 2)?;
    let shown = sandbox.checkpoint_for_review()?;
    expect("a state is kept for a question", shown.reason == CheckpointReason::ForReview)?;
    let between = sandbox.diff_between(first.number, second.number)?;
    expect("states are compared", between.changes.len() == 2)?;
    let patch = sandbox.patch_between(first.number, second.number)?;
    expect("and their text", String::from_utf8(patch)?.contains("-1\n+2\n"))?;
    let back = sandbox.rollback(first.number)?;
    expect("the state before is kept", back.kept_as > second.number)?;
    expect("a state is brought back", sandbox.files().read_text("kept")? == "1\n")?;
    let mut running = sandbox.exec(["sleep", "1000"]).spawn()?;
    let refused = sandbox.rollback(second.number);
    expect("no files change under a command", matches!(refused, Err(Error::Conflict { .. })))?;
    sandbox.rollback_killing(second.number)?;
    expect("unless it is killed", running.next_chunk()?.is_none())?;

    let held = sandbox.preview_apply(&Apply::all())?;
    expect("nothing stands in the way", held.refused.is_empty() && held.conflicts.is_empty())?;
    std::fs::write("more", "the host's\n")?;
    let refused = sandbox.apply(&Apply::all());
    expect(
        "a conflict is told",
        matches!(refused, Err(Error::Held(held)) if held.conflicts.len() == 1),
    )?;
    std::fs::remove_file("more")?;
    let applied = sandbox.apply(&Apply::checkpoint(first.number).only(["kept"]))?;
    expect("a checkpoint is applied", applied.applied == [Path::new("kept")])?;
    expect("as it was kept", std::fs::read_to_string("kept")? == "1\n")
}

fn forks(sandbox: &Sandbox) -> Outcome {
    let kept = sandbox.checkpoint(None)?;
    sandbox.files().write("later", "")?;
    let fork = sandbox.fork().at(kept.number).name("a-fork").ask(Ask::Never).start()?;
    expect("it begins with that state", !fork.files().exists("later")?)?;
    let greeting = fork.command("echo \"$GREETING\"").run()?;
    expect("it has the same variables", greeting.stdout == b"hello\n")?;
    expect("it is another one", fork.id() != sandbox.id() && fork.name() == Some("a-fork"))?;
    fork.files().write("of-the-fork", "")?;
    expect("neither sees the other", !sandbox.files().exists("of-the-fork")?)?;
    let id = fork.id().to_owned();
    drop(fork);
    let over = Sandbox::attach(&id)?;
    expect("it ended with its value", !over.info()?.is_running)?;
    expect("its changes wait", !over.diff()?.changes.is_empty())?;
    over.discard()?;
    over.remove()?;
    Ok(())
}

fn errors(sandbox: &Sandbox) -> Outcome {
    let missing = sandbox.exec(["no-such-program"]).run().map_err(|error| error.to_string());
    expect("what is not there is named", missing.is_err_and(|it| it.contains("no-such-program")))?;
    let missing = sandbox.exec(["no-such-program"]).run();
    let is_127 = matches!(missing, Err(Error::NotStarted { exit_code: 127, .. }));
    expect("as a shell says it", is_127)?;
    let nothing = sandbox.files().read("no-such-file").map_err(|error| error.kind());
    expect("a missing file is an error about the request", nothing == Err(ErrorKind::Validation))?;
    let forbidden = sandbox.files().write("/usr/of-mine", "").map_err(|error| error.kind());
    expect("the policy is obeyed", forbidden == Err(ErrorKind::Security))?;
    let taken = Sandbox::create().name("every-call").start();
    expect("a name is taken once", matches!(taken, Err(Error::NameTaken { .. })))?;
    let nobody = Sandbox::attach("nobody-has-this-name");
    expect("a missing sandbox is told", matches!(nobody, Err(Error::NotFound { .. })))?;
    let wrong = Sandbox::create().setting("no.such.key", 1).start().map_err(|error| error.kind());
    expect("a wrong setting is an error", wrong.err() == Some(ErrorKind::Validation))?;
    let strange = Sandbox::create().program("/nowhere/sandbox").start();
    expect("a missing program is told", matches!(strange, Err(Error::NoProgram { .. })))
}

fn ends(sandbox: Sandbox) -> Outcome {
    let id = sandbox.id().to_owned();
    let running = sandbox.exec(["sleep", "1000"]).spawn()?;
    sandbox.stop()?;
    let ended = running.wait();
    let is_told = matches!(&ended, Err(Error::Ended { .. }))
        || ended.as_ref().is_ok_and(|output| output.exit == Exit::Signal(15));
    expect("its commands end with it", is_told)?;
    let over = Sandbox::attach(&id)?;
    expect("it is over", over.info()?.state == State::Completed)?;
    let refused = over.exec(["true"]).run();
    expect("nothing runs any more", matches!(refused, Err(Error::Ended { .. })))?;
    over.remove()?;
    expect("nothing is left", matches!(Sandbox::attach(&id), Err(Error::NotFound { .. })))?;

    let id = Sandbox::create().start()?.keep()?;
    expect("one that is kept goes on", Sandbox::attach(&id)?.info()?.is_running)?;
    Sandbox::attach(&id)?.kill()?;
    expect("until it is killed", !Sandbox::attach(&id)?.info()?.is_running)?;
    Sandbox::attach(&id)?.remove()?;
    let kept = Sandbox::create().start_kept()?;
    let id = kept.id().to_owned();
    kept.stop_within(Duration::from_secs(1))?;
    Sandbox::attach(&id)?.remove()?;
    Ok(())
}
