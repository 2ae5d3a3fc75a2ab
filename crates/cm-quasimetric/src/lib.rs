//! Quasimetric heads.
