//! Compares paths of small graphs with all that there are.
use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Returns a graph whose links (ends, weight there, weight back; 0 for none) have both directions.
fn both_ways(nodes: usize, pairs: &[([usize; 2], [u64; 2])]) -> WeightedGraph {
    let mut links = Vec::new();
    for (group, ([a, b], [there, back])) in pairs.iter().enumerate() {
        for (from, to, weight) in [(*a, *b, *there), (*b, *a, *back)] {
            if weight > 0 {
                links.push(WeightedLink { from, to, weight, group });
            }
        }
    }
    WeightedGraph::new(nodes, links).expect("a right graph")
}

/// Returns all paths that pass no node twice, in their order.
fn all_paths(graph: &WeightedGraph, from: usize, to: usize, usable: &impl Fn(usize) -> bool) -> Vec<WeightedPath> {
    let mut done = Vec::new();
    let mut open = vec![(from, vec![from], Vec::new())];
    while let Some((at, passed, links)) = open.pop() {
        if at == to {
            done.push(graph.path(links));
            continue;
        }
        for (number, link) in graph.links().iter().enumerate() {
            if link.from == at && !passed.contains(&link.to) && usable(number) {
                open.push((link.to, [&passed[..], &[link.to]].concat(), [&links[..], &[number]].concat()));
            }
        }
    }
    done.sort();
    done
}

/// Returns the groups of a path's links, and the nodes between its ends.
fn parts(graph: &WeightedGraph, path: &WeightedPath) -> (BTreeSet<usize>, BTreeSet<usize>) {
    let links = || path.links.iter().map(|link| graph.links()[*link]);
    (links().map(|link| link.group).collect(), links().skip(1).map(|link| link.from).collect())
}

/// Returns the least weight of two paths that share no link, and of two that share no node either.
fn least_pairs(graph: &WeightedGraph, paths: &[WeightedPath]) -> [Option<u64>; 2] {
    let mut least = [None, None];
    for (number, first) in paths.iter().enumerate() {
        for second in &paths[number + 1..] {
            let ((groups, nodes), (others, other_nodes)) = (parts(graph, first), parts(graph, second));
            let apart = [groups.is_disjoint(&others), groups.is_disjoint(&others) && nodes.is_disjoint(&other_nodes)];
            for (least, apart) in least.iter_mut().zip(apart) {
                let weight = first.weight + second.weight;
                *least = least.filter(|known| *known <= weight).or(apart.then_some(weight)).or(*least);
            }
        }
    }
    least
}

