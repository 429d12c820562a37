"""Canonical names: what varies from build to build and run to run goes, what tells kernels apart stays."""

from __future__ import annotations

import time

import pytest

from tracker.timeline import CATEGORIES, canonical_name
from tracker.timeline.categories import category_of_kernel, category_of_op, category_of_type
from tracker.timeline.collective_names import is_communication, op_says

SAME = (
    # Nsight Systems and PyTorch's profiler write one kernel of one build
    (
        "void at::native::elementwise_kernel<(int)128, (int)2, void at::native::gpu_kernel_impl<at::native::Copy"
        "<(bool)1>>(at::TensorIteratorBase &, const T1 &)::[lambda(int) (instance 1)]>(int, T3, char *)",
        "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<at::native::Copy<true> >"
        "(at::TensorIteratorBase&, at::native::Copy<true> const&)::{lambda(int)#1}>(int, char*)",
        "at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<at::native::Copy<true>>::lambda[int]>",
    ),
    # two builds of PyTorch: numbers of lambdas, base class of the iterator, array type
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::where_kernel_impl"
        "(at::TensorIterator&)::{lambda()#1}::operator()() const::{lambda()#8}::operator()() const::{lambda(float)#1}, "
        "at::detail::Array<char*, 4> >(int, at::native::where_kernel_impl(at::TensorIterator&)::{lambda(float)#1})",
        "void at::native::vectorized_elementwise_kernel<4, at::native::where_kernel_impl"
        "(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda()#3}::operator()() const"
        "::{lambda(float)#2}, "
        "std::array<char*, 4ul> >(int, at::native::where_kernel_impl(at::TensorIteratorBase&)::{lambda(float)#2})",
        "at::native::vectorized_elementwise_kernel<4, at::native::where_kernel_impl::lambda[float], Array<char*, 4>>",
    ),
    ("triton_poi_fused_add_cos_sin_0", "triton_poi_fused_add_cos_sin_17", "triton_poi_fused_add_cos_sin"),
    ("hcom_allReduce__501_0_1", "hcom_allReduce__868_12_1", "hcom_allReduce"),
    ("trans_TransData_12", "trans_TransData_7", "trans_TransData"),
    ("trans_TransData_16_MemSet", "trans_TransData_3_MemSet", "trans_TransData_MemSet"),
    ("atomic_memset-1_394_0", "atomic_memset-1_134_2208226_2_0", "atomic_memset"),
    ("hcom_batchSendRecv__128_3_1@6297232067196334501", "hcom_batchSendRecv__7_1", "hcom_batchSendRecv"),
    ("Default/network-Net/MatMul-op123", "Default/network-Net/MatMul-op7", "Default/network-Net/MatMul"),
    ("my_kernel_0d1d2de", "my_kernel_0d1d2de3", "my_kernel"),
    ("f(int) [clone .kd]", "void f(long)", "f"),
    (
        "## Call CompiledFxGraph fal4xpiah2v6blbfmwwonu52dvevbsmlh743q5tkclrt4gcqpzea ##",
        "## Call CompiledFxGraph fbl4xpiah2v6blbfmwwonu52dvevbsmlh743q5tkclrt4gcqpzea ##",
        "## Call CompiledFxGraph # ##",
    ),
    ("<object at 0x7f12ab34cd00>", "<object at 0x55d0ab34cd00>", "<object at 0x#>"),
)

DISTINCT = (
    ("triton_poi_fused_add_0", "triton_poi_fused_mul_0"),
    ("triton_red_fused_add_0", "triton_poi_fused_add_0"),
    ("volta_sgemm_128x64_nn", "volta_sgemm_128x64_nt"),
    ("void f<float, 4>(int)", "void f<double, 4>(int)"),
    ("g(It&)::{lambda(float)#1}", "g(It&)::{lambda(double)#1}"),
    ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pageable -> Device)"),
    ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(X)", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(X)"),
    ("igemm_bwd_gtcx3_nhwc_bf16_bt32x128x32", "igemm_bwd_gtcx3_nhwc_bf16_bt128x128x32"),
)


@pytest.mark.parametrize(("one", "other", "expected"), SAME)
def test_what_changes_from_build_to_build_vanishes(one, other, expected):
    assert canonical_name(one) == canonical_name(other) == expected


@pytest.mark.parametrize(("one", "other"), DISTINCT)
def test_distinct_kernels_stay_distinct(one, other):
    assert canonical_name(one) != canonical_name(other)


