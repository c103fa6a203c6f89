//! The three-way form of an attack: it works on the bare host, fails inside, and works again
//! inside once the layers that hold it are off. An attack that fails for a reason other than the
//! named layers proves nothing, so that is a failed test as well.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::invocation::{Invocation, Output};
use crate::layers;
use crate::proof::{self, Bare, Inside, Line, Off};
use crate::world::World;
use crate::{am_root, has_control_group};

/// Exit codes of a sandbox that failed, refused, or did not find the command: nothing was tried.
const NEVER_TRIED: [i32; 3] = [125, 126, 127];
/// The start-up self-check stops a run whose wall is down, so it is off whenever a wall is.
const SELF_CHECK: &str = "self-check";

type Act = Box<dyn Fn(&World)>;
type Company = Box<dyn Fn(&World, &AtomicBool) + Sync>;
type Commands = Box<dyn Fn(&World) -> Vec<String>>;
type Judge = Box<dyn Fn(&World, &Output) -> bool>;

/// One attack of the corpus.
///
/// ```no_run
/// # use palisade_testkit::Attack;
/// Attack::new("F01", "write through a link that leads out of the project")
///     .proves(&["FS-3 own-root"])
///     .held_by(&["mount-view", "landlock"])
///     .prepare(|world| { world.write("outside/target", "before"); })
///     .command(|world| vec![world.probe(), "write".into(), "../../outside/target".into()])
///     .succeeded(|world, _| std::fs::read(world.outside().join("target")).is_ok_and(|text| text != b"before"))
///     .check();
/// ```
pub struct Attack {
    id: &'static str,
    name: String,
    clauses: &'static [&'static str],
    layers: &'static [&'static str],
    without_group: Option<&'static [&'static str]>,
    only_in_group: Option<&'static str>,
    only_as_root: Option<&'static str>,
    only_as_user: Option<&'static str>,
    only_together: Option<&'static str>,
    by_design: Option<&'static str>,
    no_bare_run: Option<&'static str>,
    needs: Option<Need>,
    deadline: Option<Duration>,
    prepare: Act,
    flags: Commands,
    command: Commands,
    bare_command: Option<Commands>,
    surroundings: Commands,
    meanwhile: Option<Act>,
    company: Option<Company>,
    succeeded: Judge,
    contained: Judge,
}

/// Something a host may lack, and without which there is nothing to try.
struct Need {
    what: &'static str,
    is_there: bool,
}

impl std::fmt::Debug for Attack {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Attack").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Attack {
    /// An attack by its id in the corpus and what it tries.
    #[must_use]
    pub fn new(id: &'static str, name: impl Into<String>) -> Self {
        Self {
            id,
            name: name.into(),
            clauses: &[],
            layers: &[],
            without_group: None,
            only_in_group: None,
            only_as_root: None,
            only_as_user: None,
            only_together: None,
            by_design: None,
            no_bare_run: None,
            needs: None,
            deadline: None,
            prepare: Box::new(|_| ()),
            flags: Box::new(|_| Vec::new()),
            command: Box::new(|_| Vec::new()),
            bare_command: None,
            surroundings: Box::new(|_| Vec::new()),
            meanwhile: None,
            company: None,
            succeeded: Box::new(|_, _| false),
            contained: Box::new(|_, _| true),
        }
    }

