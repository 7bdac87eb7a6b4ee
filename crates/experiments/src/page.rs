//! A report as one page of HTML, its charts in it.
use crate::plot::escape;
use crate::report::{Report, short};
use std::fmt::Write as _;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:62em;margin:2em auto;padding:0 1em;color:#222;background:#fff}\
    svg{width:100%;height:auto}td,th{padding:.1em .8em;text-align:right}td:nth-child(-n+2),th:nth-child(-n+2){text-align:left}\
    .no{color:#c33;font-weight:600}small{color:#777}\
    @media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}.no{color:#f77}}";

impl Report {
    /// The report as a page: charts, claims, figures, and what they were measured with.
    pub fn html(&self) -> String {
        let title = escape(&format!("{}: {}", self.experiment, self.title));
        let mut page = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
             <title>{title}</title><style>{STYLE}</style>\n<h1>{title}</h1>\n<p>Published: {}; {}</p>\n",
            escape(&self.source),
            escape(&self.published_setup)
        );
        self.plots.iter().for_each(|plot| page += &format!("<figure>{}</figure>\n", plot.svg()));
        page += "<h2>What it shows</h2>\n<ul>\n";
        for claim in &self.claims {
            let (class, holds) = match claim.holds {
                Some(true) => ("", "holds"),
                Some(false) => ("no", "fails"),
                None => ("", "untested"),
            };
            let (text, because) = (escape(&claim.text), escape(&claim.because));
            let _ = writeln!(page, "<li><b class=\"{class}\">{holds}</b> {text}: {because}</li>");
        }
        page += "</ul>\n";
        self.notes.iter().for_each(|note| _ = writeln!(page, "<p>{}</p>", escape(note)));
        if self.partial {
            page += "<p class=\"no\">Stopped early, results are partial</p>\n";
        }
        page += "<h2>Figures</h2>\n<table>\n<tr><th>case<th><th>published<th>ours<th>+-<th>samples<th></tr>\n";
        for figure in &self.figures {
            let _ = writeln!(
                page,
                "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}</tr>",
                escape(&figure.case),
                escape(figure.metric),
                figure.published.as_ref().map_or_else(String::new, |published| short(published.value)),
                short(figure.ours),
                figure.sd.map_or_else(String::new, short),
                figure.samples,
                escape(figure.unit)
            );
        }
        let _ = writeln!(page, "</table>\n<p><small>{}</small></p>\n</html>", escape(&self.setup.to_string()));
        page
    }
}
