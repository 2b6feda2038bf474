//! The functions and types of the sources: how long they are and what they are called.

use std::collections::BTreeSet;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::sources::{Source, only_in_tests};

/// One function that has a body.
#[derive(Clone, Debug)]
pub struct Function {
    /// The file that it stands in.
    pub file: String,
    /// The line of its `fn`.
    pub line: usize,
    /// Its name.
    pub name: String,
    /// Lines from its `fn` to its closing brace.
    pub lines: usize,
    /// Parameters besides self.
    pub parameters: usize,
    /// Whether it is built for tests only.
    pub test: bool,
}

/// What the sources define.
#[derive(Debug, Default)]
pub struct Inventory {
    /// Every function and method that has a body, those inside macros aside.
    pub functions: Vec<Function>,
    /// Full names of functions, methods, types, constants and variants: `store::Cache::get`.
    pub names: BTreeSet<String>,
    /// Lines of inline test modules.
    pub inline_test_lines: usize,
}

impl Inventory {
    /// Takes the inventory of `sources`.
    #[must_use]
    pub fn of(sources: &[Source]) -> Self {
        let mut inventory = Inventory::default();
        for source in sources {
            let mut visitor = Visitor {
                inventory: &mut inventory,
                file: &source.file,
                path: source.module.clone(),
                test: source.test,
            };
            visitor.visit_file(&source.syntax);
        }
        inventory
    }

    /// Whether something has this name: the whole path, or the last parts of it (`Cache::get`).
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let name = name.strip_prefix("flashtree_").unwrap_or(name);
        let end = format!("::{name}");
        self.names.iter().any(|known| known == name || known.ends_with(&end))
    }
}

struct Visitor<'a> {
    inventory: &'a mut Inventory,
    file: &'a str,
    path: Vec<String>,
    test: bool,
}

impl Visitor<'_> {
    fn name(&mut self, name: &syn::Ident) {
        let name = format!("{}::{name}", self.path.join("::"));
        self.inventory.names.insert(name);
    }

    fn function(&mut self, signature: &syn::Signature, body: &syn::Block, test: bool) {
        let line = signature.fn_token.span.start().line;
        let receiver = usize::from(signature.receiver().is_some());
        self.inventory.functions.push(Function {
            file: self.file.to_owned(),
            line,
            name: signature.ident.to_string(),
            lines: body.brace_token.span.close().end().line - line + 1,
            parameters: signature.inputs.len() - receiver,
            test: self.test || test,
        });
    }

    fn inside(&mut self, name: String, visit: impl FnOnce(&mut Self)) {
        self.path.push(name);
        visit(self);
        self.path.pop();
    }
}

impl<'ast> Visit<'ast> for Visitor<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let Some((brace, _)) = &item.content else { return };
        let outside = self.test;
        self.test |= only_in_tests(&item.attrs);
        if self.test && !outside {
            let lines = brace.span.close().end().line - item.span().start().line + 1;
            self.inventory.inline_test_lines += lines;
        }
        self.inside(item.ident.to_string(), |visitor| visit::visit_item_mod(visitor, item));
        self.test = outside;
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.name(&item.sig.ident);
        self.function(&item.sig, &item.block, only_in_tests(&item.attrs));
        visit::visit_item_fn(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        match type_name(&item.self_ty) {
            Some(name) => self.inside(name, |visitor| visit::visit_item_impl(visitor, item)),
            None => visit::visit_item_impl(self, item),
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.name(&item.sig.ident);
        self.function(&item.sig, &item.block, only_in_tests(&item.attrs));
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.name(&item.ident);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.name(&item.ident);
        self.inside(item.ident.to_string(), |visitor| visit::visit_item_trait(visitor, item));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.name(&item.sig.ident);
        if let Some(body) = &item.default {
            self.function(&item.sig, body, false);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.name(&item.ident);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.name(&item.ident);
        self.inside(item.ident.to_string(), |visitor| {
            item.variants.iter().for_each(|variant| visitor.name(&variant.ident));
        });
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.name(&item.ident);
    }
}

fn type_name(of: &syn::Type) -> Option<String> {
    match of {
        syn::Type::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
        syn::Type::Reference(reference) => type_name(&reference.elem),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Inventory;
    use crate::project::Project;
    use crate::report::Report;
    use crate::sources;

    const TEXT: &str = "
pub struct Cache;
impl Cache {
    pub fn get(&mut self, page: u32) -> u32 {
        page
    }
}
pub trait Policy { fn victim(&self); fn name(&self) -> u8 { 1 } }
pub enum Mode { Log }
mod inner { pub fn sum(a: u8, b: u8) -> u8 { a + b } }
#[cfg(test)]
mod tests {
    #[test]
    fn adds() {
    }
}
";

    fn inventory() -> Inventory {
        let project = Project::of(&[("a/src/lib.rs", TEXT)]).with_crate("a", &[]);
        let mut report = Report::default();
        let inventory = Inventory::of(&sources::read(&project, &mut report));
        assert!(report.faults.is_empty(), "{:?}", report.faults);
        inventory
    }

    #[test]
    fn functions_are_measured_from_fn_to_brace_without_self() {
        let inventory = inventory();
        let measured: Vec<_> = inventory
            .functions
            .iter()
            .map(|f| (f.name.as_str(), f.line, f.lines, f.parameters, f.test))
            .collect();
        assert_eq!(
            measured,
            [
                ("get", 4, 3, 1, false),
                ("name", 8, 1, 0, false),
                ("sum", 10, 1, 2, false),
                ("adds", 14, 2, 0, true)
            ]
        );
        assert_eq!(inventory.inline_test_lines, 6);
    }

    #[test]
    fn things_are_found_by_their_path_or_the_end_of_it() {
        let inventory = inventory();
        for name in [
            "a::Cache::get",
            "Cache::get",
            "Policy::victim",
            "Mode::Log",
            "flashtree_a::inner::sum",
            "tests::adds",
        ] {
            assert!(inventory.has(name), "{name}");
        }
        for name in ["Cache::put", "ache::get", "a::sum", "b::Cache::get"] {
            assert!(!inventory.has(name), "{name}");
        }
    }
}
