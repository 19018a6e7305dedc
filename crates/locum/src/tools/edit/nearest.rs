//! What a model is told about a text that is not there: where the file comes nearest to it.

use super::super::bounded;

/// Lines of the file that are shown.
const LINES_SHOWN_MAX: usize = 12;

/// Bytes of one of them.
const LINE_BYTES_MAX: usize = 300;

/// Lines that are compared: what is longer is searched with `grep`.
const LINES_COMPARED_MAX: usize = 50_000;

/// How alike two lines must be to be shown as near, of 100.
const LIKENESS_MIN: usize = 50;

/// Says that a text does not occur, and what the file has instead.
pub(super) fn explain(text: &[u8], old: &str) -> String {
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().take(LINES_COMPARED_MAX).collect();
    let wanted: Vec<&str> = old.lines().collect();
    let Some((start, likeness)) = nearest(&lines, &wanted) else {
        return "`old` does not occur in it; read the file again".to_owned();
    };
    let end = (start + wanted.len().clamp(1, LINES_SHOWN_MAX)).min(lines.len());
    let shown = lines[start..end]
        .iter()
        .enumerate()
        .map(|(index, line)| format!("{}\t{}", start + index + 1, bounded::cut(line.as_bytes(), LINE_BYTES_MAX)));
    let same =
        lines[start..end].iter().map(|line| line.trim()).eq(wanted.iter().take(end - start).map(|line| line.trim()));
    let why = if likeness == 100 && same { "only the white space differs" } else { "the nearest is" };
    format!("`old` does not occur in it; {why}:\n{}", shown.collect::<Vec<_>>().join("\n"))
}

/// The line where the text comes nearest, and how near its first line that says something is.
fn nearest(lines: &[&str], wanted: &[&str]) -> Option<(usize, usize)> {
    let (offset, first) = wanted.iter().enumerate().find(|(_, line)| !line.trim().is_empty())?;
    let score = |(index, line): (usize, &&str)| {
        let following =
            wanted[offset..].iter().zip(&lines[index..]).filter(|(left, right)| left.trim() == right.trim());
        (likeness(line.trim(), first.trim()), following.count(), usize::MAX - index)
    };
    let ((likeness, _, place), _) = lines.iter().enumerate().map(|line| (score(line), ())).max()?;
    let index = usize::MAX - place;
    (likeness >= LIKENESS_MIN).then(|| (index.saturating_sub(offset), likeness))
}

/// How much of two lines is the same at both ends, of 100.
fn likeness(left: &str, right: &str) -> usize {
    if left == right {
        return 100;
    }
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let most = left.len().max(right.len());
    let least = left.len().min(right.len());
    let begin = left.iter().zip(right).take_while(|(left, right)| left == right).count();
    let end = left.iter().rev().zip(right.iter().rev()).take_while(|(left, right)| left == right).count();
    // Never 100 for lines that differ.
    (begin + end.min(least - begin)) * 99 / most.max(1)
}