KERNELS = {
    "ampere_sgemm_128x64_nn": "matmul",
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_tn_align2>(Params)": "matmul",
    "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT": "matmul",
    "Cijk_Alik_Bljk_BBS_BH_MT64x64x64_MI16x16x16x1_SN": "matmul",
    "void cublasLt::splitKreduce_kernel<32, 16, int>(int)": "matmul",
    "triton_tem_fused_mm_12": "matmul",
    "void cudnn::detail::dgrad_engine<float, 512, 6>(int)": "convolution_backward",
    "volta_scudnn_128x64_relu_interior_nn_v1": "convolution_forward",
    "cudnn::winograd_nonfused::winogradForwardData4x4<float, float>": "convolution_forward",
    "igemm_wrw_gtcx3_nhwc_bf16_bx0": "convolution_backward",
    "void pytorch_flash::flash_fwd_kernel<Traits>(Params)": "flash_attention_forward",
    "void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Traits>(Params)": "flash_attention_backward",
    "fmha_cutlassF_bf16_aligned_64x64_rf_sm80": "flash_attention_forward",
    "void vllm::paged_attention_v2_kernel<float>(int)": "page_attention",
    "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float>(int)": "vector",
    "void at::native::vectorized_elementwise_kernel<4, AddFunctor<float>>(int)": "vector",
    "void at::native::reduce_kernel<512, 1, ReduceOp<float>>(int)": "vector",
    "triton_poi_fused_convolution_relu_0": "vector",
    "triton_red_fused_native_layer_norm_3": "vector",
    "void fbgemm_gpu::permute_2D_data_kernel<int>(int)": "vector",
    "aclnnInplaceCopy_TensorMoveAiCore_TensorMove": "tensor_move",
    "aclnnAdaptiveAvgPool2dBackward_AdaptiveAvgPool3dGradAiCore_AdaptiveAvgPool3dGrad": "vector",
    "some_vendor_address_kernel": "other",
}
OPS = {
    "aten::mm": "matmul",
    "aten::addmm": "matmul",
    "autograd::engine::evaluate_function: MmBackward0": "matmul",
    "aten::cudnn_convolution": "convolution_forward",
    "aten::cudnn_convolution_backward_input": "convolution_backward",
    "autograd::engine::evaluate_function: ConvolutionBackward0": "convolution_backward",
    "aten::_flash_attention_forward": "flash_attention_forward",
    "aten::_scaled_dot_product_efficient_attention_backward": "flash_attention_backward",
    "FlashAttnFunc": "flash_attention_forward",
    "npu::npu_fusion_attention": "flash_attention_forward",
    "npu::npu_mm_all_reduce_base": "mc2",
    "npu::npu_all_gather_base_mm": "mc2",
    "npu::npu_bmmV2": "matmul",
    "npu::npu_rms_norm": "",
    "aten::add_": "",
    "aten::convert_indices_from_csr_to_coo": "",
    "fbgemm::permute_2D_sparse_data": "",
    "DistributedDataParallel.forward": None,
    "autograd::engine::evaluate_function: AddBackward0": None,
}


@pytest.mark.parametrize(("name", "category"), KERNELS.items())
def test_the_name_of_a_kernel_says_its_category(name, category):
    assert category_of_kernel(name) == category
    assert category in CATEGORIES


@pytest.mark.parametrize(("name", "category"), OPS.items())
def test_the_name_of_an_op_says_the_category_of_its_kernels(name, category):
    assert category_of_op(name) == category


