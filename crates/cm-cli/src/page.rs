//! One HTML page that holds everything it shows: pictures are in it, nothing is loaded from
//! anywhere.

use std::fmt::Write;
use std::path::Path;

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// A page under construction.
pub(crate) struct Page {
    title: String,
    body: String,
}

const STYLE: &str = "\
:root{color-scheme:light}
body{font:16px/1.5 system-ui,sans-serif;color:#1a1a1a;background:#fff;margin:0 auto;max-width:1000px;padding:24px}
h1{font-size:28px;margin:0 0 4px}h2{font-size:21px;margin:36px 0 8px;border-bottom:1px solid #ddd;padding-bottom:4px}
p{max-width:75ch}figure{margin:16px 0}figcaption{color:#444;font-size:14px;max-width:75ch}
img{max-width:100%;height:auto;border:1px solid #e5e5e5}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(420px,1fr));gap:16px}
table{border-collapse:collapse;margin:12px 0}th,td{padding:5px 14px;border-bottom:1px solid #ddd;text-align:right}
th:first-child,td:first-child{text-align:left}td.best{font-weight:700}
details{margin:8px 0}pre{background:#f6f6f6;padding:12px;overflow:auto;font-size:13px}
";

impl Page {
    pub(crate) fn new(title: &str) -> Self {
        let body = format!("<h1>{}</h1>\n", escape(title));
        Self { title: title.to_owned(), body }
    }

    pub(crate) fn heading(&mut self, text: &str) {
        self.push(format_args!("<h2>{}</h2>\n", escape(text)));
    }

    /// A heading that [`link`](Self::link) leads to by `name`.
    pub(crate) fn heading_at(&mut self, name: &str, text: &str) {
        self.push(format_args!("<h2 id=\"{}\">{}</h2>\n", escape(name), escape(text)));
    }

    /// A paragraph that leads to a heading of the same page.
    pub(crate) fn link(&mut self, name: &str, text: &str) {
        self.push(format_args!("<p><a href=\"#{}\">{}</a></p>\n", escape(name), escape(text)));
    }

    pub(crate) fn paragraph(&mut self, text: &str) {
        self.push(format_args!("<p>{}</p>\n", escape(text)));
    }

    /// Pictures side by side where there is room, each with a caption.
    pub(crate) fn figures(&mut self, figures: &[(&Path, &str)]) -> anyhow::Result<()> {
        self.push(format_args!("<div class=\"grid\">\n"));
        for (file, caption) in figures {
            self.figure(file, caption)?;
        }
        self.push(format_args!("</div>\n"));
        Ok(())
    }

    /// A picture with a caption.
    pub(crate) fn figure(&mut self, file: &Path, caption: &str) -> anyhow::Result<()> {
        let bytes = std::fs::read(file)
            .with_context(|| format!("{}: could not be read", file.display()))?;
        let kind = if file.extension().is_some_and(|extension| extension == "svg") {
            "svg+xml"
        } else {
            "png"
        };
        let caption = escape(caption);
        let data = STANDARD.encode(bytes);
        self.push(format_args!(
            "<figure><img alt=\"{caption}\" src=\"data:image/{kind};base64,{data}\"><figcaption>{caption}</figcaption></figure>\n"
        ));
        Ok(())
    }

    /// A table; a cell that begins with `*` is marked as the best of its column.
    pub(crate) fn table(&mut self, rows: &[Vec<String>]) {
        self.push(format_args!("<table>\n"));
        for (number, row) in rows.iter().enumerate() {
            let tag = if number == 0 { "th" } else { "td" };
            self.push(format_args!("<tr>"));
            for cell in row {
                let (class, text) = match cell.strip_prefix('*') {
                    Some(best) => (" class=\"best\"", best),
                    None => ("", cell.as_str()),
                };
                // A number and its error stay on one line.
                let text = escape(text).replace(" ± ", "&nbsp;±&nbsp;");
                self.push(format_args!("<{tag}{class}>{text}</{tag}>"));
            }
            self.push(format_args!("</tr>\n"));
        }
        self.push(format_args!("</table>\n"));
    }

    /// Text as it is, folded away under a line.
    pub(crate) fn details(&mut self, line: &str, text: &str) {
        let (line, text) = (escape(line), escape(text));
        self.push(format_args!("<details><summary>{line}</summary><pre>{text}</pre></details>\n"));
    }

    pub(crate) fn to_html(&self) -> String {
        let title = escape(&self.title);
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
            self.body
        )
    }

    fn push(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.body.write_fmt(text);
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_escapes_what_it_is_given_and_marks_the_best() {
        let mut page = Page::new("a < b & \"c\"");
        page.table(&[vec!["x".into()], vec!["*0.9".into()]]);
        page.details("settings", "[a]\nb = 1 > 0");
        let html = page.to_html();
        assert!(html.contains("<title>a &lt; b &amp; &quot;c&quot;</title>"));
        assert!(html.contains("<td class=\"best\">0.9</td>"));
        assert!(html.contains("b = 1 &gt; 0</pre>"));
    }
}
