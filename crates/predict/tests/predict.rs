//! Compares predictions of whole scenarios with closed forms, reference values and simulations.
use weir_model::control_path::{AgentProcessors, FourStations, four_stations};
use weir_model::{Law, station};
use weir_predict::{FlowPrediction, PredictSettings, Prediction, PredictionStatus, predict};
use weir_scenario::Scenario;

fn predicted(text: &str) -> Prediction {
    let scenario = Scenario::parse(text, "test.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
    predict(&scenario, &PredictSettings::default()).unwrap()
}

/// Returns a scenario with a switch between two hosts, and datagrams from one to the other.
fn one_switch(controller: &str, timing: &str, udp: &str) -> String {
    format!(
        "[controller]\n{controller}\n[[switch]]\nname = \"s1\"\n[switch.timing]\n{timing}\n\
         [[host]]\nname = \"a\"\nswitch = \"s1\"\nip = \"10.0.0.1/24\"\n[[host]]\nname = \"b\"\nswitch = \"s1\"\nip = \"10.0.0.2/24\"\n\
         [[traffic]]\nkind = \"udp\"\nfrom = \"a\"\nto = \"b\"\n{udp}\n"
    )
}

fn near(found: f64, expected: f64, within: f64) {
    assert!((found / expected - 1.0).abs() <= within, "found {found}, expected {expected}");
}

/// Datagrams in frames of 100 bytes, negligible on access lines of 10 Gbit/s compared with milliseconds.
const SMALL: &str = "payload = \"58B\"\narrival = \"poisson\"";

#[test]
fn returns_to_the_data_path_are_jacksons_network() {
    // Means of Mahmood's model are exact: visits (1 + p) and p.
    let (lam, p, mu_s, mu_c) = (500.0, 0.2, 1000.0, 150.0);
    let text = one_switch(
        "service = { law = \"exponential\", mean = \"6.666666667ms\" }",
        "data = { law = \"exponential\", mean = \"1ms\" }\nreturns = \"fifo\"",
        &format!("rate = {lam}\nnew_flows = {p}\n{SMALL}"),
    );
    let flow = &predicted(&text).flows[0];
    let data = 1.0 / (mu_s - lam * (1.0 + p));
    let control = 2.0 * data + 1.0 / (mu_c - p * lam);
    near(flow.delay.unwrap().mean_s, (1.0 - p) * data + p * control, 1e-3);
    near(flow.data.unwrap().mean_s, data, 1e-3);
    near(flow.control.unwrap().mean_s, control, 1e-3);
}

#[test]
fn a_line_is_a_queue_with_constant_services() {
    let text = "[controller]\nconnect = \"none\"\n[[switch]]\nname = \"s1\"\nfail_mode = \"standalone\"\n\
        [[host]]\nname = \"a\"\nswitch = \"s1\"\nip = \"10.0.0.1/24\"\nrate = \"10Gbit/s\"\n\
        [[host]]\nname = \"b\"\nswitch = \"s1\"\nip = \"10.0.0.2/24\"\nrate = \"10Mbit/s\"\ndelay = \"2ms\"\nbuffer = \"10MB\"\n\
        [[traffic]]\nkind = \"udp\"\nfrom = \"a\"\nto = \"b\"\nrate = \"8Mbit/s\"\npayload = \"1000B\"\narrival = \"poisson\"\n";
    let flow = &predicted(text).flows[0];
    let service = 1042.0 * 8.0 / 1e7;
    let line = station::mg1(8e6 / 8.0 / 1042.0, &Law::constant(service).unwrap()).unwrap();
    let (delay, other) = (flow.delay.unwrap(), 0.002 + 1042.0 * 8.0 / 1e10);
    near(delay.mean_s, line.sojourn_s + other, 1e-3);
    for (found, share) in [(delay.p50_s, 0.5), (delay.p95_s, 0.95), (delay.p99_s, 0.99)] {
        near(found, line.sojourn.quantile(share).unwrap() + other, 2e-3);
    }
    assert_eq!(flow.bottleneck.as_deref(), Some("s1 -> b"));
}

#[test]
fn regular_datagrams_alone_wait_for_nothing() {
    let text = one_switch("app = \"learning\"", "data = \"1ms\"", "rate = 900\npayload = \"58B\"");
    let delay = predicted(&text).flows[0].delay.unwrap();
    near(delay.mean_s, 0.001, 1e-3);
    near(delay.p99_s, 0.001, 1e-3);
}

#[test]
fn a_finite_buffer_loses_what_its_formula_says() {
    let text = one_switch(
        "app = \"learning\"",
        "data = { law = \"exponential\", mean = \"1ms\" }\ndata_buffer = 10",
        &format!("rate = 1200\n{SMALL}"),
    );
    let flow = &predicted(&text).flows[0];
    let exact = station::mm1k(1200.0, 1000.0, 10).unwrap();
    near(flow.loss.unwrap(), exact.loss, 1e-6);
    near(flow.delay.unwrap().mean_s, exact.sojourn_s, 1e-3);
}

fn stages(lam: f64, p: f64, more: &str) -> FlowPrediction {
    staged(lam, p, more, "")
}

fn staged(lam: f64, p: f64, more: &str, controller: &str) -> FlowPrediction {
    let text = one_switch(
        &format!("service = {{ law = \"gamma\", mean = \"7.49ms\", scv = 0.5 }}{controller}"),
        &format!(
            "data = \"9.00875us\"\npacket_in = {{ law = \"gamma\", mean = \"5.63625ms\", scv = 0.5 }}\n\
             packet_out = {{ law = \"gamma\", mean = \"5.9275ms\", scv = 0.5 }}\n{more}"
        ),
        &format!("rate = {lam}\nnew_flows = {p}\n{SMALL}"),
    );
    predicted(&text).flows.remove(0)
}

/// Reference values of the four-station model: rate, share, true if agents share a processor, buffers of agents and
/// controller; mean, mean through the controller, loss. They come from this model's reference implementation.
#[test]
fn stages_are_those_of_the_reference() {
    for (lam, p, shared, buffers, mean, control, loss) in [
        (160.0, 0.5, false, None, 0.016_792_706, 0.033_576_397, 0.0),
        (200.0, 0.25, false, None, 0.006_434_980_4, 0.025_712_871, 0.0),
        (240.0, 0.5, false, Some((50, 20)), 0.035_845_571, 0.071_829_513, 0.002_048_004),
        (200.0, 0.5, true, Some((60, 60)), 0.283_026_6, 0.626_537_78, 0.088_051_853),
    ] {
        let mut more = String::from(if shared { "agents = \"shared\"\n" } else { "" });
        let mut controller = String::new();
        if let Some((agents, places)) = buffers {
            more += &format!("buffer = {agents}\n");
            controller = format!("\nbuffer = {places}");
        }
        let flow = staged(lam, p, &more, &controller);
        near(flow.delay.unwrap().mean_s, mean, 1e-3);
        near(flow.control.unwrap().mean_s, control, 1e-3);
        let found = flow.loss.unwrap();
        assert!((found - loss).abs() <= 1e-3 * loss + 1e-9, "{lam}: loss {found}, expected {loss}");
    }
}

/// With one processor without loss, predictions equal the model that distinguishes returns from new arrivals.
#[test]
fn returns_to_one_processor_are_those_of_the_model() {
    for (lam, p) in [(140.0, 0.5), (60.0, 0.4), (200.0, 0.05)] {
        let flow = staged(lam, p, "agents = \"shared\"\n", "");
        let gamma = |mean| Law::gamma(mean, 0.5).unwrap();
        let model = four_stations(&FourStations {
            rate: lam,
            p,
            data: Law::constant(9.00875e-6).unwrap(),
            packet_in: gamma(0.005_636_25),
            controller: gamma(0.007_49),
            packet_out: gamma(0.005_927_5),
            agents: AgentProcessors::Returning,
            agent_places: None,
            controller_places: None,
        })
        .unwrap();
        near(flow.delay.unwrap().mean_s, model.sojourn_s, 1e-3);
        near(flow.control.unwrap().mean_s, model.control_s.unwrap(), 1e-3);
        near(flow.control.unwrap().p95_s, model.control.unwrap().quantile(0.95).unwrap(), 1e-3);
    }
    // Simulated, as in the reference vectors: 0.031559 s, with a 95 % interval of ± 0.000193.
    near(staged(140.0, 0.5, "agents = \"shared\"\n", "").delay.unwrap().mean_s, 0.031_559, 0.02);
}

/// Reference values of the latency-capacity split: rate, share, scv, buffer, write; mean, mean of direct packets,
/// mean through the controller, loss.
#[test]
fn measured_control_paths_are_those_of_the_reference() {
    for (lam, p, scv, buffer, write, mean, data, control, loss) in [
        (100.0, 0.5, 0.5, Some(200), 0.0, 0.022_933_12, 9.012_811e-6, 0.045_857_227, 0.0),
        (180.0, 0.5, 0.5, Some(40), 0.0, 0.235_229_33, 9.016_066e-6, 0.537_655_55, 0.111_111_23),
        (200.0, 0.01, 0.5, Some(200), 0.0093, 0.000_292_928_8, 9.915_257e-5, 0.019_476_779, 0.0),
        (120.0, 0.5, 0.5, Some(200), 0.0093, 0.055_008_439, 0.013_334_332, 0.096_682_547, 0.0),
    ] {
        let buffer = buffer.map_or_else(String::new, |buffer| format!(", buffer = {buffer}"));
        let write = if write > 0.0 { format!("write = \"{}us\"", write * 1e6) } else { String::new() };
        let timing = format!(
            "data = \"9.00875us\"\ncontrol = {{ delay = \"19.0625ms\", capacity = 70, scv = {scv}{buffer} }}\n{write}"
        );
        let flow =
            &predicted(&one_switch("app = \"learning\"", &timing, &format!("rate = {lam}\nnew_flows = {p}\n{SMALL}")))
                .flows[0];
        near(flow.delay.unwrap().mean_s, mean, 2e-3);
        // The access lines add 160 ns to 9 us.
        near(flow.data.unwrap().mean_s, data + 1.6e-7, 2e-3);
        near(flow.control.unwrap().mean_s, control, 1e-3);
        assert!((flow.loss.unwrap() - loss).abs() <= 1e-3 * loss + 1e-9, "{flow:?}");
    }
}

#[test]
fn what_has_no_steady_state_is_named_and_the_rest_is_answered() {
    // 400 packets a second ask at an agent that serves 177.
    let flow = stages(800.0, 0.5, "");
    assert_eq!(flow.status, PredictionStatus::Unstable);
    assert!(flow.delay.is_none() && flow.control.is_none() && flow.loss.is_none());
    near(flow.data.unwrap().mean_s, 9e-6, 0.05);
    assert_eq!(flow.bottleneck.as_deref(), Some("s1 packet-in agent"));
    assert!(
        flow.notes[0].contains("utilisation 2.25") && flow.notes[0].contains("s1 packet-in agent"),
        "{:?}",
        flow.notes
    );
    let text = one_switch("app = \"learning\"", "data = \"1ms\"", &format!("rate = 1200\n{SMALL}"));
    let prediction = predicted(&text);
    let device = prediction.devices.iter().find(|device| device.device == "s1 data path").unwrap();
    assert_eq!(device.status, PredictionStatus::Unstable);
    assert!(device.advice.as_ref().unwrap().contains("it serves 1000"), "{device:?}");
    assert_eq!(prediction.unstable(), 2);
    assert_eq!(prediction.warnings[0].kind, "UNSTABLE");
    // The station's departures load the line behind it, and no more than these.
    let line = prediction.devices.iter().find(|device| device.device == "s1 -> b").unwrap();
    near(line.packets_per_s, 1000.0, 1e-6);
}

#[test]
fn a_buffer_makes_too_much_a_loss() {
    let flow = staged(800.0, 0.5, "buffer = 20", "\nbuffer = 20");
    assert_eq!(flow.status, PredictionStatus::Ok);
    // The controller serves 133 of 400 that ask.
    near(flow.loss.unwrap(), 0.5 * (1.0 - 133.5 / 400.0), 0.02);
}

#[test]
fn a_limited_queue_with_too_much_load_is_full() {
    let text = one_switch(
        "service = \"1ms\"\nbuffer = 20",
        "data = \"9us\"\npacket_in = \"10us\"\npacket_out = \"10us\"",
        &format!("rate = 4000\nnew_flows = 0.5\n{SMALL}"),
    );
    let prediction = predicted(&text);
    let device = prediction.devices.iter().find(|device| device.device == "controller").unwrap();
    near(device.utilisation, 1.0, 1e-3);
    assert_eq!(device.status, PredictionStatus::Full);
    assert!(prediction.warnings.iter().any(|warning| warning.kind == "NEAR_SATURATION"), "{:?}", prediction.warnings);
}

#[test]
fn more_new_flows_make_the_tail_longer() {
    let p99 = |p| stages(60.0, p, "").delay.unwrap().p99_s;
    let [a, b, c] = [0.1, 0.2, 0.4].map(p99);
    assert!(a < b && b < c, "{a} {b} {c}");
}

#[test]
fn the_first_switch_alone_asks_where_paths_are_installed() {
    let two = |install: &str| {
        let timing = "[switch.timing]\ndata = \"10us\"\npacket_in = \"1ms\"\npacket_out = \"1ms\"\n";
        let text = format!(
            "[controller]\nservice = \"2ms\"\ninstall = \"{install}\"\n[[switch]]\nname = \"s1\"\n{timing}[[switch]]\nname = \"s2\"\n{timing}\
             [[link]]\nends = [\"s1\", \"s2\"]\n\
             [[host]]\nname = \"a\"\nswitch = \"s1\"\nip = \"10.0.0.1/24\"\n[[host]]\nname = \"b\"\nswitch = \"s2\"\nip = \"10.0.0.2/24\"\n\
             [[traffic]]\nkind = \"udp\"\nfrom = \"a\"\nto = \"b\"\nrate = 1\nnew_flows = 0.5\n{SMALL}\n"
        );
        predicted(&text).flows[0].control.unwrap().mean_s
    };
    near(two("hop"), 2.0 * 0.004, 0.01);
    near(two("path"), 0.004, 0.01);
}

#[test]
fn the_quickstart_is_what_virtual_time_has() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/quickstart.toml");
    let scenario = Scenario::read(&path).unwrap();
    let prediction = predict(&scenario, &PredictSettings::default()).unwrap();
    let flow =
        |kind: &str, from: &str| prediction.flows.iter().find(|flow| flow.kind == kind && flow.from == from).unwrap();
    // weir simulate gives 4024 us after the first, 76.0 Mbit/s, and 7942 us beside TCP.
    near(flow("ping", "red-b").delay.unwrap().p50_s, 4024e-6, 0.01);
    near(flow("tcp", "red-a").goodput_bps.unwrap(), 76.0e6, 0.02);
    near(flow("udp", "blue-a").delay.unwrap().p50_s, 7942e-6, 0.05);
    let isolated = prediction.flows.iter().find(|flow| flow.status == PredictionStatus::Isolated).unwrap();
    assert_eq!((isolated.kind, isolated.loss), ("ping", Some(1.0)));
    assert_eq!(prediction.models[0].model, "native");
    assert!(
        prediction.devices.iter().any(|device| device.status == PredictionStatus::Full && device.device == "s1 -> s2"),
        "{:?}",
        prediction.devices
    );
}

