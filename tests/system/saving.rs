//! Tests that what changed while a switch ran is there after a restart (`weir ctl save`), and that a changed
//! configuration file takes effect while packets are forwarded (`weir ctl reload`).
use crate::bed::{B4, Bed, ping, ping_train, weir};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;
use weir_testing::{TestProcess, wait_until};

/// A bed with a switch that has a configuration file.
struct ConfiguredBed {
    bed: Bed,
    file: PathBuf,
    _folder: tempfile::TempDir,
}

impl ConfiguredBed {
    /// Returns a bed whose file has `text` behind the switch's name and data path id; `None` if the test cannot run.
    fn new(text: &str) -> Option<ConfiguredBed> {
        if !weir_testing::root() || !weir_testing::programs(&["ping", "ip"]) {
            return None;
        }
        let (bed, folder) = (Bed::new(), tempfile::tempdir().expect("a folder"));
        let file = folder.path().join("switch.toml");
        let this = ConfiguredBed { bed, file, _folder: folder };
        this.write(text);
        Some(this)
    }

    fn write(&self, text: &str) {
        let name = self.bed.switches.name();
        fs::write(&self.file, format!("name = '{name}'\ndpid = '0x7'\n{text}")).expect("written");
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.file).expect("read")
    }

    fn start(&self) -> TestProcess {
        self.start_from(&self.file)
    }

    fn start_from(&self, file: &Path) -> TestProcess {
        self.bed.switch(&["--config", file.to_str().expect("text")])
    }

    fn ctl(&self, arguments: &[&str]) -> String {
        self.bed.run(weir(), &[&["ctl", "--socket", self.bed.switches.name()], arguments].concat())
    }

    /// Runs `weir ctl` where it is refused; returns what it says.
    fn refused(&self, arguments: &[&str]) -> String {
        let mut command = self.bed.switches.command(weir());
        command.args(["ctl", "--socket", self.bed.switches.name()]).args(arguments);
        let Output { status, stderr, .. } = command.output().expect("weir starts");
        assert_eq!(status.code(), Some(2), "{arguments:?}");
        String::from_utf8_lossy(&stderr).into_owned()
    }

    /// Returns the switch's entries, groups, meters and queues, without counters.
    fn tables(&self) -> String {
        let entries: serde_json::Value = serde_json::from_str(&self.ctl(&["--json", "dump-flows"])).expect("JSON");
        let entries = entries["flows"].as_array().expect("a list");
        let actions = entries.iter().map(|flow| {
            let text = flow["text"].as_str().expect("text");
            text.split("n_bytes=").nth(1).and_then(|text| text.split_once(',')).map_or("", |(_, text)| text).to_owned()
        });
        let mut parts: Vec<String> = actions.collect();
        parts.sort();
        let ports: serde_json::Value = serde_json::from_str(&self.ctl(&["--json", "show"])).expect("JSON");
        let ports = ports["ports"].as_array().expect("a list");
        parts.extend(ports.iter().map(|port| format!("{} {}", port["number"], port["name"])));
        parts.extend([self.ctl(&["dump-groups"]), self.ctl(&["dump-meters"])]);
        parts.join("\n")
    }
}

