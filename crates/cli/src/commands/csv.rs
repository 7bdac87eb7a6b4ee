//! Formats lines of CSV (RFC 4180).
use serde_json::Value;

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

/// Rows of one kind, as JSON objects.
pub(crate) struct CsvRows {
    /// Name of the kind, the first cell of each line of [`kinds`].
    pub(crate) kind: &'static str,
    /// Columns: a path into the objects, such as `counters.rx_bytes`. The column is called like the last key; with
    /// `NAME=PATH` it has another name.
    pub(crate) columns: &'static [&'static str],
    /// The objects.
    pub(crate) rows: Vec<Value>,
}

impl CsvRows {
    /// Returns the objects' lines, without a column for the kind.
    pub(crate) fn table(&self) -> String {
        let header: Vec<&str> = self.columns.iter().copied().map(name).collect();
        lines(&header.join(","), self.rows.iter().map(|row| self.cells(row)))
    }

    fn cells(&self, row: &Value) -> Vec<String> {
        let path = |column: &'static str| column.split_once('=').map_or(column, |(_, path)| path);
        self.columns.iter().map(|column| cell(at(row, path(column)))).collect()
    }
}

/// Formats rows of several kinds in one table: the kind is the first column, and a column that a kind lacks is empty.
pub(crate) fn kinds(all: &[CsvRows]) -> String {
    let mut header: Vec<&str> = Vec::new();
    for name in all.iter().flat_map(|rows| rows.columns.iter().copied().map(name)) {
        if !header.contains(&name) {
            header.push(name);
        }
    }
    let line = |rows: &CsvRows, row: &Value| {
        let cells = rows.cells(row);
        let place = |wanted: &str| rows.columns.iter().position(|column| name(column) == wanted);
        let found = |wanted: &&str| place(wanted).map_or_else(String::new, |place| cells[place].clone());
        [rows.kind.to_owned()].into_iter().chain(header.iter().map(found)).collect()
    };
    let rows = all.iter().flat_map(|rows| rows.rows.iter().map(move |row| (rows, row)));
    lines(&format!("kind,{}", header.join(",")), rows.map(|(rows, row)| line(rows, row)))
}

/// Returns the name of a column.
fn name(column: &'static str) -> &'static str {
    column.split_once('=').map_or_else(|| column.rsplit('.').next().unwrap_or(column), |(name, _)| name)
}

/// Returns the value at a path with points between its keys; null if there is none.
fn at<'a>(row: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(row, |value, key| value.get(key).unwrap_or(&Value::Null))
}

/// Formats a JSON value as a cell: null is empty, a list of plain values has spaces between them.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => quoted(text),
        Value::Array(list) if !list.iter().any(|one| one.is_array() || one.is_object()) => {
            let cells = list.iter().map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned));
            quoted(&cells.collect::<Vec<_>>().join(" "))
        }
        other => quoted(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_of_several_kinds_share_a_table() {
        let port = json!({"port": 1, "name": "a,b", "counters": {"rx_bytes": 7}, "queues": [1, 2], "speed": null});
        let ports = CsvRows {
            kind: "port",
            columns: &["port", "name", "counters.rx_bytes", "queues", "speed_bps=speed"],
            rows: vec![port],
        };
        assert_eq!(ports.table(), "port,name,rx_bytes,queues,speed_bps\n1,\"a,b\",7,1 2,\n");
        let drops =
            CsvRows { kind: "drop", columns: &["name=why", "packets"], rows: vec![json!({"why": "x", "packets": 3})] };
        let expected = "kind,port,name,rx_bytes,queues,speed_bps,packets\nport,1,\"a,b\",7,1 2,,\ndrop,,x,,,,3\n";
        assert_eq!(kinds(&[ports, drops]), expected);
    }

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let row = ["a", "b,c", "d \"e\""].map(quoted).to_vec();
        assert_eq!(lines("x,y,z", [row]), "x,y,z\na,\"b,c\",\"d \"\"e\"\"\"\n");
        assert_eq!((figure(None), figure(Some(0.5))), (String::new(), "0.5".to_owned()));
    }
}
