//! MuJoCo, loaded at run time: a model, its data, and steps of simulation, with errors instead of
//! process exits.
//!
//! Nothing of MuJoCo is needed to build this crate. [`Mujoco::find`] looks for the library
//!
//! 1. where the environment variable `CM_MUJOCO` points, if it is set (and nowhere else then),
//! 2. in the cache folder, where `cm mujoco install` puts it ([`installed_library`]),
//! 3. among the libraries of the system.
//!
//! Models and data are opaque: positions, velocities and controls travel through `mj_getState` and
//! `mj_setState`, so no layout of a C structure is assumed and versions from [`OLDEST`] on work.
//! The results of this project are measured with [`VERSION`].
//!
//! ```
//! use cm_envs::mujoco::{Data, Model, Mujoco};
//!
//! # fn main() -> Result<(), cm_envs::Error> {
//! # let Ok(mujoco) = Mujoco::find() else { return Ok(()) };
//! # /*
//! let mujoco = Mujoco::find()?;
//! # */
//! let xml = "<mujoco><worldbody><body pos='0 0 9'><freejoint/><geom size='1'/></body></worldbody></mujoco>";
//! let model = Model::from_xml(&mujoco, xml)?;
//! assert_eq!((model.positions(), model.velocities(), model.controls()), (7, 6, 0));
//!
//! let mut ball = Data::new(&model)?;
//! ball.step(100)?; // 0.2 s
//! let mut state = vec![0.0; 13]; // positions, then velocities
//! ball.state(&mut state);
//! assert!((state[9] + 9.81 * 0.2).abs() < 1e-9); // falling
//! # Ok(())
//! # }
//! ```
//!
//! # What MuJoCo does on its own, and what happens here
//!
//! | MuJoCo | here |
//! |---|---|
//! | exits the process on a fatal error | the call returns [`Error::Simulator`](crate::Error::Simulator); the data refuse to go on until they are [reset](Data::reset) |
//! | warns of a diverged simulation, resets it and goes on | [`Data::step`] returns the warning as an error |
//! | writes `MUJOCO_LOG.TXT` into the working directory | nothing is written |

mod api;
mod data;
mod handlers;
mod library;
mod locate;
mod model;

pub use data::Data;
pub use library::{Mujoco, OLDEST, VERSION, Version};
pub use locate::{VARIABLE, installed_library, library_file_name};
pub use model::Model;
