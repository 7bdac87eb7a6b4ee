//! Tests `weir profile` on switches that end, hang, answer too early or send malformed messages while they are
//! measured, with wrong interfaces, and interrupted by a signal.
use crate::bed::{ready, weir};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_client::{OpenFlowClient, SwitchAddress};
use weir_openflow::Version;
use weir_openflow::model::multipart::{FlowRequest, MultipartRequest, RequestBody};
use weir_profile::Profile;
use weir_testing::{Namespace, Signal, TestProcess, root, wait_until};
use weir_units::SystemClock;

const PATIENCE: Duration = Duration::from_secs(40);

/// A grid of half a minute, most of it for commands.
const GRID: &str = "priorities = ['same', 'descending']\nentries = [1, 20, 40]\nbatches = [1, 4, 8]\ndeletions = [1, 20]\nruns = 6\n\
    entries_max = 60\nbatch_max = 16\nspacing_ms = 2\nmessages = 4\npackets = 4\nbytes = [64, 1500]\ngaps_us = [200, 2000]\nidle_ms = 250\ntrial_ms = 10\n";

/// Commands take so long that a barrier answered at once is answered too early.
const SLOW: &str = "name = 'slow'\ndevice = 'A slow one'\norigin = 'assumed'\nsource = 'A test'\n\
    [[level]]\nname = 'table'\nsize = 60\nwrite = '3ms'\nforward = { base_l2l3 = '50us' }\n";

/// Fault of the channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Fault {
    None,
    /// The channel ends.
    Ends,
    /// No message is forwarded any longer, in either direction.
    Hangs,
    /// Barriers are answered at once.
    Lies,
    /// The switch sends malformed messages.
    Babbles,
}

/// A channel between the profiler and a switch, in which a test can cause faults. It listens at port 6653 of the rig.
struct Channel {
    fault: Arc<AtomicU8>,
    is_over: Arc<AtomicU8>,
    thread: Option<JoinHandle<()>>,
}

impl Channel {
    fn to(rig: &Namespace, switch: PathBuf) -> Channel {
        let listener = rig.within(|| TcpListener::bind("127.0.0.1:6653").expect("the port is free"));
        listener.set_nonblocking(true).expect("it can be asked");
        let (fault, is_over) = (Arc::new(AtomicU8::new(0)), Arc::new(AtomicU8::new(0)));
        let (of_thread, over) = (Arc::clone(&fault), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            while over.load(SeqCst) == 0 {
                let Ok((near, _)) = listener.accept() else {
                    std::thread::park_timeout(Duration::from_millis(10));
                    continue;
                };
                near.set_nonblocking(false).expect("it can wait");
                near.set_nodelay(true).expect("TCP");
                join(near, UnixStream::connect(&switch).expect("the switch listens"), &of_thread);
            }
        });
        Channel { fault, is_over, thread: Some(thread) }
    }

    fn set(&self, fault: Fault) {
        self.fault.store(fault as u8, SeqCst);
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.is_over.store(1, SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Reads the next complete message. Returns `None` at the end.
fn message(stream: &mut impl std::io::Read) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 8];
    stream.read_exact(&mut bytes).ok()?;
    bytes.resize(usize::from(u16::from_be_bytes([bytes[2], bytes[3]])).max(8), 0);
    stream.read_exact(&mut bytes[8..]).ok()?;
    Some(bytes)
}

