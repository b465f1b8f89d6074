	.text
	.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
	.amdhsa_code_object_version 5
	.p2align	2                               ; -- Begin function warpwire_f16x2_to_e4m3b15
	.type	warpwire_f16x2_to_e4m3b15,@function
warpwire_f16x2_to_e4m3b15:              ; @warpwire_f16x2_to_e4m3b15
; %bb.0:
	s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)
	s_mov_b32 s0, 0x3bbf3bbf
	v_and_b32_e32 v1, 0x7fff7fff, v0
	;;#ASMSTART
	v_pk_min_u16 v2, v1, s0
	;;#ASMEND
	s_mov_b32 s0, 0x800080
	;;#ASMSTART
	v_lshl_add_u32 v2, v2, 1, s0
	;;#ASMEND
	s_mov_b32 s0, 0x7f007f00
	;;#ASMSTART
	v_pk_add_u16 v3, v2, s0
	;;#ASMEND
	v_and_b32_e32 v0, v3, v0
	s_mov_b32 s1, 0x7c007c00
	;;#ASMSTART
	v_pk_sub_u16 v1, v1, s1 clamp
	;;#ASMEND
	s_mov_b32 s0, 0x80008000
	;;#ASMSTART
	v_and_or_b32 v0, v0, s0, v2
	;;#ASMEND
	s_mov_b32 s1, 0x10001
	;;#ASMSTART
	v_pk_min_u16 v1, v1, s1
	;;#ASMEND
	s_mov_b32 s1, 0
	;;#ASMSTART
	v_pk_sub_u16 v1, s1, v1
	;;#ASMEND
	;;#ASMSTART
	v_bfi_b32 v0, v1, s0, v0
	;;#ASMEND
	s_mov_b32 s0, 0xc0c0301
	;;#ASMSTART
	v_perm_b32 v0, v0, v0, s0
	;;#ASMEND
	s_setpc_b64 s[30:31]
.Lfunc_end0:
	.size	warpwire_f16x2_to_e4m3b15, .Lfunc_end0-warpwire_f16x2_to_e4m3b15
                                        ; -- End function
	.section	.AMDGPU.csdata,"",@progbits
; Function info:
; codeLenInByte = 152
; NumSgprs: 38
; NumVgprs: 4
; NumAgprs: 0
; TotalNumVgprs: 4
; ScratchSize: 0
; MemoryBound: 0
	.text
	.p2align	2                               ; -- Begin function warpwire_f16x4_to_e4m3b15
	.type	warpwire_f16x4_to_e4m3b15,@function
warpwire_f16x4_to_e4m3b15:              ; @warpwire_f16x4_to_e4m3b15
; %bb.0:
	s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)
	v_and_b32_e32 v2, 0x7fff7fff, v1
	s_mov_b32 s0, 0x3bbf3bbf
	;;#ASMSTART
	v_pk_min_u16 v3, v2, s0
	;;#ASMEND
	s_mov_b32 s4, 0x7c007c00
	;;#ASMSTART
	v_pk_sub_u16 v2, v2, s4 clamp
	;;#ASMEND
	s_mov_b32 s1, 0x800080
	;;#ASMSTART
	v_lshl_add_u32 v3, v3, 1, s1
	;;#ASMEND
	s_mov_b32 s2, 0x7f007f00
	;;#ASMSTART
	v_pk_add_u16 v4, v3, s2
	;;#ASMEND
	v_and_b32_e32 v1, v4, v1
	s_mov_b32 s5, 0x10001
	;;#ASMSTART
	v_pk_min_u16 v2, v2, s5
	;;#ASMEND
	s_mov_b32 s3, 0x80008000
	;;#ASMSTART
	v_and_or_b32 v1, v1, s3, v3
	;;#ASMEND
	s_mov_b32 s6, 0
	;;#ASMSTART
	v_pk_sub_u16 v2, s6, v2
	;;#ASMEND
	;;#ASMSTART
	v_bfi_b32 v1, v2, s3, v1
	;;#ASMEND
	v_and_b32_e32 v2, 0x7fff7fff, v0
	;;#ASMSTART
	v_pk_min_u16 v3, v2, s0
	;;#ASMEND
	;;#ASMSTART
	v_lshl_add_u32 v3, v3, 1, s1
	;;#ASMEND
	;;#ASMSTART
	v_pk_add_u16 v4, v3, s2
	;;#ASMEND
	v_and_b32_e32 v0, v4, v0
	;;#ASMSTART
	v_pk_sub_u16 v2, v2, s4 clamp
	;;#ASMEND
	;;#ASMSTART
	v_and_or_b32 v0, v0, s3, v3
	;;#ASMEND
	;;#ASMSTART
	v_pk_min_u16 v2, v2, s5
	;;#ASMEND
	;;#ASMSTART
	v_pk_sub_u16 v2, s6, v2
	;;#ASMEND
	;;#ASMSTART
	v_bfi_b32 v0, v2, s3, v0
	;;#ASMEND
	s_mov_b32 s0, 0x7050301
	;;#ASMSTART
	v_perm_b32 v0, v1, v0, s0
	;;#ASMEND
	s_setpc_b64 s[30:31]
.Lfunc_end1:
	.size	warpwire_f16x4_to_e4m3b15, .Lfunc_end1-warpwire_f16x4_to_e4m3b15
                                        ; -- End function
	.section	.AMDGPU.csdata,"",@progbits
; Function info:
; codeLenInByte = 228
; NumSgprs: 38
; NumVgprs: 5
; NumAgprs: 0
; TotalNumVgprs: 5
; ScratchSize: 0
; MemoryBound: 0
	.text
	.p2align	2                               ; -- Begin function warpwire_e4m3b15x2_to_f16
	.type	warpwire_e4m3b15x2_to_f16,@function
warpwire_e4m3b15x2_to_f16:              ; @warpwire_e4m3b15x2_to_f16
; %bb.0:
	s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)
	s_mov_b32 s0, 0x10c000c
	;;#ASMSTART
	v_perm_b32 v0, v0, v0, s0
	;;#ASMEND
	s_mov_b32 s0, 0x10001
	;;#ASMSTART
	v_pk_ashrrev_i16 v0, s0, v0
	;;#ASMEND
	v_and_b32_e32 v1, 0xbfffbfff, v0
	v_and_b32_e32 v0, 0x3fff3fff, v0
	s_mov_b32 s0, 0x44004400
	;;#ASMSTART
	v_pk_add_u16 v2, v0, s0
	;;#ASMEND
	s_mov_b32 s0, 0x80008000
	;;#ASMSTART
	v_pk_sub_u16 v0, s0, v0
	;;#ASMEND
	;;#ASMSTART
	v_and_or_b32 v0, v1, v0, v2
	;;#ASMEND
	s_mov_b32 s0, 0xf000f
	;;#ASMSTART
	v_pk_ashrrev_i16 v0, s0, v0
	;;#ASMEND
	s_mov_b32 s0, 0x7fff7fff
	;;#ASMSTART
	v_bfi_b32 v0, v0, s0, v1
	;;#ASMEND
	s_setpc_b64 s[30:31]
.Lfunc_end2:
	.size	warpwire_e4m3b15x2_to_f16, .Lfunc_end2-warpwire_e4m3b15x2_to_f16
                                        ; -- End function
	.section	.AMDGPU.csdata,"",@progbits
; Function info:
; codeLenInByte = 128
; NumSgprs: 38
; NumVgprs: 3
; NumAgprs: 0
; TotalNumVgprs: 3
; ScratchSize: 0
; MemoryBound: 0
	.text
	.p2align	2                               ; -- Begin function warpwire_e4m3b15x4_to_f16
	.type	warpwire_e4m3b15x4_to_f16,@function
