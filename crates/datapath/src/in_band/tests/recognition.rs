//! Which frames are control traffic, and which are left to the flow tables.
use super::frames::{dhcp, dhcpv6, tagged};
use super::*;

#[test]
fn only_control_traffic_is_taken() {
    let in_band = in_band();
    let (local, port) = (PortNo::LOCAL, PortNo(1));
    let host = (HOST_MAC, HOST_ADDRESS);
    let taken = [
        (local, dhcp(LOCAL_MAC, true, LOCAL_MAC)),
        (port, dhcp(HOST_MAC, false, LOCAL_MAC)),
        (local, Neighbour { from: (LOCAL_MAC, LOCAL_ADDRESS), to: None, target: HOST_ADDRESS }.bytes()),
        (port, Neighbour { from: host, to: Some(LOCAL_MAC), target: LOCAL_ADDRESS }.bytes()),
        (port, asks_for_controller().bytes()),
        (port, Neighbour { from: (CONTROLLER_MAC, CONTROLLER.ip()), to: None, target: OTHER_ADDRESS }.bytes()),
        (port, to_controller(OTHER_MAC, OTHER_ADDRESS)),
        (port, from_controller(OTHER_MAC, OTHER_ADDRESS)),
    ];
    for (place, (port, frame)) in taken.iter().enumerate() {
        assert!(in_band.takes(*port, frame), "frame {place}");
        // A frame that is cut short anywhere is not read beyond its end.
        assert!((0..14).all(|length| !in_band.takes(*port, &frame[..length])));
        (14..frame.len()).for_each(|length| _ = in_band.takes(*port, &frame[..length]));
    }
    let other_port = SocketAddr::new(CONTROLLER.ip(), 22);
    let mut fragment = to_controller(OTHER_MAC, OTHER_ADDRESS);
    fragment[21] = 9;
    let left = [
        (port, dhcp(HOST_MAC, true, HOST_MAC)),
        (port, dhcp(HOST_MAC, false, HOST_MAC)),
        (port, Neighbour { from: host, to: None, target: OTHER_ADDRESS }.bytes()),
        (
            port,
            segment((HOST_MAC, SocketAddr::new(HOST_ADDRESS, 6653)), (OTHER_MAC, SocketAddr::new(OTHER_ADDRESS, 80))),
        ),
        (port, segment((HOST_MAC, SocketAddr::new(HOST_ADDRESS, 9)), (CONTROLLER_MAC, other_port))),
        (port, fragment),
        (port, tagged(asks_for_controller().bytes(), 1)),
        (port, Vec::new()),
    ];
    for (place, (port, frame)) in left.iter().enumerate() {
        assert!(!in_band.takes(*port, frame), "frame {place}");
    }
}

