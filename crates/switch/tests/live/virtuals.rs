//! Virtual switches on one switch: isolated from each other, added and removed under traffic.
use crate::bed::{Controller, Host, forward, punt, switch, until};
use std::collections::BTreeMap;
use tokio::net::{TcpListener, TcpStream};
use weir_openflow::Body;
use weir_openflow::model::error::FlowModFailed;
use weir_openflow::model::multipart::{MultipartRequest, ReplyBody, RequestBody};
use weir_openflow::model::{Action, ErrorType, Instruction, PortNo};
use weir_scenario::{parse_slicing, parse_virtual_switch};
use weir_slicing::{FabricSpec, VirtualSwitch};
use weir_switch::{ListenTarget, SoftwareSwitchConfig, SwitchError, SwitchHandle, VirtualSwitchSnapshot};
use weir_units::Bps;

/// Returns the text of a virtual switch on ports 1 to 3 with the guaranteed rate `rate` each; `more` has further
/// keys.
fn text(name: &str, dpid: u64, rate: &str, more: &str) -> String {
    let ports: Vec<String> = (1..=3).map(|port| format!("{{ port = {port}, rate = '{rate}' }}")).collect();
    format!(
        "name = '{name}'\ndpid = {dpid}\nports = [{}]\nbuffer = '64kB'\nlisten = 'ptcp:0'\n{more}\n",
        ports.join(", ")
    )
}

fn cut(text: &str) -> VirtualSwitch {
    parse_virtual_switch(text, "test", &fabric()).unwrap()
}

fn fabric() -> FabricSpec {
    let ports: BTreeMap<u32, Option<Bps>> = (1..=3).map(|port| (port, None)).collect();
    parse_slicing("[fabric]\nrate = '1Gbit/s'\n", "test", "s", ports).unwrap().0
}

/// Starts a switch with three hosts, with `gold` for packets from port 1 and `tin` for those from port 2.
fn two() -> (SwitchHandle, Vec<Host>, [ListenTarget; 2]) {
    let config = SoftwareSwitchConfig { fabric: Some(fabric()), ..SoftwareSwitchConfig::default() };
    let (switch, hosts) = switch(3, config);
    let gold = switch.add_virtual(cut(&text("gold", 0x101, "400Mbit/s", "select = [{ port = 1 }]"))).unwrap();
    let tin = switch.add_virtual(cut(&text("tin", 0x102, "400Mbit/s", "select = [{ port = 2 }]"))).unwrap();
    let at = |listeners: Vec<ListenTarget>| listeners.into_iter().next().unwrap();
    (switch, hosts, [at(gold), at(tin)])
}

async fn connect(at: &ListenTarget) -> Controller<TcpStream> {
    let ListenTarget::Tcp(address) = at else { panic!("{at}") };
    Controller::up(TcpStream::connect(address).await.unwrap()).await
}

/// Tells the switch that a connected tool wants packet-ins and port-status messages.
async fn listens(controller: &mut Controller<TcpStream>) {
    let config = weir_openflow::model::SwitchConfig { flags: 0, miss_send_len: 0xffff };
    controller.send(Body::SetConfig(config)).await;
    controller.barrier().await;
}

fn shown(switch: &SwitchHandle, name: &str) -> VirtualSwitchSnapshot {
    let all = switch.snapshot().unwrap().virtual_switches;
    all.into_iter().find(|cut| cut.name == name).unwrap_or_else(|| panic!("{name} is not there"))
}

#[tokio::test]
async fn each_is_a_switch_of_its_own() {
    let (switch, mut hosts, at) = two();
    let (mut gold, mut tin) = (connect(&at[0]).await, connect(&at[1]).await);
    assert_eq!((gold.features.datapath_id, tin.features.datapath_id), (0x101, 0x102));
    gold.send(Body::FlowMod(forward(1, 3))).await;
    gold.barrier().await;
    tin.barrier().await;
    let [a, b, c] = &mut hosts[..] else { unreachable!() };
    a.send(c, 1);
    assert_eq!(c.tag(), 1);
    // Tin has no entry: packets from its port are dropped, whatever gold's entries are.
    b.send(c, 2);
    until(|| shown(&switch, "tin").ports[1].rx_packets == 1).await;
    tin.send(Body::FlowMod(forward(2, 3))).await;
    tin.barrier().await;
    b.send(c, 3);
    assert_eq!(c.tag(), 3);
    let (gold, tin) = (shown(&switch, "gold"), shown(&switch, "tin"));
    assert_eq!((gold.ports[0].rx_packets, gold.ports[2].tx_packets), (1, 1));
    assert_eq!((tin.ports[1].rx_packets, tin.ports[2].tx_packets), (2, 1));
    assert_eq!(tin.crosspoints.iter().map(|at| (at.from.0, at.to.0)).collect::<Vec<_>>(), [(2, 3)]);
    assert!(switch.snapshot().unwrap().tables.is_empty(), "the switch's own tables saw nothing");
}

