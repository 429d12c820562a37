"""Which kernels are communication: by launching op, by the kernel's name; never a compute kernel of like name."""

from __future__ import annotations

import time

import pytest

from tests.timeline.made_events import Made, records
from tracker.timeline.collective_names import OpSays, is_communication, kind_of_name, op_says

COMMUNICATION = (
    ("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(unsigned long, int)", "all_reduce"),
    ("void (anonymous namespace)::multimem_one_shot_all_reduce_kernel<float, 16, 8>(char*)", "all_reduce"),
    ("void <unnamed>::two_shot_all_reduce_kernel<c10::BFloat16, 16, 8, true>(c10::BFloat16**)", "all_reduce"),
    ("void c10d::symmetric_memory::one_shot_all_reduce_kernel<float, 16>(float**)", "all_reduce"),
    ("c10d::symmetric_memory::barrier_kernel(unsigned int**, int, int, int, unsigned long)", "barrier"),
    ("std::enable_if<(true), void>::type vllm::cross_device_reduce_1stage<__half, 8>(RankData*)", "all_reduce"),
    ("void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(vllm::RankData*, vllm::RankSignals)", "all_reduce"),
    ("void sglang::cross_device_reduce_1stage<float, 4>(sglang::RankData*)", "all_reduce"),
    ("void aiter::cross_device_reduce_2stage_naive<__hip_bfloat16, 8>(aiter::RankData*)", "all_reduce"),
    ("void aiter::reduce_scatter_cross_device_store<__half, 8>(aiter::RankData*)", "reduce_scatter"),
    ("__global__ void quickreduce::allreduce_prototype_twoshot<quickreduce::CodecFP>(half const*)", "all_reduce"),
    ("void tensorrt_llm::kernels::oneShotAllReduceKernel<__half, 8, false>(AllReduceParams)", "all_reduce"),
    ("void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_oneshot_lamport<4>(Params)", "all_reduce"),
    ("void flashinfer::trtllm_mnnvl_allreduce::oneshotAllreduceFusionKernel<8, __half>(__half*)", "all_reduce"),
    ("void wrapper<mine::multimem_all_reduce_kernel<float>>(float*)", ""),
    ("nvshmemi_barrier_on_stream_kernel", "barrier"),
    ("void nvshmemi_put_kernel<unsigned char>(int)", "send"),
    ("nvshmemx_float_get_nbi_block", "recv"),
    ("rocshmem_barrier_all_kernel", "barrier"),
    ("void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*)", "all_to_all"),
    ("void deep_ep::intranode::cached_notify_combine<8>(void**, int*)", "all_to_all"),
    ("void deep_ep::internode_ll::combine<7168, 9>(void*, void*)", "all_to_all"),
    ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_reduce"),
    ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", "send_recv"),
    ("ncclSymkDevKernel_ReduceScatter_LD_sum_bf16(ncclSymkDevWorkArgs4K)", "reduce_scatter"),
    ("void mscclpp::collective::allreduceAllPairs<float, 8>(mscclpp::Sync*)", "all_reduce"),
    ("mscclKernel_Sum_half_Simple_0", ""),
    ("one_shot_all_reduce_bias_rms_norm_kernel", "all_reduce"),
    ("triton_one_shot_all_reduce_bias_0d1d2de", "all_reduce"),
    ("_all_gather_push_kernel", "all_gather"),
    ("hcom_batchSendRecv__128_3_1@6297232067196334501", "send_recv"),
    ("userbuffers_fp16_sum_inplace_gpu_rw_ag<8>", ""),
    ("void pplx::a2a::dispatchKernel<8, 4, true>(unsigned int*, float*)", "all_to_all"),
    ("void pplx::a2a::combineKernel<__nv_bfloat16, float>(float*)", "all_to_all"),
    ("void a2a_dispatch_send_kernel<false, 8>(int*)", "all_to_all"),
    ("void uccl::internode_ll::dispatch<false, 7168>(void*)", "all_to_all"),
    ("void hybrid_ep::dispatch_kernel<HYBRID_EP_STREAM>(Params)", "all_to_all"),
    ("barrier_all_on_stream", "barrier"),
    ("barrier_all_on_stream_kernel_warp(int)", "barrier"),
    ("barrier_all_intra_node_atomic_cas_block", "barrier"),
    ("sync_all_on_stream", "barrier"),
)

