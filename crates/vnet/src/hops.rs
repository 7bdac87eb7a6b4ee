//! Counts links between switches.
use std::collections::VecDeque;

/// Returns the fewest links from each switch to each other one.
pub(crate) fn hops(switches: usize, ends: &[[usize; 2]]) -> Vec<Vec<Option<u16>>> {
    let mut next = vec![Vec::new(); switches];
    ends.iter().for_each(|[from, to]| next[*from].push(*to));
    let from = |start: usize| {
        let mut hops = vec![None; switches];
        hops[start] = Some(0);
        let mut open = VecDeque::from([(start, 0_u16)]);
        while let Some((at, so_far)) = open.pop_front() {
            for to in &next[at] {
                if hops[*to].is_none() {
                    hops[*to] = Some(so_far + 1);
                    open.push_back((*to, so_far + 1));
                }
            }
        }
        hops
    };
    (0..switches).map(from).collect()
}
