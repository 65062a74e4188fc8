//! Gateway.

fn main() {}
