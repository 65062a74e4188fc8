//! One check each for what a shape is refused for and what fits it, and many small rows.

mod agreement;
mod fits;
mod hostile;
mod refused;

use serde_json::Value;

use super::*;

#[track_caller]
fn read(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap_or_else(|fault| panic!("{text}: {fault}"))
}

#[track_caller]
fn shape(text: &str) -> Shape {
    Shape::parse(&read(text)).unwrap_or_else(|fault| panic!("{text}: {fault}"))
}

/// The misfits of an answer as `pointer rule`.
#[track_caller]
fn misfits(shape: &Shape, answer: &str) -> Vec<String> {
    match shape.check(&read(answer)) {
        Ok(()) => Vec::new(),
        Err(misfits) => misfits
            .iter()
            .map(|misfit| format!("{} {}", misfit.pointer, misfit.rule))
            .collect(),
    }
}
