//! The project as the checkers see it: its files in memory and what cargo knows of its crates.

use std::collections::BTreeMap;
use std::path::Path;

use cargo_metadata::{DependencyKind, MetadataCommand};

use crate::{Error, Result};

/// Folders of crates that are workspaces of their own, so that nobody builds them who does not ask.
const STANDALONE: [&str; 1] = ["bench"];

/// All files that belong to the project, and its crates.
#[derive(Debug, Default)]
pub struct Project {
    /// Every file that is not ignored by git, by its path from the root with `/` between folders.
    /// `None` stands for a file that is no text.
    pub files: BTreeMap<String, Option<String>>,
    /// The crates of the workspace, and those beside it.
    pub crates: Vec<Crate>,
}

/// A crate of the project.
#[derive(Clone, Debug, Default)]
pub struct Crate {
    /// Its folder, from the root.
    pub folder: String,
    /// The name of its package.
    pub package: String,
    /// The folders of the crates that it names, apart from those that only its tests name.
    pub names: Vec<String>,
    /// What cargo builds from it.
    pub targets: Vec<Target>,
}

/// One thing that cargo builds from a crate.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: TargetKind,
    /// Its first file, from the root.
    pub file: String,
}

/// What a target is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// A library.
    Library,
    /// A program, or a build script.
    Program,
    /// Tests, benchmarks and examples: not counted as source.
    Test,
}

impl Project {
    /// Reads the project whose root is `root`.
    ///
    /// # Errors
    /// A file or folder that can't be read, or a manifest that cargo refuses.
    pub fn read(root: &Path) -> Result<Self> {
        Ok(Project { files: read_files(root)?, crates: read_crates(root)? })
    }

    /// A project of these text files, without crates: what tests start from.
    #[must_use]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let text = |(path, text): &(&str, &str)| (path.to_string(), Some(text.to_string()));
        Project { files: files.iter().map(text).collect(), crates: Vec::new() }
    }

    /// The same project with one more crate in `folder`: a library that names `names`.
    #[must_use]
    pub fn with_crate(mut self, folder: &str, names: &[&str]) -> Self {
        self.crates.push(Crate {
            folder: folder.to_owned(),
            package: format!("flashtree-{folder}"),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            targets: vec![Target {
                name: format!("flashtree_{folder}"),
                kind: TargetKind::Library,
                file: format!("{folder}/src/lib.rs"),
            }],
        });
        self
    }

    /// The text of a file; `None` if there is no such file or it is no text.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.as_deref()
    }

    /// The text files whose names end in `ending`, by path.
    pub fn texts<'p>(&'p self, ending: &'p str) -> impl Iterator<Item = (&'p str, &'p str)> {
        self.files
            .iter()
            .filter(move |(path, _)| path.ends_with(ending))
            .filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)))
    }

    /// Whether `path` is a file or a folder of the project.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let inside = format!("{path}/");
        let folder = || {
            let next = self.files.range(inside.clone()..).next();
            next.is_some_and(|(file, _)| file.starts_with(&inside))
        };
        path.is_empty() || self.files.contains_key(path) || folder()
    }
}

fn read_files(root: &Path) -> Result<BTreeMap<String, Option<String>>> {
    let mut files = BTreeMap::new();
    let walk = ignore::WalkBuilder::new(root)
        .hidden(false)
        .ignore(false)
        .git_global(false)
        .git_exclude(false)
        .parents(false)
        .require_git(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    for entry in walk {
        let entry = entry?;
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let bytes = std::fs::read(entry.path())
            .map_err(|source| Error::Read { file: entry.path().to_owned(), source })?;
        files.insert(relative(root, entry.path()), String::from_utf8(bytes).ok());
    }
    Ok(files)
}

fn read_crates(root: &Path) -> Result<Vec<Crate>> {
    let read = |manifest| MetadataCommand::new().manifest_path(manifest).no_deps().exec();
    let metadata = read(root.join("Cargo.toml"))?;
    let root = metadata.workspace_root.as_std_path();
    let mut crates: Vec<Crate> =
        metadata.packages.iter().map(|package| read_crate(root, package)).collect();
    for folder in STANDALONE {
        let manifest = root.join(folder).join("Cargo.toml");
        if manifest.is_file() && !crates.iter().any(|member| member.folder == folder) {
            let metadata = read(manifest)?;
            crates.extend(metadata.packages.iter().map(|package| read_crate(root, package)));
        }
    }
    Ok(crates)
}

fn read_crate(root: &Path, package: &cargo_metadata::Package) -> Crate {
    let folder_of = |manifest: &Path| relative(root, manifest.parent().unwrap_or(root));
    let names = package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind != DependencyKind::Development)
        .filter_map(|dependency| dependency.path.as_ref())
        .map(|path| relative(root, path.as_std_path()));
    Crate {
        folder: folder_of(package.manifest_path.as_std_path()),
        package: package.name.to_string(),
        names: names.collect(),
        targets: package.targets.iter().map(|target| read_target(root, target)).collect(),
    }
}

fn read_target(root: &Path, target: &cargo_metadata::Target) -> Target {
    let kind = if target.is_lib() {
        TargetKind::Library
    } else if target.is_bin() || target.is_custom_build() {
        TargetKind::Program
    } else {
        TargetKind::Test
    };
    Target { name: target.name.clone(), kind, file: relative(root, target.src_path.as_std_path()) }
}

/// `path` from `root` on, with `/` between folders on every system.
fn relative(root: &Path, path: &Path) -> String {
    let path = path.strip_prefix(root).unwrap_or(path);
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}
