//! Computes a spanning tree: links without loops, so that floods end.
use crate::neighbours;
use std::collections::VecDeque;

/// Returns for each of `links` whether to keep it, so that no loop remains and all connected nodes stay connected.
/// `nodes` is the number of nodes; links are given by the indices of their ends.
///
/// In each component the tree consists of shortest paths from its centre: the node with the smallest distance to its
/// farthest node, the first one among equals. Among parallel links the first is kept. Equal links give an equal tree.
pub fn spanning_tree(nodes: usize, links: &[[usize; 2]]) -> Vec<bool> {
    let mut kept = vec![false; links.len()];
    let next = neighbours(nodes, links.iter().copied());
    let mut by_node: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for (number, ends) in links.iter().enumerate() {
        ends.iter().for_each(|end| by_node[*end].push(number));
    }
    let mut seen = vec![false; nodes];
    for start in 0..nodes {
        if seen[start] {
            continue;
        }
        let centre = centre(&next, start);
        let mut open = VecDeque::from([centre]);
        seen[centre] = true;
        while let Some(at) = open.pop_front() {
            for &link in &by_node[at] {
                let [a, b] = links[link];
                let to = if a == at { b } else { a };
                if !std::mem::replace(&mut seen[to], true) {
                    kept[link] = true;
                    open.push_back(to);
                }
            }
        }
    }
    kept
}

/// Returns for each of `more` links whether to add it to `links`, so that all parts that it could join are joined and
/// no further loop remains. `nodes` is the number of nodes; links are given by the indices of their ends. Of several
/// links between the same parts the first is added.
pub fn joining_links(nodes: usize, links: &[[usize; 2]], more: &[[usize; 2]]) -> Vec<bool> {
    // Union-find: each node leads to another of its part, or is the part's root.
    let mut towards: Vec<usize> = (0..nodes).collect();
    let mut join = |ends: &[usize; 2]| {
        let [a, b] = ends.map(|end| {
            let mut at = end;
            while towards[at] != at {
                towards[at] = towards[towards[at]];
                at = towards[at];
            }
            at
        });
        towards[a] = b;
        a != b
    };
    links.iter().for_each(|ends| _ = join(ends));
    more.iter().map(join).collect()
}

/// Returns the distance of each node from `start` in links; `None` for nodes that are not connected to it.
pub(crate) fn hops(next: &[Vec<usize>], start: usize) -> Vec<Option<usize>> {
    let mut hops = vec![None; next.len()];
    hops[start] = Some(0);
    let mut open = VecDeque::from([(start, 0)]);
    while let Some((at, far)) = open.pop_front() {
        for &to in &next[at] {
            if hops[to].is_none() {
                hops[to] = Some(far + 1);
                open.push_back((to, far + 1));
            }
        }
    }
    hops
}

/// Returns the centre of the component of `start`.
fn centre(next: &[Vec<usize>], start: usize) -> usize {
    let part = hops(next, start);
    let farthest = |node: usize| hops(next, node).into_iter().flatten().max().unwrap_or(0);
    let nodes = part.iter().enumerate().filter(|(_, hops)| hops.is_some()).map(|(node, _)| node);
    nodes.min_by_key(|node| farthest(*node)).unwrap_or(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parts_are_joined_by_the_first_links_between_them() {
        let more = [[0, 1], [1, 2], [2, 0], [3, 4], [4, 4], [5, 3]];
        assert_eq!(joining_links(6, &[[0, 1], [2, 3]], &more), [false, true, false, true, false, true]);
        assert_eq!(joining_links(0, &[], &[]), [] as [bool; 0]);
    }

    fn kept(nodes: usize, links: &[[usize; 2]]) -> Vec<[usize; 2]> {
        spanning_tree(nodes, links).into_iter().zip(links).filter(|(kept, _)| *kept).map(|(_, link)| *link).collect()
    }

    #[test]
    fn a_ring_is_cut_far_from_its_root() {
        assert_eq!(kept(5, &[[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]]), [[0, 1], [1, 2], [3, 4], [4, 0]]);
        assert_eq!(kept(2, &[[0, 1], [1, 0]]), [[0, 1]], "of two links the first");
        assert_eq!(kept(4, &[[0, 1], [2, 3]]), [[0, 1], [2, 3]], "each part has its tree");
        assert_eq!(kept(3, &[[1, 1], [1, 2]]), [[1, 2]], "a link to itself is in no tree");
        // Node 4 is one link from all others, so it is the centre.
        let wheel = [[0, 1], [1, 2], [2, 3], [3, 0], [0, 4], [1, 4], [2, 4], [3, 4]];
        assert_eq!(kept(5, &wheel), [[0, 4], [1, 4], [2, 4], [3, 4]], "the centre is the root");
    }

    proptest! {
        #[test]
        fn it_joins_what_was_joined_and_has_no_loop(
            nodes in 1usize..30,
            links in prop::collection::vec([0usize..30, 0usize..30], 0..80),
        ) {
            let links: Vec<[usize; 2]> = links.into_iter().map(|link| link.map(|end| end % nodes)).collect();
            let tree = kept(nodes, &links);
            let reach = |links: &[[usize; 2]], from| {
                hops(&neighbours(nodes, links.iter().copied()), from).iter().map(Option::is_some).collect::<Vec<_>>()
            };
            let mut parts = 0;
            let mut seen = vec![false; nodes];
            for node in 0..nodes {
                prop_assert_eq!(reach(&links, node), reach(&tree, node));
                if !seen[node] {
                    parts += 1;
                    reach(&links, node).iter().zip(&mut seen).for_each(|(joined, seen)| *seen |= joined);
                }
            }
            prop_assert_eq!(tree.len(), nodes - parts, "as many links as a forest has");
        }
    }
}
