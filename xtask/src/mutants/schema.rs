//! Changes as branches: one program that contains all of them, each behind a switch.
//!
//! A change of `a + b` to `a - b` becomes `if mutant(7) { a - b } else { a + b }`, and a change of
//! the return value of a function becomes an early return. A `const fn` with changes becomes a
//! plain function, unless the compiler must evaluate it. The crate is thus built once for hundreds
//! of changes. Only one change is switched on at a time, so a branch contains the original text.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde_json::Value;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A change that `cargo mutants --list --json` names.
#[derive(Debug, Clone)]
pub(super) struct Change {
    /// The path relative to the root of the workspace.
    pub(super) file: String,
    /// The name for people, with file, line and column.
    pub(super) name: String,
    /// The name without the place in the file.
    pub(super) what: String,
    genre: String,
    replacement: String,
    pub(super) start: (usize, usize),
    end: (usize, usize),
    function: Option<(usize, usize)>,
}

impl Change {
    pub(super) fn read(entry: &Value) -> Option<Self> {
        let text = |key: &str| entry[key].as_str().map(str::to_owned);
        let name = text("name")?;
        let what = name.splitn(4, ':').nth(3)?.trim().to_owned();
        let line = |end: &str| number(&entry["function"]["span"][end]["line"]);
        Some(Self {
            file: text("file")?,
            what,
            name,
            genre: text("genre")?,
            replacement: text("replacement")?,
            start: place(&entry["span"]["start"])?,
            end: place(&entry["span"]["end"])?,
            function: line("start").zip(line("end")),
        })
    }

    /// Returns a hash that stays the same as long as the text of the function does, wherever it is.
    pub(super) fn stamp(&self, text: &str) -> String {
        use std::hash::{DefaultHasher, Hash, Hasher};

        let (first, last) = self.function.unwrap_or((self.start.0, self.end.0));
        let mut hasher = DefaultHasher::new();
        for line in text.lines().skip(first - 1).take(last + 1 - first) {
            line.hash(&mut hasher);
        }
        (self.start.0 - first, self.start.1).hash(&mut hasher);
        format!("{:016x} {} {}", hasher.finish(), self.file, self.what)
    }

    /// Returns the text with only this change.
    pub(super) fn alone(&self, text: &str) -> Option<String> {
        let range = offset(text, self.start)?..offset(text, self.end)?;
        Some(format!(
            "{}{}{}",
            &text[..range.start],
            self.replacement,
            &text[range.end..]
        ))
    }
}

fn number(value: &Value) -> Option<usize> {
    usize::try_from(value.as_u64()?).ok()
}

fn place(value: &Value) -> Option<(usize, usize)> {
    Some((number(&value["line"])?, number(&value["column"])?))
}

/// Returns the byte offset of a line and a column, both counted from one.
fn offset(text: &str, (line, column): (usize, usize)) -> Option<usize> {
    let mut start = 0;
    let mut lines = text.split_inclusive('\n');
    for _ in 1..line {
        start += lines.next()?.len();
    }
    let line = lines.next().unwrap_or_default();
    let place = line.char_indices().map(|(at, _)| at).nth(column - 1);
    Some(start + place.unwrap_or(line.len()))
}

/// A place to which one or more changes apply.
struct Site {
    range: Range<usize>,
    shape: Shape,
    /// The numbers of the changes, and the replacement of each.
    changes: Vec<(usize, String)>,
}

enum Shape {
    /// The beginning of a function's body: nothing is replaced.
    Return,
    Binary {
        left: Range<usize>,
        right: Range<usize>,
    },
    Unary {
        operand: Range<usize>,
    },
    Guard,
    /// The end of a match arm's pattern: an arm is deleted by a guard that never matches.
    Arm,
}

/// A file with its changes as branches.
pub(super) struct Branched {
    pub(super) text: String,
    /// The ranges of the text, each with the number of its change.
    pub(super) parts: Vec<(Range<usize>, usize)>,
    /// Changes that cannot be branches: in code that runs at compile time, or in a pattern.
    pub(super) alone: Vec<usize>,
    /// Changes that no compiler accepts, such as `||` between `let`s.
    pub(super) dead: Vec<usize>,
}

