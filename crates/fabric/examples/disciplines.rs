//! Two tenants want more than an output can send. Shows what each gets under the disciplines of the fabric, and how to
//! put a rule of one's own in front of it: here a tenant may not have more than ten packets queued.
//!
//! `cargo run -p weir-fabric --example disciplines`
use weir_fabric::{
    Crosspoint, DequeueResult, Fabric, FabricConfig, FabricError, FabricPacket, InputConfig, InterDiscipline,
    OutputConfig, PortIndex, VirtualPort, VirtualSwitchConfig, VirtualSwitchIndex,
};
use weir_units::{Bps, Instant};

/// Rate of the output.
const LINE: Bps = Bps(100_000_000);
/// Length of all packets in bytes.
const BYTES: u32 = 1000;
/// Number of packets that each tenant offers while the line sends one.
const OFFERED: usize = 2;

/// Rule of the caller: whether to queue a packet, given how many the tenant has in the fabric.
type AdmissionRule = fn(queued: u64) -> bool;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{:<42} {:>6} {:>6} {:>16}", "", "red", "blue", "red's mean delay");
    let cases: [(&str, InterDiscipline, AdmissionRule); 3] = [
        ("deficit round robin, 3 to 1", InterDiscipline::Drr, |_| true),
        ("strict priority for red", InterDiscipline::StrictPriority, |_| true),
        ("deficit round robin, at most ten queued", InterDiscipline::Drr, |queued| queued < 10),
    ];
    for (name, discipline, rule) in cases {
        let [(red, delay_us), (blue, _)] = share_line(discipline, rule)?;
        println!("{name:<42} {:>5.1}% {:>5.1}% {delay_us:>13.0} us", red * 100.0, blue * 100.0);
    }
    Ok(())
}

/// Returns for red and blue the share of the line and the mean delay in microseconds.
fn share_line(discipline: InterDiscipline, rule: AdmissionRule) -> Result<[(f64, f64); 2], Box<dyn std::error::Error>> {
    let mut fabric = two_ports(discipline)?;
    let mut tenants = [VirtualSwitchIndex(0); 2];
    for (tenant, (name, quantum, priority)) in tenants.iter_mut().zip([("red", 3000, 0), ("blue", 1000, 1)]) {
        let ports = (0..2).map(|port| VirtualPort { quantum, ..VirtualPort::new(PortIndex(port), Bps(LINE.0 / 2)) });
        let config = VirtualSwitchConfig { priority, ..VirtualSwitchConfig::new(name, ports.collect(), 50_000) };
        *tenant = fabric.add(Instant::ZERO, config)?;
    }
    let (mut now, mut dropped, mut sent) = (Instant::ZERO, Vec::new(), [(0_u32, 0.0); 2]);
    for _ in 0..10_000 {
        for switch in tenants {
            let at = Crosspoint { switch, input: PortIndex(0), output: PortIndex(1) };
            for _ in 0..OFFERED {
                let queued = fabric.counters(at).map_or(0, |counters| counters.queued.packets);
                if rule(queued) {
                    fabric.enqueue(now, at, FabricPacket::new(BYTES, ()), &mut dropped);
                }
            }
        }
        if let DequeueResult::Packet(packet) = fabric.dequeue(now, PortIndex(1)) {
            let (count, delays_us) = &mut sent[usize::from(packet.switch != tenants[0])];
            *count += 1;
            *delays_us += now.since(packet.arrived).as_secs_f64() * 1e6;
        }
        dropped.clear();
        now += LINE.time_of(BYTES.into());
    }
    let total = f64::from(sent[0].0 + sent[1].0);
    Ok(sent.map(|(count, delays_us)| (f64::from(count) / total, delays_us / f64::from(count.max(1)))))
}

fn two_ports(discipline: InterDiscipline) -> Result<Fabric<()>, FabricError> {
    let output = OutputConfig { discipline, ..OutputConfig::new(LINE, 100_000) };
    Fabric::new(FabricConfig {
        inputs: vec![InputConfig { rate: LINE }; 2],
        outputs: vec![output; 2],
        ..FabricConfig::default()
    })
}
