//! Discovery: time (RFC 8456, sections 5.1.1 and A.4.1) and size (5.2.2 and A.5.2).
use super::messages::finished;
use super::northbound::KnownTopology;
use super::results::{TestOutcome, TrialTable};
use super::subject::TestSubject;
use super::testbed::{DiscoveryState, FIRST_PROBE, Testbed};
use super::topology::{TestNetworkPlan, TestTopology};
use std::time::Duration;

/// Equal answers in a row after which the controller is taken to discover no more (section 5.1.1, step 5).
const EQUAL_ANSWERS: u32 = 3;
/// Longest time of a query.
const QUERY_LIMIT: Duration = Duration::from_secs(30);

/// Reason why nothing can be said about discovery.
pub(super) fn no_discovery() -> String {
    format!("the controller sends no discovery messages (LLDP or BDDP in packet-outs) within {FIRST_PROBE:?}")
}

/// Measures the topology discovery time.
///
/// # Errors
/// The controller cannot be reached.
pub(super) fn discovery_time(subject: &mut TestSubject) -> anyhow::Result<TestOutcome> {
    let settings = subject.settings;
    let columns = [("DT", "ms"), ("discovery messages", ""), ("directions of links", "")];
    let mut table = TrialTable::new("", &columns);
    for _ in 0..settings.trials {
        if subject.is_over() || subject.found.discovery == Some(DiscoveryState::None) {
            break;
        }
        subject.pause();
        let mut bed = Testbed::connect(&subject.testbed_settings(), settings.plan.clone())?;
        bed.wait_set_up()?;
        let problem = discover(subject, &mut bed)?;
        if subject.cancel.is_cancelled() {
            break;
        }
        subject.found.discovery = Some(bed.discovery);
        subject.note_discovery(&bed);
        let seen = &bed.network.seen;
        let directions = bed.network.discovered_directions();
        match (seen.first_probe, seen.last_new_probe, problem) {
            (Some(first), Some(last), None) => {
                let time = last.since(first).as_secs_f64() * 1e3;
                table.trial(vec![Some(time), Some(seen.probes as f64), Some(directions as f64)]);
            }
            (.., Some(problem)) => table.failed_trial(problem),
            _ => table.failed_trial("no discovery message returned to the controller"),
        }
    }
    if subject.found.discovery == Some(DiscoveryState::None) {
        return Ok(TestOutcome::not_applicable(no_discovery()));
    }
    let mut outcome = finished(subject, table, "the topology was not discovered");
    outcome.note(match settings.topology_command {
        Some(_) => format!(
            "a trial is successful when the topology command's answer matches the network; it is asked every {} s",
            settings.query_s
        ),
        None => "without --topology-command, discovery is what the southbound interface shows: it is complete when \
                 discovery messages have passed all links in both directions"
            .to_owned(),
    });
    outcome.note(
        "Tmn is the time of the last discovery message that was new to the controller: repeated ones of a later \
         rediscovery do not count",
    );
    Ok(outcome)
}

/// Waits for discovery. Returns the reason if it is not complete.
fn discover(subject: &TestSubject, bed: &mut Testbed) -> anyhow::Result<Option<String>> {
    bed.wait_discovery();
    if bed.discovery == DiscoveryState::None {
        return Ok(Some(no_discovery()));
    }
    if subject.settings.topology_command.is_some() {
        let (nodes, links) = (bed.network.plan.nodes, bed.network.plan.links.len());
        let answer = ask_until_settled(subject, bed, |known| known.matches(nodes, links))?;
        return Ok(match answer {
            Ok(known) if known.matches(nodes, links) => None,
            Ok(known) => Some(format!(
                "the controller knows {}, the network has {nodes} switches and {links} links",
                known_in_words(known)
            )),
            Err(problem) => Some(problem),
        });
    }
    Ok(match bed.discovery {
        DiscoveryState::Partial(found, all) => Some(format!(
            "discovery messages passed {found} of {all} directions of links within {} s (--discovery)",
            subject.settings.discovery_s
        )),
        _ => None,
    })
}