/// Inserts the changes, each with its number, into a file. Functions named in `constant` stay
/// `const fn`.
pub(super) fn branch(
    text: &str,
    changes: &[(usize, &Change)],
    constant: &BTreeSet<String>,
) -> Result<Branched, String> {
    let file = syn::parse_file(text).map_err(|error| error.to_string())?;
    let mut finder = Finder {
        constant: constant.clone(),
        ..Finder::default()
    };
    finder.visit_file(&file);
    let mut sites: Vec<Site> = Vec::new();
    let (mut alone, mut dead) = (Vec::new(), Vec::new());
    for (number, change) in changes {
        let Some((range, shape)) = finder.find(text, change) else {
            if finder.is_dead(text, change) {
                dead.push(*number);
            } else {
                alone.push(*number);
            }
            continue;
        };
        let mut put = (*number, change.replacement.clone());
        match sites.iter_mut().find(|site| site.range == range) {
            Some(site) => {
                // The guard is itself an operation: replace the whole of it.
                if let (Shape::Guard, Shape::Binary { left, right }) = (&site.shape, shape) {
                    put.1 = format!("{} {} {}", &text[left], put.1, &text[right]);
                }
                site.changes.push(put);
            }
            None => sites.push(Site {
                range,
                shape,
                changes: vec![put],
            }),
        }
    }
    // Enclosing sites come before those inside them.
    sites.sort_by_key(|site| (site.range.start, std::cmp::Reverse(site.range.end)));
    let text = finder.freed(text, &sites);
    let mut writer = Writer {
        text: &text,
        sites: &sites,
        out: String::with_capacity(text.len() * 2),
        parts: Vec::new(),
    };
    writer.write(0..text.len(), 0..sites.len());
    Ok(Branched {
        text: writer.out,
        parts: writer.parts,
        alone,
        dead,
    })
}

struct Writer<'a> {
    text: &'a str,
    sites: &'a [Site],
    out: String,
    parts: Vec<(Range<usize>, usize)>,
}

impl Writer<'_> {
    /// Writes a range of the text with the sites in it.
    fn write(&mut self, range: Range<usize>, sites: Range<usize>) {
        let mut at = range.start;
        let mut next = sites.start;
        while next < sites.end {
            let site = &self.sites[next];
            if site.range.start < at || site.range.end > range.end {
                next += 1;
                continue;
            }
            self.out.push_str(&self.text[at..site.range.start]);
            let within = (next + 1..sites.end)
                .take_while(|&one| self.sites[one].range.start < site.range.end)
                .count();
            self.site(next, next + 1..next + 1 + within);
            at = site.range.end;
            next += 1 + within;
        }
        self.out.push_str(&self.text[at..range.end]);
    }

    fn site(&mut self, number: usize, within: Range<usize>) {
        let sites = self.sites;
        let site = &sites[number];
        let text = self.text;
        if matches!(site.shape, Shape::Return) {
            for (change, value) in &site.changes {
                self.branch(*change, &format!("return {value};"));
            }
            return;
        }
        if matches!(site.shape, Shape::Arm) {
            for (change, _) in &site.changes {
                let start = self.out.len();
                self.out.push_str(&format!(" if !crate::mutant({change})"));
                self.parts.push((start..self.out.len(), *change));
            }
            return;
        }
        self.out.push('(');
        for (change, put) in &site.changes {
            let changed = match &site.shape {
                Shape::Binary { left, right } => {
                    format!("{} {put} {}", &text[left.clone()], &text[right.clone()])
                }
                Shape::Unary { operand } => format!("{put}{}", &text[operand.clone()]),
                Shape::Guard | Shape::Return | Shape::Arm => put.clone(),
            };
            self.branch(*change, &changed);
            self.out.push_str(" else ");
        }
        self.out.push_str("{ ");
        self.write(site.range.clone(), within);
        self.out.push_str(" })");
    }

    fn branch(&mut self, change: usize, put: &str) {
        let start = self.out.len();
        self.out
            .push_str(&format!("if crate::mutant({change}) {{ {put}"));
        self.parts.push((start..self.out.len(), change));
        self.out.push_str(" }");
    }
}

#[derive(Clone)]
struct BinaryOperator {
    whole: Range<usize>,
    left: Range<usize>,
    right: Range<usize>,
}

#[derive(Clone)]
struct UnaryOperator {
    whole: Range<usize>,
    operand: Range<usize>,
}

/// Operators, guards and bodies, by the place that a change names.
#[derive(Default)]
struct Finder {
    /// Binary operations, by the start of the operator.
    binaries: BTreeMap<usize, BinaryOperator>,
    unaries: BTreeMap<usize, UnaryOperator>,
    /// Places of `&&` between `let`s.
    chained: BTreeSet<usize>,
    guards: Vec<Range<usize>>,
    /// End of the pattern of each arm without a guard, by the start of the arm.
    arms: BTreeMap<usize, usize>,
    /// Bodies of functions that do not run at compile time and do not return `impl Trait`.
    bodies: Vec<Range<usize>>,
    in_const: usize,
    /// Names of functions that the compiler evaluates.
    constant: BTreeSet<String>,
    /// Functions that the compiler need not evaluate: their bodies, and the places of their
    /// `const`.
    free: Vec<(Range<usize>, Range<usize>)>,
}

