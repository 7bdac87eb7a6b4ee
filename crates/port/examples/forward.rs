//! Forwards frames between two ports until killed: `forward af_packet:eth0 af_packet:eth1 [busy]`.
//!
//! With `busy` it polls the ports continuously; otherwise it sleeps on their descriptors when no frames arrive.
//! Serves as a baseline for ports: the difference to a switch's cost per frame is the switch's own cost.
use std::os::fd::AsRawFd as _;
use weir_packet::FramePool;
use weir_port::{Port, PortResult, PortSpec, ReceiveReadiness};
use weir_units::{Clock as _, SystemClock};

/// Number of rounds without a frame before the loop sleeps.
const IDLE_ROUNDS: u32 = 50;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [first, second, rest @ ..] = arguments.as_slice() else {
        return Err("expected two ports, such as af_packet:eth0 af_packet:eth1, and optionally `busy`".into());
    };
    let open = |text: &String| weir_port::open(&text.parse::<PortSpec>()?);
    let mut ports = [open(first)?, open(second)?];
    eprintln!("forwarding between {first} and {second}");
    forward(&mut ports, rest.iter().any(|word| word == "busy"))?;
    Ok(())
}

fn forward(ports: &mut [Box<dyn Port>; 2], busy: bool) -> PortResult {
    let clock = SystemClock::start();
    let mut pool = FramePool::default();
    let mut batch = Vec::new();
    let mut idle = 0;
    loop {
        idle += 1;
        for from in 0..2 {
            let now = clock.now();
            ports[from].receive(now, &mut pool, &mut batch, 64)?;
            if !batch.is_empty() {
                idle = 0;
                ports[1 - from].transmit(now, &mut pool, &mut batch)?;
            }
        }
        if idle > IDLE_ROUNDS && !busy && ports.iter_mut().all(|port| port.arm() == ReceiveReadiness::OnDescriptor) {
            idle = 0;
            sleep_on(ports);
        }
    }
}

fn sleep_on(ports: &[Box<dyn Port>; 2]) {
    let mut polls = [0, 1].map(|at| {
        let fd = ports[at].fd().map_or(-1, |fd| fd.as_raw_fd());
        libc::pollfd { fd, events: libc::POLLIN, revents: 0 }
    });
    // SAFETY: the pointer and the count describe `polls`.
    unsafe { libc::poll(polls.as_mut_ptr(), 2, -1) };
}
