//! Changes each parameter of the profile format, and compares what formulas, stations and packets make of it with the
//! table of docs/guide/profile.md.
use crate::{L2, STREAM, packets, predicted, scenario, stage, stations};
use std::collections::{BTreeMap, BTreeSet};
use weir_scenario::Profile;

/// Page with the table of parameters.
const PAGE: &str = include_str!("../../../../docs/guide/profile.md");
/// Heading of the table's section.
const HEADING: &str = "### What uses which parameter";

/// Two profiles that differ in one parameter, and what it changes.
struct ParameterCase {
    key: &'static str,
    /// Profiles before and after.
    profiles: [String; 2],
    entries: &'static str,
    traffic: String,
    /// Greatest difference between the mean delays of formulas and stations, as a share.
    within: f64,
    /// Quantity that gets larger.
    larger: ChangedFigure,
}

/// Quantity that a parameter changes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ChangedFigure {
    /// Mean delay of a stream, with all kinds of answers.
    Delay,
    /// Loss of a stream, with all kinds of answers.
    Loss,
    /// Delay of a stream whose new flows ask the controller; of packets, the times of the stage's script.
    Asking,
    /// Loss of that stream.
    AskingLoss,
    /// Times of commands and barriers.
    Commands,
    /// Times of commands and barriers, which may get shorter.
    AnyCommands,
    /// Which entries are in which level; the figure may get smaller.
    Levels,
    /// Share of the packets that are held up.
    HeldUp,
    /// Number of warnings of formulas that they extrapolate.
    Range,
}

fn case(key: &'static str, larger: ChangedFigure, text: &str, [before, after]: [&str; 2]) -> ParameterCase {
    let profiles = [before, after].map(|value| text.replace("{}", value));
    let asks = matches!(larger, ChangedFigure::Asking | ChangedFigure::AskingLoss | ChangedFigure::HeldUp);
    let traffic = if asks { format!("{STREAM}\nnew_flows = 0.3") } else { STREAM.to_owned() };
    ParameterCase { key, profiles, entries: L2, traffic, within: 0.05, larger }
}

