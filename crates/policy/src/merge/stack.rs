//! Applies one layer on top of another: what it may change, and what is recorded about it.
//!
//! Every value that a document sets must pass [`Stack::admits`].

use super::layer::store_of;
use super::layer::{LayerKind, Merged, PolicyLayer, Provenance, Subject};
use super::permission::{self, By};
use super::tighten::{self, Direction, SyscallRule};
use super::untrusted;
use crate::decode::document::{Named, PolicyDocument};
use crate::diagnostic::{Diagnostic, Origin, Problem};
use crate::keys::{self, Key, Order};
use crate::model::rule::StoredRule;
use crate::nearest::nearest;
use crate::presets::{self, preset};
use crate::settings::{self, Setting, Settings, Value};
use palisade_gate::Effect;
use std::collections::BTreeMap;

/// The layers applied so far.
pub(crate) struct Stack<'a> {
    subject: &'a Subject,
    pub(crate) settings: Settings,
    provenance: BTreeMap<&'static str, Vec<Provenance>>,
    /// The locked values, as they were at the end of the organisation's layer.
    locks: BTreeMap<&'static str, Lock>,
    maximum: BTreeMap<&'static str, (Setting, LayerKind)>,
    pub(crate) problems: Vec<Diagnostic>,
    notes: Vec<Diagnostic>,
    refused: Vec<Diagnostic>,
    /// Whether the subject is a tool that no preset and no layer declares.
    says_nothing_of_tool: bool,
}

struct Lock {
    value: Option<Value>,
    origin: Origin,
}

impl<'a> Stack<'a> {
    pub(crate) fn new(subject: &'a Subject) -> Self {
        Stack {
            subject,
            settings: Settings::new(),
            provenance: BTreeMap::new(),
            locks: BTreeMap::new(),
            maximum: BTreeMap::new(),
            problems: Vec::new(),
            notes: Vec::new(),
            refused: Vec::new(),
            says_nothing_of_tool: false,
        }
    }

    pub(crate) fn built_in(&mut self) {
        let mut names = vec![presets::DEFAULT];
        if let Subject::Tool(tool) = self.subject {
            names.push(presets::TOOL);
            names.extend(presets::NAMED_TOOLS.iter().find(|name| *name == tool));
            self.says_nothing_of_tool = !presets::NAMED_TOOLS.contains(&tool.as_str());
        }
        for name in names {
            self.shipped(name);
        }
    }

    /// Applies a preset as part of the built-in layer.
    pub(crate) fn shipped(&mut self, name: &str) {
        let origin = Origin { file: "built-in".into(), line: 0, column: 0 };
        let named = Named { name: name.to_owned(), origin };
        self.preset(&named, LayerKind::BuiltIn, &mut Vec::new());
    }

    pub(crate) fn layer(&mut self, layer: &PolicyLayer) {
        let document = &layer.document;
        self.says_nothing_of_tool &= layer.kind != LayerKind::Declaration;
        for named in &document.presets {
            self.preset(named, layer.kind, &mut Vec::new());
        }
        if layer.kind != LayerKind::Organisation {
            let first_of = |settings: &Settings| settings.values().next().map(|s| s.origin.clone());
            let lock = document.locks.first().map(|lock| lock.origin.clone());
            self.wrong_layer(layer.kind, "locks", lock);
            self.wrong_layer(layer.kind, "maximum", first_of(&document.maximum));
        }
        if layer.kind.is_writable() {
            let tools = document.tools.values();
            let parts = std::iter::once(&document.settings).chain(tools);
            let approval = parts.filter_map(|part| part.get("approvals")).next();
            self.wrong_layer(layer.kind, "approvals", approval.map(|s| s.origin.clone()));
        }
        self.document(document, layer.kind);
    }

    /// A preset has the authority of the layer that names it. The layer's own values take precedence over it.
    fn preset(&mut self, named: &Named, kind: LayerKind, above: &mut Vec<String>) {
        let Some(preset) = preset(&named.name) else {
            let message = format!("there is no preset `{}`", named.name);
            let mut problem =
                Diagnostic::new(Problem::UnknownName, &named.origin, "preset", message);
            let names = presets::presets().iter().map(|preset| preset.name);
            problem.suggestion = nearest(&named.name, names).map(str::to_owned);
            self.problems.push(problem);
            return;
        };
        if above.contains(&named.name) {
            return;
        }
        above.push(named.name.clone());
        match preset.document() {
            Ok(document) => {
                for base in &document.presets {
                    self.preset(base, kind, above);
                }
                self.document(&document, kind);
            }
            Err(problems) => self.problems.extend(problems),
        }
    }

