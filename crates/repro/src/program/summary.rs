//! The summary of `tantalum repro`: the papers' shapes, checked, and how many of their numbers are met.
use super::page::rounded;
use tantalum_report::{Report, Section, Table, Value, number, schema};
use tantalum_repro::{Experiment, Row, Scale, Summary, Surprise, surprises};

/// The outcome of all experiments that ran.
pub struct Outcome {
    scale: Scale,
    /// Whether shapes are checked against the list of those that are known not to hold.
    quick: bool,
    total: Summary,
    /// One line per experiment.
    lines: Vec<String>,
    shapes: Table,
    /// With `quick`: results that differ from the known ones.
    surprises: Table,
}

impl Outcome {
    /// The outcome of no experiment yet at `scale`; with `quick`, which is the small scale, shapes will be checked.
    pub fn new(scale: Scale, quick: bool) -> Outcome {
        Outcome {
            scale,
            quick,
            total: Summary::default(),
            lines: Vec::new(),
            shapes: Table::new(schema::REPRO_SHAPES),
            surprises: Table::new(schema::REPRO_SURPRISES),
        }
    }

    /// Number of shapes that differ from the known results.
    pub fn surprises(&self) -> usize {
        self.surprises.rows().len()
    }

    /// Adds the result of one experiment, which is checked if the rows are complete.
    pub fn add(&mut self, experiment: &Experiment, rows: &[Row], is_whole: bool) {
        let Experiment { name, shapes, not_met_small, .. } = experiment;
        let summary = Summary::of(rows, shapes);
        // The list is about the small scale, and says nothing about another.
        let is_known = |claim| match self.scale {
            Scale::Small => Value::Bool(not_met_small.contains(&claim)),
            Scale::Full | Scale::Paper => Value::Null,
        };
        self.lines.push(format!("{name}: {summary}"));
        self.total += summary;
        for shape in *shapes {
            let Some((numbers, holds)) = shape.check(rows) else { continue };
            let to = |digits| -> Vec<Value> {
                numbers.iter().map(|number| rounded(*number, digits)).collect()
            };
            let (relation, least, most) = shape.expected.parts();
            self.shapes.push_named([
                ("experiment", (*name).into()),
                ("figure", shape.figure.into()),
                ("shape", shape.claim.into()),
                ("expected", shape.expected.to_string().into()),
                ("numbers", Value::List(to(3)).plain().into()),
                ("holds", holds.into()),
                ("known_to_differ", is_known(shape.claim)),
                ("measured", Value::List(to(6))),
                ("relation", relation.into()),
                ("least", least.into()),
                ("most", most.into()),
            ]);
        }
        if self.quick && is_whole {
            for Surprise { figure, claim, why } in surprises(shapes, rows, not_met_small) {
                self.surprises.push_named([
                    ("experiment", (*name).into()),
                    ("figure", figure.into()),
                    ("shape", claim.into()),
                    ("why", why.into()),
                ]);
            }
        }
    }

    /// Puts everything into `report`: fields, a list, and lines for people.
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
        if self.quick {
            self.tell_surprises(report);
        }
    }

    /// Reports differences from the known results, also on the standard error for continuous integration.
    fn tell_surprises(&self, report: &mut Report) {
        report.fields.push(("shapes_surprising", Value::Count(self.surprises() as u64)));
        report.lists.push(("surprises", self.surprises.clone()));
        for row in self.surprises.rows() {
            let cells: Vec<String> = row.iter().map(Value::plain).collect();
            let [experiment, figure, claim, why] = &cells[..] else {
                unreachable!("a surprise has four cells")
            };
            let line = format!("{experiment}, {figure}: {claim}: {why}");
            eprintln!("tantalum: {line}");
            report.notes.push(line);
        }
        let verdict = match self.surprises() {
            0 => "as known at the small scale".to_owned(),
            some => format!("{some} NOT as known at the small scale"),
        };
        report.closing = Some(format!("{}: {verdict}", self.total));
    }

    /// The beginning of the page: the scale, and how many shapes hold there.
    pub fn paragraphs(&self) -> Vec<String> {
        let mut paragraphs = Vec::new();
        if self.scale == Scale::Small {
            let told = "Scale small: small devices and short loads, so that values may be far from the papers'.";
            paragraphs.push(told.to_owned());
        }
        let Summary { shapes, hold, .. } = self.total;
        if shapes > 0 {
            let known = match self.shapes.rows().iter().filter(|row| is_known(row)).count() {
                0 => String::new(),
                known => format!("; known not to hold at this scale: {known} of the others"),
            };
            paragraphs.push(format!("{hold} of {shapes} shapes hold{known}."));
        }
        paragraphs
    }

    /// The shapes as a section of the page, if there are any.
    pub fn section(&self) -> Option<Section> {
        let any = !self.shapes.rows().is_empty();
        let mut paragraphs = vec![format!("{}.", self.total)];
        if self.quick {
            paragraphs.push(match self.surprises() {
                0 => "All is as known at the small scale: what is not known to differ there holds."
                    .to_owned(),
                some => format!("Not as known at the small scale: {some} of these."),
            });
        }
        any.then(|| Section {
            paragraphs,
            ..Section::new(
                "What the papers say beside the numbers",
                self.shapes.without(&schema::REPRO_SHAPES_OF_PROGRAMS),
            )
        })
    }
}

/// Whether a shape does not hold, and is known not to.
fn is_known(row: &[Value]) -> bool {
    matches!(row, [_, _, _, _, _, Value::Bool(false), Value::Bool(true), ..])
}

