//! Keeps the rates of virtual links while virtual links are inserted and removed.
use super::component::{ProblemMember, SharingProblem, solve};
use super::whole::whole_rates;
use super::{AllocationError, CapacityShortage, MAX_DEPENDENCIES, MAX_LINKS, SharingRule, SubstrateLink, VirtualLink};
use std::collections::{BTreeMap, BTreeSet};
use weir_units::Bps;

/// Virtual links that share the links of a substrate, with their rates.
///
/// Rates depend on the virtual links that are there, and not on the order in which they were inserted.
#[derive(Debug, Clone)]
pub struct LinkSharing {
    rule: SharingRule,
    links: BTreeMap<String, SharedLink>,
    virtual_links: BTreeMap<String, AllocatedLink>,
}

/// A substrate link with the virtual links through it.
#[derive(Debug, Clone)]
struct SharedLink {
    capacity: u64,
    members: BTreeSet<String>,
    /// Sums over the members. They may exceed the capacity.
    minima: u128,
    maxima: u128,
}

#[derive(Debug, Clone)]
struct AllocatedLink {
    request: VirtualLink,
    /// Allowed maximum, at most the smallest capacity of the path.
    maximum: u64,
    rate: ChosenRate,
}

/// Rate of a virtual link, in bit/s and in whole bit/s.
#[derive(Debug, Clone, Copy)]
struct ChosenRate {
    exact: f64,
    whole: Bps,
}

/// Effect of a change on the rates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RateChanges {
    /// Names of the virtual links whose rates were calculated: those that depend on a changed one.
    pub calculated: BTreeSet<String>,
    /// Rates in whole bit/s that are not as before, those of inserted virtual links included.
    pub changed: BTreeMap<String, Bps>,
}

impl SharedLink {
    /// Returns true if the members can fill the link.
    fn can_be_full(&self) -> bool {
        self.maxima > u128::from(self.capacity)
    }

    fn shortage(&self, name: &str) -> Option<CapacityShortage> {
        let is_short = self.minima > u128::from(self.capacity);
        let minima = Bps(u64::try_from(self.minima).unwrap_or(u64::MAX));
        is_short.then(|| CapacityShortage { link: name.to_owned(), capacity: Bps(self.capacity), minima })
    }
}

impl AllocatedLink {
    /// Returns true if only one rate is possible.
    fn is_static(&self) -> bool {
        self.request.minimum.0 == self.maximum
    }
}

impl LinkSharing {
    /// Returns a substrate without virtual links.
    ///
    /// # Errors
    /// Two links have one name, a capacity is out of range, or there are more than [`MAX_LINKS`] links.
    pub fn new(
        rule: SharingRule,
        links: impl IntoIterator<Item = SubstrateLink>,
    ) -> Result<LinkSharing, AllocationError> {
        let mut shared = BTreeMap::new();
        for link in links {
            link.check()?;
            let (name, capacity) = (link.name, link.capacity.0);
            let new = SharedLink { capacity, members: BTreeSet::new(), minima: 0, maxima: 0 };
            if shared.insert(name.clone(), new).is_some() {
                return Err(AllocationError::Duplicate { kind: "link", name });
            }
        }
        if shared.len() > MAX_LINKS {
            return Err(AllocationError::TooMany { kind: "link", found: shared.len() });
        }
        Ok(LinkSharing { rule, links: shared, virtual_links: BTreeMap::new() })
    }

    /// Returns the rate of a virtual link in whole bit/s, rounded down.
    pub fn rate(&self, name: &str) -> Option<Bps> {
        self.virtual_links.get(name).map(|allocated| allocated.rate.whole)
    }

    /// Returns the rate of a virtual link in bit/s.
    pub fn exact_rate(&self, name: &str) -> Option<f64> {
        self.virtual_links.get(name).map(|allocated| allocated.rate.exact)
    }

    /// Returns the virtual links with their rates in whole bit/s, in the order of their names.
    pub fn rates(&self) -> impl Iterator<Item = (&VirtualLink, Bps)> {
        self.virtual_links.values().map(|allocated| (&allocated.request, allocated.rate.whole))
    }

    /// Inserts a virtual link.
    ///
    /// # Errors
    /// Fails for the reasons of [`LinkSharing::change`].
    pub fn insert(&mut self, virtual_link: VirtualLink) -> Result<RateChanges, AllocationError> {
        self.change(&[], vec![virtual_link])
    }

