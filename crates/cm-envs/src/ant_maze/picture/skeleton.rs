//! Where the ant's joints are, from its state.

use crate::ant_maze::STATE;

type Vector = [f64; 3];
/// w, x, y, z.
type Quaternion = [f64; 4];

/// A leg's quadrant and the sign of its ankle's axis `(sign, 1, 0)`.
const LEGS: [([f64; 2], f64); 4] =
    [([1.0, 1.0], -1.0), ([-1.0, 1.0], 1.0), ([-1.0, -1.0], -1.0), ([1.0, -1.0], 1.0)];

/// For each leg the places of torso, hip, ankle and foot in the plane.
pub(super) fn legs(state: &[f64; STATE]) -> [[[f64; 2]; 4]; 4] {
    let torso: Vector = [state[0], state[1], state[2]];
    let turned: Quaternion = [state[3], state[4], state[5], state[6]];
    std::array::from_fn(|leg| {
        let ([x, y], sign) = LEGS[leg];
        let (hip_angle, ankle_angle) = (state[7 + 2 * leg], state[8 + 2 * leg]);
        let part: Vector = [0.2 * x, 0.2 * y, 0.0];
        let foot_part: Vector = [0.4 * x, 0.4 * y, 0.0];
        let axis: Vector = [sign * 0.5_f64.sqrt(), 0.5_f64.sqrt(), 0.0];
        let upper = multiply(turned, about([0.0, 0.0, 1.0], hip_angle));
        let lower = multiply(upper, about(axis, ankle_angle));
        let hip = add(torso, rotate(turned, part));
        let ankle = add(hip, rotate(upper, part));
        let foot = add(ankle, rotate(lower, foot_part));
        [torso, hip, ankle, foot].map(|[x, y, _]| [x, y])
    })
}

fn about(axis: Vector, angle: f64) -> Quaternion {
    let (sine, cosine) = (angle / 2.0).sin_cos();
    [cosine, axis[0] * sine, axis[1] * sine, axis[2] * sine]
}

fn multiply(a: Quaternion, b: Quaternion) -> Quaternion {
    [
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    ]
}

fn rotate(by: Quaternion, vector: Vector) -> Vector {
    let inverse = [by[0], -by[1], -by[2], -by[3]];
    let [_, x, y, z] = multiply(multiply(by, [0.0, vector[0], vector[1], vector[2]]), inverse);
    [x, y, z]
}

fn add(a: Vector, b: Vector) -> Vector {
    std::array::from_fn(|axis| a[axis] + b[axis])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: [f64; 2], expected: [f64; 2]) {
        let distance = (found[0] - expected[0]).hypot(found[1] - expected[1]);
        assert!(distance < 1e-12, "{found:?} {expected:?}");
    }

    #[test]
    fn joints_are_where_geometry_says() {
        let mut state = [0.0; STATE];
        (state[0], state[1], state[3]) = (3.0, 4.0, 1.0);
        let [_, second, ..] = legs(&state);
        near(second[1], [2.8, 4.2]);
        near(second[2], [2.6, 4.4]);
        near(second[3], [2.2, 4.8]);
        // A quarter turn to the left about the vertical takes leg 1 to where leg 2 was.
        (state[3], state[6]) = (0.5_f64.sqrt(), 0.5_f64.sqrt());
        near(legs(&state)[0][3], [2.2, 4.8]);
        // A foot that hangs straight down is below its ankle.
        state[8] = std::f64::consts::FRAC_PI_2;
        let [first, ..] = legs(&state);
        near(first[3], first[2]);
        // A hip turned by a right angle.
        (state[3], state[6], state[8], state[7]) = (1.0, 0.0, 0.0, std::f64::consts::FRAC_PI_2);
        near(legs(&state)[0][2], [3.2 - 0.2, 4.2 + 0.2]);
    }
}
