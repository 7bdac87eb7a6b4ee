//! Keeps the links in an order in which each is behind all that feed it, and finds paths that would break it.
//!
//! A link feeds another one if a virtual link passes both, one after the other. New feeds reorder only the links
//! between the first and the last one of the path, as D. J. Pearce and P. H. J. Kelly do ("A dynamic topological sort
//! algorithm for directed acyclic graphs", ACM Journal of Experimental Algorithmics 11, 2006): no other link can be in
//! a cycle with them.
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Links that feed each other, without cycles, in an order.
#[derive(Debug, Clone)]
pub(super) struct FeedOrder {
    /// Links that each link feeds, with the number of virtual links that pass from one to the other.
    after: Vec<BTreeMap<usize, usize>>,
    /// Place of each link in the order.
    rank: Vec<usize>,
}

impl FeedOrder {
    /// Returns the order of links that do not feed each other.
    pub(super) fn new(links: usize) -> FeedOrder {
        FeedOrder { after: vec![BTreeMap::new(); links], rank: (0..links).collect() }
    }

    /// Returns the places of the links.
    pub(super) fn ranks(&self) -> &[usize] {
        &self.rank
    }

    /// Returns places for the links with one more path; `None` if the present ones do.
    ///
    /// # Errors
    /// Links would feed each other in a cycle: the error has them, in order.
    pub(super) fn ranks_with(&self, path: &[usize]) -> Result<Option<Vec<usize>>, Vec<usize>> {
        if path.windows(2).all(|pair| self.rank[pair[0]] < self.rank[pair[1]]) {
            return Ok(None);
        }
        let ranks = || path.iter().map(|link| self.rank[*link]);
        let (first, last) = (ranks().min().unwrap_or(0), ranks().max().unwrap_or(0));
        // 1. Take the links between, in their order.
        let mut by_rank = vec![usize::MAX; last - first + 1];
        for (link, rank) in self.rank.iter().enumerate().filter(|(_, rank)| (first..=last).contains(*rank)) {
            by_rank[rank - first] = link;
        }
        // 2. Count what feeds each of them.
        let inside = |link: usize| (first..=last).contains(&self.rank[link]);
        let new: BTreeSet<(usize, usize)> = path.windows(2).map(|pair| (pair[0], pair[1])).collect();
        let fed = |link: usize| {
            let old = self.after[link].keys().copied().filter(|to| inside(*to));
            let added = new.range((link, 0)..=(link, usize::MAX)).map(|(_, to)| *to);
            old.chain(added.filter(move |to| !self.after[link].contains_key(to)))
        };
        let mut missing = vec![0_usize; by_rank.len()];
        by_rank.iter().for_each(|link| fed(*link).for_each(|to| missing[self.rank[to] - first] += 1));
        // 3. Give the lowest places to links that nothing feeds that has none yet.
        let mut free: BTreeSet<usize> = (0..by_rank.len()).filter(|place| missing[*place] == 0).collect();
        let (mut changed, mut next) = (self.rank.clone(), first);
        while let Some(place) = free.pop_first() {
            changed[by_rank[place]] = next;
            next += 1;
            for to in fed(by_rank[place]) {
                let place = self.rank[to] - first;
                missing[place] -= 1;
                if missing[place] == 0 {
                    free.insert(place);
                }
            }
        }
        if next == last + 1 { Ok(Some(changed)) } else { Err(self.cycle(path)) }
    }

    /// Adds the feeds of a path, with places that [`FeedOrder::ranks_with`] returned for it.
    pub(super) fn insert(&mut self, path: &[usize], ranks: Option<Vec<usize>>) {
        for pair in path.windows(2) {
            *self.after[pair[0]].entry(pair[1]).or_insert(0) += 1;
        }
        self.rank = ranks.unwrap_or_else(|| std::mem::take(&mut self.rank));
    }

    /// Removes the feeds of a path that was added.
    pub(super) fn remove(&mut self, path: &[usize]) {
        for pair in path.windows(2) {
            if let Some(count) = self.after[pair[0]].get_mut(&pair[1]) {
                *count -= 1;
                if *count == 0 {
                    self.after[pair[0]].remove(&pair[1]);
                }
            }
        }
    }

    /// Returns a cycle that a path closes. It depends on the feeds alone, and not on their order.
    fn cycle(&self, path: &[usize]) -> Vec<usize> {
        for (last, link) in path.iter().enumerate() {
            for first in (0..last).rev() {
                if let Some(back) = self.shortest(*link, path[first]) {
                    return [&path[first..last], &back].concat();
                }
            }
        }
        Vec::new()
    }

    /// Returns the fewest links that lead from one to another over feeds, without the other one.
    fn shortest(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        let mut reached_from = BTreeMap::from([(from, from)]);
        let mut open = VecDeque::from([from]);
        while let Some(at) = open.pop_front() {
            if at == to {
                let mut back = vec![];
                let mut at = at;
                while at != from {
                    at = reached_from[&at];
                    back.push(at);
                }
                back.reverse();
                return Some(back);
            }
            for next in self.after[at].keys() {
                reached_from.entry(*next).or_insert_with(|| {
                    open.push_back(*next);
                    at
                });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns true if links feed each other in a cycle: none is left that nothing feeds.
    fn has_cycle(paths: &[Vec<usize>]) -> bool {
        let mut feeds: BTreeSet<(usize, usize)> =
            paths.iter().flat_map(|path| path.windows(2)).map(|pair| (pair[0], pair[1])).collect();
        loop {
            let fed: BTreeSet<usize> = feeds.iter().map(|(_, to)| *to).collect();
            let before = feeds.len();
            feeds.retain(|(from, _)| fed.contains(from));
            if feeds.len() == before {
                return before > 0;
            }
        }
    }

    #[test]
    fn paths_are_refused_exactly_if_they_close_a_cycle() {
        let mut random = fastrand::Rng::with_seed(41);
        let (mut inserted, mut refused) = (0, 0);
        for _ in 0..300 {
            let links = random.usize(2..12);
            let mut order = FeedOrder::new(links);
            let mut paths: Vec<Vec<usize>> = Vec::new();
            for _ in 0..20 {
                if !paths.is_empty() && random.u8(0..4) == 0 {
                    let path = paths.swap_remove(random.usize(0..paths.len()));
                    order.remove(&path);
                }
                let mut path: Vec<usize> = (0..links).collect();
                random.shuffle(&mut path);
                path.truncate(random.usize(1..=4));
                paths.push(path.clone());
                match order.ranks_with(&path) {
                    Ok(ranks) => {
                        assert!(!has_cycle(&paths), "{paths:?}");
                        order.insert(&path, ranks);
                        let mut ranks = order.ranks().to_vec();
                        assert!(
                            paths.iter().flat_map(|path| path.windows(2)).all(|pair| ranks[pair[0]] < ranks[pair[1]])
                        );
                        ranks.sort_unstable();
                        assert!(ranks.into_iter().eq(0..links));
                        inserted += 1;
                    }
                    Err(cycle) => {
                        let around = [&cycle[..], &cycle[..1]].concat();
                        let feeds = |pair: &[usize]| paths.iter().any(|path| path.windows(2).any(|one| one == pair));
                        assert!(cycle.len() > 1 && around.windows(2).all(feeds), "{cycle:?} {paths:?}");
                        paths.pop();
                        refused += 1;
                    }
                }
            }
        }
        assert!(inserted > 1000 && refused > 1000, "{inserted} {refused}");
    }
}
