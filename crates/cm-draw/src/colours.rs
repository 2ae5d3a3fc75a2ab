//! Colours.

use plotters::prelude::*;

/// Eight colours that the colour-blind can tell apart (Okabe and Ito), for things without order.
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
