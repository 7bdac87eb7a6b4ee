//! Formats profiles as text and as a page with charts.
use std::fmt::Write as _;
use weir_plot::{Figure, HtmlCell, HtmlPage, HtmlTable};
use weir_profile::{ParameterDifference, Profile, ProfileParameter, in_a_line};
use weir_terminal::table::ReportTable;

pub(super) fn list(profiles: &[Profile]) -> String {
    let mut table = ReportTable::new(["profile", "what"]);
    for profile in profiles {
        table.row([profile.name.clone(), format!("{} ({})", profile.device, profile.origin.words())]);
    }
    format!("{table}\n")
}

pub(super) fn show(profile: &Profile) -> String {
    let mut text = format!("{}: {}\n{}: {}\n", profile.name, profile.device, profile.origin.words(), profile.source);
    let measured = profile.measured_with.iter().chain(&profile.date).map(String::as_str).collect::<Vec<_>>();
    if !measured.is_empty() {
        let _ = writeln!(text, "measured with {}", measured.join(", "));
    }
    if let Some(runs) = &profile.runs {
        let _ = writeln!(text, "runs in {}", runs.display());
    }
    let mut table = ReportTable::new(["parameter", "value", "rests on"]);
    for parameter in profile.parameters() {
        table.row([parameter.key.clone(), parameter.shown(), evidence(&parameter)]);
    }
    if !table.is_empty() {
        let _ = writeln!(text, "{table}");
    }
    text
}

/// Describes the evidence for a value: interval, fit, samples.
fn evidence(parameter: &ProfileParameter) -> String {
    let Some(evidence) = &parameter.evidence else { return String::new() };
    let interval = evidence.interval.map(|[low, high]| format!("{} to {}", parameter.show(low), parameter.show(high)));
    let r2 = evidence.r2.map(|r2| format!("R2 {r2:.4}"));
    let residual = evidence.residual.map(|share| format!("half within {:.1} %", share * 100.0));
    let samples = evidence.samples.map(|samples| format!("{samples} samples"));
    [interval, r2, residual, samples, evidence.note.clone()].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

pub(super) fn diff(left: &str, right: &str, found: &[ParameterDifference]) -> String {
    if found.is_empty() {
        return format!("{left} and {right} are alike\n");
    }
    let shown = |side: &Option<ProfileParameter>| side.as_ref().map_or_else(|| "-".to_owned(), ProfileParameter::shown);
    let mut table = ReportTable::new(["parameter", left, right, "difference"]);
    for one in found {
        table.row([one.key.clone(), shown(&one.left), shown(&one.right), note(one)]);
    }
    format!("{table}\n")
}

fn note(difference: &ParameterDifference) -> String {
    let far = difference.relative.map(|share| format!("{:+.1} %", share * 100.0));
    let overlap = difference.overlap.map(|overlap| if overlap { "intervals overlap" } else { "intervals apart" });
    [far, overlap.map(str::to_owned)].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

pub(super) fn page(profile: &Profile, charts: &[Figure]) -> String {
    let mut page = HtmlPage::new(&format!("{}: {}", profile.name, profile.device));
    page.answer(
        &format!("Asked: how long do commands and packets take in a switch with profile {}?", profile.name),
        &in_a_line(profile).unwrap_or_else(|| "Open: the profile has no costs of commands.".to_owned()),
    );
    page.text(&format!("{}: {}", profile.origin.words(), profile.source));
    for chart in charts {
        page.figure(chart, "");
    }
    let row = |parameter: &ProfileParameter| {
        [parameter.key.clone(), parameter.shown(), evidence(parameter)].map(HtmlCell::from).to_vec()
    };
    page.heading("Parameters");
    page.table(&HtmlTable {
        head: ["parameter", "value", "rests on"].map(str::to_owned).to_vec(),
        rows: profile.parameters().iter().map(row).collect(),
        texts: 3,
    });
    page.finish(concat!("weir profile plot, weir ", env!("CARGO_PKG_VERSION")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_begins_with_the_question_and_the_answer() {
        let profile = Profile::find("two-level-tcam", std::path::Path::new("")).unwrap();
        let html = page(&profile, &weir_profile::figures(&profile));
        for words in [
            "Asked: how long do commands and packets take in a switch with profile two-level-tcam?",
            "adding an entry to level tcam takes 0.500 ms if it is empty",
            "time of one command, ms",
            "delay in the switch, us",
        ] {
            assert!(html.contains(words), "no `{words}` in {html}");
        }
    }
}
