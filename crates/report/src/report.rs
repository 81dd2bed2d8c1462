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
    /// The text for people in place of rows, notes and facts.
    pub text: Option<String>,
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
            text: None,
        }
    }

    /// All that stands beside the rows, in a line: `seed 0, configuration 8d5c0b9e4a1f2c37`.
    pub fn facts(&self) -> String {
        let mut facts = format!("seed {}, configuration {}", self.seed, self.config);
        for (key, value) in &self.fields {
            facts.push_str(&format!(", {key} {}", value.plain()));
        }
        facts
    }

    /// All that stands beside the rows as JSON: the report without its rows.
    pub fn facts_json(&self) -> Result<String> {
        json(&Facts(self))
    }

    /// The report in `format`, ready to print. A text table ends with the facts beside the rows; CSV has none of them, so
    /// that every reader takes its first line for the names of the columns.
    pub fn render(&self, format: OutputFormat) -> Result<String> {
        match format {
            OutputFormat::Table => {
                if let Some(text) = &self.text {
                    return Ok(text.clone());
                }
                let notes: String = self.notes.iter().map(|note| format!("{note}\n")).collect();
                let closing = self.closing.iter().map(|line| format!("{line}\n"));
                let closing: String = closing.collect();
                let (table, facts) = (self.table.to_text(&self.shown), self.facts());
                Ok(format!("{table}{notes}{facts}\n{closing}"))
            }
            OutputFormat::Csv => Ok(self.table.with(&self.marks()).to_csv()),
            OutputFormat::Json => json(self),
        }
    }

    /// The facts that every row must carry: a reader of rows alone would take a part of them for all.
    fn marks(&self) -> Vec<(&'static str, Value)> {
        let is_whole = !self.fields.iter().any(|(key, _)| *key == MARKS[0]);
        let marks = self.fields.iter().filter(|(key, _)| MARKS.contains(key) && !is_whole);
        marks.cloned().collect()
    }

    fn frame<M: SerializeMap>(&self, fields: &mut M) -> Result<(), M::Error> {
        fields.serialize_entry("seed", &self.seed)?;
        fields.serialize_entry("config", &self.config)?;
        for (key, value) in &self.fields {
            fields.serialize_entry(key, value)?;
        }
        for (key, table) in &self.lists {
            fields.serialize_entry(key, table)?;
        }
        Ok(())
    }
}

/// The facts that say that a run was interrupted, and how far it came.
const MARKS: [&str; 3] = ["interrupted", "completed", "planned"];

fn json(of: &impl Serialize) -> Result<String> {
    serde_json::to_string_pretty(of)
        .map(|json| json + "\n")
        .map_err(|error| Error::with_source(ErrorKind::InvalidInput, "cannot write JSON", error))
}

/// A report without its rows.
struct Facts<'a>(&'a Report);

impl Serialize for Facts<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut fields = to.serialize_map(None)?;
        self.0.frame(&mut fields)?;
        fields.end()
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut fields = to.serialize_map(None)?;
        self.frame(&mut fields)?;
        fields.serialize_entry("rows", &self.table)?;
        fields.end()
    }
}