/// Returns a case for each parameter.
fn cases() -> Vec<ParameterCase> {
    use ChangedFigure::{AnyCommands, Asking, AskingLoss, Commands, Delay, HeldUp, Levels, Loss, Range};
    let forward = |more: &str| crate::level(more);
    let commands = |more: &str| format!("{more}\n[[level]]\nname = 'a'\nwrite = '10us'\n");
    let slow_commands = |more: &str| commands(more).replace("10us", "100us");
    let of_level = |more: &str| format!("[[level]]\nname = 'a'\n{more}\n");
    let cached = |more: &str| format!("cache = {{ {more} }}\n{}", of_level("forward = { base_l2 = '50us' }"));
    let timing = |more: &str| format!("[timing]\n{more}\n");
    let agents = |more: &str| timing(&format!("data = '9us'\npacket_in = '200us'\npacket_out = '300us'\n{more}"));
    let cost = |command: &str, which: &str| {
        of_level(&format!("write = '10us'\n{command} = {{ {which} = {{ per_entry = '{{}}' }} }}"))
    };
    let quick = |command: &str, which: &str| {
        format!(
            "batching = {{ timeout = '5ms', most = 4 }}\n{}",
            of_level(&format!(
                "write = '10us'\n{command} = {{ {which} = {{ per_entry = '2us', speedup = [{{}}, 0.0] }} }}"
            ))
        )
    };
    let two = |more: &str| {
        format!(
            "{more}\n[[level]]\nname = 'a'\nsize = {{}}\nwrite = '10us'\nforward = {{ base_l2 = '90us' }}\n\
             [[level]]\nname = 'b'\nsize = 40\nwrite = '10us'\nforward = {{ base_l2 = '30us' }}\n"
        )
    };
    let by_kind = |key, layers: &'static str, entries| {
        let text = of_level(&format!("forward = {{ {layers} = '{{}}' }}"));
        ParameterCase { entries, ..case(key, Delay, &text, ["20us", "200us"]) }
    };
    let l3 = "'arp,actions=flood', 'ip,nw_dst=10.0.0.1,actions=output:1', 'ip,nw_dst=10.0.0.2,actions=output:2'";
    let both = "'arp,actions=flood', 'ip,dl_dst=02:00:00:00:00:0a,nw_dst=10.0.0.1,actions=output:1', \
        'ip,dl_dst=02:00:00:00:00:0b,nw_dst=10.0.0.2,actions=output:2'";
    let full = |more: &str| timing(&format!("data = {{ law = 'exponential', mean = '900us' }}\n{more}"));
    let priority = |more: &str| agents(&format!("returns = {{ order = 'priority'{more} }}"));
    let control = |more: &str| timing(&format!("data = '9us'\ncontrol = {{ {more} }}"));
    vec![
        case(
            "batching.timeout",
            Commands,
            &commands("effect = '1ms'\nbatching = { timeout = '{}', most = 9 }"),
            ["10us", "30us"],
        ),
        case("batching.most", Commands, &commands("batching = { timeout = '5ms', most = {} }"), ["2", "9"]),
        case(
            "policy",
            Levels,
            &two("policy = [{ attribute = '{}', evicts = 'lowest' }]").replace("size = {}", "size = 20"),
            ["priority", "modified"],
        ),
        case("barrier.waits", AnyCommands, &slow_commands("barrier = { waits = {}, lag = '1us' }"), ["true", "false"]),
        case("barrier.lag", Commands, &commands("barrier = { lag = '{}' }"), ["1us", "9ms"]),
        case("effect", Commands, &commands("effect = '{}'"), ["1us", "9ms"]),
        case("level.size", Delay, &two(""), ["1", "20"]),
        case("level.add.single.per_entry", Commands, &cost("add", "single"), ["1us", "9us"]),
        case("level.add.several.per_entry", Commands, &cost("add", "several"), ["1us", "9us"]),
        case("level.modify.single.per_entry", Commands, &cost("modify", "single"), ["1us", "9us"]),
        case("level.modify.several.per_entry", Commands, &cost("modify", "several"), ["1us", "9us"]),
        case("level.add.single.speedup", Commands, &quick("add", "single"), ["0.5, 0.5", "0.9, 0.1"]),
        case("level.add.several.speedup", Commands, &quick("add", "several"), ["0.5, 0.5", "0.9, 0.1"]),
        case("level.modify.single.speedup", Commands, &quick("modify", "single"), ["0.5, 0.5", "0.9, 0.1"]),
        case("level.modify.several.speedup", Commands, &quick("modify", "several"), ["0.5, 0.5", "0.9, 0.1"]),
        case("level.shift", Commands, &of_level("shift = '{}'"), ["1us", "9us"]),
        case("level.search", Commands, &of_level("search = '{}'"), ["1us", "9us"]),
        case("level.write", Commands, &of_level("write = '{}'"), ["1us", "9us"]),
        case("level.delete", Commands, &of_level("delete = '{}'"), ["1us", "9us"]),
        by_kind("level.forward.base_l2", "base_l2", L2),
        by_kind("level.forward.base_l3", "base_l3", l3),
        by_kind("level.forward.base_l2l3", "base_l2l3", both),
        case(
            "level.forward.per_byte",
            Delay,
            &of_level("forward = { base_l2 = '50us', per_byte = '{}' }"),
            ["-500ns", "500ns"],
        ),
        case(
            "level.forward.per_entry",
            Delay,
            &of_level("forward = { base_l2 = '90us', per_entry = '{}' }"),
            ["100ns", "10ns"],
        ),
        case(
            "level.forward.per_gap_level",
            Delay,
            &of_level("forward = { base_l2 = '90us', gap_levels = ['1ms'], per_gap_level = '{}' }"),
            ["-80us", "80us"],
        ),
        case(
            "level.forward.gap_levels",
            Delay,
            &of_level("forward = { base_l2 = '90us', gap_levels = ['{}'], per_gap_level = '80us' }"),
            ["3ms", "1ms"],
        ),
        case(
            "level.forward.shortest",
            Delay,
            &of_level("forward = { base_l2 = '90us', gap_levels = ['1ms'], per_gap_level = '-80us', shortest = '{}' }"),
            ["20us", "85us"],
        ),
        case(
            "level.forward.range",
            Range,
            &forward("range = { gap = ['1us', '{}'], entries = [0, 2000], bytes = [64, 1500] }"),
            ["1s", "100us"],
        ),
        ParameterCase {
            within: 0.1,
            ..case(
                "level.forward.busy",
                Delay,
                &of_level("forward = { base_l2 = '90us', busy = '{}' }"),
                ["1us", "80us"],
            )
        },
        case("cache.first", Delay, &cached("first = '{}', idle = '1ms'"), ["1us", "90us"]),
        case("cache.idle", Delay, &cached("first = '90us', idle = '{}'"), ["1s", "1ms"]),
        ParameterCase {
            traffic: format!(
                "{STREAM}\n[[traffic]]\n{}",
                STREAM.replace("'a'", "'c'").replace("'b'", "'a'").replace("'c'", "'b'")
            ),
            ..case("cache.flows", Delay, &cached("first = '90us', flows = {}"), ["9", "1"])
        },
        case(
            "cache.revalidate",
            Commands,
            &format!("effect = '1us'\n{}", cached("revalidate = '{}'")),
            ["1us", "900us"],
        ),
        case("timing.data", Delay, &timing("data = '{}'"), ["20us", "200us"]),
        case("timing.data_buffer", Loss, &full("data_buffer = {}"), ["50", "3"]),
        case("timing.tick", Delay, &timing("data = '9us'\ntick = '{}'"), ["1ms", "9ms"]),
        ParameterCase {
            within: 0.15,
            ..case("timing.tick_max", Delay, &timing("data = '9us'\ntick = '5ms'\ntick_max = {}"), ["30", "6"])
        },
        ParameterCase {
            within: 0.15,
            ..case(
                "timing.batch.packets",
                Delay,
                &timing("data = '9us'\nbatch = { packets = {}, timeout = '50ms' }"),
                ["3", "12"],
            )
        },
        ParameterCase {
            within: 0.15,
            ..case(
                "timing.batch.timeout",
                Delay,
                &timing("data = '9us'\nbatch = { packets = 99, timeout = '{}' }"),
                ["2ms", "20ms"],
            )
        },
        // Formulas take batches as filled by Poisson arrivals, also behind other batches, which is far too slow.
        ParameterCase {
            within: f64::INFINITY,
            ..case(
                "timing.batch.stages",
                Delay,
                &timing("data = '9us'\nbatch = { packets = 5, timeout = '50ms', stages = {} }"),
                ["1", "2"],
            )
        },
        case("timing.packet_in", Asking, &timing("data = '9us'\npacket_in = '{}'"), ["20us", "900us"]),
        case("timing.packet_out", Asking, &timing("data = '9us'\npacket_out = '{}'"), ["20us", "900us"]),
        ParameterCase {
            within: 0.1,
            ..case("timing.agents", Asking, &agents("agents = '{}'"), ["separate", "shared"])
        },
        ParameterCase {
            within: 0.3,
            ..case(
                "timing.buffer",
                AskingLoss,
                &timing("data = '9us'\npacket_in = { law = 'exponential', mean = '3ms' }\nbuffer = {}"),
                ["90", "3"],
            )
        },
        case("timing.control.delay", Asking, &control("delay = '{}', capacity = 900"), ["5ms", "50ms"]),
        case("timing.control.capacity", Asking, &control("delay = '5ms', capacity = {}"), ["900", "400"]),
        ParameterCase {
            within: 0.1,
            ..case("timing.control.scv", Asking, &control("delay = '5ms', capacity = 400, scv = {}"), ["0.1", "3"])
        },
        ParameterCase {
            within: 0.3,
            ..case(
                "timing.control.buffer",
                AskingLoss,
                &control("delay = '5ms', capacity = 300, buffer = {}"),
                ["90", "3"],
            )
        },
        ParameterCase {
            within: 0.1,
            ..case(
                "timing.returns.order",
                Asking,
                &agents("data_buffer = 99\nreturns = '{}'").replace("data = '9us'", "data = '500us'"),
                ["direct", "fifo"],
            )
        },
        ParameterCase {
            within: 0.1,
            ..case("timing.returns.service", Asking, &priority(", service = '{}'"), ["20us", "600us"])
        },
        ParameterCase {
            within: 0.3,
            ..case("timing.returns.buffer", AskingLoss, &priority(", service = '900us', buffer = {}"), ["90", "1"])
        },
        ParameterCase { within: 0.2, ..case("timing.write", Asking, &agents("write = '{}'"), ["1us", "500us"]) },
        case("timing.slow", HeldUp, &agents("slow = '{}'"), ["100ms", "2us"]),
    ]
}

