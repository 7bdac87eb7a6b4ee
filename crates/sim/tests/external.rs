//! Tests controllers outside of virtual time: small ones in threads of the test, over sockets.
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;
use weir_network::{LabResult, NetworkError};
use weir_openflow::model::action::Action;
use weir_openflow::model::{Body, Bytes, Match, PacketOut};
use weir_openflow::session::{Session, SessionConfig, SessionEvent};
use weir_openflow::{Message, Version};
use weir_packet::PortNo;
use weir_scenario::Scenario;
use weir_sim::SimulationMonitor;
use weir_sim::network::{VirtualTimeSettings, simulate};
use weir_units::Instant;

/// Two hosts at a switch, with `more` keys of the controller, whose address is `connect`.
fn scenario(connect: &str, more: &str) -> Scenario {
    let text = format!(
        "[controller]\nconnect = \"{connect}\"\n{more}\n[topology]\nkind = \"single\"\nhosts = 2\n\
         [[traffic]]\nkind = \"ping\"\nfrom = \"h1\"\nto = \"h2\"\ncount = 3\n"
    );
    Scenario::parse(&text, "external").unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &Scenario) -> Result<LabResult, NetworkError> {
    let settings = VirtualTimeSettings { answer_limit: Duration::from_millis(300), ..VirtualTimeSettings::default() };
    simulate(scenario, &settings, &SimulationMonitor::default(), &mut |_| {})
}

/// Controller that serves one connection in a thread.
struct Controller {
    address: String,
    thread: JoinHandle<()>,
}

impl Controller {
    fn start(serve: impl FnOnce(TcpStream) + Send + 'static) -> Controller {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("tcp:{}", listener.local_addr().unwrap());
        let thread = std::thread::spawn(move || serve(listener.accept().unwrap().0));
        Controller { address, thread }
    }

    fn join(self) {
        self.thread.join().unwrap();
    }
}

/// Answers every packet-in with a packet-out that floods, until the switch closes the connection.
fn flood(mut socket: TcpStream) {
    // Switches of OpenFlow 1.0 ask without an entry that says so.
    let config = SessionConfig { versions: vec![Version::V10], ..SessionConfig::default() };
    let mut session = Session::controller(config, Instant::ZERO);
    let mut chunk = [0; 4096];
    loop {
        if socket.write_all(&std::mem::take(session.output())).is_err() {
            return;
        }
        let Ok(length @ 1..) = socket.read(&mut chunk) else { return };
        session.receive(Instant::ZERO, &chunk[..length]);
        while let Some(event) = session.take_event() {
            let SessionEvent::Message(Message { body: Body::PacketIn(packet), .. }) = event else { continue };
            let out = PacketOut {
                buffer_id: packet.buffer_id,
                in_port: packet.in_port().unwrap(),
                matching: Match::any(),
                actions: vec![Action::Output { port: PortNo::FLOOD, max_len: 0 }],
                data: if packet.buffer_id.is_none() { packet.data } else { Bytes::default() },
            };
            session.send(&Message { xid: 0, body: Body::PacketOut(out) }).unwrap();
        }
    }
}

#[test]
fn a_controller_outside_of_virtual_time_controls_the_switch() {
    let times = "service = { law = \"constant\", mean = \"200us\", per_byte = \"862ns\" }";
    let controller = Controller::start(flood);
    let result = run(&scenario(&controller.address, times)).unwrap();
    controller.join();
    assert!(result.passed, "{result:#?}");
    let external = result.external_controller.unwrap();
    assert!(external.turns > 6 && !external.measured && external.late == 0, "{external:?}");
    // Each round trip asks twice: 300 us for a message of 116 bytes, and the way to the controller and back.
    let rtt = result.traffic[0].rtt.as_ref().unwrap();
    assert!((800.0..810.0).contains(&rtt.min_us), "{rtt:?}");
}

#[test]
fn the_controllers_own_echoes_are_answered_at_once() {
    let controller = Controller::start(|mut socket| {
        // HELLO and an echo request of OpenFlow 1.3: the answer comes while virtual time waits for more.
        socket.write_all(&[4, 0, 0, 8, 0, 0, 0, 1, 4, 2, 0, 9, 0, 0, 0, 7, 42]).unwrap();
        let (mut all, mut chunk) = (Vec::<u8>::new(), [0; 4096]);
        while let Ok(length @ 1..) = socket.read(&mut chunk) {
            all.extend(&chunk[..length]);
        }
        let answer = [4, 3, 0, 9, 0, 0, 0, 7, 42];
        assert!(all.windows(answer.len()).any(|part| part == answer), "{all:?}");
    });
    assert!(!run(&scenario(&controller.address, "")).unwrap().passed);
    controller.join();
}