/// Asks the northbound interface until `is_wanted` holds or three answers in a row are equal. Returns the last answer.
fn ask_until_settled(
    subject: &TestSubject,
    bed: &mut Testbed,
    is_wanted: impl Fn(&KnownTopology) -> bool,
) -> anyhow::Result<Result<KnownTopology, String>> {
    let Some(line) = subject.settings.topology_command.as_deref() else {
        return Ok(Err("there is no --topology-command".to_owned()));
    };
    let (mut last, mut equal) = (None, 0);
    loop {
        let answer = bed.command(line, QUERY_LIMIT)?.and_then(|text| KnownTopology::read(&text));
        let known = match answer {
            Ok(known) => known,
            Err(problem) => return Ok(Err(problem)),
        };
        equal = if last == Some(known) { equal + 1 } else { 1 };
        last = Some(known);
        if is_wanted(&known) || equal >= EQUAL_ANSWERS || subject.is_over() {
            return Ok(Ok(known));
        }
        bed.run_for(subject.settings.query())?;
    }
}

fn known_in_words(known: KnownTopology) -> String {
    let links = known.links.map_or_else(String::new, |links| format!(" and {links} links"));
    format!("{} switches{links}", known.nodes)
}

/// Measures the discovery size.
///
/// # Errors
/// The controller cannot be reached with the smallest network.
pub(super) fn discovery_size(subject: &mut TestSubject) -> anyhow::Result<TestOutcome> {
    if subject.settings.topology_command.is_none() {
        return Ok(TestOutcome::not_applicable(
            "the topology that the controller discovered cannot be asked for: give its northbound interface by \
             --topology-command (section 5.2.2, prerequisite 2)",
        ));
    }
    let mut table = TrialTable::new("", &[("network size", "nodes"), ("links", ""), ("discovered", "1 = yes")]);
    let size = search_size(subject, &mut table)?;
    let Some(size) = size else {
        return Ok(TestOutcome::not_applicable("not even the smallest network was discovered"));
    };
    let mut outcome = TestOutcome::measured(table);
    outcome.tables[0].row("Network Discovery Size (Ns)", vec![Some(size as f64)]);
    if size >= subject.settings.max_nodes as usize {
        outcome.note(format!("{size} nodes are the limit of the test (--max-nodes), not the controller's"));
    }
    outcome.note(
        "the number of nodes is doubled until a network is not discovered, then halved in between, instead of changed by \
         one: the result is the same if smaller networks are discovered, too",
    );
    if subject.is_over() {
        outcome
            .note("the search ended early, at its time limit or by Ctrl-C: the size is the largest found until then");
    }
    Ok(outcome)
}

/// Searches for the largest network that is discovered; each trial becomes a row. Returns its number of nodes.
pub(super) fn search_size(subject: &mut TestSubject, table: &mut TrialTable) -> anyhow::Result<Option<usize>> {
    let settings = subject.settings;
    let extra = if settings.topology == TestTopology::LeafSpine { settings.spines } else { 0 };
    let most = (settings.max_nodes as usize).saturating_sub(extra).max(settings.leaves);
    let (mut good, mut bad, mut leaves) = (None::<usize>, None::<usize>, settings.leaves);
    while !subject.is_over() {
        let plan = TestNetworkPlan::new(settings.topology, leaves, settings.spines).map_err(anyhow::Error::msg)?;
        let (nodes, links) = (plan.nodes, plan.links.len());
        let found = match is_discovered(subject, plan) {
            Ok(found) => found,
            // A network that cannot even connect is too large, unless it is the first.
            Err(_) if good.is_some() => false,
            Err(error) => return Err(error),
        };
        table.trial(vec![Some(nodes as f64), Some(links as f64), Some(f64::from(u8::from(found)))]);
        if found {
            good = Some(leaves);
        } else {
            bad = Some(leaves);
        }
        leaves = match (good, bad) {
            (Some(good), None) if good >= most => break,
            (Some(good), None) => (good * 2).min(most),
            (Some(good), Some(bad)) if bad - good > 1 => usize::midpoint(good, bad),
            _ => break,
        };
    }
    Ok(good.map(|leaves| leaves + extra))
}

fn is_discovered(subject: &mut TestSubject, plan: TestNetworkPlan) -> anyhow::Result<bool> {
    let (nodes, links) = (plan.nodes, plan.links.len());
    subject.pause();
    let mut bed = Testbed::connect(&subject.testbed_settings(), plan)?;
    bed.wait_set_up()?;
    let answer = ask_until_settled(subject, &mut bed, |known| known.matches(nodes, links))?;
    let known = answer.map_err(anyhow::Error::msg)?;
    Ok(known.matches(nodes, links))
}