#[tokio::test]
async fn what_is_nobodys_goes_through_the_switchs_own_tables() {
    let (switch, mut hosts, _) = two();
    switch.flow_mod(forward(3, 1)).unwrap();
    let [a, _, c] = &mut hosts[..] else { unreachable!() };
    c.send(a, 7);
    assert_eq!(a.tag(), 7, "port 3's packets are for no virtual switch, port 1's line is shared");
    assert!(switch.snapshot().unwrap().virtual_switches.iter().all(|cut| cut.ports[0].tx_packets == 0));
}

#[tokio::test]
async fn what_does_not_fit_changes_nothing() {
    let (switch, mut hosts, at) = two();
    let before = switch.snapshot().unwrap().virtual_switches;
    let ListenTarget::Tcp(address) = &at[0] else { unreachable!() };
    let cases = [
        (
            text("lead", 0x103, "300Mbit/s", "select = [{ port = 3 }]"),
            "input 1: asked for 300Mbit/s, 200Mbit/s of 1Gbit/s are free: 100Mbit/s short",
        ),
        (text("gold", 0x103, "1Mbit/s", "select = [{ port = 3 }]"), "there is one of this name already"),
        (text("lead", 0x101, "1Mbit/s", "select = [{ port = 3 }]"), "0x101, which gold has"),
        (text("lead", 1, "1Mbit/s", "select = [{ port = 3 }]"), "which the switch itself has"),
        (text("lead", 0x103, "1Mbit/s", "select = [{ port = 2 }]"), "which tin has"),
        (
            text("lead", 0x103, "1Mbit/s", "select = [{ port = 3 }]")
                .replace("ptcp:0", &format!("ptcp:{}", address.port())),
            "another program listens there",
        ),
        (
            text("lead", 0x103, "1Mbit/s", "select = [{ port = 3 }]").replace("ptcp:0", "ptcp:x"),
            "listen: found `ptcp:x`",
        ),
        (text("lead", 0x103, "1Mbit/s", "connect = 'ssl:127.0.0.1'"), "TLS needs a private key"),
    ];
    for (text, says) in cases {
        let error = switch.add_virtual(cut(&text)).unwrap_err().to_string();
        assert!(error.contains(says), "{says}: {error}");
    }
    let wider = cut(&text("gold", 0x101, "700Mbit/s", "select = [{ port = 1 }]"));
    assert!(switch.resize_virtual(wider).unwrap_err().to_string().contains("600Mbit/s of 1Gbit/s are free"));
    let other = cut(&text("gold", 0x109, "1Mbit/s", "select = [{ port = 1 }]"));
    assert!(switch.resize_virtual(other).unwrap_err().to_string().contains("dpid cannot change"));
    assert!(matches!(switch.remove_virtual("nobody"), Err(SwitchError::Request(_))));
    assert_eq!(switch.snapshot().unwrap().virtual_switches, before);
    switch.virtual_flow_mod("gold", forward(1, 3)).unwrap();
    let [a, _, c] = &mut hosts[..] else { unreachable!() };
    a.send(c, 4);
    assert_eq!(c.tag(), 4);
}

