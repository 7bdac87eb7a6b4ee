//! Refusals of virtual links, with what binds and the nearest offer, and errors of malformed requests.
use std::fmt;
use std::time::Duration;
use weir_units::{Bps, ByteSize};

/// Resource that a refused virtual link lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BindingResource {
    /// Rate of a substrate link.
    Rate {
        /// Name of the link.
        link: String,
        /// Excess of the rates, overhead of frames included, over the capacity.
        missing: Bps,
    },
    /// Buffer of a substrate link: loss could not be excluded.
    Buffer {
        /// Name of the link.
        link: String,
        /// Excess of the largest backlog over the buffer.
        missing: ByteSize,
    },
    /// Delay that was to be promised.
    Delay {
        /// Bound of the delay, rounded up to a nanosecond.
        bound: Duration,
        /// Excess of the bound over the promise.
        missing: Duration,
        /// Substrate link with the largest share in the delay.
        slowest: String,
    },
    /// Delay that is promised to an admitted virtual link.
    Promise {
        /// Name of the admitted virtual link.
        virtual_link: String,
        /// Excess of the bound that its delay would have over the promise.
        missing: Duration,
    },
    /// Delay of a virtual link, which would have no bound below 10^6 s.
    Unbounded {
        /// Name of the virtual link.
        virtual_link: String,
    },
}

impl fmt::Display for BindingResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate { link, missing } => write!(f, "link {link} lacks {} of rate", missing.exact()),
            Self::Buffer { link, missing } => write!(f, "link {link} lacks {missing} of buffer"),
            Self::Delay { bound, missing, slowest } => write!(
                f,
                "the delay can be {bound:?}, which is {missing:?} more than promised, with most of it at link {slowest}"
            ),
            Self::Promise { virtual_link, missing } => {
                write!(f, "the delay promised to virtual link {virtual_link} would be exceeded by {missing:?}")
            }
            Self::Unbounded { virtual_link } => write!(f, "the delay of virtual link {virtual_link} has no bound"),
        }
    }
}

/// Changes of a refused request, each of which alone makes that it is admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NearestOffer {
    /// Largest rate that is admitted with the delay that was asked for. `None` if no rate is.
    pub rate: Option<Bps>,
    /// Least delay that can be promised at the rate that was asked for. `None` if a longer delay does not help.
    pub delay: Option<Duration>,
}

impl fmt::Display for NearestOffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.rate, self.delay) {
            (Some(rate), Some(delay)) => write!(f, "{} is possible, or a delay of {delay:?}", rate.exact()),
            (Some(rate), None) => write!(f, "{} is possible", rate.exact()),
            (None, Some(delay)) => write!(f, "a delay of {delay:?} is possible"),
            (None, None) => write!(f, "neither less rate nor more delay is enough"),
        }
    }
}

/// Error of an admission.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromiseError {
    /// The virtual link is refused.
    #[error("virtual link {name}: {}; {offer}", listed(.binding))]
    Refused {
        /// Name of the virtual link.
        name: String,
        /// Resources that it lacks, each. If rate is missing, nothing else is examined.
        binding: Vec<BindingResource>,
        /// Nearest requests that are admitted.
        offer: NearestOffer,
    },
    /// Paths of virtual links lead around a cycle. Bounds need that there is none.
    #[error("virtual link {name}: the paths of virtual links lead around a cycle: {}", .links.join(", "))]
    Cycle {
        /// Name of the virtual link that was asked for.
        name: String,
        /// Links, of which each feeds the next one and the last one feeds the first.
        links: Vec<String>,
    },
    /// A substrate link is malformed.
    #[error("link {link}: found {what}")]
    MalformedLink {
        /// Name of the link.
        link: String,
        /// Value that was found, and why it is not allowed.
        what: &'static str,
    },
    /// A request is malformed.
    #[error("virtual link {name}: found {what}")]
    MalformedDemand {
        /// Name of the virtual link.
        name: String,
        /// Value that was found, and why it is not allowed.
        what: &'static str,
    },
    /// Two substrate links or two virtual links have the same name.
    #[error("found {kind} {name} twice, expected a name of its own for each")]
    Duplicate {
        /// `link` or `virtual link`.
        kind: &'static str,
        /// Name of both.
        name: String,
    },
    /// A virtual link to release does not exist.
    #[error("found no virtual link {name}")]
    NoVirtualLink {
        /// Name that was given.
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
    /// More substrate links or virtual links than [`MAX_LINKS`](crate::allocation::MAX_LINKS).
    #[error("found {found} {kind}s, expected at most {}", crate::allocation::MAX_LINKS)]
    TooMany {
        /// `link` or `virtual link`.
        kind: &'static str,
        /// Number that was asked for.
        found: usize,
    },
    /// The overhead of frames is longer than [`MAX_PACKET`](super::MAX_PACKET).
    #[error("found an overhead of {found} for each frame, expected at most {}", super::MAX_PACKET)]
    Overhead {
        /// Overhead that was given.
        found: ByteSize,
    },
}

fn listed(binding: &[BindingResource]) -> String {
    binding.iter().map(BindingResource::to_string).collect::<Vec<_>>().join("; ")
}
