//! Requests that are refused, with the reason, and malformed ones.
use super::*;
use weir_vnet::ways::{MAX_PATHS, MAX_SWITCHES};

fn refused(routing: &mut LinkRouting, request: VirtualLinkRequest) -> String {
    routing.request(request).unwrap_err().to_string()
}

#[test]
fn what_binds_and_what_is_possible_are_named() {
    let mut routing = routing(&[("ab", 10), ("bd", 9), ("ac", 8), ("cd", 10)]);
    assert_eq!(
        refused(&mut routing, request("v", "ad", 11)),
        "virtual link v: on the way ab, bd, link ab lacks 1Mbit/s of rate; link bd lacks 2Mbit/s of rate; \
         1 more lacked something too; 9Mbit/s is possible, or it is possible over 2 ways"
    );
    let packets =
        |request: VirtualLinkRequest| request.with_packets(ByteSize(1500), ByteSize(1500)).with_burst(ByteSize(1500));
    assert_eq!(
        refused(&mut routing, packets(request("v", "ad", 1)).within(2000 * US)),
        "virtual link v: on the way ab, bd, the delay can be 2.533334ms, which is 533.334µs more than promised, with \
         most of it at link bd; 1 more lacked something too; a delay of 2.533334ms is possible"
    );
    assert_eq!(
        refused(&mut routing, request("v", "ad", 9).avoiding(["b"])),
        "virtual link v: on the way ac, cd, link ac lacks 1Mbit/s of rate; 8Mbit/s is possible, \
         or it is possible without `avoid`, over ab, bd"
    );
    assert_eq!(
        refused(&mut routing, request("v", "ad", 1).avoiding(["d"]).through(["b"])),
        "virtual link v: there is no way that keeps to `avoid` and `through`; \
         it is possible without `avoid`, over ab, bd"
    );
    assert_eq!(
        refused(&mut routing, request("v", "da", 1)),
        "virtual link v: there is no way that keeps to `avoid` and `through`; no smaller change is enough"
    );
}

#[test]
fn malformed_requests_are_refused() {
    let mut routing = routing(&[("ab", 10), ("bc", 10)]);
    routing.request(request("old", "ab", 1)).unwrap();
    let new = || request("new", "ab", 1);
    let named = |name: &str| request(name, "ab", 1);
    for (request, expected) in [
        (request("old", "ab", 1), "found virtual link old twice, expected a name of its own for each"),
        (named("new[1]"), "virtual link new[1]: found a name with a bracket"),
        (request("new", "aa", 1), "virtual link new: found both ends at one switch"),
        (request("new", "ax", 1), "virtual link new: found no switch or host x"),
        (new().through(["ab"]), "virtual link new: found no switch or host ab"),
        (new().avoiding(["x"]), "virtual link new: found no switch or host x"),
        (new().over_ways(0), "virtual link new: found a largest number of ways outside 1 to 4"),
        (new().over_ways(5), "virtual link new: found a largest number of ways outside 1 to 4"),
        (request("new", "ab", 0), "virtual link new: found a rate outside"),
        (new().with_burst(ByteSize(1)), "virtual link new: found a burst below the longest packet"),
        (new().within(Duration::ZERO), "virtual link new: found a promised delay of zero"),
    ] {
        let text = refused(&mut routing, request);
        assert!(text.starts_with(expected), "{text}");
    }
    assert_eq!(routing.release("new").unwrap_err().to_string(), "found no virtual link new");
    assert_eq!(routing.held().count(), 1);
    assert_eq!((routing.delay("new"), routing.bounds("new").len()), (None, 0));
}

#[test]
fn malformed_substrates_are_refused() {
    let link = |from: &str, to: &str| SwitchLink::new(from, to, QueuedLink::new("l", mbps(1)));
    let text = |switches: &[&str], links: Vec<SwitchLink>| {
        Substrate::new(NO_OVERHEAD, switches.iter().copied(), links).unwrap_err().to_string()
    };
    assert_eq!(text(&["a", "a"], vec![]), "found switch a twice, expected a name of its own for each");
    assert_eq!(text(&["a"], vec![link("a", "b")]), "link l: found no switch or host b");
    assert_eq!(text(&["a"], vec![link("a", "a")]), "link l: found both ends at one switch");
    let both = vec![link("a", "b"), link("b", "a")];
    assert_eq!(text(&["a", "b"], both), "found link l twice, expected a name of its own for each");
    let free = SwitchLink { cost: 0, ..link("a", "b") };
    assert_eq!(text(&["a", "b"], vec![free]), "link l: found a cost of 0");
    let many: Vec<String> = (0..=MAX_SWITCHES).map(|number| number.to_string()).collect();
    let error = Substrate::new(NO_OVERHEAD, many, []).unwrap_err();
    assert_eq!(error.to_string(), "found 3001 switches, expected at most 3000");
    let one = || Substrate::new(NO_OVERHEAD, ["a"], []).unwrap();
    assert_eq!(one().with_host("h", "b").unwrap_err().to_string(), "host h: found no switch or host b");
    let twice = one().with_host("h", "a").unwrap().with_host("h", "a").unwrap_err();
    assert_eq!(twice.to_string(), "found place h twice, expected a name of its own for each");
    for ways in [0, MAX_PATHS + 1] {
        let error = LinkRouting::new(one(), WaySettings { ways, ..WaySettings::default() }).unwrap_err();
        assert_eq!(error.to_string(), format!("found {ways} ways to examine, expected 1 to 64"));
    }
}
