//! A declaration as a file: one tool a file, in YAML or JSON, with the words of policies.

use super::built_in::{BUILT_INS, BuiltIn};
use super::input::{self, InputSchema, decode_pattern, known};
use super::pattern::{CommandPatterns, MAX_LENGTH, Pattern};
use super::template::{CommandTemplate, Part, Word};
use crate::contradictions;
use crate::decode::Decoder;
use crate::decode::document::{PolicyDocument, decode_document};
use crate::decode::parse::read_tree;
use crate::diagnostic::{Diagnostic, Problem};
use crate::model::Level;
use crate::nearest::nearest;
use crate::presets;
use crate::syntax::tree::{Entry, Format, Node, Position, Tree};
use serde_json::{Value, json};

const KEYS: [&str; 11] = [
    "version",
    "name",
    "description",
    "level",
    "command",
    "builtin",
    "stdin",
    "input",
    "limits",
    "patterns",
    "policy",
];
const PATTERN_KEYS: [&str; 3] = ["maxLength", "allowed", "blocked"];
/// What a declaration cannot say: it approves nothing, and sets no bounds for other layers.
const NOT_HERE: [&str; 4] = ["approvals", "locks", "maximum", "tools"];
/// Of what a tool may write, unless its declaration or a policy says otherwise: an answer has to fit into memory.
const OUTPUT: &str = "1m";
const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 4096;
const MAX_WORDS: usize = 1000;
/// Each takes memory and time when it is compiled.
const MAX_PATTERNS: usize = 64;

/// A tool: what it is called, takes and runs, and under which policy.
#[derive(Clone, Debug)]
pub struct ToolDeclaration {
    pub name: String,
    pub description: String,
    pub action: Action,
    pub input: InputSchema,
    pub patterns: CommandPatterns,
    /// Its own layer of policy. It holds no approvals.
    pub policy: PolicyDocument,
}

/// What a tool does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Command {
        template: CommandTemplate,
        /// The value that the command reads at standard input.
        stdin: Option<String>,
    },
    BuiltIn(BuiltIn),
}

/// Parses a declaration. `file` says which format it has, and is named in diagnostics.
pub fn parse_tool(text: &str, file: &str) -> Result<ToolDeclaration, Vec<Diagnostic>> {
    let node = read_tree(text, file, Format::of(file))?;
    let mut decoder = Decoder::new(file);
    let declaration = decode(&mut decoder, &node);
    let mut problems = decoder.problems;
    problems.sort_by_key(|problem| (problem.line, problem.column));
    match declaration {
        Some(declaration) if problems.is_empty() => Ok(declaration),
        _ => Err(problems),
    }
}

/// Reads only the name, which is all that is wanted of a declaration that nobody has trusted: compiling its patterns and decoding its
/// policy is work that its writer would choose.
pub fn declared_name(text: &str, file: &str) -> Result<String, Vec<Diagnostic>> {
    let node = read_tree(text, file, Format::of(file))?;
    let mut decoder = Decoder::new(file);
    decode_name(&mut decoder, &node).ok_or(decoder.problems)
}

impl ToolDeclaration {
    /// For people and programs, with the schema of its input.
    pub fn to_json(&self) -> Value {
        let mut shown = json!({
            "name": self.name,
            "description": self.description,
            "input": self.input.to_json(),
            "patterns": {
                "maxLength": self.patterns.max_length(),
                "allowed": self.patterns.allowed().collect::<Vec<_>>(),
                "blocked": self.patterns.blocked().collect::<Vec<_>>(),
            },
        });
        match &self.action {
            Action::Command { template, stdin } => {
                shown["command"] = template.to_json();
                if let Some(stdin) = stdin {
                    shown["stdin"] = json!(format!("{{{stdin}}}"));
                }
            }
            Action::BuiltIn(built_in) => shown["builtin"] = json!(built_in.name()),
        }
        shown
    }

    /// The level that it asks for, if it says so.
    pub fn level(&self) -> Option<Level> {
        let word = crate::settings::word(&self.policy.settings, "isolationLevel")?;
        serde_json::from_value(json!(word)).ok()
    }
}