#[test]
fn nothing_is_delivered_where_nobody_forwards() {
    let text = "[controller]\nconnect = \"none\"\n[[switch]]\nname = \"s1\"\n[[host]]\nname = \"a\"\nswitch = \"s1\"\nip = \"10.0.0.1/24\"\n\
        [[host]]\nname = \"b\"\nswitch = \"s1\"\nip = \"10.0.0.2/24\"\n[[traffic]]\nkind = \"ping\"\nfrom = \"a\"\nto = \"b\"\n";
    let flow = &predicted(text).flows[0];
    assert_eq!((&flow.status, flow.loss), (&PredictionStatus::NoPath, Some(1.0)));
}

/// Returns the prediction for two hosts at a switch with a virtual switch for untagged packets, which has a fifth of
/// the ports.
fn cut(more: &str, traffic: &str) -> Prediction {
    predicted(&format!(
        "[[switch]]\nname = \"s1\"\n[switch.fabric]\nrate = \"100Mbit/s\"\n\
         [[switch.virtual]]\nname = \"one\"\ndpid = 0x101\nbuffer = \"120kB\"\nselect = [{{ vlan = 0 }}]\n{more}\n\
         ports = [{{ port = 1, rate = \"20Mbit/s\" }}, {{ port = 2, rate = \"20Mbit/s\" }}]\n\
         [[switch.virtual]]\nname = \"two\"\ndpid = 0x102\nbuffer = \"60kB\"\nselect = [{{ vlan = 2 }}]\nfail_mode = \"standalone\"\n\
         ports = [{{ port = 1, rate = \"80Mbit/s\" }}, {{ port = 2, rate = \"80Mbit/s\" }}]\n\
         [[host]]\nname = \"a\"\nswitch = \"s1\"\nport = 1\nip = \"10.0.0.1/24\"\nrate = \"100Mbit/s\"\n\
         [[host]]\nname = \"b\"\nswitch = \"s1\"\nport = 2\nip = \"10.0.0.2/24\"\nrate = \"100Mbit/s\"\n\
         [[traffic]]\nfrom = \"a\"\nto = \"b\"\n{traffic}\n"
    ))
}

