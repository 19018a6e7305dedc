//! SPDX licence expressions: names joined by `AND`, `OR` and parentheses, and the older `MIT/Apache-2.0`
//! in which the slash means `OR`.

use std::iter::Peekable;

use anyhow::{Result, bail};

/// A licence expression as a tree.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Expression {
    /// One licence, with its exception after ` WITH ` where it has one.
    Licence(String),
    /// All of them apply.
    All(Vec<Expression>),
    /// The user chooses one.
    Any(Vec<Expression>),
}

impl Expression {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let tokens = tokens(text);
        let mut tokens = tokens.iter().map(String::as_str).peekable();
        let expression = alternatives(&mut tokens)?;
        match tokens.next() {
            None => Ok(expression),
            Some(token) => bail!("{token} is not expected there"),
        }
    }

    /// Whether the terms can be met by accepting only the licences that `is_accepted` takes.
    pub(super) fn is_satisfied(&self, is_accepted: &dyn Fn(&str) -> bool) -> bool {
        match self {
            Self::Licence(id) => is_accepted(id),
            Self::All(parts) => parts.iter().all(|part| part.is_satisfied(is_accepted)),
            Self::Any(parts) => parts.iter().any(|part| part.is_satisfied(is_accepted)),
        }
    }
}

fn tokens(text: &str) -> Vec<String> {
    text.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ").split_whitespace().map(str::to_owned).collect()
}

/// `OR` binds weaker than `AND`, so alternatives are made of conjunctions.
fn alternatives<'a>(tokens: &mut Peekable<impl Iterator<Item = &'a str>>) -> Result<Expression> {
    let mut parts = vec![conjunction(tokens)?];
    while tokens.next_if_eq(&"OR").is_some() {
        parts.push(conjunction(tokens)?);
    }
    Ok(single_or(parts, Expression::Any))
}

fn conjunction<'a>(tokens: &mut Peekable<impl Iterator<Item = &'a str>>) -> Result<Expression> {
    let mut parts = vec![term(tokens)?];
    while tokens.next_if_eq(&"AND").is_some() {
        parts.push(term(tokens)?);
    }
    Ok(single_or(parts, Expression::All))
}

fn term<'a>(tokens: &mut Peekable<impl Iterator<Item = &'a str>>) -> Result<Expression> {
    match tokens.next() {
        Some("(") => {
            let expression = alternatives(tokens)?;
            if tokens.next_if_eq(&")").is_none() {
                bail!("a parenthesis is not closed");
            }
            Ok(expression)
        }
        Some(token @ (")" | "AND" | "OR" | "WITH")) => bail!("{token} is not expected there"),
        Some(id) => {
            if tokens.next_if_eq(&"WITH").is_none() {
                return Ok(Expression::Licence(id.to_owned()));
            }
            match tokens.next() {
                Some(exception) => Ok(Expression::Licence(format!("{id} WITH {exception}"))),
                None => bail!("an exception is missing after WITH"),
            }
        }
        None => bail!("a licence is missing at the end"),
    }
}

fn single_or(mut parts: Vec<Expression>, join: fn(Vec<Expression>) -> Expression) -> Expression {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            join(parts)
        }
        None => join(parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_satisfied_by(text: &str, accepted: &[&str]) -> bool {
        Expression::parse(text).expect("readable").is_satisfied(&|id| accepted.contains(&id))
    }

    #[test]
    fn a_choice_needs_one_and_a_conjunction_needs_all() {
        assert!(is_satisfied_by("A OR B", &["B"]));
        assert!(is_satisfied_by("A/B", &["A"]));
        assert!(is_satisfied_by("A / B", &["B"]));
        assert!(!is_satisfied_by("A OR B", &["C"]));
        assert!(is_satisfied_by("A AND B", &["A", "B"]));
        assert!(!is_satisfied_by("A AND B", &["A"]));
    }

    #[test]
    fn and_binds_stronger_than_or() {
        assert!(is_satisfied_by("A OR B AND C", &["A"]));
        assert!(!is_satisfied_by("A OR B AND C", &["C"]));
        assert!(!is_satisfied_by("(A OR B) AND C", &["A"]));
        assert!(is_satisfied_by("(A OR B) AND C", &["A", "C"]));
        assert!(is_satisfied_by("C AND ((A) OR B)", &["A", "C"]));
    }

    #[test]
    fn an_exception_is_part_of_its_licence() {
        assert!(is_satisfied_by("A WITH x OR B", &["A WITH x"]));
        assert!(!is_satisfied_by("A WITH x", &["A"]));
        assert!(!is_satisfied_by("A WITH x", &["x"]));
    }

    #[test]
    fn malformed_expressions_are_errors() {
        for (text, expected) in [
            ("", "a licence is missing at the end"),
            ("A OR", "a licence is missing at the end"),
            ("A B", "B is not expected there"),
            ("(A", "a parenthesis is not closed"),
            ("A)", ") is not expected there"),
            ("AND A", "AND is not expected there"),
            ("A WITH", "an exception is missing after WITH"),
        ] {
            let error = Expression::parse(text).expect_err(text);
            assert_eq!(error.to_string(), expected, "{text}");
        }
    }
}