    fn document(&mut self, document: &PolicyDocument, kind: LayerKind) {
        self.apply(&document.settings, kind);
        if let Subject::Tool(name) = self.subject
            && let Some(part) = document.tools.get(name)
        {
            self.says_nothing_of_tool = false;
            self.apply(part, kind);
        }
        for (path, setting) in &document.maximum {
            self.apply_maximum(path, setting, kind);
        }
        self.refused.extend(document.refused.iter().cloned());
    }

    fn apply(&mut self, part: &Settings, kind: LayerKind) {
        self.apply_syscalls(part, kind);
        for (path, setting) in part {
            let Some(key) = keys::find(path).filter(|key| !keys::is_syscall_rule(key.path)) else {
                continue;
            };
            if *path == "approvals" && kind.is_writable() {
                continue; // Already reported.
            }
            if let Value::Rules(rules) = &setting.value {
                self.apply_rules(key, rules, setting, kind);
                continue;
            }
            let current = self.settings.get(path).map(|setting| &setting.value);
            let candidate = combine(key, current, &setting.value);
            let step = tighten::direction(key, current, Some(&candidate));
            let beyond_lock = self.locks.get(path).is_some_and(|lock| {
                let from_lock = tighten::direction(key, lock.value.as_ref(), Some(&candidate));
                loosens(from_lock)
            });
            if kind.is_untrusted()
                && step == Some(Direction::Tightens)
                && let Some(why) = untrusted::refusal(path, &candidate)
            {
                self.note_ignored(key, &setting.origin, kind, &why);
                continue;
            }
            if self.admits(key, &setting.origin, kind, &Step { step, beyond_lock }) {
                self.set(path, candidate, &setting.origin, kind);
            }
        }
    }

    /// Checks each rule separately: a layer that may only tighten can still deny.
    fn apply_rules(
        &mut self,
        key: &'static Key,
        rules: &[StoredRule],
        setting: &Setting,
        kind: LayerKind,
    ) {
        let is_locked = self.locks.contains_key(key.path);
        let mut admitted = Vec::new();
        for rule in rules {
            let origin =
                Origin { file: rule.file.as_str().into(), line: rule.line, column: rule.column };
            let allows = rule.effect == Effect::Allow;
            let step = if allows { Direction::Loosens } else { Direction::Tightens };
            let step = Step { step: Some(step), beyond_lock: is_locked && allows };
            if self.admits(key, &origin, kind, &step) {
                admitted.push(StoredRule { store: store_of(kind), ..rule.clone() });
            }
        }
        let candidate = match self.settings.get(key.path) {
            Some(_) if admitted.is_empty() => return,
            Some(current) => current.value.union(&Value::Rules(admitted)),
            None => Value::Rules(admitted),
        };
        self.set(key.path, candidate, &setting.origin, kind);
    }

    /// The list has a meaning only together with its mode, so the two are judged together.
    fn apply_syscalls(&mut self, part: &Settings, kind: LayerKind) {
        const MODE: &str = "syscalls.mode";
        const LIST: &str = "syscalls.syscalls";
        let Some(mode_setting) = part.get(MODE) else { return };
        let (Some(mode), Some(key)) = (settings::word(part, MODE), keys::find(MODE)) else {
            return;
        };
        let empty = Value::List(Vec::new());
        let current_mode = settings::word(&self.settings, MODE).unwrap_or(mode);
        let current = self.settings.get(LIST).map_or(&empty, |setting| &setting.value);
        let stated = part.get(LIST).map(|setting| &setting.value);
        let list = match stated {
            Some(stated) if mode == current_mode && mode == "BLACKLIST" => current.union(stated),
            Some(stated) => stated.clone(),
            None if mode == current_mode => current.clone(),
            None => empty.clone(),
        };
        let to = SyscallRule { mode, list: &list };
        let step = tighten::syscalls(SyscallRule { mode: current_mode, list: current }, to);
        let locked = self.locks.contains_key(MODE) || self.locks.contains_key(LIST);
        let lock_value = |path| self.locks.get(path).and_then(|lock| lock.value.as_ref());
        let beyond_lock = locked && {
            let locked_mode = match lock_value(MODE) {
                Some(Value::Word(mode)) => mode,
                _ => current_mode,
            };
            let locked_list = lock_value(LIST).unwrap_or(current);
            loosens(tighten::syscalls(SyscallRule { mode: locked_mode, list: locked_list }, to))
        };
        if self.admits(key, &mode_setting.origin, kind, &Step { step, beyond_lock }) {
            self.set(MODE, Value::Word(mode), &mode_setting.origin, kind);
            let origin = part.get(LIST).map_or(&mode_setting.origin, |setting| &setting.origin);
            self.set(LIST, list, origin, kind);
        }
    }

