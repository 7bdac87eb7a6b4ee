//! Networks that are held again after a restart.
use super::{admit, mbps, ring, row, written};
use weir_units::Instant;
use weir_vnet::service::{HeldNetwork, NetworkBook, NetworkDesign, NetworkServiceRequest};

const GOLD: &str = "name = 'gold'\nlink = [{ ends = ['a1', 'a3'], bandwidth = { minimum = '20Mbit/s' } }]\n\
                    stage = [{ start = '10s', link = [{ name = 'a1-a3', bandwidth = '30Mbit/s' }] }]\n";

fn three() -> [NetworkServiceRequest; 3] {
    let tin = "name = 'tin'\nnode = [{ name = 'hub' }]\nlink = [\n\
               { ends = ['b1', 'hub'], bandwidth = '10Mbit/s', delay = { bound = '1s', percentile = 99.9 } },\n\
               { ends = ['hub', 'b3'], bandwidth = { maximum = '50Mbit/s' } }]\n";
    let late = "name = 'late'\nlink = [{ ends = ['a2', 'b4'], bandwidth = '5Mbit/s' }]\n";
    [written(GOLD), written(tin), written(late)]
}

/// Returns a design as a file of JSON has it.
fn kept(held: &HeldNetwork) -> HeldNetwork {
    let text = serde_json::to_string(&held.design).unwrap();
    let design: NetworkDesign = serde_json::from_str(&text).unwrap();
    assert_eq!(design, held.design);
    HeldNetwork { design, ..held.clone() }
}

#[test]
fn a_restored_book_is_the_one_before() {
    let mut book = ring(4);
    let [gold, tin, late] = three();
    // The VLAN ids of those that stay are not those that a new book would choose.
    admit(&mut book, &gold);
    admit(&mut book, &tin);
    book.release("gold").unwrap();
    admit(&mut book, &late);
    admit(&mut book, &gold);
    book.next_stage("gold").unwrap();
    let mut restored = ring(4);
    for name in ["tin", "late", "gold"] {
        restored.restore(kept(book.network(name).unwrap())).unwrap();
    }
    let all = |book: &NetworkBook| book.held().cloned().collect::<Vec<_>>();
    assert_eq!(all(&restored), all(&book));
    for (network, link) in [("gold", "a1-a3"), ("tin", "b1-hub"), ("tin", "hub-b3")] {
        let rates = |book: &NetworkBook| [0, 1].map(|direction| book.rate(network, link, direction));
        assert_eq!(rates(&restored), rates(&book), "{network} {link}");
    }
    assert_eq!(restored.rate("gold", "a1-a3", 0), Some(mbps(30)), "its second stage has begun");
    // Both decide alike from here on.
    let more = written("name = 'more'\nlink = [{ ends = ['b2', 'a4'], bandwidth = '40Mbit/s' }]\n");
    assert_eq!(book.request(&more, Instant::ZERO), restored.request(&more, Instant::ZERO));
    assert_eq!(restored.network("more"), book.network("more"));
    for name in ["gold", "tin", "late", "more"] {
        restored.release(name).unwrap();
    }
    assert_eq!(restored.load(&weir_vnet::service::PortName::new("s1", 1)), 0.0);
}

#[test]
fn a_design_of_another_substrate_is_refused() {
    let mut book = row(3);
    admit(&mut book, &three()[0]);
    let held = kept(book.network("gold").unwrap());
    let error = row(2).restore(held.clone()).unwrap_err().to_string();
    assert!(error.contains("a3"), "{error}");
    let mut moved = held.clone();
    moved.design.links[0].cables = vec![1, 1];
    let error = row(3).restore(moved).unwrap_err().to_string();
    assert!(error.contains("s1 to s2") && error.contains("ask again"), "{error}");
    let mut faster = held.clone();
    faster.design.links[0].directions[0].hops[1].quantum.0 += 1;
    let error = row(3).restore(faster).unwrap_err().to_string();
    assert!(error.contains("another line at port s2:4"), "{error}");
    let error = book.restore(held.clone()).unwrap_err().to_string();
    assert!(error.contains("found a network of this name"), "{error}");
    let mut twin = held;
    twin.design.request.name = "twin".to_owned();
    let error = book.restore(twin.clone()).unwrap_err().to_string();
    assert!(error.contains("datapath ids"), "{error}");
    twin.dpids.iter_mut().for_each(|dpid| *dpid += 100);
    let before = format!("{book:?}");
    let error = book.restore(twin).unwrap_err().to_string();
    assert!(error.contains("another network has port s1:1"), "{error}");
    assert!(format!("{book:?}") == before, "a refused network has changed something");
}