    /// Removes a virtual link.
    ///
    /// # Errors
    /// Fails for the reasons of [`LinkSharing::change`].
    pub fn remove(&mut self, name: &str) -> Result<RateChanges, AllocationError> {
        self.change(&[name], Vec::new())
    }

    /// Removes and inserts virtual links at once. A virtual link that is in both lists is replaced.
    ///
    /// # Errors
    /// The minima would not fit, a request is malformed, or a virtual link to remove does not exist. Nothing is changed
    /// then.
    pub fn change(&mut self, removed: &[&str], inserted: Vec<VirtualLink>) -> Result<RateChanges, AllocationError> {
        self.check(removed, &inserted)?;
        let new: BTreeSet<String> = inserted.iter().map(|virtual_link| virtual_link.name.clone()).collect();
        let old: Vec<AllocatedLink> = removed.iter().filter_map(|name| self.detach(name)).collect();
        let paths = old.iter().map(|allocated| &allocated.request).chain(&inserted);
        let touched: BTreeSet<String> = paths.flat_map(|request| request.path.iter().cloned()).collect();
        for request in inserted {
            let maximum = self.maximum_of(&request);
            self.attach(AllocatedLink { request, maximum, rate: ChosenRate { exact: 0.0, whole: Bps(0) } });
        }
        match self.calculate(&touched) {
            Ok(rates) => Ok(self.store(rates, &new)),
            Err(error) => {
                new.iter().for_each(|name| drop(self.detach(name)));
                old.into_iter().for_each(|allocated| self.attach(allocated));
                Err(error)
            }
        }
    }

    fn check(&self, removed: &[&str], inserted: &[VirtualLink]) -> Result<(), AllocationError> {
        let mut gone = BTreeSet::new();
        for name in removed {
            if !self.virtual_links.contains_key(*name) || !gone.insert(*name) {
                return Err(AllocationError::NoVirtualLink { name: (*name).to_owned() });
            }
        }
        let found = self.virtual_links.len() - gone.len() + inserted.len();
        if found > MAX_LINKS {
            return Err(AllocationError::TooMany { kind: "virtual link", found });
        }
        let mut new = BTreeSet::new();
        for request in inserted {
            request.check()?;
            let name = &request.name;
            let is_there = self.virtual_links.contains_key(name) && !gone.contains(name.as_str());
            if is_there || !new.insert(name) {
                return Err(AllocationError::Duplicate { kind: "virtual link", name: name.clone() });
            }
            if let Some(link) = request.path.iter().find(|link| !self.links.contains_key(*link)) {
                return Err(AllocationError::UnknownLink { name: name.clone(), link: link.clone() });
            }
        }
        Ok(())
    }

    /// Returns the allowed maximum of a request, at most the smallest capacity of the path, at least the minimum.
    fn maximum_of(&self, request: &VirtualLink) -> u64 {
        let capacities = request.path.iter().map(|link| self.links[link].capacity);
        let asked = request.maximum.map_or(u64::MAX, |maximum| maximum.0);
        capacities.fold(asked, u64::min).max(request.minimum.0)
    }

    fn attach(&mut self, allocated: AllocatedLink) {
        let name = allocated.request.name.clone();
        for link in &allocated.request.path {
            let link = self.links.get_mut(link).expect("paths were checked");
            link.members.insert(name.clone());
            link.minima += u128::from(allocated.request.minimum.0);
            link.maxima += u128::from(allocated.maximum);
        }
        self.virtual_links.insert(name, allocated);
    }

    fn detach(&mut self, name: &str) -> Option<AllocatedLink> {
        let allocated = self.virtual_links.remove(name)?;
        for link in &allocated.request.path {
            let link = self.links.get_mut(link).expect("paths were checked");
            link.members.remove(name);
            link.minima -= u128::from(allocated.request.minimum.0);
            link.maxima -= u128::from(allocated.maximum);
        }
        Some(allocated)
    }

