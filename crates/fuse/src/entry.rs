//! What a name leads to: `struct fuse_entry_out`.

use crate::attributes::Attributes;
use crate::fields::Writer;
use crate::ids::NodeId;
use std::time::Duration;

/// The answer to a look-up. Each one that the kernel gets adds one to the look-ups that it gives up later, by
/// `Forget`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub node: NodeId,
    /// A number for a node is used again only with another generation.
    pub generation: u64,
    pub attributes: Attributes,
    /// How long the kernel may use the name without asking again.
    pub entry_valid: Duration,
    /// How long it may use the attributes.
    pub attributes_valid: Duration,
}

impl Entry {
    pub(crate) const SIZE: usize = 40 + Attributes::SIZE;

    /// There is no such name, and the kernel may remember that. Node 0 stands for it.
    pub(crate) fn negative(valid: Duration) -> Self {
        Self {
            node: NodeId(0),
            generation: 0,
            attributes: Attributes::default(),
            entry_valid: valid,
            attributes_valid: Duration::ZERO,
        }
    }

    pub(crate) fn write(&self, to: Writer) -> Writer {
        let to = to
            .u64(self.node.0)
            .u64(self.generation)
            .u64(self.entry_valid.as_secs())
            .u64(self.attributes_valid.as_secs())
            .u32(self.entry_valid.subsec_nanos())
            .u32(self.attributes_valid.subsec_nanos());
        self.attributes.write(to)
    }
}
