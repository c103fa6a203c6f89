//! Errors about a value or its entries, and the list decoder that all sections use.

use crate::syntax::tree::{Node, Tree};

/// A value, or an entry of it, that its key does not accept.
pub(crate) struct Mistake {
    pub(crate) found: Node,
    pub(crate) expected: String,
}

pub(crate) type Mistakes = Vec<Mistake>;

pub(crate) fn mistake<T>(node: &Node, expected: &str) -> Result<T, Mistakes> {
    Err(vec![Mistake { found: node.clone(), expected: expected.to_owned() }])
}

pub(crate) fn items<T>(
    node: &Node,
    expected: &str,
    decode: impl Fn(&Node) -> Result<T, Mistakes>,
) -> Result<Vec<T>, Mistakes> {
    let Tree::List(nodes) = &node.tree else {
        return mistake(node, &format!("a list, each entry {expected}"));
    };
    let mut decoded = Vec::new();
    let mut mistakes = Vec::new();
    for item in nodes {
        match decode(item) {
            Ok(value) => decoded.push(value),
            Err(found) => mistakes.extend(found),
        }
    }
    if mistakes.is_empty() { Ok(decoded) } else { Err(mistakes) }
}
