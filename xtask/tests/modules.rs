//! Modules of one directory point one way, too: no circle among those that stand side by side.
//!
//! A directory counts as one module for those beside it. A module and its own children are one subject and may know
//! each other. Tests are left out: they may use whatever they test with.
#![allow(clippy::unwrap_used, reason = "the helpers of a test fail it")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree};

/// Where a module is in its crate: `["commands", "approve"]`.
type ModulePath = Vec<String>;
/// Which modules each module names.
type Arrows = BTreeMap<ModulePath, BTreeSet<ModulePath>>;

#[test]
fn modules_point_one_way() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("crates");
    let mut circles = Vec::new();
    for entry in fs::read_dir(crates).unwrap() {
        let directory = entry.unwrap().path();
        let source = directory.join("src");
        let root = ["lib.rs", "main.rs"].map(|name| source.join(name));
        let Some(root) = root.into_iter().find(|file| file.exists()) else { continue };
        let mut modules = Modules::default();
        modules.read(&root, &source, &[]);
        let name = directory.file_name().unwrap().to_string_lossy().into_owned();
        circles.extend(modules.circles().into_iter().map(|circle| format!("{name}: {circle}")));
    }
    assert_eq!(circles, [""; 0], "move what both need into a module of its own");
}

/// The same by example, so that a search that finds nothing any more is noticed.
#[test]
fn circles_are_found() {
    let parsed = |modules: &[(&[&str], &str)]| {
        let mut found = Modules::default();
        for (path, text) in modules {
            let path: ModulePath = path.iter().map(|part| (*part).to_owned()).collect();
            found.files.insert(path, syn::parse_file(text).unwrap());
        }
        found.circles()
    };
    let circle = parsed(&[
        (&["a"], "use crate::b::{C, d};"),
        (&["b"], "fn f() { crate::c::g::<u8>() }"),
        (&["c"], "use super::{a, x};"),
        (&["x"], "use crate::a::A;"),
    ]);
    assert_eq!(circle, ["a, b, c, x"]);
    let one_way = parsed(&[
        (&["a"], "mod b; use b::B; use crate::c::C;"),
        (&["a", "b"], "use super::A; use crate::c;"),
        (&["c"], "use crate::root_item;"),
    ]);
    assert_eq!(one_way, [""; 0], "a module and its child, and items of the root");
    let deep = parsed(&[
        (&["a"], ""),
        (&["a", "b"], "use super::c::C;"),
        (&["a", "c"], "use crate::a::b;"),
        (&["d"], "use crate::a::b::B;"),
    ]);
    assert_eq!(deep, ["a::b, a::c"]);
}

#[derive(Default)]
struct Modules {
    files: BTreeMap<ModulePath, syn::File>,
}

impl Modules {
    /// Reads a file and the files of the modules that it declares, tests left out.
    fn read(&mut self, file: &Path, children: &Path, path: &[String]) {
        let text = fs::read_to_string(file).unwrap();
        let parsed = syn::parse_file(&text).unwrap();
        for item in &parsed.items {
            let Item::Mod(module) = item else { continue };
            if module.content.is_some() || is_for_tests(&module.attrs) {
                continue;
            }
            let name = module.ident.to_string();
            let places: [PathBuf; 2] =
                [children.join(format!("{name}.rs")), children.join(&name).join("mod.rs")];
            let child: Vec<String> = path.iter().cloned().chain([name.clone()]).collect();
            // One that a build script has made is not in the tree.
            if let Some(place) = places.iter().find(|place| place.exists()) {
                self.read(place, &children.join(&name), &child);
            }
        }
        self.files.insert(path.to_vec(), parsed);
    }

    /// Every circle, as the names of its modules.
    fn circles(&self) -> Vec<String> {
        let arrows = self.arrows();
        let reached: BTreeMap<&ModulePath, BTreeSet<&ModulePath>> =
            arrows.keys().map(|from| (from, reachable(from, &arrows))).collect();
        let mut circles = BTreeSet::new();
        for (from, to) in &reached {
            let circle: BTreeSet<&ModulePath> =
                to.iter().copied().filter(|other| reached[*other].contains(from)).collect();
            if !circle.is_empty() {
                let names: Vec<String> = circle.iter().map(|path| path.join("::")).collect();
                circles.insert(names.join(", "));
            }
        }
        circles.into_iter().collect()
    }

    /// Arrows between modules that stand side by side.
    fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (from, file) in &self.files {
            let mut named = Named { from, found: BTreeSet::new() };
            named.visit_file(file);
            for to in named.found.iter().filter_map(|path| self.known(path)) {
                let common = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
                if common < from.len() && common < to.len() {
                    let [from, to] = [from, &to].map(|path| path[..=common].to_vec());
                    arrows.entry(to.clone()).or_default();
                    arrows.entry(from).or_default().insert(to);
                }
            }
        }
        arrows
    }

    /// The module that a path leads into; `None` for the root's own items.
    fn known(&self, path: &[String]) -> Option<ModulePath> {
        (1..=path.len())
            .rev()
            .map(|length| &path[..length])
            .find(|path| self.files.contains_key(*path))
            .map(<[String]>::to_vec)
    }
}

fn reachable<'a>(from: &ModulePath, arrows: &'a Arrows) -> BTreeSet<&'a ModulePath> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&ModulePath> = arrows[from].iter().collect();
    while let Some(next) = open.pop() {
        if found.insert(next) {
            open.extend(&arrows[next]);
        }
    }
    found
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Meta>().is_ok_and(|meta| meta.path().is_ident("test"))
    })
}

/// Collects the absolute paths that a file names.
struct Named<'a> {
    from: &'a [String],
    found: BTreeSet<ModulePath>,
}

impl Named<'_> {
    /// Makes a path absolute that begins in this crate.
    fn absolute(&self, segments: &[String]) -> Option<ModulePath> {
        let (first, mut rest) = segments.split_first()?;
        let mut path = match first.as_str() {
            "crate" => Vec::new(),
            "self" => self.from.to_vec(),
            "super" => self.from.split_last()?.1.to_vec(),
            _ => return None,
        };
        while let Some((_, after)) = rest.split_first().filter(|(next, _)| *next == "super") {
            path.pop();
            rest = after;
        }
        path.extend(rest.iter().cloned());
        Some(path)
    }

    fn add_use(&mut self, before: &[String], tree: &UseTree) {
        let with = |last: &syn::Ident| [before, &[last.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.add_use(&with(&path.ident), &path.tree),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_use(before, tree)),
            UseTree::Name(name) => self.found.extend(self.absolute(&with(&name.ident))),
            UseTree::Rename(name) => self.found.extend(self.absolute(&with(&name.ident))),
            UseTree::Glob(_) => self.found.extend(self.absolute(before)),
        }
    }
}

impl<'ast> Visit<'ast> for Named<'_> {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.add_use(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.found.extend(self.absolute(&segments));
        visit::visit_path(self, path);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }
}
