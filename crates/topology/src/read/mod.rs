//! Reads topologies from files.
//!
//! | ending | format |
//! |---|---|
//! | `.graphml` | GraphML of the Internet Topology Zoo |
//! | `.json` | node-link JSON of TopoHub (SNDlib, Topology Zoo, backbones), and of weir itself |
//! | `.xml` | SNDlib's native XML |
//! | `.intra` | Rocketfuel's links inside one provider: `NAME NAME NUMBER` |
mod graphml;
pub(crate) mod node_link;
mod rocketfuel;
mod sndlib;

use crate::{GeoLocation, MAX_LINKS, MAX_NODES, Topology, TopologyError, TopologyLink, TopologyNode};
use std::collections::HashMap;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;
use weir_units::Bps;

/// Maximum file size in bytes.
const MAX_BYTES: u64 = 64 << 20;
/// Maximum number of nodes of an XML document, including texts and attributes.
const MAX_XML_NODES: u32 = 4_000_000;

/// Reads a topology from a file, in the format of the file's ending.
///
/// # Errors
/// The file cannot be read, has no known format, or is inconsistent: a link to a missing node, a node joined to
/// itself, or too many nodes or links. Parallel links and unconnected components are accepted.
pub fn read(path: &Path) -> Result<Topology, TopologyError> {
    let file = path.display().to_string();
    let cannot = |error: std::io::Error| TopologyError::new(&file, None, format!("cannot read the topology: {error}"));
    let mut bytes = Vec::new();
    std::fs::File::open(path).map_err(cannot)?.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > MAX_BYTES {
        let problem = format!("found a file of more than {} MiB, expected at most that", MAX_BYTES >> 20);
        return Err(TopologyError::new(&file, None, problem));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count();
        TopologyError::new(&file, Some(line), "found bytes that are no UTF-8, expected text")
    })?;
    read_text(&text, &file)
}

/// Reads a topology from a text. The ending of `file` determines the format; errors name `file`.
///
/// # Errors
/// Fails for the reasons of [`read()`].
pub fn read_text(text: &str, file: &str) -> Result<Topology, TopologyError> {
    let path = Path::new(file);
    let mut builder = TopologyBuilder::new(file);
    match path.extension().and_then(|ending| ending.to_str()).unwrap_or_default() {
        "graphml" => graphml::read(text, &mut builder)?,
        "json" => node_link::read(text, &mut builder)?,
        "xml" => sndlib::read(text, &mut builder)?,
        "intra" => rocketfuel::read(text, &mut builder)?,
        found => {
            let expected = "expected .graphml (Topology Zoo), .json (TopoHub), .xml (SNDlib) or .intra (Rocketfuel)";
            return Err(builder.error(None, format!("found the ending `{found}`, {expected}")));
        }
    }
    let TopologyBuilder { mut made, has_all_delays, .. } = builder;
    if made.nodes.is_empty() {
        return Err(TopologyError::new(file, None, "found no nodes, expected at least one"));
    }
    made.name = made.name.or_else(|| path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
    if !has_all_delays {
        made.delays_from_places();
    }
    Ok(made)
}

/// A topology being read, with node indices by the identifiers of the file.
struct TopologyBuilder<'a> {
    file: &'a str,
    made: Topology,
    known: HashMap<String, usize>,
    /// True if the file has all delays that are known, so that none is worked out from places.
    has_all_delays: bool,
}

/// Properties of a link besides its ends.
#[derive(Default)]
struct LinkProperties {
    rate: Option<Bps>,
    delay: Option<Duration>,
    ports: Option<[u32; 2]>,
}

impl<'a> TopologyBuilder<'a> {
    fn new(file: &'a str) -> TopologyBuilder<'a> {
        TopologyBuilder { file, made: Topology::default(), known: HashMap::new(), has_all_delays: false }
    }

    fn error(&self, line: Option<usize>, problem: impl Into<String>) -> TopologyError {
        TopologyError::new(self.file, line, problem)
    }

    fn node(
        &mut self,
        id: &str,
        name: Option<&str>,
        place: Option<GeoLocation>,
        line: Option<usize>,
    ) -> Result<usize, TopologyError> {
        if self.made.nodes.len() >= MAX_NODES {
            return Err(self.error(line, format!("found more than {MAX_NODES} nodes, expected at most that")));
        }
        let number = self.made.nodes.len();
        if self.known.insert(id.to_owned(), number).is_some() {
            return Err(self.error(line, format!("node: found `{id}` twice, expected each once")));
        }
        let name = name.map(str::trim).filter(|name| !name.is_empty()).unwrap_or(id).to_owned();
        self.made.nodes.push(TopologyNode { name, place, takes_hosts: true, dpid: None, line });
        Ok(number)
    }

    fn end(&self, id: &str, line: Option<usize>) -> Result<usize, TopologyError> {
        let found = self.known.get(id).copied();
        found.ok_or_else(|| self.error(line, format!("link: found the node `{id}`, which there is not")))
    }

    fn link(&mut self, ends: [&str; 2], about: LinkProperties, line: Option<usize>) -> Result<(), TopologyError> {
        if self.made.links.len() >= MAX_LINKS {
            return Err(self.error(line, format!("found more than {MAX_LINKS} links, expected at most that")));
        }
        let both = [self.end(ends[0], line)?, self.end(ends[1], line)?];
        if both[0] == both[1] {
            return Err(self.error(line, format!("link: found `{}` at both ends, expected two nodes", ends[0])));
        }
        let LinkProperties { rate, delay, ports } = about;
        self.made.links.push(TopologyLink { ends: both, rate, delay, ports, line });
        Ok(())
    }
}

/// Parses an XML document. Documents with a document type are refused, because their entities could expand without
/// limit.
fn xml<'t>(text: &'t str, builder: &TopologyBuilder<'_>) -> Result<roxmltree::Document<'t>, TopologyError> {
    let options = roxmltree::ParsingOptions { nodes_limit: MAX_XML_NODES, ..roxmltree::ParsingOptions::default() };
    roxmltree::Document::parse_with_options(text, options)
        .map_err(|error| builder.error(usize::try_from(error.pos().row).ok(), format!("found no XML: {error}")))
}

/// Returns the line on which an XML node begins.
fn line_of(node: roxmltree::Node<'_, '_>) -> Option<usize> {
    usize::try_from(node.document().text_pos_at(node.range().start).row).ok()
}

/// Returns a rate of `bps` bit/s, if it is in a valid range.
fn rate(bps: f64) -> Option<Bps> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the range checked")]
    (1.0..1e18).contains(&bps).then(|| Bps(bps.round() as u64))
}