warpwire_e4m3b15x4_to_f16:              ; @warpwire_e4m3b15x4_to_f16
; %bb.0:
	s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)
	s_mov_b32 s0, 0x10c000c
	;;#ASMSTART
	v_perm_b32 v1, v0, v0, s0
	;;#ASMEND
	s_mov_b32 s0, 0x10001
	;;#ASMSTART
	v_pk_ashrrev_i16 v1, s0, v1
	;;#ASMEND
	v_and_b32_e32 v2, 0xbfffbfff, v1
	v_and_b32_e32 v1, 0x3fff3fff, v1
	s_mov_b32 s1, 0x44004400
	;;#ASMSTART
	v_pk_add_u16 v3, v1, s1
	;;#ASMEND
	s_mov_b32 s2, 0x80008000
	;;#ASMSTART
	v_pk_sub_u16 v1, s2, v1
	;;#ASMEND
	;;#ASMSTART
	v_and_or_b32 v1, v2, v1, v3
	;;#ASMEND
	s_mov_b32 s5, 0x30c020c
	;;#ASMSTART
	v_perm_b32 v0, v0, v0, s5
	;;#ASMEND
	s_mov_b32 s3, 0xf000f
	;;#ASMSTART
	v_pk_ashrrev_i16 v1, s3, v1
	;;#ASMEND
	;;#ASMSTART
	v_pk_ashrrev_i16 v0, s0, v0
	;;#ASMEND
	s_mov_b32 s4, 0x7fff7fff
	;;#ASMSTART
	v_bfi_b32 v2, v1, s4, v2
	;;#ASMEND
	v_and_b32_e32 v1, 0xbfffbfff, v0
	v_and_b32_e32 v0, 0x3fff3fff, v0
	;;#ASMSTART
	v_pk_add_u16 v3, v0, s1
	;;#ASMEND
	;;#ASMSTART
	v_pk_sub_u16 v0, s2, v0
	;;#ASMEND
	;;#ASMSTART
	v_and_or_b32 v0, v1, v0, v3
	;;#ASMEND
	;;#ASMSTART
	v_pk_ashrrev_i16 v0, s3, v0
	;;#ASMEND
	;;#ASMSTART
	v_bfi_b32 v1, v0, s4, v1
	;;#ASMEND
	v_mov_b32_e32 v0, v2
	s_setpc_b64 s[30:31]
.Lfunc_end3:
	.size	warpwire_e4m3b15x4_to_f16, .Lfunc_end3-warpwire_e4m3b15x4_to_f16
                                        ; -- End function
	.section	.AMDGPU.csdata,"",@progbits
; Function info:
; codeLenInByte = 212
; NumSgprs: 38
; NumVgprs: 4
; NumAgprs: 0
; TotalNumVgprs: 4
; ScratchSize: 0
; MemoryBound: 0
	.text
	.protected	warpwire_f16_to_e4m3b15 ; -- Begin function warpwire_f16_to_e4m3b15
	.globl	warpwire_f16_to_e4m3b15
	.p2align	8
	.type	warpwire_f16_to_e4m3b15,@function
warpwire_f16_to_e4m3b15:                ; @warpwire_f16_to_e4m3b15
; %bb.0:
	s_load_dwordx8 s[4:11], s[0:1], 0x0
	s_mov_b32 s1, 0
	s_mov_b32 s13, s1
	v_mov_b32_e32 v1, 0
	v_mov_b32_e32 v2, s2
	s_waitcnt lgkmcnt(0)
	s_and_b32 s0, s4, 7
	s_and_b32 s12, s6, 3
	s_or_b64 s[12:13], s[0:1], s[12:13]
	s_lshr_b64 s[16:17], s[8:9], 2
	s_cmp_eq_u64 s[12:13], 0
	s_cselect_b32 s13, s17, 0
	s_cselect_b32 s12, s16, 0
	v_mad_u64_u32 v[0:1], s[2:3], s10, v2, v[0:1]
	s_mov_b64 s[14:15], 0
	v_cmp_gt_u64_e32 vcc, s[12:13], v[0:1]
	s_and_saveexec_b64 s[2:3], vcc
	s_cbranch_execz .LBB4_3
; %bb.1:
	s_mov_b32 s0, s11
	v_lshl_add_u64 v[2:3], v[0:1], 3, s[4:5]
	s_lshl_b64 s[16:17], s[0:1], 3
	v_lshl_add_u64 v[4:5], v[0:1], 2, s[6:7]
	s_lshl_b64 s[18:19], s[0:1], 2
	s_mov_b32 s10, 0x3bbf3bbf
	s_mov_b32 s20, 0x800080
	s_mov_b32 s21, 0x7f007f00
	s_mov_b32 s22, 0x80008000
	s_mov_b32 s23, 0x7c007c00
	s_mov_b32 s24, 0x10001
	s_mov_b32 s25, 0x7050301
	v_mov_b64_e32 v[6:7], v[0:1]
.LBB4_2:                                ; =>This Inner Loop Header: Depth=1
	global_load_dwordx2 v[8:9], v[2:3], off
	v_lshl_add_u64 v[6:7], v[6:7], 0, s[0:1]
	v_cmp_le_u64_e32 vcc, s[12:13], v[6:7]
	v_lshl_add_u64 v[2:3], v[2:3], 0, s[16:17]
	s_or_b64 s[14:15], vcc, s[14:15]
	s_waitcnt vmcnt(0)
	v_and_b32_e32 v11, 0x7fff7fff, v8
	;;#ASMSTART
	v_pk_min_u16 v13, v11, s10
	;;#ASMEND
	v_and_b32_e32 v10, 0x7fff7fff, v9
	;;#ASMSTART
	v_pk_min_u16 v12, v10, s10
	;;#ASMEND
	;;#ASMSTART
	v_pk_sub_u16 v11, v11, s23 clamp
	;;#ASMEND
	;;#ASMSTART
	v_lshl_add_u32 v13, v13, 1, s20
	;;#ASMEND
	;;#ASMSTART
	v_pk_add_u16 v15, v13, s21
	;;#ASMEND
	v_and_b32_e32 v8, v15, v8
	;;#ASMSTART
	v_pk_sub_u16 v10, v10, s23 clamp
	;;#ASMEND
	;;#ASMSTART
	v_lshl_add_u32 v12, v12, 1, s20
	;;#ASMEND
	;;#ASMSTART
	v_pk_min_u16 v11, v11, s24
	;;#ASMEND
	;;#ASMSTART
	v_pk_add_u16 v14, v12, s21
	;;#ASMEND
	v_and_b32_e32 v9, v14, v9
	;;#ASMSTART
	v_and_or_b32 v8, v8, s22, v13
	;;#ASMEND
	;;#ASMSTART
	v_pk_min_u16 v10, v10, s24
	;;#ASMEND
	;;#ASMSTART
	v_pk_sub_u16 v11, s1, v11
	;;#ASMEND
	;;#ASMSTART
	v_and_or_b32 v9, v9, s22, v12
	;;#ASMEND
	;;#ASMSTART
	v_bfi_b32 v8, v11, s22, v8
	;;#ASMEND
	;;#ASMSTART
	v_pk_sub_u16 v10, s1, v10
	;;#ASMEND
	;;#ASMSTART
	v_bfi_b32 v9, v10, s22, v9
	;;#ASMEND
	;;#ASMSTART
	v_perm_b32 v8, v9, v8, s25
	;;#ASMEND
	global_store_dword v[4:5], v8, off
	v_lshl_add_u64 v[4:5], v[4:5], 0, s[18:19]
	s_andn2_b64 exec, exec, s[14:15]
	s_cbranch_execnz .LBB4_2
