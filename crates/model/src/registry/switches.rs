//! Registers the models of table changes and of forwarding by an idle switch.
use super::{ModelArguments, ModelOutcome, ModelOutput, ModelParameter, RegisteredModel, optional, output, required};
use crate::ModelError;
use crate::check::domain;
use crate::switch::costs::{AddCostInputs, ChangeCostInputs, add_s, delete_s, modify_s};
use crate::switch::forward::{ConditionOffsets, DelaySlopes, delay_s};
use crate::switch::priorities::PriorityCounts;
use crate::switch::speedup::{BatchSpeedup, CommandBatch, PerEntryCost};
use serde::Deserialize;
use std::collections::BTreeMap;

const SOURCE: &str = "Cheng, Turning Mininet/Open vSwitch into a detailed OpenFlow emulator (2015), 4.4; where equations and text differ, the text";
const VALIDITY: &str =
    "a fit: holds for the device and the range that its parameters were measured on; errors mostly under 30 %";
const TAKES: &[ModelOutput] = &[output("D", "s", "how long it takes")];
const BATCH: ModelParameter = required("q", "commands", "the batch it comes in");
const OVERHEAD: ModelParameter = required("P", "s", "the cost for each entry that is there, alone");
const SPEEDUP: ModelParameter =
    required("R", "", "[r0, r1, r2]: how many times cheaper that is in a batch of q: r0 + r1 q + r2 q²");
const MOST: ModelParameter = required("Q", "commands", "the largest batch");
const SHIFT: ModelParameter = required("S", "s", "moving an entry by one place");
const WRITE: ModelParameter = required("W", "s", "writing an entry");
const TABLES: ModelParameter = required(
    "tables",
    "",
    "for each table {e, m, P, R, Q, M, W}: entries, those that match, costs as for flow_add, search",
);

/// Adding, modifying, deleting and forwarding.
pub(super) const MODELS: &[RegisteredModel] = &[
    RegisteredModel {
        name: "flow_add",
        title: "How long a switch takes to add an entry",
        assumes: "cost for each entry that is there, for each that has to make place, and for writing",
        validity: VALIDITY,
        source: SOURCE,
        parameters: &[
            required("e", "entries", "those that are there"),
            BATCH,
            required("s", "entries", "those that have to make place: of strictly lower priority"),
            OVERHEAD,
            SPEEDUP,
            MOST,
            SHIFT,
            WRITE,
        ],
        outputs: TAKES,
        evaluate: |given| {
            let adding = adding(given, given.count("e")? as u64, given.count("s")? as u64)?;
            Ok(ModelOutcome::default().with("D", "s", add_s(&adding)?))
        },
    },
    RegisteredModel {
        name: "flow_add_prio",
        title: "How long a switch takes to add an entry, from the priorities of those that are there",
        assumes: "as flow_add; entries of strictly lower priority make place",
        validity: VALIDITY,
        source: SOURCE,
        parameters: &[
            required("prio_counts", "entries", "how many there are of each priority: {\"501\": 10}"),
            required("prio_new", "", "the priority of the new one"),
            BATCH,
            OVERHEAD,
            SPEEDUP,
            MOST,
            SHIFT,
            WRITE,
        ],
        outputs: &[output("D", "s", "how long it takes"), output("shifts", "entries", "those that make place")],
        evaluate: add_with_priorities,
    },
    RegisteredModel {
        name: "flow_mod",
        title: "How long a switch takes to modify entries",
        assumes: "for each table: cost for each entry that is there, searching, and writing each that matches",
        validity: VALIDITY,
        source: SOURCE,
        parameters: &[TABLES, BATCH],
        outputs: TAKES,
        evaluate: modifying,
    },
    RegisteredModel {
        name: "flow_del",
        title: "How long a switch takes to delete entries",
        assumes: "for each table: searching, and writing each entry that matches",
        validity: VALIDITY,
        source: SOURCE,
        parameters: &[required("tables", "", "for each table {m, M, W}: entries that match, search, writing")],
        outputs: TAKES,
        evaluate: deleting,
    },
    RegisteredModel {
        name: "fwd_delay",
        title: "What an idle switch adds to a packet",
        assumes: "delay linear in levels of times between packets, entries and bytes, from a base of 100 us, 500 entries, 128 bytes",
        validity: "a fit: holds between what was measured; beyond, it is extrapolated",
        source: "Cheng (2015), 5.3",
        parameters: &[
            required("beta", "s", "the delay at the base"),
            required("ga", "s", "more for each level"),
            required("ge", "s", "more for each entry"),
            required("gb", "s/byte", "more for each byte"),
            optional("dlevel", "", "levels above the base", "0"),
            optional("de", "entries", "entries above the base", "0"),
            optional("db", "bytes", "bytes above the base", "0"),
        ],
        outputs: TAKES,
        evaluate: forwarding,
    },
];

