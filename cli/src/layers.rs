//! The translation layers, as the help of `flashtree compare` lists them.

use std::fmt::Write;

use ftl::{FTLS, Parameter};

/// Every translation layer with its parameters.
pub(crate) fn help() -> String {
    let mut text = String::from("Translation layers, written as NAME:parameter=VALUE,...\n");
    for layer in FTLS {
        line(&mut text, 2, layer.name, layer.about);
        for Parameter { name, about, default, .. } in layer.parameters {
            line(&mut text, 4, name, &format!("{about} [default: {default}]"));
        }
    }
    text.trim_end().to_owned()
}

/// A name, indented, and in a column of its own what it means.
fn line(text: &mut String, indent: usize, name: &str, about: &str) {
    let width = 20 - indent;
    // Writing to a text can't fail.
    let _ = writeln!(text, "{:indent$}{name:width$} {about}", "");
}
