//! A body and its maze in MJCF, MuJoCo's language for models.

use std::fmt::Write;

use super::{Agent, Maze};
use crate::ant_maze::{SCALE, write_ant, write_motors};

const POINT: &str = r#"<compiler angle="degree" inertiafromgeom="true"/>
<option timestep="0.02" integrator="RK4"/>
<default>
<joint limited="false" armature="0" damping="0"/>
<geom contype="1" conaffinity="0" condim="3" friction="1 0.5 0.5" density="100"/>
<motor ctrllimited="true" ctrlrange="-1 1" gear="1"/>
</default>
"#;

const ANT: &str = r#"<compiler angle="degree" inertiafromgeom="true"/>
<option timestep="0.02" integrator="RK4"/>
<default>
<joint limited="true" armature="1" damping="1"/>
<geom contype="1" conaffinity="0" condim="3" margin="0.01" friction="1 0.5 0.5" solref="0.02 1" solimp="0.8 0.8 0.01" density="5"/>
<motor ctrllimited="true" ctrlrange="-1 1" gear="30"/>
</default>
"#;

const BALL: &str = r#"<body name="torso" pos="0 0 0">
<joint name="ball x" type="slide" axis="1 0 0"/>
<joint name="ball y" type="slide" axis="0 1 0"/>
<geom type="sphere" size="0.7" pos="0 0 0.7"/>
</body>
"#;

/// `agent` in `maze` in MJCF: for MuJoCo's own viewer, or for other tools. What cannot be touched
/// (OGBench's marks of goals and teleports) is left out.
pub fn mjcf(agent: Agent, maze: Maze) -> String {
    let mut xml = format!("<mujoco model=\"{agent}-{maze}\">\n");
    xml.push_str(match agent {
        Agent::Point => POINT,
        Agent::Ant => ANT,
    });
    xml.push_str("<worldbody>\n");
    write_world(&mut xml, maze);
    match agent {
        Agent::Point => xml.push_str(BALL),
        Agent::Ant => write_ant(&mut xml),
    }
    xml.push_str("</worldbody>\n");
    match agent {
        Agent::Point => xml.push_str(
            "<actuator>\n<motor joint=\"ball x\"/><motor joint=\"ball y\"/>\n</actuator>\n",
        ),
        Agent::Ant => write_motors(&mut xml),
    }
    xml.push_str("</mujoco>\n");
    xml
}

fn write_world(xml: &mut String, maze: Maze) {
    let (rows, columns) = (maze.rows() as f64, maze.columns() as f64);
    let (half, half_height) = (SCALE / 2.0, SCALE / 4.0);
    // Writing to a string cannot fail.
    let _ = writeln!(
        xml,
        "<geom name=\"floor\" type=\"plane\" pos=\"{} {} 0\" size=\"{} {} 0.2\" conaffinity=\"1\" margin=\"0\"/>",
        half * (columns - 3.0),
        half * (rows - 3.0),
        half * columns,
        half * rows,
    );
    for cell in maze.cells().filter(|&cell| maze.is_wall(cell)) {
        let [x, y] = cell.center();
        let _ = writeln!(
            xml,
            "<geom name=\"wall {} {}\" type=\"box\" pos=\"{x} {y} {half_height}\" size=\"{half} {half} {half_height}\" conaffinity=\"1\" margin=\"0\"/>",
            cell.row, cell.column,
        );
    }
}
