//! Describes a network at the level of lengths and classes: sources, their lines, fabrics cut into virtual switches,
//! and the paths of packets through them.
use std::collections::HashMap;
use std::time::Duration;
use weir_fabric::{FabricConfig, FabricError, SplitError, SplitPolicy, VirtualSwitchConfig};
use weir_traffic::{OfferedPackets, TrafficError};
use weir_units::{Bps, Instant};

/// Limit on the number of fabrics, lines, sources, groups and paths of a model, for each of them.
pub const MAX_PARTS: usize = 1 << 16;

/// Network of fabrics and the traffic offered to it.
#[derive(Debug, Clone, Default)]
pub struct FabricNetwork {
    /// Fabrics; hops name them by index.
    pub fabrics: Vec<FabricModel>,
    /// Lines on which packets arrive; sources name them by index.
    pub lines: Vec<LineModel>,
    /// Sources of packets.
    pub sources: Vec<FabricSource>,
    /// Groups in which packets are measured together. Each path names one.
    pub groups: Vec<MeasurementGroup>,
}

/// Fabric and the virtual switches it is cut into.
#[derive(Debug, Clone, Default)]
pub struct FabricModel {
    /// Configuration of inputs, outputs and buffers.
    pub config: FabricConfig,
    /// Virtual switches; hops name them by index.
    pub switches: Vec<VirtualSwitchConfig>,
}

/// Line between sources and the first fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineModel {
    /// Packets are sent one after another at this rate and arrive with their last bit. Up to
    /// [`MAX_ON_LINE`](crate::engine::MAX_ON_LINE) packets wait for the line. The wait is not part of the measured
    /// delay.
    Serial(Bps),
    /// Packets arrive at the instant they are made.
    Point,
}

/// Source of packets.
#[derive(Debug, Clone)]
pub struct FabricSource {
    /// Index of the line it sends on.
    pub line: usize,
    /// Packets it offers: their times and sizes.
    pub traffic: OfferedPackets,
    /// Time at which the source begins.
    pub start: Instant,
    /// Time at which the source ends; it ends with the run's window if that is earlier.
    pub stop: Instant,
    /// Rule that chooses a path for each packet.
    pub split: PathSplit,
    /// Paths that its packets may take, at least one.
    pub paths: Vec<FabricPath>,
}

/// Rule that distributes packets over paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PathSplit {
    /// Each packet takes a random path, with probabilities by the paths' shares.
    #[default]
    Random,
    /// Packets are distributed as by a virtual link's classifier ([`PathSplitter`](weir_fabric::PathSplitter)). Its
    /// weights are the paths' shares, which must be whole numbers.
    Link(SplitPolicy),
}

/// Path through fabrics.
#[derive(Debug, Clone)]
pub struct FabricPath {
    /// Share of the packets, relative to the shares of the source's other paths.
    pub share: f64,
    /// Index of the group in which its packets are measured.
    pub group: usize,
    /// Class of its packets.
    pub class: u8,
    /// Queues on the path in order, 1 to 255.
    pub hops: Vec<FabricHop>,
}

/// Queue on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FabricHop {
    /// Index of the fabric.
    pub fabric: usize,
    /// Index of the virtual switch in that fabric.
    pub switch: usize,
    /// Index of the fabric's input.
    pub input: u16,
    /// Index of the fabric's output.
    pub output: u16,
    /// Delay from the last bit sent to the arrival at the next hop. All paths over one output must have an equal
    /// delay.
    pub delay: Duration,
}

/// Group of packets that are measured together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MeasurementGroup {
    /// Name of the virtual switch.
    pub switch: String,
    /// Name of the port that the packets leave by.
    pub port: String,
    /// Class of the packets.
    pub class: u8,
}

/// Time window in which packets count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimulationWindow {
    /// Time before the window.
    pub warm_up: Duration,
    /// Length of the window after the warm-up. Packets that arrive in it count. At its end sources stop and queues
    /// drain.
    pub length: Duration,
}

impl SimulationWindow {
    /// Returns the begin and the end of the window.
    pub(crate) fn bounds(&self) -> [Instant; 2] {
        let begin = Instant::ZERO + self.warm_up;
        [begin, begin + self.length]
    }
}