#[tokio::test]
async fn one_that_is_removed_while_its_controller_writes_disturbs_nobody() {
    let (switch, mut hosts, at) = two();
    let (mut gold, mut tin) = (connect(&at[0]).await, connect(&at[1]).await);
    tin.send(Body::FlowMod(forward(2, 3))).await;
    tin.barrier().await;
    for number in 4..200 {
        gold.send(Body::FlowMod(forward(number, 3))).await;
    }
    switch.remove_virtual("gold").unwrap();
    gold.closed().await;
    tin.barrier().await;
    let [_, b, c] = &mut hosts[..] else { unreachable!() };
    b.send(c, 5);
    assert_eq!(c.tag(), 5);
    assert_eq!(switch.snapshot().unwrap().virtual_switches.len(), 1);
    // The rates, name, number and packets of the removed virtual switch are available again.
    let gold = cut(&text("gold", 0x101, "600Mbit/s", "select = [{ port = 1 }]"));
    let at = switch.add_virtual(gold).unwrap();
    connect(&at[0]).await.barrier().await;
    switch.remove_virtual("gold").unwrap();
    switch.remove_virtual("tin").unwrap();
    tin.closed().await;
    switch.flow_mod(forward(2, 3)).unwrap();
    b.send(c, 6);
    assert_eq!(c.tag(), 6, "without virtual switches it is a switch like any other");
}

#[tokio::test]
async fn one_that_is_resized_while_packets_and_flow_mods_come_loses_nothing() {
    let (switch, mut hosts, at) = two();
    let mut gold = connect(&at[0]).await;
    gold.send(Body::FlowMod(forward(1, 3))).await;
    gold.barrier().await;
    let [a, b, c] = &mut hosts[..] else { unreachable!() };
    for (step, rate) in ["500Mbit/s", "200Mbit/s", "450Mbit/s", "400Mbit/s"].into_iter().enumerate() {
        for number in 0..50 {
            a.send(c, step as u64 * 50 + number);
            gold.send(Body::FlowMod(forward(4 + u32::try_from(number).unwrap(), 3))).await;
        }
        switch.resize_virtual(cut(&text("gold", 0x101, rate, "select = [{ port = 1 }]"))).unwrap();
    }
    for tag in 0..200 {
        assert_eq!(c.tag(), tag, "all come, in their order");
    }
    gold.barrier().await;
    let shown = shown(&switch, "gold");
    assert_eq!((shown.ports[0].rx_packets, shown.ports[2].tx_packets, shown.ports[2].dropped), (200, 200, 0));
    // Its packets belong to others from now on.
    switch.resize_virtual(cut(&text("gold", 0x101, "400Mbit/s", "select = [{ port = 3 }]"))).unwrap();
    switch.flow_mod(forward(1, 2)).unwrap();
    a.send(b, 1000);
    assert_eq!(b.tag(), 1000, "the switch's own tables have them");
}

#[tokio::test]
async fn controllers_listeners_and_fail_mode_change_while_it_runs() {
    let (switch, mut hosts, at) = two();
    let change = |listen: &str, more: &str| {
        let whole = text("gold", 0x101, "400Mbit/s", &format!("select = [{{ port = 1 }}]\n{more}"));
        switch.resize_virtual(cut(&whole.replace("listen = 'ptcp:0'", &format!("listen = {listen}"))))
    };
    let mut stays = connect(&at[0]).await;
    let waits = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let connects = format!("connect = 'tcp:{}'", waits.local_addr().unwrap());
    change("'ptcp:0'", &connects).unwrap();
    let mut controller = Controller::up(waits.accept().await.unwrap().0).await;
    controller.barrier().await;

    // An address that is taken changes nothing.
    let taken = format!("['ptcp:0', 'ptcp:{}:127.0.0.1']", waits.local_addr().unwrap().port());
    let error = change(&taken, "fail_mode = 'standalone'").unwrap_err().to_string();
    assert!(error.contains("another program listens there"), "{error}");
    controller.barrier().await;
    change("'ptcp:0'", &connects).unwrap();
    controller.barrier().await;

    change("'ptcp:0'", "fail_mode = 'standalone'").unwrap();
    controller.closed().await;
    let [a, b, c] = &mut hosts[..] else { unreachable!() };
    a.send(c, 7);
    assert_eq!((b.tag(), c.tag()), (7, 7), "it floods like a learning switch");

    stays.barrier().await;
    change("[]", "").unwrap();
    stays.closed().await;
    let ListenTarget::Tcp(address) = at[0] else { unreachable!() };
    assert!(TcpStream::connect(address).await.is_err());
    // A connection of another program may have the port for a while.
    until(|| change(&format!("'{}'", at[0]), "").is_ok()).await;
    connect(&at[0]).await.barrier().await;
}

