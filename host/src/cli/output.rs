//! Results on stdout, as text or JSON.

use std::io::{self, Write as _};

use serde::{Deserialize, Serialize};

/// How results are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Output {
    // Lines for people.
    #[default]
    Text,
    // One JSON value a line.
    Json,
}

impl Output {
    /// Writes a result: `text` for people, `value` for programs.
    pub(super) fn write(self, value: &impl Serialize, text: impl FnOnce() -> String) -> anyhow::Result<()> {
        let line = match self {
            Self::Text => text(),
            Self::Json => serde_json::to_string(value)?,
        };
        match writeln!(io::stdout(), "{line}") {
            // Who reads no further (`| head`) has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => Ok(written?),
        }
    }
}

/// Tells what went wrong, with its causes.
pub(super) fn complain(error: &anyhow::Error) {
    // If stderr is gone there is nobody to tell.
    let _ = writeln!(io::stderr(), "error: {}", told(error));
}

/// The error and its causes, each cause once: some errors tell theirs themselves.
fn told(error: &anyhow::Error) -> String {
    error
        .chain()
        .map(ToString::to_string)
        .reduce(|told, cause| if told.ends_with(&cause) { told } else { format!("{told}: {cause}") })
        .unwrap_or_default()
}

/// Lines up columns: the first row is the heading. Cells have no line ends.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    lined_up(rows).join("\n")
}

/// The same, a line for each row.
pub(super) fn lined_up(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let length = |cell: &String| cell.chars().count();
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(length).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        // A width for `format!` is bounded by std, and panics beyond that.
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell}{}", " ".repeat(width.saturating_sub(length(cell)))));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot listen: {source}")]
        struct Listen {
            source: io::Error,
        }
        let inner = Listen { source: io::Error::other("address in use") };
        let error = anyhow::Error::new(inner).context("the host does not start");
        assert_eq!(told(&error), "the host does not start: cannot listen: address in use");
        assert_eq!(told(&anyhow::anyhow!("b").context("a")), "a: b");
    }

    #[test]
    fn columns_line_up() {
        let row = |cells: &[&str]| cells.iter().map(ToString::to_string).collect::<Vec<_>>();
        let rows = [row(&["NAME", "N"]), row(&["orders", "12"]), row(&["a"])];
        assert_eq!(table(&rows), "NAME    N\norders  12\na");
        let wide = [row(&["a", "b"]), row(&[&"x".repeat(70_000), "c"])];
        assert_eq!(table(&wide).lines().map(str::len).collect::<Vec<_>>(), [70_003, 70_003]);
    }
}
