//! Compares stations with closed forms and with published test vectors of another simulation, within both intervals
//! together.
use std::convert::Infallible;
use weir_model::Law;
use weir_scenario::Scenario;
use weir_sim::stations::report::{QueueingReport, report};
use weir_sim::stations::{QueueingRunResult, plan, run};
use weir_sim::stats::{Confidence, Estimate};
use weir_sim::{ReplicationLimits, SimulationMonitor, replicate};

/// Independent runs of each case.
const REPLICATIONS: u64 = 8;

/// Returns a scenario with one switch between two hosts, with these lines for the controller, the switch's timing,
/// the traffic and `[simulate]`.
fn one_switch(controller: &str, timing: &str, traffic: &str, simulate: &str) -> String {
    format!(
        r#"
[controller]
app = "learning"
{controller}
[[switch]]
name = "s1"
[switch.timing]
{timing}
[[host]]
name = "h1"
switch = "s1"
ip = "10.0.0.1/24"
[[host]]
name = "h2"
switch = "s1"
ip = "10.0.0.2/24"
[[traffic]]
kind = "udp"
from = "h1"
to = "h2"
arrival = "poisson"
{traffic}
[simulate]
{simulate}
"#
    )
}

fn simulate(text: &str) -> (QueueingReport, Vec<QueueingRunResult>) {
    let scenario = Scenario::parse(text, "test.toml").unwrap();
    let plan = plan(&scenario).unwrap();
    let (window, watch) = (weir_sim::scenario::window(&scenario), SimulationMonitor::default());
    let one = |number| Ok::<_, Infallible>(Some(run(&plan, window, scenario.seed, number, &watch).unwrap()));
    let replications = ReplicationLimits { least: REPLICATIONS, most: REPLICATIONS, threads: 2 };
    let Ok(done) = replicate(&replications, one, |_| true);
    (report(&plan, &done.results, Confidence::P99), done.results)
}

/// Asserts that the value is within `margin`, the 99 % interval and a thousandth of the expected value.
fn assert_near(what: &str, found: Option<Estimate>, expected: f64, margin: f64) {
    let found = found.unwrap_or_else(|| panic!("{what}: nothing measured"));
    let within = found.half_width.unwrap() + margin + expected.abs() * 1e-3;
    assert!((found.mean - expected).abs() <= within, "{what}: {found:?}, expected {expected} within {within}");
}

fn quantile(of: f64, rate: f64) -> f64 {
    -(1.0 - of).ln() / rate
}

#[test]
fn one_server_without_limit_is_m_m_1() {
    let timing = "data = { law = 'exponential', mean = '1ms' }";
    let (report, _) = simulate(&one_switch("", timing, "rate = 700", "duration = '200s'\nwarm_up = '5s'"));
    let delays = &report.flows[0].all;
    assert_near("mean", delays.mean_s, 1.0 / 300.0, 0.0);
    assert_near("p50", delays.p50_s, quantile(0.5, 300.0), 0.0);
    assert_near("p95", delays.p95_s, quantile(0.95, 300.0), 0.0);
    assert_near("p99", delays.p99_s, quantile(0.99, 300.0), 0.0);
    let data = &report.stations[0];
    assert_near("utilisation", data.utilisation, 0.7, 0.0);
    assert_near("number", data.queue, 0.7 / 0.3, 0.0);
    assert_near("stay", data.stay_s, 1.0 / 300.0, 0.0);
    assert_near("rate", report.flows[0].per_second, 700.0, 0.0);
    assert_eq!((data.name.as_str(), data.overloaded), ("s1 data", false));
    assert_eq!(report.total.loss.unwrap().mean, 0.0);
}

#[test]
fn a_limit_makes_it_m_m_1_k() {
    let timing = "data = { law = 'exponential', mean = '10ms' }\ndata_buffer = 10";
    let (report, _) = simulate(&one_switch("", timing, "rate = 80", "duration = '1000s'\nwarm_up = '10s'"));
    assert_near("mean", report.flows[0].all.mean_s, 0.037_970_975, 0.0);
    assert_near("loss", report.flows[0].loss, 0.023_492_857_6, 0.0);
    assert_near("p95", report.flows[0].all.p95_s, 0.101_688_825, 0.0);
    // Overload is no error for a station with a limit.
    let timing = "data = { law = 'exponential', mean = '10ms' }\ndata_buffer = 200";
    let (report, _) = simulate(&one_switch("", timing, "rate = 150", "duration = '500s'\nwarm_up = '50s'"));
    assert_near("loss", report.flows[0].loss, 1.0 / 3.0, 0.0);
    assert_near("mean", report.flows[0].all.mean_s, 1.98, 0.0);
    assert!(!report.stations[0].overloaded);
}