/// Forwards messages until either end is closed.
fn join(near: TcpStream, far: UnixStream, fault: &Arc<AtomicU8>) {
    let back = Arc::new(Mutex::new(near.try_clone().expect("a descriptor")));
    let is = |fault: &AtomicU8, which: Fault| fault.load(SeqCst) == which as u8;
    let (mut from_switch, to_controller, spoiled) =
        (far.try_clone().expect("a descriptor"), Arc::clone(&back), Arc::clone(fault));
    std::thread::spawn(move || {
        while let Some(bytes) = message(&mut from_switch) {
            if !is(&spoiled, Fault::Hangs) && to_controller.lock().expect("nobody panics").write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to_controller.lock().expect("nobody panics").shutdown(Shutdown::Both);
    });
    let (mut from_controller, mut to_switch, spoiled) = (near, far, Arc::clone(fault));
    std::thread::spawn(move || {
        while let Some(bytes) = message(&mut from_controller) {
            let answer = |bytes: &[u8]| back.lock().expect("nobody panics").write_all(bytes);
            match bytes[1] {
                _ if is(&spoiled, Fault::Ends) => break,
                _ if is(&spoiled, Fault::Hangs) => continue,
                _ if is(&spoiled, Fault::Babbles) => {
                    let _ = answer(b"\x04\x63\0\x08what\x04\0\0\x02is it");
                    continue;
                }
                // OFPT_BARRIER_REQUEST of 1.3; the type of its answer is the next number.
                20 if is(&spoiled, Fault::Lies) => {
                    let _ = answer(&[&[bytes[0], 21, 0, 8], &bytes[4..8]].concat());
                    continue;
                }
                _ => {}
            }
            if to_switch.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = from_controller.shutdown(Shutdown::Both);
        let _ = to_switch.shutdown(Shutdown::Both);
    });
}

/// A rig with a switch in it: interfaces `d0` and `d1` are connected to its ports.
struct Lab {
    rig: Namespace,
    folder: tempfile::TempDir,
    _switch: TestProcess,
    channel: Channel,
}

impl Lab {
    fn new(profile: Option<&str>) -> Lab {
        let (rig, folder) = (Namespace::new(), tempfile::tempdir().expect("a folder"));
        let socket = folder.path().join("of.sock");
        let mut command = rig.command(weir());
        command.args(["switch", "--listen", &format!("punix:{}", socket.display())]);
        for at in 0..2 {
            rig.join(&format!("d{at}"), &rig, &format!("p{at}"));
            command.arg("--port").arg(format!("{}=af_packet:p{at}", at + 1));
        }
        if let Some(profile) = profile {
            let file = folder.path().join("slow.toml");
            std::fs::write(&file, profile).expect("written");
            command.arg("--profile").arg(file);
        }
        std::fs::write(folder.path().join("grid.toml"), GRID).expect("written");
        let switch = ready(command);
        let channel = Channel::to(&rig, socket);
        Lab { rig, folder, _switch: switch, channel }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts a measurement, into the folder `out`.
    fn profile(&self, arguments: &[&str]) -> Measuring {
        let mut command = self.rig.command(weir());
        command.args(["profile", "tcp:127.0.0.1:6653", "--data", "d0,d1", "--grid"]).arg(self.file("grid.toml"));
        command.arg("--out").arg(self.file("out")).args(arguments);
        Measuring(TestProcess::start(command.stdout(Stdio::piped()).stderr(Stdio::piped())))
    }

    /// Starts a measurement of commands, and returns when there are some runs.
    fn in_the_middle(&self, arguments: &[&str]) -> Measuring {
        let mut measuring = self.profile(&[&["--only", "control"], arguments].concat());
        let has_some = || rows(&self.file("out")).len() > 5;
        if !wait_until(PATIENCE, || has_some() || measuring.0.exited().is_some()) || !has_some() {
            if measuring.0.exited().is_none() {
                measuring.0.signal(Signal::INT);
            }
            panic!("nothing was measured: {:?}", measuring.ends());
        }
        measuring
    }

    /// Returns the number of entries in the switch.
    fn entries(&self) -> u64 {
        let target = SwitchAddress::Unix(self.file("of.sock").display().to_string());
        let clock = SystemClock::start();
        let mut client = OpenFlowClient::open(&target, &[Version::V13], PATIENCE, clock).expect("it listens");
        let body = RequestBody::Flow(FlowRequest::all());
        client.ask_flows(MultipartRequest { more: false, body }).expect("it answers")
    }
}

/// Returns the lines of the runs of commands.
fn rows(out: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(out.join("control.csv")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// A measurement in progress.
struct Measuring(TestProcess);

impl Measuring {
    /// Waits for the end. Returns exit status and output.
    fn ends(mut self) -> (Option<i32>, String) {
        // The output is read concurrently, so that a full pipe does not block the process.
        let (mut stdout, mut stderr) = (self.0.stdout().expect("piped"), self.0.stderr().expect("piped"));
        let error = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            text
        });
        let output = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = stdout.read_to_string(&mut text);
            text
        });
        assert!(wait_until(Duration::from_secs(150), || self.0.exited().is_some()), "it does not end");
        let code = self.0.exited().and_then(|status| status.code());
        let said = [output, error].map(|thread| thread.join().expect("reading")).concat();
        (code, said)
    }
}

/// Checks that measured runs are kept, and that the same command continues from there.
fn is_gone_on_with(lab: &Lab) {
    let out = lab.file("out");
    assert!(Profile::read(&out.join("profile.toml")).is_ok(), "what there is makes a profile");
    let before = rows(&out);
    lab.channel.set(Fault::None);
    let (code, said) = lab.profile(&["--only", "control"]).ends();
    assert_eq!(code, Some(0), "{said}");
    let after = rows(&out);
    assert!(before.len() > 5 && after.len() > before.len(), "{} of {}", before.len(), after.len());
    assert_eq!(after[..before.len()], before[..], "what was there is not measured again");
}

#[test]
fn a_channel_that_ends_is_gone_on_with() {
    if !root() {
        return;
    }
    let lab = Lab::new(None);
    let measuring = lab.in_the_middle(&[]);
    lab.channel.set(Fault::Ends);
    let (code, said) = measuring.ends();
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("the switch's control channel ended while ") && said.contains("goes on from there"),
        "{said}"
    );
    assert!(!said.contains("while measuring:"), "it says what was being measured: {said}");
    is_gone_on_with(&lab);
}

