//! Tests that reading any text ends in a topology or an error, and that every topology can be measured and printed.
use proptest::prelude::*;
use weir_topology::{TopologyMeasures, read_text, text};

/// Valid files, by file name.
const RIGHT: [(&str, &str); 5] = [
    (
        "x.graphml",
        "<graphml><key attr.name='Latitude' for='node' id='a'/><key attr.name='LinkSpeedRaw' for='edge' id='r'/><graph>\
         <node id='0'><data key='a'>59.9</data></node><node id='1'/><edge source='0' target='1'><data key='r'>1e9</data></edge></graph></graphml>",
    ),
    (
        "x.json",
        r#"{"graph": {"name": "x"}, "nodes": [{"id": 0, "name": "A", "pos": [1.5, 2]}, {"id": "1"}], "edges": [{"source": 0, "target": "1", "dist": 3.5}]}"#,
    ),
    (
        "x.xml",
        "<network><networkStructure><nodes coordinatesType='geographical'><node id='A'><coordinates><x>1</x><y>2</y></coordinates></node><node id='B'/></nodes>\
         <links><link id='L'><source>A</source><target>B</target><preInstalledModule><capacity>10</capacity></preInstalledModule></link></links>\
         </networkStructure></network>",
    ),
    ("x.latencies.intra", "Perth,+Australia1 Sydney2 15\nSydney2 Perth,+Australia1 15\n"),
    ("x.weights.intra", "a b 7.5\nb c 1\n"),
];

/// Reads a text and processes the topology as the command does.
fn take(content: &str, file: &str) {
    if let Ok(mut found) = read_text(content, file) {
        let measures = TopologyMeasures::of(&found);
        assert!(!text::show(&found, &measures).is_empty() && !text::list(&found).is_empty());
        found.merge_duplicates();
        found.keep_largest_part();
        let after = TopologyMeasures::of(&found);
        assert_eq!((after.parts, after.duplicates, after.nodes), (1, 0, measures.largest_part));
    }
}

#[test]
fn the_right_ones_are_right() {
    for (file, content) in RIGHT {
        assert!(read_text(content, file).is_ok_and(|found| !found.links.is_empty()), "{file}");
        take(content, file);
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(which in 0..RIGHT.len(), content in ".{0,200}") {
        take(&content, RIGHT[which].0);
    }

    #[test]
    fn damaged_files_are_read_or_refused(which in 0..RIGHT.len(), cuts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, ".{0,6}"), 1..5)) {
        let (file, content) = RIGHT[which];
        let mut letters: Vec<char> = content.chars().collect();
        for (at, length, put) in cuts {
            let at = at.index(letters.len() + 1);
            let end = (at + length).min(letters.len());
            letters.splice(at..end, put.chars());
        }
        take(&letters.into_iter().collect::<String>(), file);
    }
}