COMPUTE = (
    "void moe::combineKernel<float>(float*)",
    "void dispatch_tokens_kernel(int*)",
    "barrier_allocator_kernel",
    "sync_all_lanes_kernel",
    "void mine::a2attention_kernel(float*)",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float>>>(R)",
    "void at::native::(anonymous namespace)::_scatter_gather_elementwise_kernel<128, 8>(int)",
    "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*)",
    "void at::native::index_elementwise_kernel<128, 4, at::native::index_put_kernel_impl>(long)",
    "void at::native::elementwise_kernel<4, mine::all_reduce_kernel>(int)",
    "void c10d::checkForNaN<float>(float*, unsigned long)",
    "void cub::DeviceReduceSingleTileKernel<cub::Policy600, float*, float*>(float*)",
    "void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__reduce::ReduceAgent<float*>>(float*)",
    "void cudnn::reduced_divisor_kernel(int)",
    "triton_poi_fused_add_all_reduce_wait_tensor_3",
    "triton_red_fused__to_copy_all_gather_into_tensor_mean_1",
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128>(Params)",
    "_all_gather_matmul_persistent_kernel",
    "void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*)",
    "void softmax_warp_forward<WarpAllReduceSum, float, 9>(float*)",
    "void blockAllReduceSum_kernel<float>(float*)",
    "void rms_norm_kernel<__half>(tensorrt_llm::AllReduceParams)",
    "segment_reduce_forward_kernel",
    "splitKreduce_kernel<32, 16, int, float>",
    "moe_scatter_rows_kernel",
    "barrier_free_queue_kernel",
    "sharded_embedding_gather_kernel",
    "one_shot_learning_kernel_forward",
    "MatmulAllReduce_1_0_0",
    "void moe_combine_weights<float>(float*)",
)

LIBRARY_OPS = (
    "symm_mem::multimem_all_reduce_",
    "c10d::allreduce_",
    "_c10d_functional::reduce_scatter_tensor",
    "nvshmem::put",
    "rocshmem::alltoall",
    "deep_ep::low_latency_dispatch",
    "mscclpp::allreduce",
    "_C_custom_ar::all_reduce",
    "vllm::all_reduce",
    "trtllm::allreduce",
    "sgl_kernel::all_reduce",
    "aiter::all_reduce_asm_",
)


@pytest.mark.parametrize(("name", "kind"), COMMUNICATION)
def test_a_kernel_of_a_collective_is_communication(name, kind):
    assert is_communication(name)
    assert kind_of_name(name) == kind


@pytest.mark.parametrize("name", COMPUTE)
def test_a_compute_kernel_of_like_name_stays_compute(name):
    assert not is_communication(name)


@pytest.mark.parametrize("name", LIBRARY_OPS)
def test_an_op_of_a_library_speaks_for_its_kernels(name):
    assert op_says(name) is OpSays.COMMUNICATES
    assert is_communication("my_kernel", says=op_says(name))
    assert not is_communication("ampere_sgemm_128x64_nn", says=op_says(name))


@pytest.mark.parametrize(
    "name",
    ["symm_mem::fused_all_gather_matmul", "trtllm::allreduce_fusion", "_c10d_functional::wait_tensor"],
)
def test_a_fused_op_leaves_its_kernels_to_their_names(name):
    assert op_says(name) is OpSays.BY_NAME
    assert not is_communication("my_kernel", says=op_says(name))
    assert is_communication("multimem_all_reduce_kernel", says=op_says(name))


@pytest.mark.parametrize(
    "name", ["aten::all", "aten::gather", "sync all_reduce of gradients", "vllm::moe_forward", "c10d"]
)
def test_an_op_of_like_name_says_nothing(name):
    assert op_says(name) is OpSays.NOTHING


@pytest.mark.parametrize("letter", [" ", "_", "<", "(", "a", "a::", "one_shot", "all_"])
def test_a_name_of_200000_letters_takes_no_time(letter):
    name = (letter * 200_000)[:200_000]
    before = time.process_time()
    is_communication(name, says=op_says(name))
    kind_of_name(name)
    assert time.process_time() - before < 2


def test_kernels_of_one_library_op_are_one_call():
    made = Made()
    made.op("symm_mem::multimem_all_reduce_", 0, 50)
    made.op("aten::mm", 60, 90)
    for correlation, start in enumerate((10, 20, 70), start=1):
        made.launch(start, correlation)
    made.kernel("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(int)", 100, 130, 1)
    made.kernel("barrier_kernel", 130, 140, 2)
    made.kernel("ampere_sgemm_128x64_nn", 135, 160, 3)
    rows = made.built()
    overall = rows.overall
    assert (overall.communication_ns, overall.compute_ns, overall.exposed_communication_ns) == (40, 25, 35)
    assert records(rows.tables["communication"], "kind", "calls", "total_ns") == [("all_reduce", 1, 40)]
    assert sorted(rows.tables["kernel"]["category"]) == ["communication", "communication", "matmul"]


def test_only_the_collective_of_a_fused_op_communicates():
    made = Made()
    made.op("symm_mem::fused_all_gather_matmul", 0, 50)
    made.op("aten::mm", 30, 40)
    for correlation, start in enumerate((10, 20, 35)):
        made.launch(start, correlation)
    made.kernel("ncclDevKernel_AllGather_RING_LL", 100, 110, 0)
    made.kernel("my_epilogue", 110, 130, 1)
    made.kernel("ampere_sgemm_128x64_nn", 130, 160, 2)
    rows = made.built()
    assert (rows.overall.communication_ns, rows.overall.compute_ns) == (10, 50)