#[test]
fn traffic_between_hosts_waits_at_its_virtual_switchs_share() {
    let udp = "kind = \"udp\"\nrate = \"16Mbit/s\"\npayload = \"958B\"\narrival = \"poisson\"";
    let prediction = cut("fail_mode = \"standalone\"", udp);
    let flow = &prediction.flows[0];
    // The source's line hardly changes the arrivals; then a queue at a fifth of the rate, and two lines.
    let alone = station::mg1(2000.0, &Law::constant(1000.0 * 8.0 / 2e7).unwrap()).unwrap();
    near(flow.delay.unwrap().mean_s, alone.waiting_s + 2.0 * 80e-6, 0.05);
    assert_eq!(flow.bottleneck.as_deref(), Some("s1 one to port 2"));
    let line = prediction.devices.iter().find(|device| device.device == "s1 -> b").unwrap();
    assert_eq!(line.model, "paced by the fabric");
    // TCP fills the guaranteed rate.
    let tcp = &cut("fail_mode = \"standalone\"", "kind = \"tcp\"").flows[0];
    near(tcp.goodput_bps.unwrap(), 2e7 * 1460.0 / 1514.0, 1e-3);
    assert_eq!(tcp.bottleneck.as_deref(), Some("s1 one to port 2"));
    // No forwarding, or no virtual switch for the packets.
    let none = &cut("", udp).flows[0];
    assert_eq!(none.status, PredictionStatus::NoPath);
    assert!(none.notes[0].contains("virtual switch one has neither a controller"), "{:?}", none.notes);
}