/// Parameters that describe a profile, and change nothing.
const DESCRIPTIONS: [&str; 8] = ["name", "device", "origin", "source", "measured_with", "date", "runs", "level.name"];

/// Returns the rows of the page's table: what formulas, stations and packets do, by parameter.
fn table() -> BTreeMap<String, [String; 3]> {
    let section = PAGE.split_once(HEADING).expect(HEADING).1;
    let rows = section.lines().skip_while(|line| !line.starts_with("| parameter")).skip(2);
    let mut found = BTreeMap::new();
    for row in rows.take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [keys, verbs @ ..] = &cells[..] else { panic!("{row}") };
        for key in keys.split(", ") {
            let verbs: Vec<String> = verbs.iter().map(|verb| (*verb).to_owned()).collect();
            found.insert(key.trim_matches('`').to_owned(), verbs.try_into().unwrap());
        }
    }
    found
}

/// Returns the keys that the format knows, from its errors about a key that it does not know.
fn format_keys() -> BTreeSet<String> {
    let sections = [
        ("", "zzz = 1"),
        ("batching.", "batching = { zzz = 1 }"),
        ("barrier.", "barrier = { zzz = 1 }"),
        ("cache.", "cache = { zzz = 1 }"),
        ("level.", "level = [{ zzz = 1 }]"),
        ("level.add.", "level = [{ add = { zzz = 1 } }]"),
        ("level.add.single.", "level = [{ add = { single = { zzz = 1 } } }]"),
        ("level.add.several.", "level = [{ add = { several = { zzz = 1 } } }]"),
        ("level.modify.", "level = [{ modify = { zzz = 1 } }]"),
        ("level.modify.single.", "level = [{ modify = { single = { zzz = 1 } } }]"),
        ("level.modify.several.", "level = [{ modify = { several = { zzz = 1 } } }]"),
        ("level.forward.", "level = [{ forward = { zzz = 1 } }]"),
        ("timing.", "timing = { zzz = 1 }"),
        ("timing.batch.", "timing = { batch = { zzz = 1 } }"),
        ("timing.control.", "timing = { control = { zzz = 1 } }"),
    ];
    // An order or a table, so that its errors do not list the keys.
    let mut keys: BTreeSet<String> = ["order", "service", "buffer"].map(|key| format!("timing.returns.{key}")).into();
    for (prefix, text) in sections {
        let error = Profile::parse(text, "p").unwrap_err().to_string();
        let known = error.split_once("unknown field `zzz`, expected").unwrap_or_else(|| panic!("{text}: {error}")).1;
        keys.extend(known.split('`').skip(1).step_by(2).map(|key| format!("{prefix}{key}")));
    }
    keys.retain(|key| key != "timing.returns" && !sections.iter().any(|(prefix, _)| *prefix == format!("{key}.")));
    keys
}