.LBB4_3:
	s_or_b64 exec, exec, s[2:3]
	v_lshl_add_u64 v[0:1], s[12:13], 2, v[0:1]
	v_cmp_gt_u64_e32 vcc, s[8:9], v[0:1]
	s_and_saveexec_b64 s[0:1], vcc
	s_cbranch_execz .LBB4_6
; %bb.4:
	s_mov_b32 s1, 0
	s_mov_b32 s0, s11
	v_lshl_add_u64 v[2:3], v[0:1], 1, s[4:5]
	s_lshl_b64 s[2:3], s[0:1], 1
	s_mov_b64 s[4:5], 0
	s_mov_b32 s10, 0x3bbf3bbf
	s_mov_b32 s11, 0x800080
	s_mov_b32 s12, 0x7f007f00
	s_mov_b32 s13, 0x80008000
	s_mov_b32 s14, 0x7c007c00
	s_mov_b32 s15, 0x10001
	s_mov_b32 s16, 0xc0c0301
.LBB4_5:                                ; =>This Inner Loop Header: Depth=1
	global_load_ushort v6, v[2:3], off
	v_lshl_add_u64 v[4:5], s[6:7], 0, v[0:1]
	v_lshl_add_u64 v[0:1], v[0:1], 0, s[0:1]
	v_cmp_le_u64_e32 vcc, s[8:9], v[0:1]
	v_lshl_add_u64 v[2:3], v[2:3], 0, s[2:3]
	s_or_b64 s[4:5], vcc, s[4:5]
	s_waitcnt vmcnt(0)
	v_and_b32_e32 v7, 0x7fff, v6
	;;#ASMSTART
	v_pk_min_u16 v8, v7, s10
	;;#ASMEND
	;;#ASMSTART
	v_pk_sub_u16 v7, v7, s14 clamp
	;;#ASMEND
	;;#ASMSTART
	v_lshl_add_u32 v8, v8, 1, s11
	;;#ASMEND
	;;#ASMSTART
	v_pk_add_u16 v9, v8, s12
	;;#ASMEND
	v_and_b32_e32 v6, v9, v6
	;;#ASMSTART
	v_pk_min_u16 v7, v7, s15
	;;#ASMEND
	;;#ASMSTART
	v_and_or_b32 v6, v6, s13, v8
	;;#ASMEND
	;;#ASMSTART
	v_pk_sub_u16 v7, s1, v7
	;;#ASMEND
	;;#ASMSTART
	v_bfi_b32 v6, v7, s13, v6
	;;#ASMEND
	;;#ASMSTART
	v_perm_b32 v6, v6, v6, s16
	;;#ASMEND
	global_store_byte v[4:5], v6, off
	s_andn2_b64 exec, exec, s[4:5]
	s_cbranch_execnz .LBB4_5
.LBB4_6:
	s_endpgm
	.section	.rodata,"a",@progbits
	.p2align	6, 0x0
	.amdhsa_kernel warpwire_f16_to_e4m3b15
		.amdhsa_group_segment_fixed_size 0
		.amdhsa_private_segment_fixed_size 0
		.amdhsa_kernarg_size 32
		.amdhsa_user_sgpr_count 2
		.amdhsa_user_sgpr_dispatch_ptr 0
		.amdhsa_user_sgpr_queue_ptr 0
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_dispatch_id 0
		.amdhsa_user_sgpr_kernarg_preload_length 0
		.amdhsa_user_sgpr_kernarg_preload_offset 0
		.amdhsa_user_sgpr_private_segment_size 0
		.amdhsa_uses_dynamic_stack 0
		.amdhsa_enable_private_segment 0
		.amdhsa_system_sgpr_workgroup_id_x 1
		.amdhsa_system_sgpr_workgroup_id_y 0
		.amdhsa_system_sgpr_workgroup_id_z 0
		.amdhsa_system_sgpr_workgroup_info 0
		.amdhsa_system_vgpr_workitem_id 0
		.amdhsa_next_free_vgpr 16
		.amdhsa_next_free_sgpr 26
		.amdhsa_accum_offset 16
		.amdhsa_reserve_vcc 1
		.amdhsa_reserve_xnack_mask 1
		.amdhsa_float_round_mode_32 0
		.amdhsa_float_round_mode_16_64 0
		.amdhsa_float_denorm_mode_32 3
		.amdhsa_float_denorm_mode_16_64 3
		.amdhsa_dx10_clamp 1
		.amdhsa_ieee_mode 1
		.amdhsa_fp16_overflow 0
		.amdhsa_tg_split 0
		.amdhsa_exception_fp_ieee_invalid_op 0
		.amdhsa_exception_fp_denorm_src 0
		.amdhsa_exception_fp_ieee_div_zero 0
		.amdhsa_exception_fp_ieee_overflow 0
		.amdhsa_exception_fp_ieee_underflow 0
		.amdhsa_exception_fp_ieee_inexact 0
		.amdhsa_exception_int_div_zero 0
	.end_amdhsa_kernel
	.text
.Lfunc_end4:
	.size	warpwire_f16_to_e4m3b15, .Lfunc_end4-warpwire_f16_to_e4m3b15
                                        ; -- End function
	.section	.AMDGPU.csdata,"",@progbits
; Kernel info:
; codeLenInByte = 640
; NumSgprs: 32
; NumVgprs: 16
; NumAgprs: 0
; TotalNumVgprs: 16
; ScratchSize: 0
; MemoryBound: 0
; FloatMode: 240
; IeeeMode: 1
; LDSByteSize: 0 bytes/workgroup (compile time only)
; SGPRBlocks: 3
; VGPRBlocks: 1
; NumSGPRsForWavesPerEU: 32
; NumVGPRsForWavesPerEU: 16
; AccumOffset: 16
; Occupancy: 8
; WaveLimiterHint : 0
; COMPUTE_PGM_RSRC2:SCRATCH_EN: 0
; COMPUTE_PGM_RSRC2:USER_SGPR: 2
; COMPUTE_PGM_RSRC2:TRAP_HANDLER: 0
; COMPUTE_PGM_RSRC2:TGID_X_EN: 1
; COMPUTE_PGM_RSRC2:TGID_Y_EN: 0
; COMPUTE_PGM_RSRC2:TGID_Z_EN: 0
; COMPUTE_PGM_RSRC2:TIDIG_COMP_CNT: 0
; COMPUTE_PGM_RSRC3_GFX90A:ACCUM_OFFSET: 3
; COMPUTE_PGM_RSRC3_GFX90A:TG_SPLIT: 0
	.text
	.protected	warpwire_e4m3b15_to_f16 ; -- Begin function warpwire_e4m3b15_to_f16
	.globl	warpwire_e4m3b15_to_f16
	.p2align	8
	.type	warpwire_e4m3b15_to_f16,@function
warpwire_e4m3b15_to_f16:                ; @warpwire_e4m3b15_to_f16
; %bb.0:
	s_load_dwordx8 s[4:11], s[0:1], 0x0
	s_mov_b32 s1, 0
	s_mov_b32 s13, s1
	v_mov_b32_e32 v1, 0
	v_mov_b32_e32 v2, s2
	s_waitcnt lgkmcnt(0)
	s_and_b32 s0, s4, 3
	s_and_b32 s12, s6, 7
	s_or_b64 s[12:13], s[0:1], s[12:13]
	s_lshr_b64 s[16:17], s[8:9], 2
	s_cmp_eq_u64 s[12:13], 0
	s_cselect_b32 s13, s17, 0
	s_cselect_b32 s12, s16, 0
	v_mad_u64_u32 v[0:1], s[2:3], s10, v2, v[0:1]
	s_mov_b64 s[14:15], 0
	v_cmp_gt_u64_e32 vcc, s[12:13], v[0:1]
	s_and_saveexec_b64 s[2:3], vcc
	s_cbranch_execz .LBB5_3