impl Finder {
    fn find(&self, text: &str, change: &Change) -> Option<(Range<usize>, Shape)> {
        let start = offset(text, change.start)?;
        match change.genre.as_str() {
            "FnValue" => {
                let inside = |body: &&Range<usize>| body.contains(&start);
                self.bodies.iter().find(inside)?;
                Some((start..start, Shape::Return))
            }
            "BinaryOperator" => {
                let BinaryOperator { whole, left, right } = self.binaries.get(&start)?.clone();
                Some((whole, Shape::Binary { left, right }))
            }
            "UnaryOperator" => {
                let UnaryOperator { whole, operand } = self.unaries.get(&start)?.clone();
                Some((whole, Shape::Unary { operand }))
            }
            "MatchArmGuard" => {
                let found = self.guards.iter().find(|guard| guard.start == start)?;
                Some((found.clone(), Shape::Guard))
            }
            "MatchArm" => {
                let end = *self.arms.get(&start)?;
                Some((end..end, Shape::Arm))
            }
            _ => None,
        }
    }

    fn is_dead(&self, text: &str, change: &Change) -> bool {
        let start = offset(text, change.start);
        change.replacement == "||" && start.is_some_and(|start| self.chained.contains(&start))
    }

    /// Records a function. Returns `true` if it must stay a `const fn`.
    fn body(&mut self, signature: &syn::Signature, block: &syn::Block) -> bool {
        let is_const = signature.constness.is_some();
        let stays = is_const && self.constant.contains(&signature.ident.to_string());
        let body = block.span().byte_range();
        if is_const && !stays {
            let word = signature.constness.span().byte_range();
            self.free.push((body.clone(), word));
        }
        let opaque = match &signature.output {
            syn::ReturnType::Type(_, kind) => matches!(**kind, syn::Type::ImplTrait(_)),
            syn::ReturnType::Default => false,
        };
        if !stays && !opaque {
            self.bodies.push(body);
        }
        stays
    }

    /// Returns the text, with the same length, in which functions with changes are not `const`.
    fn freed(&self, text: &str, sites: &[Site]) -> String {
        let mut text = text.to_owned();
        for (body, word) in &self.free {
            if sites.iter().any(|site| body.contains(&site.range.start)) {
                text.replace_range(word.clone(), &" ".repeat(word.len()));
            }
        }
        text
    }

    fn within(&mut self, is_const: bool, visit: impl FnOnce(&mut Self)) {
        self.in_const += usize::from(is_const);
        visit(self);
        self.in_const -= usize::from(is_const);
    }
}

