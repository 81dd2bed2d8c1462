//! The winner of a comparison, in a sentence.
use tantalum_report::{Table, Value};

/// The rules by which rows are compared.
pub struct Contest {
    /// Each combination of values of these columns is a separate contest.
    pub places: &'static [&'static str],
    /// Columns that name a contestant.
    pub names: &'static [&'static str],
    /// The column in which the smallest value wins.
    pub measure: &'static str,
    /// The achievement of the winner, as a verb and its object.
    pub wins: &'static str,
    /// The plural name of the places.
    pub where_: &'static str,
    /// Contestants whose name begins with this word take no part.
    pub bound: Option<&'static str>,
}

/// A sentence about the rows of `table`: the winner, and the number of places that it wins. Equal contestants win
/// together.
pub fn standing(table: &Table, contest: &Contest) -> String {
    let index = |key: &&str| table.index(key);
    let (Some(measure), rows) = (table.index(contest.measure), table.rows()) else {
        return String::new();
    };
    let column = &table.columns()[measure];
    let places: Vec<usize> = contest.places.iter().filter_map(index).collect();
    let all: Vec<usize> = contest.names.iter().filter_map(index).collect();
    let differs = |at: &usize| rows.iter().any(|row| row[*at] != rows[0][*at]);
    let mut names: Vec<usize> = all.iter().copied().filter(differs).collect();
    if names.is_empty() {
        names = all;
    }
    let words = |row: &[Value], cells: &[usize]| {
        let words: Vec<String> = cells.iter().map(|at| row[*at].plain()).collect();
        words.join(" on ")
    };
    let takes_part = |row: &&Vec<Value>| {
        let name = words(row, &names);
        amount(&row[measure]).is_some()
            && contest.bound.is_none_or(|bound| name.split(' ').next() != Some(bound))
    };
    let part: Vec<&Vec<Value>> = rows.iter().filter(takes_part).collect();
    let mut contests: Vec<String> = Vec::new();
    let mut contestants: Vec<(String, usize)> = Vec::new();
    for row in &part {
        let (place, name) = (words(row, &places), words(row, &names));
        if !contests.contains(&place) {
            contests.push(place);
        }
        if !contestants.iter().any(|(known, _)| *known == name) {
            contestants.push((name, 0));
        }
    }
    for place in &contests {
        let here = || part.iter().filter(|row| words(row, &places) == *place);
        let least = here().filter_map(|row| amount(&row[measure])).fold(f64::INFINITY, f64::min);
        for row in here().filter(|row| amount(&row[measure]) == Some(least)) {
            let name = words(row, &names);
            contestants.iter_mut().filter(|(known, _)| *known == name).for_each(|one| one.1 += 1);
        }
    }
    let shown = |row: &Vec<Value>| column.show(&row[measure]);
    match (&contestants[..], &part[..]) {
        ([], _) => String::new(),
        ([(name, _)], [row]) => format!("{name}: {} {}", column.heading, shown(row)),
        ([(name, _)], [first, .., last]) => {
            format!("{name}: {} from {} to {}", column.heading, shown(first), shown(last))
        }
        _ if contests.len() == 1 => single(&part, &names, measure, contest, &words, &shown),
        _ => ranked(contestants, contests.len(), contest),
    }
}

/// One contest: the winner, and how far the last is behind.
fn single(
    part: &[&Vec<Value>],
    names: &[usize],
    measure: usize,
    contest: &Contest,
    words: &dyn Fn(&[Value], &[usize]) -> String,
    shown: &dyn Fn(&Vec<Value>) -> String,
) -> String {
    let mut sorted = part.to_vec();
    sorted.sort_by(|a, b| {
        let of = |row: &Vec<Value>| amount(&row[measure]).unwrap_or(f64::INFINITY);
        of(a).total_cmp(&of(b))
    });
    let (best, worst) = (sorted[0], sorted[sorted.len() - 1]);
    format!(
        "{} {}, {}; {} most, {}",
        words(best, names),
        contest.wins,
        shown(best),
        words(worst, names),
        shown(worst)
    )
}

/// Several contests: the number of them that each of the two best contestants wins.
fn ranked(mut contestants: Vec<(String, usize)>, contests: usize, contest: &Contest) -> String {
    contestants.sort_by_key(|(_, won)| std::cmp::Reverse(*won));
    let (first, won) = &contestants[0];
    let mut told = format!("{first} {} at {won} of {contests} {}", contest.wins, contest.where_);
    if let Some((second, won)) = contestants.get(1).filter(|(_, won)| *won > 0) {
        told.push_str(&format!(", {second} at {won}"));
    }
    told
}

fn amount(value: &Value) -> Option<f64> {
    match value {
        Value::Count(count) => Some(*count as f64),
        Value::Real(real) if real.is_finite() => Some(*real),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantalum_report::{Column, Style};

    const CONTEST: Contest = Contest {
        places: &["pages"],
        names: &["policy"],
        measure: "misses",
        wins: "misses least",
        where_: "sizes",
        bound: Some("opt"),
    };

    fn told(rows: &[(&str, u64, Option<u64>)]) -> String {
        let mut table = Table::new(&[
            Column::new("policy", "policy", Style::Text),
            Column::new("pages", "pages", Style::Count),
            Column::new("misses", "misses", Style::Count),
        ]);
        for (policy, pages, misses) in rows {
            table.push(vec![(*policy).into(), (*pages).into(), (*misses).into()]);
        }
        standing(&table, &CONTEST)
    }

    #[test]
    fn whoever_wins_most_is_named_first_and_a_bound_wins_nothing() {
        let rows = [
            ("lru", 1, Some(9)),
            ("lru", 2, Some(5)),
            ("lru", 3, Some(3)),
            ("arc", 1, Some(8)),
            ("arc", 2, Some(5)),
            ("arc", 3, Some(2)),
            ("opt", 1, Some(1)),
        ];
        assert_eq!(told(&rows), "arc misses least at 3 of 3 sizes, lru at 1");
    }

    #[test]
    fn one_place_says_by_how_much_and_one_contestant_what_it_did() {
        let rows = [("lru", 1, Some(9000)), ("arc", 1, Some(8)), ("fifo", 1, None)];
        assert_eq!(told(&rows), "arc misses least, 8; lru most, 9,000");
        assert_eq!(told(&rows[..1]), "lru: misses 9,000");
        assert_eq!(told(&[rows[0], ("lru", 2, Some(7))]), "lru: misses from 9,000 to 7");
        assert_eq!(told(&rows[2..]), "");
        assert_eq!(told(&[]), "");
    }
}
