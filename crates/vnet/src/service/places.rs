//! Finds places for the nodes of a network, those with the fewest cables first.
use super::search::DesignSearch;

/// Partial placements of nodes that are kept while the next node is placed, and whole ones whose links are routed.
const KEPT_PLACEMENTS: usize = 32;
const TRIED_PLACEMENTS: usize = 8;

/// End of a link of the request.
#[derive(Debug, Clone, Copy)]
enum RequestedEnd {
    /// Host at the switch of this number.
    Host(usize),
    /// Node of this number.
    Node(usize),
}

impl DesignSearch<'_> {
    /// Returns placements of the nodes, those with the fewest cables between ends of links first.
    pub(super) fn placements(&self) -> Vec<Vec<usize>> {
        let fixed = |node: &super::NodeRequest| node.place.as_ref().and_then(|place| self.substrate.place(place));
        let ends = self.link_ends();
        let mut partial: Vec<(u64, Vec<Option<usize>>)> = vec![(0, self.request.nodes.iter().map(fixed).collect())];
        for node in self.order() {
            let mut next = Vec::new();
            for (_, places) in &partial {
                if places[node].is_some() {
                    next.push(places.clone());
                    continue;
                }
                for switch in 0..self.substrate.switches.len() {
                    let mut places = places.clone();
                    places[node] = Some(switch);
                    next.push(places);
                }
            }
            partial = next.into_iter().filter_map(|places| Some((self.cables_of(&ends, &places)?, places))).collect();
            partial.sort();
            partial.truncate(KEPT_PLACEMENTS);
        }
        partial.into_iter().take(TRIED_PLACEMENTS).map(|(_, places)| places.into_iter().flatten().collect()).collect()
    }

    /// Returns the nodes in the order in which they are placed: those that are bound to a switch, then those with the
    /// most links.
    fn order(&self) -> Vec<usize> {
        let links =
            |name: &str| self.request.links.iter().filter(|link| link.ends.iter().any(|end| end == name)).count();
        let mut order: Vec<usize> = (0..self.request.nodes.len()).collect();
        order.sort_by_key(|node| {
            let node = &self.request.nodes[*node];
            (node.place.is_none(), usize::MAX - links(&node.name))
        });
        order
    }

    /// Returns the sum of the cables between ends that are placed; `None` if two are on one switch though a link joins
    /// them, or no way leads from one to the other.
    fn cables_of(&self, ends: &[[RequestedEnd; 2]], places: &[Option<usize>]) -> Option<u64> {
        let mut sum = 0;
        // With fixed places, the refusal says what is wrong.
        let is_fixed = self.request.nodes.iter().all(|node| node.place.is_some());
        for link in ends {
            let place = |end: &RequestedEnd| match *end {
                RequestedEnd::Host(switch) => Some(switch),
                RequestedEnd::Node(node) => places[node],
            };
            let [Some(from), Some(to)] = [place(&link[0]), place(&link[1])] else { continue };
            let has_host = link.iter().any(|end| matches!(end, RequestedEnd::Host(_)));
            if from == to && !has_host && !is_fixed {
                return None;
            }
            sum += u64::from(self.substrate.hops[from][to].or(is_fixed.then_some(0))?);
        }
        Some(sum)
    }

    /// Returns the ends of the links as numbers. Requests were checked: each end is a host or a node.
    fn link_ends(&self) -> Vec<[RequestedEnd; 2]> {
        let end = |name: &String| match self.substrate.hosts.get(name) {
            Some(host) => RequestedEnd::Host(self.substrate.place(&host.port.switch).unwrap_or(0)),
            None => RequestedEnd::Node(self.request.nodes.iter().position(|node| node.name == *name).unwrap_or(0)),
        };
        self.request.links.iter().map(|link| [end(&link.ends[0]), end(&link.ends[1])]).collect()
    }
}
