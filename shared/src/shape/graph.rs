//! Questions about a shape as a graph: does it end, how large is it with its references inlined,
//! and does it plainly take nothing.

use super::compile::{Apply, Node};
use super::{MAX_WORK, ShapeFault};

/// Refuses shapes that never end, that take nothing or that are too large; the number of nodes
/// after inlining.
pub(super) fn inspect(nodes: &[Node]) -> Result<u64, ShapeFault> {
    let order = in_place_order(nodes)?;
    takes_something(nodes, &order)?;
    inlined(nodes)
}

/// All nodes, each after those that apply to the same value as it does. A shape that comes back to
/// itself without going on to a property or an item has no such order.
fn in_place_order(nodes: &[Node]) -> Result<Vec<usize>, ShapeFault> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let next: Vec<Vec<usize>> = nodes.iter().map(Node::in_place).collect();
    let mut marks = vec![Mark::New; nodes.len()];
    let mut order = Vec::with_capacity(nodes.len());
    for start in 0..nodes.len() {
        let mut stack = vec![(start, 0)];
        while let Some((node, at)) = stack.pop() {
            if at == 0 {
                if marks[node] != Mark::New {
                    continue;
                }
                marks[node] = Mark::Open;
            }
            match next[node].get(at) {
                None => {
                    marks[node] = Mark::Done;
                    order.push(node);
                }
                Some(&target) if marks[target] == Mark::Open => {
                    return Err(ShapeFault::at(
                        &nodes[target].pointer,
                        "it refers to itself without going on to a property or an item, so it \
                         never ends",
                    ));
                }
                Some(&target) => {
                    stack.push((node, at + 1));
                    stack.push((target, 0));
                }
            }
        }
    }
    Ok(order)
}

/// Only what is plain: nothing is solved here, and a closed object under `allOf` passes.
fn takes_something(nodes: &[Node], order: &[usize]) -> Result<(), ShapeFault> {
    let mut nothing = vec![false; nodes.len()];
    for &at in order {
        let node = &nodes[at];
        nothing[at] = node.verdict == Some(false)
            || node.applies.iter().any(|apply| match apply {
                Apply::All(_, target) => nothing[*target],
                Apply::Any(targets) | Apply::One(targets) => {
                    targets.iter().all(|target| nothing[*target])
                }
                Apply::Not(target) => nodes[*target].takes_anything(),
                _ => false,
            });
    }
    if nothing.first() == Some(&true) {
        return Err(ShapeFault::at("", "no answer fits it"));
    }
    Ok(())
}

/// Counts the nodes of the tree that the shape is with its references inlined; a node met again
/// below itself counts 1. The count is given up where no answer could be checked any more.
fn inlined(nodes: &[Node]) -> Result<u64, ShapeFault> {
    let next: Vec<Vec<usize>> = nodes.iter().map(Node::targets).collect();
    let mut above = vec![false; nodes.len()];
    let mut count: u64 = 1;
    let mut stack = vec![(0, 0)];
    above[0] = true;
    while let Some((node, at)) = stack.pop() {
        let Some(&target) = next[node].get(at) else {
            above[node] = false;
            continue;
        };
        stack.push((node, at + 1));
        count += 1;
        if count > MAX_WORK {
            return Err(ShapeFault::at(
                "",
                format!("with its references inlined it has more than {MAX_WORK} subschemas"),
            ));
        }
        if !above[target] {
            above[target] = true;
            stack.push((target, 0));
        }
    }
    Ok(count)
}