/// Returns the prediction for packets of one length through a switch with two virtual switches, of which the first
/// gets half of the port.
fn streams(discipline: &str, load: f64) -> Prediction {
    predicted(&format!(
        "[[switch]]\nname = \"s1\"\n[switch.fabric]\nports = 3\nrate = \"100Mbit/s\"\ncrosspoint = \"2MB\"\ndiscipline = \"{discipline}\"\n\
         [[switch.virtual]]\nname = \"one\"\ndpid = 0x101\nbuffer = \"1MB\"\nselect = [{{ vlan = 1 }}]\nentries = [\"actions=output:3\"]\n\
         ports = [{{ port = 1, rate_in = \"50Mbit/s\" }}, {{ port = 2, rate_in = \"50Mbit/s\" }}, {{ port = 3, rate_out = \"50Mbit/s\", quantum = \"1514B\" }}]\n\
         [[switch.virtual]]\nname = \"two\"\ndpid = 0x102\nbuffer = \"1MB\"\npriority = 1\nselect = [{{ vlan = 2 }}]\nentries = [\"actions=output:3\"]\n\
         ports = [{{ port = 1, rate_in = \"50Mbit/s\" }}, {{ port = 3, rate_out = \"50Mbit/s\", quantum = \"1514B\" }}]\n\
         [[stream]]\nswitch = \"s1\"\nvirtual = \"one\"\ninputs = \"1-2\"\noutput = 3\nload = {load}\nsizes = \"1000B\"\n"
    ))
}