fn graphs() -> impl Strategy<Value = (WeightedGraph, u64)> {
    let link = ([0usize..6, 0usize..6], [0u64..5, 0u64..5]);
    (2usize..=6, prop::collection::vec(link, 0..11), any::<u64>()).prop_map(|(nodes, links, unusable)| {
        let ends = |(ends, weights): ([usize; 2], [u64; 2])| (ends.map(|end| end % nodes), weights);
        let links: Vec<_> = links.into_iter().map(ends).filter(|(ends, _)| ends[0] != ends[1]).collect();
        // A link in eight is not usable.
        (both_ways(nodes, &links), unusable & unusable.rotate_left(21) & unusable.rotate_left(42))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn paths_are_the_best_of_all((graph, unusable) in graphs()) {
        let usable = |link: usize| unusable >> link & 1 == 0;
        for to in 0..graph.nodes() {
            let tree = graph.shortest_paths_to(to, usable);
            for from in 0..graph.nodes() {
                let all = all_paths(&graph, from, to, &usable);
                prop_assert_eq!(graph.shortest_path(from, to, usable), all.first().cloned());
                prop_assert_eq!(tree.distances[from], all.first().map(|path| path.weight));
                let best = all.iter().filter(|path| path.weight == all[0].weight);
                let next: BTreeSet<usize> = best.filter_map(|path| path.links.first().copied()).collect();
                prop_assert_eq!(&tree.next[from], &next.into_iter().collect::<Vec<_>>());
                for k in [1, 3, 20] {
                    let found = graph.k_shortest_paths(from, to, k, usable);
                    prop_assert_eq!(&found[..], &all[..all.len().min(k)], "{} of {} to {}", k, from, to);
                }
            }
        }
    }

    #[test]
    fn pairs_are_the_best_of_all((graph, unusable) in graphs()) {
        let usable = |link: usize| unusable >> link & 1 == 0;
        for (from, to) in (0..graph.nodes()).flat_map(|from| (0..graph.nodes()).map(move |to| (from, to))) {
            let found = graph.disjoint_pair(from, to, usable);
            let all = all_paths(&graph, from, to, &usable);
            let [by_links, by_nodes] = if from == to { [None; 2] } else { least_pairs(&graph, &all) };
            let weight = found.as_ref().map(|pair| pair.paths[0].weight + pair.paths[1].weight);
            prop_assert_eq!(weight, by_nodes.or(by_links));
            if let Some(pair) = found {
                prop_assert!(pair.paths[0] < pair.paths[1] && pair.paths.iter().all(|path| all.contains(path)));
                let [first, second] = [0, 1].map(|number| parts(&graph, &pair.paths[number]));
                prop_assert!(first.0.is_disjoint(&second.0));
                prop_assert_eq!(pair.node_disjoint, first.1.is_disjoint(&second.1));
            }
        }
    }
}

#[test]
fn the_shortest_path_is_no_part_of_the_pair_where_it_is_in_the_way() {
    // 0-1-2-3 is shortest, and without its links nothing is left.
    let pairs = [([0, 1], 1), ([1, 2], 1), ([2, 3], 1), ([0, 2], 3), ([1, 3], 3)];
    let graph = both_ways(4, &pairs.map(|(ends, weight)| (ends, [weight, weight])));
    let pair = graph.disjoint_pair(0, 3, |_| true).expect("two ways");
    assert!(pair.node_disjoint);
    assert_eq!(pair.paths.map(|path| (path.links, path.weight)), [(vec![0, 8], 4), (vec![6, 4], 4)]);
}

#[test]
fn a_pair_shares_a_node_only_if_it_must() {
    // Two links from 0 to 1 and two from 1 to 2, and a long way around node 1.
    let mut pairs = vec![([0, 1], [1, 1]), ([0, 1], [1, 1]), ([1, 2], [1, 1]), ([1, 2], [1, 1])];
    let shared = both_ways(4, &pairs).disjoint_pair(0, 2, |_| true).expect("two ways");
    assert!(!shared.node_disjoint && shared.paths.iter().all(|path| path.weight == 2), "{shared:?}");
    pairs.extend([([0, 3], [50, 50]), ([3, 2], [50, 50])]);
    let apart = both_ways(4, &pairs).disjoint_pair(0, 2, |_| true).expect("two ways");
    assert!(apart.node_disjoint && apart.paths[1].weight == 100, "{apart:?}");
    assert_eq!(both_ways(3, &pairs[1..3]).disjoint_pair(0, 2, |_| true), None);
}

#[test]
fn there_are_at_most_so_many_paths() {
    // Seven times two parallel links: 128 paths.
    let pairs: Vec<_> = (0..7).flat_map(|at| [([at, at + 1], [1, 1]); 2]).collect();
    let graph = both_ways(8, &pairs);
    assert_eq!(graph.k_shortest_paths(0, 7, 1000, |_| true).len(), MAX_PATHS);
    assert_eq!(graph.k_shortest_paths(3, 3, 5, |_| true), [WeightedPath::default()]);
    assert_eq!((graph.k_shortest_paths(0, 7, 0, |_| true), graph.shortest_path(0, 8, |_| true)), (vec![], None));
    assert_eq!(
        (graph.disjoint_pair(0, 8, |_| true), graph.shortest_paths_to(9, |_| true).distances),
        (None, vec![None; 8])
    );
}

#[test]
fn what_is_wrong_is_told() {
    let link = |from, to, weight, group| WeightedLink { from, to, weight, group };
    for (links, problem) in [
        (vec![link(0, 2, 1, 0)], "link 0: found an end at node 2, expected one below 2"),
        (vec![link(1, 1, 1, 0)], "link 0: found node 1 at both ends, expected two nodes"),
        (vec![link(0, 1, 0, 0)], "link 0: found weight 0, expected 1 to 1099511627776"),
        (vec![link(0, 1, 1, 0), link(0, 1, 1, 0)], "link 1: found group 0 of another link, expected one link in each"),
    ] {
        let error = WeightedGraph::new(2, links).unwrap_err();
        assert!(error.starts_with(problem), "{error}");
    }
    assert!(WeightedGraph::new(MAX_GRAPH_NODES + 1, vec![]).is_err());
    assert!(WeightedGraph::new(2, vec![link(0, 1, 1, 0); MAX_GRAPH_LINKS + 1]).is_err());
}
