//! Parses text into a document, or reports everything that is wrong with it.

use crate::contradictions;
use crate::decode::Decoder;
use crate::decode::document::{PolicyDocument, decode_document};
use crate::diagnostic::{Diagnostic, Origin, Problem};
use crate::syntax::tree::Format;
use crate::syntax::tree::{self, Node, SyntaxError};

/// Parses a policy document in our own format. `file` is used in diagnostics only.
pub fn parse(text: &str, file: &str, format: Format) -> Result<PolicyDocument, Vec<Diagnostic>> {
    let node = read_tree(text, file, format)?;
    decode(&node, file)
}

pub(crate) fn read_tree(text: &str, file: &str, format: Format) -> Result<Node, Vec<Diagnostic>> {
    tree::read(text, format).map_err(|SyntaxError { at, message }| {
        vec![Diagnostic::new(Problem::Syntax, &Origin::new(&file.into(), at), "", message)]
    })
}

pub(crate) fn decode(node: &Node, file: &str) -> Result<PolicyDocument, Vec<Diagnostic>> {
    let mut decoder = Decoder::new(file);
    let document = decode_document(&mut decoder, node);
    let mut problems = decoder.problems;
    problems.extend(contradictions::within_document(&document.settings));
    problems.sort_by_key(|problem| (problem.line, problem.column));
    if problems.is_empty() { Ok(document) } else { Err(problems) }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
