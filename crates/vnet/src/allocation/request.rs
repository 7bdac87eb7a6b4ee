//! Describes what is shared and what is asked for, and checks it.
use super::{AllocationError, MAX_CAPACITY, WEIGHTS};
use weir_units::Bps;

/// A link of the substrate, in one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubstrateLink {
    /// Name of the link, unique among substrate links.
    pub name: String,
    /// Capacity that virtual links share, 1 bit/s to [`MAX_CAPACITY`].
    pub capacity: Bps,
}

impl SubstrateLink {
    /// Returns a link with this capacity.
    pub fn new(name: impl Into<String>, capacity: Bps) -> SubstrateLink {
        SubstrateLink { name: name.into(), capacity }
    }

    pub(super) fn check(&self) -> Result<(), AllocationError> {
        if (1..=MAX_CAPACITY.0).contains(&self.capacity.0) {
            return Ok(());
        }
        Err(AllocationError::Capacity { link: self.name.clone(), found: self.capacity })
    }
}

/// A virtual link that is asked for, in one direction.
///
/// A new one has no guaranteed minimum, no maximum but the capacity of its path, and the weight 1.
#[derive(Debug, Clone, PartialEq)]
pub struct VirtualLink {
    /// Name of the virtual link, unique among virtual links.
    pub name: String,
    /// Names of the substrate links that carry it, each once.
    pub path: Vec<String>,
    /// Guaranteed minimum; 0 for none.
    pub minimum: Bps,
    /// Allowed maximum; `None` for the smallest capacity of the path.
    pub maximum: Option<Bps>,
    /// Weight among others, within [`WEIGHTS`].
    pub weight: f64,
}

impl VirtualLink {
    /// Returns a virtual link over these substrate links.
    pub fn new<L: Into<String>>(name: impl Into<String>, path: impl IntoIterator<Item = L>) -> VirtualLink {
        let path = path.into_iter().map(Into::into).collect();
        VirtualLink { name: name.into(), path, minimum: Bps(0), maximum: None, weight: 1.0 }
    }

    /// Sets the guaranteed minimum.
    #[must_use]
    pub fn at_least(mut self, minimum: Bps) -> VirtualLink {
        self.minimum = minimum;
        self
    }

    /// Sets the allowed maximum.
    #[must_use]
    pub fn at_most(mut self, maximum: Bps) -> VirtualLink {
        self.maximum = Some(maximum);
        self
    }

    /// Sets the guaranteed minimum and the allowed maximum.
    #[must_use]
    pub fn between(self, minimum: Bps, maximum: Bps) -> VirtualLink {
        self.at_least(minimum).at_most(maximum)
    }

    /// Sets a static reservation: the rate is guaranteed and never exceeded.
    #[must_use]
    pub fn fixed_at(self, rate: Bps) -> VirtualLink {
        self.between(rate, rate)
    }

    /// Sets the weight.
    #[must_use]
    pub fn weighing(mut self, weight: f64) -> VirtualLink {
        self.weight = weight;
        self
    }

    /// Checks all but the existence of the substrate links.
    pub(super) fn check(&self) -> Result<(), AllocationError> {
        let name = self.name.clone();
        if self.path.is_empty() {
            return Err(AllocationError::EmptyPath { name });
        }
        let repeated = self.path.iter().enumerate().find(|(place, link)| self.path[..*place].contains(link));
        if let Some((_, link)) = repeated {
            return Err(AllocationError::RepeatedLink { name, link: link.clone() });
        }
        if !WEIGHTS.contains(&self.weight) {
            return Err(AllocationError::Weight { name, found: self.weight });
        }
        match self.maximum {
            Some(Bps(0)) => Err(AllocationError::ZeroMaximum { name }),
            Some(maximum) if maximum < self.minimum => {
                Err(AllocationError::MaximumBelowMinimum { name, minimum: self.minimum, maximum })
            }
            _ => Ok(()),
        }
    }
}
