//! What the scan finds, on snippets.
use super::*;

fn lines(files: &[(&str, &str)]) -> Vec<String> {
    let read = |wanted: &str| {
        let found = files.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| anyhow::anyhow!("no file {wanted}"))
    };
    let mut scan = Scan::new(&read);
    scan.module_file("a", "lib.rs", "").expect("every file is there");
    scan.into_lines()
}

fn check(text: &str, expected: &[&str]) {
    assert_eq!(lines(&[("lib.rs", text)]), expected, "{text}");
}

#[test]
fn items_have_a_kind_and_a_path() {
    check(
        "pub fn f<T: A>(\n    x: &T,\n    y: [u8; 2],\n) -> B<T> {\n    c()\n}",
        &["fn a::f<T: A>(x: &T, y: [u8; 2]) -> B<T>"],
    );
    check("pub async fn f() {}\nfn g() {}\npub(crate) fn h() {}", &["async fn a::f()"]);
    check("pub const fn f() {}\npub const C: &str = \"x; {\";", &["const a::C: &str", "const fn a::f()"]);
    check(
        "pub type D = Box<dyn FnOnce(&V) -> R<(), E> + Send>;",
        &["type a::D = Box<dyn FnOnce(&V) -> R<(), E> + Send>"],
    );
    check("pub struct I(pub u64);\nstruct P { pub x: u8 }", &["struct a::I(pub u64)"]);
}

#[test]
fn fields_variants_and_functions_of_traits_follow_their_type() {
    check(
        "#[derive(A, B)]\npub struct S<'a> {\n    /// Doc.\n    pub x: M<K, V>,\n    y: u8,\n}",
        &["struct a::S<'a>", "field a::S::x: M<K, V>"],
    );
    check(
        "pub enum E {\n    #[error(\"x, {0}\")]\n    A(#[from] X, u8),\n    B { c: u8, d: F<G, H> },\n    C,\n}",
        &["enum a::E", "variant a::E::A(#[from] X, u8)", "variant a::E::B { c: u8, d: F<G, H> }", "variant a::E::C"],
    );
    check(
        "pub trait T: Send {\n    fn f(&self) -> u8;\n    fn g(&self) {\n        h()\n    }\n}",
        &["trait a::T: Send", "fn a::T::f(&self) -> u8", "fn a::T::g(&self)"],
    );
}

#[test]
fn public_functions_of_a_type_stand_with_it_wherever_they_are_written() {
    let files = [
        ("lib.rs", "pub mod desk;"),
        (
            "desk.rs",
            "mod cancel;\npub struct Desk;\nimpl Desk { pub fn a(&self) {} fn b() {} }\nimpl X for Desk { fn c() {} }",
        ),
        ("desk/cancel.rs", "use super::Desk;\nimpl<T> Desk<T> { pub async fn d(&self) {} pub(crate) fn e() {} }"),
    ];
    assert_eq!(
        lines(&files),
        [
            "mod a::desk",
            "struct a::desk::Desk",
            "impl X for a::desk::Desk",
            "fn a::desk::Desk::a(&self)",
            "async fn a::desk::Desk::d(&self)"
        ]
    );
}

#[test]
fn a_trait_of_a_public_type_counts_unless_something_in_it_is_private() {
    check(
        "pub struct S;\nstruct P;\nimpl From<u8> for S {}\nimpl From<P> for S {}\nimpl<'a> T<S> for P {}\nimpl<T: X> Y for S {}",
        &["struct a::S", "impl From<u8> for a::S", "impl<T: X> Y for a::S"],
    );
}

#[test]
fn of_two_types_with_one_name_the_nearer_one_is_meant() {
    let text =
        "pub mod x { pub struct S; impl S { pub fn f() {} } }\npub mod y { pub struct S; impl S { pub fn g() {} } }";
    let expected = ["mod a::x", "struct a::x::S", "fn a::x::S::f()", "mod a::y", "struct a::y::S", "fn a::y::S::g()"];
    check(text, &expected);
}

#[test]
fn a_private_module_is_not_part_of_a_path_and_uses_are_written_out() {
    let files = [
        ("lib.rs", "mod engine;\npub use engine::Executor;\npub use core::{self as c, x::{Y, Z}};\npub use models;"),
        ("engine.rs", "pub enum Executor { Here }"),
    ];
    assert_eq!(
        lines(&files),
        [
            "enum a::Executor",
            "variant a::Executor::Here",
            "use a::Y = core::x::Y",
            "use a::Z = core::x::Z",
            "use a::c = core",
            "use a::models = models",
        ]
    );
}

#[test]
fn what_only_tests_compile_is_left_out() {
    check(
        "#[cfg(test)]\npub mod tests { pub fn f() {} }\n#[cfg(test)]\npub mod more;\n#[must_use]\npub fn g() {}",
        &["fn a::g()"],
    );
    check("macro_rules! m { ($a:ident) => { pub fn $a() {} } }\nm!(b);\npub fn g() {}", &["fn a::g()"]);
    check("//! pub fn no() {}\n/* pub fn no() {} */\nconst A: &str = \"pub fn no() {}\";", &[]);
}