#[tokio::test]
async fn a_lifetime_ends() {
    let (switch, _hosts, _) = two();
    let short = text("short", 0x103, "1Mbit/s", "select = [{ port = 3 }]\nlifetime = '300ms'");
    let at = switch.add_virtual(cut(&short)).unwrap();
    let mut controller = connect(&at[0]).await;
    assert!(shown(&switch, "short").ends_in_s.is_some_and(|left| left <= 0.3));
    controller.closed().await;
    until(|| switch.snapshot().unwrap().virtual_switches.len() == 2).await;
}

#[tokio::test]
async fn limits_are_each_ones_own() {
    let (switch, mut hosts, at) = two();
    switch.remove_virtual("tin").unwrap();
    let small =
        text("tin", 0x102, "1Mbit/s", "select = [{ port = 2 }]\nmax_entries = 2\nmax_packet_ins = 1\ntables = 3");
    let at_tin = switch.add_virtual(cut(&small)).unwrap();
    let (mut gold, mut tin) = (connect(&at[0]).await, connect(&at_tin[0]).await);
    assert_eq!(tin.features.n_tables, 3);
    listens(&mut tin).await;
    for entry in [punt(), forward(7, 3)] {
        tin.send(Body::FlowMod(entry)).await;
    }
    let beyond = tin.send(Body::FlowMod(forward(8, 3))).await;
    let error = tin.expect(|message| (message.xid == beyond).then_some(message.body)).await;
    assert!(
        matches!(&error, Body::Error(error) if error.error == ErrorType::FlowModFailed(FlowModFailed::TableFull)),
        "{error:?}"
    );
    for number in 0..5 {
        gold.send(Body::FlowMod(forward(4 + number, 3))).await;
    }
    gold.barrier().await;
    let [_, b, c] = &mut hosts[..] else { unreachable!() };
    (0..50).for_each(|tag| b.send(c, tag));
    tin.expect(|message| matches!(message.body, Body::PacketIn(_)).then_some(())).await;
    until(|| shown(&switch, "tin").ports[1].rx_packets == 50).await;
    tin.barrier().await;
}

#[tokio::test]
async fn queues_are_crosspoints() {
    let (switch, mut hosts, at) = two();
    let mut gold = connect(&at[0]).await;
    let mut entry = forward(1, 3);
    entry.instructions = vec![Instruction::ApplyActions(vec![Action::SetQueue(2), Action::output(PortNo(3))])];
    gold.send(Body::FlowMod(entry)).await;
    gold.barrier().await;
    let [a, _, c] = &mut hosts[..] else { unreachable!() };
    a.send(c, 1);
    assert_eq!(c.tag(), 1);
    let crosspoints = shown(&switch, "gold").crosspoints;
    assert_eq!(crosspoints.iter().map(|at| (at.from.0, at.to.0, at.packets)).collect::<Vec<_>>(), [(2, 3, 1)]);
    let body = RequestBody::Queue { port: PortNo(3), queue: 2 };
    gold.send(Body::MultipartRequest(MultipartRequest { more: false, body })).await;
    let stats = gold
        .expect(|message| match message.body {
            Body::MultipartReply(reply) => match reply.body {
                ReplyBody::Queue(stats) => Some(stats),
                _ => None,
            },
            _ => None,
        })
        .await;
    assert_eq!(stats.iter().map(|queue| (queue.queue, queue.tx_packets)).collect::<Vec<_>>(), [(2, 1)]);
}

#[tokio::test]
async fn ports_follow_the_physical_ones() {
    let (switch, _hosts, at) = two();
    let mut gold = connect(&at[0]).await;
    listens(&mut gold).await;
    switch.remove_port(PortNo(2)).unwrap();
    let desc = gold
        .expect(|message| match message.body {
            Body::PortStatus(status) => Some(status.desc),
            _ => None,
        })
        .await;
    assert_eq!((desc.port_no, desc.state & 1), (PortNo(2), 1), "its link is down");
    gold.barrier().await;
}

