//! The tools that we have ourselves (POL-7): their inputs, and the commands that do what some of them do.

use super::input::InputSchema;
use super::template::{CommandTemplate, Part, Word};

/// A tool of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltIn {
    Bash,
    Read,
    Write,
    Edit,
    List,
    Grep,
    WebFetch,
}

pub(crate) const BUILT_INS: [(&str, BuiltIn); 7] = [
    ("bash", BuiltIn::Bash),
    ("read", BuiltIn::Read),
    ("write", BuiltIn::Write),
    ("edit", BuiltIn::Edit),
    ("list", BuiltIn::List),
    ("grep", BuiltIn::Grep),
    ("web_fetch", BuiltIn::WebFetch),
];

const BASH: &str = r#"{"properties":{"command":{"type":"string","description":"What bash runs.","minLength":1}},"required":["command"]}"#;
const READ: &str = r#"{"properties":{"path":{"type":"string","description":"The file, from the project.","minLength":1},"offset":{"type":"integer","description":"The first line.","minimum":1,"default":1},"limit":{"type":"integer","description":"How many lines.","minimum":1,"maximum":100000,"default":2000}},"required":["path"]}"#;
const WRITE: &str = r#"{"properties":{"path":{"type":"string","description":"The file, from the project. Missing directories are made.","minLength":1},"content":{"type":"string"},"append":{"type":"boolean","description":"Add to the end of the file.","default":false}},"required":["path","content"]}"#;
const EDIT: &str = r#"{"properties":{"path":{"type":"string","description":"The file, from the project.","minLength":1},"oldText":{"type":"string","description":"Has to occur once, unless replaceAll is set.","minLength":1},"newText":{"type":"string"},"replaceAll":{"type":"boolean","default":false}},"required":["path","oldText","newText"]}"#;
const LIST: &str = r#"{"properties":{"path":{"type":"string","description":"The directory, from the project.","minLength":1,"default":"."},"depth":{"type":"integer","description":"1: only what is directly in it.","minimum":1,"maximum":16,"default":1}}}"#;
const GREP: &str = r#"{"properties":{"pattern":{"type":"string","description":"A regular expression, as grep -E has it.","minLength":1},"path":{"type":"string","description":"A file or directory, from the project.","minLength":1,"default":"."},"glob":{"type":"string","description":"Only files with such names."},"ignoreCase":{"type":"boolean","default":false},"literal":{"type":"boolean","description":"The pattern is plain text.","default":false}},"required":["pattern"]}"#;
const WEB_FETCH: &str = r#"{"properties":{"url":{"type":"string","description":"A whole address, such as https://example.com/page.","pattern":"^https?://[^\\s\\x00-\\x20]+$","maxLength":8192}},"required":["url"]}"#;

impl BuiltIn {
    pub fn name(self) -> &'static str {
        BUILT_INS.iter().find(|(_, it)| *it == self).map_or("", |(name, _)| name)
    }

    pub(crate) fn of(name: &str) -> Option<Self> {
        BUILT_INS.iter().find(|(it, _)| *it == name).map(|(_, built_in)| *built_in)
    }

    pub(crate) fn input(self) -> InputSchema {
        let text = match self {
            Self::Bash => BASH,
            Self::Read => READ,
            Self::Write => WRITE,
            Self::Edit => EDIT,
            Self::List => LIST,
            Self::Grep => GREP,
            Self::WebFetch => WEB_FETCH,
        };
        // They are constants, and a test reads each.
        InputSchema::of_json(text).unwrap_or_default()
    }

    /// The command that does it; none where a process of ours inside works on files.
    pub(crate) fn command(self) -> Option<CommandTemplate> {
        const CURL: [&str; 16] = [
            "curl",
            "-q",
            "-sS",
            "-L",
            "-f",
            "--max-redirs",
            "5",
            "--max-time",
            "60",
            "--max-filesize",
            "2097152",
            "--proto",
            "=http,https",
            "--proto-redir",
            "=http,https",
            "--globoff",
        ];
        let words = |words: &[&str]| -> Vec<Part> {
            words.iter().map(|word| Part::Word(Word::parse(word))).collect()
        };
        let group =
            |words: &[&str]| Part::Group(words.iter().map(|word| Word::parse(word)).collect());
        let parts = match self {
            Self::Bash => words(&["bash", "-c", "--", "{command}"]),
            Self::Grep => {
                let mut parts = words(&["grep", "-rnIs", "--exclude-dir=.git", "--color=never"]);
                parts.push(group(&["{?literal}", "-F"]));
                parts.push(group(&["{!literal}", "-E"]));
                parts.push(group(&["{?ignoreCase}", "-i"]));
                parts.push(group(&["--include={glob}"]));
                parts.push(group(&["-e", "{pattern}"]));
                parts.extend(words(&["--", "{path}"]));
                parts
            }
            Self::WebFetch => {
                let mut parts = words(&CURL);
                parts.extend(words(&["--", "{url}"]));
                parts
            }
            Self::Read | Self::Write | Self::Edit | Self::List => return None,
        };
        Some(CommandTemplate { parts })
    }
}

#[cfg(test)]
mod tests {
    use super::{BUILT_INS, BuiltIn, InputSchema};
    use serde_json::json;

    #[test]
    fn each_takes_every_value_that_its_command_has_a_place_for() {
        for (name, built_in) in BUILT_INS {
            assert!(built_in.input().names().count() > 0, "{name}");
            assert_eq!(BuiltIn::of(name), Some(built_in));
            let Some(command) = built_in.command() else { continue };
            assert_eq!(command.complaint(), None, "{name}");
            for word in command.words() {
                assert!(word.name().is_none_or(|it| built_in.input().has(it)), "{name}: {word:?}");
            }
        }
        assert!(InputSchema::of_json("{}").is_ok());
    }

    #[test]
    fn values_are_no_options_of_the_programs() {
        let argv = |built_in: BuiltIn, input| {
            let values = built_in.input().check(&input).unwrap();
            built_in.command().unwrap().fill(&values).unwrap()
        };
        assert_eq!(argv(BuiltIn::Bash, json!({ "command": "-x" })), ["bash", "-c", "--", "-x"]);
        assert_eq!(
            argv(BuiltIn::Grep, json!({ "pattern": "-f/etc/x", "path": "-r", "literal": true })),
            [
                "grep",
                "-rnIs",
                "--exclude-dir=.git",
                "--color=never",
                "-F",
                "-e",
                "-f/etc/x",
                "--",
                "-r"
            ]
        );
        let schema = BuiltIn::WebFetch.input();
        assert!(schema.check(&json!({ "url": "file:///etc/passwd" })).is_err());
        assert!(schema.check(&json!({ "url": "https://a.example/b c" })).is_err());
        assert!(schema.check(&json!({ "url": "https://a.example/b?c=d" })).is_ok());
    }
}