fn decode(decoder: &mut Decoder, node: &Node) -> Option<ToolDeclaration> {
    known(decoder, node, "", &KEYS);
    if let Some(version) = node.get("version")
        && !matches!(version.tree, Tree::Integer(1))
    {
        decoder.wrong_type(version, "version", "1, the only version of this format");
    }
    let name = decode_name(decoder, node);
    if count_patterns(node) > MAX_PATTERNS {
        let message = format!(
            "`patterns` and `input` have more than {MAX_PATTERNS} regular expressions; join some of them with `|`"
        );
        decoder.complain(Problem::WrongType, node.at, "patterns", message, None);
        return None;
    }
    let description = decode_description(decoder, node);
    let action = decode_action(decoder, node);
    if let (Some(name), Some(action)) = (&name, &action) {
        refuse_preset_name(decoder, node, name, action);
    }
    let declared_input = node.get("input").map(|input| input::decode(decoder, input, "input"));
    let input = match &action {
        Some(Action::BuiltIn(built_in)) => {
            for key in ["input", "stdin"] {
                if let Some(entry) = node.get(key) {
                    let message = format!(
                        "`{key}`: the built-in tool {} says itself what it takes",
                        built_in.name()
                    );
                    decoder.complain(
                        Problem::Contradiction,
                        entry.at,
                        key,
                        message,
                        Some(format!("remove `{key}`")),
                    );
                }
            }
            built_in.input()
        }
        _ => declared_input.unwrap_or_default(),
    };
    if let Some(Action::Command { template, stdin }) = &action {
        check_places(decoder, node, template, stdin.as_deref(), &input);
    }
    let patterns = decode_patterns(decoder, node, action.as_ref());
    let policy = decode_policy(decoder, node);
    Some(ToolDeclaration { name: name?, description, action: action?, input, patterns, policy })
}

