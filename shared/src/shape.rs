//! The profile of shapes (SPEC 3.5): which JSON Schemas a model may hand in, and whether an answer
//! fits one, within bounded work.
//!
//! A shape is untrusted, and so is an answer. Reading a shape (`compile`, by the table in
//! `keyword`) resolves every reference to a place inside it, so that nothing is ever fetched.
//! Checking an answer (`walk`) keeps its own stack and counts what it does: neither a chain of
//! references nor equal branches over a recursive shape can overflow or outlast it. That is why
//! the checker is our own; of the crate `jsonschema` it uses patterns and formats.

mod assertion;
mod below;
mod compile;
mod format;
mod frame;
mod graph;
mod keyword;
mod pattern;
mod survey;
mod walk;

use serde_json::Value;

use crate::code::Misfit;
use crate::json;

/// The most bytes of a shape, written compactly.
pub const MAX_BYTES: usize = 16 * 1024;
/// The most subschemas in each other; the shape itself is none.
pub const MAX_DEPTH: usize = 8;
/// The most named properties and patterns of properties over the whole shape.
pub const MAX_PROPERTIES: usize = 100;
/// The most `enum` values over the whole shape.
pub const MAX_ENUM_VALUES: usize = 200;
/// The most work on one answer: shape nodes times answer nodes, and the visits of the checker.
pub const MAX_WORK: u64 = 1_000_000;
/// The most misfits that one check tells.
pub const MAX_MISFITS: usize = 20;

/// Why a JSON value is no shape of the profile: one sentence by which a model can correct it,
/// with the place as a JSON pointer into the shape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ShapeFault {
    text: String,
}

impl ShapeFault {
    fn at(pointer: &str, what: impl std::fmt::Display) -> Self {
        let place = if pointer.is_empty() {
            "the shape".to_owned()
        } else {
            format!("the shape at {}", json::clip(pointer, 200))
        };
        ShapeFault {
            text: format!("{}.", json::clip(&format!("{place}: {what}"), 600)),
        }
    }
}

/// A shape of the profile, ready to check answers. Reading one takes microseconds, so it is read
/// where it is needed and never stored.
#[derive(Debug)]
pub struct Shape {
    nodes: Vec<compile::Node>,
    /// Nodes after inlining references, one met again below itself counting 1.
    inlined: u64,
    /// Whether any node asks which properties or items the others have taken.
    tracks: bool,
}

impl Shape {
    /// Reads a shape.
    ///
    /// # Errors
    /// Everything that SPEC 3.5 keeps out; the fault names the place and the rule.
    pub fn parse(shape: &Value) -> Result<Self, ShapeFault> {
        if json::measure(shape).nesting > json::MAX_NESTING {
            return Err(ShapeFault::at(
                "",
                format!("it is nested deeper than {}", json::MAX_NESTING),
            ));
        }
        let bytes = shape.to_string().len();
        if bytes > MAX_BYTES {
            return Err(ShapeFault::at(
                "",
                format!("it takes {bytes} bytes, and at most {MAX_BYTES} are allowed"),
            ));
        }
        let draft = keyword::draft(shape)?;
        let nodes = compile::nodes(shape, draft)?;
        let inlined = graph::inspect(&nodes)?;
        let tracks = nodes.iter().any(compile::Node::tracks);
        Ok(Shape {
            nodes,
            inlined,
            tracks,
        })
    }

    /// Whether an answer fits.
    ///
    /// # Errors
    /// At least one and at most [`MAX_MISFITS`] misfits, with pointers into the answer; a single
    /// one of the rule `size` when the answer is too large to be checked within [`MAX_WORK`].
    pub fn check(&self, answer: &Value) -> Result<(), Vec<Misfit>> {
        let size = || vec![Misfit::at("", "size")];
        let measure = json::measure(answer);
        if measure.nesting > json::MAX_NESTING
            || measure.nodes.saturating_mul(self.inlined) > MAX_WORK
        {
            return Err(size());
        }
        let mut walk = walk::Walk::new(&self.nodes, self.tracks, &measure);
        match walk.run(answer) {
            Ok(()) if walk.misfits.is_empty() => Ok(()),
            Ok(()) => Err(walk.misfits),
            Err(frame::Exhausted) => Err(size()),
        }
    }
}

#[cfg(test)]
mod tests;