/// Reason why a model cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum FabricNetworkError {
    /// The described traffic of a source is not possible.
    #[error("source {source_index}: {error}")]
    Traffic {
        /// Index of the source.
        source_index: usize,
        /// Problem with the traffic.
        error: TrafficError,
    },
    /// The packets of a source cannot be distributed over its paths as described.
    #[error("source {source_index}: {error}")]
    Split {
        /// Index of the source.
        source_index: usize,
        /// Problem with the split.
        error: SplitError,
    },
    /// A fabric cannot be made.
    #[error("fabric {fabric}: {error}")]
    Fabric {
        /// Index of the fabric.
        fabric: usize,
        /// Problem with the fabric.
        error: FabricError,
    },
    /// The fabric does not admit a virtual switch.
    #[error("{0}")]
    Refused(weir_fabric::AdmissionError),
    /// An index does not exist, or a number is out of its limits.
    #[error("{what}: found {found}, expected {expected}")]
    Index {
        /// Part of the model that has the wrong value.
        what: String,
        /// Value found in the model.
        found: String,
        /// Description of valid values.
        expected: String,
    },
}

impl FabricNetwork {
    /// Checks that all indices exist, that counts and shares are within their limits, and that delays over one output
    /// agree.
    ///
    /// # Errors
    /// The first problem found.
    pub fn check(&self) -> Result<(), FabricNetworkError> {
        let wrong =
            |what: String, found: String, expected: String| Err(FabricNetworkError::Index { what, found, expected });
        for (what, count) in [
            ("fabrics", self.fabrics.len()),
            ("lines", self.lines.len()),
            ("sources", self.sources.len()),
            ("groups", self.groups.len()),
            ("paths", self.sources.iter().map(|source| source.paths.len()).sum()),
        ] {
            if count > MAX_PARTS {
                return wrong(what.to_owned(), count.to_string(), format!("at most {MAX_PARTS}"));
            }
        }
        let mut delays = HashMap::new();
        for (number, source) in self.sources.iter().enumerate() {
            let what = |part: &str| format!("source {number}: {part}");
            if source.line >= self.lines.len() {
                return wrong(what("line"), source.line.to_string(), format!("one of {}", self.lines.len()));
            }
            let shares: f64 = source.paths.iter().map(|path| path.share).sum();
            let is_share = |path: &FabricPath| path.share.is_finite() && path.share >= 0.0;
            if !(shares > 0.0 && source.paths.iter().all(is_share)) {
                return wrong(what("paths"), format!("shares of {shares} in all"), "at least one above 0".into());
            }
            for path in &source.paths {
                if path.group >= self.groups.len() {
                    return wrong(what("group"), path.group.to_string(), format!("one of {}", self.groups.len()));
                }
                if path.hops.is_empty() || path.hops.len() > usize::from(u8::MAX) {
                    return wrong(what("hops"), path.hops.len().to_string(), "1 to 255".into());
                }
                path.hops.iter().try_for_each(|hop| self.check_hop(number, hop))?;
                for hop in path.hops.iter().rev().skip(1) {
                    let known = *delays.entry((hop.fabric, hop.output)).or_insert(hop.delay);
                    if known != hop.delay {
                        return wrong(
                            what("delay"),
                            format!("{:?}", hop.delay),
                            format!("{known:?} as on other paths"),
                        );
                    }
                }
            }
        }
        Ok(())
    }

    fn check_hop(&self, source: usize, hop: &FabricHop) -> Result<(), FabricNetworkError> {
        let FabricHop { fabric, switch, input, output, .. } = *hop;
        let found = self.fabrics.get(fabric);
        let is_there = found.is_some_and(|found| {
            switch < found.switches.len()
                && usize::from(input) < found.config.inputs.len()
                && usize::from(output) < found.config.outputs.len()
        });
        if is_there {
            return Ok(());
        }
        Err(FabricNetworkError::Index {
            what: format!("source {source}: hop"),
            found: format!("fabric {fabric}, virtual switch {switch}, input {input}, output {output}"),
            expected: "indices of the model".into(),
        })
    }
}