/// A word that models and clients take as the name of a tool.
fn decode_name(decoder: &mut Decoder, node: &Node) -> Option<String> {
    let is_name = |name: &str| {
        name.len() <= MAX_NAME
            && name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    match node.get("name") {
        Some(Node { tree: Tree::Text(name), .. }) if is_name(name) => Some(name.clone()),
        Some(other) => {
            decoder.wrong_type(
                other,
                "name",
                "up to 64 letters, digits, _ and -, beginning with a letter",
            );
            None
        }
        None => {
            missing(decoder, node, "name", "a tool needs a `name`");
            None
        }
    }
}

/// How many regular expressions a declaration has, counted before any is compiled.
fn count_patterns(node: &Node) -> usize {
    let in_list = |key| match node.get("patterns").and_then(|patterns| patterns.get(key)) {
        Some(Node { tree: Tree::List(items), .. }) => items.len(),
        _ => 0,
    };
    let of_value = |value: &Node| {
        let of_items = value.get("items").and_then(|items| items.get("pattern"));
        usize::from(value.get("pattern").is_some()) + usize::from(of_items.is_some())
    };
    let in_input = match node.get("input").and_then(|input| input.get("properties")) {
        Some(Node { tree: Tree::Map(entries), .. }) => {
            entries.iter().map(|entry| of_value(&entry.value)).sum()
        }
        _ => 0,
    };
    in_list("allowed") + in_list("blocked") + in_input
}

/// These names have presets, some with a lower level, which count before any approval is asked for. They are for what these tools do,
/// and a command of another kind must not choose its own level by its name.
fn refuse_preset_name(decoder: &mut Decoder, node: &Node, name: &str, action: &Action) {
    let is_same = matches!(action, Action::BuiltIn(built_in) if built_in.name() == name);
    if is_same || !presets::NAMED_TOOLS.contains(&name) {
        return;
    }
    let at = node.get("name").map_or(node.at, |name| name.at);
    let message = format!(
        "`name`: only the built-in tool {name} can have the name `{name}`, because the policy of {name} counts for it"
    );
    let fix = Some(format!("choose another name, or write `builtin: {name}`"));
    decoder.complain(Problem::Contradiction, at, "name", message, fix);
}

fn decode_description(decoder: &mut Decoder, node: &Node) -> String {
    match node.get("description") {
        Some(Node { tree: Tree::Text(text), .. })
            if !text.trim().is_empty() && text.len() <= MAX_DESCRIPTION =>
        {
            text.clone()
        }
        Some(other) => {
            decoder.wrong_type(other, "description", "a text of at most 4096 bytes");
            String::new()
        }
        None => {
            missing(
                decoder,
                node,
                "description",
                "a tool needs a `description`: what it does, for those who choose it",
            );
            String::new()
        }
    }
}

fn missing(decoder: &mut Decoder, node: &Node, key: &str, message: &str) {
    decoder.complain(Problem::WrongType, node.at, key, message.to_owned(), None);
}

fn decode_action(decoder: &mut Decoder, node: &Node) -> Option<Action> {
    match (node.get("command"), node.get("builtin")) {
        (Some(command), None) => {
            let template = decode_command(decoder, command)?;
            let stdin = match node.get("stdin") {
                None => None,
                Some(stdin) => match &stdin.tree {
                    Tree::Text(text) if matches!(Word::parse(text), Word::Place(_)) => {
                        Word::parse(text).name().map(str::to_owned)
                    }
                    _ => {
                        decoder.wrong_type(stdin, "stdin", "a place, such as \"{content}\"");
                        None
                    }
                },
            };
            Some(Action::Command { template, stdin })
        }
        (None, Some(built_in)) => {
            let known = BUILT_INS.map(|(name, _)| name);
            let found = match &built_in.tree {
                Tree::Text(name) => BuiltIn::of(name),
                _ => None,
            };
            if found.is_none() {
                let typed = match &built_in.tree {
                    Tree::Text(name) => name.as_str(),
                    _ => "",
                };
                let message = format!("`builtin` must be one of {}", known.join(", "));
                let nearest = nearest(typed, known).map(str::to_owned);
                decoder.complain(Problem::UnknownName, built_in.at, "builtin", message, nearest);
            }
            found.map(Action::BuiltIn)
        }
        (Some(command), Some(_)) => {
            let message = "`command` and `builtin` do not go together".to_owned();
            let fix = Some("keep one of the two".to_owned());
            decoder.complain(Problem::Contradiction, command.at, "command", message, fix);
            None
        }
        (None, None) => {
            missing(decoder, node, "command", "a tool needs a `command` or a `builtin`");
            None
        }
    }
}

fn decode_command(decoder: &mut Decoder, node: &Node) -> Option<CommandTemplate> {
    const EXPECTED: &str = "a list of words, such as [wc, -l, --, \"{path}\"]";
    let Tree::List(items) = &node.tree else {
        decoder.wrong_type(node, "command", EXPECTED);
        return None;
    };
    let count = |item: &Node| match &item.tree {
        Tree::List(words) => words.len(),
        _ => 1,
    };
    if items.iter().map(count).sum::<usize>() > MAX_WORDS {
        decoder.wrong_type(node, "command", "a list of at most 1000 words");
        return None;
    }
    let mut parts = Vec::new();
    for item in items {
        match &item.tree {
            Tree::List(words) => {
                let words = words.iter().filter_map(|word| decode_word(decoder, word));
                parts.push(Part::Group(words.collect()));
            }
            _ => parts.extend(decode_word(decoder, item).map(Part::Word)),
        }
    }
    let template = CommandTemplate { parts };
    if let Some(message) = template.complaint() {
        decoder.complain(Problem::WrongType, node.at, "command", message, None);
    }
    Some(template)
}

fn decode_word(decoder: &mut Decoder, node: &Node) -> Option<Word> {
    match &node.tree {
        Tree::Text(text) if !text.contains('\0') => Some(Word::parse(text)),
        // `[head, -n, 5]`.
        Tree::Integer(number) => Some(Word::Literal(number.to_string())),
        Tree::Map(_) => {
            let message = "`command`: a place is written in quotes, such as \"{path}\": without them, YAML reads a mapping";
            decoder.complain(Problem::WrongType, node.at, "command", message.to_owned(), None);
            None
        }
        _ => {
            decoder.wrong_type(node, "command", "a list of words");
            None
        }
    }
}

/// Every place has a value in the input, and every value has a place.
fn check_places(
    decoder: &mut Decoder,
    node: &Node,
    template: &CommandTemplate,
    stdin: Option<&str>,
    input: &InputSchema,
) {
    let at = node.get("command").map_or(node.at, |command| command.at);
    let names: Vec<&str> = template.words().filter_map(Word::name).chain(stdin).collect();
    for name in names.iter().filter(|name| !input.has(name)) {
        let message = format!(
            "`command` has a place for `{name}`, which is not among `input.properties`; `{{{{{name}}}}}` is the text {{{name}}}"
        );
        let nearest = nearest(name, input.names()).map(str::to_owned);
        decoder.complain(Problem::UnknownName, at, "command", message, nearest);
    }
    for name in input.names().filter(|name| !names.contains(name)) {
        let message = format!("`input.properties.{name}` has no place in `command`");
        decoder.complain(Problem::UnknownName, at, "command", message, None);
    }
    for (option, name) in template.places_of_options() {
        if input.has(name) && !input.always_has(name) {
            let message = format!(
                "`{{{name}}}` stands behind `{option}` and may have no value, so that `{option}` would take the next argument; put both in a \
                 list ([\"{option}\", \"{{{name}}}\"]), give `{name}` a value in each call (required, default, minItems), or, if `{option}` takes \
                 no value, write -- between them"
            );
            decoder.complain(Problem::WrongType, at, "command", message, None);
        }
    }
    let places: Vec<String> = input.names().map(|name| format!("{{{name}}}")).collect();
    for word in template.words() {
        let Word::Literal(text) = word else { continue };
        let within = places.iter().find(|place| text.contains(place.as_str()));
        if let Some(place) = within.filter(|place| *place != text) {
            let message = format!(
                "`{text}` is no place: a place is a whole argument (\"{place}\") or the value of a long option (\"--option={place}\")"
            );
            decoder.complain(Problem::WrongType, at, "command", message, None);
        }
    }
    if let Some(name) = stdin.filter(|name| input.has(name) && !input.is_text(name)) {
        let message = format!("`stdin`: `{name}` is not of type string");
        decoder.complain(Problem::WrongType, at, "stdin", message, None);
    }
}

fn decode_patterns(decoder: &mut Decoder, node: &Node, action: Option<&Action>) -> CommandPatterns {
    let mut patterns = CommandPatterns::default();
    let Some(section) = node.get("patterns") else { return patterns };
    if let Some(Action::BuiltIn(built_in)) = action
        && built_in.command().is_none()
    {
        let message = format!(
            "`patterns` are about command lines; the built-in tool {} has none",
            built_in.name()
        );
        decoder.complain(Problem::Contradiction, section.at, "patterns", message, None);
    }
    for entry in known(decoder, section, "patterns", &PATTERN_KEYS) {
        let shown = format!("patterns.{}", entry.key);
        match (entry.key.as_str(), &entry.value.tree) {
            ("maxLength", Tree::Integer(number)) => match usize::try_from(*number) {
                Ok(length) if length > 0 && length <= MAX_LENGTH => patterns.max_length = length,
                _ => decoder.wrong_type(&entry.value, &shown, "a number from 1 to 65536"),
            },
            ("maxLength", _) => {
                decoder.wrong_type(&entry.value, &shown, "a number from 1 to 65536");
            }
            ("allowed", Tree::List(items)) => {
                patterns.allowed = decode_list(decoder, items, &shown);
                // An empty list allows nothing elsewhere; here it would be taken for no list.
                if items.is_empty() {
                    decoder.wrong_type(&entry.value, &shown, "a list with at least one pattern");
                }
            }
            ("blocked", Tree::List(items)) => {
                patterns.blocked = decode_list(decoder, items, &shown);
            }
            ("allowed" | "blocked", _) => {
                decoder.wrong_type(&entry.value, &shown, "a list of regular expressions");
            }
            _ => {}
        }
    }
    patterns
}

fn decode_list(decoder: &mut Decoder, items: &[Node], shown: &str) -> Vec<Pattern> {
    items.iter().filter_map(|item| decode_pattern(decoder, item, shown)).collect()
}

/// `policy`, with `level` and `limits` as its `isolationLevel` and `resources`.
fn decode_policy(decoder: &mut Decoder, node: &Node) -> PolicyDocument {
    let at = node.at;
    let empty = Node { tree: Tree::Map(Vec::new()), at };
    let own = node.get("policy").unwrap_or(&empty);
    for entry in decoder.entries(own, "policy") {
        if NOT_HERE.contains(&entry.key.as_str()) {
            let message = format!(
                "`policy.{}`: the declaration of a tool cannot say this; a person does, in a policy of their own",
                entry.key
            );
            decoder.complain(
                Problem::WrongLayer,
                entry.at,
                &format!("policy.{}", entry.key),
                message,
                None,
            );
        }
    }
    let mut entries: Vec<Entry> = match &own.tree {
        Tree::Map(entries) => entries.clone(),
        _ => Vec::new(),
    };
    entries.retain(|entry| !NOT_HERE.contains(&entry.key.as_str()));
    for (short, key) in [("level", "isolationLevel"), ("limits", "resources")] {
        let Some(value) = node.get(short) else { continue };
        if let Some(stated) = entries.iter().find(|entry| entry.key == key) {
            let message = format!("`policy.{key}` and `{short}` are the same");
            let fix = Some("keep one of the two".to_owned());
            decoder.complain(Problem::Contradiction, stated.at, short, message, fix);
            continue;
        }
        entries.push(Entry { key: key.to_owned(), at: value.at, value: value.clone() });
    }
    bound_output(&mut entries, at);
    let document = decode_document(decoder, &Node { tree: Tree::Map(entries), at: own.at });
    decoder.problems.extend(contradictions::within_document(&document.settings));
    document
}

fn bound_output(entries: &mut Vec<Entry>, at: Position) {
    const SECTION: &str = "resources";
    const KEY: &str = "maxOutputSize";
    let limit =
        Entry { key: KEY.to_owned(), at, value: Node { tree: Tree::Text(OUTPUT.to_owned()), at } };
    match entries.iter_mut().find(|entry| entry.key == SECTION) {
        Some(Entry { value: Node { tree: Tree::Map(limits), .. }, .. }) => {
            if !limits.iter().any(|entry| entry.key == KEY) {
                limits.push(limit);
            }
        }
        Some(_) => {}
        None => entries.push(Entry {
            key: SECTION.to_owned(),
            at,
            value: Node { tree: Tree::Map(vec![limit]), at },
        }),
    }
}

#[cfg(test)]
#[path = "declaration_tests.rs"]
mod tests;
