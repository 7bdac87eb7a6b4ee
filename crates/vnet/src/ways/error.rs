//! Refusals of virtual links that find no way, with the reason for each way and the nearest offers, and other errors.
use crate::admission::{BindingResource, PromiseError};
use std::fmt;
use std::time::Duration;
use weir_units::Bps;

/// Reason why a way was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WayObstacle {
    /// Resources that the way lacks, each. If rate is missing, nothing else is examined.
    Lacks(Vec<BindingResource>),
    /// Links that the way would close to a cycle with virtual links that are there: each feeds the next one, and the
    /// last one feeds the first.
    Cycle(Vec<String>),
}

/// A way that was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedWay {
    /// Names of its links.
    pub path: Vec<String>,
    /// Reason why it was not taken.
    pub obstacle: WayObstacle,
}

/// A changed request that would be admitted in place of a refused one. Each was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WayOffer {
    /// Less rate, with all else as it was asked for. Of a virtual link that is not split this is the largest rate that
    /// is admitted on the ways that were examined: 1 bit/s more is refused.
    Rate(Bps),
    /// More delay, with all else as it was asked for. Of a virtual link that is not split this is the least delay that
    /// is admitted on the ways that were examined: 1 ns less is refused.
    Delay(Duration),
    /// Ways that the request excludes.
    OtherWay {
        /// True if the ways pass what was to be avoided: the offer is the request without `avoid`.
        without_avoid: bool,
        /// True if the ways do not pass the waypoints: the offer is the request without `through`.
        without_through: bool,
        /// Links of each way.
        paths: Vec<Vec<String>>,
    },
    /// More ways: the offer is the request with this largest number of ways.
    MoreWays(usize),
}

impl fmt::Display for WayOffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(rate) => write!(f, "{} is possible", rate.exact()),
            Self::Delay(delay) => write!(f, "a delay of {delay:?} is possible"),
            Self::OtherWay { without_avoid, without_through, paths } => {
                let without = match (without_avoid, without_through) {
                    (true, true) => "without `avoid` and `through`",
                    (true, false) => "without `avoid`",
                    _ => "without `through`",
                };
                let paths: Vec<String> = paths.iter().map(|path| path.join(", ")).collect();
                write!(f, "it is possible {without}, over {}", paths.join(" and "))
            }
            Self::MoreWays(ways) => write!(f, "it is possible over {ways} ways"),
        }
    }
}

/// Error of a request for a virtual link between places of a substrate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WayError {
    /// No way, and no set of ways, is admitted.
    #[error("virtual link {name}: {}; {}", obstacles(.ways), offered(.offers))]
    Refused {
        /// Name of the virtual link.
        name: String,
        /// Ways that were examined, the preferred first. Empty if there is no way that keeps to `avoid` and `through`.
        ways: Vec<RefusedWay>,
        /// Changed requests that would be admitted.
        offers: Vec<WayOffer>,
    },
    /// A promise or a link is malformed, or a name is used twice.
    #[error(transparent)]
    Promise(#[from] PromiseError),
    /// A request is malformed.
    #[error("virtual link {name}: found {what}")]
    MalformedRequest {
        /// Name of the virtual link.
        name: String,
        /// Value that was found, and why it is not allowed.
        what: &'static str,
    },
    /// A link of the substrate is malformed.
    #[error("link {link}: found {what}")]
    MalformedLink {
        /// Name of the link.
        link: String,
        /// Value that was found.
        what: &'static str,
    },
    /// Two switches, or a switch and a host, have the same name.
    #[error("found {kind} {name} twice, expected a name of its own for each")]
    Duplicate {
        /// Kind of both.
        kind: &'static str,
        /// Name of both.
        name: String,
    },
    /// A link, a host or a virtual link names a place that does not exist.
    #[error("{what}: found no switch or host {place}")]
    UnknownPlace {
        /// Item that names the place.
        what: String,
        /// Name that was given.
        place: String,
    },
    /// More switches or links than a substrate may have.
    #[error("found {found} {kind}, expected at most {most}")]
    TooMany {
        /// `switches` or `links`.
        kind: &'static str,
        /// Number that was given.
        found: usize,
        /// Largest number.
        most: usize,
    },
    /// A number of the settings is out of range.
    #[error("found {found} ways to examine, expected 1 to {most}")]
    Settings {
        /// Number that was given.
        found: usize,
        /// Largest number.
        most: usize,
    },
}

/// Returns the text of what stands against ways.
pub(crate) fn obstacles(ways: &[RefusedWay]) -> String {
    let is_cycle = |way: &&RefusedWay| matches!(way.obstacle, WayObstacle::Cycle(_));
    let cycles = ways.iter().filter(is_cycle).count();
    let lacking = ways.iter().find_map(|way| match &way.obstacle {
        WayObstacle::Lacks(binding) => Some((way, binding)),
        WayObstacle::Cycle(_) => None,
    });
    match (lacking, ways) {
        (None, []) => "there is no way that keeps to `avoid` and `through`".to_owned(),
        (None, [first, ..]) => {
            let links = if let WayObstacle::Cycle(links) = &first.obstacle { links.join(", ") } else { String::new() };
            let all = if ways.len() == 1 { "the only way".to_owned() } else { format!("each of {} ways", ways.len()) };
            format!("{all} would lead around a cycle, such as {links}")
        }
        (Some((way, binding)), _) => {
            let binding: Vec<String> = binding.iter().map(BindingResource::to_string).collect();
            let mut text = format!("on the way {}, {}", way.path.join(", "), binding.join("; "));
            let others = ways.len() - cycles - 1;
            if others > 0 {
                text += &format!("; {others} more lacked something too");
            }
            if cycles > 0 {
                text += &format!("; {cycles} would lead around a cycle");
            }
            text
        }
    }
}

fn offered(offers: &[WayOffer]) -> String {
    if offers.is_empty() {
        return "no smaller change is enough".to_owned();
    }
    offers.iter().map(WayOffer::to_string).collect::<Vec<_>>().join(", or ")
}