; %bb.1:
	s_mov_b32 s0, s11
	v_lshl_add_u64 v[2:3], v[0:1], 2, s[4:5]
	s_lshl_b64 s[16:17], s[0:1], 2
	v_lshl_add_u64 v[4:5], v[0:1], 3, s[6:7]
	s_lshl_b64 s[18:19], s[0:1], 3
	s_mov_b32 s10, 0x10c000c
	s_mov_b32 s20, 0x10001
	s_mov_b32 s21, 0x44004400
	s_mov_b32 s22, 0x80008000
	s_mov_b32 s23, 0xf000f
	s_mov_b32 s24, 0x7fff7fff
	s_mov_b32 s25, 0x30c020c
	v_mov_b64_e32 v[6:7], v[0:1]
.LBB5_2:                                ; =>This Inner Loop Header: Depth=1
	global_load_dword v8, v[2:3], off
	s_waitcnt vmcnt(0)
	;;#ASMSTART
	v_perm_b32 v9, v8, v8, s10
	;;#ASMEND
	;;#ASMSTART
	v_perm_b32 v8, v8, v8, s25
	;;#ASMEND
	;;#ASMSTART
	v_pk_ashrrev_i16 v9, s20, v9
	;;#ASMEND
	;;#ASMSTART
	v_pk_ashrrev_i16 v8, s20, v8
	;;#ASMEND
	v_and_b32_e32 v10, 0xbfffbfff, v9
	v_and_b32_e32 v9, 0x3fff3fff, v9
	v_and_b32_e32 v11, 0xbfffbfff, v8
	v_and_b32_e32 v8, 0x3fff3fff, v8
	;;#ASMSTART
	v_pk_add_u16 v12, v9, s21
	;;#ASMEND
	;;#ASMSTART
	v_pk_sub_u16 v9, s22, v9
	;;#ASMEND
	v_lshl_add_u64 v[6:7], v[6:7], 0, s[0:1]
	;;#ASMSTART
	v_pk_add_u16 v13, v8, s21
	;;#ASMEND
	;;#ASMSTART
	v_pk_sub_u16 v8, s22, v8
	;;#ASMEND
	;;#ASMSTART
	v_and_or_b32 v9, v10, v9, v12
	;;#ASMEND
	v_cmp_le_u64_e32 vcc, s[12:13], v[6:7]
	;;#ASMSTART
	v_and_or_b32 v8, v11, v8, v13
	;;#ASMEND
	;;#ASMSTART
	v_pk_ashrrev_i16 v9, s23, v9
	;;#ASMEND
	v_lshl_add_u64 v[2:3], v[2:3], 0, s[16:17]
	s_or_b64 s[14:15], vcc, s[14:15]
	;;#ASMSTART
	v_pk_ashrrev_i16 v12, s23, v8
	;;#ASMEND
	;;#ASMSTART
	v_bfi_b32 v8, v9, s24, v10
	;;#ASMEND
	;;#ASMSTART
	v_bfi_b32 v9, v12, s24, v11
	;;#ASMEND
	global_store_dwordx2 v[4:5], v[8:9], off
	v_lshl_add_u64 v[4:5], v[4:5], 0, s[18:19]
	s_andn2_b64 exec, exec, s[14:15]
	s_cbranch_execnz .LBB5_2
.LBB5_3:
	s_or_b64 exec, exec, s[2:3]
	v_lshl_add_u64 v[0:1], s[12:13], 2, v[0:1]
	v_cmp_gt_u64_e32 vcc, s[8:9], v[0:1]
	s_and_saveexec_b64 s[0:1], vcc
	s_cbranch_execz .LBB5_6
; %bb.4:
	s_mov_b32 s1, 0
	s_mov_b32 s0, s11
	v_lshl_add_u64 v[2:3], v[0:1], 1, s[6:7]
	s_lshl_b64 s[2:3], s[0:1], 1
	s_mov_b64 s[6:7], 0
	s_mov_b32 s10, 0x10c000c
	s_mov_b32 s11, 0x10001
	s_mov_b32 s12, 0x44004400
	s_mov_b32 s13, 0x80008000
	s_mov_b32 s14, 0xf000f
	s_mov_b32 s15, 0x7fff7fff
.LBB5_5:                                ; =>This Inner Loop Header: Depth=1
	v_lshl_add_u64 v[4:5], s[4:5], 0, v[0:1]
	global_load_ubyte v4, v[4:5], off
	s_waitcnt vmcnt(0)
	;;#ASMSTART
	v_perm_b32 v4, v4, v4, s10
	;;#ASMEND
	;;#ASMSTART
	v_pk_ashrrev_i16 v4, s11, v4
	;;#ASMEND
	v_and_b32_e32 v5, 0xbfffbfff, v4
	v_and_b32_e32 v4, 0x3fff3fff, v4
	;;#ASMSTART
	v_pk_add_u16 v6, v4, s12
	;;#ASMEND
	;;#ASMSTART
	v_pk_sub_u16 v4, s13, v4
	;;#ASMEND
	v_lshl_add_u64 v[0:1], v[0:1], 0, s[0:1]
	;;#ASMSTART
	v_and_or_b32 v4, v5, v4, v6
	;;#ASMEND
	v_cmp_le_u64_e32 vcc, s[8:9], v[0:1]
	;;#ASMSTART
	v_pk_ashrrev_i16 v4, s14, v4
	;;#ASMEND
	s_or_b64 s[6:7], vcc, s[6:7]
	;;#ASMSTART
	v_bfi_b32 v4, v4, s15, v5
	;;#ASMEND
	global_store_short v[2:3], v4, off
	v_lshl_add_u64 v[2:3], v[2:3], 0, s[2:3]
	s_andn2_b64 exec, exec, s[6:7]
	s_cbranch_execnz .LBB5_5
.LBB5_6:
	s_endpgm
	.section	.rodata,"a",@progbits
	.p2align	6, 0x0
	.amdhsa_kernel warpwire_e4m3b15_to_f16
		.amdhsa_group_segment_fixed_size 0
		.amdhsa_private_segment_fixed_size 0
		.amdhsa_kernarg_size 32
		.amdhsa_user_sgpr_count 2
		.amdhsa_user_sgpr_dispatch_ptr 0
		.amdhsa_user_sgpr_queue_ptr 0
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_dispatch_id 0
		.amdhsa_user_sgpr_kernarg_preload_length 0
		.amdhsa_user_sgpr_kernarg_preload_offset 0
		.amdhsa_user_sgpr_private_segment_size 0
		.amdhsa_uses_dynamic_stack 0
		.amdhsa_enable_private_segment 0
		.amdhsa_system_sgpr_workgroup_id_x 1
		.amdhsa_system_sgpr_workgroup_id_y 0
		.amdhsa_system_sgpr_workgroup_id_z 0
		.amdhsa_system_sgpr_workgroup_info 0
		.amdhsa_system_vgpr_workitem_id 0
		.amdhsa_next_free_vgpr 14
		.amdhsa_next_free_sgpr 26
		.amdhsa_accum_offset 16
		.amdhsa_reserve_vcc 1
		.amdhsa_reserve_xnack_mask 1
		.amdhsa_float_round_mode_32 0
		.amdhsa_float_round_mode_16_64 0
		.amdhsa_float_denorm_mode_32 3
		.amdhsa_float_denorm_mode_16_64 3
		.amdhsa_dx10_clamp 1
		.amdhsa_ieee_mode 1
		.amdhsa_fp16_overflow 0
		.amdhsa_tg_split 0
		.amdhsa_exception_fp_ieee_invalid_op 0
		.amdhsa_exception_fp_denorm_src 0
		.amdhsa_exception_fp_ieee_div_zero 0
		.amdhsa_exception_fp_ieee_overflow 0
		.amdhsa_exception_fp_ieee_underflow 0
		.amdhsa_exception_fp_ieee_inexact 0
		.amdhsa_exception_int_div_zero 0
	.end_amdhsa_kernel
	.text
