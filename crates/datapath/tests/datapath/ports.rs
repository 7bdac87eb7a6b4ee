//! Ports: changes by controllers, and port-status messages.
use crate::bench::*;
use weir_openflow::model::error::PortModFailed;
use weir_openflow::model::port::{PortMod, PortStatusReason, bits};
use weir_openflow::model::{Action, ErrorType, Match, PortNo};
use weir_openflow::{Body, Version};

#[test]
fn port_mods_take_effect() {
    let mut bench = Bench::controlled();
    bench.add(1, Match::any(), vec![Action::output(PortNo::FLOOD)]);
    let change = |number, config| {
        let desc = port(number);
        let mask = bits::PORT_DOWN | bits::NO_RECV | bits::NO_FWD | bits::NO_PACKET_IN;
        Body::PortMod(PortMod {
            port_no: desc.port_no,
            hw_addr: desc.hw_addr,
            config,
            mask,
            advertise: 0,
            properties: vec![],
        })
    };
    let [Body::PortStatus(status)] = &bench.ask(CONTROLLER, change(2, bits::NO_FWD))[..] else { panic!() };
    assert_eq!((status.reason, status.desc.config), (PortStatusReason::Modify, bits::NO_FWD));
    assert_eq!(bench.ask(CONTROLLER, change(2, bits::NO_FWD)), [], "nothing changed");
    bench.ask(CONTROLLER, change(3, bits::PORT_DOWN));
    assert_eq!(bench.out.port_admin, [(PortNo(3), false)]);
    bench.ask(CONTROLLER, change(4, bits::NO_RECV));
    assert_eq!(bench.ports_of(1, &frame()), [4]);
    assert_eq!(bench.ports_of(2, &frame()), [1, 4]);
    assert_eq!(bench.ports_of(3, &frame()), [0_u32; 0]);
    assert_eq!(bench.ports_of(4, &frame()), [0_u32; 0]);
    bench.add(2, Match::any(), [output(2), output(3)].concat());
    assert_eq!(bench.ports_of(1, &frame()), [0_u32; 0]);
    let drops = bench.datapath.drops();
    assert_eq!((drops.port_down, drops.no_recv, drops.no_fwd), (2, 1, 1));
    bench.add(3, Match::any(), vec![Action::to_controller()]);
    bench.ask(CONTROLLER, change(1, bits::NO_PACKET_IN));
    bench.receive(1, &frame());
    assert_eq!((bench.packet_ins(CONTROLLER).len(), bench.datapath.drops().no_packet_in), (0, 1));
    bench.ask(CONTROLLER, change(3, 0));
    assert_eq!(bench.out.port_admin, [(PortNo(3), false), (PortNo(3), true)]);
}

#[test]
fn wrong_port_mods() {
    let mut bench = Bench::controlled();
    bench.datapath.channel_up(bench.now, OLD_CONTROLLER, Version::V10);
    let right =
        PortMod { port_no: PortNo(1), hw_addr: port(1).hw_addr, config: 0, mask: 0, advertise: 0, properties: vec![] };
    let no_flood = PortMod { config: bits::NO_FLOOD, mask: bits::NO_FLOOD, ..right.clone() };
    let cases = [
        (CONTROLLER, PortMod { port_no: PortNo(9), ..right.clone() }, Some(PortModFailed::BadPort)),
        (CONTROLLER, PortMod { hw_addr: mac(9), ..right.clone() }, Some(PortModFailed::BadHwAddr)),
        (CONTROLLER, PortMod { advertise: 1, ..right }, Some(PortModFailed::BadAdvertise)),
        (CONTROLLER, no_flood.clone(), Some(PortModFailed::BadConfig)),
        (OLD_CONTROLLER, no_flood, None),
    ];
    for (channel, change, error) in cases {
        let found = bench.error_of(channel, Body::PortMod(change.clone()));
        assert_eq!(found, error.map(ErrorType::from), "{change:?}");
    }
    bench.add(1, Match::any(), vec![Action::output(PortNo::FLOOD)]);
    assert_eq!(bench.ports_of(2, &frame()), [3, 4]);
    bench.add(1, Match::any(), vec![Action::output(PortNo::ALL)]);
    assert_eq!(bench.ports_of(2, &frame()), [1, 3, 4]);
}

#[test]
fn ports_come_and_go() {
    let mut bench = Bench::controlled();
    let reasons = |bench: &mut Bench| -> Vec<(PortStatusReason, u32)> {
        let told = bench.told(CONTROLLER).into_iter();
        told.map(|b| if let Body::PortStatus(s) = b { (s.reason, s.desc.state) } else { panic!("{b:?}") }).collect()
    };
    bench.datapath.add_port(bench.now, port(5), &mut bench.out).unwrap();
    assert_eq!(reasons(&mut bench), [(PortStatusReason::Add, bits::LIVE)]);
    let taken = bench.datapath.add_port(bench.now, port(5), &mut bench.out).unwrap_err();
    assert_eq!(taken, "port p5: number 5 is taken by p5; use another number");
    let mut any = port(6);
    any.port_no = PortNo::ANY;
    bench.datapath.add_port(bench.now, any, &mut bench.out).unwrap_err();
    bench.datapath.set_link(bench.now, PortNo(5), false, 0, &mut bench.out);
    bench.datapath.set_link(bench.now, PortNo(5), false, 0, &mut bench.out);
    assert_eq!(reasons(&mut bench), [(PortStatusReason::Modify, bits::LINK_DOWN)]);
    bench.add(1, Match::any(), vec![Action::output(PortNo::ALL)]);
    assert_eq!(bench.ports_of(1, &frame()), [2, 3, 4]);
    bench.datapath.set_link(bench.now, PortNo(5), true, 10_000_000, &mut bench.out);
    assert_eq!(bench.ports_of(1, &frame()), [2, 3, 4, 5]);
    assert_eq!(bench.datapath.ports()[4].curr_speed, 10_000_000);
    assert!(bench.datapath.remove_port(bench.now, PortNo(5), &mut bench.out));
    assert!(!bench.datapath.remove_port(bench.now, PortNo(5), &mut bench.out));
    assert_eq!(reasons(&mut bench).len(), 2);
    assert_eq!(bench.ports_of(1, &frame()), [2, 3, 4]);
}
