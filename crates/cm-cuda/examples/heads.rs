//! Distances and their gradients on a GPU, for matrices that are there already.
//!
//! ```sh
//! cargo run -p cm-cuda --example heads
//! ```

use cm_cuda::{Device, Heads};
use cm_nn::{Pairing, Result};
use cm_quasimetric::Head;

fn main() -> Result<()> {
    let device = match Device::open(0) {
        Ok(device) => device,
        Err(error) => {
            println!("SKIPPED: {error}");
            return Ok(());
        }
    };
    let heads = Heads::new(&device)?;
    // Three points of four features; another library would give an address of its own.
    let points = [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 3.0, 0.0, 1.0, 2.0];
    let owner = heads.upload([3, 4], &points)?;
    // SAFETY: `owner` keeps the twelve numbers where they are until the end.
    let x = unsafe { heads.borrow([3, 4], owner.address()?) }?;
    for head in [Head::MRN, Head::Max] {
        let distances = heads.distances(head, Pairing::All, &x, &x)?;
        println!("{head}, from row to column:");
        for row in heads.download(&distances)?.chunks(3) {
            println!("  {row:.3?}");
        }
        let ones = heads.upload([3, 3], &[1.0; 9])?;
        let [to_x, _] = heads.gradients(head, Pairing::All, [&x, &x], &ones)?;
        println!("gradient of their sum to the left points: {:.3?}", heads.download(&to_x)?);
    }
    device.wait()?;
    Ok(())
}