#[test]
fn virtual_switches_have_their_guaranteed_rate() {
    let flow = &streams("strict-priority", 0.35).flows[0];
    let service = 1000.0 * 8.0 / 5e7;
    let alone = station::mg1(35e6 / 8000.0, &Law::constant(service).unwrap()).unwrap();
    near(flow.packets_per_s, 35e6 / 8000.0, 1e-9);
    near(flow.delay.unwrap().mean_s, alone.waiting_s, 1e-6);
    assert!(flow.notes.iter().any(|note| note.contains("242.2 us at most")), "{:?}", flow.notes);
    // No other stream sends: the whole port is left.
    let whole = station::mg1(35e6 / 8000.0, &Law::constant(8000.0 / 1e8).unwrap()).unwrap();
    let expected = flow.expected.as_ref().unwrap();
    assert_eq!((expected.rate_bps, &flow.streams[..]), (100_000_000, &[0][..]));
    near(expected.delay.mean_s, whole.waiting_s, 1e-6);
    // Three rounds of two quanta, less two of its own, and the packet: five largest packets at 100 Mbit/s.
    let flow = &streams("drr", 0.35).flows[0];
    assert!(flow.notes.iter().any(|note| note.contains("605.6 us at most")), "{:?}", flow.notes);
    // Load beyond the guarantee fills the buffers, and is lost.
    let flow = &streams("drr", 0.6).flows[0];
    near(flow.loss.unwrap(), 1.0 / 6.0, 0.01);
}

/// Writing entries takes almost all of the data path's time, so that the load of packets hardly changes what is left.
/// The prediction must have a result up to saturation; the iteration once did not converge here.
#[test]
fn a_data_path_that_entries_take_all_of_has_an_answer() {
    for write in ["800us", "905us", "906us", "910us", "2ms"] {
        let timing = format!(
            "data = {{ law = \"gamma\", mean = \"1us\", scv = 0.01 }}\npacket_in = \"1us\"\npacket_out = \"1us\"\nwrite = \"{write}\"\n"
        );
        let udp = "rate = 1750.997\nnew_flows = 0.63\narrival = { kind = \"mmpp\", high = 3.0, low = 0.5, time = \"5ms\" }\nsizes = \"imix\"";
        let service = "service = { law = \"exponential\", mean = \"1us\" }";
        let prediction = predicted(&one_switch(service, &timing, udp));
        let is_saturated = 1750.997 * 0.63 * write_s(write) + 1750.997e-6 > 1.0;
        assert_eq!(
            prediction.flows[0].status == PredictionStatus::Ok,
            !is_saturated,
            "{write}: {:?}",
            prediction.flows[0]
        );
    }
}

/// The agent for packet-ins is full, and passes on exactly what the agent for packet-outs, of equal speed, can serve.
#[test]
fn a_queue_behind_a_full_one_of_the_same_speed_has_an_answer() {
    let agent = "{ law = \"exponential\", mean = \"4569.828us\" }";
    let timing = format!(
        "data = {{ law = \"gamma\", mean = \"1112.545us\", scv = 1.348 }}\npacket_in = {agent}\npacket_out = {agent}\ndata_buffer = 25\n"
    );
    let udp = "rate = 810.08\nnew_flows = 0.745\narrival = \"constant\"\nsizes = \"imix\"";
    let prediction = predicted(&one_switch("service = { law = \"exponential\", mean = \"1us\" }", &timing, udp));
    assert_ne!(prediction.flows[0].status, PredictionStatus::Ok);
}

fn write_s(text: &str) -> f64 {
    let number = |unit: &str| text.strip_suffix(unit).and_then(|number| number.parse::<f64>().ok());
    number("us").map(|us| us * 1e-6).or(number("ms").map(|ms| ms * 1e-3)).expect("a time")
}

