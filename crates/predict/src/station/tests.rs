//! Tests single stations.
use super::gate::gate_waiting;
use super::waiting::spread;
use super::*;

fn station(places: Option<usize>, arriving: &[(f64, f64, Law)]) -> AnalyticStation {
    let mut station = AnalyticStation::new("s".into(), places);
    let one = |(rate, scv, law): &(f64, f64, Law)| ArrivalStream {
        flow: 0,
        rate: *rate,
        scv: *scv,
        source_scv: *scv,
        modulation: None,
        passed: Vec::new(),
        service: ServiceMoments::new(law.clone()),
        first: false,
    };
    station.arrivals = arriving.iter().map(one).collect();
    for _ in 0..100 {
        station.update_load(1.0).unwrap();
    }
    station
}

#[test]
fn several_poisson_flows_are_one() {
    let law = |mean| Law::exponential(mean).unwrap();
    let station = station(None, &[(30.0, 1.0, law(0.01)), (40.0, 1.0, law(0.01))]);
    let solved = station.solve().unwrap().unwrap();
    assert_eq!(solved.formula, "M/G/1");
    assert!((solved.waiting[0].mean() + 0.01 - 1.0 / 30.0).abs() < 1e-9 && (solved.utilisation - 0.7).abs() < 1e-12);
    assert!((station.state.departure_scv - 1.0).abs() < 1e-12);
}

#[test]
fn one_regular_flow_does_not_wait() {
    let station = station(None, &[(90.0, 0.0, Law::constant(0.01).unwrap())]);
    assert_eq!(station.solve().unwrap().unwrap().waiting[0].mean(), 0.0);
}

#[test]
fn a_full_buffer_loses_as_the_formula_says() {
    let law = Law::exponential(0.01).unwrap();
    let station = station(Some(10), &[(120.0, 1.0, law.clone())]);
    let exact = weir_model::station::mm1k(120.0, 100.0, 10).unwrap();
    let solved = station.solve().unwrap().unwrap();
    assert!((station.state.loss - exact.loss).abs() < 1e-9, "{} {}", station.state.loss, exact.loss);
    assert!((solved.waiting[1].mean() - exact.waiting_s).abs() < 1e-9);
}

#[test]
fn without_limit_too_much_has_no_answer_and_what_can_goes_on() {
    let station = station(None, &[(150.0, 1.0, Law::exponential(0.01).unwrap())]);
    assert!(station.is_unstable() && station.solve().unwrap().is_none());
    assert!((station.delivery_share() - 1.0 / 1.5).abs() < 1e-12);
}

#[test]
fn writes_lengthen_the_delay_as_the_reference_has_it() {
    // 30 writes of 8 ms and 5000 packets of 10 us a second: T_data of the reference vectors.
    let mut station = station(None, &[(5000.0, 1.0, Law::constant(1e-5).unwrap())]);
    station.seized = Some((0.008, 30.0));
    station.update_load(1.0).unwrap();
    let solved = station.solve().unwrap().unwrap();
    let s = 1e-5;
    let (taken, data) = (0.24, 0.05);
    let expected =
        s / (1.0 - taken) + (30.0 * 0.008 * 0.008 + 5000.0 * s * s) / (2.0 * (1.0 - taken) * (1.0 - taken - data));
    assert!((solved.waiting[0].mean() + s - expected).abs() < 1e-9);
}

#[test]
fn gates_hold_packets_as_long_as_the_reference_has_it() {
    let tick = |most| ReleaseGate::Tick { every: std::time::Duration::from_millis(4), most };
    for (gate, rate, mean) in [
        (tick(Some(1)), 150.0, 0.005),
        (tick(Some(3)), 600.0, 0.004_215_600_9),
        (tick(None), 600.0, 0.002),
        (
            ReleaseGate::Batch { packets: 144, timeout: std::time::Duration::from_millis(2), stages: 1 },
            80_000.0,
            0.000_890_358_5,
        ),
    ] {
        let waiting = gate_waiting(&gate, rate).unwrap();
        assert!((waiting.mean() / mean - 1.0).abs() < 1e-6, "{gate:?}: {}", waiting.mean());
    }
    let waiting = gate_waiting(
        &ReleaseGate::Batch { packets: 32, timeout: std::time::Duration::from_millis(2), stages: 1 },
        500.0,
    )
    .unwrap();
    assert!((waiting.quantile(0.95).unwrap() - 0.0019).abs() < 3e-5);
    let mut station = AnalyticStation::new("s".into(), None);
    station.gate = Some(tick(Some(1)));
    station.arrivals = vec![ArrivalStream {
        flow: 0,
        rate: 300.0,
        scv: 1.0,
        source_scv: 1.0,
        modulation: None,
        passed: Vec::new(),
        service: ServiceMoments::new(Law::constant(1e-12).unwrap()),
        first: false,
    }];
    station.update_load(1.0).unwrap();
    assert!(station.is_unstable() && (station.state.offered - 1.2).abs() < 1e-12);
}

#[test]
fn waiting_has_the_moments_it_is_given() {
    for (share, mean, square) in [(0.5, 1.0, 6.0), (0.9, 2.0, 4.0), (1.0, 1e-6, 3e-12)] {
        let waiting = spread(share, mean, square).unwrap();
        assert!((waiting.mean() - mean).abs() < 1e-9 * mean);
        assert!((waiting.variance() + mean * mean - square).abs() < 1e-9 * square, "{share}");
    }
}

#[test]
fn waiting_of_one_value_is_constant_despite_rounding() {
    let (share, time) = (0.3, 0.7);
    let waiting = spread(share, share * time, share * time * time * (1.0 + 1e-15)).unwrap();
    assert_eq!(waiting.quantile(0.9).unwrap(), time);
}
