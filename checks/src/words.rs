//! Words that have no place in the project: they speak of one machine and mean nothing on others.

use crate::project::Project;
use crate::report::Report;

/// The words, in small letters. They are put together from parts so that this file passes.
pub const FORBIDDEN: [&str; 9] = [
    concat!("/wo", "rk/"),
    concat!("../sha", "red"),
    concat!("/tmp/", "target-"),
    concat!("/tmp/", "brief"),
    concat!("/home", "/"),
    concat!("/ro", "ot/"),
    concat!("local", "host"),
    concat!("127.0", ".0.1"),
    concat!("arti", "factory"),
];

/// Checks every text file of the project.
pub fn check(project: &Project, report: &mut Report) {
    let mut files = 0;
    for (file, text) in project.texts("") {
        files += 1;
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.to_lowercase();
            for word in FORBIDDEN.iter().filter(|word| line.contains(**word)) {
                report.fault(file, number, format!("'{word}' means nothing on other machines"));
            }
        }
    }
    report.note(format!("words          {files} text files"));
}

#[cfg(test)]
mod tests {
    use super::FORBIDDEN;
    use crate::project::Project;
    use crate::report::Report;

    #[test]
    fn every_word_is_found_in_any_text_file() {
        for word in FORBIDDEN {
            let text = format!("fine\nsee {}x\n", word.to_uppercase());
            let mut report = Report::default();
            super::check(&Project::of(&[("data/notes.txt", &text)]), &mut report);
            assert_eq!(report.faults.len(), 1, "{word}");
            assert_eq!(report.faults[0].line, 2, "{word}");
        }
    }

    #[test]
    fn other_text_passes() {
        let mut report = Report::default();
        let text = "it works/ shares /tmp/file";
        super::check(&Project::of(&[("README.md", text)]), &mut report);
        assert!(report.faults.is_empty(), "{:?}", report.faults);
    }
}
