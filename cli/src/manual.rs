//! `flashtree man` and `flashtree completions`: the grammar, written down for `man` and for shells.

use std::io::{self, Write};

use clap_mangen::Man;

use crate::arguments::{self, Shell};
use crate::failure::Failure;

/// Prints what lets `shell` complete commands and options.
///
/// # Errors
/// Standard output can't be written.
pub(crate) fn print_completions(shell: Shell) -> Result<(), Failure> {
    let shell = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut arguments::grammar(), "flashtree", &mut script);
    print(&script)
}

/// Prints the manual page, with a section for each command.
///
/// # Errors
/// Standard output can't be written.
pub(crate) fn print_page() -> Result<(), Failure> {
    let page = page().map_err(Failure::Print)?;
    print(&page)
}

fn page() -> io::Result<Vec<u8>> {
    let mut grammar = arguments::grammar();
    // Usage lines then name the program before the command.
    grammar.build();
    let mut page = Vec::new();
    let program = Man::new(grammar.clone());
    program.render_title(&mut page)?;
    program.render_name_section(&mut page)?;
    program.render_synopsis_section(&mut page)?;
    program.render_description_section(&mut page)?;
    program.render_options_section(&mut page)?;
    let listed = |command: &&clap::Command| command.get_name() != "help";
    for command in grammar.get_subcommands().filter(listed) {
        writeln!(page, ".SH FLASHTREE {}", command.get_name().to_uppercase())?;
        let man = Man::new(command.clone());
        let mut section = Vec::new();
        man.render_description_section(&mut section)?;
        man.render_synopsis_section(&mut section)?;
        man.render_options_section(&mut section)?;
        man.render_extra_section(&mut section)?;
        // They are below the command's heading.
        let section = String::from_utf8_lossy(&section).replace(".SH DESCRIPTION\n", "");
        page.write_all(section.replace(".SH ", ".SS ").as_bytes())?;
    }
    Ok(page)
}

fn print(text: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text).and_then(|()| out.flush()).map_err(Failure::Print)
}