#[test]
fn every_parameter_of_the_format_is_in_the_table_and_has_a_case() {
    let known = format_keys();
    assert_eq!(
        table().into_keys().collect::<BTreeSet<_>>(),
        known,
        "table of docs/guide/profile.md, keys of the format"
    );
    let tried = cases().iter().map(|case| case.key.to_owned()).chain(DESCRIPTIONS.map(str::to_owned)).collect();
    assert_eq!(known, tried, "keys of the format, keys of the cases");
}

/// Figures of an answer for the two profiles of a case, with what it says of parameters without effect.
type ChangedAnswer = Result<[(f64, Vec<String>); 2], String>;

fn from_formulas(case: &ParameterCase) -> ChangedAnswer {
    Ok(case.profiles.each_ref().map(|profile| {
        let answer = predicted(&scenario(profile, case.entries, &[&case.traffic]));
        let (flow, warnings) = (&answer.flows[0], &answer.warnings);
        let figure = match case.larger {
            ChangedFigure::Loss | ChangedFigure::AskingLoss => flow.loss.unwrap(),
            ChangedFigure::Range => warnings.iter().filter(|one| one.kind == "EXTRAPOLATED").count() as f64,
            _ => flow.delay.unwrap().mean_s,
        };
        (figure, warnings.iter().map(ToString::to_string).collect())
    }))
}

