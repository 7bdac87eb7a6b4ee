//! Requests that are refused, with the reason, and without an effect.
use super::*;
use weir_vnet::allocation::{AllocationError, CapacityShortage};

fn sharing() -> LinkSharing {
    let links = [("a", 2000), ("b", 1000)].map(|(name, capacity)| SubstrateLink::new(name, mbps(capacity)));
    let mut sharing = LinkSharing::new(MaximumSum, links).unwrap();
    sharing.insert(VirtualLink::new("old", ["a", "b"]).at_least(mbps(700))).unwrap();
    sharing
}

fn text(request: VirtualLink) -> String {
    let mut sharing = sharing();
    let error = sharing.insert(request).unwrap_err();
    assert_eq!(sharing.rate("old"), Some(mbps(1000)), "nothing changed");
    assert_eq!(sharing.rates().count(), 1);
    error.to_string()
}

#[test]
fn shortages_name_each_link_and_what_is_missing() {
    let mut sharing = sharing();
    let error = sharing.insert(VirtualLink::new("new", ["b", "a"]).at_least(mbps(1400))).unwrap_err();
    let shortage = |link: &str, capacity, minima| CapacityShortage {
        link: link.to_owned(),
        capacity: mbps(capacity),
        minima: mbps(minima),
    };
    let expected = vec![shortage("a", 2000, 2100), shortage("b", 1000, 2100)];
    assert_eq!(error, AllocationError::Shortage(expected.clone()));
    assert_eq!(expected[1].missing(), mbps(1100));
    assert_eq!(
        error.to_string(),
        "the guaranteed minima do not fit: a: minima of 2.10Gbit/s, capacity of 2Gbit/s, 100Mbit/s are missing; \
         b: minima of 2.10Gbit/s, capacity of 1Gbit/s, 1.10Gbit/s are missing"
    );
    // One bit per second decides.
    assert!(sharing.insert(VirtualLink::new("new", ["b"]).at_least(Bps(300_000_001))).is_err());
    sharing.insert(VirtualLink::new("new", ["b"]).at_least(mbps(300))).unwrap();
    assert_eq!([sharing.rate("old"), sharing.rate("new")], [Some(mbps(700)), Some(mbps(300))]);
    // A replacement is admitted or refused as a whole.
    let larger = VirtualLink::new("new", ["b"]).at_least(mbps(301));
    assert!(sharing.change(&["new"], vec![larger]).is_err());
    assert_eq!(sharing.rate("new"), Some(mbps(300)));
    let enormous = VirtualLink::new("enormous", ["a"]).at_least(Bps(u64::MAX));
    assert!(sharing.insert(enormous).unwrap_err().to_string().contains("a: minima of"));
}

#[test]
fn malformed_requests_are_refused() {
    let new = || VirtualLink::new("new", ["a"]);
    assert_eq!(text(VirtualLink::new("new", ["a", "c"])), "virtual link new: found no link c, which its path names");
    assert_eq!(
        text(VirtualLink::new("new", ["a", "b", "a"])),
        "virtual link new: found link a twice in its path, expected each link once"
    );
    let empty: [&str; 0] = [];
    assert!(text(VirtualLink::new("new", empty)).contains("empty path"));
    assert_eq!(
        text(VirtualLink::new("old", ["a"])),
        "found virtual link old twice, expected a name of its own for each"
    );
    assert_eq!(
        text(new().between(mbps(20), mbps(10))),
        "virtual link new: found a maximum of 10Mbit/s below the minimum of 20Mbit/s"
    );
    assert_eq!(text(new().fixed_at(Bps(0))), "virtual link new: found a maximum of 0bit/s, expected one above zero");
    for weight in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e7] {
        assert!(text(new().weighing(weight)).contains("weight"), "{weight}");
    }
    let error = sharing().change(&["old", "old"], Vec::new()).unwrap_err().to_string();
    assert_eq!(error, "found no virtual link old");
}

#[test]
fn malformed_substrates_are_refused() {
    for wrong in [0, 100_000_000_000_001, u64::MAX] {
        let error = LinkSharing::new(MaxMin, [SubstrateLink::new("a", Bps(wrong))]).unwrap_err().to_string();
        assert!(error.starts_with("link a: found a capacity of "), "{error}");
    }
    let twice = ["a", "a"].map(|name| SubstrateLink::new(name, Bps(1)));
    let error = LinkSharing::new(MaxMin, twice).unwrap_err().to_string();
    assert_eq!(error, "found link a twice, expected a name of its own for each");
}

/// A chain in which each virtual link shares a link with the next: all depend on each other.
#[test]
fn too_many_dependencies_are_refused() {
    let name = |number: usize| format!("{number:04}");
    let mut sharing =
        LinkSharing::new(MaxMin, (0..2002).map(|number| SubstrateLink::new(name(number), mbps(1)))).unwrap();
    let chain = |number: usize| VirtualLink::new(name(number), [name(number), name(number + 1)]);
    sharing.change(&[], (0..1000).chain(1001..2001).map(chain).collect()).unwrap();
    let error = sharing.insert(chain(1000)).unwrap_err();
    assert_eq!(error, AllocationError::TooLarge { virtual_links: 2001, links: 2000 });
    assert_eq!(sharing.rates().count(), 2000);
    assert_eq!(sharing.rate("0000"), Some(Bps(500_000)));
}

#[test]
fn numbers_of_links_have_limits() {
    let links = (0..=100_000).map(|number| SubstrateLink::new(number.to_string(), Bps(1)));
    let error = LinkSharing::new(MaxMin, links).unwrap_err();
    assert_eq!(error, AllocationError::TooMany { kind: "link", found: 100_001 });
    let many = (0..=100_000).map(|number| VirtualLink::new(number.to_string(), ["a"])).collect();
    let error = LinkSharing::new(MaxMin, [SubstrateLink::new("a", Bps(1))]).unwrap().change(&[], many).unwrap_err();
    assert_eq!(error.to_string(), "found 100001 virtual links, expected at most 100000");
}
