//! Prints figures as lines of a table, or as a record.
use super::measure::DatapathCaseFigures;
use super::workers::{self, MultiWorkerFigures};
use super::{
    BenchCacheMode, BenchCaseName, BenchLookupMode, BenchPortKind, DatapathBenchArgs, FlowOrder, HeaderPattern,
};
use crate::machine::BenchMachineInfo;
use serde::Serialize;

/// All results of a command, with what is needed to repeat it.
#[derive(Debug, Serialize)]
pub(super) struct DatapathBenchReport {
    command: String,
    version: &'static str,
    /// Commit that the program was built from, if the build recorded it.
    commit: Option<&'static str>,
    machine: BenchMachineInfo,
    core: usize,
    workers: u16,
    seed: u64,
    order: FlowOrder,
    ports: BenchPortKind,
    lookup: BenchLookupMode,
    verdict_cache: BenchCacheMode,
    headers: Option<HeaderPattern>,
    /// True if the run was stopped: the last case was measured for less time, and others may be missing.
    partial: bool,
    cases: Vec<DatapathCaseFigures>,
    /// Results with several workers, if requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    together: Vec<MultiWorkerFigures>,
    #[serde(skip)]
    copies: bool,
}

impl DatapathBenchReport {
    pub(super) fn new(args: &DatapathBenchArgs, machine: BenchMachineInfo, core: usize) -> DatapathBenchReport {
        DatapathBenchReport {
            command: std::env::args().collect::<Vec<_>>().join(" "),
            version: env!("CARGO_PKG_VERSION"),
            commit: option_env!("WEIR_COMMIT"),
            machine,
            core,
            workers: args.workers,
            seed: args.seed,
            order: args.order,
            ports: args.ports,
            lookup: args.lookup,
            verdict_cache: args.verdict_cache,
            headers: args.headers,
            partial: false,
            cases: Vec::new(),
            together: Vec::new(),
            copies: args.actions.is_some(),
        }
    }

    pub(super) fn add(&mut self, figures: DatapathCaseFigures) {
        self.cases.push(figures);
    }

    /// Returns true if every packet left by the expected port.
    pub(super) fn is_whole(&self) -> bool {
        // Actions given by the user may send copies.
        let left = |packets, sent| if self.copies { sent >= packets } else { sent == packets };
        self.cases.iter().all(|figures| left(figures.packets, figures.sent))
            && self.together.iter().all(|together| left(together.packets, together.sent))
    }

    /// Adds the results of several workers, and prints them unless the output is one document.
    pub(super) fn add_together(
        &mut self,
        together: MultiWorkerFigures,
        one_alone: f64,
        as_json: bool,
    ) -> anyhow::Result<()> {
        if !as_json {
            weir_terminal::output::print(&workers::lines(&together, one_alone))?;
        }
        self.together.push(together);
        Ok(())
    }

    /// Prints how a case's rate grows with the number of workers, if several were measured.
    pub(super) fn sum_up(&self, case: BenchCaseName, one_alone: f64, as_json: bool) -> anyhow::Result<()> {
        let together: Vec<&MultiWorkerFigures> =
            self.together.iter().filter(|together| together.case == case).collect();
        if !as_json && !together.is_empty() {
            weir_terminal::output::print(&workers::summary(one_alone, &together))?;
        }
        Ok(())
    }

    /// Prints one case's line, after a heading if it is the first.
    pub(super) fn print(&self, figures: &DatapathCaseFigures) -> anyhow::Result<()> {
        let mut text = String::new();
        if self.cases.is_empty() {
            text = [
                format!("{:10} {:>7} {:>7} {:>7}", "case", "entries", "flows", "Mpps"),
                format!("({:>6} {:>6} {:>6})", "best", "median", "p10"),
                format!("{:>7} {:>6} {:>6} {:>7} {:>6}\n", "ns", "cycles", "load s", "B/entry", "hits"),
            ]
            .join(" ");
        }
        text += &line(figures, self.machine.tsc_mhz);
        weir_terminal::output::print(&text)
    }

    /// Prints the end of the output: a remark if the run was stopped, or the whole document.
    pub(super) fn end(&mut self, is_partial: bool, as_json: bool) -> anyhow::Result<()> {
        self.partial = is_partial;
        let text = match (as_json, is_partial) {
            (true, _) => serde_json::to_string_pretty(self)? + "\n",
            (false, true) => "stopped: partial results\n".to_owned(),
            (false, false) => return Ok(()),
        };
        weir_terminal::output::print(&text)
    }
}

fn line(figures: &DatapathCaseFigures, tsc_mhz: Option<f64>) -> String {
    let name =
        clap::ValueEnum::to_possible_value(&figures.case).map_or(String::new(), |value| value.get_name().to_owned());
    let ns = 1e3 / figures.mpps;
    let cycles = tsc_mhz.map_or("-".to_owned(), |mhz| format!("{:.0}", mhz / figures.mpps));
    let memory = figures.load.bytes_per_entry.map_or("-".to_owned(), |bytes| format!("{bytes:.0}"));
    let DatapathCaseFigures { entries, flows, mpps, best, median, p10, .. } = figures;
    let hits = figures.hits.map_or("-".to_owned(), |hits| format!("{:.1}%", hits * 100.0));
    let lost = figures.packets - figures.sent.min(figures.packets);
    let lost = if lost == 0 {
        String::new()
    } else {
        format!("{name}: {lost} of {} packets did not leave\n", figures.packets)
    };
    let load = figures.load.seconds;
    format!("{name:10} {entries:7} {flows:7} {mpps:7.2} ({best:6.2} {median:6.2} {p10:6.2})")
        + &format!(" {ns:7.1} {cycles:>6} {load:6.2} {memory:>7} {hits:>6}\n{lost}")
}