fn from_stations(case: &ParameterCase) -> ChangedAnswer {
    Ok(case.profiles.each_ref().map(|profile| {
        let scenario = scenario(profile, case.entries, &[&case.traffic]);
        if !weir_sim::stations::has_timing(&scenario) {
            return (0.0, weir_sim::stations::plan(&scenario).unwrap().unused);
        }
        let report = stations(&scenario);
        let figure = match case.larger {
            ChangedFigure::Loss | ChangedFigure::AskingLoss => report.flows[0].loss,
            ChangedFigure::HeldUp => report.switches[0].held_up,
            _ => report.flows[0].all.mean_s,
        };
        (figure.unwrap().mean, report.unused)
    }))
}

fn from_packets(case: &ParameterCase) -> ChangedAnswer {
    let of_profile = |profile: &String| {
        let scenario = scenario(profile, case.entries, &[&case.traffic]);
        let profile = scenario.switches[0].profile.as_deref().unwrap();
        let result = stage::run(profile)?;
        let unused = weir_scenario::unused_parameters(&scenario, weir_scenario::ProfileUse::Packets);
        let figure = match case.larger {
            ChangedFigure::Delay => packets(&scenario)[0][0],
            ChangedFigure::Loss | ChangedFigure::AskingLoss => result.counts[..2].iter().sum::<u64>() as f64,
            ChangedFigure::Levels => result.counts[3..].iter().zip(1..).map(|(level, at)| (level * at) as f64).sum(),
            _ => result.sum_s,
        };
        Ok((figure, unused))
    };
    let [before, after]: [Result<_, String>; 2] = case.profiles.each_ref().map(of_profile);
    Ok([before?, after?])
}

#[test]
fn every_parameter_does_what_the_table_says() {
    let table = table();
    let mut wrong = Vec::new();
    for case in cases() {
        let answers = [from_formulas(&case), from_stations(&case), from_packets(&case)];
        let own = case.key.strip_prefix("level.").map_or(case.key.to_owned(), |own| format!("level1.{own}"));
        for ((verb, says), answer) in ["formulas", "stations", "packets"].iter().zip(&table[case.key]).zip(&answers) {
            let name = case.key.rsplit('.').next().unwrap();
            let holds = match (&says[..], answer) {
                ("yes", Ok([before, after]))
                    if matches!(case.larger, ChangedFigure::Levels | ChangedFigure::AnyCommands) =>
                {
                    before.0 != after.0
                }
                ("yes", Ok([before, after])) => after.0 > before.0,
                ("named", Ok([before, after])) => {
                    before.0 == after.0 && after.1.iter().any(|text| text.contains(&own) && text.contains("no effect"))
                }
                ("no", Ok([before, after])) => before.0 == after.0,
                ("refused", Err(error)) => {
                    ["control", "returns", "batch", name].iter().any(|word| error.contains(word))
                }
                _ => false,
            };
            if !holds {
                wrong.push(format!("{} {verb}: {says}: {answer:?}", case.key));
            }
        }
        let is_delay = matches!(case.larger, ChangedFigure::Delay | ChangedFigure::Asking);
        if let (true, [Ok(formulas), Ok(stations), _]) = (is_delay, &answers) {
            for (formula, station) in formulas.iter().zip(stations) {
                if (formula.0 / station.0 - 1.0).abs() > case.within {
                    wrong.push(format!("{}: formulas {}, stations {}", case.key, formula.0, station.0));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
