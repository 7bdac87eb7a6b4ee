//! Errors of allocation: requests that do not fit, and malformed ones.
use std::fmt;
use weir_units::Bps;

/// A substrate link whose capacity is less than the minima of its virtual links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapacityShortage {
    /// Name of the substrate link.
    pub link: String,
    /// Capacity of the link.
    pub capacity: Bps,
    /// Sum of the minima of all virtual links through it, those asked for included.
    pub minima: Bps,
}

impl CapacityShortage {
    /// Returns what the minima exceed the capacity by.
    pub fn missing(&self) -> Bps {
        Bps(self.minima.0.saturating_sub(self.capacity.0))
    }
}

impl fmt::Display for CapacityShortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [minima, capacity, missing] = [self.minima, self.capacity, self.missing()].map(Bps::exact);
        write!(f, "{}: minima of {minima}, capacity of {capacity}, {missing} are missing", self.link)
    }
}

/// Error of an allocation.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AllocationError {
    /// The minima do not fit. Each substrate link that lacks capacity is listed, in the order of names.
    #[error("the guaranteed minima do not fit: {}", listed(.0))]
    Shortage(Vec<CapacityShortage>),
    /// The capacity of a substrate link is out of range.
    #[error("link {link}: found a capacity of {}, expected 1bit/s to {}", .found.exact(), super::MAX_CAPACITY)]
    Capacity {
        /// Name of the substrate link.
        link: String,
        /// Capacity that was given.
        found: Bps,
    },
    /// Two substrate links or two virtual links have the same name.
    #[error("found {kind} {name} twice, expected a name of its own for each")]
    Duplicate {
        /// `link` or `virtual link`.
        kind: &'static str,
        /// Name of both.
        name: String,
    },
    /// A virtual link to remove does not exist.
    #[error("found no virtual link {name}")]
    NoVirtualLink {
        /// Name that was given.
        name: String,
    },
    /// The path of a virtual link has no substrate link.
    #[error("virtual link {name}: found an empty path, expected one substrate link or several")]
    EmptyPath {
        /// Name of the virtual link.
        name: String,
    },
    /// The path of a virtual link names a substrate link that does not exist.
    #[error("virtual link {name}: found no link {link}, which its path names")]
    UnknownLink {
        /// Name of the virtual link.
        name: String,
        /// Name of the missing substrate link.
        link: String,
    },
    /// The path of a virtual link names a substrate link twice.
    #[error("virtual link {name}: found link {link} twice in its path, expected each link once")]
    RepeatedLink {
        /// Name of the virtual link.
        name: String,
        /// Name of the substrate link.
        link: String,
    },
    /// The allowed maximum is zero.
    #[error("virtual link {name}: found a maximum of 0bit/s, expected one above zero")]
    ZeroMaximum {
        /// Name of the virtual link.
        name: String,
    },
    /// The allowed maximum is less than the guaranteed minimum.
    #[error("virtual link {name}: found a maximum of {} below the minimum of {}", .maximum.exact(), .minimum.exact())]
    MaximumBelowMinimum {
        /// Name of the virtual link.
        name: String,
        /// Guaranteed minimum.
        minimum: Bps,
        /// Allowed maximum.
        maximum: Bps,
    },
    /// The weight is no number, not positive, or out of range.
    #[error(
        "virtual link {name}: found the weight {found}, expected {} to {}",
        super::WEIGHTS.start(), super::WEIGHTS.end()
    )]
    Weight {
        /// Name of the virtual link.
        name: String,
        /// Weight that was given.
        found: f64,
    },
    /// More substrate links or virtual links than [`MAX_LINKS`](super::MAX_LINKS).
    #[error("found {found} {kind}s, expected at most {}", super::MAX_LINKS)]
    TooMany {
        /// `link` or `virtual link`.
        kind: &'static str,
        /// Number that was asked for.
        found: usize,
    },
    /// Virtual links that depend on each other exceed [`MAX_DEPENDENCIES`](super::MAX_DEPENDENCIES).
    #[error(
        "{virtual_links} virtual links share {links} links that can become full: the product is more than {}",
        super::MAX_DEPENDENCIES
    )]
    TooLarge {
        /// Number of virtual links that depend on each other.
        virtual_links: usize,
        /// Number of substrate links that join them.
        links: usize,
    },
    /// The iteration ended without rates that its certificate accepts.
    #[error("no rates were certified: the best ones miss a capacity by a share of {residual:e}, expected {limit:e}")]
    Uncertified {
        /// Largest relative difference from the conditions of an optimum.
        residual: f64,
        /// Largest difference that is accepted.
        limit: f64,
    },
}

fn listed(shortages: &[CapacityShortage]) -> String {
    shortages.iter().map(CapacityShortage::to_string).collect::<Vec<_>>().join("; ")
}
