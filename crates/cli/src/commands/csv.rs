//! Formats lines of CSV (RFC 4180).

/// Returns a cell, in quotes if it needs them.
pub(crate) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// Formats a number; empty for `None`.
pub(crate) fn figure(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// Formats a header and rows of cells that need no quotes any more.
pub(crate) fn lines(header: &str, rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let rows = rows.into_iter().map(|cells| cells.join(",") + "\n");
    [format!("{header}\n")].into_iter().chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let row = ["a", "b,c", "d \"e\""].map(quoted).to_vec();
        assert_eq!(lines("x,y,z", [row]), "x,y,z\na,\"b,c\",\"d \"\"e\"\"\"\n");
        assert_eq!((figure(None), figure(Some(0.5))), (String::new(), "0.5".to_owned()));
    }
}