fn batch_of(given: &ModelArguments, name: &str) -> Result<u32, ModelError> {
    let count = given.count(name)?;
    u32::try_from(count).map_err(|_| domain(name, count, "a batch of fewer than 2^32"))
}

fn adding(given: &ModelArguments, entries: u64, shifts: u64) -> Result<AddCostInputs, ModelError> {
    Ok(AddCostInputs {
        overhead: PerEntryCost {
            per_entry_s: given.number("P")?,
            speedup: BatchSpeedup(given.read("R", "three numbers")?),
        },
        entries,
        shifts,
        batch: CommandBatch { commands: batch_of(given, "q")?, most: batch_of(given, "Q")? },
        shift_s: given.number("S")?,
        write_s: given.number("W")?,
    })
}

fn add_with_priorities(given: &ModelArguments) -> Result<ModelOutcome, ModelError> {
    let counts: BTreeMap<u16, u64> = given.read("prio_counts", "numbers of entries by priority")?;
    let new: u16 = given.read("prio_new", "a priority from 0 to 65535")?;
    let mut priorities = PriorityCounts::default();
    counts.into_iter().for_each(|(priority, entries)| priorities.add_many(priority, entries));
    let shifts = priorities.below(new);
    let adding = adding(given, priorities.entries(), shifts)?;
    Ok(ModelOutcome::default().with("D", "s", add_s(&adding)?).with("shifts", "entries", shifts as f64))
}

/// Parameters of a table in which entries are modified.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModifyTableInput {
    e: u64,
    m: u64,
    #[serde(rename = "P")]
    per_entry_s: f64,
    #[serde(rename = "R")]
    speedup: BatchSpeedup,
    #[serde(rename = "Q")]
    most: u32,
    #[serde(rename = "M")]
    search_s: f64,
    #[serde(rename = "W")]
    write_s: f64,
}

/// Parameters of a table from which entries are deleted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeleteTableInput {
    m: u64,
    #[serde(rename = "M")]
    search_s: f64,
    #[serde(rename = "W")]
    write_s: f64,
}

/// Evaluates tables separately, because they may have different largest batches.
fn modifying(given: &ModelArguments) -> Result<ModelOutcome, ModelError> {
    let tables: Vec<ModifyTableInput> = given.read("tables", "a list of tables")?;
    let commands = batch_of(given, "q")?;
    let one = |table: &ModifyTableInput| {
        let changing = ChangeCostInputs {
            overhead: PerEntryCost { per_entry_s: table.per_entry_s, speedup: table.speedup },
            entries: table.e,
            matching: table.m,
            search_s: table.search_s,
            write_s: table.write_s,
        };
        modify_s(&[changing], CommandBatch { commands, most: table.most })
    };
    let sum = tables.iter().map(one).sum::<Result<f64, ModelError>>()?;
    Ok(ModelOutcome::default().with("D", "s", sum))
}

fn deleting(given: &ModelArguments) -> Result<ModelOutcome, ModelError> {
    let tables: Vec<DeleteTableInput> = given.read("tables", "a list of tables")?;
    let found = |table: &DeleteTableInput| ChangeCostInputs {
        overhead: PerEntryCost::NONE,
        entries: 0,
        matching: table.m,
        search_s: table.search_s,
        write_s: table.write_s,
    };
    Ok(ModelOutcome::default().with("D", "s", delete_s(&tables.iter().map(found).collect::<Vec<_>>())?))
}

fn forwarding(given: &ModelArguments) -> Result<ModelOutcome, ModelError> {
    let slopes = DelaySlopes {
        per_level_s: given.number("ga")?,
        per_entry_s: given.number("ge")?,
        per_byte_s: given.number("gb")?,
    };
    let or_none = |name| Ok::<f64, ModelError>(given.optional_number(name)?.unwrap_or(0.0));
    let from_base = ConditionOffsets { levels: or_none("dlevel")?, entries: or_none("de")?, bytes: or_none("db")? };
    Ok(ModelOutcome::default().with("D", "s", delay_s(given.number("beta")?, slopes, from_base)?))
}