#[test]
fn a_hundred_switches_have_an_answer() {
    let mut text = String::from("[controller]\nservice = \"5us\"\n");
    for at in 0..100 {
        text += &format!(
            "[[switch]]\nname = \"s{at}\"\n[switch.timing]\ndata = {{ law = \"constant\", mean = \"3.34us\", per_byte = \"7.96ns\" }}\npacket_in = \"50us\"\npacket_out = \"60us\"\n"
        );
        text += &format!(
            "[[host]]\nname = \"h{at}\"\nswitch = \"s{at}\"\nip = \"10.0.0.{}/24\"\nrate = \"1Gbit/s\"\n",
            at + 1
        );
    }
    for at in 1..100 {
        text += &format!("[[link]]\nends = [\"s{}\", \"s{at}\"]\nrate = \"1Gbit/s\"\ndelay = \"10us\"\n", (at - 1) / 2);
    }
    for at in 0..100 {
        text += &format!(
            "[[traffic]]\nkind = \"udp\"\nfrom = \"h{at}\"\nto = \"h{}\"\nrate = 1000\nsizes = \"imix\"\narrival = \"poisson\"\nnew_flows = 0.01\n",
            (at * 37 + 11) % 100
        );
    }
    let prediction = predicted(&text);
    assert_eq!(prediction.flows.len(), 100);
    assert!(
        prediction.flows.iter().all(|flow| flow.status == PredictionStatus::Ok && flow.delay.is_some()),
        "{:?}",
        prediction.warnings
    );
    assert!(prediction.bottleneck.is_some());
}

mod random {
    use super::*;
    use proptest::prelude::*;

