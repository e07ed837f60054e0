//! Whether a history is linearizable: Wing and Gong's search for an order, with Lowe's memory of what led nowhere. Knows no
//! command.
//!
//! An order may go on with an operation of a client when all before it of the same client are in it, and when no operation
//! that is not in it yet was answered before this one was invoked. What was done so far matters only by how far each client
//! has come and by the state: a pair of these that was met before is not gone into again. And a read that may come next need
//! not be tried anywhere else: in any order that has it later it can be moved to here.

use crate::history::Operation;
use std::collections::HashSet;
use std::hash::Hash;

/// What a sequence of operations is held against.
pub trait Model: Clone + Eq + Hash {
    /// The states that the operation may lead to with the reply that it had; none where it cannot have had it.
    fn step(&self, operation: &Operation) -> Vec<Self>;

    /// Whether the operation changes nothing in any state in which it has the reply that it had.
    fn is_read(operation: &Operation) -> bool;
}

/// What came of a check.
#[derive(Debug)]
pub enum Verdict<M> {
    /// There is an order.
    Linearizable,
    /// There is none. The longest order that was found, and the state that it ends in: the places of its operations, as
    /// (client, index).
    Not(Vec<(usize, usize)>, M),
    /// The search was given up: too many states.
    GivenUp,
}

/// More states than this are not gone into: some hundred megabytes.
const STATES_MAX: usize = 100_000;

/// A node of the tree of orders.
struct Node<M> {
    before: usize,
    client: usize,
    state: M,
    done: Box<[u8]>,
}

/// Looks for an order of what the clients did; the operations of each are in its own order.
pub fn check<M: Model>(start: &M, clients: &[Vec<Operation>]) -> Verdict<M> {
    let total: usize = clients.iter().map(Vec::len).sum();
    assert!(clients.iter().all(|operations| operations.len() <= usize::from(u8::MAX)), "counted in bytes");
    let root =
        Node { before: usize::MAX, client: usize::MAX, state: start.clone(), done: vec![0; clients.len()].into() };
    let mut nodes = vec![root];
    let mut known: HashSet<(Box<[u8]>, M)> = HashSet::new();
    let mut open = vec![0];
    let mut longest = (0, 0);
    while let Some(at) = open.pop() {
        let done = nodes[at].done.clone();
        let len: usize = done.iter().map(|&count| usize::from(count)).sum();
        if len == total {
            return Verdict::Linearizable;
        }
        if len > longest.0 {
            longest = (len, at);
        }
        let next = |client: usize| clients[client].get(usize::from(done[client]));
        let waiting = || (0..clients.len()).filter_map(|client| Some((client, next(client)?)));
        let first_answer_ns = waiting().map(|(_, operation)| operation.answered_ns).min().expect("some are left");
        let mut candidates: Vec<_> = waiting().filter(|(_, next)| next.invoked_ns <= first_answer_ns).collect();
        // What was answered first is tried first, and so pushed last: mostly that is the order.
        candidates.sort_by_key(|(_, operation)| std::cmp::Reverse(operation.answered_ns));
        let mut steps = Vec::new();
        for (client, operation) in candidates {
            let states = nodes[at].state.step(operation);
            if M::is_read(operation) && states.contains(&nodes[at].state) {
                steps = vec![(client, nodes[at].state.clone())];
                break;
            }
            steps.extend(states.into_iter().map(|state| (client, state)));
        }
        for (client, state) in steps {
            let mut further = done.clone();
            further[client] += 1;
            if known.insert((further.clone(), state.clone())) {
                open.push(nodes.len());
                nodes.push(Node { before: at, client, state, done: further });
            }
        }
        if nodes.len() > STATES_MAX {
            return Verdict::GivenUp;
        }
    }
    let mut order = Vec::new();
    let mut at = longest.1;
    while nodes[at].before != usize::MAX {
        let client = nodes[at].client;
        order.push((client, usize::from(nodes[at].done[client]) - 1));
        at = nodes[at].before;
    }
    order.reverse();
    Verdict::Not(order, nodes.swap_remove(longest.1).state)
}