#[test]
fn ipv6_controllers_have_neighbour_discovery_instead_of_arp() {
    let mut in_band = in_band();
    in_band.set_controllers(&[CONTROLLER_V6]);
    let (local, port) = (PortNo::LOCAL, PortNo(1));
    let address = |low: u16| IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 1, low]);
    let link_local = |low: u16| IpAddr::from([0xfe80, 0, 0, 0, 0, 0, 0, low]);
    let solicited = |from, to, target| Neighbour { from, to, target }.bytes();
    let (host, other, controller) =
        ((HOST_MAC, address(50)), (OTHER_MAC, address(2)), (CONTROLLER_MAC, CONTROLLER_V6.ip()));
    let own = |port: u16| (LOCAL_MAC, SocketAddr::new(address(1), port));
    let taken = [
        (local, dhcpv6(LOCAL_MAC, None)),
        (port, dhcpv6(HOST_MAC, Some(LOCAL_MAC))),
        (local, solicited((LOCAL_MAC, address(1)), None, host.1)),
        (port, solicited(host, Some(LOCAL_MAC), address(1))),
        (port, solicited(other, None, controller.1)),
        (port, solicited(controller, Some(OTHER_MAC), other.1)),
        (port, solicited(controller, None, other.1)),
        (local, segment(own(40000), (CONTROLLER_MAC, CONTROLLER_V6))),
        (port, segment((CONTROLLER_MAC, CONTROLLER_V6), (OTHER_MAC, SocketAddr::new(other.1, 40000)))),
    ];
    for (place, (port, frame)) in taken.iter().enumerate() {
        assert!(in_band.takes(*port, frame), "frame {place}");
        (0..frame.len()).for_each(|length| _ = in_band.takes(*port, &frame[..length]));
    }
    let mut routed = solicited(other, None, controller.1);
    routed[21] = 254;
    let probe = |from: (MacAddr, IpAddr), to: MacAddr| solicited(from, Some(to), link_local(9));
    let left = [
        (port, dhcpv6(HOST_MAC, None)),
        (port, solicited(host, None, other.1)),
        (port, asks_for_controller().bytes()),
        (port, routed),
        (port, segment((HOST_MAC, SocketAddr::new(host.1, 6653)), (OTHER_MAC, SocketAddr::new(other.1, 80)))),
        (port, probe((OTHER_MAC, link_local(2)), CONTROLLER_MAC)),
    ];
    for (place, (port, frame)) in left.iter().enumerate() {
        assert!(!in_band.takes(*port, frame), "frame {place}");
    }
    // A controller and a station of control traffic check each other from their link-local addresses.
    decide(
        &mut in_band,
        0,
        PortNo(2),
        &segment((OTHER_MAC, SocketAddr::new(other.1, 9)), (CONTROLLER_MAC, CONTROLLER_V6)),
    );
    decide(&mut in_band, 0, PortNo(1), &solicited(controller, Some(OTHER_MAC), other.1));
    assert_eq!(decide(&mut in_band, 1, PortNo(2), &probe((OTHER_MAC, link_local(2)), CONTROLLER_MAC)), Some(to(1)));
    assert!(in_band.takes(PortNo(1), &probe((CONTROLLER_MAC, link_local(100)), OTHER_MAC)));
    assert!(!in_band.takes(PortNo(2), &probe((OTHER_MAC, link_local(2)), HOST_MAC)));
    // What other stations ask each other is left to the flow tables, although both asked for the controller before.
    decide(&mut in_band, 1, PortNo(3), &solicited(host, None, controller.1));
    assert!(in_band.takes(PortNo(3), &probe((HOST_MAC, link_local(50)), CONTROLLER_MAC)));
    for (from, to) in [(OTHER_MAC, HOST_MAC), (HOST_MAC, OTHER_MAC)] {
        assert!(!in_band.takes(PortNo(2), &probe((from, link_local(2)), to)));
        assert!(!in_band.takes(PortNo(2), &solicited((from, other.1), Some(to), host.1)));
    }
    // A router is like a controller, also when its port was forgotten.
    let router = (MacAddr([2, 0, 0, 0, 0, 254]), address(254));
    in_band.set_next_hops(&[router.1]);
    decide(&mut in_band, 2, PortNo(4), &solicited(router, Some(LOCAL_MAC), address(1)));
    in_band.paths.forget(router.0);
    assert!(in_band.takes(PortNo(2), &probe((OTHER_MAC, link_local(2)), router.0)));
    in_band.set_next_hops(&[]);
    let entries: Vec<String> = in_band.state(at(1)).entries.iter().map(ToString::to_string).collect();
    assert_eq!(
        entries,
        [
            "udp6,in_port=LOCAL,tp_src=546,tp_dst=547",
            "udp6,tp_src=547,tp_dst=546,dl_dst=02:00:00:00:00:01",
            "nd,in_port=LOCAL",
            "nd,dl_dst=02:00:00:00:00:01",
            "nd,to=fd00::100",
            "nd,from=fd00::100",
            "nd,between controllers and stations of control traffic",
            "tcp6,ipv6_dst=fd00::100,tp_dst=6653",
            "tcp6,ipv6_src=fd00::100,tp_src=6653",
            "dl_type=0x88b5,notices of lost paths",
        ]
    );
    in_band.set_controllers(&[CONTROLLER_V6, CONTROLLER]);
    assert!(in_band.takes(port, &asks_for_controller().bytes()) && in_band.takes(port, &taken[4].1));
}

