//! Pictures as PNG or SVG, with a font of their own so that no library of the system is needed: what the figures of this workspace share.

use std::path::Path;
use std::sync::Once;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};

use crate::Error;

/// What drawing on a backend can end in.
pub type Drawn<Backend> = Result<(), DrawingAreaErrorKind<<Backend as DrawingBackend>::ErrorType>>;

/// Draws a picture of `size` pixels and writes it, as the extension of `path` says. The two functions draw the same.
pub fn save(
    path: &Path,
    size: (u32, u32),
    draw_png: impl FnOnce(&DrawingArea<BitMapBackend<'_>, Shift>) -> Drawn<BitMapBackend<'static>>,
    draw_svg: impl FnOnce(&DrawingArea<SVGBackend<'_>, Shift>) -> Drawn<SVGBackend<'static>>,
) -> Result<(), Error> {
    let failed = |reason: String| Error::Picture { path: path.into(), reason };
    register_labels();
    let bytes = match path.extension().and_then(|extension| extension.to_str()) {
        Some("png") => {
            let mut pixels = vec![0; size.0 as usize * size.1 as usize * 3];
            {
                let area = BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area();
                draw_png(&area).map_err(|error| failed(error.to_string()))?;
                area.present().map_err(|error| failed(error.to_string()))?;
            }
            encode_png(size, &pixels).map_err(|error| failed(error.to_string()))?
        }
        Some("svg") => {
            let mut text = String::new();
            {
                let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
                draw_svg(&area).map_err(|error| failed(error.to_string()))?;
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

/// Eight colours that the colour-blind can tell apart (Okabe and Ito), for things that have no order.
pub const PALETTE: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(120, 120, 120),
    RGBColor(150, 110, 0),
];

/// A colour for a number from 0 to 1: readable by the colour-blind and in print, darker for less.
pub fn colour(fraction: f64) -> RGBColor {
    ViridisRGB.get_color(fraction.clamp(0.0, 1.0) as f32)
}

/// Black or white, whichever stands out on `colour`.
pub fn contrasting(colour: RGBColor) -> RGBColor {
    let RGBColor(red, green, blue) = colour;
    let luminance = 0.299 * f64::from(red) + 0.587 * f64::from(green) + 0.114 * f64::from(blue);
    if luminance > 128.0 { BLACK } else { WHITE }
}

/// Steps of 1, 2 or 5 times a power of ten from 0 to `largest`, about five of them.
pub fn ticks(largest: f64) -> Vec<f64> {
    let rough = largest / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|&step| step >= rough)
        .unwrap_or(rough);
    (0..)
        .map(|index| f64::from(index) * step)
        .take_while(|&tick| tick <= largest * (1.0 + 1e-9))
        .collect()
}

fn register_labels() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        let font = include_bytes!("../../assets/labels.ttf");
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
