//! Writes a report as an HTML page with its charts.
use crate::report::{ExperimentFigure, ExperimentReport};
use weir_plot::{HtmlPage, HtmlTable, short};

impl ExperimentReport {
    /// Returns the report as a page: charts, claims, figures, and their setup.
    pub fn html(&self) -> String {
        let mut page = HtmlPage::new(&format!("{}: {}", self.experiment, self.title));
        page.answer(&format!("Asked, of experiment {}: {}", self.experiment, self.question), &self.in_a_line());
        page.text(&format!("Published: {}; {}", self.source, self.published_setup));
        for plot in &self.plots {
            page.figure(plot, "");
        }
        page.heading("What it shows").list(self.claims.iter().map(|claim| {
            let (word, wrong) = match claim.holds {
                Some(true) => ("holds", false),
                Some(false) => ("fails", true),
                None => ("untested", false),
            };
            (word, wrong, format!("{}: {}", claim.text, claim.because))
        }));
        for note in &self.notes {
            page.text(note);
        }
        if self.partial {
            page.warning("Stopped early, results are partial");
        }
        page.heading("Figures").table(&table(&self.figures));
        page.finish(&self.setup.to_string())
    }

    /// Returns the answer in a line: how many claims hold, and those that fail.
    fn in_a_line(&self) -> String {
        let tested: Vec<bool> = self.claims.iter().filter_map(|claim| claim.holds).collect();
        let failed = self.claims.iter().filter(|claim| claim.holds == Some(false));
        let failed: Vec<String> = failed.map(|claim| format!("{} ({})", claim.text, claim.because)).collect();
        let holds = tested.iter().filter(|holds| **holds).count();
        let fails = if failed.is_empty() { String::new() } else { format!("; fails: {}", failed.join("; ")) };
        format!("{holds} of {} tested claims hold{fails}.", tested.len())
    }
}

fn table(figures: &[ExperimentFigure]) -> HtmlTable {
    let row = |figure: &ExperimentFigure| {
        let published = figure.published.as_ref().map_or_else(String::new, |published| short(published.value));
        let sd = figure.sd.map_or_else(String::new, short);
        let samples = figure.samples.to_string();
        [figure.case.clone(), figure.metric.into(), published, short(figure.ours), sd, samples, figure.unit.into()]
            .map(Into::into)
            .into()
    };
    let head = ["case", "figure", "published", "ours", "+-", "samples", "unit"].map(str::to_owned).into();
    HtmlTable { head, texts: 2, rows: figures.iter().map(row).collect() }
}
