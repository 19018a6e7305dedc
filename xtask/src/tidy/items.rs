//! Where an item of Rust code ends, by counting brackets. Works on code whose comments and literals are
//! blanked; a file that compiles has balanced brackets, so nothing cleverer is needed.

/// The shape of one item.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ItemEnd {
    /// Where its body in braces begins, or where it ends if it has none.
    pub(crate) body: usize,
    /// The offset just behind it.
    pub(crate) offset: usize,
}

/// Finds the end of the item that begins at `start`, with any attributes before it: the first semicolon
/// outside all brackets, or the brace that closes the first brace outside all brackets.
pub(crate) fn item_end(code: &str, start: usize) -> ItemEnd {
    let mut depth = 0_usize;
    let mut body = None;
    for (offset, character) in code[start..].char_indices() {
        let offset = start + offset;
        match character {
            '{' if depth == 0 => {
                body = Some(offset);
                depth = 1;
            }
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => {
                // A bracket that the item did not open closes what the item stands in.
                let Some(outer) = depth.checked_sub(1) else {
                    return ItemEnd { body: offset, offset };
                };
                depth = outer;
                if let (0, Some(body)) = (depth, body) {
                    let offset = offset + 1;
                    return ItemEnd { body, offset };
                }
            }
            ';' if depth == 0 => {
                return ItemEnd { body: offset, offset: offset + 1 };
            }
            _ => {}
        }
    }
    ItemEnd { body: body.unwrap_or(code.len()), offset: code.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(code: &str) -> (&str, &str) {
        let end = item_end(code, 0);
        (&code[..end.body], &code[end.body..end.offset])
    }

    #[test]
    fn a_body_ends_with_its_own_brace() {
        assert_eq!(parts("fn f() { { } } fn g() {}"), ("fn f() ", "{ { } }"));
    }

    #[test]
    fn a_semicolon_inside_brackets_does_not_end_an_item() {
        assert_eq!(parts("fn f(x: [u8; 2]) -> [u8; 4] { x }"), ("fn f(x: [u8; 2]) -> [u8; 4] ", "{ x }"));
        assert_eq!(parts("fn f(); fn g() {}"), ("fn f()", ";"));
    }

    #[test]
    fn attributes_belong_to_the_item() {
        assert_eq!(
            parts("#[cfg(test)] #[path = x] mod tests { } rest"),
            ("#[cfg(test)] #[path = x] mod tests ", "{ }")
        );
    }

    #[test]
    fn an_item_ends_where_its_surroundings_do() {
        assert_eq!(parts("#[cfg(test)] field: u8 } rest"), ("#[cfg(test)] field: u8 ", ""));
    }
}