.Lfunc_end5:
	.size	warpwire_e4m3b15_to_f16, .Lfunc_end5-warpwire_e4m3b15_to_f16
                                        ; -- End function
	.section	.AMDGPU.csdata,"",@progbits
; Kernel info:
; codeLenInByte = 604
; NumSgprs: 32
; NumVgprs: 14
; NumAgprs: 0
; TotalNumVgprs: 14
; ScratchSize: 0
; MemoryBound: 0
; FloatMode: 240
; IeeeMode: 1
; LDSByteSize: 0 bytes/workgroup (compile time only)
; SGPRBlocks: 3
; VGPRBlocks: 1
; NumSGPRsForWavesPerEU: 32
; NumVGPRsForWavesPerEU: 14
; AccumOffset: 16
; Occupancy: 8
; WaveLimiterHint : 0
; COMPUTE_PGM_RSRC2:SCRATCH_EN: 0
; COMPUTE_PGM_RSRC2:USER_SGPR: 2
; COMPUTE_PGM_RSRC2:TRAP_HANDLER: 0
; COMPUTE_PGM_RSRC2:TGID_X_EN: 1
; COMPUTE_PGM_RSRC2:TGID_Y_EN: 0
; COMPUTE_PGM_RSRC2:TGID_Z_EN: 0
; COMPUTE_PGM_RSRC2:TIDIG_COMP_CNT: 0
; COMPUTE_PGM_RSRC3_GFX90A:ACCUM_OFFSET: 3
; COMPUTE_PGM_RSRC3_GFX90A:TG_SPLIT: 0
	.text
	.p2align	2                               ; -- Begin function warpwire_f16x2_to_e4m3b15_extended
	.type	warpwire_f16x2_to_e4m3b15_extended,@function
warpwire_f16x2_to_e4m3b15_extended:     ; @warpwire_f16x2_to_e4m3b15_extended
; %bb.0:
	s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)
	v_and_b32_e32 v1, 0x7fff7fff, v0
	s_mov_b32 s0, 0x3fbf3fbf
	;;#ASMSTART
	v_pk_min_u16 v1, v1, s0
	;;#ASMEND
	s_mov_b32 s0, 0x800080
	;;#ASMSTART
	v_lshl_add_u32 v1, v1, 1, s0
	;;#ASMEND
	s_mov_b32 s0, 0x80008000
	;;#ASMSTART
	v_bfi_b32 v0, s0, v0, v1
	;;#ASMEND
	s_mov_b32 s0, 0xc0c0301
	;;#ASMSTART
	v_perm_b32 v0, v0, v0, s0
	;;#ASMEND
	s_setpc_b64 s[30:31]
.Lfunc_end6:
	.size	warpwire_f16x2_to_e4m3b15_extended, .Lfunc_end6-warpwire_f16x2_to_e4m3b15_extended
                                        ; -- End function
	.section	.AMDGPU.csdata,"",@progbits
; Function info:
; codeLenInByte = 80
; NumSgprs: 38
; NumVgprs: 2
; NumAgprs: 0
; TotalNumVgprs: 2
; ScratchSize: 0
; MemoryBound: 0
	.text
	.p2align	2                               ; -- Begin function warpwire_f16x4_to_e4m3b15_extended
	.type	warpwire_f16x4_to_e4m3b15_extended,@function
warpwire_f16x4_to_e4m3b15_extended:     ; @warpwire_f16x4_to_e4m3b15_extended
; %bb.0:
	s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)
	v_and_b32_e32 v2, 0x7fff7fff, v1
	s_mov_b32 s0, 0x3fbf3fbf
	;;#ASMSTART
	v_pk_min_u16 v2, v2, s0
	;;#ASMEND
	s_mov_b32 s1, 0x800080
	;;#ASMSTART
	v_lshl_add_u32 v2, v2, 1, s1
	;;#ASMEND
	s_mov_b32 s2, 0x80008000
	;;#ASMSTART
	v_bfi_b32 v1, s2, v1, v2
	;;#ASMEND
	v_and_b32_e32 v2, 0x7fff7fff, v0
	;;#ASMSTART
	v_pk_min_u16 v2, v2, s0
	;;#ASMEND
	;;#ASMSTART
	v_lshl_add_u32 v2, v2, 1, s1
	;;#ASMEND
	;;#ASMSTART
	v_bfi_b32 v0, s2, v0, v2
	;;#ASMEND
	s_mov_b32 s0, 0x7050301
	;;#ASMSTART
	v_perm_b32 v0, v1, v0, s0
	;;#ASMEND
	s_setpc_b64 s[30:31]
.Lfunc_end7:
	.size	warpwire_f16x4_to_e4m3b15_extended, .Lfunc_end7-warpwire_f16x4_to_e4m3b15_extended
                                        ; -- End function
	.section	.AMDGPU.csdata,"",@progbits
; Function info:
; codeLenInByte = 112
; NumSgprs: 38
; NumVgprs: 3
; NumAgprs: 0
; TotalNumVgprs: 3
; ScratchSize: 0
; MemoryBound: 0
	.text
	.p2align	2                               ; -- Begin function warpwire_e4m3b15_extendedx2_to_f16
	.type	warpwire_e4m3b15_extendedx2_to_f16,@function
warpwire_e4m3b15_extendedx2_to_f16:     ; @warpwire_e4m3b15_extendedx2_to_f16
; %bb.0:
	s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)
	s_mov_b32 s0, 0x10c000c
	;;#ASMSTART
	v_perm_b32 v0, v0, v0, s0
	;;#ASMEND
	s_mov_b32 s0, 0x10001
	;;#ASMSTART
	v_pk_ashrrev_i16 v0, s0, v0
	;;#ASMEND
	v_and_b32_e32 v0, 0xbfffbfff, v0
	s_setpc_b64 s[30:31]
.Lfunc_end8:
	.size	warpwire_e4m3b15_extendedx2_to_f16, .Lfunc_end8-warpwire_e4m3b15_extendedx2_to_f16
                                        ; -- End function
	.section	.AMDGPU.csdata,"",@progbits
; Function info:
; codeLenInByte = 48
; NumSgprs: 38
; NumVgprs: 1
; NumAgprs: 0
; TotalNumVgprs: 1
; ScratchSize: 0
; MemoryBound: 0
	.text
	.p2align	2                               ; -- Begin function warpwire_e4m3b15_extendedx4_to_f16
	.type	warpwire_e4m3b15_extendedx4_to_f16,@function
warpwire_e4m3b15_extendedx4_to_f16:     ; @warpwire_e4m3b15_extendedx4_to_f16
; %bb.0:
	s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)
	s_mov_b32 s0, 0x10c000c
	;;#ASMSTART
	v_perm_b32 v1, v0, v0, s0
	;;#ASMEND
	s_mov_b32 s1, 0x30c020c
	;;#ASMSTART
	v_perm_b32 v0, v0, v0, s1
	;;#ASMEND
	s_mov_b32 s0, 0x10001
	;;#ASMSTART
	v_pk_ashrrev_i16 v1, s0, v1
	;;#ASMEND
	v_and_b32_e32 v2, 0xbfffbfff, v1
	;;#ASMSTART
	v_pk_ashrrev_i16 v0, s0, v0
	;;#ASMEND
	v_and_b32_e32 v1, 0xbfffbfff, v0
	v_mov_b32_e32 v0, v2
	s_setpc_b64 s[30:31]
