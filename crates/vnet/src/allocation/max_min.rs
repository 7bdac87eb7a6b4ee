//! Solves for max-min fairness by weight, by progressive filling.
//!
//! The level rises from 0, and each rate with it: weight times level, within the bounds. When a link is full, the rates
//! of its members are final: one that is above its minimum cannot rise without taking from a member whose rate by
//! weight is not larger, or that has its minimum. The others rise further. Links fill in the order of their levels, so
//! there are at most as many steps as links, each in closed form.
use super::component::{ProblemMember, SharingProblem, highest_level};

/// Levels at which links would be full.
pub(super) struct FillingLevels {
    /// Members through each link.
    through: Vec<Vec<usize>>,
    /// Level of each link; infinite if its members cannot fill it, or are all fixed.
    levels: Vec<f64>,
}

impl FillingLevels {
    pub(super) fn of(problem: &SharingProblem) -> FillingLevels {
        let links = problem.capacities.len();
        let mut filling = FillingLevels { through: problem.members_of_links(), levels: vec![f64::INFINITY; links] };
        (0..links).for_each(|link| filling.update(problem, link));
        filling
    }

    fn update(&mut self, problem: &SharingProblem, link: usize) {
        let terms: Vec<(f64, &ProblemMember)> =
            self.through[link].iter().map(|index| (1.0, &problem.members[*index])).collect();
        let is_open = terms.iter().any(|(_, member)| !member.is_fixed());
        self.levels[link] = if is_open { highest_level(&terms, problem.capacities[link]) } else { f64::INFINITY };
    }

    /// Takes into account that members were fixed.
    pub(super) fn fixed(&mut self, problem: &SharingProblem, members: &[usize]) {
        let mut links: Vec<usize> = members.iter().flat_map(|index| &problem.members[*index].links).copied().collect();
        links.sort_unstable();
        links.dedup();
        links.into_iter().for_each(|link| self.update(problem, link));
    }

    /// Returns the link that is full at the lowest level, and this level.
    pub(super) fn first(&self) -> Option<(usize, f64)> {
        let finite = self.levels.iter().copied().enumerate().filter(|(_, level)| level.is_finite());
        finite.min_by(|(_, one), (_, other)| one.total_cmp(other))
    }
}

/// Returns the max-min fair rates.
pub(super) fn max_min(mut problem: SharingProblem) -> Vec<f64> {
    let mut filling = FillingLevels::of(&problem);
    while let Some((link, level)) = filling.first() {
        let is_open = |member: &usize| !problem.members[*member].is_fixed();
        let members: Vec<usize> = filling.through[link].iter().copied().filter(is_open).collect();
        for member in &members {
            let rate = problem.members[*member].rate_at(level);
            problem.members[*member].fix(rate);
        }
        filling.fixed(&problem, &members);
    }
    // Nothing limits the rest but their maxima.
    problem.members.iter().map(|member| member.hi).collect()
}
