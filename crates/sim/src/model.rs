//! What is simulated at the level of lengths and classes: sources, the lines they come by, fabrics cut into virtual switches, and the
//! paths that packets take through them.
use std::collections::HashMap;
use std::time::Duration;
use weir_fabric::{FabricConfig, FabricError, SplitBy, SplitError, VirtualSwitchConfig};
use weir_traffic::{Offered, TrafficError};
use weir_units::{Bps, Instant};

/// Most sources, lines, paths and groups of a model, each.
pub const MAX_PARTS: usize = 1 << 16;

/// A network of fabrics and what is offered to it.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// The fabrics.
    pub fabrics: Vec<FabricModel>,
    /// The lines by which packets come in.
    pub lines: Vec<LineModel>,
    /// The sources.
    pub sources: Vec<Source>,
    /// What packets are measured together as: paths name one each.
    pub groups: Vec<Group>,
}

/// A fabric, and the virtual switches it is cut into.
#[derive(Debug, Clone, Default)]
pub struct FabricModel {
    /// Its inputs, outputs and buffers.
    pub config: FabricConfig,
    /// Its virtual switches; hops count them from 0.
    pub switches: Vec<VirtualSwitchConfig>,
}

/// The line in front of inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineModel {
    /// Packets are sent one after the other at this rate and are there with their last bit. They wait for the line unbounded but for
    /// [`MAX_ON_LINE`](crate::engine::MAX_ON_LINE); the wait is no delay of the network.
    Serial(Bps),
    /// Packets are there the instant they are made.
    Point,
}

/// Something that makes packets.
#[derive(Debug, Clone)]
pub struct Source {
    /// The line it sends by.
    pub line: usize,
    /// What it makes.
    pub traffic: Offered,
    /// When it begins.
    pub start: Instant,
    /// When it ends at the latest; the run's end if that is earlier.
    pub stop: Instant,
    /// How its packets are shared out to its paths.
    pub split: Split,
    /// The paths that its packets may take, at least one.
    pub paths: Vec<Path>,
}

/// How packets are shared out to paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Split {
    /// Each at random, by the paths' shares.
    #[default]
    Random,
    /// As a virtual link's classifier does ([`Splitter`](weir_fabric::Splitter)), by the paths' shares, which are whole numbers then.
    Link(SplitBy),
}

/// A way through fabrics.
#[derive(Debug, Clone)]
pub struct Path {
    /// Its share of the packets, beside the other paths' shares.
    pub share: f64,
    /// What its packets are measured as.
    pub group: usize,
    /// Their class.
    pub class: u8,
    /// The queues on the way, at least one.
    pub hops: Vec<Hop>,
}

/// A queue on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// Index of the fabric.
    pub fabric: usize,
    /// Index of the virtual switch there.
    pub switch: usize,
    /// The input.
    pub input: u16,
    /// The output.
    pub output: u16,
    /// From the last bit sent to the arrival at the next hop; the same for all paths over an output.
    pub delay: Duration,
}

/// What packets are measured together as.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// The virtual switch.
    pub switch: String,
    /// The port that they leave by.
    pub port: String,
    /// Their class.
    pub class: u8,
}

/// When a run counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Time before packets count.
    pub warm_up: Duration,
    /// Time in which arriving packets count, after the warm-up. Then sources end and queues drain.
    pub length: Duration,
}

impl Window {
    /// When counting begins and ends.
    pub(crate) fn bounds(&self) -> [Instant; 2] {
        let begin = Instant::ZERO + self.warm_up;
        [begin, begin + self.length]
    }
}

/// Why a model cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A source's traffic cannot be as described.
    #[error("source {source_index}: {error}")]
    Traffic {
        /// The source's index.
        source_index: usize,
        /// What is wrong with it.
        error: TrafficError,
    },
    /// A source's packets cannot be shared out as described.
    #[error("source {source_index}: {error}")]
    Split {
        /// The source's index.
        source_index: usize,
        /// What is wrong with it.
        error: SplitError,
    },
    /// A fabric cannot be made.
    #[error("fabric {fabric}: {error}")]
    Fabric {
        /// Its index.
        fabric: usize,
        /// Why.
        error: FabricError,
    },
    /// A virtual switch is not admitted.
    #[error("{0}")]
    Refused(weir_fabric::Refused),
    /// Something names what is not there.
    #[error("{what}: found {found}, expected {expected}")]
    Index {
        /// What names it.
        what: String,
        /// What is named.
        found: String,
        /// What there is.
        expected: String,
    },
}

impl Model {
    /// Whether everything that is named is there.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), ModelError> {
        let wrong = |what: String, found: String, expected: String| Err(ModelError::Index { what, found, expected });
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
            let is_share = |path: &Path| path.share.is_finite() && path.share >= 0.0;
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

    fn check_hop(&self, source: usize, hop: &Hop) -> Result<(), ModelError> {
        let Hop { fabric, switch, input, output, .. } = *hop;
        let found = self.fabrics.get(fabric);
        let is_there = found.is_some_and(|found| {
            switch < found.switches.len()
                && usize::from(input) < found.config.inputs.len()
                && usize::from(output) < found.config.outputs.len()
        });
        if is_there {
            return Ok(());
        }
        Err(ModelError::Index {
            what: format!("source {source}: hop"),
            found: format!("fabric {fabric}, virtual switch {switch}, input {input}, output {output}"),
            expected: "indices of the model".into(),
        })
    }
}
