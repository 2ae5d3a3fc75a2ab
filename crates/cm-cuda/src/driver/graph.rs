//! Graphs of kernels.

use cudarc::driver::sys;

use super::{Context, Kernel, LaunchShape, Packed, check, cluster_dimension};
use crate::Result;

/// Kernels in a graph under construction.
pub(crate) struct GraphBuilder<'a> {
    context: &'a Context,
    raw: sys::CUgraph,
    nodes: Vec<sys::CUgraphNode>,
}

impl<'a> GraphBuilder<'a> {
    pub(crate) fn new(context: &'a Context) -> Result<Self> {
        context.enter()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is to a local variable.
        unsafe { call!(cuGraphCreate(&mut raw, 0)) }?;
        Ok(Self { context, raw, nodes: Vec::new() })
    }

    /// Adds a kernel that starts when those of the numbers `after` are done.
    pub(crate) fn push(
        &mut self,
        kernel: Kernel,
        shape: LaunchShape,
        packed: &Packed,
        after: &[usize],
    ) -> Result<()> {
        let LaunchShape { blocks: [x, y, z], threads, shared, cluster } = shape;
        let mut pointers = packed.pointers();
        let parameters = sys::CUDA_KERNEL_NODE_PARAMS {
            func: kernel.raw,
            gridDimX: x,
            gridDimY: y,
            gridDimZ: z,
            blockDimX: threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: shared,
            kernelParams: pointers.as_mut_ptr(),
            extra: std::ptr::null_mut(),
            kern: std::ptr::null_mut(),
            ctx: std::ptr::null_mut(),
        };
        let after = after.iter().map(|&index| self.nodes[index]).collect::<Vec<_>>();
        let mut node = std::ptr::null_mut();
        // SAFETY: as for a launch; the nodes are of this graph.
        unsafe {
            call!(cuGraphAddKernelNode_v2(
                &mut node,
                self.raw,
                after.as_ptr(),
                after.len(),
                &parameters
            ))
        }?;
        if cluster > 1 {
            use sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION as CLUSTER;
            let value = cluster_dimension(cluster);
            // SAFETY: the node was just added.
            unsafe { call!(cuGraphKernelNodeSetAttribute(node, CLUSTER, &value)) }?;
        }
        self.nodes.push(node);
        Ok(())
    }

    /// Makes the graph ready to run.
    pub(crate) fn finish(self) -> Result<Graph> {
        self.context.enter()?;
        let mut executable = std::ptr::null_mut();
        // SAFETY: the graph is complete and lives until `self` is dropped.
        unsafe { call!(cuGraphInstantiateWithFlags(&mut executable, self.raw, 0)) }?;
        Ok(Graph { executable })
    }
}

impl Drop for GraphBuilder<'_> {
    fn drop(&mut self) {
        // SAFETY: an instantiated graph does not need the one it was made from.
        let _ = unsafe { sys::cuGraphDestroy(self.raw) };
    }
}

/// A graph that can run.
pub(crate) struct Graph {
    pub(super) executable: sys::CUgraphExec,
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: destroyed once; a run in progress ends before.
        let _ = unsafe { sys::cuGraphExecDestroy(self.executable) };
    }
}
