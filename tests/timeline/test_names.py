"""Canonical names: what varies from build to build and run to run goes, what tells kernels apart stays."""

from __future__ import annotations

import pytest

from tracker.timeline import CATEGORIES, canonical_name
from tracker.timeline.categories import category_of_kernel, category_of_op

SAME = (
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
