//! Tests predictions for virtual networks: bounds limit what formulas expect of packets in profile, and packets take
//! the ways of their network.
use weir_predict::{PredictSettings, predict};
use weir_scenario::Scenario;

const RING: &str = r#"
[controller]
connect = "none"
[topology]
kind = "ring"
switches = 4
hosts = 2
rate = "100Mbit/s"
delay = "100us"
host_rate = "100Mbit/s"
[[network]]
name = "first"
[[network.link]]
ends = ["h1", "h3"]
bandwidth = "60Mbit/s"
[[network]]
name = "second"
[[network.link]]
ends = ["h2", "h4"]
bandwidth = "40Mbit/s"
[[traffic]]
kind = "udp"
from = "h1"
to = "h3"
rate = "59Mbit/s"
payload = "1200B"
[[traffic]]
kind = "udp"
from = "h2"
to = "h4"
rate = "60Mbit/s"
payload = "1200B"
"#;

#[test]
fn packets_in_profile_are_not_expected_beyond_their_bound() {
    let scenario = Scenario::parse(RING, "ring.toml").unwrap_or_else(|error| panic!("{error}"));
    let prediction = predict(&scenario, &PredictSettings::default()).unwrap();
    let [first, second] = &prediction.promises[..] else { panic!("{:?}", prediction.promises) };
    assert_eq!((first.network.as_str(), first.out_of_profile.as_deref()), ("first", None));
    let bound = first.bound_s.unwrap();
    // The line from the host adds a frame and the delay of the line.
    assert!(first.p99_s.unwrap() <= bound + 1514.0 * 8e-8 + 1e-9, "{first:?}");
    assert_eq!(prediction.flows[0].loss, Some(0.0));
    // A flow beyond its profile keeps what the formulas expect.
    assert!(second.out_of_profile.is_some() && prediction.flows[1].loss.unwrap() > 0.2, "{:?}", prediction.flows[1]);
}

#[test]
fn packets_take_the_way_of_their_network() {
    let scenario = Scenario::parse(RING, "ring.toml").unwrap();
    let prediction = predict(&scenario, &PredictSettings::default()).unwrap();
    // Both do not fit the line between the two switches: the second goes around the ring.
    let devices: Vec<&str> = prediction.devices.iter().map(|one| one.device.as_str()).collect();
    for line in ["s1 -> s4", "s4 -> s3", "s3 -> s2"] {
        assert!(devices.contains(&line), "{line}: {devices:?}");
    }
}
