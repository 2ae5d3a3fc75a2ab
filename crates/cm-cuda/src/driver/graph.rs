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

    /// Adds a kernel that starts when those of the numbers `after` are done. Of those that could
    /// start, blocks of the ones with more `urgency`, from 0 to 1, come first.
    pub(crate) fn push(
        &mut self,
        kernel: Kernel,
        shape: LaunchShape,
        packed: &Packed,
        after: &[usize],
        urgency: f32,
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
        // More threads would take the place of those that others wait for.
        let few = 64 * self.context.properties.multiprocessors;
        let prepares = self.context.can_prepare() && x * y * z * threads <= few;
        let plain = if prepares { 0 } else { after.len() };
        let mut node = std::ptr::null_mut();
        // SAFETY: as for a launch; the nodes are of this graph.
        unsafe {
            call!(cuGraphAddKernelNode_v2(&mut node, self.raw, after.as_ptr(), plain, &parameters))
        }?;
        if prepares {
            self.wait_inside(node, &after)?;
        }
        self.set_urgency(node, urgency)?;
        if cluster > 1 {
            use sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION as CLUSTER;
            let value = cluster_dimension(cluster);
            // SAFETY: the node was just added.
            unsafe { call!(cuGraphKernelNodeSetAttribute(node, CLUSTER, &value)) }?;
        }
        self.nodes.push(node);
        Ok(())
    }

    fn set_urgency(&self, node: sys::CUgraphNode, urgency: f32) -> Result<()> {
        use sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY as PRIORITY;
        // Priorities go from 0 down to a negative number, in equal shares.
        let highest = self.context.highest;
        let priority = -((urgency * (1 - highest) as f32) as i32).min(-highest);
        // SAFETY: a union of plain numbers, of which the one that the attribute has is set.
        let mut value = unsafe { std::mem::zeroed::<sys::CUlaunchAttributeValue>() };
        value.priority = priority;
        // SAFETY: the node is of this graph.
        unsafe { call!(cuGraphKernelNodeSetAttribute(node, PRIORITY, &value)) }
    }

    /// Lets a kernel get ready while those before it still run: it waits for them itself, as every
    /// kernel does before it touches memory (`after_others` in `common.cuh`).
    fn wait_inside(&mut self, node: sys::CUgraphNode, after: &[sys::CUgraphNode]) -> Result<()> {
        use sys::CUgraphDependencyType::CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC as PROGRAMMATIC;
        /// `CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC`
        const PORT: u8 = 1;
        let edge = sys::CUgraphEdgeData {
            from_port: PORT,
            to_port: 0,
            type_: PROGRAMMATIC as u8,
            reserved: [0; 5],
        };
        let (nodes, edges) = (vec![node; after.len()], vec![edge; after.len()]);
        let (from, to, count) = (after.as_ptr(), nodes.as_ptr(), after.len());
        // SAFETY: the nodes are of this graph; the lists are of the same length.
        unsafe { call!(cuGraphAddDependencies_v2(self.raw, from, to, edges.as_ptr(), count)) }
    }

    /// Makes the graph ready to run.
    pub(crate) fn finish(self) -> Result<Graph> {
        self.context.enter()?;
        use sys::CUgraphInstantiate_flags as Flags;
        let flags = Flags::CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY.0.into();
        let mut executable = std::ptr::null_mut();
        // SAFETY: the graph is complete and lives until `self` is dropped.
        unsafe { call!(cuGraphInstantiateWithFlags(&mut executable, self.raw, flags)) }?;
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