#[test]
fn what_changed_is_there_after_a_restart() {
    let text = "# the first host\nport = [\n    \"1=af_packet:pa\", # kept\n]\nentry = ['in_port=9,actions=drop', 'priority=3,in_port=pa,actions=IN_PORT']\n";
    let Some(this) = ConfiguredBed::new(text) else { return };
    let switch = this.start();
    this.ctl(&["add-port", "2=af_packet:pb,rate=50Mbit/s"]);
    this.ctl(&["set-queue", "2", "3", "max=12345678bit/s", "priority=2"]);
    this.ctl(&["add-meter", "meter=1,kbps,bands=type=drop,rate=100000"]);
    // The group that sends to another one comes first in the list.
    this.ctl(&["add-group", "group_id=2,type=all,bucket=output:2"]);
    this.ctl(&["add-group", "group_id=1,type=all,bucket=group:2"]);
    this.ctl(&["add-flow", "cookie=0x5,priority=7,in_port=1,actions=meter:1,group:1"]);
    this.ctl(&["add-flow", "in_port=2,actions=output:1"]);
    this.ctl(&["add-flow", "idle_timeout=300,in_port=8,actions=drop"]);
    this.ctl(&["del-flows", "in_port=9"]);
    let said = this.ctl(&["save"]);
    assert!(said.contains("2 ports, 1 meter, 2 groups, 3 flow entries\n"), "{said}");
    assert!(said.contains("left out: 1 flow entry with a time-out"), "{said}");
    this.ctl(&["del-flows", "in_port=8"]);
    let before = this.tables();
    switch.stop();
    let saved = this.text();
    assert!(saved.contains("# the first host") && saved.contains("# kept"), "comments stay: {saved}");
    assert!(saved.contains("priority=3,in_port=pa,"), "names of ports stay: {saved}");
    let switch = this.start();
    assert_eq!(this.tables(), before);
    let queues = this.ctl(&["--json", "dump-queues"]);
    assert!(queues.contains("12345678"), "{queues}");
    assert!(ping(&this.bed.a, B4, 2));
    // Nothing has changed since: the file stays as it is.
    this.ctl(&["save"]);
    assert_eq!(this.text(), saved);
    switch.stop();
}

#[test]
fn virtual_switches_are_saved_with_their_tables() {
    let Some(this) = ConfiguredBed::new("port = ['1=af_packet:pa,rate=100Mbit/s', '2=af_packet:pb,rate=100Mbit/s']\n")
    else {
        return;
    };
    let switch = this.start();
    let ports = r#"ports=[{port=1,rate="1234567bit/s"},{port=2,rate="10Mbit/s"}]"#;
    this.ctl(&["vs", "add", "name=gold", "dpid=0x101", "buffer=24kB", ports]);
    this.ctl(&[
        "vs",
        "add",
        "name=brief",
        "dpid=0x102",
        "buffer=24kB",
        "lifetime=300s",
        "ports=[{port=1,vlan=7,rate=\"1Mbit/s\"}]",
    ]);
    this.ctl(&["--vs", "gold", "add-group", "group_id=1,type=all,bucket=output:2"]);
    this.ctl(&["--vs", "gold", "add-flow", "in_port=1,actions=group:1"]);
    this.ctl(&["--vs", "gold", "add-flow", "in_port=2,actions=output:1"]);
    let other = this.file.with_file_name("other.toml");
    let said = this.ctl(&["save", other.to_str().expect("text")]);
    assert!(said.contains("2 ports, 1 virtual switch\n"), "{said}");
    assert!(said.contains("left out: 1 virtual switch with a lifetime"), "{said}");
    switch.stop();
    let switch = this.start_from(&other);
    let shown = this.ctl(&["--json", "vs", "show"]);
    assert!(shown.contains("1234567bit/s") && !shown.contains("brief"), "{shown}");
    assert!(this.ctl(&["--vs", "gold", "dump-groups"]).contains("group_id=1"));
    assert!(ping(&this.bed.a, B4, 2));
    // The same again by a reload: without the virtual switch, and with it.
    let whole = fs::read_to_string(&other).expect("read");
    let (without, _) = whole.split_once("[[virtual]]").expect("a section");
    fs::write(&other, without).expect("written");
    assert_eq!(this.ctl(&["reload"]), "virtual switch gold: removed\n");
    fs::write(&other, &whole).expect("written");
    let said = this.ctl(&["reload"]);
    assert!(said.starts_with("virtual switch gold: added\nvirtual switch gold: group "), "{said}");
    assert!(ping(&this.bed.a, B4, 2));
    fs::write(&other, whole.replace("1234567bit/s", "2Mbit/s")).expect("written");
    assert_eq!(this.ctl(&["reload"]), "virtual switch gold: ports: changed\n");
    assert!(this.ctl(&["vs", "show"]).contains("2Mbit/s"));
    switch.stop();
}

