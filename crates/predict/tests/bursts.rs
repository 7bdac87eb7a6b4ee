//! Compares predictions of bursts at full buffers with packets that are followed through one queue.
use std::path::Path;
use weir_predict::{FlowPrediction, PredictSettings, predict};
use weir_scenario::Scenario;
use weir_traffic::RandomStream;

/// Time of a frame of 1042 bytes at 20 Mbit/s.
const SERVICE_S: f64 = 1042.0 * 8.0 / 20e6;
/// Packets that are followed.
const PACKETS: u32 = 400_000;

/// Source that changes between two rates, in packets a second, with the share of time at the high one and its mean
/// length in seconds.
struct Bursts {
    high: f64,
    low: f64,
    high_s: f64,
}

impl Bursts {
    fn rates(&self, per_second: f64) -> [(f64, f64); 2] {
        // The share of time at the high rate makes the mean rate 1.
        let share = (1.0 - self.low) / (self.high - self.low);
        [(self.high * per_second, self.high_s), (self.low * per_second, self.high_s * (1.0 - share) / share)]
    }

    fn predicted(&self, per_second: f64, buffer_bytes: u32) -> FlowPrediction {
        let Bursts { high, low, high_s } = self;
        let text = format!(
            "[controller]\nconnect = \"none\"\n[[switch]]\nname = \"s\"\nfail_mode = \"standalone\"\n\
             [[host]]\nname = \"a\"\nswitch = \"s\"\nip = \"10.0.0.1/24\"\nrate = \"1Gbit/s\"\n\
             [[host]]\nname = \"b\"\nswitch = \"s\"\nip = \"10.0.0.2/24\"\nrate = \"20Mbit/s\"\nbuffer = \"{buffer_bytes}B\"\n\
             [[traffic]]\nkind = \"udp\"\nfrom = \"a\"\nto = \"b\"\npayload = \"1000B\"\nrate = {per_second}\n\
             arrival = {{ kind = \"mmpp\", high = {high:?}, low = {low:?}, time = \"{}us\" }}\n",
            high_s * 1e6
        );
        let scenario = Scenario::parse(&text, "bursts.toml").unwrap_or_else(|error| panic!("{error}"));
        predict(&scenario, &PredictSettings::default()).unwrap().flows.remove(0)
    }

    /// Returns the share of packets that find the buffer full, and the 99th percentile of the delay of the others.
    fn followed(&self, per_second: f64, places: usize) -> (f64, f64) {
        let mut random = RandomStream::new(3, 0, 1);
        let rates = self.rates(per_second);
        let (mut now, mut state, mut lost) = (0.0, 0, 0u32);
        let mut until = rates[0].1 * random.exponential();
        let mut leaves: std::collections::VecDeque<f64> = std::collections::VecDeque::new();
        let mut delays = Vec::new();
        for _ in 0..PACKETS {
            let mut next = now + random.exponential() / rates[state].0;
            while next > until {
                state = 1 - state;
                now = until;
                until += rates[state].1 * random.exponential();
                next = now + random.exponential() / rates[state].0;
            }
            now = next;
            while leaves.front().is_some_and(|leaves| *leaves <= now) {
                leaves.pop_front();
            }
            if leaves.len() > places {
                lost += 1;
                continue;
            }
            let leave = leaves.back().copied().unwrap_or(now) + SERVICE_S;
            leaves.push_back(leave);
            delays.push(leave - now);
        }
        delays.sort_by(f64::total_cmp);
        (f64::from(lost) / f64::from(PACKETS), delays[delays.len() * 99 / 100])
    }
}