# name, type ("" at Level0), what stays
NPU_NAMES = (
    ("Conv2D12", "Conv2D", "Conv2D"),
    ("Conv2D12", "", "Conv2D"),
    ("Conv2DBackpropFilter75", "Conv2DBackpropFilterD", "Conv2DBackpropFilter"),
    ("Conv2DBackpropFilter10_MemSet", "MemSet", "Conv2DBackpropFilter_MemSet"),
    ("ReduceSum7", "ReduceSum", "ReduceSum"),
    ("AxpyV2102", "AxpyV2", "AxpyV2"),
    ("AxpyV2102", "", "AxpyV2"),
    ("LogSoftmaxV237", "", "LogSoftmaxV2"),
    ("MaxPoolGradWithArgmaxV172", "", "MaxPoolGradWithArgmaxV1"),
    ("TopKV241", "TopKD", "TopKV2"),
    ("TopKV241", "", "TopKV2"),
    ("Expm112", "Expm1", "Expm1"),
    ("Atan2105", "Atan2", "Atan2"),
    ("LayerNorm90", "LayerNormV3", "LayerNorm"),
    ("AdaptiveAvgPool2d24LeftBatchMatMulV2", "BatchMatMulV2", "AdaptiveAvgPool2dLeftBatchMatMulV2"),
    (
        "AdaptiveAvgPool2d24RightBatchMatMulV2AdaptiveAvgPool2d24Mul",
        "",
        "AdaptiveAvgPool2dRightBatchMatMulV2AdaptiveAvgPool2dMul",
    ),
    ("AdaptiveAvgPool2dGrad71Mul", "Mul", "AdaptiveAvgPool2dGradMul"),
    (
        "StatelessDropOutGenMask23/DSASTATELESSGENBITMASK",
        "DSAStatelessGenBitMask",
        "StatelessDropOutGenMask/DSASTATELESSGENBITMASK",
    ),
    # no running number: versions, dimensions, single-operator kernels, names that the type says are whole
    ("MatMulV2", "MatMulV2", "MatMulV2"),
    ("MatMulV3", "", "MatMulV3"),
    ("aclnnMm_MatMulV3Common_MatMulV3", "MatMulV3", "aclnnMm_MatMulV3Common_MatMulV3"),
    ("aclnnExpm1_Expm1AiCore_Expm1", "", "aclnnExpm1_Expm1AiCore_Expm1"),
    ("aclnnMaxDim_Max2AiCore_ArgMaxWithValue", "", "aclnnMaxDim_Max2AiCore_ArgMaxWithValue"),
    ("main_kernel2", "", "main_kernel2"),
    ("MyKernel2", "MyKernel2", "MyKernel2"),
    ("MyKernel2", "Other", "MyKernel2"),
)


@pytest.mark.parametrize(("name", "kernel_type", "expected"), NPU_NAMES)
def test_running_numbers_of_graph_ops_vanish(name, kernel_type, expected):
    assert canonical_name(name, kernel_type, npu=True) == expected


def test_a_number_at_the_end_of_a_name_stays_unless_the_capture_is_of_an_npu():
    assert canonical_name("Stage12") == "Stage12"


TYPES = {
    ("MatMulV2", "AI_CORE"): "matmul",
    ("BatchMatMulV2", "AI_CORE"): "matmul",
    ("GroupedMatmul", "MIX_AIC"): "matmul",
    ("Conv2D", "AI_CORE"): "convolution_forward",
    ("Conv2DBackpropFilterD", "AI_CORE"): "convolution_backward",
    ("Conv3DTranspose", "AI_CORE"): "convolution_forward",
    ("FlashAttentionScore", "MIX_AIC"): "flash_attention_forward",
    ("FlashAttentionScoreGrad", "MIX_AIC"): "flash_attention_backward",
    ("FusedInferAttentionScore", "MIX_AIC"): "flash_attention_forward",
    ("PagedAttentionOperation", "MIX_AIC"): "page_attention",
    ("MatmulAllReduce", "MIX_AIC"): "mc2",
    ("AllGatherMatmul", "MIX_AIC"): "mc2",
    ("MatmulReduceScatter", "MIX_AIC"): "mc2",
    ("TensorMove", "AI_VECTOR_CORE"): "tensor_move",
    ("TransData", "AI_VECTOR_CORE"): "vector_trans",
    ("Transpose", "AI_VECTOR_CORE"): "vector_trans",
    ("Cast", "AI_VECTOR_CORE"): "vector_trans",
    ("BroadcastTo", "AI_VECTOR_CORE"): "vector",
    ("MemSet", "AI_CORE"): "vector",
    ("TopKD", "AI_CORE"): "vector",
    ("SomethingNew", "AI_VECTOR_CORE"): "vector",
    ("SomethingNew", "MIX_AIV"): "vector",
    ("SomethingNew", "AI_CORE"): None,
    ("StatelessDropOutGenMask", "AI_CPU"): "ai_cpu",
}


@pytest.mark.parametrize(("kernel", "category"), TYPES.items())
def test_the_type_of_an_npu_kernel_says_its_category(kernel, category):
    assert category_of_type(*kernel) == category
    assert category is None or category in CATEGORIES


@pytest.mark.parametrize(
    "piece",
    [" ", "(", "<", "_", "0", "a", "_0", "(a", "[clone ", "[lambda()", "_GLOBAL__N__a", "mm_", "alltoall", ".kd"],
)
@pytest.mark.parametrize("start", ["", "triton_poi_", "hcom_a_"])
def test_a_name_of_200_000_characters_takes_no_time(start, piece):
    name = start + piece * (200_000 // len(piece)) + "x"
    begun = time.process_time()
    canonical_name(name, npu=True)
    category_of_kernel(name, "")
    category_of_op(name)
    category_of_type(name, "")
    is_communication(name, says=op_says(name))
    assert time.process_time() - begun < 1.0
