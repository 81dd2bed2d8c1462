//! What `tantalum repro` comes to: the papers' shapes, checked, and how many of their numbers are met.
use super::repro_page::rounded;
use tantalum_report::{Report, Section, Table, Value, number, schema};
use tantalum_repro::{Experiment, Row, Summary};

/// Of all experiments that were run.
pub struct Outcome {
    total: Summary,
    /// A line an experiment.
    lines: Vec<String>,
    shapes: Table,
}

impl Outcome {
    /// Of no experiment.
    pub fn new() -> Outcome {
        let shapes = Table::new(schema::REPRO_SHAPES);
        Outcome { total: Summary::default(), lines: Vec::new(), shapes }
    }

    /// Adds what the rows of one experiment come to.
    pub fn add(&mut self, experiment: &Experiment, rows: &[Row]) {
        let summary = Summary::of(rows, experiment.shapes);
        self.lines.push(format!("{}: {summary}", experiment.name));
        self.total += summary;
        for shape in experiment.shapes {
            let Some((numbers, holds)) = shape.check(rows) else { continue };
            let numbers: Vec<String> =
                numbers.iter().map(|measured| rounded(*measured, 3).plain()).collect();
            self.shapes.push_named([
                ("experiment", experiment.name.into()),
                ("figure", shape.figure.into()),
                ("shape", shape.claim.into()),
                ("expected", shape.expected.to_string().into()),
                ("numbers", numbers.join(", ").into()),
                ("holds", holds.into()),
            ]);
        }
    }

    /// Puts all of it into `report`: fields, a list, and lines for people.
    pub fn tell(&self, report: &mut Report) {
        let count = |count: usize| Value::Count(count as u64);
        let Summary { figures, within, calibrated, shapes, hold } = self.total;
        report.fields.extend([
            ("figures", count(figures)),
            ("figures_within", count(within)),
            ("figures_calibrated", count(calibrated)),
            ("shapes_checked", count(shapes)),
            ("shapes_hold", count(hold)),
        ]);
        report.lists.push(("shapes", self.shapes.clone()));
        report.notes.extend(self.shapes.rows().iter().map(|row| line(row)));
        if calibrated > 0 {
            report.notes.push(format!(
                "{} more figures set a parameter of a model, so that agreement shows nothing",
                number::thousands(calibrated as u64)
            ));
        }
        if self.lines.len() > 1 {
            report.notes.extend(self.lines.iter().cloned());
        }
        report.closing = Some(self.total.to_string());
    }

    /// The shapes as a part of the page, where there are any.
    pub fn section(&self) -> Option<Section> {
        let any = !self.shapes.rows().is_empty();
        any.then(|| Section {
            paragraphs: vec![format!("{}.", self.total)],
            ..Section::new("What the papers say beside the numbers", self.shapes.clone())
        })
    }
}

/// A shape for people: "holds    Table 1: ... (expected above 10; measured 64.4)".
fn line(row: &[Value]) -> String {
    let [_, figure, claim, expected, numbers, holds] = row else {
        unreachable!("a shape has six cells")
    };
    let word = if *holds == Value::Bool(true) { "holds  " } else { "DIFFERS" };
    let (figure, claim) = (figure.plain(), claim.plain());
    format!(
        "{word}  {figure}: {claim} (expected {}; measured {})",
        expected.plain(),
        numbers.plain()
    )
}