    /// The requirement clauses whose wall this attack tests, as `ID clause`.
    #[must_use]
    pub fn proves(mut self, clauses: &'static [&'static str]) -> Self {
        self.clauses = clauses;
        self
    }

    /// The smallest set of layers whose absence lets the attack through. Those that do not stand
    /// for this caller or on this kernel ([`layers`]) are left out by themselves.
    #[must_use]
    pub fn held_by(mut self, layers: &'static [&'static str]) -> Self {
        self.layers = layers;
        self
    }

    /// Held by a control group where the caller can make one, as root can and an ordinary user seldom, and
    /// by these layers where not.
    #[must_use]
    pub fn held_by_group_or(mut self, layers: &'static [&'static str]) -> Self {
        self.without_group = Some(layers);
        self.held_by(&["cgroup"])
    }

    /// For what nothing but a control group holds: who can make none does not try it. Says what would
    /// become of it.
    #[must_use]
    pub fn only_in_group(mut self, reason: &'static str) -> Self {
        self.only_in_group = Some(reason);
        self.held_by(&["cgroup"])
    }

    /// For what no layer's absence lets through; says what holds it instead.
    #[must_use]
    pub fn by_design(mut self, what_holds: &'static str) -> Self {
        self.by_design = Some(what_holds);
        self
    }

    /// For what cannot be shown without a sandbox, and why.
    #[must_use]
    pub fn no_bare_run(mut self, reason: &'static str) -> Self {
        self.no_bare_run = Some(reason);
        self
    }

    /// For what can be tried only where the host has something.
    #[must_use]
    pub fn needs(mut self, what: &'static str, is_there: bool) -> Self {
        self.needs = Some(Need { what, is_there });
        self
    }

    /// How long one run may take, where the usual is too short.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// For layers that need each other, so that with only some of them off nothing can start.
    #[must_use]
    pub fn only_together(mut self, reason: &'static str) -> Self {
        self.only_together = Some(reason);
        self
    }

    /// For what an ordinary user cannot do even without a sandbox; the reason is printed.
    #[must_use]
    pub fn only_as_root(mut self, reason: &'static str) -> Self {
        self.only_as_root = Some(reason);
        self
    }

    /// For what root is not offered, or need not gain; the reason is printed.
    #[must_use]
    pub fn only_as_user(mut self, reason: &'static str) -> Self {
        self.only_as_user = Some(reason);
        self
    }

    /// What lies on the host before each of the runs.
    #[must_use]
    pub fn prepare(mut self, prepare: impl Fn(&World) + 'static) -> Self {
        self.prepare = Box::new(prepare);
        self
    }

    /// Flags of `sandbox run`.
    #[must_use]
    pub fn flags(mut self, flags: impl Fn(&World) -> Vec<String> + 'static) -> Self {
        self.flags = Box::new(flags);
        self
    }

    /// The attacking program and its arguments.
    #[must_use]
    pub fn command(mut self, command: impl Fn(&World) -> Vec<String> + 'static) -> Self {
        self.command = Box::new(command);
        self
    }

    /// Another command for the bare run, where the same one would harm this machine.
    #[must_use]
    pub fn bare_command(mut self, command: impl Fn(&World) -> Vec<String> + 'static) -> Self {
        self.bare_command = Some(Box::new(command));
        self
    }

    /// A program that makes the surroundings of every run, sandbox or not, and then runs what is
    /// appended to its arguments there.
    #[must_use]
    pub fn surroundings(mut self, program: impl Fn(&World) -> Vec<String> + 'static) -> Self {
        self.surroundings = Box::new(program);
        self
    }

    /// What happens on the host while the command runs: once it has printed `ready`, and before
    /// it is given a line to read.
    #[must_use]
    pub fn meanwhile(mut self, act: impl Fn(&World) + 'static) -> Self {
        self.meanwhile = Some(Box::new(act));
        self
    }

    /// Somebody on the host who is at work for as long as the command runs, sandbox or not, and leaves when
    /// that is over.
    #[must_use]
    pub fn company(mut self, act: impl Fn(&World, &AtomicBool) + Sync + 'static) -> Self {
        self.company = Some(Box::new(act));
        self
    }

    /// Whether harm was done: look at the host wherever the harm would be there.
    #[must_use]
    pub fn succeeded(mut self, judge: impl Fn(&World, &Output) -> bool + 'static) -> Self {
        self.succeeded = Box::new(judge);
        self
    }

    /// What else must be true of the run inside, such as the errno it met.
    #[must_use]
    pub fn contained(mut self, judge: impl Fn(&World, &Output) -> bool + 'static) -> Self {
        self.contained = Box::new(judge);
        self
    }

    /// Runs it every way and fails the test unless each came out as it must.
    #[track_caller]
    pub fn check(&self) {
        let mut line = self.line();
        if let Some(reason) = self.why_untried() {
            println!("{} ({}) is not tried: {reason}", self.id, self.name);
            return;
        }
        let layers = layers::standing(match self.without_group {
            Some(others) if !has_control_group() => others,
            _ => self.layers,
        });
        assert!(
            layers.is_empty() == self.by_design.is_some(),
            "{} ({}) names either the layers that hold it or what else does",
            self.id,
            self.name
        );
        if let Some(reason) = self.only_together {
            println!("{}: the layers come off together only: {reason}", self.id);
        }

        if self.no_bare_run.is_none() {
            line.bare = Bare::Fails;
            let (world, output) = self.run_bare();
            self.expect(&world, &output, Harm::Done, "without a sandbox");
            line.bare = Bare::Works;
        }

        line.inside = Inside::Unclear;
        let (world, output) = self.run_inside(None);
        self.expect_attempted(&output, "inside");
        if (self.succeeded)(&world, &output) {
            line.inside = Inside::LetThrough;
        }
        self.expect(&world, &output, Harm::Prevented, "inside");
        assert!(
            (self.contained)(&world, &output),
            "{} ({}): not contained in the way it should be\n{}",
            self.id,
            self.name,
            describe(&output)
        );
        line.inside = Inside::Held;
        if self.by_design.is_some() {
            line.off = Off::NoLayer;
            return;
        }

        line.off = Off::SmallerSetSuffices;
        for subset in strict_subsets(&layers) {
            let (world, output) = self.run_inside(Some(&subset));
            let way = format!("with only {subset:?} off");
            if self.only_together.is_none() && can_start(&subset) {
                self.expect_attempted(&output, &way);
            }
            self.expect(&world, &output, Harm::Prevented, &way);
        }

        line.off = Off::StillHeld;
        let (world, output) = self.run_inside(Some(&layers));
        self.expect(&world, &output, Harm::Done, &format!("inside with {layers:?} off"));
        line.off = Off::Works;
    }

    /// The attack as declared; how it came out is filled in while it is tried.
    fn line(&self) -> Line {
        let users = self.without_group.unwrap_or(self.layers);
        let users_try = self.only_as_root.or(self.only_in_group).is_none();
        Line {
            test: proof::test_name(),
            id: self.id,
            name: self.name.clone(),
            clauses: self.clauses,
            as_root: self.only_as_user.is_none().then(|| layers::as_root(self.layers)),
            as_user: users_try.then(|| layers::as_user(users)),
            one_caller: self.only_as_root.or(self.only_as_user).or(self.only_in_group),
            by_design: self.by_design,
            no_bare_run: self.no_bare_run,
            needs: self.needs.as_ref().map(|need| need.what),
            bare: if self.no_bare_run.is_some() { Bare::Impossible } else { Bare::NotTried },
            inside: Inside::NotTried,
            off: Off::NotTried,
        }
    }

    fn why_untried(&self) -> Option<String> {
        let missing = self.needs.as_ref().filter(|need| !need.is_there);
        match (self.only_as_root, self.only_as_user, missing) {
            (Some(reason), _, _) if !am_root() => Some(format!("as root only: {reason}")),
            (_, Some(reason), _) if am_root() => {
                Some(format!("as an ordinary user only: {reason}"))
            }
            (_, _, Some(need)) => Some(format!("this host has not {}", need.what)),
            _ => self
                .only_in_group
                .filter(|_| !has_control_group())
                .map(|reason| format!("only a control group holds it: {reason}")),
        }
    }

    fn run_bare(&self) -> (World, Output) {
        let world = World::new();
        (self.prepare)(&world);
        let command = self.bare_command.as_ref().unwrap_or(&self.command)(&world);
        let (program, arguments) = match command.split_first() {
            Some(split) => split,
            None => panic!("{} names no command", self.id),
        };
        let output = self.finish(&world, world.bare(program).args(arguments));
        (world, output)
    }

    fn run_inside(&self, layers_off: Option<&[&str]>) -> (World, Output) {
        let world = World::new();
        (self.prepare)(&world);
        let mut invocation = world.sandbox_run((self.flags)(&world), (self.command)(&world));
        if let Some(layers) = layers_off {
            let mut off = layers.to_vec();
            // Unless the check itself is what is tested.
            if !self.layers.contains(&SELF_CHECK) {
                off.push(SELF_CHECK);
            }
            invocation = invocation.layers_off(&off);
        }
        let output = self.finish(&world, invocation);
        (world, output)
    }

    fn finish(&self, world: &World, invocation: Invocation) -> Output {
        let mut invocation = invocation.started_by(&(self.surroundings)(world));
        if let Some(deadline) = self.deadline {
            invocation = invocation.deadline(deadline);
        }
        let Some(company) = &self.company else { return self.go_through(world, invocation) };
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| company(world, &over));
            let _over = Over(&over);
            self.go_through(world, invocation)
        })
    }

    fn go_through(&self, world: &World, invocation: Invocation) -> Output {
        let Some(meanwhile) = &self.meanwhile else { return invocation.run() };
        let mut running = invocation.keep_stdin_open().spawn();
        // With some layers off it may not even start, and then there is nothing to wait for.
        if running.prints("ready\n") {
            meanwhile(world);
            running.send(b"\n");
        }
        running.wait()
    }

    #[track_caller]
    fn expect(&self, world: &World, output: &Output, expected: Harm, way: &str) {
        let seen = if (self.succeeded)(world, output) { Harm::Done } else { Harm::Prevented };
        assert_eq!(seen, expected, "{} ({}) {way}\n{}", self.id, self.name, describe(output));
    }

    #[track_caller]
    fn expect_attempted(&self, output: &Output, way: &str) {
        assert!(
            !NEVER_TRIED.contains(&output.code()) || probe_spoke(output),
            "{} ({}) {way}: the sandbox did not start, so nothing was tried\n{}",
            self.id,
            self.name,
            describe(output)
        );
    }
}

