//! Results of the tests of RFC 8456 as tables, in the reporting format of section 5: one row for each trial, and the
//! average and the variance in the last rows.
use super::figures::{average, variance};
use serde::Serialize;

/// The 15 tests, by their names and their sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum BenchmarkTest {
    /// 5.1.1: Network Topology Discovery Time
    TopologyDiscoveryTime,
    /// 5.1.2: Asynchronous Message Processing Time
    MessageProcessingTime,
    /// 5.1.3: Asynchronous Message Processing Rate
    MessageProcessingRate,
    /// 5.1.4: Reactive Path Provisioning Time
    ReactivePathTime,
    /// 5.1.5: Proactive Path Provisioning Time
    ProactivePathTime,
    /// 5.1.6: Reactive Path Provisioning Rate
    ReactivePathRate,
    /// 5.1.7: Proactive Path Provisioning Rate
    ProactivePathRate,
    /// 5.1.8: Network Topology Change Detection Time
    ChangeDetectionTime,
    /// 5.2.1: Control Sessions Capacity
    SessionsCapacity,
    /// 5.2.2: Network Discovery Size
    DiscoverySize,
    /// 5.2.3: Forwarding Table Capacity
    ForwardingTableCapacity,
    /// 5.3.1: Exception Handling
    ExceptionHandling,
    /// 5.3.2: Handling Denial-of-Service Attacks
    DenialOfService,
    /// 5.4.1: Controller Failover Time
    FailoverTime,
    /// 5.4.2: Network Re-provisioning Time
    ReprovisioningTime,
}

impl BenchmarkTest {
    /// All tests in the order of the RFC.
    pub(super) const ALL: [BenchmarkTest; 15] = [
        BenchmarkTest::TopologyDiscoveryTime,
        BenchmarkTest::MessageProcessingTime,
        BenchmarkTest::MessageProcessingRate,
        BenchmarkTest::ReactivePathTime,
        BenchmarkTest::ProactivePathTime,
        BenchmarkTest::ReactivePathRate,
        BenchmarkTest::ProactivePathRate,
        BenchmarkTest::ChangeDetectionTime,
        BenchmarkTest::SessionsCapacity,
        BenchmarkTest::DiscoverySize,
        BenchmarkTest::ForwardingTableCapacity,
        BenchmarkTest::ExceptionHandling,
        BenchmarkTest::DenialOfService,
        BenchmarkTest::FailoverTime,
        BenchmarkTest::ReprovisioningTime,
    ];

    /// Returns section and title of the test in the RFC.
    pub(super) fn title(self) -> (&'static str, &'static str) {
        match self {
            BenchmarkTest::TopologyDiscoveryTime => ("5.1.1", "Network Topology Discovery Time"),
            BenchmarkTest::MessageProcessingTime => ("5.1.2", "Asynchronous Message Processing Time"),
            BenchmarkTest::MessageProcessingRate => ("5.1.3", "Asynchronous Message Processing Rate"),
            BenchmarkTest::ReactivePathTime => ("5.1.4", "Reactive Path Provisioning Time"),
            BenchmarkTest::ProactivePathTime => ("5.1.5", "Proactive Path Provisioning Time"),
            BenchmarkTest::ReactivePathRate => ("5.1.6", "Reactive Path Provisioning Rate"),
            BenchmarkTest::ProactivePathRate => ("5.1.7", "Proactive Path Provisioning Rate"),
            BenchmarkTest::ChangeDetectionTime => ("5.1.8", "Network Topology Change Detection Time"),
            BenchmarkTest::SessionsCapacity => ("5.2.1", "Control Sessions Capacity"),
            BenchmarkTest::DiscoverySize => ("5.2.2", "Network Discovery Size"),
            BenchmarkTest::ForwardingTableCapacity => ("5.2.3", "Forwarding Table Capacity"),
            BenchmarkTest::ExceptionHandling => ("5.3.1", "Exception Handling"),
            BenchmarkTest::DenialOfService => ("5.3.2", "Handling Denial-of-Service Attacks"),
            BenchmarkTest::FailoverTime => ("5.4.1", "Controller Failover Time"),
            BenchmarkTest::ReprovisioningTime => ("5.4.2", "Network Re-provisioning Time"),
        }
    }
}

/// Result of a test.
#[derive(Debug, Clone, Serialize)]
pub(super) struct TestResult {
    pub(super) section: &'static str,
    pub(super) title: &'static str,
    pub(super) test: BenchmarkTest,
    /// Reason why the test says nothing of this controller; `None` if it was measured.
    pub(super) not_applicable: Option<String>,
    pub(super) tables: Vec<TrialTable>,
    pub(super) notes: Vec<String>,
}

/// Result of a test without its title.
#[derive(Debug, Clone, Default)]
pub(super) struct TestOutcome {
    pub(super) not_applicable: Option<String>,
    pub(super) tables: Vec<TrialTable>,
    pub(super) notes: Vec<String>,
}