#[test]
fn a_changed_file_takes_effect_while_packets_are_forwarded() {
    let ports = "port = ['1=af_packet:pa', '2=af_packet:pb']\n";
    let old = format!(
        "{ports}entry = ['in_port=1,actions=output:2', 'in_port=2,actions=output:1', 'in_port=5,actions=drop']\n"
    );
    let Some(this) = ConfiguredBed::new(&old) else { return };
    let switch = this.start();
    assert!(ping(&this.bed.a, B4, 2));
    this.ctl(&["add-flow", "in_port=7,actions=drop"]);
    let mut train = this.bed.a.command("ping");
    let train = train.args(["-q", "-i", "0.01", "-c", "300", "-W", "5", B4]).stdout(std::process::Stdio::piped());
    let train = train.spawn().expect("ping starts");
    let group = "group = ['group_id=1,type=all,bucket=group:2', 'group_id=2,type=all,bucket=output:2']\n";
    // Ports by name are no change.
    let entries =
        "entry = ['in_port=pa,actions=output:pb', 'in_port=2,actions=output:1', 'in_port=6,actions=group:1']\n";
    this.write(&format!("tables = 32\nport = ['1=af_packet:pa', '2=af_packet:pb', '3=null:x']\n{group}{entries}"));
    let said = this.ctl(&["reload"]);
    for line in [
        "port 3=null:x: added",
        "entry in_port=6 actions=group:1: added",
        "tables: differs; takes effect at the next start",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert!(!said.contains("in_port=1"), "{said}");
    assert!(this.ctl(&["reload"]).starts_with("nothing differs"));
    let tables = this.tables();
    assert!(tables.contains("in_port=7 actions=drop"), "what others added stays: {tables}");
    assert!(!tables.contains("in_port=5"), "{tables}");
    this.write(&old);
    let said = this.ctl(&["reload"]);
    assert!(said.contains("port 3=null:x: removed") && said.contains("group group_id=1"), "{said}");
    let output = train.wait_with_output().expect("ping ends");
    let summary = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(summary.contains("300 packets transmitted, 300 received"), "{summary}");
    switch.stop();
}

#[test]
fn controllers_come_and_go_with_the_file() {
    let entries = "entry = ['in_port=1,actions=output:2']\n";
    let Some(this) = ConfiguredBed::new(entries) else { return };
    let one = this.bed.controller(&["--listen", "tcp:127.0.0.1:6701"]);
    let other = this.bed.controller(&["--listen", "tcp:127.0.0.1:6702"]);
    let switch = this.start();
    let up = |port: u16| {
        let shown = this.ctl(&["show"]);
        let line = shown.lines().find(|line| line.contains(&format!("127.0.0.1:{port}"))).map(str::to_owned);
        line.is_some_and(|line| line.contains("up, OpenFlow"))
    };
    this.write(&format!("controller = ['tcp:127.0.0.1:6701']\n{entries}"));
    assert_eq!(this.ctl(&["reload"]), "controller tcp:127.0.0.1:6701: added\n");
    assert!(wait_until(Duration::from_secs(10), || up(6701)));
    this.write(&format!("controller = ['tcp:127.0.0.1:6702']\n{entries}"));
    this.ctl(&["reload"]);
    assert!(wait_until(Duration::from_secs(10), || up(6702)));
    assert!(wait_until(Duration::from_secs(10), || !this.ctl(&["show"]).contains("6701")));
    this.write(&format!("controller = ['ssl:127.0.0.1:6703']\n{entries}"));
    let said = this.refused(&["reload"]);
    assert!(said.contains("TLS needs a private key") && said.contains("the switch is as it was"), "{said}");
    assert!(wait_until(Duration::from_secs(10), || up(6702)));
    [one, other, switch].into_iter().for_each(TestProcess::stop);
}

#[test]
fn listeners_and_fail_mode_follow_the_file() {
    let ports = "port = ['1=af_packet:pa', '2=af_packet:pb']\n";
    let Some(this) = ConfiguredBed::new(&format!("{ports}listen = ['ptcp:6711']\n")) else { return };
    let switch = this.start();
    let listens = |port: u16| this.bed.run("ss", &["-ltnH"]).contains(&format!(":{port} "));
    assert!(listens(6711) && !ping_train(&this.bed.a, B4, 1));
    this.write(&format!("{ports}listen = ['ptcp:6712']\nfail-mode = 'standalone'\n"));
    let said = this.ctl(&["reload"]);
    assert_eq!(said, "listener ptcp:6711: removed\nlistener ptcp:6712: added\nfail-mode standalone: set\n");
    assert!(listens(6712) && !listens(6711) && ping(&this.bed.a, B4, 2));
    this.write(&format!("{ports}listen = ['ptcp:6713', 'ptcp:6712:192.0.2.1']\n"));
    let said = this.refused(&["reload"]);
    assert!(said.contains("no interface of this machine") && said.contains("the switch is as it was"), "{said}");
    assert!(listens(6712) && !listens(6713) && ping(&this.bed.a, B4, 2));
    this.write(ports);
    assert_eq!(this.ctl(&["reload"]), "listener ptcp:6712: removed\nfail-mode secure: set\n");
    assert!(!listens(6712) && !ping_train(&this.bed.a, B4, 1));
    switch.stop();
}

#[test]
fn a_broken_file_changes_nothing() {
    let good = "port = ['1=af_packet:pa', '2=af_packet:pb']\nentry = ['in_port=1,actions=output:2', 'in_port=2,actions=output:1']\n";
    let Some(this) = ConfiguredBed::new(good) else { return };
    let switch = this.start();
    let before = this.tables();
    for (text, problem) in [
        ("port = ['1=af_packet:pa'\n", "switch.toml:3: "),
        ("prot = ['1=af_packet:pa']\n", "switch.toml:3: unknown field `prot`"),
        ("tables = 255\n", "expected 1 to 254"),
        ("entry = ['in_port=1,actions=outptu:2']\n", "entry `in_port=1,actions=outptu:2`"),
        // The entry is added before the port is refused; it is taken back.
        (
            "meter = ['meter=1,kbps,bands=type=drop,rate=9']\nentry = ['in_port=9,actions=group:4']\n",
            "the switch is as it was",
        ),
        ("port = ['1=af_packet:pa', '3=af_packet:none']\n", "the switch is as it was"),
    ] {
        this.write(text);
        let said = this.refused(&["reload"]);
        assert!(said.contains(problem), "{text}: {said}");
        assert_eq!(this.tables(), before, "{text}");
    }
    assert!(ping(&this.bed.a, B4, 2));
    let said = this.refused(&["save"]);
    assert!(said.contains("changed since the switch read it"), "{said}");
    this.write(good);
    assert!(this.ctl(&["reload"]).starts_with("nothing differs"));
    switch.stop();
}

#[test]
fn without_a_file_a_switch_is_saved_to_a_named_one() {
    let Some(this) = ConfiguredBed::new("") else { return };
    let name = this.bed.switches.name();
    let arguments =
        ["--name", name, "--port", "1=af_packet:pa", "--port", "af_packet:pb", "--spin", "0", "--tables", "9"];
    let switch = this.bed.switch(&arguments);
    let said = this.refused(&["reload"]);
    assert!(said.contains("started without --config"), "{said}");
    let said = this.refused(&["save"]);
    assert!(said.contains("weir ctl save FILE"), "{said}");
    this.ctl(&["add-flow", "actions=normal"]);
    let file = this.file.to_str().expect("text");
    let dpid = |text: String| text.lines().next().map(|line| line.split(", up").next().map(str::to_owned));
    let shown = dpid(this.ctl(&["show"]));
    this.ctl(&["save", file]);
    switch.stop();
    let saved = this.text();
    assert!(
        saved.contains("tables = 9") && saved.contains("spin = \"0\"") && saved.contains("2=af_packet:pb"),
        "{saved}"
    );
    let switch = this.start();
    assert_eq!(dpid(this.ctl(&["show"])), shown);
    assert!(ping(&this.bed.a, B4, 2));
    switch.stop();
}