/// Returns the mean and the standard deviation of an M/G/1 queue after Pollaczek and Khinchine.
fn pollaczek(rate: f64, [first, second, third]: [f64; 3]) -> (f64, f64) {
    let rho = rate * first;
    let wait = rate * second / (2.0 * (1.0 - rho));
    let squared = 2.0 * wait * wait + rate * third / (3.0 * (1.0 - rho));
    (wait + first, (squared - wait * wait + second - first * first).sqrt())
}

#[test]
fn laws_of_service_follow_pollaczek_and_khinchine() {
    for (rate, law) in [
        (700.0, "'1ms'"),
        (700.0, "{ law = 'gamma', mean = '1ms', scv = 0.4 }"),
        (300.0, "{ law = 'hyperexponential', share = 0.9, means = ['1ms', '10ms'] }"),
        (60.0, "{ law = 'uniform', from = '4ms', to = '16ms' }"),
        (60.0, "{ law = 'lattice', values = ['4ms', '8ms', '12ms'], probs = [0.5, 0.3, 0.2] }"),
        // A payload of 558 bytes gives frames of 600 bytes, which take half of 1 ms.
        (900.0, "{ law = 'constant', mean = '500us', per_byte = '0.8333333us' }"),
    ] {
        let text = one_switch(
            "",
            &format!("data = {law}"),
            &format!("rate = {rate}\npayload = '558B'"),
            "duration = '300s'\nwarm_up = '3s'",
        );
        let scenario = Scenario::parse(&text, "test.toml").unwrap();
        let service = scenario.switches[0].timing.as_ref().unwrap().data.clone().unwrap();
        let time = match service.per_byte_s {
            0.0 => service.law.unwrap(),
            per_byte => Law::constant(service.law.unwrap().mean() + 600.0 * per_byte).unwrap(),
        };
        let (report, _) = simulate(&text);
        let (mean, _) = pollaczek(rate, [time.mean(), time.second_moment(), time.third_moment()]);
        assert_near(law, report.flows[0].all.mean_s, mean, 0.0);
    }
}

/// Controller that is a station and whose packets return in order: a network of Kelly's, with exact means.
#[test]
fn punts_through_the_data_path_have_mahmood_s_means() {
    let controller = "service = { law = 'exponential', mean = '6.6666667ms' }";
    let timing = "data = { law = 'exponential', mean = '1ms' }\nreturns = 'fifo'";
    let text = one_switch(controller, timing, "rate = 500\nnew_flows = 0.2", "duration = '400s'\nwarm_up = '10s'");
    let (report, _) = simulate(&text);
    let flow = &report.flows[0];
    assert_near("data", flow.data.mean_s, 0.0025, 0.0);
    assert_near("control", flow.control.mean_s, 0.025, 0.0);
    assert_near("all", flow.all.mean_s, 0.007, 0.0);
    assert_near("asked", report.switches[0].asked, 0.2, 0.0);
    let controller = report.stations.iter().find(|station| station.name == "controller").unwrap();
    assert_near("controller", controller.utilisation, 100.0 / 150.0, 0.0);
    // Percentiles have no formula; these values are from another program's simulation.
    assert_near("p95", flow.all.p95_s, 0.033_137, 0.000_134);
    assert_near("p99", flow.all.p99_s, 0.065_221, 0.000_433);
}

/// Three switches in a row that share a controller; flows begin at each of them.
#[test]
fn switches_in_a_row_share_a_controller() {
    let host = |name: &str, switch: &str, last: u8| {
        format!("[[host]]\nname = '{name}'\nswitch = '{switch}'\nip = '10.0.0.{last}/24'\n")
    };
    let switch = |name: &str, rate: f64| {
        let mean_ns = 1e9 / rate;
        format!(
            "[[switch]]\nname = '{name}'\n[switch.timing]\ndata = {{ law = 'exponential', mean = '{mean_ns}ns' }}\nreturns = 'fifo'\n"
        )
    };
    let flow = |from: &str, to: &str, rate: u32| {
        format!(
            "[[traffic]]\nkind = 'udp'\nfrom = '{from}'\nto = '{to}'\nrate = {rate}\narrival = 'poisson'\nnew_flows = 0.1\n"
        )
    };
    let text = |install: &str| {
        format!("[controller]\nservice = {{ law = 'exponential', mean = '5ms' }}\ninstall = '{install}'\n")
            + &switch("s1", 600.0)
            + &switch("s2", 800.0)
            + &switch("s3", 1000.0)
            + &host("a", "s1", 1)
            + &host("b", "s2", 2)
            + &host("c", "s3", 3)
            + &host("d", "s3", 4)
            + "[[link]]\nends = ['s1', 's2']\n[[link]]\nends = ['s3', 's2']\n"
            + &flow("a", "d", 300)
            + &flow("b", "d", 150)
            + &flow("c", "d", 100)
            + "[simulate]\nduration = '300s'\nwarm_up = '10s'\n"
    };
    let (report, _) = simulate(&text("hop"));
    // Rates including returns: 330 of 600, 495 of 800, 605 of 1000; 130 of 200 at the controller.
    let stay = [1.0 / 270.0, 1.0 / 305.0, 1.0 / 395.0];
    let controller = 1.0 / 70.0;
    let way = |from: usize| stay[from..].iter().map(|stay| 1.1 * stay + 0.1 * controller).sum::<f64>();
    for (from, flow) in report.flows.iter().enumerate() {
        assert_near(flow.from.as_ref().unwrap(), flow.all.mean_s, way(from), 0.0);
    }
    // With `install = "path"` only the first switch asks.
    let (report, _) = simulate(&text("path"));
    let asked: Vec<f64> = report.switches.iter().map(|switch| switch.asked.unwrap().mean).collect();
    let expected = [0.1, 0.1 * 150.0 / 450.0, 0.1 * 100.0 / 550.0];
    for (found, expected) in asked.iter().zip(expected) {
        assert!((found - expected).abs() < 0.002, "{asked:?}, expected {expected}");
    }
}