.Lfunc_end9:
	.size	warpwire_e4m3b15_extendedx4_to_f16, .Lfunc_end9-warpwire_e4m3b15_extendedx4_to_f16
                                        ; -- End function
	.section	.AMDGPU.csdata,"",@progbits
; Function info:
; codeLenInByte = 84
; NumSgprs: 38
; NumVgprs: 3
; NumAgprs: 0
; TotalNumVgprs: 3
; ScratchSize: 0
; MemoryBound: 0
	.text
	.protected	warpwire_f16_to_e4m3b15_extended ; -- Begin function warpwire_f16_to_e4m3b15_extended
	.globl	warpwire_f16_to_e4m3b15_extended
	.p2align	8
	.type	warpwire_f16_to_e4m3b15_extended,@function
warpwire_f16_to_e4m3b15_extended:       ; @warpwire_f16_to_e4m3b15_extended
; %bb.0:
	s_load_dwordx8 s[4:11], s[0:1], 0x0
	s_mov_b32 s1, 0
	s_mov_b32 s13, s1
	v_mov_b32_e32 v1, 0
	v_mov_b32_e32 v2, s2
	s_waitcnt lgkmcnt(0)
	s_and_b32 s0, s4, 7
	s_and_b32 s12, s6, 3
	s_or_b64 s[12:13], s[0:1], s[12:13]
	s_lshr_b64 s[16:17], s[8:9], 2
	s_cmp_eq_u64 s[12:13], 0
	s_cselect_b32 s13, s17, 0
	s_cselect_b32 s12, s16, 0
	v_mad_u64_u32 v[0:1], s[2:3], s10, v2, v[0:1]
	s_mov_b64 s[14:15], 0
	v_cmp_gt_u64_e32 vcc, s[12:13], v[0:1]
	s_and_saveexec_b64 s[2:3], vcc
	s_cbranch_execz .LBB10_3
; %bb.1:
	s_mov_b32 s0, s11
	v_lshl_add_u64 v[2:3], v[0:1], 3, s[4:5]
	s_lshl_b64 s[16:17], s[0:1], 3
	v_lshl_add_u64 v[4:5], v[0:1], 2, s[6:7]
	s_lshl_b64 s[18:19], s[0:1], 2
	s_mov_b32 s10, 0x3fbf3fbf
	s_mov_b32 s20, 0x800080
	s_mov_b32 s21, 0x80008000
	s_mov_b32 s22, 0x7050301
	v_mov_b64_e32 v[6:7], v[0:1]
.LBB10_2:                               ; =>This Inner Loop Header: Depth=1
	global_load_dwordx2 v[8:9], v[2:3], off
	v_lshl_add_u64 v[6:7], v[6:7], 0, s[0:1]
	v_cmp_le_u64_e32 vcc, s[12:13], v[6:7]
	v_lshl_add_u64 v[2:3], v[2:3], 0, s[16:17]
	s_or_b64 s[14:15], vcc, s[14:15]
	s_waitcnt vmcnt(0)
	v_and_b32_e32 v11, 0x7fff7fff, v8
	v_and_b32_e32 v10, 0x7fff7fff, v9
	;;#ASMSTART
	v_pk_min_u16 v11, v11, s10
	;;#ASMEND
	;;#ASMSTART
	v_pk_min_u16 v10, v10, s10
	;;#ASMEND
	;;#ASMSTART
	v_lshl_add_u32 v11, v11, 1, s20
	;;#ASMEND
	;;#ASMSTART
	v_bfi_b32 v8, s21, v8, v11
	;;#ASMEND
	;;#ASMSTART
	v_lshl_add_u32 v10, v10, 1, s20
	;;#ASMEND
	;;#ASMSTART
	v_bfi_b32 v9, s21, v9, v10
	;;#ASMEND
	;;#ASMSTART
	v_perm_b32 v8, v9, v8, s22
	;;#ASMEND
	global_store_dword v[4:5], v8, off
	v_lshl_add_u64 v[4:5], v[4:5], 0, s[18:19]
	s_andn2_b64 exec, exec, s[14:15]
	s_cbranch_execnz .LBB10_2
.LBB10_3:
	s_or_b64 exec, exec, s[2:3]
	v_lshl_add_u64 v[0:1], s[12:13], 2, v[0:1]
	v_cmp_gt_u64_e32 vcc, s[8:9], v[0:1]
	s_and_saveexec_b64 s[0:1], vcc
	s_cbranch_execz .LBB10_6
; %bb.4:
	s_mov_b32 s1, 0
	s_mov_b32 s0, s11
	v_lshl_add_u64 v[2:3], v[0:1], 1, s[4:5]
	s_lshl_b64 s[2:3], s[0:1], 1
	s_mov_b64 s[4:5], 0
	s_mov_b32 s10, 0x3fbf3fbf
	s_mov_b32 s11, 0x800080
	s_mov_b32 s12, 0x80008000
	s_mov_b32 s13, 0xc0c0301
.LBB10_5:                               ; =>This Inner Loop Header: Depth=1
	global_load_ushort v6, v[2:3], off
	v_lshl_add_u64 v[4:5], s[6:7], 0, v[0:1]
	v_lshl_add_u64 v[0:1], v[0:1], 0, s[0:1]
	v_cmp_le_u64_e32 vcc, s[8:9], v[0:1]
	v_lshl_add_u64 v[2:3], v[2:3], 0, s[2:3]
	s_or_b64 s[4:5], vcc, s[4:5]
	s_waitcnt vmcnt(0)
	v_and_b32_e32 v7, 0x7fff, v6
	;;#ASMSTART
	v_pk_min_u16 v7, v7, s10
	;;#ASMEND
	;;#ASMSTART
	v_lshl_add_u32 v7, v7, 1, s11
	;;#ASMEND
	;;#ASMSTART
	v_bfi_b32 v6, s12, v6, v7
	;;#ASMEND
	;;#ASMSTART
	v_perm_b32 v6, v6, v6, s13
	;;#ASMEND
	global_store_byte v[4:5], v6, off
	s_andn2_b64 exec, exec, s[4:5]
	s_cbranch_execnz .LBB10_5