    /// Notes that an untrusted file set a value that would stall or break every run.
    fn note_ignored(&mut self, key: &Key, origin: &Origin, kind: LayerKind, why: &str) {
        let message = format!("`{}` ignored: the file is not trusted, and {why}", key.path);
        let fix = match kind {
            LayerKind::Writable(_) => {
                format!("read it, then run `sandbox policy trust {}`", origin.file)
            }
            _ => "read it, then run `sandbox policy trust`".to_owned(),
        };
        self.notes
            .push(Diagnostic::new(Problem::Untrusted, origin, key.path, message).suggest(fix));
    }

    /// Whether the layer may make this change; reports it if not.
    fn admits(&mut self, key: &Key, origin: &Origin, kind: LayerKind, step: &Step) -> bool {
        if kind.is_untrusted() && (step.beyond_lock || loosens(step.step)) {
            let (message, fix) = match kind {
                LayerKind::Writable(_) => (
                    format!(
                        "`{}` not applied: commands in a sandbox could have written this file, and it is not \
                         trusted; it can only tighten",
                        key.path
                    ),
                    format!(
                        "read it, then run `sandbox policy trust {}`, or move it out of the project",
                        origin.file
                    ),
                ),
                _ => (
                    format!(
                        "`{}` not applied: the project's file is not trusted and can only tighten",
                        key.path
                    ),
                    "read it, then run `sandbox policy trust`".to_owned(),
                ),
            };
            let note = Diagnostic::new(Problem::Untrusted, origin, key.path, message);
            self.notes.push(note.suggest(fix));
            return false;
        }
        if step.beyond_lock {
            let lock = self.locks.get(key.path).map(|lock| lock.origin.to_string());
            let message = format!(
                "`{}` is locked by the organisation ({}) and can only be tightened",
                key.path,
                lock.unwrap_or_default()
            );
            let problem = Diagnostic::new(Problem::Locked, origin, key.path, message);
            self.problems.push(
                problem.suggest("remove it here, or ask the organisation to change the lock"),
            );
            return false;
        }
        true
    }

    fn set(&mut self, path: &'static str, value: Value, origin: &Origin, kind: LayerKind) {
        self.set_by(path, value, origin, kind.name());
    }

    fn set_by(&mut self, path: &'static str, value: Value, origin: &Origin, layer: &'static str) {
        let source = Provenance { layer, file: String::from(&*origin.file), line: origin.line };
        let old = self.settings.get(path).map(|setting| &setting.value);
        let grew = old.is_some_and(|old| !old.is_empty() && old.is_subset(&value));
        let sources = self.provenance.entry(path).or_default();
        if !grew {
            sources.clear();
        }
        if old.is_none_or(|old| !grew || !value.is_subset(old)) {
            sources.push(source);
        }
        self.settings.insert(path, Setting { value, origin: origin.clone() });
    }

    pub(crate) fn lock(&mut self, locks: &[Named]) {
        for lock in locks {
            for key in keys::KEYS.iter().filter(|key| keys::is_within(key.path, &lock.name)) {
                let value = self.settings.get(key.path).map(|setting| setting.value.clone());
                self.locks.insert(key.path, Lock { value, origin: lock.origin.clone() });
            }
        }
    }

    /// The organisation sets the maximum. A preset named by another layer can only lower it.
    fn apply_maximum(&mut self, path: &'static str, setting: &Setting, kind: LayerKind) {
        let Some(key) = keys::find(path) else { return };
        let old = self.maximum.get(path).map(|(old, _)| &old.value);
        let lower = old.is_none() || !loosens(tighten::direction(key, old, Some(&setting.value)));
        let replaces = match kind {
            LayerKind::BuiltIn | LayerKind::Organisation => true,
            kind if kind.is_untrusted() => false,
            _ => lower,
        };
        if replaces {
            self.maximum.insert(path, (setting.clone(), kind));
        }
    }

