//! Parses the output of ping and iperf3.
use serde_json::Value;
use std::time::Duration;
use weir_network::TrafficMeasurement;

/// Takes over the output of ping (iputils): a line for each answer, and a summary.
pub(crate) fn ping(output: &str, errors: &str, measured: &mut TrafficMeasurement) {
    for line in output.lines() {
        if let Some(rtt) = round_trip(line).filter(|_| !line.contains("DUP!")) {
            measured.answered(number(line), rtt);
        } else if let Some(sent) = line.split_once(" packets transmitted") {
            measured.sent = sent.0.trim().parse().unwrap_or(0);
        }
    }
    if measured.sent == 0 && !errors.is_empty() {
        measured.problem = Some(errors.to_owned());
    }
}

/// Returns the round trip of a line such as `64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=0.045 ms`.
fn round_trip(line: &str) -> Option<Duration> {
    let (_, after) = line.split_once(" time=")?;
    let ms: f64 = after.split_whitespace().next()?.parse().ok()?;
    Duration::try_from_secs_f64(ms / 1000.0).ok()
}

/// Returns the number of a request, from 0; iputils counts from 1.
fn number(line: &str) -> u64 {
    let number = line.split_once("icmp_seq=").and_then(|(_, after)| after.split_whitespace().next()?.parse().ok());
    number.map_or(0, |number: u64| number.saturating_sub(1))
}

/// Returns the measurements of a TCP connection in an iperf3 client's report (`--json`).
pub(crate) fn iperf(output: &str, errors: &str) -> TrafficMeasurement {
    let report: Value = serde_json::from_str(output).unwrap_or_default();
    let mut measured = TrafficMeasurement::default();
    let failed = report["error"].as_str().map(str::to_owned);
    if failed.is_none() && report["end"].is_object() {
        stream(&report["end"], &mut measured);
        return measured;
    }
    let said = failed.or_else(|| (!errors.is_empty()).then(|| errors.to_owned()));
    measured.problem = Some(said.unwrap_or_else(|| "iperf3 ended without a report".into()));
    measured
}

fn stream(end: &Value, measured: &mut TrafficMeasurement) {
    let bytes = |name: &str| end[name]["bytes"].as_u64().unwrap_or(0);
    measured.asked = bytes("sum_sent");
    measured.sent = bytes("sum_sent");
    measured.received = bytes("sum_received");
    measured.payload_bytes = bytes("sum_received");
    measured.span = seconds(&end["sum_received"]);
}

fn seconds(sum: &Value) -> Duration {
    sum["seconds"].as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pings_with_and_without_answers() {
        let output = "PING 10.0.0.2 (10.0.0.2) 56(84) bytes of data.\n\
            64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=0.500 ms\n\
            64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=0.700 ms (DUP!)\n\
            64 bytes from 10.0.0.2: icmp_seq=2 ttl=64 time=1 ms\n\n\
            --- 10.0.0.2 ping statistics ---\n\
            3 packets transmitted, 2 received, +1 duplicates, 33% packet loss, time 1012ms\n\
            rtt min/avg/max/mdev = 0.500/0.750/1.000/0.250 ms\n";
        let mut measured = TrafficMeasurement::default();
        ping(output, "", &mut measured);
        assert_eq!((measured.sent, measured.received), (3, 2));
        assert!((measured.delays.summary().unwrap().max_us - 1000.0).abs() < 2.0);
        let after_first = measured.after_first.summary().unwrap();
        assert!(after_first.samples == 1 && (after_first.min_us - 1000.0).abs() < 2.0);

        let mut measured = TrafficMeasurement::default();
        ping(
            "From 10.0.0.1 icmp_seq=1 Destination Host Unreachable\n\
             1 packets transmitted, 0 received, +1 errors, 100% packet loss, time 0ms\n",
            "",
            &mut measured,
        );
        assert_eq!((measured.sent, measured.received, measured.problem), (1, 0, None));

        let mut measured = TrafficMeasurement::default();
        ping("", "ping: connect: Network is unreachable", &mut measured);
        assert_eq!(measured.problem.as_deref(), Some("ping: connect: Network is unreachable"));
    }

    #[test]
    fn iperf_reports() {
        let tcp = r#"{"end":{"sum_sent":{"bytes":1100,"seconds":2.0},"sum_received":{"bytes":1000,"seconds":2.5}}}"#;
        let measured = iperf(tcp, "");
        assert_eq!((measured.sent, measured.received, measured.span), (1100, 1000, Duration::from_millis(2500)));
        let failed = r#"{"start":{},"end":{},"error":"unable to connect to server: Connection timed out"}"#;
        let measured = iperf(failed, "");
        assert_eq!(measured.received, 0);
        assert_eq!(measured.problem.as_deref(), Some("unable to connect to server: Connection timed out"));
        assert_eq!(iperf("{", "bad").problem.as_deref(), Some("bad"));
        assert_eq!(iperf("", "").problem.as_deref(), Some("iperf3 ended without a report"));
    }
}
