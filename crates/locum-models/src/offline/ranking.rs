//! Which places tell most about a task. A place is good if many keywords, and rare ones, lie close together, if it
//! defines what is asked for, and if its file is named for it and written by hand.

use super::evidence::{Evidence, Found};
use super::keywords::{Keyword, Kind, Variant};
use super::matching::Subject;
use super::shape::{self, Shape};

/// Lines over which keywords count as close together.
const WINDOW_LINES: u32 = 12;
/// Places that are kept.
const PLACES_MAX: usize = 40;
/// A place that scores less than this share of the best one is not worth naming.
const SHARE_MIN: f64 = 0.2;
/// What each further place in the same file counts, so that one file does not take all.
const SAME_FILE_FACTOR: f64 = 0.8;
/// What a text that was handed on counts beside a file.
const HANDED_ON_FACTOR: f64 = 0.8;

/// A place that tells something.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Place {
    /// The file.
    pub(super) path: String,
    /// The line that tells most.
    pub(super) line: u32,
    /// The first line with a keyword.
    pub(super) first: u32,
    /// The last line with a keyword.
    pub(super) last: u32,
    score: f64,
}

impl Place {
    /// A line, without a judgement of it.
    pub(super) fn at(path: &str, line: u32) -> Self {
        Self { path: path.to_owned(), line, first: line, last: line, score: 0.0 }
    }

    /// Its score as a share of the best one's, which is the first.
    pub(super) fn share(&self, places: &[Self]) -> f64 {
        places.first().map_or(0.0, |best| self.score / best.score)
    }
}

/// A line with at least one keyword.
struct Hit {
    line: u32,
    /// For each keyword, how much its being here says.
    values: Vec<f64>,
    /// All of that together, with what each keyword counts.
    total: f64,
}

/// The places, best first. The same evidence always gives the same order.
pub(super) fn rank(evidence: &Evidence, keywords: &[Keyword]) -> Vec<Place> {
    let asks_for_tests = keywords.iter().any(|keyword| keyword.shown.starts_with("test"));
    let files = evidence.files.iter().map(|(path, found)| {
        let tests_from = if asks_for_tests { u32::MAX } else { found.tests_from };
        (path.as_str(), found, hits(path, found, tests_from, keywords))
    });
    let files: Vec<(&str, &Found, Vec<Hit>)> = files.collect();
    let worths = worths(keywords, &files);
    let mut places = Vec::new();
    for (path, found, mut hits) in files {
        for hit in &mut hits {
            hit.total = hit.values.iter().zip(&worths).map(|(value, worth)| value * worth).sum();
        }
        let file = FileScore::new(path, keywords, &worths, &hits);
        let factor = match Evidence::is_handed_on(path) {
            true => HANDED_ON_FACTOR,
            false => shape::file_factor(path, asks_for_tests),
        };
        let mut own: Vec<Place> = windows(&hits).map(|window| file.place(window)).collect();
        if own.is_empty() && found.is_named {
            own.extend(file.by_name());
        }
        places.extend(spread(own).into_iter().map(|place| Place { score: place.score * factor, ..place }));
    }
    places.sort_by(|a, b| {
        b.score.total_cmp(&a.score).then_with(|| a.path.cmp(&b.path)).then_with(|| a.line.cmp(&b.line))
    });
    let least = places.first().map_or(0.0, |best| best.score * SHARE_MIN);
    places.retain(|place| place.score >= least && place.score > 0.0);
    places.truncate(PLACES_MAX);
    places
}

fn hits(path: &str, found: &Found, tests_from: u32, keywords: &[Keyword]) -> Vec<Hit> {
    let lines = found.lines.iter().filter_map(|(line, text)| {
        let mut values = values(path, text, keywords);
        if *line > tests_from {
            values.iter_mut().for_each(|value| *value *= shape::TEST_FACTOR);
        }
        values.iter().any(|value| *value > 0.0).then_some(Hit { line: *line, values, total: 0.0 })
    });
    lines.collect()
}