.LBB10_6:
	s_endpgm
	.section	.rodata,"a",@progbits
	.p2align	6, 0x0
	.amdhsa_kernel warpwire_f16_to_e4m3b15_extended
		.amdhsa_group_segment_fixed_size 0
		.amdhsa_private_segment_fixed_size 0
		.amdhsa_kernarg_size 32
		.amdhsa_user_sgpr_count 2
		.amdhsa_user_sgpr_dispatch_ptr 0
		.amdhsa_user_sgpr_queue_ptr 0
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_dispatch_id 0
		.amdhsa_user_sgpr_kernarg_preload_length 0
		.amdhsa_user_sgpr_kernarg_preload_offset 0
		.amdhsa_user_sgpr_private_segment_size 0
		.amdhsa_uses_dynamic_stack 0
		.amdhsa_enable_private_segment 0
		.amdhsa_system_sgpr_workgroup_id_x 1
		.amdhsa_system_sgpr_workgroup_id_y 0
		.amdhsa_system_sgpr_workgroup_id_z 0
		.amdhsa_system_sgpr_workgroup_info 0
		.amdhsa_system_vgpr_workitem_id 0
		.amdhsa_next_free_vgpr 12
		.amdhsa_next_free_sgpr 23
		.amdhsa_accum_offset 12
		.amdhsa_reserve_vcc 1
		.amdhsa_reserve_xnack_mask 1
		.amdhsa_float_round_mode_32 0
		.amdhsa_float_round_mode_16_64 0
		.amdhsa_float_denorm_mode_32 3
		.amdhsa_float_denorm_mode_16_64 3
		.amdhsa_dx10_clamp 1
		.amdhsa_ieee_mode 1
		.amdhsa_fp16_overflow 0
		.amdhsa_tg_split 0
		.amdhsa_exception_fp_ieee_invalid_op 0
		.amdhsa_exception_fp_denorm_src 0
		.amdhsa_exception_fp_ieee_div_zero 0
		.amdhsa_exception_fp_ieee_overflow 0
		.amdhsa_exception_fp_ieee_underflow 0
		.amdhsa_exception_fp_ieee_inexact 0
		.amdhsa_exception_int_div_zero 0
	.end_amdhsa_kernel
	.text
.Lfunc_end10:
	.size	warpwire_f16_to_e4m3b15_extended, .Lfunc_end10-warpwire_f16_to_e4m3b15_extended
                                        ; -- End function
	.section	.AMDGPU.csdata,"",@progbits
; Kernel info:
; codeLenInByte = 460
; NumSgprs: 29
; NumVgprs: 12
; NumAgprs: 0
; TotalNumVgprs: 12
; ScratchSize: 0
; MemoryBound: 0
; FloatMode: 240
; IeeeMode: 1
; LDSByteSize: 0 bytes/workgroup (compile time only)
; SGPRBlocks: 3
; VGPRBlocks: 1
; NumSGPRsForWavesPerEU: 29
; NumVGPRsForWavesPerEU: 12
; AccumOffset: 12
; Occupancy: 8
; WaveLimiterHint : 0
; COMPUTE_PGM_RSRC2:SCRATCH_EN: 0
; COMPUTE_PGM_RSRC2:USER_SGPR: 2
; COMPUTE_PGM_RSRC2:TRAP_HANDLER: 0
; COMPUTE_PGM_RSRC2:TGID_X_EN: 1
; COMPUTE_PGM_RSRC2:TGID_Y_EN: 0
; COMPUTE_PGM_RSRC2:TGID_Z_EN: 0
; COMPUTE_PGM_RSRC2:TIDIG_COMP_CNT: 0
; COMPUTE_PGM_RSRC3_GFX90A:ACCUM_OFFSET: 2
; COMPUTE_PGM_RSRC3_GFX90A:TG_SPLIT: 0
	.text
	.protected	warpwire_e4m3b15_extended_to_f16 ; -- Begin function warpwire_e4m3b15_extended_to_f16
	.globl	warpwire_e4m3b15_extended_to_f16
	.p2align	8
	.type	warpwire_e4m3b15_extended_to_f16,@function
warpwire_e4m3b15_extended_to_f16:       ; @warpwire_e4m3b15_extended_to_f16
; %bb.0:
	s_load_dwordx8 s[4:11], s[0:1], 0x0
	s_mov_b32 s1, 0
	s_mov_b32 s13, s1
	v_mov_b32_e32 v1, 0
	v_mov_b32_e32 v2, s2
	s_waitcnt lgkmcnt(0)
	s_and_b32 s0, s4, 3
	s_and_b32 s12, s6, 7
	s_or_b64 s[12:13], s[0:1], s[12:13]
	s_lshr_b64 s[16:17], s[8:9], 2
	s_cmp_eq_u64 s[12:13], 0
	s_cselect_b32 s13, s17, 0
	s_cselect_b32 s12, s16, 0
	v_mad_u64_u32 v[0:1], s[2:3], s10, v2, v[0:1]
	s_mov_b64 s[14:15], 0
	v_cmp_gt_u64_e32 vcc, s[12:13], v[0:1]
	s_and_saveexec_b64 s[2:3], vcc
	s_cbranch_execz .LBB11_3
; %bb.1:
	s_mov_b32 s0, s11
	v_lshl_add_u64 v[2:3], v[0:1], 2, s[4:5]
	s_lshl_b64 s[16:17], s[0:1], 2
	v_lshl_add_u64 v[4:5], v[0:1], 3, s[6:7]
	s_lshl_b64 s[18:19], s[0:1], 3
	s_mov_b32 s10, 0x10c000c
	s_mov_b32 s20, 0x10001
	s_mov_b32 s21, 0x30c020c
	v_mov_b64_e32 v[6:7], v[0:1]
.LBB11_2:                               ; =>This Inner Loop Header: Depth=1
	global_load_dword v8, v[2:3], off
	s_waitcnt vmcnt(0)
	;;#ASMSTART
	v_perm_b32 v9, v8, v8, s10
	;;#ASMEND
	v_lshl_add_u64 v[6:7], v[6:7], 0, s[0:1]
	;;#ASMSTART
	v_perm_b32 v8, v8, v8, s21
	;;#ASMEND
	;;#ASMSTART
	v_pk_ashrrev_i16 v9, s20, v9
	;;#ASMEND
	v_cmp_le_u64_e32 vcc, s[12:13], v[6:7]
	;;#ASMSTART
	v_pk_ashrrev_i16 v10, s20, v8
	;;#ASMEND
	v_and_b32_e32 v8, 0xbfffbfff, v9
	v_and_b32_e32 v9, 0xbfffbfff, v10
	v_lshl_add_u64 v[2:3], v[2:3], 0, s[16:17]
	s_or_b64 s[14:15], vcc, s[14:15]
	global_store_dwordx2 v[4:5], v[8:9], off
	v_lshl_add_u64 v[4:5], v[4:5], 0, s[18:19]
	s_andn2_b64 exec, exec, s[14:15]
	s_cbranch_execnz .LBB11_2
.LBB11_3:
	s_or_b64 exec, exec, s[2:3]
	v_lshl_add_u64 v[0:1], s[12:13], 2, v[0:1]
	v_cmp_gt_u64_e32 vcc, s[8:9], v[0:1]
	s_and_saveexec_b64 s[0:1], vcc
	s_cbranch_execz .LBB11_6
; %bb.4:
	s_mov_b32 s1, 0
	s_mov_b32 s0, s11
	v_lshl_add_u64 v[2:3], v[0:1], 1, s[6:7]
	s_lshl_b64 s[2:3], s[0:1], 1
	s_mov_b64 s[6:7], 0
	s_mov_b32 s10, 0x10c000c
	s_mov_b32 s11, 0x10001
.LBB11_5:                               ; =>This Inner Loop Header: Depth=1
	v_lshl_add_u64 v[4:5], s[4:5], 0, v[0:1]
	global_load_ubyte v4, v[4:5], off
	s_waitcnt vmcnt(0)
	;;#ASMSTART
	v_perm_b32 v4, v4, v4, s10
	;;#ASMEND
	v_lshl_add_u64 v[0:1], v[0:1], 0, s[0:1]
	;;#ASMSTART
	v_pk_ashrrev_i16 v4, s11, v4
	;;#ASMEND
	v_cmp_le_u64_e32 vcc, s[8:9], v[0:1]
	v_and_b32_e32 v4, 0xffffbfff, v4
	s_or_b64 s[6:7], vcc, s[6:7]
	global_store_short v[2:3], v4, off
	v_lshl_add_u64 v[2:3], v[2:3], 0, s[2:3]
	s_andn2_b64 exec, exec, s[6:7]
	s_cbranch_execnz .LBB11_5
