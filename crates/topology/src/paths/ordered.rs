//! Finds several paths, the shortest first: J. Y. Yen, "Finding the k shortest loopless paths in a network", Management
//! Science 17(11), 1971. Paths that share their beginning with a found one only up to where that one itself branched
//! off are looked for once: E. L. Lawler, Management Science 18(7), 1972.
use super::{MAX_PATHS, WeightedGraph, WeightedPath};
use std::collections::{BTreeSet, HashSet};

impl WeightedGraph {
    /// Returns the shortest `k` paths, at most [`MAX_PATHS`], from one node to another over the links that `usable`
    /// accepts. No path passes a node twice. There are fewer if the graph has no more.
    pub fn k_shortest_paths(
        &self,
        from: usize,
        to: usize,
        k: usize,
        usable: impl Fn(usize) -> bool,
    ) -> Vec<WeightedPath> {
        let k = k.min(MAX_PATHS);
        let mut found: Vec<WeightedPath> = Vec::new();
        let mut candidates = BTreeSet::new();
        candidates.extend(self.shortest_path(from, to, &usable).map(|path| (path, 0)));
        while found.len() < k
            && let Some((path, branch)) = candidates.pop_first()
        {
            found.push(path);
            candidates.extend(self.branches(&found, branch, to, &usable));
            // No more than these can be among the first k.
            while found.len() + candidates.len() > k {
                candidates.pop_last();
            }
        }
        found
    }

    /// Returns the shortest paths that leave the path found last at one of its nodes from number `branch` on and are
    /// none of those found, with the number of that node.
    fn branches(
        &self,
        found: &[WeightedPath],
        branch: usize,
        to: usize,
        usable: &impl Fn(usize) -> bool,
    ) -> Vec<(WeightedPath, usize)> {
        let Some(newest) = found.last() else { return Vec::new() };
        let mut passed: HashSet<usize> = HashSet::new();
        let mut branches = Vec::new();
        for (place, link) in newest.links.iter().enumerate() {
            let at = self.links[*link].from;
            if place >= branch {
                let root = &newest.links[..place];
                let same_root = found.iter().filter(|path| path.links.starts_with(root));
                let taken: HashSet<usize> = same_root.filter_map(|path| path.links.get(place).copied()).collect();
                let free =
                    |link: usize| usable(link) && !taken.contains(&link) && !passed.contains(&self.links[link].to);
                if let Some(rest) = self.shortest_path(at, to, free) {
                    branches.push((self.path([root, &rest.links].concat()), place));
                }
            }
            passed.insert(at);
        }
        branches
    }
}