fn values(path: &str, text: &str, keywords: &[Keyword]) -> Vec<f64> {
    let subject = Subject::new(text);
    let strengths: Vec<f64> = keywords.iter().map(|keyword| subject.strength(keyword)).collect();
    if strengths.iter().all(|strength| *strength == 0.0) {
        return strengths;
    }
    let is_one_thing = keywords.iter().filter(|keyword| keyword.stands_alone() && keyword.weight >= 0.5).count() == 1;
    let shape = Shape::of(path, text);
    let name = match shape {
        Shape::Definition(name) | Shape::Field(name) => Some(Subject::new(name)),
        Shape::Heading | Shape::Import | Shape::Assertion | Shape::Comment | Shape::Other => None,
    };
    let factor = |keyword: &Keyword| {
        let named = name.as_ref().map_or(0.0, |name| name.strength(keyword));
        let is_name = name.as_ref().is_some_and(|name| name.is(keyword));
        match shape {
            Shape::Definition(name) if shape::is_sentence(name) => 0.8,
            // What is asked about one thing alone is best told where it is defined. Of several, a type is the context:
            // what it does is told where they meet.
            Shape::Definition(_) if is_name && is_one_thing => 3.0,
            Shape::Definition(_) if named > 0.0 && keyword.is_type() && !is_one_thing => 1.0,
            Shape::Definition(_) if is_name => 1.8,
            Shape::Definition(_) if named > 0.0 => 1.7,
            Shape::Field(_) if named > 0.0 => 1.3,
            Shape::Heading => 1.6,
            Shape::Import => 0.3,
            Shape::Assertion => 0.5,
            Shape::Comment => 1.0,
            Shape::Definition(_) | Shape::Field(_) | Shape::Other => 0.9,
        }
    };
    strengths.iter().zip(keywords).map(|(strength, keyword)| strength * factor(keyword)).collect()
}

/// What each keyword counts: its weight, and more the rarer it is among what was found.
fn worths(keywords: &[Keyword], files: &[(&str, &Found, Vec<Hit>)]) -> Vec<f64> {
    let lines: usize = files.iter().map(|(_, _, hits)| hits.len()).sum();
    let worth = |(index, keyword): (usize, &Keyword)| {
        let with = |hits: &Vec<Hit>| hits.iter().filter(|hit| hit.values[index] > 0.0).count();
        let count: usize = files.iter().map(|(_, _, hits)| with(hits)).sum();
        keyword.weight * (1.0 + (lines as f64 + 1.0) / (count as f64 + 1.0)).ln()
    };
    keywords.iter().enumerate().map(worth).collect()
}

/// Hits that lie close together, once for each hit that they may begin with.
fn windows(hits: &[Hit]) -> impl Iterator<Item = &[Hit]> {
    (0..hits.len()).map(|start| {
        let reach = hits[start].line.saturating_add(WINDOW_LINES);
        let length = hits[start..].iter().take_while(|hit| hit.line <= reach).count();
        &hits[start..start + length]
    })
}

/// What all places of one file share.
struct FileScore<'a> {
    path: &'a str,
    keywords: &'a [Keyword],
    worths: &'a [f64],
    /// What the file's name says of each keyword.
    in_name: Vec<f64>,
    /// The best that its lines say of each keyword.
    in_file: Vec<f64>,
}

impl<'a> FileScore<'a> {
    fn new(path: &'a str, keywords: &'a [Keyword], worths: &'a [f64], hits: &[Hit]) -> Self {
        let (folders, file) = path.rsplit_once('/').unwrap_or(("", path));
        let stem = file.split_once('.').map_or(file, |(stem, _)| if stem.is_empty() { file } else { stem });
        let (whole, folders, stem) = (path.to_lowercase(), Subject::new(folders), Subject::new(stem));
        let in_name = |keyword: &Keyword| match keyword.kind {
            Kind::Path => f64::from(u8::from(keyword.variants.iter().any(|path| is_path(&whole, path)))) * 6.0,
            Kind::Name | Kind::Word | Kind::Literal | Kind::Part | Kind::Beginning => {
                stem.strength(keyword).max(folders.strength(keyword) * 0.5)
            }
        };
        Self {
            path,
            keywords,
            worths,
            in_name: keywords.iter().map(in_name).collect(),
            in_file: best(keywords.len(), hits),
        }
    }

    fn place(&self, window: &[Hit]) -> Place {
        let here = best(self.keywords.len(), window);
        let mut near = 0.0;
        let mut around = 0.0;
        let mut covered = 0.0;
        let mut whole = 0.0;
        for (index, keyword) in self.keywords.iter().enumerate() {
            let worth = self.worths[index];
            near += worth * here[index];
            // A name is often said once, and what belongs to it follows without it.
            let nearby = self.in_file[index].min(1.0) * if keyword.is_name() { 0.5 } else { 0.15 };
            if here[index] == 0.0 {
                around += worth * nearby;
            }
            around += worth * self.in_name[index] * 0.4;
            let share = here[index].max(nearby).max(self.in_name[index] * 0.5).min(1.0);
            covered += keyword.weight * share;
            whole += keyword.weight;
        }
        let coverage = if whole > 0.0 { covered / whole } else { 0.0 };
        let by_total = |a: &&Hit, b: &&Hit| a.total.total_cmp(&b.total).then(b.line.cmp(&a.line));
        let line = window.iter().max_by(by_total).map_or(1, |hit| hit.line);
        Place {
            path: self.path.to_owned(),
            line,
            first: window.first().map_or(line, |hit| hit.line),
            last: window.last().map_or(line, |hit| hit.line),
            score: near * (0.3 + 0.7 * coverage) + around,
        }
    }

