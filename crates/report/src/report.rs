//! A complete output: the facts of the run, and the rows.
use crate::table::Table;
use crate::value::Value;
use serde::ser::{Serialize, SerializeMap, Serializer};
use tantalum_base::spec::unknown_name;
use tantalum_base::{Error, ErrorKind, Result};

/// The format of a printed report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutputFormat {
    /// Aligned text.
    Table,
    /// Comma-separated values.
    Csv,
    /// JSON, indented by two blanks per level.
    Json,
}

impl OutputFormat {
    /// Parses `--format`; an unknown name is refused with the list of names.
    pub fn parse(text: &str) -> Result<OutputFormat> {
        match &*text.to_ascii_lowercase() {
            "table" => Ok(OutputFormat::Table),
            "csv" => Ok(OutputFormat::Csv),
            "json" => Ok(OutputFormat::Json),
            _ => Err(unknown_name(text, "an output format", &["table", "csv", "json"])),
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
    /// Further fields beside the rows, in this order.
    pub fields: Vec<(&'static str, Value)>,
    /// Further lists of objects beside the rows, only in JSON.
    pub lists: Vec<(&'static str, Table)>,
    /// The rows.
    pub table: Table,
    /// Sentences for people, after the rows of the text.
    pub notes: Vec<String>,
    /// The conclusion for people: the last line of the text.
    pub closing: Option<String>,
    /// Keys of the columns in the text table, in this order; if empty, all columns.
    pub shown: Vec<&'static str>,
    /// Text for people that replaces rows, notes and facts.
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

    /// All facts beside the rows, in a line: `seed 0, configuration 8d5c0b9e4a1f2c37`.
    pub fn facts(&self) -> String {
        let mut facts = format!("seed {}, configuration {}", self.seed, self.config);
        for (key, value) in &self.fields {
            facts.push_str(&format!(", {key} {}", value.plain()));
        }
        facts
    }

    /// All facts beside the rows, as JSON: the report without its rows.
    pub fn facts_json(&self) -> Result<String> {
        json(&Facts(self))
    }

    /// The report in `format`, ready to print. A text table ends with the facts beside the rows. CSV has none of them,
    /// as readers expect the names of the columns in its first line.
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

    /// The facts that every row must carry: otherwise a reader of the rows alone would take a part of them for all.
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

/// The facts that mark an interrupted run, and its progress.
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
