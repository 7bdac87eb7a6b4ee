//! Reads text as a topology file of each format: it is rejected, or the topology can be measured, shown and cleaned
//! up.
//!
//! The first byte chooses the format.
#![no_main]
use libfuzzer_sys::fuzz_target;
use weir_fuzz::{bounded, choice_and_text};
use weir_topology::{TopologyMeasures, read_text, spanning_tree, text};

const FILES: [&str; 5] = ["x.graphml", "x.json", "x.xml", "x.latencies.intra", "x.weights.intra"];

fuzz_target!(|input: &[u8]| {
    let Some((choice, written)) = choice_and_text(input) else { return };
    bounded(input, || {
        let Ok(mut found) = read_text(written, FILES[usize::from(choice) % FILES.len()]) else { return };
        assert!(found.links.iter().flat_map(|link| link.ends).all(|end| end < found.nodes.len()));
        let measures = TopologyMeasures::of(&found);
        assert!(!text::show(&found, &measures).is_empty() && !text::list(&found).is_empty());
        found.merge_duplicates();
        found.keep_largest_part();
        let after = TopologyMeasures::of(&found);
        assert_eq!((after.parts, after.duplicates, after.nodes), (1, 0, measures.largest_part));
        let ends: Vec<_> = found.links.iter().map(|link| link.ends).collect();
        let kept = spanning_tree(found.nodes.len(), &ends);
        assert_eq!(kept.iter().filter(|kept| **kept).count() + 1, found.nodes.len());
    });
});
