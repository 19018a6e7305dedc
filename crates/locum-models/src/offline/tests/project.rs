//! A small project in memory, and the simplest `grep`, `find`, `read` and `ls` over it.

use globset::GlobBuilder;
use grep_matcher::Matcher as _;
use grep_regex::RegexMatcherBuilder;
use locum_core::transcript::ToolOutput;
use serde_json::Value;

const FILES: &[(&str, &str)] = &[
    (
        "README.md",
        "# Courier\n\nCourier plans the delivery of parcels: routes, prices and retries.\n\n## Install\n\nRun \
         `cargo install courier` and set `COURIER_TOKEN`.\n\n## Settings\n\nSettings are read from \
         `courier.toml`.\n",
    ),
    ("CHANGELOG.md", "# 0.3\n\n- The retry backoff is computed with jitter.\n- Parcels can be cancelled.\n"),
    (
        "src/retry.rs",
        "//! Trying again what failed.\n\nuse std::time::Duration;\n\n/// No delay is longer.\nconst DELAY_MAX: u64 = \
         60;\n\n/// How long to wait before the next attempt: twice as long each time.\npub fn \
         backoff_delay(failures: u32) -> Duration {\n    let seconds = 1_u64 << failures.min(6);\n    \
         Duration::from_secs(seconds.min(DELAY_MAX))\n}\n\nmod tests {\n    fn retry_backoff_is_computed() {\n        \
         assert!(backoff_delay(9) <= backoff_delay(10));\n    }\n}\n",
    ),
    (
        "src/parcel.rs",
        "//! What is delivered.\n\n/// The heaviest parcel that a courier takes, in grams.\npub const \
         MAX_PARCEL_WEIGHT: u32 = 30_000;\n\npub struct Parcel {\n    pub weight: u32,\n    pub address: \
         String,\n}\n\n/// Takes a parcel back before it is delivered.\npub fn cancel_parcel(parcel: Parcel) -> \
         Result<(), &'static str> {\n    if parcel.weight > MAX_PARCEL_WEIGHT {\n        return Err(\"parcel is too \
         heavy\");\n    }\n    if parcel.address.is_empty() {\n        return Err(\"address is incomplete\");\n    \
         }\n    Ok(())\n}\n",
    ),
    (
        "src/route.rs",
        "//! Ways from one address to another.\n\n/// No road leads there.\npub const ROUTE_NOT_FOUND: u32 = \
         404;\n\n#[derive(Default)]\npub struct RouteFinder {\n    without_tolls: bool,\n    hops_max: \
         usize,\n}\n\nimpl RouteFinder {\n    /// Finds a route.\n    pub fn find(&self, from: &str, to: &str) -> \
         Result<Vec<String>, u32> {\n        if from == to {\n            return Err(ROUTE_NOT_FOUND);\n        }\n        \
         Ok(vec![from.to_owned(), to.to_owned()])\n    }\n\n    /// Whether to avoid roads with tolls.\n    pub fn \
         avoid_tolls(mut self, yes: bool) -> Self {\n        self.without_tolls = yes;\n        self\n    }\n}\n",
    ),
    (
        "src/settings.rs",
        "//! What a user may change.\n\nuse std::path::Path;\n\n/// Reads the settings file once, at startup.\npub fn \
         load_settings(path: &Path) -> String {\n    \
         std::fs::read_to_string(path).unwrap_or_default()\n}\n\n/// The key of the service.\npub fn token() -> \
         Option<String> {\n    std::env::var(\"COURIER_TOKEN\").ok()\n}\n",
    ),
    (
        "src/main.rs",
        "mod parcel;\nmod retry;\nmod route;\nmod settings;\n\nuse route::RouteFinder;\n\nfn main() {\n    let \
         settings = settings::load_settings(\"courier.toml\".as_ref());\n    let finder = \
         RouteFinder::default().avoid_tolls(settings.contains(\"avoid_tolls\"));\n    println!(\"{:?}\", \
         finder.find(\"a\", \"b\"));\n}\n",
    ),
    (
        "scripts/price.py",
        "\"\"\"Prices of deliveries.\"\"\"\n\n\ndef price(weight, distance):\n    return round_price(weight * 0.01 + \
         distance * 0.2)\n\n\ndef round_price(amount):\n    \"\"\"Rounds up to the next ten cents.\"\"\"\n    return \
         int(amount * 10 + 0.999) / 10\n",
    ),
    (
        "tests/delivery.rs",
        "fn tolls_are_avoided() {\n    let finder = RouteFinder::default().avoid_tolls(true);\n    \
         assert!(finder.find(\"a\", \"b\").is_ok());\n    assert_eq!(MAX_PARCEL_WEIGHT, 30_000);\n    // retry \
         backoff\n}\n",
    ),
    ("Cargo.toml", "[package]\nname = \"courier\"\nversion = \"0.3.0\"\n"),
];