    /// An unset limit gets its maximum; a limit above its maximum is an error (POL-6).
    pub(crate) fn hold_to_maximum(&mut self) {
        for (path, (maximum, kind)) in std::mem::take(&mut self.maximum) {
            let Some(key) = keys::find(path) else { continue };
            let Some(asked) = self.settings.get(path) else {
                // An unset allowance stays at zero.
                if key.order == Order::Limit {
                    self.set(path, maximum.value.clone(), &maximum.origin, kind);
                }
                continue;
            };
            let step = tighten::direction(key, Some(&maximum.value), Some(&asked.value));
            if step == Some(Direction::Loosens) {
                let most = maximum.value.show(key.kind);
                let message = format!(
                    "`{path}` is {}, which exceeds the maximum {most} ({})",
                    asked.value.show(key.kind),
                    maximum.origin
                );
                let problem = Diagnostic::new(Problem::AboveMaximum, &asked.origin, path, message);
                let fix = match maximum.value {
                    Value::Number(0) => "remove it".to_owned(),
                    _ => format!("use {most} or less"),
                };
                self.problems.push(problem.suggest(fix));
            }
        }
    }

    fn wrong_layer(&mut self, kind: LayerKind, key: &str, found: Option<Origin>) {
        let Some(origin) = found else { return };
        let (message, fix) = match (key, kind) {
            ("approvals", LayerKind::Writable(_)) => (
                "a file that commands in a sandbox could have written cannot approve anything"
                    .to_owned(),
                "remove `approvals`, or move the file out of the project",
            ),
            ("approvals", LayerKind::Declaration) => (
                "the declaration of a tool cannot approve anything".to_owned(),
                "remove `approvals`",
            ),
            ("approvals", _) => {
                ("a project cannot approve on its user's behalf".to_owned(), "remove `approvals`")
            }
            _ => {
                let message = format!(
                    "`{key}` in the {} layer; only the organisation's file can set it",
                    kind.name()
                );
                (message, "remove it, or move it to the organisation's file")
            }
        };
        let problem = if kind.is_untrusted() { Problem::Untrusted } else { Problem::WrongLayer };
        let complaint = Diagnostic::new(problem, &origin, key, message).suggest(fix);
        if problem == Problem::Untrusted {
            self.notes.push(complaint);
        } else {
            self.problems.push(complaint);
        }
    }

    /// Records the approvals that are implied by who set a value.
    pub(crate) fn record(&mut self, recorded: Vec<permission::Recorded>) {
        for permission::Recorded { approval, origin, by } in recorded {
            let old = self.settings.get("approvals").map(|setting| &setting.value);
            let new = Value::Approvals(vec![approval]);
            let all = old.map_or(new.clone(), |old| old.union(&new));
            let layer = match by {
                By::Organisation => LayerKind::Organisation.name(),
                By::WriterOf(key) => {
                    let sources = self.provenance.get(key).and_then(|sources| sources.last());
                    sources.map_or(LayerKind::CommandLine.name(), |source| source.layer)
                }
            };
            self.set_by("approvals", all, &origin, layer);
        }
    }

    /// The name may be the user's own tool, or mistyped.
    fn note_unknown_tool(&mut self) {
        let Subject::Tool(name) = self.subject else { return };
        if !self.says_nothing_of_tool {
            return;
        }
        let message =
            format!("no policy declares the tool `{name}`: it gets the preset `{}`", presets::TOOL);
        let origin = Origin { file: "tools".into(), line: 0, column: 0 };
        let note = Diagnostic::new(Problem::Questionable, &origin, "tools", message);
        self.notes.push(match nearest(name, presets::NAMED_TOOLS) {
            Some(known) => note.suggest(format!("did you mean `{known}`?")),
            None => note,
        });
    }

    pub(crate) fn finish(mut self) -> Result<Merged, Vec<Diagnostic>> {
        if !self.problems.is_empty() {
            return Err(self.problems);
        }
        self.note_unknown_tool();
        let policy = settings::to_policy(&self.settings).map_err(|incomplete| {
            let origin = Origin { file: "built-in".into(), line: 0, column: 0 };
            vec![Diagnostic::new(Problem::Syntax, &origin, "", incomplete.to_string())]
        })?;
        Ok(Merged {
            policy,
            provenance: self.provenance,
            notes: self.notes,
            settings: self.settings,
            refused: self.refused,
        })
    }
}

/// A change of one value, as [`Stack::admits`] judges it.
struct Step {
    step: Option<Direction>,
    beyond_lock: bool,
}

fn loosens(step: Option<Direction>) -> bool {
    matches!(step, Some(Direction::Loosens | Direction::Neutral))
}

fn combine(key: &Key, current: Option<&Value>, stated: &Value) -> Value {
    match (key.order, current) {
        (_, None) => stated.clone(),
        (Order::AllowList, Some(_)) if stated.is_empty() => stated.clone(),
        (Order::AllowList | Order::DenyList, Some(current)) => current.union(stated),
        (_, Some(current @ Value::Map(_))) => current.union(stated),
        (_, Some(_)) => stated.clone(),
    }
}
