//! Pictures as PNG or SVG, with a font of their own.

use std::path::Path;
use std::sync::Once;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};

use crate::Error;

/// What drawing on a backend can end in.
pub type Drawn<Backend> = Result<(), DrawingAreaErrorKind<<Backend as DrawingBackend>::ErrorType>>;

/// Something that can be drawn on any kind of picture.
pub trait Drawing {
    /// Draws all of it.
    fn draw<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>) -> Drawn<DB>;
}

/// Draws a picture of `size` pixels and writes it, as the extension of `path` says: png or svg.
pub fn save(path: &Path, size: (u32, u32), drawing: &impl Drawing) -> Result<(), Error> {
    let failed = |reason: String| Error::Picture { path: path.into(), reason };
    register_labels();
    let bytes = match path.extension().and_then(|extension| extension.to_str()) {
        Some("png") => {
            let mut pixels = vec![0; size.0 as usize * size.1 as usize * 3];
            {
                let area = BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area();
                drawing.draw(&area).map_err(|error| failed(error.to_string()))?;
                area.present().map_err(|error| failed(error.to_string()))?;
            }
            encode_png(size, &pixels).map_err(|error| failed(error.to_string()))?
        }
        Some("svg") => {
            let mut text = String::new();
            {
                let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
                drawing.draw(&area).map_err(|error| failed(error.to_string()))?;
                area.present().map_err(|error| failed(error.to_string()))?;
            }
            text.into_bytes()
        }
        other => {
            let found = other.unwrap_or("none");
            return Err(failed(format!("expected the extension png or svg, found {found}")));
        }
    };
    Ok(cm_files::replace(path, bytes)?)
}

fn register_labels() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        let font = include_bytes!("../assets/labels.ttf");
        // The font is part of the program, and a test draws with it.
        let _ = register_font("sans-serif", FontStyle::Normal, font);
    });
}

fn encode_png((width, height): (u32, u32), pixels: &[u8]) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Words;

    impl Drawing for Words {
        fn draw<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>) -> Drawn<DB> {
            area.fill(&WHITE)?;
            area.draw(&Text::new("two words", (5, 5), ("sans-serif", 20)))?;
            area.draw(&Rectangle::new([(40, 40), (59, 49)], RED.filled()))
        }
    }

    #[test]
    fn the_extension_says_which_kind_of_picture() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.png");
        save(&path, (60, 50), &Words).unwrap();
        let file = std::io::BufReader::new(std::fs::File::open(&path).unwrap());
        let mut reader = png::Decoder::new(file).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), (60, 50));
        let pixel = |x: usize, y: usize| &pixels[3 * (60 * y + x)..][..3];
        assert_eq!((pixel(0, 49), pixel(45, 45)), (&[255; 3][..], &[255, 0, 0][..]));
        // The font is part of the program: something dark is where the words are.
        assert!((5..60).any(|x| (5..25).any(|y| pixel(x, y)[0] < 100)));

        let path = folder.path().join("a.svg");
        save(&path, (60, 50), &Words).unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().contains("two words"));

        for (name, found) in [("a.gif", "gif"), ("a", "none")] {
            let path = folder.path().join(name);
            let message = save(&path, (60, 50), &Words).unwrap_err().to_string();
            assert!(message.contains(name) && message.contains("png or svg"), "{message}");
            assert!(message.ends_with(&format!("found {found}")), "{message}");
        }
    }
}
