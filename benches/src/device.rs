//! The device that a benchmark is asked to run on: `-- --device cuda:0,bf16`.

use cm_cuda::CudaBackend;
use cm_train::Device;

/// The backend of the GPU that `--device` names; none if it names the CPU or is not given. Ends the
/// program with a message if there is no such device.
pub fn cuda() -> Option<CudaBackend> {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--device");
    let name = arguments.nth(1)?;
    match open(&name) {
        Ok(backend) => backend,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    }
}

fn open(name: &str) -> Result<Option<CudaBackend>, Box<dyn std::error::Error>> {
    let (device, what) = name.parse::<Device>()?.resolve()?;
    let Device::Cuda { ordinal, precision } = device else { return Ok(None) };
    let precision = match precision {
        cm_train::Precision::Highest => cm_cuda::Precision::Highest,
        cm_train::Precision::Tf32 => cm_cuda::Precision::Tf32,
        cm_train::Precision::Bf16 => cm_cuda::Precision::Bf16,
    };
    println!("{device}: {what}");
    let device = cm_cuda::Device::open(ordinal)?;
    Ok(Some(CudaBackend::new(&device, &[0], precision)?))
}

/// Criterion with its arguments; without any if there is `--device`, which it does not know.
pub fn criterion() -> criterion::Criterion {
    match std::env::args().any(|argument| argument == "--device") {
        true => criterion::Criterion::default(),
        false => criterion::Criterion::default().configure_from_args(),
    }
}