    /// Calculates the rates of all virtual links that depend on a member of these links.
    fn calculate(&self, touched: &BTreeSet<String>) -> Result<BTreeMap<String, ChosenRate>, AllocationError> {
        let shortages: Vec<_> = touched.iter().filter_map(|name| self.links[name].shortage(name)).collect();
        if !shortages.is_empty() {
            return Err(AllocationError::Shortage(shortages));
        }
        let mut rates = BTreeMap::new();
        for start in touched.iter().flat_map(|link| &self.links[link].members) {
            if !rates.contains_key(start) {
                rates.extend(self.calculate_with(start)?);
            }
        }
        Ok(rates)
    }

    /// Calculates the rates of all virtual links that depend on one.
    fn calculate_with(&self, start: &str) -> Result<Vec<(String, ChosenRate)>, AllocationError> {
        let (members, links) = self.dependent_on(start);
        if links.is_empty() {
            // Nothing limits it but its maximum.
            let maximum = self.virtual_links[start].maximum;
            let rate = ChosenRate { exact: maximum as f64, whole: Bps(maximum) };
            return Ok(vec![(start.to_owned(), rate)]);
        }
        let size = links.len() * links.len().max(members.len());
        if size > MAX_DEPENDENCIES {
            return Err(AllocationError::TooLarge { virtual_links: members.len(), links: links.len() });
        }
        let problem = self.problem(&members, &links);
        let exact = solve(self.rule, &problem)?;
        let whole = whole_rates(&problem, &exact);
        let rates = exact.into_iter().zip(whole).map(|(exact, whole)| ChosenRate { exact, whole: Bps(whole) });
        Ok(members.into_iter().map(str::to_owned).zip(rates).collect())
    }

    /// Returns the virtual links that depend on one, itself included, and the links that join them.
    fn dependent_on<'a>(&'a self, start: &'a str) -> (BTreeSet<&'a str>, BTreeSet<&'a str>) {
        let (mut members, mut links) = (BTreeSet::from([start]), BTreeSet::new());
        let mut open = vec![start];
        while let Some(name) = open.pop() {
            let allocated = &self.virtual_links[name];
            if allocated.is_static() {
                continue;
            }
            for link in allocated.request.path.iter().filter(|link| self.links[*link].can_be_full()) {
                if links.insert(link.as_str()) {
                    let others = self.links[link].members.iter().map(String::as_str);
                    let others = others.filter(|other| !self.virtual_links[*other].is_static());
                    open.extend(others.filter(|other| members.insert(other)));
                }
            }
        }
        (members, links)
    }

    fn problem(&self, names: &BTreeSet<&str>, links: &BTreeSet<&str>) -> SharingProblem {
        let place: BTreeMap<&str, usize> = names.iter().enumerate().map(|(place, name)| (*name, place)).collect();
        // Of links with the same members only the smallest can be full.
        let mut smallest: BTreeMap<Vec<usize>, u64> = BTreeMap::new();
        for link in links.iter().map(|name| &self.links[*name]) {
            let (dynamic, fixed): (Vec<&String>, Vec<&String>) =
                link.members.iter().partition(|name| place.contains_key(name.as_str()));
            let fixed: u64 = fixed.iter().map(|name| self.virtual_links[*name].maximum).sum();
            let members = dynamic.iter().map(|name| place[name.as_str()]).collect();
            let least = smallest.entry(members).or_insert(u64::MAX);
            *least = (*least).min(link.capacity - fixed);
        }
        let member = |name: &&str| {
            let AllocatedLink { request, maximum, .. } = &self.virtual_links[*name];
            let (lo, hi) = (request.minimum.0 as f64, *maximum as f64);
            ProblemMember { lo, hi, weight: request.weight, links: Vec::new() }
        };
        let mut members: Vec<ProblemMember> = names.iter().map(member).collect();
        for (link, through) in smallest.keys().enumerate() {
            through.iter().for_each(|index| members[*index].links.push(link));
        }
        SharingProblem { capacities: smallest.into_values().map(|capacity| capacity as f64).collect(), members }
    }

    fn store(&mut self, rates: BTreeMap<String, ChosenRate>, new: &BTreeSet<String>) -> RateChanges {
        let mut changes = RateChanges { calculated: rates.keys().cloned().collect(), ..RateChanges::default() };
        for (name, rate) in rates {
            let allocated = self.virtual_links.get_mut(&name).expect("its rate was calculated");
            let is_new = new.contains(&name) || allocated.rate.whole != rate.whole;
            allocated.rate = rate;
            if is_new {
                changes.changed.insert(name, rate.whole);
            }
        }
        changes
    }
}