/// Ticks: mean wait of half a tick plus the queue. Exact for one packet a tick, otherwise from a published vector's
/// simulation.
#[test]
fn ticks_let_some_go_at_a_time() {
    for (rate, most, expected) in [(150.0, 1, 0.005), (600.0, 3, 0.004_215_6), (1000.0, 5, 0.003_156_2)] {
        let timing = format!("tick = '4ms'\ntick_max = {most}");
        let (report, _) =
            simulate(&one_switch("", &timing, &format!("rate = {rate}"), "duration = '300s'\nwarm_up = '2s'"));
        assert_near("tick", report.flows[0].all.mean_s, expected, 0.0);
    }
}

#[test]
fn batches_are_pushed_when_full_or_after_their_time() {
    for (rate, packets, expected, p95) in
        [(30_000.0, 144, 0.001, 0.0019), (80_000.0, 144, 0.000_890_3, 0.001_724_6), (500.0, 32, 0.001, 0.0019)]
    {
        let timing = format!("batch = {{ packets = {packets}, timeout = '2ms' }}");
        let (report, _) =
            simulate(&one_switch("", &timing, &format!("rate = {rate}"), "duration = '10s'\nwarm_up = '100ms'"));
        assert_near("batch", report.flows[0].all.mean_s, expected, 0.0);
        // Percentiles are kept to three digits.
        assert_near("batch p95", report.flows[0].all.p95_s, p95, p95 * 2e-3);
    }
    // Two stages at light load have a mean of one time-out and twice the variance, so a higher percentile.
    let timing = "batch = { packets = 144, timeout = '2ms', stages = 2 }";
    let (report, _) = simulate(&one_switch("", timing, "rate = 1000", "duration = '20s'"));
    assert_near("two stages", report.flows[0].all.mean_s, 0.002, 0.0);
}

/// Writes of another flow seize the data path: M/G/1 with preemptive resume, if writes arrive nearly at random.
/// Packets that ask the controller wait for the data path, too. The busier the data path, the more regular the
/// writes, and the shorter the waits than by the formula.
#[test]
fn writes_interrupt_the_data_path() {
    let traffic = "rate = 5000\n[[traffic]]\nkind = 'udp'\nfrom = 'h2'\nto = 'h1'\narrival = 'poisson'\nrate = 30\nnew_flows = 1.0";
    let timing = "data = '10us'\nwrite = '2ms'\nslow = '1ms'\npacket_in = '1ns'";
    let (report, _) = simulate(&one_switch("", timing, traffic, "duration = '300s'\nwarm_up = '5s'"));
    let (s, rate, write, writes) = (1e-5, 5030.0, 0.002, 30.0);
    let (rho_b, rho_d) = (writes * write, rate * s);
    let expected =
        s / (1.0 - rho_b) + (writes * write * write + rate * s * s) / (2.0 * (1.0 - rho_b) * (1.0 - rho_b - rho_d));
    assert_near("data", report.flows[0].data.mean_s, expected, 0.06 * expected);
    // Effective share: P(V > 1 ms) of the workload of M/D/1, and the packets that asked.
    let slow = 1.0 - (1.0 - rho_b) * (writes * 0.001_f64).exp();
    assert_near("held up", report.switches[0].held_up, (5000.0 * slow + 30.0) / 5030.0, 0.002);
    assert_near("utilisation", report.stations[0].utilisation, rho_b + rho_d, 0.0);
}