#[test]
fn tagged_control_traffic_is_that_of_its_vlan() {
    let config = InBandConfig { controllers: vec![CONTROLLER], silence: SILENCE, queue: None, vlan: Some(20) };
    let mut in_band = InBand::new(config);
    in_band.set_local(LOCAL_MAC);
    let question = asks_for_controller().bytes();
    assert!(!in_band.takes(PortNo(1), &question) && !in_band.takes(PortNo(1), &tagged(question.clone(), 21)));
    // The priority of the tag does not matter.
    assert_eq!(decide(&mut in_band, 0, PortNo(2), &tagged(question.clone(), 20 | 7 << 13)), Some(FLOOD));
    let answer = tagged(from_controller(OTHER_MAC, OTHER_ADDRESS), 20);
    assert_eq!(decide(&mut in_band, 1, PortNo(1), &answer), Some(to(2)));
    (0..answer.len()).for_each(|length| _ = in_band.takes(PortNo(1), &answer[..length]));
    let entries = in_band.state(at(1)).entries;
    assert_eq!(entries[4].to_string(), "dl_vlan=20,arp,arp_tpa=10.0.0.100");
}

#[test]
fn the_next_hop_is_let_through_like_a_controller() {
    let mut in_band = in_band();
    let router = IpAddr::from([10, 0, 0, 254]);
    let question = Neighbour { from: (OTHER_MAC, OTHER_ADDRESS), to: None, target: router }.bytes();
    assert!(!in_band.takes(PortNo(1), &question));
    in_band.set_next_hops(&[router]);
    assert!(in_band.takes(PortNo(1), &question));
    in_band.set_next_hops(&[]);
    assert!(!in_band.takes(PortNo(1), &question));
}

/// The filter in front must let all frames through that an entry takes.
#[test]
fn the_filter_agrees_with_the_entries() {
    for vlan in [None, Some(20)] {
        let controllers = vec![CONTROLLER, CONTROLLER_V6];
        let mut in_band = InBand::new(InBandConfig { controllers, silence: SILENCE, queue: None, vlan });
        in_band.set_local(LOCAL_MAC);
        let v6 = (OTHER_MAC, SocketAddr::new(IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 1, 2]), 40000));
        let frames = [
            dhcp(LOCAL_MAC, true, LOCAL_MAC),
            dhcp(HOST_MAC, false, LOCAL_MAC),
            dhcpv6(LOCAL_MAC, None),
            dhcpv6(HOST_MAC, Some(LOCAL_MAC)),
            asks_for_controller().bytes(),
            Neighbour { from: (OTHER_MAC, v6.1.ip()), to: None, target: CONTROLLER_V6.ip() }.bytes(),
            to_controller(OTHER_MAC, OTHER_ADDRESS),
            segment((CONTROLLER_MAC, CONTROLLER_V6), v6),
        ];
        let frames = frames.map(|frame| vlan.map_or_else(|| frame.clone(), |vlan| tagged(frame.clone(), vlan)));
        let notice = in_band.notices(&[OTHER_MAC]).next().expect("a notice");
        let mut taken = 0;
        for frame in frames.into_iter().chain([notice]) {
            for (at, value) in (0..frame.len()).flat_map(|at| [0, 1, 6, 17, 58, 67, 0x45, 0x46, 0xff].map(|v| (at, v)))
            {
                let mut changed = frame.clone();
                changed[at] = value;
                for (port, length) in [(PortNo(1), frame.len()), (PortNo::LOCAL, frame.len()), (PortNo(1), at)] {
                    let changed = &changed[..length];
                    let is_taken = in_band.entry_of(port, changed).is_some();
                    assert_eq!(in_band.takes(port, changed), is_taken, "byte {at} is {value}, {length} bytes");
                    taken += usize::from(is_taken);
                }
            }
        }
        assert!(taken > 1000, "{taken} of them are control traffic");
    }
}
