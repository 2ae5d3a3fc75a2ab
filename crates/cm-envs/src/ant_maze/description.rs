//! The ant and its maze in MJCF, MuJoCo's language for models.

use std::fmt::Write;

use super::{Maze, SCALE};

/// A leg: the quadrant it points into, the axis of its ankle, and how far that bends (in degrees).
struct Leg {
    quadrant: [f64; 2],
    ankle_axis: &'static str,
    ankle_range: &'static str,
}

const LEGS: [Leg; 4] = [
    Leg { quadrant: [1.0, 1.0], ankle_axis: "-1 1 0", ankle_range: "30 70" },
    Leg { quadrant: [-1.0, 1.0], ankle_axis: "1 1 0", ankle_range: "-70 -30" },
    Leg { quadrant: [-1.0, -1.0], ankle_axis: "-1 1 0", ankle_range: "-70 -30" },
    Leg { quadrant: [1.0, -1.0], ankle_axis: "1 1 0", ankle_range: "30 70" },
];

/// The legs in the order of their motors.
const MOTORS: [usize; 4] = [4, 1, 2, 3];

/// The ant in `maze`, or on an open floor, in MJCF: for MuJoCo's own viewer, or for other tools.
///
/// Floor and walls have no contact margin of their own: the margin of a pair was the larger of the
/// two before MuJoCo 3.5 and is their sum since; with 0 and the ant's 0.01 it is 0.01 in both.
pub fn mjcf(maze: Option<Maze>) -> String {
    let mut xml = String::from(
        r#"<mujoco model="ant maze">
<compiler angle="degree" inertiafromgeom="true"/>
<option timestep="0.02" integrator="RK4"/>
<default>
<joint limited="true" armature="1" damping="1"/>
<geom contype="1" conaffinity="0" condim="3" margin="0.01" friction="1 0.5 0.5" solref="0.02 1" solimp="0.8 0.8 0.01" density="5"/>
<motor ctrllimited="true" ctrlrange="-30 30" gear="1"/>
</default>
<worldbody>
<geom name="floor" type="plane" size="40 40 40" conaffinity="1" margin="0"/>
"#,
    );
    if let Some(maze) = maze {
        write_walls(&mut xml, maze);
    }
    write_ant(&mut xml);
    xml.push_str("</worldbody>\n");
    write_motors(&mut xml);
    xml.push_str("</mujoco>\n");
    xml
}

/// The ant's body, with what it takes from the defaults left open.
pub(crate) fn write_ant(xml: &mut String) {
    xml.push_str(
        r#"<body name="torso" pos="0 0 0.75">
<joint name="root" type="free" limited="false" armature="0" damping="0" margin="0.01"/>
<geom type="sphere" size="0.25"/>
"#,
    );
    for (leg, number) in LEGS.iter().zip(1..) {
        write_leg(xml, leg, number);
    }
    xml.push_str("</body>\n");
}

/// Its motors.
pub(crate) fn write_motors(xml: &mut String) {
    xml.push_str("<actuator>\n");
    for number in MOTORS {
        put(
            xml,
            format_args!("<motor joint=\"hip {number}\"/><motor joint=\"ankle {number}\"/>\n"),
        );
    }
    xml.push_str("</actuator>\n");
}

fn write_walls(xml: &mut String, maze: Maze) {
    let (half, half_height) = (SCALE / 2.0, SCALE / 4.0);
    for cell in maze.cells().filter(|&cell| maze.is_wall(cell)) {
        let [x, y] = cell.center();
        put(
            xml,
            format_args!(
                "<geom name=\"wall {} {}\" type=\"box\" pos=\"{x} {y} {half_height}\" size=\"{half} {half} {half_height}\" conaffinity=\"1\" margin=\"0\"/>\n",
                cell.row, cell.column
            ),
        );
    }
}

/// Three capsules, one after another: fixed to the torso, hip to ankle, and the foot.
fn write_leg(xml: &mut String, leg: &Leg, number: usize) {
    let [x, y] = leg.quadrant.map(|sign| 0.2 * sign);
    let [foot_x, foot_y] = leg.quadrant.map(|sign| 0.4 * sign);
    let capsule = |x: f64, y: f64| {
        format!("<geom type=\"capsule\" size=\"0.08\" fromto=\"0 0 0 {x} {y} 0\"/>")
    };
    let (upper, foot) = (capsule(x, y), capsule(foot_x, foot_y));
    put(xml, format_args!("<body>{upper}<body pos=\"{x} {y} 0\">\n"));
    put(
        xml,
        format_args!(
            "<joint name=\"hip {number}\" type=\"hinge\" axis=\"0 0 1\" range=\"-30 30\"/>{upper}\n"
        ),
    );
    put(
        xml,
        format_args!(
            "<body pos=\"{x} {y} 0\"><joint name=\"ankle {number}\" type=\"hinge\" axis=\"{}\" range=\"{}\"/>{foot}</body>\n",
            leg.ankle_axis, leg.ankle_range
        ),
    );
    xml.push_str("</body></body>\n");
}

fn put(xml: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = xml.write_fmt(text);
}