#[test]
fn a_switch_that_hangs_or_babbles_is_given_up() {
    if !root() {
        return;
    }
    let lab = Lab::new(None);
    let measuring = lab.in_the_middle(&["--patience", "4s"]);
    lab.channel.set(Fault::Hangs);
    let (code, said) = measuring.ends();
    assert_eq!(code, Some(2), "{said}");
    let is_told = said.contains("within 4s") || said.contains("no answer to an echo request");
    assert!(is_told && said.contains("goes on from there"), "{said}");
    lab.channel.set(Fault::None);
    let before = rows(&lab.file("out")).len();
    let measuring = lab.profile(&["--only", "control"]);
    assert!(wait_until(PATIENCE, || rows(&lab.file("out")).len() > before + 3), "it does not go on");
    lab.channel.set(Fault::Babbles);
    let (code, said) = measuring.ends();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("control channel ended while ") && said.contains("2 bytes long"), "{said}");
    is_gone_on_with(&lab);
}

#[test]
fn barriers_that_lie_are_found_out() {
    if !root() {
        return;
    }
    let lab = Lab::new(Some(SLOW));
    lab.channel.set(Fault::Lies);
    let (code, said) = lab.profile(&["--only", "control"]).ends();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("were answered before packets showed that the commands were carried out"), "{said}");
    let found = Profile::read(&lab.file("out").join("profile.toml")).expect("a profile");
    assert!(!found.barrier.waits, "{said}");
    // The time of commands is measured with packets, independently of barriers.
    let write_s = found.tables.expect("tables").levels[0].costs.write_s;
    assert!((1e-3..9e-3).contains(&write_s), "{write_s}: {said}");
}

#[test]
fn who_is_stopped_keeps_what_there_is_and_leaves_nothing_behind() {
    if !root() {
        return;
    }
    let lab = Lab::new(None);
    let measuring = lab.in_the_middle(&[]);
    assert!(wait_until(PATIENCE, || lab.entries() > 0), "it has entries of the measurement");
    measuring.0.signal(Signal::INT);
    let (code, said) = measuring.ends();
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("Partial: stopped"), "{said}");
    assert_eq!(lab.entries(), 0, "its entries are gone");
    is_gone_on_with(&lab);
    assert_eq!(lab.entries(), 0);
}

#[test]
fn interfaces_and_folders_that_are_wrong_are_refused() {
    if !root() {
        return;
    }
    let lab = Lab::new(None);
    let refused = |arguments: &[&str], expected: &str| {
        let (code, said) = lab.profile(arguments).ends();
        assert!(code == Some(2) && said.contains(expected), "{arguments:?}: {code:?}: {said}");
    };
    // An option that is given twice extends the list.
    refused(&["--data", "d0"], "--data d0: found it twice");
    refused(&["--data", "d9"], "no interface `d9`");
    std::fs::create_dir_all(lab.file("out")).expect("made");
    let _ = std::fs::remove_dir_all(lab.file("out"));
    let (code, said) = lab.profile(&["--only", "data"]).ends();
    assert_eq!(code, Some(0), "{said}");
    refused(&["--data", "p0"], "found runs of tcp:127.0.0.1:6653 by interfaces d0, d1");
    let changed = GRID.replace("runs = 6", "runs = 7");
    std::fs::write(lab.file("grid.toml"), changed).expect("written");
    refused(&[], "found runs of another grid");
    std::fs::write(lab.file("grid.toml"), GRID).expect("written");
    // The link goes down during the measurement.
    let _ = std::fs::remove_dir_all(lab.file("out"));
    let measuring = lab.in_the_middle(&["--patience", "3s"]);
    lab.rig.ip("link set p1 down");
    let (code, said) = measuring.ends();
    assert!(code == Some(2) && said.contains("goes on from there"), "{code:?}: {said}");
    lab.rig.ip("link set p1 up");
    is_gone_on_with(&lab);
}
