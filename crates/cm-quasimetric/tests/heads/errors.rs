//! Bad shapes and settings are errors that say what was found.

use cm_quasimetric::{Error, Head, Reduction, Rows};

fn message(head: Head, x: (usize, usize), y: (usize, usize)) -> String {
    let (x_data, y_data) = (vec![0.0_f32; x.0 * x.1], vec![0.0_f32; y.0 * y.1]);
    let (x, y) = (Rows::new(&x_data, x.0, x.1).unwrap(), Rows::new(&y_data, y.0, y.1).unwrap());
    let mut distances = vec![0.0; x.rows() * y.rows()];
    let error = head.pairwise(x, y, &mut distances).unwrap_err();
    assert_eq!(head.pairwise_vec(x, y), Err(error.clone()));
    error.to_string()
}

#[test]
fn shapes_are_named() {
    let iqe = Head::Iqe { groups: 3, reduction: Reduction::Sum };
    let cases = [
        (Head::Max, (2, 4), (3, 5), "x is (2, 4), y is (3, 5)"),
        (Head::Max, (0, 4), (3, 4), "must not be empty: x is (0, 4), y is (3, 4)"),
        (Head::Max, (2, 0), (3, 0), "must not be empty: x is (2, 0), y is (3, 0)"),
        (Head::MRN, (2, 5), (3, 5), "a multiple of 2: x is (2, 5), y is (3, 5)"),
        (
            Head::Mrn { components: 4, epsilon: 0.0 },
            (2, 12),
            (3, 12),
            "a multiple of 8: x is (2, 12)",
        ),
        (iqe, (2, 8), (1, 8), "IQE of 3 groups reduced by Sum needs"),
        (Head::Mrn { components: 0, epsilon: 0.0 }, (1, 2), (1, 2), "at least one component"),
        (Head::Mrn { components: usize::MAX, epsilon: 0.0 }, (1, 2), (1, 2), "a multiple of"),
        (Head::Mrn { components: 1, epsilon: -1.0 }, (1, 2), (1, 2), "epsilon must be finite"),
        (Head::Iqe { groups: 0, reduction: Reduction::Max }, (1, 2), (1, 2), "at least one group"),
        (
            Head::Iqe { groups: 1, reduction: Reduction::MaxMean { logit: f64::NAN } },
            (1, 2),
            (1, 2),
            "the logit must be finite",
        ),
    ];
    for (head, x, y, expected) in cases {
        let found = message(head, x, y);
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn buffers_of_the_wrong_length_are_named() {
    let data = [0.0_f64; 8];
    let (x, y) = (Rows::new(&data, 2, 4).unwrap(), Rows::new(&data, 2, 4).unwrap());
    assert_eq!(
        Head::Max.pairwise(x, y, &mut [0.0; 3]),
        Err(Error::Length { what: "distances", found: 3, expected: (2, 2) })
    );
    assert_eq!(
        Head::Max.pairwise_backward(x, y, &[0.0; 4], &mut [0.0; 8], &mut [0.0; 7]),
        Err(Error::Length { what: "grad_y", found: 7, expected: (2, 4) })
    );
    assert_eq!(
        Head::Max.rowwise_backward(x, y, &[0.0; 2], &mut [0.0; 9], &mut [0.0; 8]),
        Err(Error::Length { what: "grad_x", found: 9, expected: (2, 4) })
    );
    assert!(Rows::new(&data, usize::MAX, 2).is_err());
    let one = Rows::new(&data[..4], 1, 4).unwrap();
    assert_eq!(
        Head::Max.rowwise(x, one, &mut [0.0; 2]),
        Err(Error::RowCount { x: (2, 4), y: (1, 4) })
    );
    let error = Head::Max.rowwise_vec(x, one).unwrap_err();
    assert_eq!(error, Error::RowCount { x: (2, 4), y: (1, 4) });
}
