//! A whole output: what was run, and the rows.
use crate::table::Table;
use crate::value::Value;
use serde::ser::{Serialize, SerializeMap, Serializer};
use tantalum_base::{Error, ErrorKind, Result};

/// How a report is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutputFormat {
    /// Aligned text.
    Table,
    /// Comma-separated values.
    Csv,
    /// JSON, two blanks a level.
    Json,
}

impl OutputFormat {
    /// Parses `--format`; a refusal lists the names.
    pub fn parse(text: &str) -> Result<OutputFormat> {
        match &*text.to_ascii_lowercase() {
            "table" => Ok(OutputFormat::Table),
            "csv" => Ok(OutputFormat::Csv),
            "json" => Ok(OutputFormat::Json),
            _ => Err(Error::new(
                ErrorKind::InvalidInput,
                format!("{text:?} is not an output format; accepted: table, csv, json"),
            )),
        }
    }
}

/// The output of one run: `{"seed", "config", ..., "rows"}`.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// The seed of the run.
    pub seed: u64,
    /// The hash of its configuration, see [`crate::config_hash()`].
    pub config: String,
    /// More fields beside the rows, in this order.
    pub fields: Vec<(&'static str, Value)>,
    /// More lists of objects beside the rows, in JSON alone.
    pub lists: Vec<(&'static str, Table)>,
    /// The rows.
    pub table: Table,
    /// Sentences for people, after the rows of the text.
    pub notes: Vec<String>,
    /// What it all comes to, for people: the last line of the text.
    pub closing: Option<String>,
    /// Keys of the columns that people are shown as text, in this order; all of them where empty.
    pub shown: Vec<&'static str>,
}

impl Report {
    /// A report without further fields.
    pub fn new(seed: u64, config: String, table: Table) -> Report {
        Report {
            seed,
            config,
            fields: Vec::new(),
            lists: Vec::new(),
            table,
            notes: Vec::new(),
            closing: None,
            shown: Vec::new(),
        }
    }

    /// The report in `format`, ready to print. A text table ends with the seed and the
    /// configuration; CSV starts with them in a `#` line.
    pub fn render(&self, format: OutputFormat) -> Result<String> {
        let mut fields = format!("seed {}, configuration {}", self.seed, self.config);
        for (key, value) in &self.fields {
            fields.push_str(&format!(", {key} {}", value.plain()));
        }
        match format {
            OutputFormat::Table => {
                let notes: String = self.notes.iter().map(|note| format!("{note}\n")).collect();
                let closing = self.closing.iter().map(|line| format!("{line}\n"));
                let closing: String = closing.collect();
                Ok(format!("{}{notes}{fields}\n{closing}", self.table.to_text(&self.shown)))
            }
            OutputFormat::Csv => Ok(format!("# {fields}\n{}", self.table.to_csv())),
            OutputFormat::Json => {
                serde_json::to_string_pretty(self).map(|json| json + "\n").map_err(|error| {
                    Error::with_source(ErrorKind::InvalidInput, "cannot write JSON", error)
                })
            }
        }
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut fields = to.serialize_map(None)?;
        fields.serialize_entry("seed", &self.seed)?;
        fields.serialize_entry("config", &self.config)?;
        for (key, value) in &self.fields {
            fields.serialize_entry(key, value)?;
        }
        for (key, table) in &self.lists {
            fields.serialize_entry(key, table)?;
        }
        fields.serialize_entry("rows", &self.table)?;
        fields.end()
    }
}
