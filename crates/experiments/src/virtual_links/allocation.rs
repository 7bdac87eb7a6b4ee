//! Experiment `vlink-allocation`, Table 5.1: rates of virtual links with a minimum and a maximum that share a link, and
//! of drawn ones.
use super::drawn::{DrawnDemand, draw};
use crate::report::Claim;
use crate::{ExperimentError, ExperimentRun, SampledValue};
use weir_plot::{Axis, Chart, ChartPoint, ChartSeries};
use weir_traffic::RandomStream;
use weir_units::Bps;
use weir_vnet::allocation::{AllocationError, LinkSharing, SharingRule, SubstrateLink, VirtualLink, allocate};

/// Relative difference that counts as none.
const EQUAL: f64 = 1e-9;
/// Number of links of the drawn networks.
const NETWORK: usize = 5;
const RULES: [SharingRule; 3] = [SharingRule::MaximumSum, SharingRule::MaxMin, SharingRule::ProportionalFair];
const RATE: &str = "rate";
const LINK: &str = "link";
const VX_LINKS: [&str; 3] = ["VxLink 1", "VxLink 2", "VxLink 3"];

fn mbps(rate: u64) -> Bps {
    Bps(rate * 1_000_000)
}

fn failed(error: &AllocationError) -> ExperimentError {
    ExperimentError::Case(error.to_string())
}

/// Returns the virtual links of Table 5.1.
fn published_links() -> [VirtualLink; 3] {
    let [one, two, three] = VX_LINKS.map(|name| VirtualLink::new(name, [LINK]));
    [one.between(mbps(100), mbps(500)), two.between(mbps(800), mbps(1500)), three.fixed_at(mbps(300))]
}

/// Measures the published rates, then drawn ones.
pub(crate) fn measure(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    run.simulated = true;
    published(run)?;
    let mut one_link = OneLinkTally::default();
    let mut networks = NetworkTally::default();
    run.tell("drawn sets of virtual links");
    for number in 0..u64::from(run.sizes.replications) {
        if run.is_stopped() {
            return Ok(());
        }
        let mut random = RandomStream::new(run.options.seed, number, 0);
        one_link.add(&draw(&mut random, 1))?;
        networks.add(&draw(&mut random, NETWORK), &mut random)?;
    }
    one_link.report(run);
    networks.report(run);
    run.note("drawn sets of virtual links have one link or five; rates are compared with what defines the rule, calculated apart from the allocation");
    Ok(())
}

/// Allocates the rates of Table 5.1, before and after the third virtual link leaves, and at other capacities.
fn published(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    let mut sharing = LinkSharing::new(SharingRule::MaximumSum, [SubstrateLink::new(LINK, mbps(2000))])
        .map_err(|error| failed(&error))?;
    for virtual_link in published_links() {
        sharing.insert(virtual_link).map_err(|error| failed(&error))?;
    }
    add_rates(run, &sharing, "t1");
    sharing.remove(VX_LINKS[2]).map_err(|error| failed(&error))?;
    add_rates(run, &sharing, "t2");
    let rates = |text: &[f64]| text.iter().map(f64::to_string).collect::<Vec<_>>().join(", ") + " Mbit/s";
    run.claim(
        "three virtual links have exactly the published rates",
        ["t1, VxLink 1", "t1, VxLink 2", "t1, VxLink 3"].map(|case| (case, RATE)),
        |found| (found == [500.0, 1200.0, 300.0], rates(&found)),
    );
    run.claim(
        "the two that stay have exactly the published rates",
        ["t2, VxLink 1", "t2, VxLink 2"].map(|case| (case, RATE)),
        |found| (found == [500.0, 1500.0], rates(&found)),
    );
    let chart = by_capacity()?;
    run.plots.push(chart.into());
    Ok(())
}

fn add_rates(run: &mut ExperimentRun<'_>, sharing: &LinkSharing, time: &str) {
    let rates: Vec<(String, Bps)> =
        sharing.rates().map(|(one, rate)| (format!("{time}, {}", one.name), rate)).collect();
    for (case, rate) in rates {
        run.figure(&case, RATE, "Mbit/s", SampledValue::of(rate.0 as f64 / 1e6, 1));
    }
}