#[test]
fn bursts_lose_what_finds_no_place_and_the_rest_waits_no_longer_than_the_buffer() {
    for (high, low, high_s, load, places) in [
        (4.0, 0.5, 0.02, 0.5, 30),
        (4.0, 0.5, 0.02, 0.5, 120),
        (2.0, 0.2, 0.05, 0.7, 60),
        (10.0, 0.5, 0.01, 0.3, 40),
        (3.0, 0.1, 0.05, 0.95, 50),
        (3.0, 0.1, 0.05, 1.3, 50),
    ] {
        let (bursts, per_second) = (Bursts { high, low, high_s }, load / SERVICE_S);
        let (lost, p99) = bursts.followed(per_second, places);
        let buffer_bytes = 1042 * u32::try_from(places).unwrap();
        let flow = bursts.predicted(per_second, buffer_bytes);
        let (loss, delay) = (flow.loss.unwrap(), flow.delay.unwrap());
        println!(
            "{high} {low} {high_s} {load} {places}: loss {loss:.4}, followed {lost:.4}; {:.4}, {p99:.4}",
            delay.p99_s
        );
        assert!(loss > 0.9 * lost && loss < 1.1 * lost, "{high} {load} {places}: {loss}, followed {lost}");
        // Waiting for a full buffer, service here, and a thousandth more for the line before.
        let most = (places as f64 + 1.0) * SERVICE_S;
        assert!(delay.p99_s < 1.001 * most + 1e-5, "{high} {load} {places}: {}, at most {most}", delay.p99_s);
        assert!(delay.p99_s > 0.9 * p99, "{high} {load} {places}: {}, followed {p99}", delay.p99_s);
    }
}

#[test]
fn a_replayed_capture_waits_no_longer_than_its_buffer() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/replay.toml");
    let prediction = predict(&Scenario::read(&example).unwrap(), &PredictSettings::default()).unwrap();
    // 128 kB take 51.2 ms at 20 Mbit/s; packets take up to 0.6 ms, the link 2 ms, and other lines little.
    for flow in &prediction.flows {
        let ways = if flow.kind == "ping" { 2.0 } else { 1.0 };
        assert!(flow.delay.unwrap().p99_s < 0.0512 + 0.0006 + ways * 0.003, "{flow:?}");
        if flow.kind == "ping" {
            // Pings come apart from bursts: in packets their mean is 5.6 ms.
            assert!(flow.delay.unwrap().mean_s < 0.0066, "{flow:?}");
        }
    }
    let line = prediction.devices.iter().find(|device| device.device == "centre -> office").unwrap();
    println!("{line:?}");
    assert!(line.delay.unwrap().p99_s < 0.0518 && line.loss.unwrap() < 0.02, "{line:?}");
}

#[test]
fn what_a_line_lets_through_fills_no_further_line_of_its_rate() {
    let loss = |last: &str| {
        let text = format!(
            "[controller]\nconnect = \"none\"\n[[switch]]\nname = \"s1\"\nfail_mode = \"standalone\"\n\
             [[switch]]\nname = \"s2\"\nfail_mode = \"standalone\"\n\
             [[link]]\nends = [\"s1\", \"s2\"]\nrate = \"20Mbit/s\"\nbuffer = \"31260B\"\n\
             [[host]]\nname = \"a\"\nswitch = \"s1\"\nip = \"10.0.0.1/24\"\nrate = \"1Gbit/s\"\n\
             [[host]]\nname = \"b\"\nswitch = \"s2\"\nip = \"10.0.0.2/24\"\nrate = \"{last}\"\nbuffer = \"31260B\"\n\
             [[traffic]]\nkind = \"udp\"\nfrom = \"a\"\nto = \"b\"\npayload = \"1000B\"\nrate = 1200\n\
             arrival = {{ kind = \"mmpp\", high = 4.0, low = 0.5, time = \"20ms\" }}\n"
        );
        let scenario = Scenario::parse(&text, "lines.toml").unwrap_or_else(|error| panic!("{error}"));
        predict(&scenario, &PredictSettings::default()).unwrap().flows.remove(0).loss.unwrap()
    };
    let (fast, equal, slow) = (loss("1Gbit/s"), loss("20Mbit/s"), loss("15Mbit/s"));
    assert!(fast > 0.1 && (equal - fast).abs() < 1e-3, "{fast} {equal}");
    assert!(slow > fast + 0.02, "{fast} {slow}");
}