.LBB11_6:
	s_endpgm
	.section	.rodata,"a",@progbits
	.p2align	6, 0x0
	.amdhsa_kernel warpwire_e4m3b15_extended_to_f16
		.amdhsa_group_segment_fixed_size 0
		.amdhsa_private_segment_fixed_size 0
		.amdhsa_kernarg_size 32
		.amdhsa_user_sgpr_count 2
		.amdhsa_user_sgpr_dispatch_ptr 0
		.amdhsa_user_sgpr_queue_ptr 0
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_dispatch_id 0
		.amdhsa_user_sgpr_kernarg_preload_length 0
		.amdhsa_user_sgpr_kernarg_preload_offset 0
		.amdhsa_user_sgpr_private_segment_size 0
		.amdhsa_uses_dynamic_stack 0
		.amdhsa_enable_private_segment 0
		.amdhsa_system_sgpr_workgroup_id_x 1
		.amdhsa_system_sgpr_workgroup_id_y 0
		.amdhsa_system_sgpr_workgroup_id_z 0
		.amdhsa_system_sgpr_workgroup_info 0
		.amdhsa_system_vgpr_workitem_id 0
		.amdhsa_next_free_vgpr 11
		.amdhsa_next_free_sgpr 22
		.amdhsa_accum_offset 12
		.amdhsa_reserve_vcc 1
		.amdhsa_reserve_xnack_mask 1
		.amdhsa_float_round_mode_32 0
		.amdhsa_float_round_mode_16_64 0
		.amdhsa_float_denorm_mode_32 3
		.amdhsa_float_denorm_mode_16_64 3
		.amdhsa_dx10_clamp 1
		.amdhsa_ieee_mode 1
		.amdhsa_fp16_overflow 0
		.amdhsa_tg_split 0
		.amdhsa_exception_fp_ieee_invalid_op 0
		.amdhsa_exception_fp_denorm_src 0
		.amdhsa_exception_fp_ieee_div_zero 0
		.amdhsa_exception_fp_ieee_overflow 0
		.amdhsa_exception_fp_ieee_underflow 0
		.amdhsa_exception_fp_ieee_inexact 0
		.amdhsa_exception_int_div_zero 0
	.end_amdhsa_kernel
	.text
.Lfunc_end11:
	.size	warpwire_e4m3b15_extended_to_f16, .Lfunc_end11-warpwire_e4m3b15_extended_to_f16
                                        ; -- End function
	.section	.AMDGPU.csdata,"",@progbits
; Kernel info:
; codeLenInByte = 396
; NumSgprs: 28
; NumVgprs: 11
; NumAgprs: 0
; TotalNumVgprs: 11
; ScratchSize: 0
; MemoryBound: 0
; FloatMode: 240
; IeeeMode: 1
; LDSByteSize: 0 bytes/workgroup (compile time only)
; SGPRBlocks: 3
; VGPRBlocks: 1
; NumSGPRsForWavesPerEU: 28
; NumVGPRsForWavesPerEU: 11
; AccumOffset: 12
; Occupancy: 8
; WaveLimiterHint : 0
; COMPUTE_PGM_RSRC2:SCRATCH_EN: 0
; COMPUTE_PGM_RSRC2:USER_SGPR: 2
; COMPUTE_PGM_RSRC2:TRAP_HANDLER: 0
; COMPUTE_PGM_RSRC2:TGID_X_EN: 1
; COMPUTE_PGM_RSRC2:TGID_Y_EN: 0
; COMPUTE_PGM_RSRC2:TGID_Z_EN: 0
; COMPUTE_PGM_RSRC2:TIDIG_COMP_CNT: 0
; COMPUTE_PGM_RSRC3_GFX90A:ACCUM_OFFSET: 2
; COMPUTE_PGM_RSRC3_GFX90A:TG_SPLIT: 0
	.text
	.p2alignl 6, 3212836864
	.fill 256, 4, 3212836864
	.type	__hip_cuid_,@object             ; @__hip_cuid_
	.section	.bss,"aw",@nobits
	.globl	__hip_cuid_
__hip_cuid_:
	.byte	0                               ; 0x0
	.size	__hip_cuid_, 1

	.ident	"Debian clang version 19.1.7 (3~deb12u1)"
	.section	".note.GNU-stack","",@progbits
	.addrsig
	.addrsig_sym warpwire_f16x2_to_e4m3b15
	.addrsig_sym warpwire_f16x4_to_e4m3b15
	.addrsig_sym warpwire_e4m3b15x2_to_f16
	.addrsig_sym warpwire_e4m3b15x4_to_f16
	.addrsig_sym warpwire_f16x2_to_e4m3b15_extended
	.addrsig_sym warpwire_f16x4_to_e4m3b15_extended
	.addrsig_sym warpwire_e4m3b15_extendedx2_to_f16
	.addrsig_sym warpwire_e4m3b15_extendedx4_to_f16
	.addrsig_sym __hip_cuid_
	.amdgpu_metadata
---
amdhsa.kernels:
  - .agpr_count:     0
    .args:
      - .offset:         0
        .size:           32
        .value_kind:     by_value
    .group_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .kernarg_segment_size: 32
    .max_flat_workgroup_size: 1024
    .name:           warpwire_f16_to_e4m3b15
    .private_segment_fixed_size: 0
    .sgpr_count:     32
    .sgpr_spill_count: 0
    .symbol:         warpwire_f16_to_e4m3b15.kd
    .uniform_work_group_size: 1
    .uses_dynamic_stack: false
    .vgpr_count:     16
    .vgpr_spill_count: 0
    .wavefront_size: 64
  - .agpr_count:     0
    .args:
      - .offset:         0
        .size:           32
        .value_kind:     by_value
    .group_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .kernarg_segment_size: 32
    .max_flat_workgroup_size: 1024
    .name:           warpwire_e4m3b15_to_f16
    .private_segment_fixed_size: 0
    .sgpr_count:     32
    .sgpr_spill_count: 0
    .symbol:         warpwire_e4m3b15_to_f16.kd
    .uniform_work_group_size: 1
    .uses_dynamic_stack: false
    .vgpr_count:     14
    .vgpr_spill_count: 0
    .wavefront_size: 64
  - .agpr_count:     0
    .args:
      - .offset:         0
        .size:           32
        .value_kind:     by_value
    .group_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .kernarg_segment_size: 32
    .max_flat_workgroup_size: 1024
    .name:           warpwire_f16_to_e4m3b15_extended
    .private_segment_fixed_size: 0
    .sgpr_count:     29
    .sgpr_spill_count: 0
    .symbol:         warpwire_f16_to_e4m3b15_extended.kd
    .uniform_work_group_size: 1
    .uses_dynamic_stack: false
    .vgpr_count:     12
    .vgpr_spill_count: 0
    .wavefront_size: 64
  - .agpr_count:     0
    .args:
      - .offset:         0
        .size:           32
        .value_kind:     by_value
    .group_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .kernarg_segment_size: 32
    .max_flat_workgroup_size: 1024
    .name:           warpwire_e4m3b15_extended_to_f16
    .private_segment_fixed_size: 0
    .sgpr_count:     28
    .sgpr_spill_count: 0
    .symbol:         warpwire_e4m3b15_extended_to_f16.kd
    .uniform_work_group_size: 1
    .uses_dynamic_stack: false
    .vgpr_count:     11
    .vgpr_spill_count: 0
    .wavefront_size: 64
amdhsa.target:   amdgcn-amd-amdhsa--gfx942
amdhsa.version:
  - 1
  - 2
...

	.end_amdgpu_metadata