#[test]
fn results_repeat_as_far_as_the_controller_does() {
    let figures = |more: &str| {
        let controller = Controller::start(flood);
        let result = run(&scenario(&controller.address, more)).unwrap();
        controller.join();
        serde_json::to_string(&result.traffic).unwrap()
    };
    let law = "service = { law = \"exponential\", mean = \"300us\" }";
    assert_eq!(figures(law), figures(law));
}

#[test]
fn a_request_to_stop_ends_the_wait_for_a_controller() {
    let (greeted, greeting) = std::sync::mpsc::channel();
    let controller = Controller::start(move |mut socket| {
        socket.read_exact(&mut [0; 8]).unwrap();
        greeted.send(()).unwrap();
        drop(socket.read_to_end(&mut Vec::new()));
    });
    let scenario = scenario(&controller.address, "");
    let watch = SimulationMonitor::default();
    let result = std::thread::scope(|scope| {
        let watch = &watch;
        scope.spawn(move || {
            greeting.recv().unwrap();
            watch.cancel.store(true, Ordering::Relaxed);
        });
        simulate(&scenario, &VirtualTimeSettings::default(), watch, &mut |_| {})
    });
    controller.join();
    // Without the request, this is an error after 10 seconds.
    assert!(result.unwrap().partial);
}

#[test]
fn virtual_time_does_not_wait_for_ever() {
    let refused = |serve: fn(TcpStream), expected: &str| {
        let controller = Controller::start(serve);
        let error = run(&scenario(&controller.address, "")).unwrap_err().to_string();
        controller.join();
        assert!(error.contains(expected), "{error}");
    };
    let silent = |mut socket: TcpStream| drop(socket.read_to_end(&mut Vec::new()));
    refused(silent, "switch s1: virtual time waited 300ms for the controller tcp:127.0.0.1:");
    refused(silent, "to say anything");
    // HELLO and FEATURES_REQUEST of OpenFlow 1.3, and no more.
    refused(
        |mut socket| {
            socket.write_all(&[4, 0, 0, 8, 0, 0, 0, 1, 4, 5, 0, 8, 0, 0, 0, 2]).unwrap();
            drop(socket.read_to_end(&mut Vec::new()));
        },
        "to answer an echo request",
    );
    refused(|socket| socket.shutdown(Shutdown::Both).unwrap(), "connection to the controller");
    refused(
        |mut socket| {
            socket.write_all(&[4, 0, 0, 3, 0, 0, 0, 1]).unwrap();
            drop(socket.read_to_end(&mut Vec::new()));
        },
        "found a message of 3 bytes",
    );
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = run(&scenario(&format!("tcp:{nobody}"), "")).unwrap_err().to_string();
    assert!(error.contains("is the controller running?"), "{error}");
}

#[test]
fn a_controller_elsewhere_serves_a_virtual_switch() {
    let controller = Controller::start(flood);
    let text = format!(
        "[controller]\nconnect = 'none'\n[[switch]]\nname = 's1'\n[switch.fabric]\nrate = '1Gbit/s'\n\
         [[switch.virtual]]\nname = 'gold'\ndpid = 7\nbuffer = '24kB'\nconnect = '{}'\n\
         ports = [{{ port = 1, rate = '1Gbit/s' }}, {{ port = 2, rate = '1Gbit/s' }}]\n\
         [[host]]\nname = 'a'\nswitch = 's1'\nport = 1\nip = '10.0.0.1/24'\n\
         [[host]]\nname = 'b'\nswitch = 's1'\nport = 2\nip = '10.0.0.2/24'\n\
         [[traffic]]\nkind = 'ping'\nfrom = 'a'\nto = 'b'\ncount = 3\n",
        controller.address
    );
    let result = run(&Scenario::parse(&text, "tenant").unwrap_or_else(|error| panic!("{error}"))).unwrap();
    controller.join();
    assert!(result.passed, "{:#?}", result.traffic);
    assert!(result.external_controller.is_none() && result.controller.is_none());
    let [external] = &result.virtual_external_controllers[..] else { panic!("one controller") };
    // Each echo request and each answer is a packet-in, as are the first requests for addresses.
    assert!(external.messages >= 6, "{external:?}");
    assert_eq!(result.virtual_switches[0].channels_up, 1);
}