/// Returns a chart of the rates of Table 5.1 by the capacity of the link, from the sum of the minima on.
fn by_capacity() -> Result<Chart, ExperimentError> {
    let mut lines = VX_LINKS.map(|name| ChartSeries::line(name, Vec::new()));
    for capacity in (1200..=2500).step_by(50) {
        let link = SubstrateLink::new(LINK, mbps(capacity));
        let rates = allocate(SharingRule::MaximumSum, [link], &published_links()).map_err(|error| failed(&error))?;
        for (line, rate) in lines.iter_mut().zip(rates) {
            line.points.push(ChartPoint::new(capacity as f64, rate / 1e6));
        }
    }
    Ok(Chart {
        name: "rates".into(),
        title: "Rates of the virtual links of Table 5.1 by capacity".into(),
        x: Axis::linear("capacity, Mbit/s"),
        y: Axis::linear("rate, Mbit/s"),
        series: lines.into(),
    })
}

/// Largest errors of sets that share one link.
#[derive(Default)]
struct OneLinkTally {
    sets: u64,
    /// Relative difference of the sum from the smaller of the capacity and the sum of the maxima.
    sum: f64,
    /// Relative difference of a rate from its weight times the common level, within its bounds.
    rate: f64,
}

impl OneLinkTally {
    fn add(&mut self, demand: &DrawnDemand) -> Result<(), ExperimentError> {
        if !demand.short_links().is_empty() {
            return Ok(());
        }
        self.sets += 1;
        let maxima: u64 = (0..demand.virtual_links.len()).map(|index| demand.maximum(index)).sum();
        let largest = maxima.min(demand.links[0].capacity.0) as f64;
        let expected = common_level_rates(demand);
        for rule in RULES {
            let rates = allocate(rule, demand.links.clone(), &demand.virtual_links).map_err(|error| failed(&error))?;
            self.sum = self.sum.max((rates.iter().sum::<f64>() - largest).abs() / largest);
            for (rate, expected) in rates.iter().zip(&expected) {
                self.rate = self.rate.max((rate - expected).abs() / expected.max(1.0));
            }
        }
        Ok(())
    }

    fn report(&self, run: &mut ExperimentRun<'_>) {
        let case = "drawn, one link";
        run.figure(case, "largest difference of the sum", "ratio", SampledValue::of(self.sum, self.sets));
        run.figure(case, "largest difference of a rate", "ratio", SampledValue::of(self.rate, self.sets));
        let because = |difference: f64| format!("{difference:.1e} at most, {} sets", self.sets);
        run.claims.push(Claim::tested(
            "on one link the sum of the rates is the optimum: the capacity, or all maxima",
            self.sets > 0 && self.sum <= EQUAL,
            because(self.sum),
        ));
        run.claims.push(Claim::tested(
            "on one link each rule gives each virtual link its weight times a common level, within its bounds",
            self.sets > 0 && self.rate <= EQUAL,
            because(self.rate),
        ));
    }
}

/// Returns the rates at the highest common level that fits a single link, found by bisection.
fn common_level_rates(demand: &DrawnDemand) -> Vec<f64> {
    let rates = |level: f64| {
        let rate = |(index, one): (usize, &VirtualLink)| {
            (one.weight * level).clamp(one.minimum.0 as f64, demand.maximum(index) as f64)
        };
        demand.virtual_links.iter().enumerate().map(rate).collect::<Vec<f64>>()
    };
    let capacity = demand.links[0].capacity.0 as f64;
    let (mut low, mut high) = (0.0, capacity);
    while low < f64::midpoint(low, high) && f64::midpoint(low, high) < high {
        let middle = f64::midpoint(low, high);
        if rates(middle).iter().sum::<f64>() <= capacity { low = middle } else { high = middle }
    }
    rates(low)
}

/// Counts of sets that share a network.
#[derive(Default)]
struct NetworkTally {
    admitted: u64,
    refused: u64,
    /// Sets for which each statement of the claims does not hold.
    wrongly_refused: u64,
    refused_for_one_bit: u64,
    unfair: u64,
    smaller_sum: u64,
    order: u64,
}

impl NetworkTally {
    fn add(&mut self, demand: &DrawnDemand, random: &mut RandomStream) -> Result<(), ExperimentError> {
        let short = demand.short_links();
        let allocated = RULES.map(|rule| allocate(rule, demand.links.clone(), &demand.virtual_links));
        if !short.is_empty() {
            self.refused += 1;
            let names_them = |found: &Result<Vec<f64>, AllocationError>| match found {
                Err(AllocationError::Shortage(found)) => {
                    found.iter().map(|one| (one.link.clone(), one.missing().0)).eq(short.iter().cloned())
                }
                _ => false,
            };
            self.wrongly_refused += u64::from(!allocated.iter().all(names_them));
            self.refused_for_one_bit += u64::from(!binds_exactly(demand, &short));
            return Ok(());
        }
        self.admitted += 1;
        let [sum, fair, proportional] = allocated.map(|rates| rates.map_err(|error| failed(&error)));
        let (sum, fair, proportional) = (sum?, fair?, proportional?);
        let is_fair = (0..fair.len()).all(|index| is_limited(demand, &fair, index));
        self.unfair += u64::from(!is_fair);
        let total = |rates: &[f64]| rates.iter().sum::<f64>();
        let others = total(&fair).max(total(&proportional));
        self.smaller_sum += u64::from(total(&sum) < others * (1.0 - EQUAL));
        for (rule, at_once) in RULES.into_iter().zip([sum, fair, proportional]) {
            self.order += u64::from(one_by_one(rule, demand, random)? != at_once);
        }
        Ok(())
    }

