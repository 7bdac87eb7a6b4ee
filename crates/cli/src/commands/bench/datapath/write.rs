//! A case as files, so that other switches are measured with the same entries and the same flows.
use super::OrderName;
use super::case::Case;
use anyhow::Context;
use serde::Serialize;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use weir_openflow::Version;
use weir_openflow::text::format_flow;
use weir_port::null::Headers;

/// What a generator of the same packets needs to know.
#[derive(Debug, Serialize)]
struct Generator {
    headers: &'static str,
    flows: u32,
    spread: u32,
    size: usize,
    order: OrderName,
    seed: u64,
    entries: u64,
}

/// Writes `entries` (a line each, as `ovs-ofctl add-flows` reads them), `generator.json`, and `list` where flows are listed: 4 bytes for each
/// destination, 64 for each header.
pub(super) fn write(case: Case, order: OrderName, seed: u64, folder: &Path) -> anyhow::Result<()> {
    fs::create_dir(folder).with_context(|| format!("--write: cannot make the directory {}", folder.display()))?;
    let Case { entries, flows, .. } = case;
    let (headers, list) = kind(flows.headers());
    if let Some(list) = list {
        fs::write(folder.join("list"), list).context("list")?;
    }
    let mut count = 0;
    let mut file = BufWriter::new(File::create(folder.join("entries"))?);
    for flow in entries {
        writeln!(file, "{}", format_flow(&flow, Version::V13))?;
        count += 1;
    }
    file.flush()?;
    let (flows, spread, size) = (flows.count(), flows.spread(), flows.size());
    let generator = Generator { headers, flows, spread, size, order, seed, entries: count };
    fs::write(folder.join("generator.json"), serde_json::to_string_pretty(&generator)? + "\n")?;
    Ok(())
}

/// The kind's name, and its list as bytes.
fn kind(headers: &Headers) -> (&'static str, Option<Vec<u8>>) {
    match headers {
        Headers::Udp => ("udp", None),
        Headers::Mac => ("mac", None),
        Headers::Mpls => ("mpls", None),
        Headers::Masks => ("masks", None),
        Headers::Destinations(list) => ("destinations", Some(list.iter().flat_map(|to| to.to_be_bytes()).collect())),
        Headers::Listed(list) => ("listed", Some(list.concat())),
    }
}
