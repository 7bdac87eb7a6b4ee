//! Writes a report as one HTML page of text, tables and drawings that loads no other resources.
use crate::figure::Figure;
use crate::text::escape;
use std::fmt::Write as _;

const STYLE: &str = ":root{color-scheme:light dark}\
    body{font:15px/1.5 system-ui,sans-serif;max-width:64em;margin:2em auto;padding:0 1em;color:#222;background:#fff}\
    h1{line-height:1.25}svg{display:block;width:100%;height:auto}figure{margin:1.5em 0}\
    .panels{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26em),1fr));gap:1.5em}\
    .answer{font-size:1.15em;border-left:4px solid #0072b2;margin:1em 0;padding:.2em .8em}\
    table{border-collapse:collapse;display:block;overflow-x:auto}\
    th{border-bottom:1px solid #999}td,th{padding:.15em .8em;text-align:right;vertical-align:top}.l{text-align:left}\
    .no{color:#c33;font-weight:600}.yes{font-weight:600}small,figcaption{color:#666}summary{cursor:pointer;font-weight:600}\
    @media(max-width:700px){body{margin:1em auto}td,th{padding:.15em .5em}}\
    @media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}.no{color:#f77}small,figcaption{color:#aaa}\
    .answer{border-color:#3d9fdc}}";

/// A page under construction: each element is appended.
#[derive(Debug, Clone)]
pub struct HtmlPage {
    title: String,
    body: String,
}

/// A table of a page.
#[derive(Debug, Clone, Default)]
pub struct HtmlTable {
    /// Headings of the columns.
    pub head: Vec<String>,
    /// Number of columns, from the left, that are text; the others are numbers.
    pub texts: usize,
    /// Rows of cells.
    pub rows: Vec<Vec<HtmlCell>>,
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HtmlCell {
    /// Text of the cell.
    pub text: String,
    /// True if the cell is marked as wrong.
    pub wrong: bool,
}

impl<T: Into<String>> From<T> for HtmlCell {
    fn from(text: T) -> HtmlCell {
        HtmlCell { text: text.into(), wrong: false }
    }
}

impl HtmlCell {
    /// Returns a cell marked as wrong.
    pub fn wrong(text: impl Into<String>) -> HtmlCell {
        HtmlCell { text: text.into(), wrong: true }
    }
}

impl HtmlPage {
    /// Creates an empty page with a title.
    pub fn new(title: &str) -> HtmlPage {
        HtmlPage { title: title.to_owned(), body: String::new() }
    }

    /// Appends the introduction of a page: what was asked of what, and the answer in a line.
    pub fn answer(&mut self, asked: &str, answer: &str) -> &mut HtmlPage {
        self.add(format_args!("<p class=\"asked\">{}</p>\n<p class=\"answer\">{}</p>", escape(asked), escape(answer)))
    }

    /// Appends a heading.
    pub fn heading(&mut self, text: &str) -> &mut HtmlPage {
        self.add(format_args!("<h2>{}</h2>", escape(text)))
    }

    /// Appends a paragraph.
    pub fn text(&mut self, text: &str) -> &mut HtmlPage {
        self.add(format_args!("<p>{}</p>", escape(text)))
    }

    /// Appends a paragraph marked as a warning.
    pub fn warning(&mut self, text: &str) -> &mut HtmlPage {
        self.add(format_args!("<p class=\"no\">{}</p>", escape(text)))
    }

    /// Appends a list of statements. Each item is a verdict word, whether it is marked as wrong, and the statement.
    pub fn list<'a>(&mut self, items: impl IntoIterator<Item = (&'a str, bool, String)>) -> &mut HtmlPage {
        self.add(format_args!("<ul>"));
        for (word, wrong, text) in items {
            let class = if wrong { "no" } else { "yes" };
            self.add(format_args!("<li><b class=\"{class}\">{}</b> {}</li>", escape(word), escape(&text)));
        }
        self.add(format_args!("</ul>"))
    }

    /// Appends a table.
    pub fn table(&mut self, table: &HtmlTable) -> &mut HtmlPage {
        let class = |at: usize| if at < table.texts { " class=\"l\"" } else { "" };
        self.add(format_args!("<table><tr>"));
        for (at, head) in table.head.iter().enumerate() {
            self.add(format_args!("<th{}>{}</th>", class(at), escape(head)));
        }
        self.add(format_args!("</tr>"));
        for row in &table.rows {
            self.add(format_args!("<tr>"));
            for (at, cell) in row.iter().enumerate() {
                let text = escape(&cell.text);
                let text = if cell.wrong { format!("<span class=\"no\">{text}</span>") } else { text };
                self.add(format_args!("<td{}>{text}</td>", class(at)));
            }
            self.add(format_args!("</tr>"));
        }
        self.add(format_args!("</table>"))
    }

    /// Appends a drawing, with a caption below if `caption` is not empty.
    pub fn figure(&mut self, figure: &Figure, caption: &str) -> &mut HtmlPage {
        let caption =
            if caption.is_empty() { String::new() } else { format!("<figcaption>{}</figcaption>", escape(caption)) };
        match &figure.parts()[..] {
            [one] => self.add(format_args!("<figure>{one}{caption}</figure>")),
            several => {
                let panels: String = several.iter().map(|part| format!("<div>{part}</div>")).collect();
                self.add(format_args!("<figure><div class=\"panels\">{panels}</div>{caption}</figure>"))
            }
        }
    }

    /// Appends a section that is collapsed at first; `fill` writes its content.
    pub fn details(&mut self, summary: &str, fill: impl FnOnce(&mut HtmlPage)) -> &mut HtmlPage {
        self.add(format_args!("<details><summary>{}</summary>", escape(summary)));
        fill(self);
        self.add(format_args!("</details>"))
    }

    /// Returns the whole page as HTML, with a footer that states the measuring equipment.
    pub fn finish(&self, measured_with: &str) -> String {
        let title = escape(&self.title);
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><meta name=\"viewport\" content=\"width=device-width\"/>\
             <title>{title}</title><style>{STYLE}</style></head>\n<body><h1>{title}</h1>\n{}<p><small>{}</small></p></body></html>\n",
            self.body,
            escape(measured_with)
        )
    }

    fn add(&mut self, markup: std::fmt::Arguments<'_>) -> &mut HtmlPage {
        let _ = writeln!(self.body, "{markup}");
        self
    }
}