/// Files, sorted by path.
pub(super) struct Project {
    files: Vec<(&'static str, &'static str)>,
}

impl Project {
    pub(super) fn sample() -> Self {
        let mut files = FILES.to_vec();
        files.sort_unstable();
        Self { files }
    }

    /// Where a text stands for the first time in a file that begins with it, as `path:line`.
    pub(super) fn place_of(&self, text: &str) -> String {
        let mut places = self.files.iter().flat_map(|(path, content)| {
            let lines = (1..).zip(content.lines());
            lines.filter(|(_, line)| line.contains(text)).map(move |(number, _): (u32, _)| format!("{path}:{number}"))
        });
        places.next().expect("the text is in the project")
    }

    pub(super) fn run(&self, tool: &str, input: &Value) -> ToolOutput {
        let text = |field: &str| input.get(field).and_then(Value::as_str).unwrap_or_default();
        match tool {
            "grep" => self.grep(text("pattern"), text("path")),
            "find" => self.find(text("pattern")),
            "read" => self.read(text("path"), input),
            "ls" => ToolOutput::ok("CHANGELOG.md\nCargo.toml\nREADME.md\nscripts/\nsrc/\ntests/\n"),
            _ => ToolOutput::failed("no such tool"),
        }
    }

    fn grep(&self, pattern: &str, path: &str) -> ToolOutput {
        let pattern = RegexMatcherBuilder::new().case_insensitive(true).build(pattern).expect("every pattern is valid");
        let mut output = String::new();
        for (name, content) in self.files.iter().filter(|(name, _)| path.is_empty() || *name == path) {
            let is_match = |line: &str| pattern.is_match(line.as_bytes()).expect("matching does not fail");
            for (number, line) in (1_u32..).zip(content.lines()).filter(|(_, line)| is_match(line)) {
                output.push_str(&format!("{name}:{number}:{line}\n"));
            }
        }
        ToolOutput::ok(output)
    }

    fn find(&self, pattern: &str) -> ToolOutput {
        let glob = GlobBuilder::new(pattern).literal_separator(true).build().expect("every glob is valid");
        let glob = glob.compile_matcher();
        let paths = self.files.iter().map(|(path, _)| *path).filter(|path| glob.is_match(path));
        ToolOutput::ok(paths.map(|path| format!("{path}\n")).collect::<String>())
    }

    fn read(&self, path: &str, input: &Value) -> ToolOutput {
        let number = |field: &str, usual: u64| input.get(field).and_then(Value::as_u64).unwrap_or(usual);
        let Some((_, content)) = self.files.iter().find(|(name, _)| *name == path) else {
            return ToolOutput::failed("no such file");
        };
        let lines = (1..).zip(content.lines()).filter(|(line, _)| *line >= number("offset", 1));
        let lines = lines.take(usize::try_from(number("limit", 2000)).unwrap());
        ToolOutput::ok(lines.map(|(line, text)| format!("{line}\t{text}\n")).collect::<String>())
    }
}