    fn law() -> impl Strategy<Value = String> {
        let mean = || (1.0f64..5000.0).prop_map(|us| format!("{us:.3}us"));
        prop_oneof![
            mean().prop_map(|mean| format!("\"{mean}\"")),
            mean().prop_map(|mean| format!("{{ law = \"exponential\", mean = \"{mean}\" }}")),
            (mean(), 0.01f64..8.0)
                .prop_map(|(mean, scv)| format!("{{ law = \"gamma\", mean = \"{mean}\", scv = {scv:.3} }}")),
            (mean(), 1.5f64..8.0)
                .prop_map(|(mean, scv)| format!("{{ law = \"hyperexponential\", mean = \"{mean}\", scv = {scv:.3} }}")),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn answers_are_numbers(
            data in law(), agent in law(), service in law(),
            buffer in prop::option::of(1u32..50), data_buffer in prop::option::of(1u32..50),
            shared: bool, returns in 0usize..3, write in 0u32..3000,
            rate in 1.0f64..3000.0, p in 0.0f64..=1.0, arrival in 0usize..3,
        ) {
            let returns = ["direct", "fifo", "priority"][returns];
            let arrival = ["\"poisson\"", "\"constant\"", "{ kind = \"mmpp\", high = 3.0, low = 0.5, time = \"5ms\" }"][arrival];
            let mut timing = format!("data = {data}\npacket_in = {agent}\npacket_out = {agent}\nreturns = \"{returns}\"\n");
            timing += &if write > 0 { format!("write = \"{write}us\"\n") } else { String::new() };
            timing += if shared { "agents = \"shared\"\n" } else { "" };
            timing += &buffer.map_or_else(String::new, |buffer| format!("buffer = {buffer}\n"));
            timing += &data_buffer.map_or_else(String::new, |buffer| format!("data_buffer = {buffer}\n"));
            let udp = format!("rate = {rate:.3}\nnew_flows = {p:.3}\narrival = {arrival}\nsizes = \"imix\"");
            let prediction = predicted(&one_switch(&format!("service = {service}"), &timing, &udp));
            for flow in &prediction.flows {
                for delays in [flow.delay, flow.data, flow.control].into_iter().flatten() {
                    let all = [delays.mean_s, delays.p50_s, delays.p95_s, delays.p99_s];
                    prop_assert!(all.iter().all(|s| s.is_finite() && *s >= 0.0), "{delays:?}");
                    prop_assert!(delays.p50_s <= delays.p95_s * (1.0 + 1e-9) && delays.p95_s <= delays.p99_s * (1.0 + 1e-9), "{delays:?}");
                }
                prop_assert!(flow.loss.is_none_or(|loss| (0.0..=1.0).contains(&loss)), "{flow:?}");
                prop_assert!(flow.delay.is_some() == (flow.status == PredictionStatus::Ok), "{flow:?}");
            }
            for device in &prediction.devices {
                prop_assert!(device.utilisation.is_finite() && device.utilisation >= 0.0, "{device:?}");
                prop_assert!((device.status == PredictionStatus::Unstable) == device.advice.is_some(), "{device:?}");
                prop_assert!(device.delay.is_none_or(|delays| delays.mean_s.is_finite() && delays.mean_s >= 0.0), "{device:?}");
            }
        }
    }
}

/// Returns the prediction for datagrams over one link between two switches.
fn over_a_link(link: &str) -> Prediction {
    predicted(&format!(
        "[topology]\nkind = 'linear'\nswitches = 2\nrate = '1Gbit/s'\n{link}\n\
         [[traffic]]\nkind = 'udp'\nfrom = 'h1'\nto = 'h2'\nrate = 100\n{SMALL}\n"
    ))
}

#[test]
fn jitter_is_part_of_the_delay_and_losses_multiply() {
    let plain = over_a_link("delay = '10ms'").flows[0].delay.unwrap().mean_s;
    let mean_and_p95 = |link: &str| {
        let delay = over_a_link(link).flows[0].delay.unwrap();
        (delay.mean_s - plain, delay.p95_s - plain)
    };
    let (mean, p95) = mean_and_p95("delay = '10ms'\njitter = '2ms'\nreorder = true");
    assert!(mean.abs() < 2e-6 && (p95 - 0.9 * 2e-3).abs() < 2e-5, "uniform: {mean} {p95}");
    let (mean, p95) = mean_and_p95("delay = '10ms'\njitter = '1ms'\njitter_law = 'normal'\nreorder = true");
    assert!(mean.abs() < 2e-6 && (p95 - 1.645e-3).abs() < 6e-5, "normal: {mean} {p95}");
    let (mean, p95) = mean_and_p95("delay = '10ms'\njitter = '1ms'\njitter_law = 'pareto'\nreorder = true");
    // Lomax: 2 ms (0.05^(-1/3) - 1).
    assert!((mean - 1e-3).abs() < 2e-6 && (p95 / 3.43e-3 - 1.0).abs() < 0.15, "pareto: {mean} {p95}");
    let lossy = over_a_link("loss = '10%'\nloss_burst = 4");
    near(lossy.flows[0].loss.unwrap(), 0.1, 1e-6);
    let ordered = over_a_link("delay = '10ms'\njitter = '2ms'").warnings;
    assert!(ordered.iter().any(|warning| warning.kind == "JITTER_ORDER"), "{ordered:?}");
}

/// A transfer that ends before its first segment can arrive delivers nothing, and the file's other traffic is
/// answered.
#[test]
fn a_transfer_shorter_than_its_start_is_answered() {
    let wan = include_str!("../../../examples/wan.toml");
    let found = predicted(&wan.replace("duration = \"2s\"", "duration = \"20ms\""));
    let tcp = found.flows.iter().find(|flow| flow.kind == "tcp").unwrap();
    assert_eq!(tcp.goodput_bps, Some(0.0));
    assert!(tcp.notes.iter().any(|note| note.contains("before its first bytes")), "{:?}", tcp.notes);
    assert!(found.flows.iter().filter(|flow| flow.kind == "ping").all(|flow| flow.delay.is_some()));
}

/// Returns a tree: hosts a and b at s1, c at s2, all of which send to d at s3; every line has 10 Mbit/s.
fn tree(rates: [f64; 3], what: &str) -> String {
    let mut text = String::from("[controller]\nconnect = \"none\"\n");
    for switch in 1..=3 {
        text += &format!("[[switch]]\nname = \"s{switch}\"\nfail_mode = \"standalone\"\n");
    }
    for (number, (name, switch)) in [("a", 1), ("b", 1), ("c", 2), ("d", 3)].into_iter().enumerate() {
        let line = format!("switch = \"s{switch}\"\nip = \"10.0.0.{}/24\"\nrate = \"10Mbit/s\"", number + 1);
        text += &format!("[[host]]\nname = \"{name}\"\n{line}\nbuffer = \"10MB\"\n");
    }
    for from in [1, 2] {
        text += &format!("[[link]]\nends = [\"s{from}\", \"s3\"]\nrate = \"10Mbit/s\"\nbuffer = \"10MB\"\n");
    }
    for (name, rate) in ["a", "b", "c"].iter().zip(rates) {
        text += &format!("[[traffic]]\nkind = \"udp\"\nfrom = \"{name}\"\nto = \"d\"\nrate = {rate}\n{what}\n");
    }
    text
}

#[test]
fn a_tree_of_equal_lines_delays_as_one_queue() {
    let rates = [200.0, 250.0, 300.0];
    let service = 1042.0 * 8.0 / 1e7;
    let prediction = predicted(&tree(rates, "payload = \"1000B\"\narrival = \"poisson\""));
    let total: f64 = rates.iter().sum();
    // The waits of all packets on all lines are those of one queue fed by all sources.
    let waits = rates.iter().zip(&prediction.flows);
    let found: f64 = waits.map(|(rate, flow)| rate / total * (flow.delay.unwrap().mean_s - 3.0 * service)).sum();
    let line = station::mg1(total, &Law::constant(service).unwrap()).unwrap();
    near(found, line.sojourn_s - service, 1e-2);
}

/// Predicts the wait, in seconds, at a line behind a device that is slower than the line.
fn wait_behind_device(data: &str) -> f64 {
    let text = format!(
        "[controller]\nconnect = \"none\"\n[[switch]]\nname = \"s1\"\nfail_mode = \"standalone\"\n\
         [switch.timing]\ndata = {data}\n\
         [[host]]\nname = \"a\"\nswitch = \"s1\"\nip = \"10.0.0.1/24\"\nrate = \"1Gbit/s\"\n\
         [[host]]\nname = \"b\"\nswitch = \"s1\"\nip = \"10.0.0.2/24\"\nrate = \"10Mbit/s\"\nbuffer = \"10MB\"\n\
         [[traffic]]\nkind = \"udp\"\nfrom = \"a\"\nto = \"b\"\nrate = 600\npayload = \"1000B\"\narrival = \"poisson\"\n"
    );
    let prediction = predicted(&text);
    let line = prediction.devices.iter().find(|one| one.device == "s1 -> b").unwrap();
    line.delay.unwrap().mean_s - 1042.0 * 8.0 / 1e7
}

#[test]
fn devices_space_packets_or_make_them_independent() {
    assert!(wait_behind_device("\"1ms\"") < 1e-9, "packets come a millisecond apart and take 0.83 ms");
    // Packets leave an exponential server as a Poisson process (Burke 1956).
    let found = wait_behind_device("{ law = \"exponential\", mean = \"1ms\" }");
    let service = 1042.0 * 8.0 / 1e7;
    let line = station::mg1(600.0, &Law::constant(service).unwrap()).unwrap();
    near(found, line.sojourn_s - service, 1e-2);
}

#[test]
fn what_other_verbs_refuse_or_do_differently_is_named() {
    let ring = |fail_mode: &str, queues: &str| {
        let switches =
            (1..=3).map(|number| format!("[[switch]]\nname = \"s{number}\"\n{fail_mode}\n")).collect::<String>();
        let links = [(1, 2), (2, 3), (3, 1)]
            .map(|(a, b)| format!("[[link]]\nends = [\"s{a}\", \"s{b}\"]\nrate = \"10Mbit/s\"\n{queues}\n"));
        let hosts = [1, 2].map(|number| {
            format!("[[host]]\nname = \"h{number}\"\nswitch = \"s{number}\"\nip = \"10.0.0.{number}/24\"\n")
        });
        let text = format!("{switches}{}{}", links.concat(), hosts.concat());
        let prediction = predicted(&format!(
            "[controller]\nconnect = \"none\"\n{text}[[traffic]]\nkind = \"udp\"\nfrom = \"h1\"\nto = \"h2\"\nrate = \"1Mbit/s\"\n"
        ));
        prediction.warnings.iter().map(|warning| warning.kind).collect::<Vec<_>>()
    };
    assert!(ring("fail_mode = \"standalone\"", "").contains(&"LOOP"));
    let entries = "entries = [\"actions=output:1\"]";
    assert!(!ring(entries, "").contains(&"LOOP"));
    assert!(ring(entries, "queues = [{ queue = 1, priority = 1 }]").contains(&"QUEUES"));
}

#[test]
fn bursts_wait_no_longer_than_their_buffer_and_are_called_approximate() {
    let answer = |buffer: &str| {
        let host = |number: u32, rate: &str| {
            format!(
                "[[host]]\nname = \"h{number}\"\nswitch = \"s1\"\nip = \"10.0.0.{number}/24\"\nrate = \"{rate}\"\nbuffer = \"{buffer}\"\n"
            )
        };
        predicted(&format!(
            "[controller]\nconnect = \"none\"\n[[switch]]\nname = \"s1\"\nfail_mode = \"standalone\"\n{}{}\
             [[traffic]]\nkind = \"udp\"\nfrom = \"h1\"\nto = \"h2\"\nrate = \"6Mbit/s\"\n\
             arrival = {{ kind = \"mmpp\", high = 3.0, low = 0.1, time = \"50ms\" }}\n",
            host(1, "100Mbit/s"),
            host(2, "10Mbit/s")
        ))
    };
    let [large, small] = ["10MB", "10kB"].map(|buffer| answer(buffer).flows.remove(0));
    for flow in [&large, &small] {
        assert_eq!(flow.validity, weir_predict::PredictionValidity::Approximate);
        assert!(flow.notes.iter().any(|note| note.starts_with("approximate: packets come in bursts (")), "{flow:?}");
    }
    // 10 kB take 8 ms at 10 Mbit/s; the law of the waiting times has a tail beyond.
    let [large, limited] = [&large, &small].map(|flow| flow.delay.unwrap());
    assert!(limited.p99_s < 0.015 && large.p99_s > 0.03, "{limited:?} {large:?}");
    assert!(small.loss.unwrap() > 0.01, "{small:?}");
}

#[test]
fn bursts_at_a_device_with_places_wait_no_longer_than_these_take() {
    let udp = "rate = 800\npayload = \"58B\"\narrival = { kind = \"mmpp\", high = 3.0, low = 0.1, time = \"500ms\" }\nnew_flows = 1.0";
    let timing = "data = \"1us\"\ncontrol = { delay = \"1ms\", capacity = 1000, scv = 1.0, buffer = 20 }";
    let flow = &predicted(&one_switch("app = \"learning\"", timing, udp)).flows[0];
    assert!(flow.loss.unwrap() > 0.01, "{flow:?}");
    // Twenty packets of 1 ms.
    assert!(flow.delay.unwrap().p99_s < 0.04, "{flow:?}");
}