impl TestOutcome {
    /// Returns the outcome of a test that says nothing of this controller. The reason completes "not applicable,
    /// because".
    pub(super) fn not_applicable(reason: impl Into<String>) -> TestOutcome {
        TestOutcome { not_applicable: Some(reason.into()), ..TestOutcome::default() }
    }

    /// Returns the outcome with a table.
    pub(super) fn measured(table: TrialTable) -> TestOutcome {
        TestOutcome { tables: vec![table], ..TestOutcome::default() }
    }

    /// Adds a note once.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Appends the tables and notes of another outcome. A reason is kept only if there is no table.
    pub(super) fn append(&mut self, other: TestOutcome) {
        self.tables.extend(other.tables);
        other.notes.into_iter().for_each(|note| self.note(note));
        match other.not_applicable {
            Some(reason) if self.tables.is_empty() => self.not_applicable = Some(reason),
            Some(reason) => self.note(format!("not all of it: {reason}")),
            None => {}
        }
        if !self.tables.is_empty()
            && let Some(reason) = self.not_applicable.take()
        {
            self.note(format!("not all of it: {reason}"));
        }
    }

    /// Returns the result with the test's title.
    pub(super) fn of(self, test: BenchmarkTest) -> TestResult {
        let (section, title) = test.title();
        let TestOutcome { not_applicable, tables, notes } = self;
        TestResult { section, title, test, not_applicable, tables, notes }
    }
}

/// Quantity of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct TableColumn {
    pub(super) name: &'static str,
    /// Unit; empty for numbers.
    pub(super) unit: &'static str,
}

/// Row of a table: a trial, or a test under a disturbance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ResultRow {
    pub(super) name: String,
    /// Values of the columns; `None` if there is none.
    pub(super) values: Vec<Option<f64>>,
    /// Benchmark at this trial, or the reason why there is no value; empty for none.
    pub(super) remark: String,
}

/// Table of trials.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct TrialTable {
    /// Subject of the table, such as the frame size; empty if the title says it.
    pub(super) caption: String,
    /// Columns; the first is the test's result.
    pub(super) columns: Vec<TableColumn>,
    pub(super) rows: Vec<ResultRow>,
    /// Average and variance of the first column over the trials with a value, if the RFC asks for them.
    pub(super) average: Option<f64>,
    pub(super) variance: Option<f64>,
}

impl TrialTable {
    /// Returns a table without rows. Columns are given as name and unit.
    pub(super) fn new(caption: impl Into<String>, columns: &[(&'static str, &'static str)]) -> TrialTable {
        let columns = columns.iter().map(|(name, unit)| TableColumn { name, unit }).collect();
        TrialTable { caption: caption.into(), columns, rows: Vec::new(), average: None, variance: None }
    }

    /// Adds a trial.
    pub(super) fn trial(&mut self, values: Vec<Option<f64>>) {
        let name = format!("trial {}", self.rows.len() + 1);
        self.rows.push(ResultRow { name, values, remark: String::new() });
    }

    /// Adds a trial without a result, with the reason.
    pub(super) fn failed_trial(&mut self, reason: impl Into<String>) {
        let name = format!("trial {}", self.rows.len() + 1);
        let values = vec![None; self.columns.len()];
        self.rows.push(ResultRow { name, values, remark: reason.into() });
    }

    /// Adds a row with a name.
    pub(super) fn row(&mut self, name: impl Into<String>, values: Vec<Option<f64>>) {
        self.rows.push(ResultRow { name: name.into(), values, remark: String::new() });
    }

    /// Returns the values of the first column.
    pub(super) fn results(&self) -> Vec<f64> {
        self.rows.iter().filter_map(|row| row.values.first().copied().flatten()).collect()
    }

    /// Computes average and variance over the trials.
    #[must_use]
    pub(super) fn summed_up(mut self) -> TrialTable {
        let results = self.results();
        self.average = average(&results);
        self.variance = variance(&results);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_without_a_result_do_not_count() {
        let mut table = TrialTable::new("", &[("time", "ms"), ("messages", "")]);
        table.trial(vec![Some(1.0), Some(7.0)]);
        table.failed_trial("no answer");
        table.trial(vec![Some(3.0), None]);
        let table = table.summed_up();
        assert_eq!((table.average, table.variance), (Some(2.0), Some(2.0)));
        assert_eq!(table.rows[1].name, "trial 2");
    }

    #[test]
    fn every_test_has_a_section_of_its_own() {
        let sections: std::collections::BTreeSet<_> = BenchmarkTest::ALL.iter().map(|test| test.title().0).collect();
        assert_eq!(sections.len(), 15);
        assert!(BenchmarkTest::ALL.is_sorted());
    }

    #[test]
    fn a_reason_becomes_a_note_beside_a_table() {
        let mut outcome = TestOutcome::not_applicable("no frames of 128 bytes");
        outcome.append(TestOutcome::measured(TrialTable::new("512", &[("time", "ms")])));
        assert!(outcome.not_applicable.is_none() && outcome.notes[0].contains("128"));
    }
}