/// A failed run must not leave its company at work.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Without the view the whole host's tree is there, and in it root's home, where the project lies, is
/// closed to any other id.
fn can_start(off: &[&str]) -> bool {
    !am_root() || !off.contains(&"mount-view") || off.contains(&"identity")
}

/// An attack on the sandbox itself may end it with one of its own codes; the probe's words tell.
fn probe_spoke(output: &Output) -> bool {
    let words = ["trying ", "done ", "refused "];
    output.out().lines().any(|line| words.iter().any(|word| line.starts_with(word)))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Harm {
    Done,
    Prevented,
}

/// Every subset but the empty one (that is the run inside) and the whole.
fn strict_subsets<'a>(layers: &[&'a str]) -> Vec<Vec<&'a str>> {
    let whole = (1_usize << layers.len()) - 1;
    (1..whole)
        .map(|chosen| {
            let picked = |index: &usize| chosen & (1 << index) != 0;
            (0..layers.len()).filter(picked).map(|index| layers[index]).collect()
        })
        .collect()
}

fn describe(output: &Output) -> String {
    format!(
        "command: {}\nexit: {}\nstdout: {}\nstderr: {}",
        output.shown,
        output.code(),
        output.out(),
        output.err()
    )
}

#[cfg(test)]
mod tests {
    use super::strict_subsets;

    #[test]
    fn one_layer_has_no_strict_subset() {
        assert!(strict_subsets(&["seccomp"]).is_empty());
    }

    #[test]
    fn three_layers_have_six_strict_subsets() {
        let subsets = strict_subsets(&["a", "b", "c"]);
        let expected: [&[&str]; 6] =
            [&["a"], &["b"], &["a", "b"], &["c"], &["a", "c"], &["b", "c"]];
        assert_eq!(subsets, expected);
    }
}