    /// The beginning of a file that has nothing but its name.
    fn by_name(&self) -> Option<Place> {
        let score: f64 = self.in_name.iter().zip(self.worths).map(|(name, worth)| name * worth * 0.4).sum();
        (score > 0.0).then(|| Place { score, ..Place::at(self.path, 1) })
    }
}

fn is_path(path: &str, asked: &Variant) -> bool {
    path.strip_suffix(asked.text.as_str()).is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

fn best(keywords: usize, hits: &[Hit]) -> Vec<f64> {
    let mut best = vec![0.0; keywords];
    for hit in hits {
        for (most, value) in best.iter_mut().zip(&hit.values) {
            *most = f64::max(*most, *value);
        }
    }
    best
}

/// The best places of one file that do not overlap.
fn spread(mut places: Vec<Place>) -> Vec<Place> {
    places.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.line.cmp(&b.line)));
    let mut kept: Vec<Place> = Vec::new();
    for place in places {
        let overlaps = |other: &Place| {
            place.line.abs_diff(other.line) <= WINDOW_LINES || (place.first <= other.last && other.first <= place.last)
        };
        if kept.len() >= PLACES_MAX || kept.iter().any(overlaps) {
            continue;
        }
        let factor = SAME_FILE_FACTOR.powi(i32::try_from(kept.len()).unwrap_or(i32::MAX));
        kept.push(Place { score: place.score * factor, ..place });
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::super::keywords::extract;
    use super::*;

    fn evidence(lines: &[&str]) -> Evidence {
        let mut evidence = Evidence::default();
        for line in lines {
            let mut fields = line.splitn(3, ':');
            let path = fields.next().unwrap().to_owned();
            let found: &mut Found = evidence.files.entry(path).or_default();
            match fields.next() {
                Some(number) => {
                    found.lines.insert(number.parse().unwrap(), fields.next().unwrap().to_owned());
                }
                None => found.is_named = true,
            }
        }
        evidence
    }

    #[test]
    fn the_more_telling_place_comes_first() {
        for (task, lines, first) in [
            ("parcel price", &["a.rs:1:parcel", "b.rs:1:price", "c.rs:1:parcel", "c.rs:9:price"][..], "c.rs:1"),
            ("parcel price", &["a.rs:1:parcel", "a.rs:90:price", "c.rs:1:parcel", "c.rs:9:price"], "c.rs:1"),
            ("parcel", &["a.rs:1:let x = parcel;", "b.rs:7:struct Parcel {"], "b.rs:7"),
            ("parcel", &["a.rs:1:use parcel::A;", "b.rs:7:let x = parcel;"], "b.rs:7"),
            ("parcel", &["a.md:1:about a parcel", "b.md:7:## Parcel"], "b.md:7"),
            ("parcel", &["a.rs:1:let x = parcel;", "parcel.rs:7:let x = parcel;"], "parcel.rs:7"),
            ("parcel", &["Cargo.lock:1:parcel", "b.rs:7:parcel"], "b.rs:7"),
            ("parcel", &["tests/a.rs:1:parcel", "src/b.rs:7:parcel"], "src/b.rs:7"),
            ("tests of parcels", &["tests/a.rs:1:parcel test", "src/b.rs:7:parcel"], "tests/a.rs:1"),
            ("parcel weight", &["a.rs:1:parcel", "a.rs:50:parcel", "a.rs:90:weight", "b.rs:7:parcel"], "a.rs:90"),
            ("src/b.rs", &["a.rs:1:src/b.rs", "src/b.rs"], "src/b.rs:1"),
        ] {
            let places = rank(&evidence(lines), &extract(task));
            let names: Vec<String> = places.iter().map(|place| format!("{}:{}", place.path, place.line)).collect();
            assert_eq!(names.first().map(String::as_str), Some(first), "{task}: {names:?}");
        }
    }

    #[test]
    fn places_do_not_overlap_and_nothing_is_found_in_nothing() {
        let lines: Vec<String> = (1..=100).map(|line| format!("a.rs:{line}:parcel")).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let places = rank(&evidence(&lines), &extract("parcel"));
        let mut ranges: Vec<(u32, u32)> = places.iter().map(|place| (place.first, place.last)).collect();
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0), "{ranges:?}");
        assert_eq!(rank(&Evidence::default(), &extract("parcel")), []);
        assert_eq!(rank(&evidence(&["a.rs:1:parcel"]), &[]), []);
    }
}
