//! Tests reading and measuring real networks from public topology collections, such as Topology Zoo, SNDlib and
//! Rocketfuel.
use std::path::Path;
use weir_testing::shared;
use weir_topology::{TopologyMeasures, read};

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn every_file_of_the_collections_is_read() {
    let Some(folder) = shared("data/external/topologies") else { return };
    let mut count = 0;
    for (collection, number) in [
        ("zoo-graphml", 5),
        ("topohub/sndlib", 14),
        ("topohub/topozoo", 143),
        ("topohub/backbone", 15),
        ("rocketfuel", 6),
    ] {
        let files = files(&folder.join(collection));
        assert_eq!(files.len(), number, "{collection}");
        for file in files {
            let found = read(&file).unwrap_or_else(|error| panic!("{error}"));
            assert!(found.nodes.len() > 1 && found.links.len() > 1, "{}", file.display());
            count += 1;
        }
    }
    assert_eq!(count, 183);
}

#[test]
fn known_networks_have_their_numbers() {
    let Some(folder) = shared("data/external/topologies") else { return };
    let measured = |file: &str| TopologyMeasures::of(&read(&folder.join(file)).unwrap());
    let abilene = measured("zoo-graphml/Abilene.graphml");
    assert_eq!((abilene.nodes, abilene.links, abilene.diameter, abilene.parts), (11, 14, 5, 1));
    assert_eq!((abilene.without_rate, abilene.without_delay), (0, 0), "OC-192 everywhere, coordinates everywhere");
    assert_eq!(abilene.rates.unwrap().map(|rate| rate.0), [9_953_280_000; 2]);
    let garr = measured("zoo-graphml/Garr201201.graphml");
    assert_eq!((garr.nodes, garr.links, garr.without_rate, garr.duplicates), (61, 89, 12, 14));
    let [slowest, fastest] = garr.rates.unwrap();
    assert_eq!((slowest.0, fastest.0), (34_000_000, 20_000_000_000));
    assert_eq!(measured("zoo-graphml/Kdl.graphml").nodes, 754);
    let hub = measured("topohub/topozoo/Abilene.json");
    assert_eq!((hub.nodes, hub.links, hub.degree_min, hub.degree_max, hub.diameter), (11, 14, 2, 3, 5));
    let telstra = measured("rocketfuel/1221.latencies.intra");
    assert_eq!((telstra.links, telstra.duplicates, telstra.without_delay), (153, 0, 0));
}
