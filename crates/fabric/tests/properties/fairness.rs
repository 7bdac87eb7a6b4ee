//! Tests of deficit round robin's bound: a queue that always has packets gets its share, whatever packets the others
//! have.
use proptest::prelude::*;
use weir_fabric::*;
use weir_units::{Bps, Instant};

const RATE: Bps = Bps(1_000_000_000);
const MAX: f64 = 1500.0;

proptest! {
    /// Shares of virtual switches.
    #[test]
    fn among_switches(
        quanta in proptest::collection::vec(1..6000u32, 2..6),
        lengths in proptest::collection::vec(proptest::collection::vec(60..=1500u32, 1..8), 6),
    ) {
        let mut fabric = fabric(1, InterDiscipline::Drr);
        for quantum in &quanta {
            let port = VirtualPort { quantum: *quantum, ..VirtualPort::new(PortIndex(0), Bps(1_000_000)) };
            fabric.add(Instant::ZERO, VirtualSwitchConfig::new("v", vec![port], 20_000)).unwrap();
        }
        let places: Vec<Crosspoint> = (0..).take(quanta.len()).map(|switch| at(switch, 0)).collect();
        check_shares(fabric, &places, |_, _| true, &quanta, &lengths)?;
    }

    /// Shares of the inputs of a virtual switch, while another switch is served in between.
    #[test]
    fn among_inputs(
        quantum in 1..4000u32,
        lengths in proptest::collection::vec(proptest::collection::vec(60..=1500u32, 1..8), 6),
    ) {
        let mut fabric = fabric(4, InterDiscipline::StrictPriority);
        let mut ports: Vec<VirtualPort> = (0..4).map(|port| VirtualPort::new(PortIndex(port), Bps(1_000_000))).collect();
        ports[1..].iter_mut().for_each(|port| port.rate_out = Bps(0));
        let intra = IntraDiscipline::Drr;
        let config = VirtualSwitchConfig { intra, intra_quantum: quantum, ..VirtualSwitchConfig::new("v", ports, 20_000) };
        fabric.add(Instant::ZERO, config.clone()).unwrap();
        fabric.add(Instant::ZERO, config).unwrap();
        let places: Vec<Crosspoint> = (0..2).flat_map(|switch| (0..4).map(move |input| at(switch, input))).collect();
        check_shares(fabric, &places, |one, other| one.switch == other.switch, &[quantum; 8], &lengths)?;
    }
}

fn at(switch: u16, input: u16) -> Crosspoint {
    Crosspoint { switch: VirtualSwitchIndex(switch), input: PortIndex(input), output: PortIndex(0) }
}

fn fabric(inputs: usize, discipline: InterDiscipline) -> Fabric<usize> {
    let outputs = vec![OutputConfig { discipline, ..OutputConfig::new(RATE, 200_000) }];
    Fabric::new(FabricConfig { inputs: vec![InputConfig { rate: RATE }; inputs], outputs, ..FabricConfig::default() })
        .unwrap()
}

/// Keeps a few packets in each queue, with the queue's own lengths in turn, and compares the rounds that the queues
/// get, from any time to any other.
fn check_shares(
    mut fabric: Fabric<usize>,
    places: &[Crosspoint],
    compared: fn(Crosspoint, Crosspoint) -> bool,
    quanta: &[u32],
    lengths: &[Vec<u32>],
) -> Result<(), TestCaseError> {
    let mut put = vec![0; places.len()];
    let mut refill = |fabric: &mut Fabric<usize>, place: usize| {
        let lengths = &lengths[place % lengths.len()];
        let bytes = lengths[put[place] % lengths.len()];
        put[place] += 1;
        assert!(fabric.enqueue(Instant::ZERO, places[place], FabricPacket::new(bytes, place), &mut Vec::new()));
    };
    (0..places.len()).for_each(|place| (0..3).for_each(|_| refill(&mut fabric, place)));
    let mut rounds = vec![0.0; places.len()];
    let mut range = vec![vec![(0.0f64, 0.0f64); places.len()]; places.len()];
    for _ in 0..600 {
        let DequeueResult::Packet(departure) = fabric.dequeue(Instant::ZERO, PortIndex(0)) else {
            panic!("all have packets")
        };
        let served = departure.item;
        rounds[served] += f64::from(departure.bytes) / f64::from(quanta[served]);
        refill(&mut fabric, served);
        for other in (0..places.len()).filter(|other| *other != served && compared(places[*other], places[served])) {
            let (low, high) = &mut range[served][other];
            let ahead = rounds[served] - rounds[other];
            (*low, *high) = (low.min(ahead), high.max(ahead));
            // Visits differ by one. Carried-over credit is less than a packet at either end of any window, and a
            // window may begin and end within a visit.
            let bound = 3.0 + MAX / f64::from(quanta[served]) + MAX / f64::from(quanta[other]);
            prop_assert!(
                *high - *low <= bound,
                "{served} beside {other}: {low} to {high} rounds, expected within {bound}"
            );
        }
    }
    Ok(())
}