/// A shape for people: "holds    Table 1: ... (expected above 10; measured 64.4)"; a known difference is not in capitals.
fn line(row: &[Value]) -> String {
    let [_, figure, claim, expected, numbers, holds, ..] = row else {
        unreachable!("a shape has these cells")
    };
    let word = match holds {
        Value::Bool(true) => "holds  ",
        _ if is_known(row) => "differs",
        _ => "DIFFERS",
    };
    format!(
        "{word}  {}: {} (expected {}; measured {})",
        figure.plain(),
        claim.plain(),
        expected.plain(),
        numbers.plain()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_report::{OutputFormat, config_hash};
    use tantalum_repro::{Relation, Rows, Shape};

    const SHAPES: &[Shape] = &[
        Shape { claim: "it is fast", ..of("Figure 1", Relation::Above(10.0)) },
        Shape { claim: "it is cheap", ..of("Figure 2", Relation::Below(10.0)) },
    ];

    const fn of(figure: &'static str, expected: Relation) -> Shape {
        let measure = |rows: &Rows<'_>| Some(vec![rows.of("Figure 1", "a case")?]);
        Shape { figure, claim: "", expected, measure }
    }

    /// The outcome of one number, 5, with known differences.
    fn outcome((scale, quick): (Scale, bool), not_met_small: &'static [&'static str]) -> Outcome {
        let run = |_, _, _: tantalum_repro::Progress, _: &mut Vec<Row>| Ok(());
        let (shapes, full_seconds) = (SHAPES, 1);
        let experiment =
            Experiment { name: "one", title: "One", run, shapes, not_met_small, full_seconds };
        let mut outcome = Outcome::new(scale, quick);
        outcome.add(
            &experiment,
            &[Row::new("Figure 1", "a case", ("rate", "IOPS"), None, 5.0)],
            true,
        );
        outcome
    }

    /// Surprises of the outcome, and its report.
    fn told(scale: (Scale, bool), not_met_small: &'static [&'static str]) -> (usize, String) {
        let outcome = outcome(scale, not_met_small);
        let mut report = Report::new(1, config_hash(["".to_owned()]), Table::new(schema::REPRO));
        outcome.tell(&mut report);
        (outcome.surprises(), report.render(OutputFormat::Table).unwrap())
    }

    #[test]
    fn a_check_names_what_is_not_as_known() {
        let (surprises, text) = told((Scale::Small, true), &["it is fast"]);
        assert_eq!(surprises, 0);
        let line = "\ndiffers  Figure 1: it is fast (expected above 10; measured 5)\n";
        assert!(text.contains(line) && text.contains("\nholds    Figure 2"), "{text}");
        assert!(text.ends_with("1 of 2 shapes hold: as known at the small scale\n"), "{text}");

        let (surprises, text) = told((Scale::Small, true), &["it is cheap"]);
        assert_eq!(surprises, 2);
        assert!(text.contains("\nDIFFERS  Figure 1: it is fast"), "{text}");
        assert!(
            text.contains("\none, Figure 1: it is fast: does not hold: expected above 10, "),
            "{text}"
        );
        assert!(
            text.contains("\none, Figure 2: it is cheap: holds, though it is listed"),
            "{text}"
        );
        assert!(text.ends_with("hold: 2 NOT as known at the small scale\n"), "{text}");

        let (surprises, text) = told((Scale::Small, false), &["it is cheap"]);
        assert_eq!(surprises, 0);
        assert!(text.ends_with("1 of 2 shapes hold\n"), "{text}");
    }

    /// The list is of the small scale, whether it was asked for as a check or not.
    #[test]
    fn a_known_difference_is_told_at_the_small_scale_alone() {
        let (_, text) = told((Scale::Small, false), &["it is fast"]);
        assert!(text.contains("\ndiffers  Figure 1: it is fast"), "{text}");
        let (_, text) = told((Scale::Full, false), &["it is fast"]);
        assert!(text.contains("\nDIFFERS  Figure 1: it is fast"), "{text}");
    }

    /// Beside the words for people.
    #[test]
    fn programs_get_numbers() {
        let mut report = Report::new(1, config_hash(["".to_owned()]), Table::new(schema::REPRO));
        outcome((Scale::Small, true), &["it is fast"]).tell(&mut report);
        let json = report.render(OutputFormat::Json).unwrap();
        let lines: String = json.lines().map(str::trim).collect();
        let fast = "\"measured\": [5.0],\"relation\": \"above\",\"least\": 10.0,\"most\": null";
        assert!(lines.contains(fast) && lines.contains("\"numbers\": \"5\""), "{json}");
    }

    #[test]
    fn the_page_begins_with_how_many_shapes_hold() {
        let paragraphs =
            |scale, not_met: &'static [&'static str]| outcome((scale, false), not_met).paragraphs();
        let [scale, told] = &paragraphs(Scale::Small, &["it is fast"])[..] else {
            panic!("two paragraphs")
        };
        assert!(scale.starts_with("Scale small") && !scale.contains("hold"), "{scale}");
        let known = "known not to hold at this scale: 1 of the others.";
        assert_eq!(*told, format!("1 of 2 shapes hold; {known}"));
        // One that holds is not among those that do not, even if it is listed.
        assert_eq!(paragraphs(Scale::Small, &["it is cheap"])[1], "1 of 2 shapes hold.");
        assert_eq!(paragraphs(Scale::Full, &["it is fast"]), ["1 of 2 shapes hold."]);
        assert_eq!(Outcome::new(Scale::Paper, false).paragraphs(), Vec::<String>::new());
    }
}