#[test]
fn links_serialise_and_lose_what_does_not_fit() {
    // A frame of 1000 bytes takes 1 ms at 8 Mbit/s. Packets at a constant rate never wait. Each link delays by 2 ms.
    let text = one_switch("", "data = '1us'", "rate = 500\npayload = '958B'", "duration = '10s'")
        .replace("arrival = \"poisson\"\n", "")
        .replace("ip = \"10.0.0.2/24\"", "ip = \"10.0.0.2/24\"\nrate = '8Mbit/s'\ndelay = '2ms'\nbuffer = '3kB'");
    let (report, _) = simulate(&text);
    assert_near("alone", report.flows[0].all.mean_s, 0.003_001, 0.0);
    // At twice the capacity half of the packets are lost. The others wait for three packets and the rest of one.
    let (report, _) = simulate(&text.replace("rate = 500", "rate = 2000"));
    assert_near("loss", report.flows[0].loss, 0.5, 1e-3);
    let delay = report.flows[0].all.mean_s.unwrap().mean;
    assert!((0.005..0.007).contains(&delay), "{delay}");
    let line = report.stations.iter().find(|station| station.name == "link s1 > h2").unwrap();
    assert_near("line", line.utilisation, 1.0, 1e-3);
    assert!(!line.overloaded);
}

#[test]
fn what_has_no_steady_state_says_so_and_ends() {
    let text = one_switch("", "data = '10ms'", "rate = 150", "duration = '20s'");
    let (report, runs) = simulate(&text);
    assert!(report.stations[0].overloaded);
    // Packets sent in the window are served after it, too; otherwise the mean would not be of all packets.
    assert!(runs.iter().all(|run| run.flows[0].delays[0].count() == run.flows[0].sent));
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let text =
        one_switch("service = '1ms'", "data = '10us'\nwrite = '1ms'", "rate = 400\nnew_flows = 0.3", "duration = '5s'");
    let events = |text: &str| simulate(text).1.iter().map(|run| (run.events, run.packets)).collect::<Vec<_>>();
    assert_eq!(events(&text), events(&text));
    assert_ne!(events(&text), events(&("seed = 2\n".to_owned() + &text)));
}

#[test]
fn what_cannot_be_simulated_is_named() {
    let of = |text: &str| plan(&Scenario::parse(text, "t").unwrap());
    let base = one_switch("", "data = '1us'", "", "").replace("arrival = \"poisson\"\n", "");
    let error = of(&base.replace("\"udp\"", "\"tcp\"")).unwrap_err().to_string();
    assert_eq!(
        error,
        "found no udp traffic to simulate with stations, expected [[traffic]] with kind = \"udp\": tcp from h1 to h2"
    );
    let both = base.clone() + "[[traffic]]\nkind = 'ping'\nfrom = 'h1'\nto = 'h2'\n";
    assert_eq!(of(&both).unwrap().left_out, ["ping from h1 to h2"]);
    let apart = base.replace("switch = \"s1\"\nip = \"10.0.0.2/24\"", "switch = \"s2\"\nip = \"10.0.0.2/24\"")
        + "[[switch]]\nname = 's2'\n";
    assert_eq!(of(&apart).unwrap_err().to_string(), "udp from h1 to h2: found no way of links between their switches");
}

#[test]
fn links_with_jitter_and_losses_are_drawn() {
    let text = "[topology]\nkind = 'linear'\nswitches = 2\ndelay = '10ms'\njitter = '4ms'\nreorder = true\nloss = '20%'\nloss_burst = 3\n\
                [topology.timing]\ndata = '1us'\n\
                [[traffic]]\nkind = 'udp'\nfrom = 'h1'\nto = 'h2'\nrate = 2000\narrival = 'poisson'\n[simulate]\nduration = '20s'\n";
    let (report, _) = simulate(text);
    let flow = &report.flows[0];
    assert_near("loss", flow.loss, 0.2, 0.0);
    // Two data paths of a microsecond each.
    assert_near("mean", flow.all.mean_s, 10.002e-3, 0.0);
    assert_near("p95", flow.all.p95_s, 10.002e-3 + 0.9 * 4e-3, 0.0);
}

#[test]
fn a_switch_with_times_and_virtual_switches_is_simulated_packet_by_packet() {
    let text = "[[switch]]\nname = 's1'\n[switch.timing]\ndata = '9us'\n[switch.fabric]\nports = 2\nrate = '1Gbit/s'\n\
                [[switch.virtual]]\nname = 'gold'\ndpid = 7\nbuffer = '24kB'\nports = [{ port = 1, rate = '1Gbit/s' }]\n";
    let scenario = Scenario::parse(text, "divided").unwrap_or_else(|error| panic!("{error}"));
    assert!(weir_sim::stations::has_timing(&scenario) && !weir_sim::stations::has_stations(&scenario));
    let error = weir_sim::stations::plan(&scenario).err().unwrap().to_string();
    assert!(error.starts_with("switch s1: found virtual switches") && error.ends_with("(--level packets)"), "{error}");
}
