//! Which questions a person is looking for: a text anywhere in what is asked and by which program.
//! Not in the command line of the session: that often names everything that is asked about.

use super::row::Row;
use palisade_ask::Subject;

/// Upper and lower case are the same; an empty text is in everything.
pub(crate) fn is_sought(row: &Row, sought: &str) -> bool {
    let sought = sought.to_lowercase();
    let question = &row.question;
    let subject = match &question.subject {
        Subject::File(file) => file.path.to_string_lossy().into_owned(),
        Subject::Host(host) => host.to_string(),
    };
    let programs = question.processes.iter().map(|process| process.executable.as_str());
    [subject.as_str(), &row.address]
        .into_iter()
        .chain(programs)
        .any(|text| text.to_lowercase().contains(&sought))
}
