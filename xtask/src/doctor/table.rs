//! Rows of the doctor's answer.

/// One thing that a machine may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    name: String,
    found: String,
    enables: String,
    remedy: Option<String>,
}

impl Row {
    /// It is here.
    pub fn there(name: impl Into<String>, found: impl Into<String>, enables: impl Into<String>) -> Row {
        Row { name: name.into(), found: found.into(), enables: enables.into(), remedy: None }
    }

    /// It is not here, or cannot be used, and this is how to get it.
    pub fn lacking(
        name: impl Into<String>,
        found: impl Into<String>,
        enables: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Row {
        Row { name: name.into(), found: found.into(), enables: enables.into(), remedy: Some(remedy.into()) }
    }

    /// Whether the machine has it.
    pub fn is_there(&self) -> bool {
        self.remedy.is_none()
    }
}

/// Prints rows as a table, each lack with its remedy below.
pub fn print(rows: &[Row]) {
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    for row in rows {
        let mark = if row.is_there() { "yes" } else { "no " };
        println!("  {mark}  {:width$}  {}", row.name, row.found);
        println!("       {:width$}  enables: {}", "", row.enables);
        if let Some(remedy) = &row.remedy {
            println!("       {:width$}  to get it: {remedy}", "");
        }
    }
    println!();
}