    fn report(&self, run: &mut ExperimentRun<'_>) {
        let case = "drawn, network";
        run.figure(case, "sets admitted", "sets", SampledValue::of(self.admitted as f64, self.admitted + self.refused));
        run.figure(case, "sets refused", "sets", SampledValue::of(self.refused as f64, self.admitted + self.refused));
        for (text, wrong, of) in [
            (
                "requests that do not fit are refused with each link that binds and what it lacks",
                self.wrongly_refused,
                self.refused,
            ),
            (
                "with what a link lacks it admits all minima, and with one bit/s less it does not",
                self.refused_for_one_bit,
                self.refused,
            ),
            ("max-min fair rates cannot rise unless one that is not larger falls", self.unfair, self.admitted),
            ("no rule has a larger sum than the largest sum", self.smaller_sum, self.admitted),
            ("rates are equal to the last digit whatever the order of arrival", self.order, self.admitted),
        ] {
            run.claims.push(Claim::tested(text, of > 0 && wrong == 0, format!("{wrong} exceptions, {of} sets")));
        }
    }
}

/// Returns true if the demand is admitted once each link has what it lacks, and refused with one bit/s less on any.
fn binds_exactly(demand: &DrawnDemand, short: &[(String, u64)]) -> bool {
    let admitted = |but: Option<&str>| {
        let mut links = demand.links.clone();
        for link in &mut links {
            let missing = short.iter().find(|(name, _)| *name == link.name).map_or(0, |(_, missing)| *missing);
            link.capacity.0 += missing - u64::from(but == Some(link.name.as_str()));
        }
        allocate(SharingRule::MaxMin, links, &demand.virtual_links).is_ok()
    };
    admitted(None) && !short.iter().any(|(name, _)| admitted(Some(name)))
}

/// Returns true if a rate cannot rise unless one that is not larger, by weight, falls.
fn is_limited(demand: &DrawnDemand, rates: &[f64], index: usize) -> bool {
    let by_weight = |index: usize| rates[index] / demand.virtual_links[index].weight;
    let limits = |name: &String| {
        let capacity = demand.links.iter().find(|link| link.name == *name).map_or(0.0, |link| link.capacity.0 as f64);
        let load: f64 = demand.through(name).map(|(other, _)| rates[other]).sum();
        // A minimum is not lowered for the sake of another.
        let mut lowered =
            demand.through(name).filter(|(other, one)| rates[*other] > one.minimum.0 as f64 * (1.0 + EQUAL));
        let is_full = load >= capacity * (1.0 - EQUAL);
        is_full && lowered.all(|(other, _)| by_weight(other) <= by_weight(index) * (1.0 + EQUAL))
    };
    rates[index] >= demand.maximum(index) as f64 || demand.virtual_links[index].path.iter().any(limits)
}

/// Returns the rates after the virtual links have arrived one by one in a drawn order, and every third has left and
/// returned.
fn one_by_one(rule: SharingRule, demand: &DrawnDemand, random: &mut RandomStream) -> Result<Vec<f64>, ExperimentError> {
    let mut sharing = LinkSharing::new(rule, demand.links.clone()).map_err(|error| failed(&error))?;
    let mut order: Vec<(u64, &VirtualLink)> =
        demand.virtual_links.iter().map(|one| (random.below(u64::MAX), one)).collect();
    order.sort_by_key(|(rank, _)| *rank);
    for (_, one) in &order {
        sharing.insert((*one).clone()).map_err(|error| failed(&error))?;
    }
    for (_, one) in order.iter().step_by(3) {
        sharing.remove(&one.name).map_err(|error| failed(&error))?;
        sharing.insert((*one).clone()).map_err(|error| failed(&error))?;
    }
    Ok(demand.virtual_links.iter().filter_map(|one| sharing.exact_rate(&one.name)).collect())
}
