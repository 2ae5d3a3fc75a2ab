//! The CPU backend.

cm_learner_tests::learner_tests!(cm_nn::DfdxBackend::new);