fn holds_let(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(both) => holds_let(&both.left) || holds_let(&both.right),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let is_const = self.body(&item.sig, &item.block);
        self.within(is_const, |this| visit::visit_item_fn(this, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        let is_const = self.body(&item.sig, &item.block);
        self.within(is_const, |this| visit::visit_impl_item_fn(this, item));
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.within(true, |this| visit::visit_item_const(this, item));
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.within(true, |this| visit::visit_impl_item_const(this, item));
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.within(true, |this| visit::visit_item_static(this, item));
    }

    fn visit_type_array(&mut self, array: &'ast syn::TypeArray) {
        self.within(true, |this| visit::visit_type_array(this, array));
    }

    fn visit_expr_repeat(&mut self, array: &'ast syn::ExprRepeat) {
        self.visit_expr(&array.expr);
        self.within(true, |this| this.visit_expr(&array.len));
    }

    fn visit_expr_binary(&mut self, both: &'ast syn::ExprBinary) {
        let start = both.op.span().byte_range().start;
        if holds_let(&both.left) || holds_let(&both.right) {
            self.chained.insert(start);
        } else if self.in_const == 0 {
            let binary = BinaryOperator {
                whole: both.span().byte_range(),
                left: both.left.span().byte_range(),
                right: both.right.span().byte_range(),
            };
            self.binaries.insert(start, binary);
        }
        visit::visit_expr_binary(self, both);
    }

    fn visit_expr_unary(&mut self, one: &'ast syn::ExprUnary) {
        if self.in_const == 0 {
            let unary = UnaryOperator {
                whole: one.span().byte_range(),
                operand: one.expr.span().byte_range(),
            };
            self.unaries.insert(one.op.span().byte_range().start, unary);
        }
        visit::visit_expr_unary(self, one);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if self.in_const == 0 && !matches!(arm.pat, syn::Pat::Guard(_)) {
            let end = arm.pat.span().byte_range().end;
            self.arms.insert(arm.span().byte_range().start, end);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_pat_guard(&mut self, guarded: &'ast syn::PatGuard) {
        if self.in_const == 0 {
            self.guards.push(guarded.guard.span().byte_range());
        }
        visit::visit_pat_guard(self, guarded);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "fn f(a: u8, b: u8) -> u8 {\n    if a > b && !(b == 3) { a } else { b }\n}\n";

    fn change(genre: &str, replacement: &str, column: usize, width: usize) -> Change {
        Change {
            file: "f.rs".to_owned(),
            name: String::new(),
            what: format!("replace with {replacement}"),
            genre: genre.to_owned(),
            replacement: replacement.to_owned(),
            start: (2, column),
            end: (2, column + width),
            function: Some((1, 3)),
        }
    }

    fn plain(text: &str, changes: &[(usize, &Change)]) -> Result<Branched, String> {
        branch(text, changes, &BTreeSet::new())
    }

    #[test]
    fn a_change_is_a_branch_and_those_inside_it_stay_as_they_were() {
        let and = change("BinaryOperator", "||", 14, 2);
        let not = change("UnaryOperator", "", 17, 1);
        let branched = plain(TEXT, &[(1, &and), (2, &not)]).expect("it is Rust");
        let expected = "if (if crate::mutant(1) { a > b || !(b == 3) } else { a > b && \
                        (if crate::mutant(2) { (b == 3) } else { !(b == 3) }) }) { a }";
        assert!(branched.text.contains(expected), "{}", branched.text);
        let (part, number) = branched.parts[1].clone();
        let expected = "if crate::mutant(2) { (b == 3)";
        assert_eq!((&branched.text[part], number), (expected, 2));
    }

    #[test]
    fn a_body_begins_with_what_it_may_return() {
        let one = change("FnValue", "1", 5, 38);
        let branched = plain(TEXT, &[(3, &one)]).expect("it is Rust");
        let expected = "    if crate::mutant(3) { return 1; }if a > b";
        assert!(branched.text.contains(expected), "{}", branched.text);
    }

    #[test]
    fn a_const_fn_becomes_a_plain_one_unless_the_compiler_runs_it() {
        let text = TEXT.replace("fn f", "const fn f");
        let text = format!("{text}\nconst fn g() -> u8 {{ 4 }}\n");
        let one = change("FnValue", "1", 5, 38);
        let branched = plain(&text, &[(3, &one)]).expect("it is Rust");
        assert!(branched.text.starts_with("      fn f"), "{}", branched.text);
        assert!(branched.text.contains("return 1;") && branched.text.contains("const fn g"));
        let constant = BTreeSet::from(["f".to_owned()]);
        let branched = branch(&text, &[(3, &one)], &constant).expect("it is Rust");
        assert_eq!((branched.text, branched.alone), (text, vec![3]));
    }

    #[test]
    fn a_length_is_computed_by_the_compiler() {
        let text = "struct S(\n    [u8; 1 << 2]);\n";
        let one = change("BinaryOperator", ">>", 12, 2);
        let branched = plain(text, &[(5, &one)]).expect("it is Rust");
        assert_eq!((branched.text.as_str(), branched.alone), (text, vec![5]));
    }

    #[test]
    fn there_is_no_or_between_lets() {
        let text = "fn f(a: Option<u8>) {\n    if let Some(3) = a && g() && h() {}\n}\n";
        let [one, two] = [24, 31].map(|column| change("BinaryOperator", "||", column, 2));
        let branched = plain(text, &[(5, &one), (6, &two)]).expect("it is Rust");
        assert_eq!((branched.text.as_str(), branched.dead), (text, vec![5, 6]));
    }

    #[test]
    fn an_arm_that_is_deleted_is_one_that_never_matches() {
        let text = "fn f(a: u8) -> u8 {\n    match a { 1 | 2 => 3, _ => a }\n}\n";
        let one = change("MatchArm", "", 15, 10);
        let branched = plain(text, &[(4, &one)]).expect("it is Rust");
        let expected = "match a { 1 | 2 if !crate::mutant(4) => 3, _ => a }";
        assert!(branched.text.contains(expected), "{}", branched.text);
        assert_eq!(branched.parts.len(), 1);
    }

    #[test]
    fn a_change_alone_replaces_what_it_names() {
        let not = change("UnaryOperator", "", 17, 1);
        let text = not.alone(TEXT).expect("it is in the text");
        assert!(text.contains("a > b && (b == 3)"));
    }

    #[test]
    fn a_stamp_is_that_of_the_function_wherever_it_stands() {
        let at = change("UnaryOperator", "", 17, 1);
        let mut moved = at.clone();
        (moved.start.0, moved.end.0, moved.function) = (3, 3, Some((2, 4)));
        assert_eq!(at.stamp(TEXT), moved.stamp(&format!("// More.\n{TEXT}")));
        assert_ne!(at.stamp(TEXT), at.stamp(&TEXT.replace('3', "4")));
    }
}