#[test]
fn packets_that_are_dear_do_not_hold_up_another_tenants() {
    const EACH: u64 = 1500;
    const ATTEMPTS: u32 = 20;
    let ports: BTreeMap<u32, Option<Bps>> = (1..=3).map(|port| (port, None)).collect();
    // A line that is never busy, so that the engine's time is the scarce resource.
    let wide = "[fabric]\nrate = '1000Gbit/s'\ncrosspoint = '2MB'\n";
    let fabric = parse_slicing(wide, "test", "s", ports).unwrap().0;
    let (switch, mut hosts) =
        switch(3, SoftwareSwitchConfig { fabric: Some(fabric.clone()), ..SoftwareSwitchConfig::default() });
    let edits = "push_vlan:0x8100,pop_vlan,".repeat(100);
    for (name, dpid, port, actions) in [("plain", 0x101, 1, ""), ("dear", 0x102, 2, &*edits)] {
        let more = format!(
            "select = [{{ port = {port} }}]\nentries = ['in_port=p{port},actions={actions}output:p3']\ntime_weight = 1"
        );
        let text = text(name, dpid, "1Gbit/s", &more).replace("64kB", "500kB");
        switch.add_virtual(parse_virtual_switch(&text, "test", &fabric).unwrap()).unwrap();
    }
    let [plain, dear, c] = &mut hosts[..] else { unreachable!() };
    // An attempt counts only if the engine is behind when all packets have been sent: the sender may be delayed, too.
    let left = || shown(&switch, "dear").ports[2].tx_packets;
    let was_behind = (0..ATTEMPTS).any(|_| {
        let before = left();
        // Packets that are dear to process are sent first.
        (0..EACH).for_each(|_| dear.send(c, 2));
        (0..EACH).for_each(|_| plain.send(c, 1));
        let already = left() - before;
        let (mut plain_left, mut dear_before) = (EACH, 0);
        while plain_left > 0 {
            match c.tag() {
                1 => plain_left -= 1,
                _ => dear_before += 1,
            }
        }
        (dear_before..EACH).for_each(|_| assert_eq!(c.tag(), 2, "they are late, but not lost"));
        let counts = already < EACH / 3;
        // Handled burst by burst, both kinds would leave together.
        assert!(!counts || dear_before < EACH * 4 / 5, "{dear_before} of {EACH} left before the last of the others");
        counts
    });
    assert!(was_behind, "the engine kept up {ATTEMPTS} times");
    let (plain, dear) = (shown(&switch, "plain"), shown(&switch, "dear"));
    assert!(dear.time.used_s > plain.time.used_s && plain.time.used_s > 0.0, "{:?} {:?}", plain.time, dear.time);
    assert!((plain.time.part + dear.time.part - 1.0).abs() < 1e-9);
    assert_eq!((dear.time.waiting, dear.time.dropped, dear.time.weight), (0, 0, 1.0));
}

#[tokio::test]
async fn what_waits_for_its_turn_goes_with_its_virtual_switch() {
    let ports: BTreeMap<u32, Option<Bps>> = (1..=3).map(|port| (port, None)).collect();
    let fabric = parse_slicing("[fabric]\nrate = '1000Gbit/s'\n", "test", "s", ports).unwrap().0;
    let (switch, mut hosts) =
        switch(3, SoftwareSwitchConfig { fabric: Some(fabric.clone()), ..SoftwareSwitchConfig::default() });
    let edits = "push_vlan:0x8100,pop_vlan,".repeat(100);
    for (name, dpid, mac, actions) in [("plain", 0x101, 1, ""), ("dear", 0x102, 2, &*edits)] {
        let more = format!(
            "select = [{{ port = 1, eth_src = '02:00:00:00:00:{mac:02x}' }}]\nentries = ['actions={actions}output:3']"
        );
        switch
            .add_virtual(parse_virtual_switch(&text(name, dpid, "1Gbit/s", &more), "test", &fabric).unwrap())
            .unwrap();
    }
    let [a, b, c] = &mut hosts[..] else { unreachable!() };
    // Both kinds arrive on port 1: half of the packets have host 2's source address.
    b.number = 1;
    for tag in 0..1500 {
        a.send(c, tag);
        a.number = 2;
        a.send(c, tag);
        a.number = 1;
    }
    switch.remove_virtual("dear").unwrap();
    // Packets that belong to no virtual switch are dropped by the switch's own tables.
    until(|| {
        let plain = shown(&switch, "plain");
        plain.ports[0].rx_packets == 1500 && plain.time.waiting == 0
    })
    .await;
    let plain = shown(&switch, "plain");
    assert_eq!(plain.ports[2].tx_packets + plain.ports[2].dropped + plain.time.dropped, 1500);
    a.send(c, 1 << 32);
    while c.tag() != 1 << 32 {}
}
